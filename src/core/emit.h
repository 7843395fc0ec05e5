/* SPDX-License-Identifier: MIT */
/*
 * The way of an event: from a trace point into all streams that want it. Inlined into each exported
 * trace point. Everything rare is a call: kly_process_ask(), kly_thread_heal(),
 * kly_thread_attach(), kly_lane_make_room(), kly_wake().
 *
 * Async-signal-safe, also in the middle of itself, of fork() and of any other function. No lock,
 * no allocation, no system call but in those calls; errno is kept.
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

/* A payload: len bytes at data, or, if data is NULL, in pieces. By value, so that it stays in
 * registers. */
struct kly_payload {
	const void *data;
	size_t len;
	const struct kly_part *parts;
	unsigned count;
};



static inline __attribute__((always_inline)) void kly_payload_copy(
	uint8_t *to, const struct kly_payload p, size_t len)
{
	if (KLY_LIKELY(len == 8 && p.data)) {
		memcpy(to, p.data, 8);
		return;
	}
	if (p.data) {
		memcpy(to, p.data, len);
		return;
	}
	for (unsigned i = 0; i < p.count && len; i++) {
		size_t n = p.parts[i].len < len ? p.parts[i].len : len;

		if (n)
			memcpy(to, p.parts[i].data, n);
		to += n;
		len -= n;
	}
}

/* Whether the stream takes the event; asked only after the lane was marked. An event that finds
 * the stream full is lost; one that finds it suspended, or is filtered, never was. */
static KLY_COLD bool kly_not_running(
	struct kly_writer *w, const struct kly_stream *s, enum kly_state state, uint64_t ticks)
{
	if (state == KLY_STATE_FULL) {
		kly_stream_stop_full(s, ticks); /* we may be earlier than who found it full */
		kly_writer_lost(w, KLY_LOSS_FULL);
	}
	return false;
}

static inline bool kly_stream_takes(
	struct kly_writer *w, const struct kly_stream *s, uint32_t type, uint64_t ticks)
{
	/* Acquire: pairs with the release of a state or filter change: N-04. */
	enum kly_state state = kly_state_of(kly_load_acquire(&w->shared->state));

	if (KLY_UNLIKELY(kly_load_acquire(&w->shared->filter[type / 64]) >> type % 64 & 1))
		return false;
	return KLY_LIKELY(state == KLY_STATE_RUNNING) || kly_not_running(w, s, state, ticks);
}

static inline __attribute__((always_inline)) void kly_lane_write(struct kly_writer *w,
	const struct kly_stream *s, uint32_t level, uint32_t type, const struct kly_payload payload,
	uint64_t where, uint64_t ticks)
{
	uint32_t len = (uint32_t)payload.len, size;

	if (KLY_UNLIKELY(payload.len > w->max_data)) {
		len = w->max_data;
		type |= KLY_REC_TRUNCATED;
	}
	size = kly_rec_size(len);
	if (KLY_UNLIKELY(!kly_lane_room(w, s, level, size, ticks)))
		return;

	struct kly_spot *spot = &w->lanes[level].now;
	struct kly_wire_rec *rec = (void *)(w->chunks + spot->pos);

	*rec = (struct kly_wire_rec){
		.type = (uint16_t)type,
		.len = (uint16_t)len,
		.delta = (uint32_t)(ticks - spot->base),
		.where = where,
	};
	kly_payload_copy((uint8_t *)(rec + 1), payload, len);
	KLY_POINT(KLY_POINT_WRITTEN);
	kly_lane_advance(spot, size, ticks);
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

static inline uint64_t kly_where(const struct kly_thread *t, const void *caller)
{
	return ((uintptr_t)caller & KLY_REC_ADDRESS) | (uint64_t)kly_load_relaxed(t->cpu) << 48;
}

static inline __attribute__((always_inline)) void kly_emit_one(struct kly_thread *t, uint32_t level,
	uint32_t place, uint32_t type, const struct kly_payload payload, const void *caller)
{
	struct kly_writer *w = &t->writers[place];
	const struct kly_stream *s = kly_process.streams[place];

	/* Not s->serial: who drops a mapping takes the serial away first. */
	if (KLY_UNLIKELY(w->serial != kly_process.serials[place])) {
		if (!kly_thread_attach(t, place))
			return;
		s = kly_process.streams[place];
	}
	uint64_t ticks = 0;

	if (KLY_SWITCH(KLY_LOOK_BEFORE_MARK)) {
		ticks = kly_clock_stamp(w->stamp, &w->shared->clock_last);
		KLY_POINT(KLY_POINT_STAMPED);
	}
	kly_lane_mark(w, level);
	KLY_POINT(KLY_POINT_MARKED);
	if (!KLY_SWITCH(KLY_LOOK_BEFORE_MARK)) {
		ticks = kly_clock_stamp(w->stamp, &w->shared->clock_last);
		KLY_POINT(KLY_POINT_STAMPED);
	}
	if (KLY_LIKELY(kly_stream_takes(w, s, type, ticks)))
		kly_lane_write(w, s, level, type, payload, kly_where(t, caller), ticks);
	kly_lane_finish(w, s, level);
}

/* Several streams: all lanes are marked, then one time serves all that count alike (N-37). */
void kly_emit_many(struct kly_thread *t, uint32_t level, uint64_t places, uint32_t type,
	const struct kly_payload payload, const void *caller);

void kly_emit_too_deep(struct kly_thread *t, uint64_t places);

static inline __attribute__((always_inline)) void kly_emit(
	uint32_t type, uint64_t word, const struct kly_payload payload, const void *caller)
{
	struct kly_thread *t = kly_self;

	if (KLY_UNLIKELY(!t || !kly_process.alive ||
			 (word & (KLY_WORD_KNOWN | KLY_WORD_ASK)) != KLY_WORD_KNOWN)) {
		word = kly_process_ask(type);
		t = kly_self;
	}
	uint64_t places = word & KLY_WORD_STREAMS;
	if (KLY_UNLIKELY(!places || !t))
		return;

	const void *frame = __builtin_frame_address(0); /* 16-byte aligned */
	uint64_t outer = *(volatile uint64_t *)&t->top;
	uint32_t level = 0;

	if (KLY_UNLIKELY(outer)) {
		outer = kly_thread_heal(t, frame);
		level = outer & KLY_TOP_LEVEL;
		if (level >= KLY_LANES) {
			kly_emit_too_deep(t, places);
			return;
		}
		*(volatile uint64_t *)&t->outer[level] = outer;
		kly_compiler_fence();
	}
	*(volatile uint64_t *)&t->top = (uintptr_t)frame | (level + 1);
	kly_compiler_fence();

	if (KLY_LIKELY((places & (places - 1)) == 0))
		kly_emit_one(t, level, (uint32_t)__builtin_ctzll(places), type, payload, caller);
	else
		kly_emit_many(t, level, places, type, payload, caller);
	kly_compiler_fence();
	*(volatile uint64_t *)&t->top = outer;
}

#endif
