/* SPDX-License-Identifier: MIT */
/*
 * A writer: one thread's place in one stream, and the way of a record into it.
 *
 * A thread has four lanes in a stream, one per nesting level: a signal handler that interrupts a
 * call writes into the next lane. So a lane has one writer; nothing in it is reserved, compared or
 * tried again. What steers the writer is private memory (struct kly_lane); the shared memory is only
 * stored to, but for chunk words, which are claimed by compare and swap.
 *
 * One event on a lane:
 *
 *   kly_lane_mark()     position | IN_FLIGHT into the slot's word: "wait for me"
 *   time                only now; the processor must not take it earlier
 *   state, filter       looked at after the mark (N-04); behind the time, because the loads then
 *                       cost nothing while the counter is read
 *   kly_lane_room()     room for the record; rarely another chunk or a TIME note
 *   ...                 head and payload are written
 *   kly_lane_advance()  privately
 *   kly_lane_publish()  the new position into the slot's word: committed
 *
 * Why this is sound: a reader takes a time T, makes every processor pass a barrier (membarrier),
 * and only then looks at the words. A lane that it sees at rest has published all its events with
 * times up to T: its next call marks the lane after the barrier, so takes its time after T. A lane
 * in flight it waits for. The writer pays one compiler fence.
 *
 * Chunk changes (N-02). A handler may jump out of a change and never come back, so each step can be
 * done again by the next call on the lane, which finds `changing` set:
 *
 *   CLAIMING  claim    compare and swap of the chunk word, which names the lane
 *             stage    the lane's next place, in `next`
 *             seal     the old chunk becomes full
 *   STAGED    flip     lane->now = lane->next
 *   0         publish  the new position
 */
#ifndef KLY_CORE_WRITER_H
#define KLY_CORE_WRITER_H

#include "core/probe.h"
#include "core/stream.h"

#define KLY_REFUSALS_A_TRY 256u /* events between two tries to get what was refused */

/* Where a lane writes. */
struct kly_spot {
	uint32_t pos, end; /* in units of 8 bytes from the stream's chunks; pos <= end; 0: no chunk */
	uint64_t base;     /* what the next record's delta counts from */
	uint64_t last;     /* time of the last record */
	uint32_t events;   /* in the chunk */
	uint32_t chunk;    /* index */
};

enum kly_changing { KLY_NOT_CHANGING, KLY_CLAIMING, KLY_STAGED };

struct kly_lane {
	_Alignas(64) struct kly_spot now;
	uint32_t changing; /* enum kly_changing */
};

/* What the writer needs of its stream at every event is copied here, a line to load: the way to
 * the time stamp has as few dependent loads as can be, for the fence waits for all of them. */
struct kly_writer {
	_Alignas(64) uint64_t usual_serial; /* as serial, if kly_emit_usual() may use the stream */
	struct kly_wire_slot *slot;
	uint64_t *chunks;
	struct kly_wire_stream_shared *shared;
	uint64_t relaxed; /* relaxed clock: the bit of its place in a word; else 0 */
	enum kly_stamp stamp;
	uint32_t max_data;
	uint32_t index;    /* of the slot */
	uint32_t refusals; /* events since memory or a slot was refused */
	bool strong;
	uint8_t failed_cause; /* enum kly_loss: why failed_serial refused */
	struct kly_lane lanes[KLY_LANES];
	struct kly_spot next[KLY_LANES];
	uint64_t serial;        /* of the stream; 0 = not attached */
	uint64_t failed_serial; /* the stream that refused a slot */
	struct kly_wire_thread thread;
};
static_assert(sizeof(struct kly_writer) == 512, "found by a shift");

/*
 * Takes a slot for the thread. 0; -EAGAIN: all are taken, -ENOMEM: no memory for one more writer.
 * The caller blocks signals, or nobody can interrupt it: the writer is not yet in use.
 */
int kly_writer_attach(struct kly_writer *w, const struct kly_stream *s,
	const struct kly_wire_thread *thread);

/* For the writer of a dead thread: its slot becomes the heir's (pid << 32 | tid), to be detached by
 * it. False: there is none, or somebody has buried it and it is another's. */
bool kly_writer_inherit(struct kly_writer *w, const struct kly_stream *s, uint64_t heir);

/* Gives the chunks back with the room that is left in them, then the slot. NULL-safe. */
void kly_writer_detach(struct kly_writer *w, const struct kly_stream *s);

/* Completes a chunk change that was jumped out of, and takes the lane out of flight. */
void kly_lane_heal(struct kly_writer *w, const struct kly_stream *s, uint32_t level);

/*
 * The rare case of kly_lane_room(): first chunk, another chunk, or a note of a new base. On failure
 * the event is counted as lost and an UNTIL_FULL or FLUSH stream is stopped at `ticks`.
 */
bool kly_lane_make_room(struct kly_writer *w, const struct kly_stream *s, uint32_t level,
	uint32_t size, uint64_t ticks);

/* The lane's next record, of this size, is by another thread: for controls, which any may use. */
void kly_lane_rename(struct kly_writer *w, const struct kly_stream *s, uint32_t level,
	const struct kly_wire_thread *thread, uint32_t size, uint64_t ticks);

/* Books events of this writer as lost. Async-signal-safe. */
static inline void kly_writer_lost(struct kly_writer *w, enum kly_loss cause)
{
	/* relaxed: only ever summed; others may add to the line when they bury this writer */
	kly_add_relaxed(&w->slot->lost[cause], 1);
}

static inline void kly_lane_store(const struct kly_writer *w, uint32_t level, uint32_t word)
{
	/* Release: pairs with the reader's acquire in drain.c, who sees the position sees the
	 * records. Strong: a full barrier stands in for the reader's membarrier(2). */
	if (KLY_UNLIKELY(w->strong))
		kly_store_seq_cst(&w->slot->word[level], word);
	else
		kly_store_release(&w->slot->word[level], word);
}

static inline void kly_lane_mark(const struct kly_writer *w, uint32_t level)
{
	if (KLY_SWITCH(KLY_NO_FENCE))
		return; /* the compiler may let the mark sink into the publishing store */
	kly_lane_store(w, level, w->lanes[level].now.pos | KLY_LANE_IN_FLIGHT);
	kly_compiler_fence(); /* pairs with membarrier in drain.c */
}

static inline bool kly_lane_room(struct kly_writer *w, const struct kly_stream *s, uint32_t level,
	uint32_t size, uint64_t ticks)
{
	const struct kly_spot *spot = &w->lanes[level].now;

	if (KLY_LIKELY(spot->pos + size / 8 <= spot->end && ticks - spot->base <= UINT32_MAX))
		return true;
	return kly_lane_make_room(w, s, level, size, ticks);
}

static inline void kly_lane_advance(struct kly_spot *spot, uint32_t size, uint64_t ticks)
{
	spot->last = ticks;
	spot->events++;
	kly_compiler_fence(); /* a handler that jumps out here leaves a count too high, no gap */
	spot->pos += size / 8;
}

static inline void kly_lane_publish(const struct kly_writer *w, uint32_t level)
{
	kly_lane_store(w, level, w->lanes[level].now.pos);
}

#endif
