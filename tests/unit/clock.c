/* SPDX-License-Identifier: MIT */
/* Tests src/core/clock.c. */
#include "tap.h"

#include "core/clock.h"

#include <stdlib.h>
#include <time.h>

static uint64_t fake_now;

static uint64_t fake(void)
{
	return fake_now;
}

TEST(N_37_a_clock_that_stands_still_gives_increasing_times)
{
	uint64_t last = 0, before = 0;

	kly_clock_fake = fake;
	fake_now = 1000;
	for (int i = 0; i < 100; i++) {
		uint64_t now = kly_clock_gettime(&last);

		CHECK(now > before);
		before = now;
	}
	kly_clock_fake = NULL;
}

TEST(N_37_a_clock_that_steps_back_an_hour_does_not_take_times_back)
{
	uint64_t last = 0;

	kly_clock_fake = fake;
	fake_now = UINT64_C(7200000000000);
	uint64_t before = kly_clock_gettime(&last);
	fake_now -= UINT64_C(3600000000000);
	CHECK_INT(kly_clock_gettime(&last), before + 1);
	fake_now = before + 50;
	CHECK_INT(kly_clock_gettime(&last), before + 50);
	kly_clock_fake = NULL;
}

TEST(N_37_KILROY_CLOCK_forces_the_clock)
{
	CHECK_INT(setenv("KILROY_CLOCK", "monotonic", 1), 0);
	CHECK_INT(kly_clock_choose(), KLY_CLOCK_GETTIME);
	CHECK_INT(unsetenv("KILROY_CLOCK"), 0);
}

TEST(a_snapshot_is_taken_between_two_looks_at_the_clocks)
{
	struct timespec before, after;
	struct kly_wire_snapshot s;

	for (enum kly_clock clock = KLY_CLOCK_TSC; clock <= KLY_CLOCK_GETTIME; clock++) {
		if (clock == KLY_CLOCK_TSC && !kly_counter_usable())
			continue;
		(void)clock_gettime(CLOCK_MONOTONIC, &before);
		kly_clock_snapshot(clock, &s);
		(void)clock_gettime(CLOCK_MONOTONIC, &after);
		CHECK(s.monotonic_ns >= (uint64_t)before.tv_sec * 1000000000 + (uint64_t)before.tv_nsec);
		CHECK(s.monotonic_ns <= (uint64_t)after.tv_sec * 1000000000 + (uint64_t)after.tv_nsec);
		CHECK(clock != KLY_CLOCK_GETTIME || s.ticks == s.monotonic_ns);
		CHECK(s.boottime_ns && s.realtime_ns && s.ticks);
	}
}

TEST(the_frequency_agrees_with_two_snapshots)
{
	const struct timespec pause = {0, 50 * 1000 * 1000};
	enum kly_clock clock = kly_clock_choose();
	struct kly_wire_snapshot a, b;

	kly_clock_snapshot(clock, &a);
	(void)nanosleep(&pause, NULL);
	kly_clock_snapshot(clock, &b);
	double measured = (double)(b.ticks - a.ticks) / (double)(b.monotonic_ns - a.monotonic_ns) * 1e9;
	double nominal = (double)kly_clock_frequency(clock);

	CHECK(nominal > measured * 0.99 && nominal < measured * 1.01);
}

TEST_MAIN()
