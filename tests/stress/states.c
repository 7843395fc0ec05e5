/* SPDX-License-Identifier: MIT */
/* Starting, stopping, filling, overwriting and closing streams while writers are busy. */
#include "bed.h"
#include "tap.h"

#include "trace.h"

#include <pthread.h>

#define WRITERS 4

struct payload {
	uint32_t writer, unused;
	uint64_t number;
};

static struct crew {
	pthread_t threads[WRITERS];
	bool end;
	uint32_t type;
	uint64_t made[WRITERS]; /* calls that have returned */
	unsigned slow;          /* the first writer pauses so many microseconds after each event */
} crew;

static uint32_t open_type(const char *name)
{
	uint32_t type = 0;

	(void)kly_process_open_type(name, NULL, &type);
	return type;
}

static void *write_on(void *p)
{
	uint32_t me = (uint32_t)(uintptr_t)p;
	struct payload payload = {.writer = me};

	while (!kly_load_relaxed(&crew.end)) {
		payload.number = crew.made[me] + 1;
		posix_trace_event(crew.type, &payload, sizeof(payload));
		kly_store_release(&crew.made[me], payload.number);
		if (!me && crew.slow)
			bed_sleep_us(crew.slow);
	}
	return NULL;
}

static void crew_begin(const char *type, unsigned slow)
{
	crew = (struct crew){.type = open_type(type), .slow = slow};
	for (uintptr_t i = 0; i < WRITERS; i++)
		pthread_create(&crew.threads[i], NULL, write_on, (void *)i);
}

static void crew_end(void)
{
	kly_store_relaxed(&crew.end, true);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(crew.threads[i], NULL);
}

TEST(N_19_user_events_lie_only_between_START_and_STOP)
{
	/* Not LOOP, which may overwrite the START. If it fills up, there are pairs more. */
	const struct kly_stream_options o = {.min_bytes = 4 << 20, .policy = KLY_POLICY_UNTIL_FULL};
	uint64_t pairs = bed_times(1000, 10000), starts = 0, stops = 0, outside = 0;
	struct kly_event event;
	bool running = false;
	struct bed b;

	CHECK_INT(bed_open(&b, &o), 0);
	crew_begin("states.exact", 0);
	for (uint64_t i = 0; i < pairs; i++) {
		bed_start(&b);
		bed_stop(&b);
		while (kly_reader_next(&b.reader, &event) == 1) {
			if (event.type == KLY_TYPE_START)
				running = true, starts++;
			else if (event.type == KLY_TYPE_STOP)
				running = false, stops++;
			else if (!running)
				outside++;
		}
	}
	crew_end();
	CHECK_INT(outside, 0);
	CHECK(starts >= pairs);
	CHECK_INT(stops, starts);
	bed_close(&b);
}

TEST(START_05_what_is_recorded_while_running_is_read_and_nothing_else)
{
	const struct kly_stream_options o = {.min_bytes = 1 << 20};
	uint32_t type = open_type("states.alone");
	struct kly_event event;
	struct bed b;

	CHECK_INT(bed_open(&b, &o), 0);
	for (uint64_t i = 0; i < 300; i++) {
		posix_trace_event(type, &i, sizeof(i));
		bed_start(&b);
		posix_trace_event(type, &i, sizeof(i));
		bed_stop(&b);
		posix_trace_event(type, &i, sizeof(i));
	}
	for (uint64_t i = 0; i < 300; i++) {
		uint64_t number;

		CHECK(bed_next(&b, &event));
		memcpy(&number, event.data, sizeof(number));
		CHECK_INT(number, i);
	}
	CHECK(!bed_next(&b, &event));
	CHECK_INT(bed_lost_all(&b), 0);
	bed_close(&b);
}

TEST(N_20_a_stream_that_fills_and_empties_repeats_and_reorders_nothing)
{
	const struct kly_stream_options o = {
		.min_bytes = 4096, .max_data = 64, .policy = KLY_POLICY_UNTIL_FULL};
	uint64_t restarts = 0, wanted = bed_times(300, 10000), last[WRITERS] = {0}, wrong = 0;
	struct kly_event event;
	struct payload payload;
	struct bed b;

	CHECK_INT(bed_open(&b, &o), 0);
	crew_begin("states.refill", 0);
	bed_start(&b);
	while (restarts < wanted) {
		if (kly_reader_next(&b.reader, &event) != 1)
			continue;
		if (event.type == KLY_TYPE_START)
			restarts++;
		if (event.type != crew.type)
			continue;
		memcpy(&payload, event.data, sizeof(payload));
		wrong += payload.number <= last[payload.writer];
		last[payload.writer] = payload.number;
	}
	crew_end();
	CHECK_INT(wrong, 0);
	bed_close(&b);
}

