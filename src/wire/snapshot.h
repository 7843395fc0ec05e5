/* SPDX-License-Identifier: MIT */
/* All clocks at one instant; two of them around an event convert its ticks into any of them. */
#ifndef KLY_WIRE_SNAPSHOT_H
#define KLY_WIRE_SNAPSHOT_H

#include <assert.h>
#include <stdint.h>

/* How a stream's ticks are counted. */
enum kly_clock {
	KLY_CLOCK_TSC = 1,     /* the processor's counter */
	KLY_CLOCK_GETTIME = 2, /* clock_gettime(CLOCK_MONOTONIC), nanoseconds */
};

struct kly_wire_snapshot {
	uint64_t ticks;
	uint64_t monotonic_ns;
	uint64_t boottime_ns;
	uint64_t realtime_ns;
};
static_assert(sizeof(struct kly_wire_snapshot) == 32, "part of the format");

#endif
