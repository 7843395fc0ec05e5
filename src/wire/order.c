/* SPDX-License-Identifier: MIT */
/*
 * Three layers, from the bottom: the cursor, which finds the next event of a run; the heap of
 * runs; and what decides whether an event is given out, and at which time.
 *
 * The cursor stops in front of an event (to_event) and only then takes it (take_event), because
 * the run may have to wait until others have caught up. Notes on the way are taken at once.
 */
#include "wire/order.h"

#include "base/util.h"

#include <errno.h>
#include <string.h>

#define ROOM_FIRST 16u

/* The cursor. */

static KLY_COLD int damaged(struct kly_run *run)
{
	run->damaged = true;
	return -EBADMSG;
}

/* What follows the header has been checked to lie inside the run. A note of a kind from the future
 * is passed over: false only if it is known and can't be right. */
static bool take_note(struct kly_run *run, const struct kly_wire_rec *rec)
{
	const void *payload = run->bytes + run->offset + sizeof(*rec);

	switch (rec->type & KLY_REC_TYPE) {
	case KLY_NOTE_TIME:
		if (rec->len != sizeof(run->base))
			return false;
		memcpy(&run->base, payload, sizeof(run->base));
		break;
	case KLY_NOTE_THREAD:
		if (rec->len != sizeof(run->thread))
			return false;
		memcpy(&run->thread, payload, sizeof(run->thread));
		run->thread.name[sizeof(run->thread.name) - 1] = '\0';
		break;
	}
	run->offset += kly_rec_size(rec->len);
	return true;
}

/* Stops in front of the next event and copies its header. Results as kly_run_next(). */
static inline int to_event(struct kly_run *run, struct kly_wire_rec *rec)
{
	for (;;) {
		if (run->offset >= run->size)
			return 0;

		const uint32_t room = run->size - run->offset;
		if (KLY_UNLIKELY(room < sizeof(*rec)))
			return damaged(run);
		memcpy(rec, run->bytes + run->offset, sizeof(*rec));
		if (KLY_UNLIKELY(kly_rec_size(rec->len) > room || !(rec->type & KLY_REC_TYPE) ||
				 (rec->type & KLY_REC_RESERVED)))
			return damaged(run);
		if (KLY_LIKELY(!(rec->type & KLY_REC_NOTE)))
			return 1;
		if (!take_note(run, rec))
			return damaged(run);
	}
}

static inline void take_event(
	struct kly_run *run, const struct kly_wire_rec *rec, struct kly_event *event)
{
	event->ticks = run->base + rec->delta;
	event->address = rec->where & KLY_REC_ADDRESS;
	event->type = rec->type & KLY_REC_TYPE;
	event->flags = rec->type & KLY_REC_TRUNCATED ? KLY_EVENT_TRUNCATED : 0;
	event->cpu = (uint16_t)(rec->where >> 48);
	event->len = rec->len;
	event->data = run->bytes + run->offset + sizeof(*rec);
	event->thread = &run->thread;
	run->offset += kly_rec_size(rec->len);
}

int kly_run_next(struct kly_run *run, struct kly_event *event)
{
	struct kly_wire_rec rec;
	const int r = to_event(run, &rec);

	if (r > 0)
		take_event(run, &rec, event);
	return r;
}

void kly_run_measure(const struct kly_run *run, struct kly_run_extent *extent)
{
	struct kly_run cursor = *run;
	struct kly_event event;

	*extent = (struct kly_run_extent){0};
	while (kly_run_next(&cursor, &event) > 0) {
		if (!extent->events++)
			extent->first = event.ticks;
		extent->last = event.ticks;
	}
	extent->bytes = cursor.offset - run->offset;
	extent->base = cursor.base;
	extent->thread = cursor.thread;
	extent->damaged = cursor.damaged;
}

/* The heap. Behind the entries stand two more that are later than all, so that the children of
 * any entry, and those of the top, can be compared without asking whether they exist. */

#define SENTINELS 2u
static const struct kly_order_entry sentinel = {.time = UINT64_MAX};

static inline void set_limit(struct kly_order *order)
{
	order->limit = kly_min(order->heap[1].time, order->heap[2].time);
}

/* Puts an entry where it belongs below the hole at the top. */
static inline void sift_down(struct kly_order *order, struct kly_order_entry entry)
{
	struct kly_order_entry *heap = order->heap;
	uint32_t hole = 0;

	for (uint32_t child = 1; child < order->count; child = 2 * hole + 1) {
		child += heap[child + 1].time < heap[child].time;
		if (entry.time <= heap[child].time)
			break;
		heap[hole] = heap[child];
		hole = child;
	}
	heap[hole] = entry;
	set_limit(order);
}

static inline void move_top(struct kly_order *order, uint64_t time)
{
	sift_down(order, (struct kly_order_entry){.time = time, .run = order->heap[0].run});
}

