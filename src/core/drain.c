/* SPDX-License-Identifier: MIT */
#include "core/drain.h"
#include "core/fence.h"
#include "core/probe.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WAIT_NS (10 * 1000 * 1000) /* for lanes in flight, in one round */
#define SPINS 200                  /* looks at a lane before the processor is given away */
#define SIGHTS 64                  /* tries to see a chunk between two changes of its word */

int kly_drain_init(struct kly_drain *d, const struct kly_stream *stream)
{
	*d = (struct kly_drain){
		.stream = stream,
		.chunks = calloc(stream->chunk_count, sizeof(*d->chunks)),
		.passed_over = calloc(stream->slot_count * KLY_LANES, sizeof(*d->passed_over)),
		.rested = calloc(stream->slot_count * KLY_LANES, sizeof(*d->rested)),
		.ready = calloc(stream->chunk_count, sizeof(*d->ready)),
	};
	if (d->chunks && d->passed_over && d->rested && d->ready)
		return 0;
	kly_drain_fini(d);
	return -ENOMEM;
}

void kly_drain_fini(struct kly_drain *d)
{
	free(d->chunks);
	free(d->passed_over);
	free(d->rested);
	free(d->ready);
	*d = (struct kly_drain){0};
}

static uint64_t monotonic_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/*
 * Waits until the call that was seen in flight has ended, or the time is up. It has ended if the lane
 * is at rest, or was seen to move twice: one call stores the word once more at most, when it goes on
 * in another chunk or behind a note. The word in the end; *ret_ended tells.
 */
static uint32_t wait_for_lane(const uint32_t *at, uint32_t seen, uint64_t deadline, bool *ret_ended)
{
	unsigned moves = 0;

	for (unsigned looks = 0;; looks++) {
		uint32_t now = kly_load_acquire(at);

		moves += now != seen;
		seen = now;
		*ret_ended = !(now & KLY_LANE_IN_FLIGHT) || moves >= 2;
		if (*ret_ended || (looks >= SPINS && monotonic_ns() >= deadline))
			return now;
		if (looks >= SPINS)
			(void)sched_yield();
	}
}

static void look_at_lanes(struct kly_drain *d)
{
	const struct kly_stream *s = d->stream;
	uint32_t used = (uint32_t)kly_min(kly_load_acquire(&s->shared->slots_used), s->slot_count);
	uint64_t deadline = 0;

	for (uint32_t i = 0; i < used * KLY_LANES; i++) {
		const uint32_t *at = &s->slots[i / KLY_LANES].word[i % KLY_LANES];
		/* Acquire: pairs with the release of kly_lane_store(). */
		uint32_t word = kly_load_acquire(at);

		if (!(word & KLY_LANE_IN_FLIGHT)) {
			d->rested[i] = true;
			continue;
		}
		/* The same word is the same call, unless the lane was at rest in between. */
		if ((word == d->passed_over[i] && !d->rested[i]) || KLY_SWITCH(KLY_EARLY_RELEASE))
			continue;
		if (!deadline)
			deadline = monotonic_ns() + WAIT_NS;
		bool ended;
		word = wait_for_lane(at, word, deadline, &ended);
		d->passed_over[i] = ended ? 0 : word;
		d->rested[i] = false;
	}
}

/* The bytes may be overwritten while they are copied; the caller finds out afterwards. */
__attribute__((no_sanitize("thread"))) static void copy_racy(
	uint64_t *to, const uint64_t *from, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes / 8; i++)
		to[i] = *(const volatile uint64_t *)&from[i];
}

static uint32_t position_of(const struct kly_stream *s, uint32_t lane)
{
	if (lane >= s->slot_count * KLY_LANES)
		return 0;
	/* Acquire: pairs with the release of kly_lane_store(). */
	return kly_load_acquire(&s->slots[lane / KLY_LANES].word[lane % KLY_LANES]) &
	       ~KLY_LANE_IN_FLIGHT;
}

