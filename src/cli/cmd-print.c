/* SPDX-License-Identifier: MIT */
/*
 * kilroy print: the events of a log in their order, between them what was lost, and at the end, on
 * standard error, what else has to be known: losses by cause, late events, damage.
 */
#include "cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/options.h"
#include "cli/printer.h"
#include "cli/when.h"
#include "log/reader.h"

static const char *const loss_causes[KLY_LOSS_CAUSES] = {
	[KLY_LOSS_FULL] = "the stream was full",
	[KLY_LOSS_OVERWRITTEN] = "overwritten by newer ones",
	[KLY_LOSS_DEPTH] = "signal handlers nested too deeply",
	[KLY_LOSS_SLOTS] = "too many threads",
	[KLY_LOSS_MEMORY] = "no memory for another thread",
	[KLY_LOSS_DIED] = "their threads died or jumped away while recording",
	[KLY_LOSS_DAMAGED] = "damaged in memory",
	[KLY_LOSS_DISK] = "the log could not be written",
};

static const char *loss_cause(uint32_t cause)
{
	return cause < KLY_LOSS_CAUSES ? loss_causes[cause]
				       : "for a reason unknown to this version";
}

struct request {
	const char *path, *from, *to;
	int64_t pid, tid; /* -1: any */
	uint64_t from_ns, to_ns;
	struct kly_option_list keep;
	bool json;
};

/* What is being printed: two sequences by time, events and losses. */
struct print {
	const struct request *request;
	struct kly_log_reader *log;
	struct kly_printer *printer;
	struct kly_log_loss *losses; /* sorted by their end */
	size_t loss_count, next_loss;
	uint64_t late;
};

static void destroy_print(struct print *print)
{
	free(print->losses);
	kly_printer_destroy(print->printer);
	kly_log_reader_close(print->log);
}

static int fail(const char *path, int error)
{
	switch (error) {
	case -EBADMSG:
		kly_cli_error("%s: not a kilroy log", path);
		break;
	case -EPROTONOSUPPORT:
		kly_cli_error("%s: log of another version or byte order", path);
		break;
	case -ESPIPE:
		kly_cli_error("%s: not a file", path);
		break;
	default:
		kly_cli_error("%s: %s", path, strerror(-error));
	}
	return KLY_EXIT_FAILED;
}

static int by_end(const void *a, const void *b)
{
	const struct kly_log_loss *x = a, *y = b;

	return (x->end > y->end) - (x->end < y->end);
}

static int sort_losses(struct print *print)
{
	const struct kly_log_loss *losses;
	size_t count = kly_log_reader_losses(print->log, &losses);

	if (count == 0)
		return 0;
	print->losses = reallocarray(NULL, count, sizeof(*losses));
	if (!print->losses)
		return -ENOMEM;
	memcpy(print->losses, losses, count * sizeof(*losses));
	qsort(print->losses, count, sizeof(*losses), by_end);
	print->loss_count = count;
	return 0;
}

/* A loss comes behind the events up to its end. */
static void print_losses(struct print *print, uint64_t before_ticks)
{
	const struct kly_timeline *timeline = kly_log_reader_timeline(print->log);
	const struct request *request = print->request;

	for (; print->next_loss < print->loss_count; print->next_loss++) {
		const struct kly_log_loss *loss = &print->losses[print->next_loss];
		if (loss->end >= before_ticks)
			return;
		struct kly_print_loss shown = {
			.events = loss->events,
			.cause = loss_cause(loss->cause),
			.begin_ns =
				kly_timeline_realtime(timeline, kly_min(loss->begin, loss->end)),
			.end_ns = kly_timeline_realtime(timeline, loss->end),
		};
		if (loss->events > 0 && shown.end_ns >= request->from_ns &&
			shown.begin_ns <= request->to_ns)
			print->printer->ops->loss(print->printer, &shown);
	}
}

static bool wanted(const struct request *request, const struct kly_event *event)
{
	return (request->pid < 0 || event->thread->pid == (uint64_t)request->pid) &&
	       (request->tid < 0 || event->thread->tid == (uint64_t)request->tid);
}

static int print_events(struct print *print)
{
	const struct kly_timeline *timeline = kly_log_reader_timeline(print->log);
	const struct request *request = print->request;
	struct kly_printer *printer = print->printer;
	struct kly_event event;
	int r;

	printer->ops->begin(printer);
	while ((r = kly_log_reader_next(print->log, &event)) > 0) {
		struct kly_print_event shown = {
			.event = &event,
			.type = kly_printer_type(printer, event.type),
			.time_ns = kly_timeline_realtime(timeline, event.ticks),
		};
		if (!shown.type)
			return -ENOMEM;
		if (shown.time_ns > request->to_ns)
			break;
		print_losses(print, event.ticks);
		print->late += (event.flags & KLY_EVENT_LATE) != 0;
		if (!shown.type->kept || shown.time_ns < request->from_ns ||
			!wanted(request, &event))
			continue;
		printer->ops->event(printer, &shown);
		if (printer->out.error)
			break;
	}
	if (r < 0)
		return r;
	print_losses(print, UINT64_MAX);
	return kly_out_flush(&printer->out);
}

