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

/* A payload in pieces; in the usual case one. */
struct kly_payload {
	const struct kly_part *parts;
	unsigned count;
	size_t len; /* their sum */
};



static inline __attribute__((always_inline)) void kly_payload_copy(
	uint8_t *to, const struct kly_payload *p, size_t len)
{
	if (p->count == 1) {
		if (len == 8)
			memcpy(to, p->parts[0].data, 8);
		else
			memcpy(to, p->parts[0].data, len);
		return;
	}
	for (unsigned i = 0; i < p->count && len; i++) {
		size_t n = p->parts[i].len < len ? p->parts[i].len : len;

		memcpy(to, p->parts[i].data, n);
		to += n;
		len -= n;
	}
}

static inline __attribute__((always_inline)) void kly_lane_write(struct kly_writer *w,
	const struct kly_stream *s, uint32_t level, uint32_t type, const struct kly_payload *payload,
	uint64_t where, uint64_t ticks)
{
	uint32_t len = (uint32_t)payload->len, size;

	if (KLY_UNLIKELY(payload->len > s->max_data)) {
		len = s->max_data;
		type |= KLY_REC_TRUNCATED;
	}
	size = kly_rec_size(len);
	if (KLY_UNLIKELY(!kly_lane_room(w, s, level, size, ticks)))
		return;

	struct kly_lane_half *half = w->lanes[level].half;
	struct kly_wire_rec *rec = (void *)(s->chunks + half->pos);

	*rec = (struct kly_wire_rec){
		.type = (uint16_t)type,
		.len = (uint16_t)len,
		.delta = (uint32_t)(ticks - half->base),
		.where = where,
	};
	kly_payload_copy((uint8_t *)(rec + 1), payload, len);
	KLY_POINT(KLY_POINT_WRITTEN);
	kly_lane_advance(half, size, ticks);
}

/* Whether the stream takes the event; asked only after the lane was marked. An event that finds
 * the stream full is lost; one that finds it suspended, or is filtered, never was. */
static inline bool kly_stream_takes(const struct kly_stream *s, struct kly_writer *w, uint32_t type)
{
	/* Acquire: pairs with the release of a state change: N-04. */
	enum kly_state state = kly_state_of(kly_load_acquire(&s->shared->state));

	if (KLY_UNLIKELY(kly_stream_filters(s, type)))
		return false;
	if (KLY_LIKELY(state == KLY_STATE_RUNNING))
		return true;
	if (state == KLY_STATE_FULL)
		kly_writer_lost(w, KLY_LOSS_FULL);
	return false;
}

static inline void kly_lane_finish(struct kly_writer *w, const struct kly_stream *s, uint32_t level)
{
	kly_lane_publish(w, s, level);
	KLY_POINT(KLY_POINT_PUBLISHED);
	/* After the position: a reader sets waiters, passes the barrier, then looks (N-12). */
	kly_compiler_fence();
	if (KLY_UNLIKELY(kly_load_relaxed(&s->shared->waiters)))
		kly_wake(s);
}

static inline __attribute__((always_inline)) void kly_emit_one(struct kly_thread *t, uint32_t level,
	uint32_t place, uint32_t type, const struct kly_payload *payload, uint64_t where)
{
	const struct kly_stream *s = kly_process.streams[place];
	struct kly_writer *w = &t->writers[place];

	if (KLY_UNLIKELY(!s || w->serial != s->serial)) {
		if (!kly_thread_attach(t, place))
			return;
		s = kly_process.streams[place];
	}
	uint64_t ticks = 0;

	if (KLY_SWITCH(KLY_LOOK_BEFORE_MARK)) {
		ticks = kly_clock_stamp(s->stamp, &s->shared->clock_last);
		KLY_POINT(KLY_POINT_STAMPED);
	}
	kly_lane_mark(w, s, level);
	KLY_POINT(KLY_POINT_MARKED);
	if (KLY_LIKELY(kly_stream_takes(s, w, type))) {
		if (!KLY_SWITCH(KLY_LOOK_BEFORE_MARK))
			ticks = kly_clock_stamp(s->stamp, &s->shared->clock_last);
		KLY_POINT(KLY_POINT_STAMPED);
		kly_lane_write(w, s, level, type, payload, where, ticks);
	}
	kly_lane_finish(w, s, level);
}

/* Several streams: all lanes are marked, then one time serves all that count alike (N-37). */
void kly_emit_many(struct kly_thread *t, uint32_t level, uint64_t places, uint32_t type,
	const struct kly_payload *payload, uint64_t where);

void kly_emit_too_deep(struct kly_thread *t, uint64_t places);

static inline __attribute__((always_inline)) void kly_emit(
	uint32_t type, uint64_t word, const struct kly_payload *payload, const void *caller)
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

	uint64_t where = ((uintptr_t)caller & KLY_REC_ADDRESS) |
			 (uint64_t)*(volatile const uint32_t *)t->cpu << 48;

	if (KLY_LIKELY((places & (places - 1)) == 0))
		kly_emit_one(t, level, (uint32_t)__builtin_ctzll(places), type, payload, where);
	else
		kly_emit_many(t, level, places, type, payload, where);
	kly_compiler_fence();
	*(volatile uint64_t *)&t->top = outer;
}

#endif
