/* SPDX-License-Identifier: MIT */
/*
 * The oracles notice: with a safeguard taken away (core/probe.h) the load fails that passes with it.
 * Test points make the dangerous moments longer. KLY_NO_HEAL and KLY_NO_REDO have their tests in
 * jump.c.
 */
#include "load.h"
#include "tap.h"

#include <pthread.h>

#define TRIES 40

/* A writer that took its time is held up before it can publish. */
static void linger_after_the_stamp(enum kly_point point)
{
	static __thread unsigned calls;

	if (point != KLY_POINT_STAMPED || ++calls % 16)
		return;
	for (int i = 0; i < 20; i++)
		(void)sched_yield();
}

/* The next stores of this thread, the lane's mark among them, stand in a queue behind others that
 * miss the cache. */
static void fill_the_store_buffer(void)
{
	enum { LINES = 1 << 19, STORES = 56 };
	static uint8_t *lines;
	static __thread uint64_t random = 88172645463325252;

	uint8_t *all = kly_load_acquire(&lines), *mine;

	if (!all) {
		mine = malloc(LINES * 64);
		memset(mine, 1, LINES * 64);
		if (kly_cas_acq_rel(&lines, &all, mine))
			all = mine;
		else
			free(mine);
	}
	uint64_t at = bed_random(&random);
	for (int i = 0; i < STORES; i++) {
		at = at * 6364136223846793005u + 1442695040888963407u;
		kly_store_relaxed(&all[(at >> 40) % LINES * 64], 0);
	}
}

static struct load small_load(void)
{
	return (struct load){
		.stream = {.min_bytes = 8 << 20, .policy = KLY_POLICY_UNTIL_FULL},
		.writers = 2,
		.events = 20000,
		.in_stream = 5000,
		.reader_writes = true,
	};
}

/* How many of the tries show events out of order; stops at the first. */
static uint64_t misplaced(const struct load *load, unsigned switches, unsigned tries)
{
	struct verdict v = {0};

	kly_switches = switches;
	for (unsigned i = 0; i < tries && !v.misplaced; i++)
		if (load_run(load, &v) < 0)
			break;
	kly_switches = 0;
	load_print(&v);
	return v.misplaced;
}

static void expect_to_need(unsigned safeguard)
{
	struct load load = small_load();

	if (safeguard == KLY_NO_MEMBARRIER) {
		load.before_event = fill_the_store_buffer;
		load.writers = 1;
		load.events = 100000;
	} else {
		kly_point_hook = linger_after_the_stamp;
	}
	/* A store buffer that is full at the right moment is a matter of luck: more tries. */
	unsigned tries = safeguard == KLY_NO_MEMBARRIER ? 20 * TRIES : TRIES;
	uint64_t without = misplaced(&load, safeguard, tries);
	uint64_t with = misplaced(&load, 0, 1);
	kly_point_hook = NULL;
	CHECK(without > 0);
	CHECK_INT(with, 0);
}

TEST(mark_that_is_not_kept_before_the_time_is_noticed)
{
	expect_to_need(KLY_NO_FENCE);
}

TEST(reader_without_membarrier_is_noticed)
{
	if (BED_TSAN)
		SKIP("the sanitizer's own atomics are barriers");
	expect_to_need(KLY_NO_MEMBARRIER);
}

TEST(time_taken_before_the_mark_is_noticed)
{
	expect_to_need(KLY_LOOK_BEFORE_MARK);
}

TEST(reader_that_does_not_wait_for_flights_is_noticed)
{
	expect_to_need(KLY_EARLY_RELEASE);
}

/* A thread records event 1 and stays; its chunk is its own and is not overwritten, while all that came
 * behind it is. */

KILROY_EVENT(numbered, "stress.numbered", (u64, number));

static pthread_barrier_t recorded;

static void *record_the_first(void *p)
{
	KILROY_RECORD(numbered, 1);
	(void)pthread_barrier_wait(&recorded);
	(void)pthread_barrier_wait(&recorded);
	return p;
}

static uint64_t gaps_in_the_tail(unsigned switches)
{
	const struct kly_stream_options options = {.min_bytes = 64 << 10, .max_data = 256};
	uint64_t gaps = 0, last = 0, end = 3 * options.min_bytes / kly_rec_size(8);
	struct kly_event e;
	pthread_t first;
	struct bed bed;

	if (bed_open(&bed, &options) < 0)
		return UINT64_MAX;
	bed_start(&bed);
	kly_switches = switches;
	(void)pthread_barrier_init(&recorded, NULL, 2);
	(void)pthread_create(&first, NULL, record_the_first, NULL);
	(void)pthread_barrier_wait(&recorded);
	for (uint64_t number = 2; number < end; number++)
		KILROY_RECORD(numbered, number);
	while (bed_next(&bed, &e)) {
		uint64_t number = *(const uint64_t *)e.data;

		gaps += last && number != last + 1;
		last = number;
	}
	kly_switches = 0;
	(void)pthread_barrier_wait(&recorded);
	(void)pthread_join(first, NULL);
	(void)pthread_barrier_destroy(&recorded);
	bed_close(&bed);
	return last + 1 == end ? gaps : UINT64_MAX;
}

TEST(loop_that_overwrites_without_a_horizon_is_noticed)
{
	CHECK_INT(gaps_in_the_tail(0), 0);
	CHECK_INT(gaps_in_the_tail(KLY_NO_HORIZON), 1);
}

TEST_MAIN()