/* Returns whether the log is whole. */
static bool print_summary(const struct print *print)
{
	const struct kly_log_reader *log = print->log;
	const char *path = print->request->path;
	size_t problems = kly_log_reader_problems(log);
	uint64_t lost[KLY_LOSS_CAUSES + 1] = {0};

	for (size_t i = 0; i < problems; i++)
		kly_cli_error("%s: %s", path, kly_log_reader_problem(log, i)->text);
	if (problems == 0 && !kly_log_reader_end(log))
		kly_cli_error(
			"%s: the end is missing: the recorder was killed, or is at work", path);

	for (size_t i = 0; i < print->loss_count; i++)
		lost[kly_min(print->losses[i].cause, KLY_LOSS_CAUSES)] += print->losses[i].events;
	for (uint32_t cause = 0; cause <= KLY_LOSS_CAUSES; cause++)
		if (lost[cause])
			kly_cli_error("%s: lost events: %" PRIu64 ": %s", path, lost[cause],
				loss_cause(cause));
	if (print->late)
		kly_cli_error("%s: late events: %" PRIu64 ": shown behind others with later times",
			path, print->late);
	return problems == 0 && kly_log_reader_end(log);
}

static int parse_when(const char *option, const char *text, uint64_t start_ns, uint64_t *ns)
{
	if (!text || kly_when_parse(text, start_ns, ns))
		return 0;
	kly_cli_error("%s: \"%s\" is not a time, like +1.5s, 14:03:22.5 or 2026-11-30T14:03:22.5",
		option, text);
	return -EINVAL;
}

static int print_log(struct request *request)
{
	kly_cleanup(destroy_print) struct print print = {.request = request};

	int r = kly_log_reader_open(request->path, &print.log);
	if (r < 0)
		return fail(request->path, r);

	uint64_t start_ns = kly_log_reader_timeline(print.log)->created_realtime_ns;
	if (parse_when("--from", request->from, start_ns, &request->from_ns) < 0 ||
		parse_when("--to", request->to, start_ns, &request->to_ns) < 0)
		return KLY_EXIT_USAGE;

	print.printer = kly_printer_create(request->json ? &kly_print_json : &kly_print_text);
	if (!print.printer || sort_losses(&print) < 0)
		return fail(request->path, -ENOMEM);
	print.printer->log = print.log;
	print.printer->start_ns = start_ns;
	print.printer->keep = request->keep.items;
	print.printer->keep_count = request->keep.count;
	print.printer->colour = !request->json && kly_cli_colour(STDOUT_FILENO);

	r = print_events(&print);
	int write_error = print.printer->out.error;
	if (write_error == -EPIPE)
		return KLY_EXIT_OK; /* the reader has seen enough */
	if (write_error)
		return fail("standard output", write_error);
	if (r < 0)
		return fail(request->path, r);
	return print_summary(&print) ? KLY_EXIT_OK : KLY_EXIT_FAILED;
}

int kly_cmd_print(int argc, char **argv)
{
	kly_cleanup(kly_freep) const char **keep = reallocarray(NULL, (size_t)argc, sizeof(*keep));
	struct request request = {
		.pid = -1,
		.tid = -1,
		.to_ns = UINT64_MAX,
		.keep = {.items = keep},
	};
	const struct kly_option options[] = {
		{0, "from", KLY_OPTION_TEXT, &request.from, "T", "leave out events before T"},
		{0, "to", KLY_OPTION_TEXT, &request.to, "T", "leave out events after T"},
		{0, "keep", KLY_OPTION_LIST, &request.keep, "GLOB",
			"keep events with such names; more than one: any of them"},
		{0, "pid", KLY_OPTION_NUMBER, &request.pid, "PID", "keep events of this process"},
		{0, "tid", KLY_OPTION_NUMBER, &request.tid, "TID", "keep events of this thread"},
		{0, "json", KLY_OPTION_FLAG, &request.json, NULL, "print one JSON object a line"},
	};
	const struct kly_usage usage = {
		.command = "print",
		.synopsis =
			"[--from T] [--to T] [--keep GLOB]... [--pid PID] [--tid TID] [--json] FILE",
		.options = options,
		.count = KLY_COUNT(options),
	};

	if (!keep)
		return fail("print", -ENOMEM);
	int operands = kly_options_parse(&usage, argc, argv);
	if (operands < 0)
		return -1 - operands;
	if (operands != 1) {
		kly_cli_error("print: which log? one FILE is needed; see `kilroy print --help`");
		return KLY_EXIT_USAGE;
	}
	request.path = argv[1];

	(void)signal(SIGPIPE, SIG_IGN); /* write() says it */
	return print_log(&request);
}