static void drop_top(struct kly_order *order)
{
	struct kly_run *run = order->heap[0].run;

	const struct kly_order_entry moved = order->heap[--order->count];
	order->heap[order->count] = sentinel;
	if (order->count)
		sift_down(order, moved);
	order->source->unload(order->context, run);
}

static void drop_damaged_top(struct kly_order *order)
{
	order->damaged++;
	order->suspended = false; /* the START may be in what can't be read */
	drop_top(order);
}

static bool load_top(struct kly_order *order)
{
	struct kly_run *run = order->heap[0].run;

	if (order->source->load(order->context, run) < 0) {
		drop_damaged_top(order);
		return false;
	}
	run->thread.name[sizeof(run->thread.name) - 1] = '\0';
	run->loaded = true;
	return true;
}

void kly_order_init(struct kly_order *order, const struct kly_order_source *source, void *context)
{
	*order = (struct kly_order){.source = source, .context = context, .limit = UINT64_MAX};
}

void kly_order_fini(struct kly_order *order)
{
	while (order->count)
		order->source->unload(order->context, order->heap[--order->count].run);
	free(order->heap);
	order->heap = NULL;
	order->room = 0;
}

int kly_order_add(struct kly_order *order, struct kly_run *run)
{
	if (order->count == order->room) {
		const uint32_t room = order->room ? 2 * order->room : ROOM_FIRST;
		void *heap = reallocarray(order->heap, room + SENTINELS, sizeof(*order->heap));
		if (!heap)
			return -ENOMEM;
		order->heap = heap;
		for (uint32_t i = order->count; i < room + SENTINELS; i++)
			order->heap[i] = sentinel;
		order->room = room;
	}

	uint32_t hole = order->count++;
	while (hole && run->first < order->heap[(hole - 1) / 2].time) {
		order->heap[hole] = order->heap[(hole - 1) / 2];
		hole = (hole - 1) / 2;
	}
	order->heap[hole] = (struct kly_order_entry){.time = run->first, .run = run};
	set_limit(order);
	return 0;
}

/* What is given out. */

static void suspend(struct kly_order *order, const struct kly_event *event)
{
	int32_t automatic = 0;

	if (event->len == sizeof(automatic))
		memcpy(&automatic, event->data, sizeof(automatic));
	order->suspended = true;
	order->full = automatic != 0;
	order->stopped = event->ticks;
}

static void resume(struct kly_order *order, const struct kly_event *event)
{
	order->suspended = false;
	order->started = event->ticks;
}

/* Between a STOP and the next START by its time; also if it comes late, when the START was given. */
static inline bool is_outside(const struct kly_order *order, const struct kly_event *event)
{
	return order->suspended ||
	       (event->ticks < order->started && event->ticks > order->stopped);
}

static inline bool passes(struct kly_order *order, const struct kly_event *event)
{
	if (KLY_UNLIKELY(event->ticks <= order->horizon) && order->horizon) {
		order->suspended = false; /* the START may be among what is missing */
		order->dropped_old++;
		return false;
	}
	if (event->type == KLY_TYPE_START)
		resume(order, event);
	else if (event->type == KLY_TYPE_STOP)
		suspend(order, event);
	else if (KLY_UNLIKELY(is_outside(order, event)) && event->type >= KLY_TYPE_UNNAMED) {
		*(order->full ? &order->dropped_full : &order->dropped_stopped) += 1;
		return false;
	}
	return true;
}

static inline void give(struct kly_order *order, struct kly_event *event)
{
	if (KLY_UNLIKELY(event->ticks < order->last)) {
		event->ticks = order->last;
		event->flags |= KLY_EVENT_LATE;
		order->late++;
	}
	order->last = event->ticks;
	order->given++;
}

int kly_order_next(struct kly_order *order, uint64_t until, struct kly_event *event)
{
	while (order->count) {
		struct kly_run *run = order->heap[0].run;

		if (KLY_UNLIKELY(!run->loaded)) {
			if (order->heap[0].time > until)
				return 0;
			if (!load_top(order))
				continue;
		}

		struct kly_wire_rec rec;
		const int r = to_event(run, &rec);
		if (KLY_UNLIKELY(r < 0)) {
			drop_damaged_top(order);
			continue;
		}
		if (KLY_UNLIKELY(r == 0)) {
			drop_top(order);
			continue;
		}

		const uint64_t ticks = run->base + rec.delta;
		if (ticks > order->limit) {
			move_top(order, ticks);
			continue;
		}
		if (KLY_UNLIKELY(ticks > until))
			return 0;

		take_event(run, &rec, event);
		run->given++;
		if (KLY_LIKELY(passes(order, event))) {
			give(order, event);
			return 1;
		}
	}
	return 0;
}
