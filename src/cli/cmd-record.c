/* SPDX-License-Identifier: MIT */
/*
 * kilroy record: runs a program and writes its events into a log.
 *
 * The program's process is made first and waits at a pipe, while its control block, registry and
 * stream are put into the runtime directory (guest/session.h); then it is let go. We drain the
 * stream until the program ends, or recording does: by -d, Ctrl-C, or a signal.
 */
#include "cli/cli.h"
#include "cli/launch.h"
#include "cli/options.h"
#include "collect/collect.h"
#include "guest/session.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define POLL_MS 10
#define DISK_RETRY_MS 200
#define DEFAULT_STREAM_BYTES (UINT64_C(16) << 20)
#define SIGNALLED 128 /* the shell's way: 128 + signal */
#define SECOND_NS UINT64_C(1000000000)

struct request {
	const char *output, *policy;
	uint64_t stream_bytes, duration_ns;
	struct kly_option_list keep;
	char **program;
};

struct recording {
	const struct request *request;
	char path[4096]; /* of the log */
	int log_fd;
	int signal_fd;
	struct kly_launch launch;
	struct kly_session session;
	struct kly_log_writer *writer;
	struct kly_collect collect;
	uint32_t incarnation; /* the last one that is in the log */
	int disk_error;       /* the last write failed with it; told once */
	uint64_t end_ns;      /* CLOCK_MONOTONIC: when -d ends the recording */
	bool recording;
	bool interrupted;
	bool failed;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

static int parse_policy(const char *text, enum kly_policy *ret)
{
	static const struct {
		const char *name;
		enum kly_policy policy;
	} policies[] = {
		{"loop", KLY_POLICY_LOOP},
		{"until-full", KLY_POLICY_UNTIL_FULL},
		{"flush", KLY_POLICY_FLUSH},
	};

	for (size_t i = 0; i < KLY_COUNT(policies); i++) {
		if (strcmp(policies[i].name, text) == 0) {
			*ret = policies[i].policy;
			return 0;
		}
	}
	kly_cli_error("record: --policy %s: must be loop, until-full or flush", text);
	return -EINVAL;
}

static int gather_keep(const struct kly_option_list *list, char keep[KLY_KEEP_BYTES])
{
	size_t used = 0;

	memset(keep, 0, KLY_KEEP_BYTES);
	for (size_t i = 0; i < list->count; i++) {
		size_t len = strlen(list->items[i]) + 1;

		if (len == 1 || len > KLY_KEEP_BYTES - 1 - used) {
			kly_cli_error("record: --keep %s: %s", list->items[i],
				len == 1 ? "empty" : "the patterns are too long");
			return -EINVAL;
		}
		memcpy(keep + used, list->items[i], len);
		used += len;
	}
	return 0;
}

/*
 * The log's file.
 */

/* A regular file that is there already becomes FILE.old. Anything else (a pipe, /dev/null) is
 * written into. */
static int open_log(struct recording *r)
{
	const char *name = strrchr(r->request->program[0], '/');
	char old[sizeof(r->path) + 8];
	struct stat st;

	name = name ? name + 1 : r->request->program[0];
	int len = r->request->output
			  ? snprintf(r->path, sizeof(r->path), "%s", r->request->output)
			  : snprintf(r->path, sizeof(r->path), "%s.kly", name);
	if (len < 0 || (size_t)len >= sizeof(r->path))
		return -ENAMETOOLONG;
	if (lstat(r->path, &st) == 0 && S_ISREG(st.st_mode)) {
		(void)snprintf(old, sizeof(old), "%s.old", r->path);
		if (rename(r->path, old) < 0)
			return -errno;
	}
	r->log_fd = open(r->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	return r->log_fd < 0 ? -errno : 0;
}

static int begin_log(struct recording *r)
{
	struct kly_wire_log_head head;
	const struct kly_launch *l = &r->launch;

	kly_collect_fill_head(&head, &r->session.stream, l->pid);
	int e = kly_log_writer_open(r->log_fd, &head, &r->writer);
	if (e == 0)
		e = kly_collect_init(&r->collect, &r->session.control, r->writer);
	if (e == 0)
		e = kly_collect_process(&r->collect, l->pid, 0, l->path, l->args, l->args_bytes);
	return e;
}

/* Tells of a disk that does not take the log, once, and of one that takes it again. */
static void note_disk(struct recording *r, int e)
{
	if (e < 0 && e != r->disk_error)
		kly_cli_error("%s: %s; events stay in memory, %s", r->path, strerror(-e),
			"the log goes on when it can");
	if (e == 0 && r->disk_error)
		kly_cli_error("%s: the log goes on", r->path);
	r->disk_error = e;
}

/* Which program the process runs, when it has begun another one than we have run. */
static int note_incarnation(struct recording *r)
{
	uint32_t now = kly_session_incarnation(&r->session);
	int e = 0;

	if (now != r->incarnation && now > 1)
		e = kly_collect_process(&r->collect, r->launch.pid, now, NULL, NULL, 0);
	if (e == 0)
		r->incarnation = now;
	return e;
}

/* How long the stream may be left alone. */
static int drain(struct recording *r)
{
	if (r->session.stream.policy != KLY_POLICY_FLUSH)
		return POLL_MS; /* written when recording ends */

	int e = note_incarnation(r);
	if (e == 0)
		e = kly_collect_round(&r->collect);
	note_disk(r, e);
	if (e < 0)
		return DISK_RETRY_MS;
	return r->collect.bytes_taken > r->session.stream.head->min_bytes / 8 ? 0 : POLL_MS;
}

static void end_recording(struct recording *r)
{
	if (!r->recording)
		return;
	r->recording = false;
	(void)kly_control_stop(&r->session.control, NULL);
	int e = note_incarnation(r);
	if (e == 0)
		e = kly_collect_rest(&r->collect);
	int closed = kly_log_writer_close(r->writer, kly_stream_now(&r->session.stream), false);
	if (e == 0)
		e = closed;
	if (e < 0) {
		kly_cli_error("%s: %s; what was written before can be read", r->path, strerror(-e));
		r->failed = true;
	}
	if (!r->incarnation)
		kly_cli_error("%s: it did not load the library (linked statically, or set-uid?): "
			      "nothing was recorded",
			r->request->program[0]);
	kly_collect_fini(&r->collect);
	kly_session_close(&r->session);
}

/*
 * Signals. Ctrl-C reaches the program from the terminal too; what is sent to us alone is passed on.
 */

static void handle_signal(struct recording *r, const struct signalfd_siginfo *info)
{
	if (info->ssi_signo == SIGCHLD)
		return;
	if (info->ssi_code <= 0) /* by kill(): a terminal's have SI_KERNEL */
		(void)kill(r->launch.pid, (int)info->ssi_signo);
	if (r->interrupted && info->ssi_signo == SIGINT)
		(void)kill(r->launch.pid, SIGTERM); /* it did not mind the first one */
	r->interrupted = true;
	end_recording(r);
}

static void wait_for_signal(struct recording *r, int timeout_ms)
{
	struct pollfd p = {.fd = r->signal_fd, .events = POLLIN};
	struct signalfd_siginfo info;

	if (poll(&p, 1, timeout_ms) <= 0)
		return;
	while (read(r->signal_fd, &info, sizeof(info)) == sizeof(info))
		handle_signal(r, &info);
}

static int open_signals(sigset_t *ret_before)
{
	sigset_t set;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, ret_before);
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* Until the program ends. Its status, as a shell would tell it. */
static int watch(struct recording *r)
{
	int status;

	for (;;) {
		bool ended = waitpid(r->launch.pid, &status, WNOHANG) == r->launch.pid;

		if (ended)
			break;
		if (r->recording && r->end_ns && now_ns() >= r->end_ns)
			end_recording(r);
		int timeout_ms = r->recording ? drain(r) : -1;
		wait_for_signal(r, timeout_ms);
	}
	end_recording(r);
	return WIFEXITED(status) ? WEXITSTATUS(status) : SIGNALLED + WTERMSIG(status);
}

static int fail_session(const struct recording *r, const struct kly_stream_options *o, int e)
{
	if (e == -ENOSPC || e == -ENOMEM)
		kly_cli_error("no room in shared memory for a stream of %" PRIu64
			      " bytes (it needs %" PRIu64 "); -s makes it smaller",
			o->min_bytes, kly_stream_reserve_bytes(o));
	else if (e == -ENOENT)
		kly_cli_error("no runtime directory: neither /dev/shm nor /run/user can be used");
	else
		kly_cli_error("%s: can't be recorded: %s", r->request->program[0], strerror(-e));
	return KLY_EXIT_FAILED;
}

static int prepare(struct recording *r, const struct kly_stream_options *options)
{
	int e = kly_session_open(&r->session, r->launch.pid, options);
	if (e < 0)
		return fail_session(r, options, e);
	e = open_log(r);
	if (e == 0)
		e = begin_log(r);
	if (e == 0)
		e = kly_control_start(&r->session.control, NULL);
	if (e < 0) {
		kly_cli_error("%s: %s", r->path, strerror(-e));
		kly_log_writer_abandon(r->writer);
		kly_collect_fini(&r->collect);
		kly_session_close(&r->session);
		return KLY_EXIT_FAILED;
	}
	r->recording = true;
	return KLY_EXIT_OK;
}

/* The program could not be run: no log of nothing is left behind. */
static int give_up(struct recording *r, int e)
{
	kly_cli_error("%s: %s", r->request->program[0], strerror(-e));
	kly_log_writer_abandon(r->writer);
	kly_collect_fini(&r->collect);
	kly_session_close(&r->session);
	(void)unlink(r->path);
	return KLY_EXIT_FAILED;
}

static int record(const struct request *request, const struct kly_stream_options *options)
{
	struct recording r = {.request = request, .log_fd = -1};
	sigset_t before;

	r.signal_fd = open_signals(&before);
	if (r.signal_fd < 0) {
		kly_cli_error("record: %s", strerror(-r.signal_fd));
		return KLY_EXIT_FAILED;
	}
	int e = kly_launch_prepare(&r.launch, request->program, &before);
	if (e < 0) {
		kly_cli_error("%s: %s", request->program[0], strerror(-e));
		return KLY_EXIT_FAILED;
	}
	int status = prepare(&r, options);
	if (status != KLY_EXIT_OK) {
		kly_launch_cancel(&r.launch);
		return status;
	}
	if (request->duration_ns)
		r.end_ns = now_ns() + request->duration_ns;
	e = kly_launch_go(&r.launch);
	if (e < 0)
		return give_up(&r, e);
	status = watch(&r);
	return status == KLY_EXIT_OK && r.failed ? KLY_EXIT_FAILED : status;
}

int kly_cmd_record(int argc, char **argv)
{
	struct request request = {.policy = "flush", .stream_bytes = DEFAULT_STREAM_BYTES};
	const char *keep_items[argc];
	char keep[KLY_KEEP_BYTES];
	struct kly_stream_options options = {.keep = keep};

	request.keep.items = keep_items;
	const struct kly_option table[] = {
		{'o', "output", KLY_OPTION_TEXT, &request.output, "FILE",
			"the log (PROGRAM.kly); one that is there becomes FILE.old"},
		{'s', "size", KLY_OPTION_SIZE, &request.stream_bytes, "SIZE",
			"bytes of events that memory holds (16M)"},
		{0, "policy", KLY_OPTION_TEXT, &request.policy, "POLICY",
			"loop, until-full or flush (flush): what happens when it is full"},
		{0, "keep", KLY_OPTION_LIST, &request.keep, "GLOB",
			"record only events whose names fit; may be repeated"},
		{'d', "duration", KLY_OPTION_DURATION, &request.duration_ns, "SECONDS",
			"stop recording, not the program, after this time"},
	};
	const struct kly_usage usage = {
		"record", "[OPTION]... [--] PROGRAM [ARG]...", table, KLY_COUNT(table), true};

	int operands = kly_options_parse(&usage, argc, argv);
	if (operands < 0)
		return -1 - operands;
	if (operands == 0) {
		kly_cli_error("record: which program? `kilroy record --help` tells more");
		return KLY_EXIT_USAGE;
	}
	if (parse_policy(request.policy, &options.policy) < 0 || gather_keep(&request.keep, keep) < 0)
		return KLY_EXIT_USAGE;
	argv[1 + operands] = NULL; /* what follows are options that were moved away */
	request.program = argv + 1;
	options.name = argv[1];
	options.min_bytes = request.stream_bytes;
	return record(&request, &options);
}
