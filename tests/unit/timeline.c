/* SPDX-License-Identifier: MIT */
#include "base/timeline.h"

#include "base/util.h"

#include "runs.h"
#include "tap.h"

#include <errno.h>

#define SECOND UINT64_C(1000000000)
#define GHZ UINT64_C(1000000000)

/* Realtime runs 1000 s ahead of monotonic, boottime 10 s. */
static struct kly_instant at(uint64_t ticks, uint64_t monotonic_ns)
{
	return (struct kly_instant){.ticks = ticks,
		.monotonic_ns = monotonic_ns,
		.boottime_ns = monotonic_ns + 10 * SECOND,
		.realtime_ns = monotonic_ns + 1000 * SECOND};
}

static int add(struct kly_timeline *t, uint64_t ticks, uint64_t monotonic_ns)
{
	const struct kly_instant instant = at(ticks, monotonic_ns);

	return kly_timeline_add(t, &instant);
}

TEST(without_snapshots_all_times_are_0)
{
	struct kly_timeline t;
	kly_timeline_init(&t, 3 * GHZ);
	CHECK_INT(kly_timeline_monotonic(&t, 12345), 0);
	CHECK_INT(kly_timeline_realtime(&t, 12345), 0);
	kly_timeline_fini(&t);
}

TEST(one_snapshot_goes_on_with_the_nominal_frequency)
{
	struct kly_timeline t;
	kly_timeline_init(&t, 3 * GHZ);
	CHECK_INT(add(&t, 9 * GHZ, 50 * SECOND), 0);
	CHECK_INT(kly_timeline_monotonic(&t, 9 * GHZ), 50 * SECOND);
	CHECK_INT(kly_timeline_monotonic(&t, 12 * GHZ), 51 * SECOND);
	CHECK_INT(kly_timeline_monotonic(&t, 6 * GHZ), 49 * SECOND);
	CHECK_INT(kly_timeline_realtime(&t, 12 * GHZ), 1051 * SECOND);
	CHECK_INT(kly_timeline_boottime(&t, 12 * GHZ), 61 * SECOND);
	kly_timeline_fini(&t);
}

TEST(unknown_frequency_is_a_tick_a_nanosecond)
{
	struct kly_timeline t;
	kly_timeline_init(&t, 0);
	add(&t, 100, 1000);
	CHECK_INT(kly_timeline_monotonic(&t, 150), 1050);
	kly_timeline_fini(&t);
}

TEST(between_two_snapshots_lies_a_straight_line)
{
	struct kly_timeline t;
	kly_timeline_init(&t, GHZ);
	add(&t, 1000, 5000);
	add(&t, 2000, 5500); /* far from nominal: the snapshots win */
	CHECK_INT(kly_timeline_monotonic(&t, 1000), 5000);
	CHECK_INT(kly_timeline_monotonic(&t, 1500), 5250);
	CHECK_INT(kly_timeline_monotonic(&t, 2000), 5500);
	kly_timeline_fini(&t);
}

TEST(outside_the_nearest_slope_goes_on)
{
	struct kly_timeline t;
	kly_timeline_init(&t, GHZ);
	add(&t, 10 * GHZ, 100 * SECOND);
	add(&t, 11 * GHZ, 100 * SECOND + SECOND / 2);
	add(&t, 12 * GHZ, 102 * SECOND);
	CHECK_INT(kly_timeline_monotonic(&t, 8 * GHZ), 99 * SECOND);
	CHECK_INT(kly_timeline_monotonic(&t, 14 * GHZ), 105 * SECOND);
	kly_timeline_fini(&t);
}

TEST(snapshots_close_together_tell_no_slope)
{
	struct kly_timeline t;
	kly_timeline_init(&t, GHZ);
	add(&t, 10 * GHZ, 100 * SECOND);
	add(&t, 10 * GHZ + 100, 100 * SECOND + 150); /* the second was preempted for 50 ns */
	CHECK_INT(kly_timeline_monotonic(&t, 20 * GHZ + 100), 110 * SECOND + 150);
	CHECK_INT(kly_timeline_monotonic(&t, 9 * GHZ), 99 * SECOND);
	kly_timeline_fini(&t);
}

TEST(before_0_is_0_and_beyond_64_bits_is_the_maximum)
{
	struct kly_timeline t;
	kly_timeline_init(&t, 1);
	add(&t, 1000, 5);
	CHECK_INT(kly_timeline_monotonic(&t, 0), 0);
	CHECK(kly_timeline_monotonic(&t, UINT64_MAX) == UINT64_MAX);
	CHECK(kly_timeline_realtime(&t, UINT64_MAX) == UINT64_MAX);
	kly_timeline_fini(&t);
}

TEST(realtime_counts_from_the_creation_and_ignores_clock_steps)
{
	struct kly_timeline t;
	struct kly_instant i = at(0, 100 * SECOND);
	kly_timeline_init(&t, GHZ);
	CHECK_INT(kly_timeline_add_creation(&t, &i), 0);
	for (uint64_t s = 1; s < 10; s++) {
		i = at(s * GHZ, (100 + s) * SECOND);
		i.realtime_ns -= 500 * SECOND; /* somebody set the clock back */
		CHECK_INT(kly_timeline_add(&t, &i), 0);
	}
	CHECK_INT(kly_timeline_realtime(&t, 9 * GHZ), 1109 * SECOND);
	kly_timeline_fini(&t);
}

