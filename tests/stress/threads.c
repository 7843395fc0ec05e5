/* SPDX-License-Identifier: MIT */
/* Threads that come and go: by themselves, without a word, in handlers, and more than fit. */
#include "bed.h"
#include "tap.h"

#include "trace.h"

#include <pthread.h>

#define ALIVE 200

struct payload {
	uint64_t thread, number;
};

static uint32_t type;
static uint64_t per_thread;
static bool going_ends;

static void record(uint64_t thread, uint64_t number)
{
	const struct payload payload = {thread, number};

	posix_trace_event(type, &payload, sizeof(payload));
}

static void *record_some(void *p)
{
	for (uint64_t i = 0; i < per_thread; i++)
		record((uintptr_t)p, i);
	return NULL;
}

static void bed_open_or_die(struct bed *b, const struct kly_stream_options *o)
{
	if (!type)
		(void)kly_process_open_type("threads.event", NULL, &type);
	if (bed_open(b, o) < 0)
		abort();
	bed_start(b);
}

static uint64_t read_all(struct bed *b)
{
	struct kly_event event;
	uint64_t n = 0;

	while (bed_next(b, &event))
		n++;
	return n;
}

/* Runs `count` threads, at most `alive` at once, reading now and then. Events read. */
static uint64_t run_threads(struct bed *b, uint64_t count, unsigned alive, void *(*body)(void *))
{
	pthread_t threads[ALIVE];
	uint64_t seen = 0;

	for (uint64_t i = 0; i < count + alive; i++) {
		if (i >= alive)
			pthread_join(threads[i % alive], NULL);
		if (i < count && pthread_create(&threads[i % alive], NULL, body,
					 (void *)(uintptr_t)i) != 0)
			abort();
		if (i % 500 == 0)
			seen += read_all(b);
	}
	return seen + read_all(b);
}

static unsigned mappings(void)
{
	unsigned lines = 0;
	FILE *f = fopen("/proc/self/maps", "re");

	for (int c; f && (c = fgetc(f)) != EOF;)
		lines += c == '\n';
	if (f)
		(void)fclose(f);
	return lines;
}

TEST(R01_10000_threads_of_3_events_lose_none)
{
	const struct kly_stream_options o = {.min_bytes = 8 << 20, .policy = KLY_POLICY_UNTIL_FULL};
	struct bed b;

	bed_open_or_die(&b, &o);
	per_thread = 3;
	CHECK_INT(run_threads(&b, 10000, 50, record_some), 30000);
	CHECK_INT(bed_lost_all(&b), 0);
	bed_close(&b);
}

