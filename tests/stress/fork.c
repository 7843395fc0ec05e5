/* SPDX-License-Identifier: MIT */
/*
 * Forks, in any moment: while other threads record, inside a call, by fork(), _Fork() and clone().
 * A child must not write into its parent's streams, not even with the call that it was forked in,
 * and must be able to trace for itself at once (N-08, N-25, R33).
 */
#include "bed.h"
#include "tap.h"

#include "trace.h"

#include <pthread.h>
#include <sys/wait.h>

static uint32_t type;

static void record(uint64_t number)
{
	posix_trace_event(type, &number, sizeof(number));
}

static void open_bed(struct bed *b, enum kly_policy policy)
{
	const struct kly_stream_options o = {.min_bytes = 4 << 20, .policy = policy};

	(void)kly_process_open_type("fork.event", NULL, &type);
	if (bed_open(b, &o) < 0)
		abort();
	bed_start(b);
}

/* The child's life: its events go nowhere, then into a stream of its own. Exit status. */
static int trace_for_oneself(void)
{
	const struct kly_stream_options o = {.min_bytes = 65536};
	struct kly_event event;
	struct bed own;
	uint64_t seen = 0;

	for (uint64_t i = 0; i < 100; i++)
		record(UINT64_C(1) << 60 | i);
	if (bed_open(&own, &o) < 0)
		return 2;
	bed_start(&own);
	for (uint64_t i = 0; i < 100; i++)
		record(i);
	while (bed_next(&own, &event))
		seen += event.thread->pid == (uint32_t)getpid();
	return seen == 100 ? 0 : 3;
}

