/* SPDX-License-Identifier: MIT */
/*
 * The way of an event: from a trace point into all streams that want it.
 *
 * kly_emit() is inlined into each exported trace point and handles what is usual: one stream, no
 * interrupted call below, a payload in one piece. It is written for few instructions and for a
 * short chain of loads before the time stamp. Everything else goes to kly_emit_general(), which
 * does the same for any number of streams, levels and pieces, and from there to kly_process_ask(),
 * kly_thread_heal(), kly_thread_attach(). Both use kly_lane_make_room() and kly_wake().
 *
 * Async-signal-safe, also in the middle of itself, of fork() and of any other function. No lock,
 * no allocation; no system call but in those; errno is kept.
 */
#ifndef KLY_CORE_EMIT_H
#define KLY_CORE_EMIT_H

#include "core/fence.h"
#include "core/thread.h"

#include <string.h>

struct kly_part {
	const void *data;
	size_t len;
};

/* A payload: len bytes at data, or, if data is NULL, in pieces. */
struct kly_payload {
	const void *data;
	size_t len;
	const struct kly_part *parts;
	unsigned count;
};

/* frame: kly_frame() of the trace point. */
void kly_emit_general(uint32_t type, uint64_t word, const struct kly_payload *payload,
	const void *caller, uintptr_t frame);

/* Where the calling function's frame begins: the same for all calls from one depth of the stack,
 * however much of a frame each makes of it. 16-byte aligned. */
#define kly_frame() ((uintptr_t)__builtin_dwarf_cfa())

/* Whether the stream takes the event; asked only after the lane was marked. An event that finds the
 * stream full is lost; one that finds it suspended, or is filtered, never was. */
static inline bool kly_stream_takes(struct kly_writer *w, uint32_t type)
{
	/* Acquire: pairs with the release of a state or filter change: N-04. */
	enum kly_state state = kly_state_of(kly_load_acquire(&w->shared->state));

	if (KLY_UNLIKELY(kly_load_acquire(&w->shared->filter[type / 64]) >> type % 64 & 1))
		return false;
	if (state == KLY_STATE_FULL)
		kly_writer_lost(w, KLY_LOSS_FULL);
	return state == KLY_STATE_RUNNING;
}

static inline uint64_t kly_where(const struct kly_thread *t, const void *caller)
{
	return ((uintptr_t)caller & KLY_REC_ADDRESS) | (uint64_t)kly_load_relaxed(t->cpu) << 48;
}

/* Room for a record of len bytes, and its head; where the payload goes. NULL: the loss is booked. */
static inline __attribute__((always_inline)) void *kly_lane_begin(struct kly_writer *w,
	const struct kly_stream *s, uint32_t level, uint32_t type, uint32_t len, uint64_t where,
	uint64_t ticks)
{
	struct kly_spot *spot = &w->lanes[level].now;

	if (KLY_UNLIKELY(!kly_lane_room(w, s, level, kly_rec_size(len), ticks)))
		return NULL;

	struct kly_wire_rec *rec = (void *)(w->chunks + spot->pos);

	/* Two stores; the compiler would make four of the members. */
	const uint64_t head[2] = {type | len << 16 | (ticks - spot->base) << 32, where};
	memcpy(rec, head, sizeof(head));
	return rec + 1;
}

static inline void kly_lane_finish(
	const struct kly_writer *w, const struct kly_stream *s, uint32_t level)
{
	kly_lane_publish(w, level);
	KLY_POINT(KLY_POINT_PUBLISHED);
	/* After the position: a reader sets waiters, passes the barrier, then looks (N-12). */
	kly_compiler_fence();
	if (KLY_UNLIKELY(kly_load_relaxed(&w->shared->waiters)))
		kly_wake(s);
}

static inline void kly_thread_enter(struct kly_thread *t, uint64_t top)
{
	kly_compiler_fence();
	kly_store_relaxed(&t->top, top); /* pairs with the fence of who drops a mapping */
	kly_compiler_fence();
}

/* What is rare in kly_emit(), each as a last call, so that the usual way needs no frame. They end the
 * flight, if there is one. what: type | length << 16. */
void kly_emit_unusual(uint32_t type, uint64_t word, const void *data, size_t len,
	const void *caller, uintptr_t frame);
void kly_emit_rest(struct kly_thread *t, uint32_t place, uint64_t what, const void *data,
	const void *caller, uint64_t ticks);
void kly_emit_wake(struct kly_thread *t, uint32_t place);

/* kly_lane_mark(), for a writer that need not be strong. */
static inline void kly_mark_usual(struct kly_writer *w)
{
	if (!KLY_SWITCH(KLY_NO_FENCE)) /* without it the mark may sink into the publishing store */
		kly_store_release(&w->slot->word[0], w->lanes[0].now.pos | KLY_LANE_IN_FLIGHT);
	kly_compiler_fence(); /* pairs with membarrier in drain.c */
	KLY_POINT(KLY_POINT_MARKED);
}

#define KLY_PREFETCH_AHEAD 1024