TEST(R02_20000_threads_leave_slots_and_chunks_for_the_next)
{
	const struct kly_stream_options o = {.min_bytes = 1 << 20, .policy = KLY_POLICY_UNTIL_FULL};
	uint64_t threads = bed_times(20000, 100000);
	struct bed b;

	bed_open_or_die(&b, &o);
	per_thread = 3;
	CHECK_INT(run_threads(&b, threads, ALIVE, record_some), 3 * threads);
	CHECK_INT(bed_lost_all(&b), 0);
	CHECK(b.stream->shared->slots_used <= ALIVE + 8);
	CHECK(b.stream->shared->chunks_used <= b.stream->base_chunks + 2 * (ALIVE + 8));
	CHECK_INT(bed_slots_taken(&b), 1); /* the control's */
	bed_close(&b);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they lose count of threads */
static void *record_and_vanish(void *p)
{
	(void)record_some(p);
	(void)syscall(SYS_exit, 0); /* no destructor runs */
	return NULL;
}

TEST(N_10_threads_that_end_without_a_word_are_found)
{
	const struct kly_stream_options o = {.min_bytes = 1 << 20, .slot_count = 64,
		.policy = KLY_POLICY_UNTIL_FULL};
	struct bed b;

	bed_open_or_die(&b, &o);
	per_thread = 10;
	CHECK_INT(run_threads(&b, 2000, 8, record_and_vanish), 20000);
	CHECK_INT(bed_lost_all(&b), 0);
	bed_close(&b);
}

static bool stayers_end;

static void *stay(void *ret_made)
{
	uint64_t made = 0;

	while (!kly_load_acquire(&stayers_end)) {
		record(1000000, made++);
		bed_sleep_us(100);
	}
	*(uint64_t *)ret_made = made;
	return NULL;
}

/* States outlive slots here: more threads than there are states, in a few slots. */
TEST(N_10_what_a_dead_thread_left_is_not_taken_from_its_next_owner)
{
	const struct kly_stream_options o = {.min_bytes = 1 << 20, .slot_count = 24,
		.policy = KLY_POLICY_UNTIL_FULL};
	uint64_t made[8], seen, expected = 0;
	pthread_t stayers[8];
	struct bed b;

	bed_open_or_die(&b, &o);
	per_thread = 2;
	seen = run_threads(&b, 100, 8, record_and_vanish);
	kly_store_release(&stayers_end, false);
	for (int i = 0; i < 8; i++)
		pthread_create(&stayers[i], NULL, stay, &made[i]);
	seen += run_threads(&b, KLY_THREADS_MAX + 500, 8, record_and_vanish);
	kly_store_release(&stayers_end, true);
	for (int i = 0; i < 8; i++) {
		pthread_join(stayers[i], NULL);
		expected += made[i];
	}
	seen += read_all(&b);
	CHECK_INT(seen, 2 * (100 + KLY_THREADS_MAX + 500) + expected);
	CHECK_INT(bed_lost_all(&b), 0);
	CHECK(bed_slots_taken(&b) <= 24);
	bed_close(&b);
}
#endif

/* Threads register, open names and end while the stream that they find is taken away. */
static void *open_and_record(void *p)
{
	char name[64];
	uint32_t id;

	(void)snprintf(name, sizeof(name), "threads.%u", (unsigned)((uintptr_t)p % 2000));
	(void)kly_process_open_type(name, NULL, &id);
	record(0, 0);
	return NULL;
}

static void *come_and_go(void *p)
{
	for (uintptr_t i = 0; !kly_load_acquire(&going_ends); i += 2) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, open_and_record, (void *)((uintptr_t)p + i)) != 0)
			abort();
		pthread_join(thread, NULL);
	}
	return NULL;
}

static void linger_when_leaving(enum kly_point point)
{
	for (int i = 0; point == KLY_POINT_LEAVING && i < 20; i++)
		sched_yield();
}

TEST(N_22_streams_come_and_go_under_threads_that_begin_and_end)
{
	const struct kly_stream_options o = {.min_bytes = 64 << 10, .slot_count = 64};
	uint64_t cycles = bed_times(1500, 10000);
	pthread_t threads[2];

	kly_point_hook = linger_when_leaving;
	kly_store_release(&going_ends, false);
	for (uintptr_t i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, come_and_go, (void *)i);
	for (uint64_t i = 0; i < cycles; i++) {
		struct bed b;

		bed_open_or_die(&b, &o);
		sched_yield();
		bed_close(&b);
	}
	kly_store_release(&going_ends, true);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	kly_point_hook = NULL;
	CHECK(true); /* nobody died of it */
}

static pthread_key_t keys[5];

static void record_in_destructor(void *p)
{
	record((uintptr_t)p, 1);
	if ((uintptr_t)p < 4)
		pthread_setspecific(keys[(uintptr_t)p], (void *)((uintptr_t)p + 1));
}

static void *leave_work_for_destructors(void *p)
{
	record(0, 0);
	pthread_setspecific(keys[0], (void *)(uintptr_t)1);
	return p;
}