/* What one look at a chunk found: all of one filling. */
struct sight {
	uint64_t word;
	struct kly_wire_chunk head;
	uint32_t limit; /* bytes from the chunk's start that are records; 0 = none */
};

static uint32_t find_limit(
	const struct kly_stream *s, uint32_t chunk, const struct sight *sight, uint32_t position)
{
	uint32_t start = chunk * (s->chunk_bytes / 8);
	uint32_t limit = 0;

	if (!(sight->word & KLY_CHUNK_OWNED))
		limit = sight->head.used;
	else if (position > start && position - start <= s->chunk_bytes / 8)
		limit = (position - start) * 8;
	else if (sight->word & KLY_CHUNK_RESUMED)
		limit = sight->head.used;
	limit &= ~7u;
	return limit > sizeof(sight->head) && limit <= s->chunk_bytes ? limit : 0;
}

/*
 * Word, position and head are of one filling if they are read in this order and the word is the
 * same afterwards. A lane publishes its place elsewhere before it claims this chunk again, so a
 * position read behind the word is not that of an earlier filling; and who sees a position in the
 * chunk sees its head. A position that was read earlier, in the round's look at the lanes, may be
 * of an earlier filling: in LOOP a lane can come round in the meantime.
 */
static bool try_to_see(const struct kly_stream *s, uint32_t chunk, struct sight *ret)
{
	/* Acquire: pairs with the release of seal() and of the claims. */
	ret->word = kly_load_acquire(&s->words[chunk]);
	uint32_t position = ret->word & KLY_CHUNK_OWNED
				    ? position_of(s, ret->word & KLY_CHUNK_OWNER)
				    : 0;

	copy_racy((uint64_t *)&ret->head, (const uint64_t *)kly_stream_chunk(s, chunk),
		sizeof(ret->head));
	ret->limit = find_limit(s, chunk, ret, position);
	__atomic_thread_fence(__ATOMIC_ACQUIRE); /* pairs with the releases of the word */
	return kly_load_relaxed(&s->words[chunk]) == ret->word;
}

/* False: the chunk changes hands all the time, which only damage can do. */
static bool see(const struct kly_stream *s, uint32_t chunk, struct sight *ret)
{
	for (int i = 0; i < SIGHTS; i++)
		if (try_to_see(s, chunk, ret))
			return true;
	return false;
}

static void forget(struct kly_drain *d, struct kly_drain_chunk *c)
{
	d->taken_before_overwritten += c->given;
	c->filling = 0;
	c->offset = c->limit = c->given = 0;
}

static void begin_filling(struct kly_drain_chunk *c, const struct kly_wire_chunk *head)
{
	c->filling = c->base = head->base;
	c->thread = head->thread;
	c->thread.name[sizeof(c->thread.name) - 1] = '\0';
	c->offset = sizeof(*head);
	c->limit = c->given = 0;
}

static void look_at_chunk(struct kly_drain *d, uint32_t chunk)
{
	struct kly_drain_chunk *c = &d->chunks[chunk];
	struct sight sight;

	if (!kly_load_relaxed(&d->stream->words[chunk]) || !see(d->stream, chunk, &sight) ||
		!sight.limit)
		return;
	if (c->filling != sight.head.base) {
		forget(d, c);
		begin_filling(c, &sight.head);
	}
	c->limit = (uint32_t)kly_max(c->limit, sight.limit);
	c->whole = !(sight.word & KLY_CHUNK_OWNED);
	if (c->offset < c->limit)
		d->ready[d->ready_count++] = chunk;
	else if (c->whole)
		kly_drain_taken(d, chunk, &(struct kly_run_extent){.base = c->base, .thread = c->thread});
}

