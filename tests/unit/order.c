/* SPDX-License-Identifier: MIT */
#include "wire/order.h"

#include "runs.h"
#include "tap.h"

#include <errno.h>

#define USER KLY_TYPE_USER

static struct kly_run run_of(const struct run_builder *b)
{
	return (struct kly_run){
		.bytes = b->bytes, .size = b->size, .base = b->base, .loaded = true};
}

/* A source whose runs are builders; counts what the order asks of it. */
struct fake_run {
	struct kly_run run;
	struct run_builder built;
	uint64_t base; /* of the first record: put_time() changes built.base */
	int fails;     /* what load() returns */
	int loads, unloads;
};

static int fake_load(void *context, struct kly_run *run)
{
	struct fake_run *fake = (struct fake_run *)run;

	fake->loads++;
	run->bytes = fake->built.bytes;
	run->size = fake->built.size;
	run->base = fake->base;
	return fake->fails;
}

static void fake_unload(void *context, struct kly_run *run)
{
	((struct fake_run *)run)->unloads++;
}

static const struct kly_order_source fake_source = {.load = fake_load, .unload = fake_unload};

/* Events of a type at the times of a list that ends with 0. */
static void fake(struct fake_run *f, uint16_t type, const uint64_t *times)
{
	memset(f, 0, sizeof(*f));
	f->base = f->built.base = f->run.first = times[0];
	for (; *times; times++)
		put_event(&f->built, type, *times);
}
#define FAKE(f, type, ...) fake((f), (type), (const uint64_t[]){__VA_ARGS__, 0})

/* The times that come out, as text. */
static const char *times_until(struct kly_order *order, uint64_t until)
{
	static char text[4096];
	size_t n = 0;
	struct kly_event e;

	text[0] = '\0';
	while (kly_order_next(order, until, &e))
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%llu%s", n ? " " : "",
			(unsigned long long)e.ticks, e.flags & KLY_EVENT_LATE ? "L" : "");
	return text;
}

TEST(cursor_gives_every_field_of_a_record)
{
	struct run_builder b = {.base = 1000};
	put_record(&b, USER | KLY_REC_TRUNCATED, 7, "hello", 5);
	put_record(&b, 12, 9, NULL, 0);
	struct kly_run run = run_of(&b);
	run.thread.tid = 42;
	struct kly_event e;

	CHECK_INT(kly_run_next(&run, &e), 1);
	CHECK_INT(e.ticks, 1007);
	CHECK_INT(e.address, 0x401000);
	CHECK_INT(e.cpu, 3);
	CHECK_INT(e.type, USER);
	CHECK_INT(e.flags, KLY_EVENT_TRUNCATED);
	CHECK_INT(e.len, 5);
	CHECK(memcmp(e.data, "hello", 5) == 0);
	CHECK_INT(e.thread->tid, 42);
	CHECK_INT(kly_run_next(&run, &e), 1);
	CHECK_INT(e.ticks, 1009);
	CHECK_INT(e.len, 0);
	CHECK_INT(kly_run_next(&run, &e), 0);
	CHECK_INT(kly_run_next(&run, &e), 0);
	CHECK(!run.damaged);
}

TEST(time_note_sets_a_new_base)
{
	struct run_builder b = {.base = 10};
	put_event(&b, USER, 11);
	put_time(&b, UINT64_C(1) << 40);
	put_event(&b, USER, (UINT64_C(1) << 40) + 5);
	struct kly_run run = run_of(&b);
	run.base = 10;
	struct kly_event e;

	CHECK_INT(kly_run_next(&run, &e), 1);
	CHECK_INT(kly_run_next(&run, &e), 1);
	CHECK_INT(e.ticks, (1LL << 40) + 5);
}

TEST(thread_note_names_who_goes_on)
{
	struct run_builder b = {0};
	put_event(&b, USER, 1);
	put_thread(&b, 7, 8, "worker");
	put_event(&b, USER, 2);
	struct kly_run run = run_of(&b);
	struct kly_event e;

	CHECK_INT(kly_run_next(&run, &e), 1);
	CHECK_INT(e.thread->tid, 0);
	CHECK_INT(kly_run_next(&run, &e), 1);
	CHECK_INT(e.thread->pid, 7);
	CHECK_INT(e.thread->tid, 8);
	CHECK_STR(e.thread->name, "worker");
}

