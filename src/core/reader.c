/* SPDX-License-Identifier: MIT */
#include "core/reader.h"
#include "core/fence.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NO_CHUNK UINT32_MAX

/* A run in the order, with room for a chunk's copy behind it. */
struct kly_piece {
	struct kly_run run; /* first: the order hands this back */
	uint32_t chunk;     /* NO_CHUNK: made up here */
	uint32_t bytes;     /* of a made-up one */
	uint64_t filling;   /* of the chunk, when it was copied */
	struct kly_piece *next;
	_Alignas(8) uint8_t copy[];
};

static struct kly_piece *get_piece(struct kly_reader *r, uint32_t chunk)
{
	struct kly_piece *p = r->spare;

	if (p)
		r->spare = p->next;
	else
		p = malloc(sizeof(*p) + r->drain.stream->chunk_bytes);
	if (p) {
		p->run = (struct kly_run){0};
		p->chunk = chunk;
	}
	return p;
}

static void put_piece(struct kly_reader *r, struct kly_piece *p)
{
	p->next = r->spare;
	r->spare = p;
}

static int queue_piece(struct kly_reader *r, struct kly_piece *p)
{
	int e = kly_order_add(&r->order, &p->run);

	if (e < 0)
		put_piece(r, p);
	return e;
}

/* What is below the horizon is incomplete; a START may be among it, so events count as running. */
static void raise_horizon(struct kly_reader *r)
{
	if (r->drain.horizon <= r->order.horizon)
		return;
	r->order.horizon = r->drain.horizon;
	r->raised = true;
	r->order.suspended = false;
}

static int queue_chunk(struct kly_reader *r, uint32_t chunk)
{
	struct kly_drain_chunk *c = &r->drain.chunks[chunk];
	uint64_t first;

	if (c->queued || c->offset >= c->limit)
		return 0;
	if (!kly_drain_peek(&r->drain, chunk, &first)) {
		raise_horizon(r);
		return 0;
	}
	struct kly_piece *p = get_piece(r, chunk);
	if (!p)
		return -ENOMEM;
	p->run.first = first;
	int e = queue_piece(r, p);
	c->queued = e == 0;
	return e;
}

static int load(void *context, struct kly_run *run)
{
	struct kly_reader *r = context;
	struct kly_piece *p = (struct kly_piece *)run;

	if (p->chunk == NO_CHUNK) {
		run->bytes = p->copy;
		run->size = p->bytes;
		run->base = run->first;
		return 0;
	}
	run->bytes = p->copy;
	run->size = 0; /* overwritten: a run without events */
	(void)kly_drain_copy(&r->drain, p->chunk, p->copy, run);
	p->filling = r->drain.chunks[p->chunk].filling;
	raise_horizon(r);
	return 0;
}

/* Rounds go on while a copy is in use: LOOP may have overwritten what it was made of. */
static void take(struct kly_reader *r, const struct kly_piece *p)
{
	const struct kly_run *run = &p->run;
	const struct kly_run_extent used = {
		.bytes = run->damaged ? run->size : run->offset,
		.events = run->given,
		.base = run->base,
		.thread = run->thread,
		.damaged = run->damaged,
	};

	if (r->drain.chunks[p->chunk].filling == p->filling)
		kly_drain_taken(&r->drain, p->chunk, &used);
	else
		kly_drain_taken_late(&r->drain, used.events);
}

static void unload(void *context, struct kly_run *run)
{
	struct kly_reader *r = context;
	struct kly_piece *p = (struct kly_piece *)run;
	uint32_t chunk = p->chunk;

	if (chunk != NO_CHUNK && run->loaded && run->size)
		take(r, p);
	put_piece(r, p);
	if (chunk == NO_CHUNK)
		return;
	r->drain.chunks[chunk].queued = false;
	(void)queue_chunk(r, chunk); /* no memory: the next round tries again */
}

int kly_reader_init(struct kly_reader *r, const struct kly_stream *s, struct kly_control *control)
{
	static const struct kly_order_source source = {load, unload};

	*r = (struct kly_reader){.control = control};
	int e = kly_drain_init(&r->drain, s);
	if (e < 0)
		return e;
	kly_order_init(&r->order, &source, r);
	r->order.suspended = true;
	return 0;
}

void kly_reader_fini(struct kly_reader *r)
{
	for (uint32_t i = 0; r->drain.chunks && i < r->drain.stream->chunk_count; i++)
		r->drain.chunks[i].limit = 0; /* nothing is queued again */
	kly_order_fini(&r->order);
	while (r->spare) {
		struct kly_piece *p = r->spare;

		r->spare = p->next;
		free(p);
	}
	kly_drain_fini(&r->drain);
}

/* Puts a START or STOP that nobody wrote between the events. */
static int make_up(struct kly_reader *r, uint16_t type, const void *data, uint16_t len,
	uint64_t ticks)
{
	struct kly_piece *p = get_piece(r, NO_CHUNK);

	if (!p)
		return -ENOMEM;
	struct kly_wire_rec *rec = (void *)p->copy;
	*rec = (struct kly_wire_rec){
		.type = type,
		.len = len,
		.where = (uint64_t)KLY_REC_NO_CPU << 48,
	};
	memcpy(rec + 1, data, len);
	p->bytes = kly_rec_size(len);
	p->run.first = ticks;
	return queue_piece(r, p);
}