/* Writes and publishes the record, unless there is something to be looked at first. */
static inline __attribute__((always_inline)) bool kly_put_usual(struct kly_thread *t,
	struct kly_writer *w, uint32_t type, const void *data, size_t len, const void *caller,
	uint64_t ticks)
{
	struct kly_spot *spot = &w->lanes[0].now;
	const uint32_t size = kly_rec_size((uint32_t)len);
	uint64_t delta = ticks - spot->base;

	/* Acquire: pairs with the release of a state or filter change (N-04). */
	if (KLY_UNLIKELY(
		    kly_state_of(kly_load_acquire(&w->shared->state)) != KLY_STATE_RUNNING ||
		    kly_load_acquire(&w->shared->filter[type / 64]) >> type % 64 & 1 ||
		    delta > UINT32_MAX || spot->pos + size / 8 > spot->end ||
		    (len != 8 && len > w->max_data)))
		return false;

	uint64_t *rec = w->chunks + spot->pos;

	rec[0] = type | len << 16 | delta << 32; /* struct kly_wire_rec, in one store */
	rec[1] = (uintptr_t)caller;              /* a user's: below 2^48 */
	memcpy((uint8_t *)&rec[1] + 6, t->cpu, sizeof(uint16_t));
	if (len == 8) {
		memcpy(&rec[2], data, 8);
	} else {
		/* The next event's lines, which the copy will want to own. */
		for (uint32_t ahead = 0; ahead < size; ahead += 64)
			__builtin_prefetch((const uint8_t *)rec + KLY_PREFETCH_AHEAD + ahead, 1);
		memcpy(&rec[2], data, len);
	}
	KLY_POINT(KLY_POINT_WRITTEN);
	kly_lane_advance(spot, size, ticks);
	kly_store_release(&w->slot->word[0], spot->pos); /* kly_lane_publish() */
	KLY_POINT(KLY_POINT_PUBLISHED);
	/* Waiters are looked at after the position: a reader sets them, passes the barrier, then
	 * looks (N-12). */
	kly_compiler_fence();
	return true;
}

/*
 * One stream, nothing interrupted, a payload in one piece. word: the type's enable word. place: the
 * only one in it; a constant if it can be, for then nothing waits for the word. caller: the address
 * to record.
 */
static inline __attribute__((always_inline)) void kly_emit_usual(uint32_t type, uint64_t word,
	uint32_t place, const void *data, size_t len, const void *caller)
{
	struct kly_thread *t = kly_self;
	struct kly_writer *w = &t->writers[place];
	uint64_t relaxed = kly_load_relaxed(&kly_process.relaxed) & UINT64_C(1) << place;

	/*
	 * The fence is for what the program did before, and waits for it; so it comes first, and what
	 * is to be done before the time is taken need not be waited for: nor the writer, which knows
	 * its clock and is asked below.
	 */
	if (KLY_LIKELY(!relaxed))
		kly_counter_fence();
	if (KLY_UNLIKELY(kly_load_relaxed(&t->top))) {
		kly_emit_unusual(type, word, data, len, caller, kly_frame());
		return;
	}
	/* In flight before the mapping is looked at: who drops one looks for threads in flight after it
	 * has taken the key away (N-22). */
	kly_thread_enter(t, kly_frame() | 1);
	if (KLY_UNLIKELY(w->usual_serial + 1 != kly_load_relaxed(&kly_process.ours.keys[place]) ||
			 w->relaxed != relaxed)) {
		kly_thread_enter(t, 0);
		kly_emit_unusual(type, word, data, len, caller, kly_frame());
		return;
	}

	uint64_t ticks = 0;

	if (KLY_SWITCH(KLY_LOOK_BEFORE_MARK)) {
		ticks = kly_counter_relaxed();
		KLY_POINT(KLY_POINT_STAMPED);
	}
	kly_mark_usual(w);
	if (!KLY_SWITCH(KLY_LOOK_BEFORE_MARK)) {
		ticks = kly_counter_relaxed();
		KLY_POINT(KLY_POINT_STAMPED);
	}
	if (KLY_UNLIKELY(!kly_put_usual(t, w, type, data, len, caller, ticks))) {
		kly_emit_rest(t, place, type | (uint64_t)len << 16, data, caller, ticks);
		return;
	}
	if (KLY_UNLIKELY(kly_load_relaxed(&w->shared->waiters))) {
		kly_emit_wake(t, place);
		return;
	}
	kly_thread_enter(t, 0);
}

/* The same for other places and other lengths, which need more registers or a call. */
void kly_emit_elsewhere(
	uint32_t type, uint64_t word, const void *data, size_t len, const void *caller);

#define KLY_FIRST_PLACE 1u

/* The most usual of all: 8 bytes into the first place. */
void kly_emit_first(uint32_t type, const void *data, const void *caller);

/* word: not KLY_WORD_KNOWN alone. Two last calls, so that a trace point that nobody wants has no
 * frame to make either. */
static inline __attribute__((always_inline)) void kly_emit(
	uint32_t type, uint64_t word, const void *data, size_t len, const void *caller)
{
	if (KLY_LIKELY(len == 8 && word == (KLY_WORD_KNOWN | UINT64_C(1) << KLY_FIRST_PLACE)))
		kly_emit_first(type, data, caller);
	else
		kly_emit_elsewhere(type, word, data, len, caller);
}

#endif