TEST(snapshots_may_come_in_any_order)
{
	struct kly_timeline t;
	kly_timeline_init(&t, GHZ);
	add(&t, 3000, 3000);
	add(&t, 1000, 1000);
	CHECK_INT(add(&t, 2000, 2500), 0);
	CHECK_INT(kly_timeline_monotonic(&t, 1500), 1750);
	CHECK_INT(kly_timeline_monotonic(&t, 2500), 2750);
	kly_timeline_fini(&t);
}

TEST(snapshots_that_contradict_the_others_are_refused)
{
	struct kly_timeline t;
	struct kly_instant back = at(2500, 2500);
	back.boottime_ns = 0;
	kly_timeline_init(&t, GHZ);
	add(&t, 1000, 1000);
	add(&t, 2000, 2000);
	CHECK_INT(add(&t, 1500, 2001), -EINVAL);
	CHECK_INT(add(&t, 1500, 999), -EINVAL);
	CHECK_INT(add(&t, 1000, 1001), -EINVAL);
	CHECK_INT(add(&t, 1000, 1000), 0); /* the same once more */
	CHECK_INT(add(&t, 3000, 1999), -EINVAL);
	CHECK_INT(add(&t, 500, 1001), -EINVAL);
	CHECK_INT(kly_timeline_add(&t, &back), -EINVAL);
	CHECK_INT(t.count, 2);
	kly_timeline_fini(&t);
}

/* 2.7 GHz nominal; the true rate drifts by up to 500 ppm, as NTP may slew, for 40 days. */
static uint64_t slewed_ns(uint64_t ticks)
{
	const uint64_t second = ticks / (27 * GHZ / 10), rest = ticks % (27 * GHZ / 10);
	const uint64_t rate = SECOND - 500000 + second / 3600 % 11 * 100000;
	uint64_t ns = 0;

	/* whole hours, each with a rate of its own */
	const uint64_t hour = second / 3600;
	for (uint64_t h = hour - hour % 11; h < hour; h++)
		ns += 3600 * (SECOND - 500000 + h % 11 * 100000);
	ns += (hour - hour % 11) / 11 * 3600 * (11 * (SECOND - 500000) + 55 * 100000);
	return ns + second % 3600 * rate + rest * (rate / 100) / (27 * GHZ / 1000);
}

TEST(slewed_time_is_right_within_a_microsecond_for_40_days)
{
	const uint64_t frequency = 27 * GHZ / 10, seconds = 40 * 86400, up = 30 * 86400 * SECOND;
	struct kly_timeline t;
	uint64_t random = 99, worst = 0, last = 0;

	kly_timeline_init(&t, frequency);
	for (uint64_t s = 0; s <= seconds; s += 600)
		CHECK_INT(add(&t, s * frequency + 17, up + slewed_ns(s * frequency + 17)), 0);
	for (uint64_t s = 1; s < seconds; s += 7) {
		const uint64_t ticks = s * frequency + next_random(&random) % frequency;
		const uint64_t got = kly_timeline_monotonic(&t, ticks);
		const uint64_t want = up + slewed_ns(ticks);
		worst = kly_max(worst, got > want ? got - want : want - got);
		CHECK(got >= last);
		last = got;
	}
	CHECK(worst < 1000);
	kly_timeline_fini(&t);
}

TEST(suspend_stops_monotonic_and_not_boottime)
{
	struct kly_timeline t;
	struct kly_instant i;
	kly_timeline_init(&t, GHZ);
	i = at(0, 0);
	kly_timeline_add(&t, &i);
	i = at(GHZ, SECOND);
	kly_timeline_add(&t, &i);
	i = at(10801 * GHZ, SECOND + 1000); /* three hours asleep, the counter went on */
	i.boottime_ns += 10800 * SECOND;
	CHECK_INT(kly_timeline_add(&t, &i), 0);
	i = at(10802 * GHZ, 2 * SECOND + 1000);
	i.boottime_ns += 10800 * SECOND;
	CHECK_INT(kly_timeline_add(&t, &i), 0);

	CHECK_INT(kly_timeline_monotonic(&t, 21603 * GHZ / 2), 3 * SECOND / 2 + 1000);
	CHECK_INT(kly_timeline_boottime(&t, 21603 * GHZ / 2), 21623 * SECOND / 2 + 1000);
	kly_timeline_fini(&t);
}

TEST(times_never_decrease_over_random_snapshots)
{
	struct kly_timeline t;
	uint64_t random = 5, ticks = 1000000, ns = 1000000;

	kly_timeline_init(&t, 2 * GHZ);
	for (int i = 0; i < 50; i++) {
		ticks += 1 + next_random(&random) % 5000;
		ns += next_random(&random) % 3000;
		CHECK_INT(add(&t, ticks, ns), 0);
	}
	uint64_t last = 0;
	for (uint64_t x = 990000; x < ticks + 10000; x++) {
		const uint64_t now = kly_timeline_realtime(&t, x);
		CHECK(now >= last);
		last = now;
	}
	kly_timeline_fini(&t);
}

TEST(a_flood_of_snapshots_is_thinned_out)
{
	struct kly_timeline t;
	kly_timeline_init(&t, GHZ);
	for (uint64_t i = 0; i < KLY_TIMELINE_MAX + 10; i++)
		CHECK_INT(add(&t, i * 100, i * 200), 0);
	CHECK(t.count <= KLY_TIMELINE_MAX / 2 + 12);
	CHECK_INT(kly_timeline_monotonic(&t, 0), 0);
	CHECK_INT(kly_timeline_monotonic(&t, 12345678), 24691356);
	kly_timeline_fini(&t);
}

TEST_MAIN()
