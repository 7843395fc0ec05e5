/* SPDX-License-Identifier: MIT */
/* The general way of an event: any streams, any nesting level, a payload in pieces; see emit.h. */
#include "core/emit.h"

/* Acquire: NULL only for who will find the state dead, which comes before the stream is taken away. */
static const struct kly_stream *stream_at(uint32_t place)
{
	return kly_load_acquire(&kly_process.streams[place]);
}

struct target {
	const struct kly_stream *s;
	struct kly_writer *w;
};

static void copy(uint8_t *to, const struct kly_payload *p, size_t len)
{
	if (p->data) {
		memcpy(to, p->data, len);
		return;
	}
	for (unsigned i = 0; i < p->count && len; i++) {
		size_t n = kly_min(p->parts[i].len, len);

		if (n)
			memcpy(to, p->parts[i].data, n);
		to += n;
		len -= n;
	}
}

static void write_record(const struct target *at, uint32_t level, uint32_t type,
	const struct kly_payload *payload, uint64_t where, uint64_t ticks)
{
	uint32_t len = (uint32_t)kly_min(payload->len, at->w->max_data);

	if (len < payload->len)
		type |= KLY_REC_TRUNCATED;
	void *to = kly_lane_begin(at->w, at->s, level, type, len, where, ticks);
	if (!to)
		return;
	copy(to, payload, len);
	KLY_POINT(KLY_POINT_WRITTEN);
	kly_lane_advance(&at->w->lanes[level].now, kly_rec_size(len), ticks);
}

static unsigned mark_all(
	struct kly_thread *t, uint32_t level, uint64_t places, struct target *ret)
{
	unsigned n = 0;

	for (; places; places &= places - 1) {
		uint32_t place = (uint32_t)__builtin_ctzll(places);
		struct kly_writer *w = &t->writers[place];

		if (KLY_UNLIKELY(w->serial + 1 != kly_load_relaxed(&kly_process.ours.keys[place])) &&
			!kly_thread_attach(t, place))
			continue;
		kly_lane_mark(w, level);
		KLY_POINT(KLY_POINT_MARKED);
		ret[n++] = (struct target){stream_at(place), w};
	}
	return n;
}

/* Streams that count alike share one time (N-37); an ordered one serves relaxed ones too. */
static uint64_t stamp(const struct kly_writer *w, uint64_t *counter)
{
	if (w->stamp == KLY_STAMP_GETTIME)
		return kly_clock_gettime(&w->shared->clock_last);
	if (!*counter)
		*counter = kly_counter_ordered();
	return *counter;
}

static void emit_into(struct kly_thread *t, uint32_t level, uint64_t places, uint32_t type,
	const struct kly_payload *payload, const void *caller)
{
	struct target targets[KLY_STREAMS_MAX];
	uint64_t early = KLY_SWITCH(KLY_LOOK_BEFORE_MARK) ? kly_counter_ordered() : 0;
	unsigned n = mark_all(t, level, places, targets); /* all, before any time is taken */
	uint64_t where = kly_where(t, caller);

	for (unsigned i = 0; i < n; i++) {
		uint64_t ticks = stamp(targets[i].w, &early);

		KLY_POINT(KLY_POINT_STAMPED);
		if (kly_stream_takes(targets[i].w, type))
			write_record(&targets[i], level, type, payload, where, ticks);
	}
	for (unsigned i = 0; i < n; i++)
		kly_lane_finish(targets[i].w, targets[i].s, level);
}

static void lose_too_deep(uint64_t places)
{
	for (; places; places &= places - 1) {
		const struct kly_stream *s = stream_at((uint32_t)__builtin_ctzll(places));

		if (s)
			kly_stream_lost(s, KLY_LOSS_DEPTH, 1);
	}
}

static bool must_ask(const struct kly_thread *t, uint64_t word)
{
	return !kly_is_registered(t) || !kly_load_acquire(&kly_process.ours.alive) ||
	       (word & (KLY_WORD_KNOWN | KLY_WORD_ASK)) != KLY_WORD_KNOWN;
}

/* The lane is marked and the time taken; now all that may be is looked at in its order. */
static KLY_COLD void put_rest(struct kly_thread *t, uint32_t place, uint32_t type, const void *data,
	size_t len, const void *caller, uint64_t ticks)
{
	const struct target at = {stream_at(place), &t->writers[place]};
	const struct kly_payload payload = {.data = data ? data : "", .len = len};

	if (kly_stream_takes(at.w, type))
		write_record(&at, 0, type, &payload, kly_where(t, caller), ticks);
	kly_lane_finish(at.w, at.s, 0);
}

