/* SPDX-License-Identifier: MIT */
/*
 * Which clock gives a stream its ticks, and what they are in the system's clocks.
 *
 * The TSC counts when the processor calls it invariant, the process may read it, and the kernel
 * itself trusts it: then clock_gettime() works without a system call (also under kvm-clock). Else
 * CLOCK_MONOTONIC serves. KILROY_CLOCK=tsc|monotonic forces one; it is read where a stream is
 * created, and nowhere else (N-37).
 */
#ifndef KLY_CORE_CLOCK_H
#define KLY_CORE_CLOCK_H

#include "arch/counter.h"
#include "base/atomic.h"
#include "base/util.h"
#include "wire/snapshot.h"
#include "wire/stream.h"

enum kly_stamp { /* how a stream takes its time stamps */
	KLY_STAMP_ORDERED,
	KLY_STAMP_RELAXED,
	KLY_STAMP_GETTIME,
};

enum kly_clock kly_clock_choose(void);

/* All clocks at one instant: the tightest of a few tries. */
void kly_clock_snapshot(enum kly_clock clock, struct kly_wire_snapshot *ret);

/* Nominal ticks a second. The first call may take 10 ms to measure it. */
uint64_t kly_clock_frequency(enum kly_clock clock);

/* CLOCK_MONOTONIC, made strictly increasing by *last, which all users of the stream share. */
uint64_t kly_clock_gettime(uint64_t *last);

#ifdef KLY_TEST
extern uint64_t (*kly_clock_fake)(void); /* replaces CLOCK_MONOTONIC in kly_clock_gettime() */
#endif

/* The time stamp of an event. Async-signal-safe. */
static inline uint64_t kly_clock_stamp(enum kly_stamp stamp, uint64_t *last)
{
	if (KLY_LIKELY(stamp == KLY_STAMP_ORDERED))
		return kly_counter_ordered();
	if (stamp == KLY_STAMP_RELAXED)
		return kly_counter_relaxed();
	return kly_clock_gettime(last);
}

#endif