static int status_of(pid_t child)
{
	int status = -1;

	if (waitpid(child, &status, 0) != child)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Reads the parent's stream: numbers from 0 on, each once, and nothing of a child. */
static bool only_the_parents(struct bed *b, uint64_t made)
{
	struct kly_event event;
	uint64_t next = 0, number;

	while (bed_next(b, &event)) {
		memcpy(&number, event.data, sizeof(number));
		if (number != next++ || event.thread->pid != (uint32_t)getpid())
			return false;
	}
	return next == made;
}

typedef pid_t forker(void);

static pid_t by_clone(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

static bool children_are_apart(forker *make)
{
	struct bed b;

	open_bed(&b, KLY_POLICY_UNTIL_FULL);
	for (uint64_t i = 0; i < 50; i++) {
		record(i);
		pid_t child = make();
		if (child == 0)
			_exit(trace_for_oneself());
		if (status_of(child) != 0)
			return false;
	}
	bool right = only_the_parents(&b, 50);
	bed_close(&b);
	return right;
}

TEST(FORK_07_a_forked_child_traces_into_streams_of_its_own_only)
{
	CHECK(children_are_apart(fork));
}

TEST(N_08_a_child_made_without_atfork_handlers_does_not_write_into_its_parents_stream)
{
	CHECK(children_are_apart(_Fork));
	CHECK(children_are_apart(by_clone));
}

/* The call that is interrupted by a fork: the hook forks inside of it; parent and child both return
 * into it and finish it. */
static enum kly_point fork_at;
static pid_t forked;
static bool in_child;

static void fork_here(enum kly_point point)
{
	if (point != fork_at || forked)
		return;
	forked = -1; /* once */
	pid_t child = fork();
	in_child = child == 0;
	forked = child ? child : -1;
}

TEST(N_08_a_call_that_was_forked_inside_ends_in_both_processes)
{
	for (enum kly_point point = KLY_POINT_MARKED; point <= KLY_POINT_PUBLISHED; point++) {
		struct bed b;

		open_bed(&b, KLY_POLICY_UNTIL_FULL);
		record(0);
		fork_at = point;
		forked = 0;
		kly_point_hook = fork_here;
		record(1);
		kly_point_hook = NULL;
		if (in_child)
			_exit(trace_for_oneself());
		CHECK_INT(status_of(forked), 0);
		record(2);
		CHECK(only_the_parents(&b, 3));
		bed_close(&b);
	}
}

TEST(N_08_a_call_that_was_forked_inside_a_chunk_change_ends_in_both_processes)
{
	for (enum kly_point point = KLY_POINT_CLAIMED; point <= KLY_POINT_FLIPPED; point++) {
		struct bed b;
		uint64_t made = 0;

		open_bed(&b, KLY_POLICY_UNTIL_FULL);
		record(made++);
		fork_at = point;
		forked = 0;
		kly_point_hook = fork_here;
		while (!forked)
			record(made++);
		kly_point_hook = NULL;
		if (in_child)
			_exit(trace_for_oneself());
		CHECK_INT(status_of(forked), 0);
		record(made++);
		CHECK(only_the_parents(&b, made));
		bed_close(&b);
	}
}

static bool end;

static void *record_on(void *p)
{
	uint64_t i = 0;

	while (!kly_load_relaxed(&end))
		record(i++);
	return p;
}

TEST(ROB_02_forks_while_other_threads_record)
{
	pthread_t threads[3];
	struct bed b;

	open_bed(&b, KLY_POLICY_LOOP);
	kly_store_relaxed(&end, false);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, record_on, NULL);
	for (uint64_t i = 0; i < bed_times(200, 5000); i++) {
		pid_t child = fork();

		if (child == 0)
			_exit(trace_for_oneself());
		CHECK_INT(status_of(child), 0);
	}
	kly_store_relaxed(&end, true);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	bed_close(&b);
}

/* The first trace points of a child are several at once. */
static pthread_barrier_t together;

static void *record_together(void *p)
{
	(void)pthread_barrier_wait(&together);
	for (uint64_t i = 0; i < 100; i++)
		record(i);
	return p;
}

static int trace_in_threads(void)
{
	pthread_t threads[8];

	(void)pthread_barrier_init(&together, NULL, KLY_COUNT(threads));
	for (size_t i = 0; i < KLY_COUNT(threads); i++)
		if (pthread_create(&threads[i], NULL, record_together, NULL) != 0)
			return 4;
	for (size_t i = 0; i < KLY_COUNT(threads); i++)
		(void)pthread_join(threads[i], NULL);
	return trace_for_oneself();
}

TEST(N_25_a_child_whose_threads_record_at_once_becomes_one_process)
{
	struct bed b;

	open_bed(&b, KLY_POLICY_UNTIL_FULL);
	record(0);
	for (uint64_t i = 0; i < bed_times(100, 3000); i++) {
		pid_t child = fork();

		if (child == 0)
			_exit(trace_in_threads());
		CHECK_INT(status_of(child), 0);
	}
	CHECK(only_the_parents(&b, 1));
	bed_close(&b);
}

static volatile sig_atomic_t children, failures, wanted;

static void fork_in_handler(int signal)
{
	int saved = errno;

	(void)signal;
	if (children >= wanted)
		return; /* on a busy machine the next signal is there before the handler returns */
	pid_t child = fork();

	if (child == 0) {
		in_child = true; /* and back into whatever was interrupted */
	} else {
		children++;
		failures += status_of(child) != 0;
	}
	errno = saved;
}

TEST(R33_a_handler_that_forks_at_random_moments_of_a_recording_thread)
{
	struct sigaction action = {.sa_handler = fork_in_handler, .sa_flags = SA_RESTART}, before;
	uint64_t i = 0;
	struct bed b;

	open_bed(&b, KLY_POLICY_LOOP);
	wanted = (sig_atomic_t)bed_times(150, 3000);
	children = failures = 0;
	in_child = false;
	sigaction(SIGUSR2, &action, &before);
	timer_t timer = bed_timer_create(SIGUSR2, 700);
	while (children < wanted && !in_child)
		record(i++);
	if (in_child)
		_exit(trace_for_oneself());
	timer_delete(timer);
	sigaction(SIGUSR2, &before, NULL);
	CHECK_INT(failures, 0);
	bed_close(&b);
}

TEST_MAIN()
