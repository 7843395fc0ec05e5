/* SPDX-License-Identifier: MIT */
#include "core/clock.h"

#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)
#define SNAPSHOT_TRIES 5
#define CALIBRATION_NS (10 * 1000 * 1000)

#ifdef KLY_TEST
uint64_t (*kly_clock_fake)(void);
#define FAKE_NOW() (kly_clock_fake ? kly_clock_fake() : clock_ns(CLOCK_MONOTONIC))
#else
#define FAKE_NOW() clock_ns(CLOCK_MONOTONIC)
#endif

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	(void)clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

static bool tsc_readable(void)
{
	int mode = PR_TSC_ENABLE;

	return prctl(PR_GET_TSC, &mode) != 0 || mode == PR_TSC_ENABLE;
}

static uint64_t cost_of_library(void)
{
	struct timespec t;
	uint64_t start = kly_counter_ordered();

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return kly_counter_ordered() - start;
}

static uint64_t cost_of_kernel(void)
{
	struct timespec t;
	uint64_t start = kly_counter_ordered();

	(void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	return kly_counter_ordered() - start;
}

/*
 * Whether clock_gettime() reads the TSC itself: then it is cheaper than the system call, else it
 * contains it. Of many tries the cheapest counts, which no interruption can make wrong.
 */
static bool gettime_avoids_the_kernel(void)
{
	enum { TRIES = 50 };
	uint64_t library = UINT64_MAX, kernel = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		library = kly_min(library, cost_of_library());
		kernel = kly_min(kernel, cost_of_kernel());
	}
	return library + library / 8 < kernel;
}

enum kly_clock kly_clock_choose(void)
{
	const char *forced = getenv("KILROY_CLOCK");

	if (forced && strcmp(forced, "monotonic") == 0)
		return KLY_CLOCK_GETTIME;
	if (!tsc_readable() || !kly_counter_usable())
		return KLY_CLOCK_GETTIME;
	if (forced && strcmp(forced, "tsc") == 0)
		return KLY_CLOCK_TSC;
	return gettime_avoids_the_kernel() ? KLY_CLOCK_TSC : KLY_CLOCK_GETTIME;
}

void kly_clock_snapshot(enum kly_clock clock, struct kly_wire_snapshot *ret)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < SNAPSHOT_TRIES; i++) {
		uint64_t before = clock == KLY_CLOCK_TSC ? kly_counter_ordered() : 0;
		uint64_t monotonic = clock_ns(CLOCK_MONOTONIC);
		uint64_t after = clock == KLY_CLOCK_TSC ? kly_counter_ordered() : 0;

		if (after - before >= best)
			continue;
		best = after - before;
		ret->ticks = clock == KLY_CLOCK_TSC ? before + best / 2 : monotonic;
		ret->monotonic_ns = monotonic;
		ret->boottime_ns = clock_ns(CLOCK_BOOTTIME);
		ret->realtime_ns = clock_ns(CLOCK_REALTIME);
	}
}

static uint64_t measure_frequency(void)
{
	struct kly_wire_snapshot a, b;

	kly_clock_snapshot(KLY_CLOCK_TSC, &a);
	do
		kly_clock_snapshot(KLY_CLOCK_TSC, &b);
	while (b.monotonic_ns - a.monotonic_ns < CALIBRATION_NS);
	return (b.ticks - a.ticks) * SECOND_NS / (b.monotonic_ns - a.monotonic_ns);
}

uint64_t kly_clock_frequency(enum kly_clock clock)
{
	static uint64_t frequency; /* relaxed: every writer writes about the same */

	if (clock != KLY_CLOCK_TSC)
		return SECOND_NS;
	uint64_t known = kly_load_relaxed(&frequency);
	if (known)
		return known;
	known = kly_counter_frequency();
	if (!known)
		known = measure_frequency();
	kly_store_relaxed(&frequency, known);
	return known;
}

uint64_t kly_clock_gettime(uint64_t *last)
{
	uint64_t now = FAKE_NOW(), seen = kly_load_relaxed(last);

	/* Acquire and release on success: who gets a later value sees what happened before. */
	do {
		if (now <= seen)
			now = seen + 1;
	} while (!kly_cas_acq_rel(last, &seen, now));
	return now;
}