/* LOOP: reads all there is, and checks that the tail of every writer has no gap. */
static bool tail_is_whole(struct bed *b, uint64_t *ret_bytes)
{
	uint64_t last[WRITERS] = {0};
	struct kly_event event;
	struct payload payload;

	*ret_bytes = 0;
	while (bed_next(b, &event)) {
		memcpy(&payload, event.data, sizeof(payload));
		if (last[payload.writer] && payload.number != last[payload.writer] + 1)
			return false;
		last[payload.writer] = payload.number;
		*ret_bytes += kly_rec_size(event.len);
	}
	/* Of a writer that had no processor at the end, all may be gone; not of all of them. */
	unsigned to_the_end = 0;
	for (int i = 0; i < WRITERS; i++)
		to_the_end += last[i] == crew.made[i];
	return to_the_end > 0;
}

TEST(LOOP_04_what_remains_is_the_newest_without_a_gap)
{
	const struct kly_stream_options o = {.min_bytes = 256 << 10, .max_data = 64};
	uint64_t bytes;
	struct bed b;

	CHECK_INT(bed_open(&b, &o), 0);
	bed_start(&b);
	crew_begin("states.tail", 0);
	while (kly_load_acquire(&crew.made[0]) < 50000)
		bed_sleep_us(1000);
	crew_end();
	bed_stop(&b);
	CHECK(tail_is_whole(&b, &bytes));
	CHECK(bytes >= o.min_bytes - 2 * b.stream->chunk_bytes);
	bed_close(&b);
}

TEST(N_16_a_slow_thread_does_not_shorten_the_tail_of_the_others)
{
	const struct kly_stream_options o = {.min_bytes = 256 << 10, .max_data = 64};
	uint64_t bytes;
	struct bed b;

	CHECK_INT(bed_open(&b, &o), 0);
	bed_start(&b);
	crew_begin("states.slow", 50);
	while (kly_load_acquire(&crew.made[1]) < 200000)
		bed_sleep_us(1000);
	crew_end();
	bed_stop(&b);
	CHECK(tail_is_whole(&b, &bytes));
	CHECK(bytes >= o.min_bytes - 2 * b.stream->chunk_bytes);
	bed_close(&b);
}

TEST(R51_after_a_hundred_laps_every_event_has_name_thread_and_time)
{
	const struct kly_stream_options o = {.min_bytes = 64 << 10, .max_data = 64};
	uint32_t type = open_type("states.laps");
	struct kly_event event;
	uint64_t seen = 0;
	const char *name = NULL;
	struct bed b;

	CHECK_INT(bed_open(&b, &o), 0);
	bed_start(&b);
	for (uint64_t i = 0; i < 100 * o.min_bytes / kly_rec_size(8); i++)
		posix_trace_event(type, &i, sizeof(i));
	while (bed_next(&b, &event)) {
		CHECK(kly_registry_get(&kly_process.registry, event.type, &name, NULL));
		CHECK_STR(name, "states.laps");
		CHECK_INT(event.thread->pid, getpid());
		CHECK_INT(event.thread->tid, getpid());
		CHECK(event.ticks > b.stream->head->created.ticks);
		seen++;
	}
	CHECK(seen * kly_rec_size(8) >= o.min_bytes - 2 * b.stream->chunk_bytes);
	/* The START was overwritten, too. */
	CHECK_INT(seen + bed_lost(&b, KLY_LOSS_OVERWRITTEN),
		1 + 100 * o.min_bytes / kly_rec_size(8));
	bed_close(&b);
}

TEST(MULTI_01_streams_of_a_process_get_every_event_with_one_time)
{
	const struct kly_stream_options o = {.min_bytes = 256 << 10};
	uint32_t type = open_type("states.multi");
	struct kly_event one, other;
	struct bed b[8];

	for (int i = 0; i < 8; i++) {
		CHECK_INT(bed_open(&b[i], &o), 0);
		bed_start(&b[i]);
	}
	for (uint64_t n = 0; n < 1000; n++)
		posix_trace_event(type, &n, sizeof(n));
	for (uint64_t n = 0; n < 1000; n++) {
		CHECK(bed_next(&b[0], &one));
		for (int i = 1; i < 8; i++) {
			CHECK(bed_next(&b[i], &other));
			CHECK_INT(other.ticks, one.ticks);
			CHECK(memcmp(other.data, &n, sizeof(n)) == 0);
		}
	}
	for (int i = 0; i < 8; i++)
		bed_close(&b[i]);
}

TEST(CREATE_10_a_process_can_have_62_streams_and_no_more)
{
	const struct kly_stream_options o = {.min_bytes = 4096, .max_data = 64, .slot_count = 16};
	struct bed b[KLY_STREAMS_MAX], more;
	uint32_t type = open_type("states.many");
	struct kly_event event;

	for (uint32_t i = 0; i < KLY_STREAMS_MAX; i++) {
		CHECK_INT(bed_open(&b[i], &o), 0);
		bed_start(&b[i]);
	}
	CHECK_INT(bed_open(&more, &o), -EAGAIN);
	posix_trace_event(type, "", 1);
	for (uint32_t i = 0; i < KLY_STREAMS_MAX; i++) {
		CHECK(bed_next(&b[i], &event));
		bed_close(&b[i]);
	}
	CHECK_INT(bed_open(&more, &o), 0);
	bed_close(&more);
}