TEST(thread_name_without_nul_is_cut)
{
	struct run_builder b = {0};
	struct kly_wire_thread thread;
	memset(&thread, 'x', sizeof(thread));
	put_record(&b, KLY_REC_NOTE | KLY_NOTE_THREAD, 0, &thread, sizeof(thread));
	put_event(&b, USER, 2);
	struct kly_run run = run_of(&b);
	struct kly_event e;

	CHECK_INT(kly_run_next(&run, &e), 1);
	CHECK_STR(e.thread->name, "xxxxxxxxxxxxxxx");
}

TEST(note_of_an_unknown_kind_is_passed_over)
{
	struct run_builder b = {0};
	put_record(&b, KLY_REC_NOTE | 77, 0, "future", 6);
	put_event(&b, USER, 2);
	struct kly_run run = run_of(&b);
	struct kly_event e;

	CHECK_INT(kly_run_next(&run, &e), 1);
	CHECK_INT(e.ticks, 2);
}

TEST(what_is_no_record_ends_the_run_as_damaged)
{
	static const struct {
		uint16_t type, len;
	} bad[] = {
		{0, 0},
		{USER, 40}, /* one word more than there is */
		{USER, 65535},
		{USER | 0x4000, 0},
		{USER | 0x8000, 0},
		{KLY_REC_NOTE | KLY_NOTE_TIME, 7},
		{KLY_REC_NOTE | KLY_NOTE_THREAD, 31},
		{KLY_REC_NOTE | KLY_NOTE_THREAD, 0},
	};

	for (size_t i = 0; i < KLY_COUNT(bad); i++) {
		struct run_builder b = {0};
		put_event(&b, USER, 1);
		const uint32_t good = b.size;
		put_record(&b, bad[i].type, 0, (const uint8_t[65535]){0}, kly_min(bad[i].len, 32));
		memcpy(b.bytes + good + 2, &bad[i].len, 2);
		struct kly_run run = run_of(&b);
		struct kly_event e;

		CHECK_INT(kly_run_next(&run, &e), 1);
		CHECK_INT(kly_run_next(&run, &e), -EBADMSG);
		CHECK_INT(kly_run_next(&run, &e), -EBADMSG);
		CHECK(run.damaged);
		CHECK_INT(run.offset, good);
	}
}

TEST(run_cut_at_any_byte_gives_what_is_whole)
{
	struct run_builder b = {0};
	put_event(&b, USER, 1);
	put_thread(&b, 1, 2, "t");
	put_time(&b, 100);
	put_event(&b, USER, 101);
	put_record(&b, USER, 2, "abc", 3);

	for (uint32_t cut = 0; cut <= b.size; cut++) {
		uint8_t *copy = malloc(cut + 1); /* exact: the sanitizer sees a step beyond */
		memcpy(copy, b.bytes, cut);
		struct kly_run run = {.bytes = copy, .size = cut};
		struct kly_run_extent extent;
		kly_run_measure(&run, &extent);
		free(copy);

		const uint32_t events = (cut >= 24) + (cut >= 24 + 48 + 24 + 24) + (cut >= b.size);
		CHECK_INT(extent.events, events);
		CHECK_INT(extent.damaged, cut != extent.bytes);
		CHECK(extent.bytes <= cut);
	}
}

TEST(random_bytes_end_and_stay_inside)
{
	uint64_t random = 88172645463325252;
	volatile uint8_t touched; /* the sanitizer sees a payload that leaves the run */

	for (int round = 0; round < 20000; round++) {
		const uint32_t size = (uint32_t)(next_random(&random) % 400);
		uint64_t *bytes = malloc(size + 8);
		for (uint32_t i = 0; i < size; i += 8)
			bytes[i / 8] = next_random(&random);
		/* Make most headers plausible, or nothing but the first record is tried. */
		for (uint32_t i = 0; i + 8 <= size && round % 2; i += 8)
			bytes[i / 8] &= 0xffffffff003f33ff;
		uint8_t *exact = malloc(size + 1);
		memcpy(exact, bytes, size);
		struct kly_run run = {.bytes = exact, .size = size}, same = run;
		struct kly_run_extent extent;
		struct kly_event e;
		uint32_t events = 0;

		kly_run_measure(&run, &extent);
		while (kly_run_next(&same, &e) > 0) {
			events++;
			for (uint32_t i = 0; i < e.len; i++)
				touched = ((const uint8_t *)e.data)[i];
		}
		free(exact);
		free(bytes);
		(void)touched;
		CHECK_INT(extent.events, events);
		CHECK_INT(extent.bytes, same.offset);
		CHECK_INT(extent.damaged, same.damaged);
	}
}

