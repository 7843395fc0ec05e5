/* SPDX-License-Identifier: MIT */
#include "core/control.h"
#include "core/emit.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int kly_control_init(struct kly_control *c, const struct kly_target *target,
	struct kly_stream *stream)
{
	struct kly_wire_thread self = {
		.pid = (uint32_t)getpid(),
		.tid = (uint32_t)getpid() | KLY_OWNER_CONTROLLER,
	};

	*c = (struct kly_control){.target = *target, .stream = stream};
	int r = kly_writer_attach(&c->writer, stream, &self);
	if (r < 0)
		return r;
	r = kly_target_add(target, stream->id);
	if (r < 0) {
		kly_writer_detach(&c->writer, stream);
		return r;
	}
	c->place = (uint32_t)r;
	return 0;
}

static void set_state(const struct kly_stream *s, enum kly_state state)
{
	uint64_t seen = kly_load_acquire(&s->shared->state);

	while (!kly_cas_acq_rel(&s->shared->state, &seen, kly_state_word(state, kly_stream_now(s))))
		;
}

void kly_control_fini(struct kly_control *c)
{
	if (!c->stream)
		return;
	kly_target_remove(&c->target, c->place);
	set_state(c->stream, KLY_STATE_DEAD);
	kly_writer_detach(&c->writer, c->stream);
	kly_wake(c->stream);
	c->stream = NULL;
}

/* Who the record is by: the thread that made the call. */
static void put_identity(struct kly_control *c)
{
	c->writer.thread.tid = (uint32_t)syscall(SYS_gettid);
}

static void put_record(struct kly_control *c, uint32_t type, const void *data, uint32_t len,
	uint64_t where, uint64_t ticks)
{
	void *to = kly_lane_begin(&c->writer, c->stream, 0, type, len, where, ticks);

	if (!to)
		return;
	memcpy(to, data, len);
	kly_lane_advance(&c->writer.lanes[0].now, kly_rec_size(len), ticks);
}

/*
 * Changes the state from `from` and records it, in one flight: readers wait for the lane, so they
 * never give out an event behind the change without having seen the change.
 */
static void change(struct kly_control *c, enum kly_state from, enum kly_state to, uint32_t type,
	const void *data, size_t len, const void *caller)
{
	const struct kly_stream *s = c->stream;
	struct kly_writer *w = &c->writer;
	uint64_t where = ((uintptr_t)caller & KLY_REC_ADDRESS) | (uint64_t)KLY_REC_NO_CPU << 48;

	put_identity(c);
	kly_lane_mark(w, 0);
	uint64_t ticks = kly_stream_now(s), seen = kly_load_acquire(&s->shared->state);

	if (kly_state_of(seen) == from &&
		kly_cas_acq_rel(&s->shared->state, &seen, kly_state_word(to, ticks)) &&
		!kly_stream_filters(s, type))
		put_record(c, type, data, (uint32_t)len, where, ticks);
	kly_lane_finish(w, s, 0);
}

int kly_control_start(struct kly_control *c, const void *caller)
{
	uint64_t filter[KLY_TYPES_MAX / 64];

	for (size_t i = 0; i < KLY_COUNT(filter); i++)
		filter[i] = kly_load_acquire(&c->stream->shared->filter[i]);
	change(c, KLY_STATE_SUSPENDED, KLY_STATE_RUNNING, KLY_TYPE_START, filter, sizeof(filter),
		caller);
	kly_target_enable(&c->target, c->place, c->stream);
	return 0;
}

int kly_control_stop(struct kly_control *c, const void *caller)
{
	const int32_t by_call = 0;

	change(c, KLY_STATE_RUNNING, KLY_STATE_SUSPENDED, KLY_TYPE_STOP, &by_call, sizeof(by_call),
		caller);
	kly_target_disable(&c->target, c->place);
	kly_wake(c->stream);
	return 0;
}

bool kly_control_restart(struct kly_control *c, uint64_t full_word, uint64_t ticks)
{
	return kly_cas_acq_rel(&c->stream->shared->state, &full_word,
		kly_state_word(KLY_STATE_RUNNING, ticks));
}
