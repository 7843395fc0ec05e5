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
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define POLL_MS 10
#define DISK_RETRY_MS 200
#define FIFO_RETRY_MS 50
#define DEFAULT_STREAM_BYTES (UINT64_C(16) << 20)
#define SIGNALLED 128 /* the shell's way: 128 + signal */
#define SLOT_ADDRESS_BYTES (UINT64_C(272) << 10) /* about what a thread may take of a stream */
#define SLOTS_LEAST 64
#define SLOTS_MOST 4096
#define SECOND_NS UINT64_C(1000000000)

struct request {
	const char *output, *policy;
	uint64_t stream_bytes, duration_ns;
	struct kly_option_list keep;
	char **program;
};

struct recording {
	const struct request *request;
	char path[PATH_MAX];      /* of the log */
	char made_as[PATH_MAX];   /* what it is called until the program runs; empty: path */
	int log_fd;
	int signal_fd;
	struct kly_launch launch;
	struct kly_session session;
	struct kly_log_writer *writer;
	struct kly_collect collect;
	uint32_t incarnation; /* the last one that is in the log */
	int disk_error;       /* the last write failed with it; told once */
	uint64_t end_ns;      /* CLOCK_MONOTONIC: when -d ends the recording */
	bool ended; /* the program */
	bool recording;
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

/* A file that is there already becomes FILE.old, but only when the program runs: until then the log
 * has another name. What is no file (a pipe, a terminal, /dev/null) is written into. */
static int name_log(struct recording *r)
{
	const char *name = strrchr(r->request->program[0], '/');
	struct stat st;

	name = name ? name + 1 : r->request->program[0];
	int len = r->request->output
			  ? snprintf(r->path, sizeof(r->path), "%s", r->request->output)
			  : snprintf(r->path, sizeof(r->path), "%s.kly", name);
	if (len < 0 || (size_t)len + sizeof(".old") > sizeof(r->path))
		return -ENAMETOOLONG;
	if (stat(r->path, &st) == 0 && S_ISDIR(st.st_mode))
		return -EISDIR;
	if (stat(r->path, &st) == 0 && !S_ISREG(st.st_mode))
		return 0;
	len = snprintf(r->made_as, sizeof(r->made_as), "%s.%d", r->path, (int)getpid());
	return (size_t)len < sizeof(r->made_as) ? 0 : -ENAMETOOLONG;
}

/* A FIFO that nobody reads yet is waited for, as long as nobody interrupts. */
static int open_pipe(const struct recording *r)
{
	struct pollfd p = {.fd = r->signal_fd, .events = POLLIN};

	for (;;) {
		int fd = open(r->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);

		if (fd >= 0)
			return fcntl(fd, F_SETFL, O_WRONLY) < 0 ? -errno : fd;
		if (errno != ENXIO)
			return -errno;
		if (poll(&p, 1, FIFO_RETRY_MS) > 0)
			return -EINTR;
	}
}

static int open_log(struct recording *r)
{
	int e = name_log(r);

	if (e < 0)
		return e;
	if (!*r->made_as)
		r->log_fd = open_pipe(r);
	else
		r->log_fd = open(r->made_as, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (r->log_fd < 0) {
		e = *r->made_as ? -errno : r->log_fd;
		*r->made_as = '\0'; /* not ours to unlink */
		return e;
	}
	return 0;
}

static int keep_old(const struct recording *r)
{
	char old[sizeof(r->path)];
	size_t len = strlen(r->path);

	memcpy(old, r->path, len);
	memcpy(old + len, ".old", sizeof(".old"));
	return rename(r->path, old) < 0 && errno != ENOENT ? -errno : 0;
}

/* The program runs: the log takes its name. */
static void show_log(struct recording *r)
{
	if (!*r->made_as)
		return;
	int e = keep_old(r);
	if (e == 0 && rename(r->made_as, r->path) < 0)
		e = -errno;
	if (e < 0) {
		kly_cli_error("%s: %s; the log is %s", r->path, strerror(-e), r->made_as);
		r->failed = true;
	}
}

static int begin_log(struct recording *r)
{
	struct kly_wire_log_head head;
	const struct kly_launch *l = &r->launch;

	kly_collect_fill_head(&head, &r->session.stream, l->pid);
	int e = kly_log_writer_open(r->log_fd, &head, &r->writer);
	(void)close(r->log_fd); /* the writer has its own, so that a pipe ends with it */
	r->log_fd = -1;
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

/* Whether the image is what we have run: its arguments are. */
static bool is_first(const struct recording *r, const struct kly_wire_image *image)
{
	size_t bytes = kly_min(image->args_bytes, r->launch.args_bytes);

	return image->incarnation == 1 &&
	       memcmp(image->text + image->exe_bytes, r->launch.args, bytes) == 0;
}

/* Which programs the process has begun since the last time, other than the one that we have run. */
static int note_incarnations(struct recording *r)
{
	uint32_t now = kly_session_incarnation(&r->session);
	struct kly_wire_image image;

	if (now > r->incarnation + KLY_IMAGES)
		r->incarnation = now - KLY_IMAGES; /* the others have not been kept */
	while (r->incarnation != now) {
		uint32_t next = r->incarnation + 1;
		int e = 0;

		if (!kly_session_image(&r->session, next, &image)) {
			if (next == now && !r->ended)
				return 0; /* it is about to tell */
		} else if (!is_first(r, &image)) {
			e = kly_collect_process(&r->collect, r->launch.pid, next, image.text,
				image.text + image.exe_bytes, image.args_bytes);
		}
		if (e < 0)
			return e;
		r->incarnation = next;
	}
	return 0;
}

static void end_recording(struct recording *r);

/* How long the stream may be left alone. */
static int drain(struct recording *r)
{
	int e = note_incarnations(r);
	if (r->session.stream.policy != KLY_POLICY_FLUSH)
		return POLL_MS; /* events are written when recording ends */
	if (e == 0)
		e = kly_collect_round(&r->collect);
	if (e == -EPIPE) { /* its reader has left, and nobody can come back */
		end_recording(r);
		return -1;
	}
	note_disk(r, e);
	if (e < 0)
		return DISK_RETRY_MS;
	return r->collect.bytes_taken > r->session.stream.head->min_bytes / 8 ? 0 : POLL_MS;
}

static const char *why_nothing(const struct kly_launch *l)
{
	if (getenv("KILROY_DISABLE"))
		return "KILROY_DISABLE is set";
	if (l->kind == KLY_ELF_STATIC)
		return "it is linked statically";
	if (l->kind == KLY_ELF_FOREIGN)
		return "it is a program of another machine";
	return "it did not load the library (set-uid, or no memory?)";
}

static void note_nothing(const struct recording *r)
{
	const char *program = r->request->program[0];

	if (!kly_session_incarnation(&r->session))
		kly_cli_error("%s: nothing was recorded: %s", program, why_nothing(&r->launch));
	else if (kly_session_is_refused(&r->session))
		kly_cli_error("%s: it had no address space for the stream (%zu bytes): nothing was "
			      "recorded",
			program, r->session.stream.total_bytes);
}

static void end_recording(struct recording *r)
{
	if (!r->recording)
		return;
	r->recording = false;
	(void)kly_control_stop(&r->session.control, NULL);
	int e = note_incarnations(r);
	if (e == 0)
		e = kly_collect_rest(&r->collect);
	int closed = kly_log_writer_close(r->writer, kly_stream_now(&r->session.stream), false);
	if (e == 0)
		e = closed;
	if (e < 0) {
		kly_cli_error("%s: %s; what was written before can be read", r->path, strerror(-e));
		r->failed = true;
	}
	if (r->ended) /* else it may still be about to */
		note_nothing(r);
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

/* Who runs us may have chosen that a signal be ignored (nohup, a shell's background job). */
static void add_unless_ignored(sigset_t *set, int signal_number)
{
	struct sigaction now;

	if (sigaction(signal_number, NULL, &now) == 0 && now.sa_handler != SIG_IGN)
		(void)sigaddset(set, signal_number);
}

static int open_signals(void)
{
	sigset_t set;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)signal(SIGCHLD, SIG_DFL); /* ignored, it would take away the program's status */
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	add_unless_ignored(&set, SIGINT);
	add_unless_ignored(&set, SIGTERM);
	add_unless_ignored(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* Until the program ends. Its status, as a shell would tell it. */
static int watch(struct recording *r)
{
	int status;

	for (;;) {
		bool ended = waitpid(r->launch.pid, &status, WNOHANG) == r->launch.pid;

		r->ended = ended;
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
	else if (e == -EINVAL)
		kly_cli_error("-s: %" PRIu64 " bytes: must be at most %" PRIu64, o->min_bytes,
			KLY_STREAM_BYTES_MAX);
	else if (e == -ENOENT)
		kly_cli_error("no runtime directory: neither /dev/shm nor /run/user can be used");
	else
		kly_cli_error("%s: can't be recorded: %s", r->request->program[0], strerror(-e));
	return KLY_EXIT_FAILED;
}

/* The program was not run: no log of nothing is left behind. */
static void abandon(struct recording *r)
{
	kly_log_writer_abandon(r->writer);
	kly_collect_fini(&r->collect);
	kly_session_close(&r->session);
	if (*r->made_as)
		(void)unlink(r->made_as);
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
		abandon(r);
		return KLY_EXIT_FAILED;
	}
	r->recording = true;
	return KLY_EXIT_OK;
}

static int record(const struct request *request, const struct kly_stream_options *options)
{
	struct recording r = {.request = request, .log_fd = -1};
	struct kly_launch_signals signals;

	kly_launch_save_signals(&signals);
	r.signal_fd = open_signals();
	if (r.signal_fd < 0) {
		kly_cli_error("record: %s", strerror(-r.signal_fd));
		return KLY_EXIT_FAILED;
	}
	int e = kly_launch_prepare(&r.launch, request->program, &signals);
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
	if (e < 0) {
		kly_cli_error("%s: %s", request->program[0], strerror(-e));
		abandon(&r);
		return KLY_EXIT_FAILED;
	}
	show_log(&r);
	status = watch(&r);
	return status == KLY_EXIT_OK && r.failed ? KLY_EXIT_FAILED : status;
}

/* How many threads may be alive: all of a stream is mapped, so where address space is short it
 * shall not take more than an eighth. 0: the usual number. */
static uint32_t choose_slots(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return 0;
	uint64_t slots = limit.rlim_cur / 8 / SLOT_ADDRESS_BYTES;
	return (uint32_t)kly_min(kly_max(slots, SLOTS_LEAST), SLOTS_MOST);
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
	options.slot_count = choose_slots();
	return record(&request, &options);
}
