/* SPDX-License-Identifier: MIT */
/*
 * Threads that stand still inside a call: nobody waits for them longer than the reader's 10 ms, and
 * what they record later is there, once, marked late (N-05). "While it stands" is a state that the
 * tests hold, not a time.
 */
#include "bed.h"
#include "tap.h"

#include <pthread.h>
#include <semaphore.h>

#define STANDING_MAX 8

KILROY_EVENT(step, "stress.step", (u32, who), (u64, number));

static enum kly_point stop_at;
static __thread bool stops; /* this thread stands at stop_at, once */
static sem_t standing, go_on;

static void stand_still(enum kly_point point)
{
	if (point != stop_at || !stops)
		return;
	stops = false;
	(void)sem_post(&standing);
	while (sem_wait(&go_on) < 0)
		;
}

struct walker {
	pthread_t thread;
	uint32_t who;
	uint64_t before, after; /* events before and behind the one in which it stands */
};

static void *walk(void *argument)
{
	const struct walker *w = argument;
	uint64_t number = 0;

	for (; number < w->before; number++)
		KILROY_RECORD(step, w->who, number);
	stops = true;
	while (stops) {
		KILROY_RECORD(step, w->who, number);
		number++;
	}
	for (uint64_t i = 0; i < w->after; i++, number++)
		KILROY_RECORD(step, w->who, number);
	return NULL;
}

static void begin(struct bed *b, struct walker *walkers, unsigned count)
{
	const struct kly_stream_options o = {
		.min_bytes = 1 << 20, .max_data = 64, .policy = KLY_POLICY_UNTIL_FULL};

	if (bed_open(b, &o) < 0)
		abort();
	bed_start(b);
	(void)sem_init(&standing, 0, 0);
	(void)sem_init(&go_on, 0, 0);
	kly_point_hook = stand_still;
	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&walkers[i].thread, NULL, walk, &walkers[i]))
			abort();
	for (unsigned i = 0; i < count; i++)
		while (sem_wait(&standing) < 0)
			;
}

static void walk_on(struct walker *walkers, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		(void)sem_post(&go_on);
	for (unsigned i = 0; i < count; i++)
		(void)pthread_join(walkers[i].thread, NULL);
	kly_point_hook = NULL;
}

/* Reads what is there: numbers of each thread without gap, times that never decrease. */
struct path {
	uint64_t next[STANDING_MAX + 1];
	uint64_t seen, late, last_ticks, wrong;
};

static void read_on(struct bed *b, struct path *path)
{
	struct kly_event e;

	while (bed_next(b, &e)) {
		uint32_t who;
		uint64_t number;

		memcpy(&who, e.data, sizeof(who));
		memcpy(&number, (const uint8_t *)e.data + sizeof(who), sizeof(number));
		path->wrong += number != path->next[who] || e.ticks < path->last_ticks;
		path->next[who] = number + 1;
		path->last_ticks = e.ticks;
		path->late += (e.flags & KLY_EVENT_LATE) != 0;
		path->seen++;
	}
}

static void expect_the_others_to_go_on(enum kly_point point, unsigned count, uint64_t before,
	bool late)
{
	struct walker walkers[STANDING_MAX];
	struct path path = {.wrong = 0};
	struct bed b;

	for (unsigned i = 0; i < count; i++)
		walkers[i] = (struct walker){.who = i, .before = before, .after = 5};
	stop_at = point;
	begin(&b, walkers, count);
	for (uint64_t i = 0; i < 1000; i++)
		KILROY_RECORD(step, STANDING_MAX, i);
	read_on(&b, &path);
	uint64_t of_others = path.next[STANDING_MAX], late_before = path.late;
	walk_on(walkers, count);
	read_on(&b, &path);
	uint64_t lost = bed_lost_all(&b), standing_still = path.late;
	bed_close(&b);
	CHECK_INT(of_others, 1000);
	CHECK_INT(late_before, 0);
	CHECK_INT(standing_still, late ? count : 0);
	CHECK_INT(path.wrong, 0);
	CHECK_INT(lost, 0);
	for (unsigned i = 0; i < count; i++)
		CHECK(path.next[i] >= before + 6);
}

TEST(N_05_others_are_read_while_a_thread_stands_in_a_call)
{
	expect_the_others_to_go_on(KLY_POINT_MARKED, 1, 10, false);
	expect_the_others_to_go_on(KLY_POINT_STAMPED, 1, 10, true);
	expect_the_others_to_go_on(KLY_POINT_WRITTEN, 1, 10, true);
	expect_the_others_to_go_on(KLY_POINT_PUBLISHED, 1, 10, false);
}

