/* SPDX-License-Identifier: MIT */
/*
 * From ticks of a counter to nanoseconds of the system's clocks, by snapshots of all of them
 * taken now and then.
 *
 * CLOCK_MONOTONIC between two snapshots lies on the straight line between them, so that it agrees
 * with what the program itself would have read there, whatever the clock's rate was corrected to.
 * Before the first and after the last snapshot the nearest slope goes on, if snapshots at least
 * 0.1 s apart tell it, else the nominal frequency does. What is said there can change when a
 * snapshot is added: add one before converting the times of new events.
 *
 * CLOCK_REALTIME is that of the creation plus CLOCK_MONOTONIC since: steps of the wall clock
 * neither bend the line nor turn it round.
 *
 * Invariant: instants are sorted by ticks, strictly, and none of monotonic and boottime decreases.
 * A snapshot that would break this is refused. Hence results never decrease with ticks.
 */
#ifndef KLY_BASE_TIMELINE_H
#define KLY_BASE_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kly_instant {
	uint64_t ticks;
	uint64_t monotonic_ns;
	uint64_t boottime_ns;
	uint64_t realtime_ns;
};

struct kly_timeline {
	struct kly_instant *instants;
	size_t count, room;
	uint64_t ticks_per_second; /* nominal */
	bool created;              /* the two below are set */
	uint64_t created_monotonic_ns, created_realtime_ns;
};

/* Of more snapshots than this every second one is given up, again and again. */
#define KLY_TIMELINE_MAX (1u << 20)

/* ticks_per_second may be 0: not known; 1 per nanosecond is taken. */
void kly_timeline_init(struct kly_timeline *timeline, uint64_t ticks_per_second);
void kly_timeline_fini(struct kly_timeline *timeline);

/* Adds the instant from which CLOCK_REALTIME is counted; without this call it is the first one
 * added. Results as below. */
int kly_timeline_add_creation(struct kly_timeline *timeline, const struct kly_instant *created);

/* 0, also for one already there; -EINVAL: it contradicts the others; -ENOMEM. */
int kly_timeline_add(struct kly_timeline *timeline, const struct kly_instant *instant);

/* 0 if there is no snapshot. What lies before 0 is 0, what lies beyond 64 bits is UINT64_MAX. */
uint64_t kly_timeline_monotonic(const struct kly_timeline *timeline, uint64_t ticks);
uint64_t kly_timeline_boottime(const struct kly_timeline *timeline, uint64_t ticks);
uint64_t kly_timeline_realtime(const struct kly_timeline *timeline, uint64_t ticks);

#endif