TEST(measure_tells_what_holds_after_the_last_record)
{
	struct run_builder b = {.base = 5};
	put_event(&b, USER, 6);
	put_event(&b, USER, 9);
	put_time(&b, 1000);
	put_thread(&b, 3, 4, "n");
	struct kly_run run = run_of(&b);
	run.base = 5;
	struct kly_run_extent extent;
	kly_run_measure(&run, &extent);

	CHECK_INT(extent.bytes, b.size);
	CHECK_INT(extent.events, 2);
	CHECK_INT(extent.first, 6);
	CHECK_INT(extent.last, 9);
	CHECK_INT(extent.base, 1000);
	CHECK_INT(extent.thread.tid, 4);
	CHECK_INT(run.offset, 0);
}

TEST(measure_starts_at_the_offset_of_the_run)
{
	struct run_builder b = {0};
	put_event(&b, USER, 6);
	put_event(&b, USER, 9);
	struct kly_run run = run_of(&b);
	run.offset = 24;
	struct kly_run_extent extent;
	kly_run_measure(&run, &extent);

	CHECK_INT(extent.bytes, 24);
	CHECK_INT(extent.events, 1);
	CHECK_INT(extent.first, 9);
}

TEST(runs_come_out_as_one_sequence)
{
	static struct fake_run f[3];
	FAKE(&f[0], USER, 1, 4, 5, 20);
	FAKE(&f[1], USER, 2, 3, 21);
	FAKE(&f[2], USER, 6, 7, 8, 22);
	struct kly_order order;
	kly_order_init(&order, &fake_source, NULL);
	for (int i = 2; i >= 0; i--)
		CHECK_INT(kly_order_add(&order, &f[i].run), 0);

	CHECK_STR(times_until(&order, UINT64_MAX), "1 2 3 4 5 6 7 8 20 21 22");
	CHECK_INT(order.given, 11);
	CHECK_INT(order.late, 0);
	for (int i = 0; i < 3; i++) {
		CHECK_INT(f[i].loads, 1);
		CHECK_INT(f[i].unloads, 1);
	}
	kly_order_fini(&order);
}

TEST(many_random_runs_come_out_sorted)
{
	enum {
		RUNS = 300,
		EVENTS = 100
	};
	static struct fake_run f[RUNS];
	uint64_t random = 1234567;
	struct kly_order order;
	kly_order_init(&order, &fake_source, NULL);

	for (int i = 0; i < RUNS; i++) {
		uint64_t t = 1 + next_random(&random) % 100000;
		memset(&f[i], 0, sizeof(f[i]));
		f[i].base = f[i].built.base = f[i].run.first = t;
		for (int e = 0; e < EVENTS; e++, t += next_random(&random) % 50)
			put_event(&f[i].built, USER, t);
		CHECK_INT(kly_order_add(&order, &f[i].run), 0);
	}
	struct kly_event e;
	uint64_t last = 0, count = 0;
	for (; kly_order_next(&order, UINT64_MAX, &e); count++) {
		CHECK(e.ticks >= last);
		CHECK(memcmp(e.data, &e.ticks, 8) == 0);
		last = e.ticks;
	}
	CHECK_INT(count, RUNS * EVENTS);
	CHECK_INT(order.late, 0);
	kly_order_fini(&order);
}

TEST(run_is_loaded_when_its_time_comes)
{
	static struct fake_run f[2];
	FAKE(&f[0], USER, 1, 2, 3);
	FAKE(&f[1], USER, 10, 11);
	struct kly_order order;
	kly_order_init(&order, &fake_source, NULL);
	kly_order_add(&order, &f[0].run);
	kly_order_add(&order, &f[1].run);

	CHECK_STR(times_until(&order, 9), "1 2 3");
	CHECK_INT(f[0].unloads, 1);
	CHECK_INT(f[1].loads, 0);
	CHECK_STR(times_until(&order, 10), "10");
	CHECK_STR(times_until(&order, 10), "");
	CHECK_STR(times_until(&order, 11), "11");
	kly_order_fini(&order);
}

