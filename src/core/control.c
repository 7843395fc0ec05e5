/* SPDX-License-Identifier: MIT */
#include "core/control.h"
#include "core/emit.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
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
static struct kly_wire_thread identity(const struct kly_control *c)
{
	struct kly_wire_thread self = {
		.pid = c->writer.thread.pid,
		.tid = (uint32_t)syscall(SYS_gettid),
		.pthread = (uint64_t)(uintptr_t)pthread_self(),
	};

	(void)prctl(PR_GET_NAME, self.name);
	return self;
}

static void put_record(struct kly_control *c, const struct kly_wire_thread *self, uint32_t type,
	const void *data, uint32_t len, const void *caller, uint64_t ticks)
{
	uint64_t where = ((uintptr_t)caller & KLY_REC_ADDRESS) | (uint64_t)KLY_REC_NO_CPU << 48;
	struct kly_writer *w = &c->writer;

	kly_lane_rename(w, c->stream, 0, self, kly_rec_size(len), ticks);
	void *to = kly_lane_begin(w, c->stream, 0, type, len, where, ticks);
	if (!to)
		return;
	memcpy(to, data, len);
	kly_lane_advance(&w->lanes[0].now, kly_rec_size(len), ticks);
}

/*
 * Changes the state from `from` and records it, in one flight: readers wait for the lane, so they
 * never give out an event behind the change without having seen the change.
 */
static void change(struct kly_control *c, enum kly_state from, enum kly_state to, uint32_t type,
	const void *data, size_t len, const void *caller)
{
	const struct kly_stream *s = c->stream;
	const struct kly_wire_thread self = identity(c);

	kly_lane_mark(&c->writer, 0);
	uint64_t ticks = kly_stream_now(s), seen = kly_load_acquire(&s->shared->state);

	if (to == KLY_STATE_RUNNING && kly_state_of(seen) == from)
		kly_max_acq_rel(&s->shared->started, ticks);
	if (kly_state_of(seen) == from &&
		kly_cas_acq_rel(&s->shared->state, &seen, kly_state_word(to, ticks)) &&
		!kly_stream_filters(s, type))
		put_record(c, &self, type, data, (uint32_t)len, caller, ticks);
	kly_lane_finish(&c->writer, s, 0);
}

static void read_filter(const struct kly_stream *s, uint64_t ret[KLY_FILTER_WORDS])
{
	for (size_t i = 0; i < KLY_FILTER_WORDS; i++)
		ret[i] = kly_load_acquire(&s->shared->filter[i]);
}

void kly_control_get_filter(const struct kly_control *c, uint64_t ret[KLY_FILTER_WORDS])
{
	read_filter(c->stream, ret);
}

void kly_control_set_filter(
	struct kly_control *c, const uint64_t filter[KLY_FILTER_WORDS], const void *caller)
{
	const struct kly_stream *s = c->stream;
	const struct kly_wire_thread self = identity(c);
	uint64_t both[2][KLY_FILTER_WORDS];

	read_filter(s, both[0]);
	memcpy(both[1], filter, sizeof(both[1]));
	kly_lane_mark(&c->writer, 0);
	uint64_t ticks = kly_stream_now(s);
	/* The change itself is judged by the old filter. */
	if (kly_state_of(kly_load_acquire(&s->shared->state)) == KLY_STATE_RUNNING &&
		!kly_stream_filters(s, KLY_TYPE_FILTER))
		put_record(c, &self, KLY_TYPE_FILTER, both, sizeof(both), caller, ticks);
	for (size_t i = 0; i < KLY_FILTER_WORDS; i++)
		kly_store_release(&s->shared->filter[i], filter[i]);
	kly_store_release(&s->shared->explicit_filter, 1);
	kly_lane_finish(&c->writer, s, 0);
	kly_target_enable(&c->target, c->place, s);
}

int kly_control_start(struct kly_control *c, const void *caller)
{
	uint64_t filter[KLY_FILTER_WORDS];

	read_filter(c->stream, filter);
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
	kly_max_acq_rel(&c->stream->shared->started, ticks);
	return kly_cas_acq_rel(&c->stream->shared->state, &full_word,
		kly_state_word(KLY_STATE_RUNNING, ticks));
}