TEST(a_type_that_fits_no_pattern_is_not_recorded)
{
	static char keep[KLY_KEEP_BYTES] = "keep.*\0also.?\0";
	const struct kly_stream_options o = {.min_bytes = 65536, .keep = keep};
	uint32_t before = open_type("keep.before"), no = open_type("other");
	struct kly_event event;
	struct bed b;

	CHECK_INT(bed_open(&b, &o), 0);
	bed_start(&b);
	uint32_t after = open_type("also.x"), neither = open_type("also.xy");
	posix_trace_event(no, "", 0);
	posix_trace_event(before, "", 0);
	posix_trace_event(neither, "", 0);
	posix_trace_event(after, "", 0);
	CHECK(bed_next(&b, &event));
	CHECK_INT(event.type, before);
	CHECK(bed_next(&b, &event));
	CHECK_INT(event.type, after);
	CHECK(!bed_next(&b, &event));
	CHECK_INT(kly_process.words[no], KLY_WORD_KNOWN);
	bed_close(&b);
}

static void *wait_for_event(void *p)
{
	struct bed *b = p;
	struct kly_event event;
	int r;

	do
		r = kly_reader_wait(&b->reader, NULL, &event);
	while (r == 1 && event.type < KLY_TYPE_UNNAMED);
	return (void *)(uintptr_t)(r == 1);
}

TEST(N_12_a_waiting_reader_is_woken_by_an_event)
{
	const struct kly_stream_options o = {.min_bytes = 65536};
	uint32_t type = open_type("states.wake");
	pthread_t reader;
	void *woken;
	struct bed b;

	CHECK_INT(bed_open(&b, &o), 0);
	bed_start(&b);
	for (int i = 0; i < 100; i++) {
		pthread_create(&reader, NULL, wait_for_event, &b);
		if (i % 2)
			while (!kly_load_acquire(&b.stream->shared->waiters))
				sched_yield();
		posix_trace_event(type, "", 0);
		pthread_join(reader, &woken);
		CHECK(woken);
	}
	bed_close(&b);
}

#ifdef __SANITIZE_ADDRESS__
#define SLACK_KIB (400 << 10) /* it keeps what was freed, up to 256 MiB */
#else
#define SLACK_KIB (16 << 10)
#endif

static uint64_t resident_kib(void)
{
	unsigned long size, resident;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f || fscanf(f, "%lu %lu", &size, &resident) != 2)
		abort();
	(void)fclose(f);
	return resident * 4;
}

TEST(N_22_streams_come_and_go_under_busy_writers_and_leave_no_memory)
{
	const struct kly_stream_options o = {.min_bytes = 65536, .slot_count = 64};
	uint64_t cycles = bed_times(1000, 10000);
	struct bed b;

	crew_begin("states.cycle", 0);
	for (uint64_t i = 0; i < 50; i++) {
		CHECK_INT(bed_open(&b, &o), 0);
		bed_start(&b);
		bed_close(&b);
	}
	uint64_t before = resident_kib();
	for (uint64_t i = 0; i < cycles; i++) {
		CHECK_INT(bed_open(&b, &o), 0);
		bed_start(&b);
		if (i % 3)
			bed_stop(&b);
		bed_close(&b);
	}
	crew_end();
	CHECK(resident_kib() < before + SLACK_KIB); /* a cycle that kept its chunks would take 640 KiB */
}

TEST(N_03_a_stream_that_is_scribbled_over_harms_nobody)
{
	const struct kly_stream_options o = {.min_bytes = 256 << 10, .slot_count = 64};
	uint64_t seed = bed_seed(), rounds = bed_times(20, 1000);
	struct kly_event event;

	if (BED_TSAN)
		SKIP("scribbling is a race by design");
	crew_begin("states.scribble", 0);
	for (uint64_t i = 0; i < rounds; i++) {
		struct bed b;

		CHECK_INT(bed_open(&b, &o), 0);
		bed_start(&b);
		size_t front = (size_t)((uint8_t *)b.stream->chunks - (uint8_t *)b.stream->head);
		size_t bytes = front + 40 * b.stream->chunk_bytes;
		uint8_t *all = (uint8_t *)(uintptr_t)b.stream->head;

		for (int n = 0; n < 20000; n++) {
			uint64_t r = bed_random(&seed);
			size_t at = (r >> 16) % (n % 4 ? front : bytes);

			all[at] = (uint8_t)r;
			if (n % 100 == 0)
				(void)kly_reader_next(&b.reader, &event);
		}
		bed_close(&b);
	}
	crew_end();
	CHECK(crew.made[0] > 0);
}

TEST_MAIN()
