/* SPDX-License-Identifier: MIT */
/*
 * From runs to one ordered sequence of events. Live readers (core) and log readers share it.
 *
 * A run (record.h) is parsed by a cursor that trusts nothing: a length that leaves the run, a known
 * note of the wrong size, a type of 0, a reserved bit end the run as damaged. It needs memory that
 * nobody changes meanwhile: a copy, if the run lies in shared memory.
 *
 * Runs lie in a heap by the time of their next event and are loaded (copied, read, checked) only
 * when they come to the top, so memory follows the number of runs that overlap in time.
 * kly_order_next() stays on a run while it may.
 *
 * What comes out obeys:
 *   - times never decrease: an event older than the last one given out is given out at that one's
 *     time and marked KLY_EVENT_LATE (N-05);
 *   - events up to the horizon that were not given out before are dropped and counted in
 *     dropped_old (N-16): the rest has no gap;
 *   - user events between a STOP and the next START are dropped and counted in dropped_stopped
 *     (N-19): they come from calls that had passed the check before. After an automatic STOP (a
 *     full stream) they are losses and counted in dropped_full. Where something is missing (a
 *     damaged run, events below the horizon) the START may have been in it: this ends the state.
 *     Whoever raises the horizon for events that are gone sets `suspended` to what holds there.
 */
#ifndef KLY_WIRE_ORDER_H
#define KLY_WIRE_ORDER_H

#include "wire/record.h"
#include "wire/types.h"

#include <stdbool.h>

#define KLY_EVENT_TRUNCATED 1u
#define KLY_EVENT_LATE 2u

struct kly_event {
	uint64_t ticks;
	uint64_t address;
	uint16_t type;
	uint16_t flags; /* KLY_EVENT_* */
	uint16_t cpu;   /* KLY_REC_NO_CPU = not known */
	uint16_t len;
	const void *data; /* into the run: good until the next call on the order */
	const struct kly_wire_thread *thread; /* the same */
};

/* A run as its owner hands it in. Owner: whoever called kly_order_add(); it may embed this. Zeroed
 * but for `first`, or loaded already: then load() is not called for it. */
struct kly_run {
	uint64_t first; /* not later than its first event: known before the run is loaded */

	/* set by the source's load(); base and thread hold for the record at bytes + offset */
	const uint8_t *bytes; /* 8-byte aligned */
	uint32_t size;
	uint32_t offset; /* of the next record; moved by the cursor */
	uint64_t base;
	struct kly_wire_thread thread;

	uint32_t given; /* events given out or dropped so far from this run */
	bool loaded;    /* set by the order after load() */
	bool damaged;   /* the cursor stopped before the end, at offset */
};

struct kly_order_source {
	/* Make bytes, size, offset, base, thread valid. 0, or -Exxx: the run is dropped (and
	 * unloaded). */
	int (*load)(void *context, struct kly_run *run);
	/* The run is used up or dropped; called once for each run added, loaded or not. */
	void (*unload)(void *context, struct kly_run *run);
};

struct kly_order {
	const struct kly_order_source *source;
	void *context;

	/* A min-heap by time; time is not later than the run's next event. The top is moved only
	 * when its next event lies beyond limit, the least time of the others. */
	struct kly_order_entry {
		uint64_t time;
		struct kly_run *run;
	} * heap;
	uint32_t count, room;
	uint64_t limit;

	uint64_t last;    /* time of the last event given out */
	uint64_t horizon; /* raised by the owner at any time, in load() too */
	bool suspended;   /* between STOP and START; the owner sets what it is at the beginning */

	bool full;        /* the STOP was automatic: the stream had no room */
	uint64_t stopped, started; /* times of the last STOP and START given */

	/* events; damaged: runs */
	uint64_t given, late, dropped_old, dropped_stopped, dropped_full, damaged;
};

void kly_order_init(struct kly_order *order, const struct kly_order_source *source, void *context);
/* Unloads all runs that are left. */
void kly_order_fini(struct kly_order *order);
/* 0 or -ENOMEM; the run stays the caller's until unload() was called for it. */
int kly_order_add(struct kly_order *order, struct kly_run *run);
/* Gives the next event not later than `until`. 1, or 0 when there is none. Never fails: what can't
 * be loaded or parsed is counted. */
int kly_order_next(struct kly_order *order, uint64_t until, struct kly_event *event);

/* One step of the cursor: 1 = *event was filled (also for types unknown), 0 = end of the run,
 * -EBADMSG = what is there is no record (run->damaged is set). Ticks are not yet raised. */
int kly_run_next(struct kly_run *run, struct kly_event *event);

/* Walks records without giving them out: stops at the first that is no record. */
struct kly_run_extent {
	uint32_t bytes;       /* good bytes from the run's offset */
	uint32_t events;      /* without notes */
	uint64_t first, last; /* times of the first and last event; 0 if events == 0 */
	uint64_t base;        /* what holds after the last record */
	struct kly_wire_thread thread;
	bool damaged;
};
void kly_run_measure(const struct kly_run *run, struct kly_run_extent *extent);

#endif