TEST(N_10_events_in_rounds_of_destructors_are_kept_and_the_slot_comes_back)
{
	const struct kly_stream_options o = {.min_bytes = 1 << 20, .slot_count = 32,
		.policy = KLY_POLICY_UNTIL_FULL};
	struct bed b;

	for (int i = 0; i < 5; i++)
		pthread_key_create(&keys[i], record_in_destructor);
	bed_open_or_die(&b, &o);
	uint64_t seen = run_threads(&b, 500, 4, leave_work_for_destructors);
	CHECK(seen >= 500 * 2);
	CHECK_INT(bed_lost_all(&b), 0);
	bed_close(&b);
	for (int i = 0; i < 5; i++)
		pthread_key_delete(keys[i]);
}

static void exit_in_handler(int signal)
{
	(void)signal;
	record(0, 2);
	pthread_exit(NULL);
}

static void *wait_for_signal(void *p)
{
	for (uint64_t i = 0;; i++)
		record((uintptr_t)p, 0);
	return NULL;
}

TEST(N_10_a_thread_that_ends_in_a_handler_gives_its_slot_back)
{
	const struct kly_stream_options o = {.min_bytes = 1 << 20, .slot_count = 16};
	struct sigaction action = {.sa_handler = exit_in_handler}, before;
	struct bed b;

	bed_open_or_die(&b, &o);
	sigaction(SIGUSR1, &action, &before);
	for (uint64_t i = 0; i < bed_times(300, 5000); i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, wait_for_signal, NULL);
		while (bed_slots_taken(&b) < 2)
			sched_yield();
		pthread_kill(thread, SIGUSR1);
		pthread_join(thread, NULL);
	}
	sigaction(SIGUSR1, &before, NULL);
	CHECK_INT(bed_lost(&b, KLY_LOSS_SLOTS), 0);
	CHECK(bed_slots_taken(&b) <= 3);
	bed_close(&b);
}

static pthread_barrier_t all_have_recorded;

static void *record_and_stay(void *p)
{
	record((uintptr_t)p, 0);
	(void)pthread_barrier_wait(&all_have_recorded);
	(void)pthread_barrier_wait(&all_have_recorded);
	return NULL;
}

static void with_many_at_once(unsigned count, void (*look)(void *), void *argument)
{
	static pthread_t threads[2000];
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	pthread_barrier_init(&all_have_recorded, NULL, count + 1);
	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&threads[i], &small, record_and_stay, (void *)(uintptr_t)i) != 0)
			abort();
	(void)pthread_barrier_wait(&all_have_recorded);
	look(argument);
	(void)pthread_barrier_wait(&all_have_recorded);
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&all_have_recorded);
	pthread_attr_destroy(&small);
}

static void count_mappings(void *p)
{
	*(unsigned *)p = mappings();
}

TEST(N_09_2000_threads_that_record_have_3_mappings_more_at_most_than_2000_that_do_not)
{
	const struct kly_stream_options o = {.min_bytes = 1 << 20};
	unsigned without = 0, with = 0;
	struct bed b;

	if (BED_TSAN)
		SKIP("the sanitizer maps memory for each thread");
	(void)kly_process_open_type("threads.event", NULL, &type);
	with_many_at_once(2000, count_mappings, &without);
	CHECK_INT(bed_open(&b, &o), 0);
	bed_start(&b);
	with_many_at_once(2000, count_mappings, &with);
	CHECK_INT(bed_lost(&b, KLY_LOSS_SLOTS), 0);
	CHECK_INT(read_all(&b), 2000);
	CHECK(with <= without + 3);
	bed_close(&b);
}

static void nothing(void *p)
{
	(void)p;
}

TEST(R03_more_threads_than_slots_are_refused_one_by_one_and_counted)
{
	const struct kly_stream_options o = {.min_bytes = 1 << 20, .slot_count = 10};
	struct bed b;

	bed_open_or_die(&b, &o);
	with_many_at_once(25, nothing, NULL);
	CHECK_INT(read_all(&b), 9); /* the tenth slot is the control's */
	CHECK_INT(bed_lost(&b, KLY_LOSS_SLOTS), 16);
	with_many_at_once(9, nothing, NULL);
	CHECK_INT(read_all(&b), 9);
	bed_close(&b);
}

TEST_MAIN()
