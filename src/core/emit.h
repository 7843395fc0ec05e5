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

void kly_emit_general(
	uint32_t type, uint64_t word, const struct kly_payload *payload, const void *caller);

/* The stream does not run. Whether it takes an event of this time all the same. */
bool kly_emit_late(struct kly_writer *w, uint64_t state, uint64_t ticks);

/* Whether the stream takes the event; asked only after the lane was marked. An event that finds the
 * stream full is lost, unless it is earlier than the stop; one that finds it suspended, or is
 * filtered, never was. */
static inline bool kly_stream_takes(struct kly_writer *w, uint32_t type, uint64_t ticks)
{
	/* Acquire: pairs with the release of a state or filter change: N-04. */
	uint64_t state = kly_load_acquire(&w->shared->state);

	if (KLY_UNLIKELY(kly_load_acquire(&w->shared->filter[type / 64]) >> type % 64 & 1))
		return false;
	return KLY_LIKELY(kly_state_of(state) == KLY_STATE_RUNNING) ||
	       kly_emit_late(w, state, ticks);
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
	*(volatile uint64_t *)&t->top = top;
	kly_compiler_fence();
}

static KLY_COLD void kly_emit_unusual(
	uint32_t type, uint64_t word, const void *data, size_t len, const void *caller)
{
	const struct kly_payload payload = {.data = data ? data : "", .len = len};

	kly_emit_general(type, word, &payload, caller);
}

/* word: the type's enable word, not KLY_WORD_KNOWN. caller: the address to record. */
static inline __attribute__((always_inline)) void kly_emit(
	uint32_t type, uint64_t word, const void *data, size_t len, const void *caller)
{
	struct kly_thread *t = kly_self;
	uint64_t places = word ^ KLY_WORD_KNOWN;
	uint32_t place = (uint32_t)__builtin_ctzll(places);
	struct kly_writer *w = &t->writers[place];

	__asm__("" : "+r"(w)); /* a pointer from here on, not a sum to be made again and again */
	/* A word that means "ask" leaves place 0 or 63, which no writer is attached to. */
	if (KLY_UNLIKELY(places & (places - 1) || *(volatile uint64_t *)&t->top || !w->usual)) {
		kly_emit_unusual(type, word, data, len, caller);
		return;
	}
	/* In flight before the mapping is looked at: who drops one looks for threads in flight after it
	 * has taken the key away (N-22). A child that is forked in a handler here finds it wiped. */
	kly_thread_enter(t, (uintptr_t)__builtin_frame_address(0) | 1);
	if (KLY_UNLIKELY(kly_load_relaxed(&kly_process.ours.keys[place]) != w->serial + 1)) {
		kly_thread_enter(t, 0);
		kly_emit_unusual(type, word, data, len, caller);
		return;
	}
	const struct kly_stream *s = kly_process.streams[place];
	uint64_t ticks = 0;

	if (KLY_SWITCH(KLY_LOOK_BEFORE_MARK)) {
		ticks = kly_clock_stamp(w->stamp, &w->shared->clock_last);
		KLY_POINT(KLY_POINT_STAMPED);
	}
	kly_lane_mark(w, 0);
	KLY_POINT(KLY_POINT_MARKED);
	if (!KLY_SWITCH(KLY_LOOK_BEFORE_MARK)) {
		ticks = KLY_LIKELY(w->stamp == KLY_STAMP_ORDERED) ? kly_counter_ordered()
								  : kly_counter_relaxed();
		KLY_POINT(KLY_POINT_STAMPED);
	}
	if (KLY_LIKELY(kly_stream_takes(w, type, ticks))) {
		if (KLY_UNLIKELY(len > w->max_data)) {
			len = w->max_data;
			type |= KLY_REC_TRUNCATED;
		}
		uint8_t *to = kly_lane_begin(
			w, s, 0, type, (uint32_t)len, kly_where(t, caller), ticks);

		if (KLY_LIKELY(to)) {
			if (len == 8)
				memcpy(to, data, 8);
			else
				memcpy(to, data, len);
			KLY_POINT(KLY_POINT_WRITTEN);
			kly_lane_advance(&w->lanes[0].now, kly_rec_size((uint32_t)len), ticks);
		}
	}
	kly_lane_finish(w, s, 0);
	kly_thread_enter(t, 0);
}

#endif