TEST(run_may_be_added_in_the_middle)
{
	static struct fake_run f[2];
	FAKE(&f[0], USER, 1, 5, 9);
	FAKE(&f[1], USER, 3, 7);
	struct kly_order order;
	kly_order_init(&order, &fake_source, NULL);
	kly_order_add(&order, &f[0].run);

	CHECK_STR(times_until(&order, 1), "1");
	kly_order_add(&order, &f[1].run);
	CHECK_STR(times_until(&order, UINT64_MAX), "3 5 7 9");
	kly_order_fini(&order);
}

TEST(run_added_loaded_is_not_loaded_again)
{
	static struct fake_run f;
	FAKE(&f, USER, 1, 2);
	fake_load(NULL, &f.run);
	f.run.loaded = true;
	struct kly_order order;
	kly_order_init(&order, &fake_source, NULL);
	kly_order_add(&order, &f.run);

	CHECK_STR(times_until(&order, UINT64_MAX), "1 2");
	CHECK_INT(f.loads, 1);
	CHECK_INT(f.unloads, 1);
	kly_order_fini(&order);
}

TEST(first_that_is_too_early_does_not_matter)
{
	static struct fake_run f[2];
	FAKE(&f[0], USER, 10, 12);
	FAKE(&f[1], USER, 5, 11);
	f[0].run.first = 1;
	struct kly_order order;
	kly_order_init(&order, &fake_source, NULL);
	kly_order_add(&order, &f[0].run);
	kly_order_add(&order, &f[1].run);

	CHECK_STR(times_until(&order, UINT64_MAX), "5 10 11 12");
	kly_order_fini(&order);
}

TEST(late_event_is_raised_to_the_time_reached)
{
	static struct fake_run f[2];
	FAKE(&f[0], USER, 10, 30);
	FAKE(&f[1], USER, 4, 5, 20);
	struct kly_order order;
	kly_order_init(&order, &fake_source, NULL);
	kly_order_add(&order, &f[0].run);

	CHECK_STR(times_until(&order, 15), "10");
	kly_order_add(&order, &f[1].run);
	CHECK_STR(times_until(&order, UINT64_MAX), "10L 10L 20 30");
	CHECK_INT(order.late, 2);
	CHECK_INT(order.given, 5);
	kly_order_fini(&order);
}

TEST(unsorted_run_comes_out_in_order_all_the_same)
{
	static struct fake_run f;
	FAKE(&f, USER, 10);
	put_time(&f.built, 3);
	put_event(&f.built, USER, 4);
	put_time(&f.built, UINT64_MAX);
	put_record(&f.built, USER, 1, NULL, 0); /* turns round */
	put_record(&f.built, USER, 0, NULL, 0);
	struct kly_order order;
	kly_order_init(&order, &fake_source, NULL);
	kly_order_add(&order, &f.run);

	CHECK_STR(times_until(&order, UINT64_MAX), "10 10L 10L 18446744073709551615");
	kly_order_fini(&order);
}

TEST(what_lies_below_the_horizon_is_dropped)
{
	static struct fake_run f[2];
	FAKE(&f[0], USER, 1, 5, 9);
	FAKE(&f[1], USER, 2, 6, 10);
	struct kly_order order;
	kly_order_init(&order, &fake_source, NULL);
	kly_order_add(&order, &f[0].run);
	kly_order_add(&order, &f[1].run);

	CHECK_STR(times_until(&order, 1), "1");
	order.horizon = 6;
	CHECK_STR(times_until(&order, UINT64_MAX), "9 10");
	CHECK_INT(order.dropped_old, 3);
	CHECK_INT(f[0].run.given, 3);
	kly_order_fini(&order);
}

TEST(user_events_between_stop_and_start_are_dropped)
{
	static struct fake_run control, user, system;
	FAKE(&control, KLY_TYPE_STOP, 10);
	put_event(&control.built, KLY_TYPE_START, 20);
	FAKE(&user, KLY_TYPE_UNNAMED, 9, 11, 19, 21);
	FAKE(&system, 30, 12);
	struct kly_order order;
	kly_order_init(&order, &fake_source, NULL);
	kly_order_add(&order, &control.run);
	kly_order_add(&order, &user.run);
	kly_order_add(&order, &system.run);

	CHECK_STR(times_until(&order, UINT64_MAX), "9 10 12 20 21");
	CHECK_INT(order.dropped_stopped, 2);
	CHECK(!order.suspended);
	kly_order_fini(&order);
}