void kly_emit_first(uint32_t type, const void *data, const void *caller)
{
	kly_emit_usual(type, KLY_WORD_KNOWN | UINT64_C(1) << KLY_FIRST_PLACE, KLY_FIRST_PLACE, data,
		8, caller);
}

/* Whether all places have usual writers; then their lanes are marked. */
static bool mark_usual(struct kly_thread *t, uint64_t places)
{
	for (uint64_t left = places; left; left &= left - 1) {
		uint32_t place = (uint32_t)__builtin_ctzll(left);

		if (t->writers[place].usual_serial + 1 !=
			kly_load_relaxed(&kly_process.ours.keys[place]))
			return false;
	}
	for (uint64_t left = places; left; left &= left - 1)
		kly_mark_usual(&t->writers[__builtin_ctzll(left)]);
	return true;
}

/* Several streams: all lanes are marked before the time is taken that serves all (N-37). */
static void emit_several(
	uint32_t type, uint64_t word, const void *data, size_t len, const void *caller)
{
	struct kly_thread *t = kly_self;
	uint64_t places = word ^ KLY_WORD_KNOWN;

	if (kly_load_relaxed(&t->top)) {
		kly_emit_unusual(type, word, data, len, caller, kly_frame());
		return;
	}
	kly_thread_enter(t, kly_frame() | 1);
	if (KLY_UNLIKELY(places & (KLY_WORD_KNOWN | KLY_WORD_ASK) || !mark_usual(t, places))) {
		kly_thread_enter(t, 0);
		kly_emit_unusual(type, word, data, len, caller, kly_frame());
		return;
	}
	uint64_t ticks = kly_counter_ordered();

	KLY_POINT(KLY_POINT_STAMPED);
	for (; places; places &= places - 1) {
		uint32_t place = (uint32_t)__builtin_ctzll(places);
		struct kly_writer *w = &t->writers[place];

		if (KLY_UNLIKELY(!(len == 8 ? kly_put_usual(t, w, type, data, 8, caller, ticks)
					    : kly_put_usual(t, w, type, data, len, caller, ticks))))
			put_rest(t, place, type, data, len, caller, ticks);
		else if (KLY_UNLIKELY(kly_load_relaxed(&w->shared->waiters)))
			kly_wake(stream_at(place));
	}
	kly_thread_enter(t, 0);
}

void kly_emit_elsewhere(
	uint32_t type, uint64_t word, const void *data, size_t len, const void *caller)
{
	uint64_t places = word ^ KLY_WORD_KNOWN;

	/* Where the word means "ask", place 0 or 63 is left, which no writer is attached to. */
	if (places == UINT64_C(1) << KLY_FIRST_PLACE)
		kly_emit_usual(type, word, KLY_FIRST_PLACE, data, len, caller);
	else if (places & (places - 1))
		emit_several(type, word, data, len, caller);
	else
		kly_emit_usual(type, word, (uint32_t)__builtin_ctzll(places), data, len, caller);
}

KLY_COLD void kly_emit_unusual(uint32_t type, uint64_t word, const void *data, size_t len,
	const void *caller, uintptr_t frame)
{
	const struct kly_payload payload = {.data = data ? data : "", .len = len};

	kly_emit_general(type, word, &payload, caller, frame);
}

KLY_COLD void kly_emit_rest(struct kly_thread *t, uint32_t place, uint64_t what, const void *data,
	const void *caller, uint64_t ticks)
{
	put_rest(t, place, what & KLY_REC_TYPE, data, what >> 16, caller, ticks);
	kly_thread_enter(t, 0);
}

KLY_COLD void kly_emit_wake(struct kly_thread *t, uint32_t place)
{
	kly_wake(stream_at(place));
	kly_thread_enter(t, 0);
}

KLY_COLD void kly_emit_general(uint32_t type, uint64_t word, const struct kly_payload *payload,
	const void *caller, uintptr_t frame)
{
	if (must_ask(kly_self, word))
		word = kly_process_ask(type);

	struct kly_thread *t = kly_self;
	uint64_t places = word & KLY_WORD_STREAMS;
	uint64_t outer = kly_load_relaxed(&t->top);
	uint32_t level = 0;

	if (!places)
		return;
	if (outer) {
		outer = kly_thread_heal(t, frame);
		level = outer & KLY_TOP_LEVEL;
		if (level >= KLY_LANES) {
			lose_too_deep(places);
			return;
		}
		kly_store_relaxed(&t->outer[level], outer);
	}
	kly_thread_enter(t, frame | (level + 1));
	emit_into(t, level, places, type, payload, caller);
	kly_thread_enter(t, outer);
}