void kly_drain_round(struct kly_drain *d)
{
	const struct kly_stream *s = d->stream;

	d->until = kly_stream_now(s);
	kly_fence_writers(s);
	look_at_lanes(d);
	d->ready_count = 0;
	uint32_t used = (uint32_t)kly_min(kly_load_acquire(&s->shared->chunks_used), s->chunk_count);
	for (uint32_t i = 0; i < used; i++)
		look_at_chunk(d, i);
	d->horizon = kly_max(d->horizon, kly_load_acquire(&s->shared->horizon));
}

/* After a copy: whether it is of the filling that the cursor is in. */
static bool still_same(struct kly_drain *d, uint32_t chunk)
{
	const struct kly_stream *s = d->stream;
	struct kly_drain_chunk *c = &d->chunks[chunk];

	__atomic_thread_fence(__ATOMIC_ACQUIRE); /* pairs with the release fence in begin_fresh() */
	if (kly_load_relaxed(&kly_stream_chunk(s, chunk)->base) == c->filling)
		return true;
	forget(d, c);
	/* The horizon was raised before the chunk was taken. */
	d->horizon = kly_max(d->horizon, kly_load_acquire(&s->shared->horizon));
	return false;
}

uint32_t kly_drain_copy(struct kly_drain *d, uint32_t chunk, void *buffer, struct kly_run *run)
{
	struct kly_drain_chunk *c = &d->chunks[chunk];
	uint32_t bytes = c->limit - c->offset;

	copy_racy(buffer, (const uint64_t *)kly_stream_chunk(d->stream, chunk) + c->offset / 8, bytes);
	if (!still_same(d, chunk))
		return 0;
	run->bytes = buffer;
	run->size = bytes;
	run->offset = 0;
	run->base = c->base;
	run->thread = c->thread;
	return bytes;
}

bool kly_drain_peek(struct kly_drain *d, uint32_t chunk, uint64_t *ret_time)
{
	struct kly_drain_chunk *c = &d->chunks[chunk];
	uint32_t left = c->limit - c->offset;
	struct {
		struct kly_wire_rec rec;
		uint64_t payload;
	} first = {0};

	copy_racy((uint64_t *)&first, (const uint64_t *)kly_stream_chunk(d->stream, chunk) + c->offset / 8,
		(uint32_t)kly_min(left, sizeof(first)));
	if (!still_same(d, chunk))
		return false;
	*ret_time = first.rec.type == (KLY_REC_NOTE | KLY_NOTE_TIME) ? first.payload
								     : c->base + first.rec.delta;
	return true;
}

void kly_drain_taken(struct kly_drain *d, uint32_t chunk, const struct kly_run_extent *extent)
{
	struct kly_drain_chunk *c = &d->chunks[chunk];
	uint64_t *at = &d->stream->words[chunk];

	c->offset += extent->bytes;
	c->given += extent->events;
	c->base = extent->base;
	c->thread = extent->thread;
	if (extent->damaged) {
		d->damaged++;
		c->offset = c->limit;
	}
	if (!c->whole || c->offset < c->limit)
		return;
	/* Full and taken: free, unless LOOP took it, or a new thread goes on in it or went on. */
	const struct kly_wire_chunk *head = kly_stream_chunk(d->stream, chunk);
	uint64_t word = kly_load_acquire(at);
	if (word & KLY_CHUNK_OWNED || kly_load_relaxed(&head->base) != c->filling ||
		kly_load_relaxed(&head->used) > c->offset)
		return;
	if (kly_cas_acq_rel(at, &word, 0)) {
		c->filling = 0;
		c->offset = c->limit = c->given = 0;
	}
}

void kly_drain_taken_late(struct kly_drain *d, uint32_t events)
{
	d->taken_before_overwritten += events;
}

void kly_drain_losses(const struct kly_drain *d, uint64_t ret[KLY_LOSS_CAUSES])
{
	kly_stream_losses(d->stream, ret);
	ret[KLY_LOSS_OVERWRITTEN] -= kly_min(ret[KLY_LOSS_OVERWRITTEN], d->taken_before_overwritten);
	ret[KLY_LOSS_DAMAGED] += d->damaged;
}