TEST(an_event_from_between_stop_and_start_is_dropped_even_if_it_comes_behind_the_start)
{
	static struct fake_run control, late;
	FAKE(&control, KLY_TYPE_STOP, 10);
	put_event(&control.built, KLY_TYPE_START, 20);
	FAKE(&late, KLY_TYPE_UNNAMED, 9, 15, 25);
	struct kly_order order;
	kly_order_init(&order, &fake_source, NULL);
	kly_order_add(&order, &control.run);

	CHECK_STR(times_until(&order, 20), "10 20");
	kly_order_add(&order, &late.run);
	CHECK_STR(times_until(&order, UINT64_MAX), "20L 25"); /* 9 was recorded, and is late */
	CHECK_INT(order.dropped_stopped, 1);
	kly_order_fini(&order);
}

TEST(order_may_begin_suspended)
{
	static struct fake_run f;
	FAKE(&f, USER, 1, 2);
	put_event(&f.built, KLY_TYPE_START, 3);
	put_event(&f.built, USER, 4);
	struct kly_order order;
	kly_order_init(&order, &fake_source, NULL);
	order.suspended = true;
	kly_order_add(&order, &f.run);

	CHECK_STR(times_until(&order, UINT64_MAX), "3 4");
	kly_order_fini(&order);
}

TEST(stop_below_the_horizon_stops_nothing)
{
	static struct fake_run f;
	FAKE(&f, KLY_TYPE_STOP, 5);
	put_event(&f.built, USER, 11);
	struct kly_order order;
	kly_order_init(&order, &fake_source, NULL);
	order.horizon = 10;
	kly_order_add(&order, &f.run);

	CHECK_STR(times_until(&order, UINT64_MAX), "11");
	CHECK_INT(order.dropped_old, 1);
	kly_order_fini(&order);
}

TEST(damaged_run_is_given_up_to_the_damage_and_counted)
{
	static struct fake_run f[2];
	FAKE(&f[0], USER, 1, 3);
	put_record(&f[0].built, 0, 0, NULL, 0);
	put_event(&f[0].built, USER, 4);
	FAKE(&f[1], USER, 2, 5);
	struct kly_order order;
	kly_order_init(&order, &fake_source, NULL);
	kly_order_add(&order, &f[0].run);
	kly_order_add(&order, &f[1].run);

	CHECK_STR(times_until(&order, UINT64_MAX), "1 2 3 5");
	CHECK_INT(order.damaged, 1);
	CHECK(f[0].run.damaged);
	CHECK_INT(f[0].unloads, 1);
	kly_order_fini(&order);
}

TEST(run_that_cannot_be_loaded_is_dropped_and_counted)
{
	static struct fake_run f[2];
	FAKE(&f[0], USER, 1, 3);
	f[0].fails = -EIO;
	FAKE(&f[1], USER, 2, 5);
	struct kly_order order;
	kly_order_init(&order, &fake_source, NULL);
	kly_order_add(&order, &f[0].run);
	kly_order_add(&order, &f[1].run);

	CHECK_STR(times_until(&order, UINT64_MAX), "2 5");
	CHECK_INT(order.damaged, 1);
	CHECK_INT(f[0].unloads, 1);
	kly_order_fini(&order);
}

TEST(damage_ends_the_suspended_state)
{
	static struct fake_run f[2];
	FAKE(&f[0], KLY_TYPE_STOP, 1);
	FAKE(&f[1], USER, 2, 3);
	f[1].fails = -EBADMSG;
	static struct fake_run after;
	FAKE(&after, USER, 4);
	struct kly_order order;
	kly_order_init(&order, &fake_source, NULL);
	kly_order_add(&order, &f[0].run);
	kly_order_add(&order, &f[1].run);
	kly_order_add(&order, &after.run);

	CHECK_STR(times_until(&order, UINT64_MAX), "1 4");
	kly_order_fini(&order);
}

TEST(fini_unloads_what_is_left_once)
{
	static struct fake_run f[20];
	struct kly_order order;
	kly_order_init(&order, &fake_source, NULL);
	for (uint64_t i = 0; i < KLY_COUNT(f); i++) {
		FAKE(&f[i], USER, i + 1, i + 2);
		CHECK_INT(kly_order_add(&order, &f[i].run), 0);
	}
	CHECK_STR(times_until(&order, 2), "1 2 2");
	kly_order_fini(&order);
	for (size_t i = 0; i < KLY_COUNT(f); i++)
		CHECK_INT(f[i].unloads, 1);
}

TEST_MAIN()