/*
 * Called after a round. If the stop is not later than the round's time, all that was written before
 * it is in the order; a later one waits for the next round.
 */
static int stop_if_full(struct kly_reader *r)
{
	uint64_t word = kly_load_acquire(&r->drain.stream->shared->state);
	const int32_t automatic = 1;

	if (kly_state_of(word) != KLY_STATE_FULL || word == r->full_word ||
		kly_state_time(word) > r->drain.until)
		return 0;
	r->full_word = word;
	return make_up(r, KLY_TYPE_STOP, &automatic, sizeof(automatic), kly_state_time(word));
}

static int restart_if_empty(struct kly_reader *r)
{
	const struct kly_stream *s = r->drain.stream;
	uint64_t now = kly_stream_now(s);

	if (!r->full_word || !r->control || r->hold)
		return 0;
	if (!kly_control_restart(r->control, r->full_word, now))
		return 0;
	r->full_word = 0;
	return make_up(r, KLY_TYPE_START, s->shared->filter, sizeof(s->shared->filter), now);
}

static int look(struct kly_reader *r)
{
	kly_drain_round(&r->drain);
	raise_horizon(r);
	for (uint32_t i = 0; i < r->drain.ready_count; i++) {
		int e = queue_chunk(r, r->drain.ready[i]);
		if (e < 0)
			return e;
	}
	return stop_if_full(r);
}

/*
 * LOOP: OVERFLOW with the time of the first event that was lost, then RESUME with that of the first
 * one behind the loss, then that event.
 */

static void fill_told(struct kly_event *event, uint16_t type, uint64_t ticks)
{
	static const struct kly_wire_thread nobody;

	*event = (struct kly_event){
		.ticks = ticks, .type = type, .cpu = KLY_REC_NO_CPU, .thread = &nobody};
}

static bool lost_more(struct kly_reader *r)
{
	uint64_t lost[KLY_LOSS_CAUSES];

	r->raised = false;
	kly_reader_losses(r, lost);
	if (lost[KLY_LOSS_OVERWRITTEN] <= r->lost)
		return false;
	r->lost = lost[KLY_LOSS_OVERWRITTEN];
	return true;
}

static bool tell_next(struct kly_reader *r, struct kly_event *event)
{
	const struct kly_stream *s = r->drain.stream;

	if (r->to_tell == 2) {
		r->to_tell = 1;
		fill_told(event, KLY_TYPE_RESUME, r->held.ticks);
		if (!kly_stream_filters(s, KLY_TYPE_RESUME))
			return true;
	}
	r->to_tell = 0;
	*event = r->held;
	return true;
}

static bool tell_losses(struct kly_reader *r, struct kly_event *event)
{
	const struct kly_stream *s = r->drain.stream;
	uint64_t first = kly_exchange_acq_rel(&s->shared->first_lost, 0);

	r->held = *event;
	r->to_tell = 2;
	fill_told(event, KLY_TYPE_OVERFLOW, kly_min(kly_max(first, r->last), r->held.ticks));
	return !kly_stream_filters(s, KLY_TYPE_OVERFLOW) || tell_next(r, event);
}

static int next_in_order(struct kly_reader *r, struct kly_event *event)
{
	if (kly_order_next(&r->order, r->drain.until, event))
		return 1;
	int e = look(r);
	if (e < 0)
		return e;
	if (kly_order_next(&r->order, r->drain.until, event))
		return 1;
	return restart_if_empty(r);
}

int kly_reader_next(struct kly_reader *r, struct kly_event *event)
{
	if (r->to_tell)
		return tell_next(r, event);
	int e = next_in_order(r, event);
	if (e == 1 && r->tells_losses && r->raised && lost_more(r))
		(void)tell_losses(r, event);
	if (e == 1)
		r->last = event->ticks;
	return e;
}

static bool may_come(const struct kly_stream *s)
{
	return kly_state_of(kly_load_acquire(&s->shared->state)) == KLY_STATE_RUNNING;
}

int kly_reader_wait(struct kly_reader *r, const struct timespec *until, struct kly_event *event)
{
	const struct kly_stream *s = r->drain.stream;

	for (;;) {
		int e = kly_reader_next(r, event);
		if (e)
			return e;
		/* Announced before the last look: a writer that publishes after it wakes us. The
		 * last look of a stream that does not run comes after the look at its state. */
		kly_wait_announce(s);
		bool running = may_come(s);
		e = kly_reader_next(r, event);
		if (e || !running)
			return e;
		e = kly_wait(s, until);
		if (e == -ETIMEDOUT)
			return kly_reader_next(r, event);
		if (e < 0)
			return e;
	}
}

int kly_reader_clear(struct kly_reader *r)
{
	struct kly_event event;
	int e = look(r);

	if (e < 0)
		return e;
	while (kly_order_next(&r->order, r->drain.until, &event))
		;
	r->to_tell = 0;
	(void)lost_more(r);
	return restart_if_empty(r);
}

void kly_reader_losses(const struct kly_reader *r, uint64_t ret[KLY_LOSS_CAUSES])
{
	kly_drain_losses(&r->drain, ret);
	ret[KLY_LOSS_OVERWRITTEN] += r->order.dropped_old;
	ret[KLY_LOSS_FULL] += r->order.dropped_full;
}