TEST(N_05_others_are_read_while_a_thread_stands_in_its_first_call)
{
	expect_the_others_to_go_on(KLY_POINT_STAMPED, 1, 0, true);
	expect_the_others_to_go_on(KLY_POINT_CLAIMED, 1, 0, true);
	expect_the_others_to_go_on(KLY_POINT_FLIPPED, 1, 0, true);
}

TEST(N_05_others_are_read_while_a_thread_stands_in_a_change_of_its_chunk)
{
	for (enum kly_point p = KLY_POINT_CLAIMED; p <= KLY_POINT_FLIPPED; p++)
		expect_the_others_to_go_on(p, 1, 10, true);
}

TEST(N_05_several_threads_that_stand_are_late_once_each)
{
	expect_the_others_to_go_on(KLY_POINT_STAMPED, STANDING_MAX, 10, true);
	expect_the_others_to_go_on(KLY_POINT_CLAIMED, STANDING_MAX, 10, true);
}

/* The handler's event comes out although the call that it interrupted stands. */
static void record_in_handler(int signal)
{
	for (uint64_t i = 0; i < 100; i++)
		KILROY_RECORD(step, STANDING_MAX, i);
}

static void raise_at_stamp(enum kly_point point)
{
	if (point != KLY_POINT_STAMPED || !stops)
		return;
	stops = false;
	(void)raise(SIGUSR1);
	stand_still(KLY_POINT_STAMPED);
	(void)sem_post(&standing);
	while (sem_wait(&go_on) < 0)
		;
}

TEST(N_05_a_handler_is_read_while_the_call_that_it_interrupted_stands)
{
	const struct sigaction action = {.sa_handler = record_in_handler};
	struct walker walker = {.before = 10, .after = 5};
	struct path path = {.wrong = 0};
	struct bed b;
	const struct kly_stream_options o = {.min_bytes = 1 << 20, .policy = KLY_POLICY_UNTIL_FULL};

	(void)sigaction(SIGUSR1, &action, NULL);
	CHECK_INT(bed_open(&b, &o), 0);
	bed_start(&b);
	(void)sem_init(&standing, 0, 0);
	(void)sem_init(&go_on, 0, 0);
	kly_point_hook = raise_at_stamp;
	CHECK_INT(pthread_create(&walker.thread, NULL, walk, &walker), 0);
	while (sem_wait(&standing) < 0)
		;
	read_on(&b, &path);
	uint64_t while_it_stood = path.next[STANDING_MAX];
	walk_on(&walker, 1);
	read_on(&b, &path);
	bed_close(&b);
	CHECK_INT(while_it_stood, 100);
	CHECK_INT(path.late, 1);
	CHECK_INT(path.wrong, 0);
	CHECK_INT(path.seen, 100 + 10 + 1 + 5);
}

/* A stream can be stopped, cleared and closed while a thread stands in a call. */
TEST(N_22_a_stream_is_closed_while_a_thread_stands_in_a_call)
{
	for (enum kly_point p = KLY_POINT_MARKED; p <= KLY_POINT_FLIPPED; p++) {
		struct walker walkers[2] = {{.who = 0, .before = 10, .after = 5},
			{.who = 1, .before = 10, .after = 5}};
		struct bed b;

		stop_at = p;
		begin(&b, walkers, 2);
		bed_stop(&b);
		bed_close(&b);
		walk_on(walkers, 2);
	}
	CHECK(true); /* nobody died of it */
}

/* The event that stood over the stop and the restart is read late, or counted as lost. */
TEST(N_20_a_full_stream_goes_on_while_a_thread_stands_in_a_call)
{
	struct walker walker = {.before = 10, .after = 5};
	struct path path = {.wrong = 0};
	struct kly_event e;
	uint64_t starts = 0, stops_seen = 0;
	struct bed b;

	stop_at = KLY_POINT_STAMPED;
	begin(&b, &walker, 1);
	for (uint64_t i = 0; bed_lost(&b, KLY_LOSS_FULL) == 0; i++)
		KILROY_RECORD(step, STANDING_MAX, i);
	while (kly_reader_next(&b.reader, &e) == 1) {
		starts += e.type == KLY_TYPE_START;
		stops_seen += e.type == KLY_TYPE_STOP;
	}
	bool runs = kly_state_of(kly_load_acquire(&b.stream->shared->state)) == KLY_STATE_RUNNING;
	uint64_t lost = bed_lost(&b, KLY_LOSS_FULL);
	walk_on(&walker, 1);
	path.next[0] = 10;
	read_on(&b, &path);
	lost = bed_lost(&b, KLY_LOSS_FULL) - lost;
	bed_close(&b);
	CHECK_INT(stops_seen, 1);
	CHECK(starts >= 1);
	CHECK(runs);
	CHECK_INT(path.wrong, lost);
	CHECK_INT(path.seen + lost, 6);
	CHECK_INT(path.next[0], 16);
}

TEST_MAIN()
