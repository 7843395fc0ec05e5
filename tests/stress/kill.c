/* SPDX-License-Identifier: MIT */
/*
 * Writers that are killed. A child records into a stream that the parent made, in its main program
 * and in a signal handler, and counts in shared memory the calls that have returned. The parent
 * kills it, or it kills itself at a test point; then every event whose call had returned is read
 * back, whole and in order (N-07, R48).
 */
#include "bed.h"
#include "tap.h"

#include "trace.h"

#include <sys/wait.h>

#define LEVELS 2
#define EVENTS_MAX 60000

struct payload {
	uint64_t level, number, check;
	char more[40];
};

static struct oracle {
	uint64_t returned[LEVELS]; /* calls, by who makes them */
	uint32_t type;
	uint32_t ready;
} *oracle;

static enum kly_point deadly;
static unsigned deadly_after;

static void record(uint64_t level)
{
	struct payload p = {.level = level, .number = oracle->returned[level] + 1};

	p.check = ~(p.number ^ level << 32);
	memset(p.more, (int)p.number, sizeof(p.more));
	posix_trace_event(oracle->type, &p, sizeof(p) - p.number % sizeof(p.more));
	kly_store_release(&oracle->returned[level], p.number);
}

static void on_signal(int signal)
{
	(void)signal;
	record(1);
}

static void die_at(enum kly_point point)
{
	if (point == deadly && deadly_after-- == 0)
		(void)kill(getpid(), SIGKILL);
}

/* The child: maps the stream, starts it, records until it is killed. */
static _Noreturn void live(int fd, unsigned timer_us)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	struct kly_control control;
	struct kly_target target;

	if (!kly_process_ready())
		_exit(1);
	target = kly_process_target();
	struct kly_stream *s = kly_process_new_stream();
	if (kly_stream_map(fd, s) < 0 || kly_control_init(&control, &target, s) < 0)
		_exit(2);
	kly_process_put_place(control.place, s);
	(void)kly_process_open_type("kill.event", NULL, &oracle->type);
	(void)kly_control_start(&control, NULL);
	(void)sigaction(SIGUSR1, &action, NULL);
	if (timer_us && !BED_TSAN)
		(void)bed_timer_create(SIGUSR1, timer_us);
	kly_store_release(&oracle->ready, 1);
	kly_point_hook = deadly ? die_at : NULL;
	while (oracle->returned[0] < EVENTS_MAX)
		record(0);
	for (;;)
		(void)pause();
}

struct scene {
	int fd;
	struct kly_stream stream;
};

static void scene_open(struct scene *s, enum kly_policy policy)
{
	const struct kly_stream_options o = {
		.min_bytes = 8 << 20, .policy = policy, .slot_count = 64, .max_data = 256};

	s->fd = memfd_create("kill", MFD_CLOEXEC);
	if (kly_stream_create(s->fd, &o, &s->stream) < 0)
		abort();
	oracle = mmap(NULL, sizeof(*oracle), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void scene_close(struct scene *s)
{
	kly_stream_unmap(&s->stream);
	(void)close(s->fd);
	(void)munmap(oracle, sizeof(*oracle));
}

static pid_t begin_child(const struct scene *s, unsigned timer_us)
{
	pid_t child = fork();

	if (child == 0)
		live(s->fd, timer_us);
	return child;
}

/* What is wrong with the stream that the dead child left; NULL = nothing. */
static const char *examine(const struct scene *s)
{
	uint64_t next[LEVELS] = {1, 1};
	const char *wrong = NULL;
	struct kly_reader reader;
	struct kly_event event;
	struct payload p;

	if (kly_reader_init(&reader, &s->stream, NULL) < 0)
		return "no memory";
	while (!wrong && kly_reader_next(&reader, &event) == 1) {
		if (event.type != oracle->type)
			continue;
		memcpy(&p, event.data, sizeof(p) - sizeof(p.more));
		if (p.level >= LEVELS || p.check != ~(p.number ^ p.level << 32))
			wrong = "a torn event";
		else if (event.len != sizeof(p) - p.number % sizeof(p.more))
			wrong = "an event of the wrong length";
		else if (p.number != next[p.level]++)
			wrong = "an event is missing, or out of order";
	}
	for (int i = 0; i < LEVELS && !wrong; i++)
		if (next[i] <= oracle->returned[i])
			wrong = "a committed event is not there";
	kly_reader_fini(&reader);
	return wrong;
}

static const char *kill_once(unsigned timer_us, uint64_t after_us)
{
	struct scene s;

	scene_open(&s, KLY_POLICY_UNTIL_FULL);
	pid_t child = begin_child(&s, timer_us);
	while (!kly_load_acquire(&oracle->ready) && waitpid(child, NULL, WNOHANG) == 0)
		sched_yield();
	bed_sleep_us((unsigned)after_us);
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	const char *wrong = examine(&s);
	scene_close(&s);
	return wrong;
}

TEST(R48_a_writer_killed_at_any_moment_leaves_all_committed_events)
{
	uint64_t seed = bed_seed(), kills = bed_times(300, 10000);

	for (uint64_t i = 0; i < kills; i++) {
		const char *wrong = kill_once(i % 2 ? 100 : 0, bed_random(&seed) % 3000);

		if (wrong)
			TAP_FAIL("kill %llu: %s", (unsigned long long)i, wrong);
	}
}

static const char *kill_at(enum kly_point point, unsigned after)
{
	struct scene s;

	deadly = point;
	deadly_after = after;
	scene_open(&s, KLY_POLICY_UNTIL_FULL);
	pid_t child = begin_child(&s, 200);
	(void)waitpid(child, NULL, 0);
	const char *wrong = examine(&s);
	deadly = KLY_POINT_NONE;
	scene_close(&s);
	return wrong;
}

TEST(R48_a_writer_killed_at_each_test_point_leaves_all_committed_events)
{
	static const unsigned after[] = {0, 1, 5, 20};

	for (enum kly_point point = KLY_POINT_MARKED; point <= KLY_POINT_FLIPPED; point++) {
		for (size_t i = 0; i < KLY_COUNT(after); i++) {
			const char *wrong = kill_at(point, after[i]);

			if (wrong)
				TAP_FAIL("point %d, %u: %s", (int)point, after[i], wrong);
		}
	}
}

/* One stream, many children one after another, each killed with a chunk just claimed: their slots
 * and chunks must serve the next ones. */
TEST(N_17_chunks_claimed_by_killed_writers_come_back)
{
	struct kly_reader reader;
	struct kly_event event;
	struct scene s;
	uint64_t seen = 0, made = 0;

	deadly = KLY_POINT_CLAIMED;
	scene_open(&s, KLY_POLICY_LOOP);
	CHECK_INT(kly_reader_init(&reader, &s.stream, NULL), 0);
	for (uint64_t i = 0; i < bed_times(200, 1000); i++) {
		deadly_after = (unsigned)(i % 4);
		(void)waitpid(begin_child(&s, 0), NULL, 0);
		made += oracle->returned[0];
		oracle->returned[0] = 0;
		while (kly_reader_next(&reader, &event) == 1)
			seen += event.type == oracle->type;
		kly_store_relaxed(&s.stream.shared->state, kly_state_word(KLY_STATE_SUSPENDED, 1));
	}
	deadly = KLY_POINT_NONE;
	CHECK(seen >= made);
	CHECK(s.stream.shared->slots_used <= 16);
	CHECK(s.stream.shared->chunks_used <= s.stream.base_chunks);
	kly_reader_fini(&reader);
	scene_close(&s);
}

TEST_MAIN()
