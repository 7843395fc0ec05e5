/* SPDX-License-Identifier: MIT */
/* Streams of the own process: <kilroy/trace.h>. */
#include "collect/live.h"
#include "kilroy/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SECOND_NS 1000000000

struct kilroy_stream {
	uint32_t pid; /* of the process whose it is */
	struct kly_live live;
	pthread_mutex_t lock; /* of live.control; who reads is the caller's to order */
	struct kly_wire_thread thread;
	struct kilroy_event event;
};

static bool is_ours(const struct kilroy_stream *s)
{
	return s && kly_load_acquire(&kly_process.ours.alive) && s->pid == kly_process.pid;
}

static int gather_patterns(const char *const *patterns, char keep[KLY_KEEP_BYTES])
{
	size_t used = 0;

	for (; patterns && *patterns; patterns++) {
		size_t len = strlen(*patterns) + 1;

		if (len == 1 || len > KLY_KEEP_BYTES - 1 - used)
			return -EINVAL;
		memcpy(keep + used, *patterns, len);
		used += len;
	}
	return 0;
}

static int check_options(const struct kilroy_stream_options *o)
{
	if (o->size != sizeof(*o) || o->policy > KILROY_UNTIL_FULL || o->unused0 ||
		o->flags & ~(KILROY_RELAXED | KILROY_STRONG) || o->max_data > KLY_DATA_MAX)
		return -EINVAL;
	return o->name && strlen(o->name) > 255 ? -EINVAL : 0;
}

static_assert((int)KILROY_LOOP == (int)KLY_POLICY_LOOP &&
		      (int)KILROY_UNTIL_FULL == (int)KLY_POLICY_UNTIL_FULL,
	"one is used as the other");
static_assert(KILROY_RELAXED == KLY_STREAM_RELAXED && KILROY_STRONG == KLY_STREAM_STRONG, "the same");
static_assert(KILROY_EVENT_TRUNCATED == KLY_EVENT_TRUNCATED &&
		      KILROY_EVENT_LATE == KLY_EVENT_LATE, "the same");
static_assert((int)KILROY_LOSS_DISK == (int)KLY_LOSS_DISK, "the same");

KLY_API int kilroy_stream_create(
	const struct kilroy_stream_options *options, struct kilroy_stream **ret_stream)
{
	static const struct kilroy_stream_options defaults = {.size = sizeof(defaults)};
	const struct kilroy_stream_options *o = options ? options : &defaults;
	char keep[KLY_KEEP_BYTES] = {0};

	int r = check_options(o);
	if (r == 0)
		r = gather_patterns(o->keep, keep);
	if (r < 0)
		return r;
	struct kilroy_stream *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	const struct kly_stream_options made = {
		.name = o->name ? o->name : program_invocation_short_name,
		.min_bytes = o->stream_bytes,
		.max_data = o->max_data,
		.policy = o->policy,
		.flags = o->flags,
		.keep = keep,
	};
	r = kly_live_open(&s->live, &made);
	if (r < 0) {
		free(s);
		return r;
	}
	s->pid = kly_process.pid;
	(void)pthread_mutex_init(&s->lock, NULL);
	*ret_stream = s;
	return 0;
}

KLY_API int kilroy_stream_start(struct kilroy_stream *s)
{
	if (!is_ours(s))
		return -EINVAL;
	(void)pthread_mutex_lock(&s->lock);
	s->live.reader.hold = false;
	int r = kly_control_start(&s->live.control, __builtin_return_address(0));
	(void)pthread_mutex_unlock(&s->lock);
	return r;
}

KLY_API int kilroy_stream_stop(struct kilroy_stream *s)
{
	if (!is_ours(s))
		return -EINVAL;
	(void)pthread_mutex_lock(&s->lock);
	s->live.reader.hold = true;
	int r = kly_control_stop(&s->live.control, __builtin_return_address(0));
	(void)pthread_mutex_unlock(&s->lock);
	return r;
}

KLY_API int kilroy_stream_clear(struct kilroy_stream *s)
{
	if (!is_ours(s))
		return -EINVAL;
	return kly_reader_clear(&s->live.reader);
}

KLY_API void kilroy_stream_close(struct kilroy_stream *s)
{
	if (!s)
		return;
	if (is_ours(s)) {
		kly_live_close(&s->live);
		(void)pthread_mutex_destroy(&s->lock);
	} /* else a child: the stream is its parent's, and not even mapped */
	free(s);
}

static void fill(struct kilroy_stream *s, const struct kly_event *e)
{
	const char *name = "", *fields = "";

	(void)kly_registry_get(&kly_process.registry, e->type, &name, &fields);
	s->thread = *e->thread;
	s->event = (struct kilroy_event){
		.time_ns = kly_timeline_realtime(&s->live.timeline, e->ticks),
		.ticks = e->ticks,
		.address = e->address,
		.type = e->type,
		.flags = e->flags,
		.pid = (int32_t)e->thread->pid,
		.tid = (int32_t)e->thread->tid,
		.cpu = e->cpu == KLY_REC_NO_CPU ? -1 : e->cpu,
		.len = e->len,
		.data = e->data,
		.name = name,
		.fields = fields,
		.thread = s->thread.name,
	};
}

static struct timespec deadline(int64_t timeout_ns)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += timeout_ns / SECOND_NS;
	t.tv_nsec += timeout_ns % SECOND_NS;
	if (t.tv_nsec >= SECOND_NS) {
		t.tv_sec++;
		t.tv_nsec -= SECOND_NS;
	}
	return t;
}

KLY_API int kilroy_stream_read(
	struct kilroy_stream *s, int64_t timeout_ns, const struct kilroy_event **ret_event)
{
	struct kly_event event;
	int r;

	if (!is_ours(s))
		return -EINVAL;
	r = kly_reader_next(&s->live.reader, &event);
	if (r == 0 && timeout_ns) {
		const struct timespec until = deadline(timeout_ns > 0 ? timeout_ns : 0);

		r = kly_reader_wait(&s->live.reader, timeout_ns > 0 ? &until : NULL, &event);
	}
	if (r <= 0)
		return r;
	kly_live_snapshot(&s->live);
	fill(s, &event);
	*ret_event = &s->event;
	return 1;
}

static const char *const loss_names[KLY_LOSS_CAUSES] = {
	[KLY_LOSS_FULL] = "full",
	[KLY_LOSS_OVERWRITTEN] = "overwritten",
	[KLY_LOSS_DEPTH] = "depth",
	[KLY_LOSS_SLOTS] = "slots",
	[KLY_LOSS_MEMORY] = "memory",
	[KLY_LOSS_DIED] = "died",
	[KLY_LOSS_DAMAGED] = "damaged",
	[KLY_LOSS_DISK] = "disk",
};

KLY_API const char *kilroy_loss_name(int cause)
{
	return cause >= 0 && cause < KLY_LOSS_CAUSES ? loss_names[cause] : NULL;
}

KLY_API int kilroy_stream_losses(const struct kilroy_stream *s, uint64_t *ret_counts, unsigned count)
{
	uint64_t lost[KLY_LOSS_CAUSES];

	if (!is_ours(s))
		return -EINVAL;
	kly_reader_losses(&s->live.reader, lost);
	for (unsigned i = 0; i < count; i++)
		ret_counts[i] = i < KLY_LOSS_CAUSES ? lost[i] : 0;
	return KLY_LOSS_CAUSES;
}

KLY_API int kilroy_stream_time(
	const struct kilroy_stream *s, uint64_t ticks, int clock_id, uint64_t *ret_time_ns)
{
	if (!is_ours(s))
		return -EINVAL;
	switch (clock_id) {
	case CLOCK_REALTIME:
		*ret_time_ns = kly_timeline_realtime(&s->live.timeline, ticks);
		return 0;
	case CLOCK_MONOTONIC:
		*ret_time_ns = kly_timeline_monotonic(&s->live.timeline, ticks);
		return 0;
	case CLOCK_BOOTTIME:
		*ret_time_ns = kly_timeline_boottime(&s->live.timeline, ticks);
		return 0;
	}
	return -EINVAL;
}

KLY_API const char *kilroy_stream_type_name(const struct kilroy_stream *s, uint32_t type)
{
	const char *name;

	(void)s;
	return kly_registry_get(&kly_process.registry, type, &name, NULL) ? name : NULL;
}

KLY_API const char *kilroy_stream_type_fields(const struct kilroy_stream *s, uint32_t type)
{
	const char *fields;

	(void)s;
	return kly_registry_get(&kly_process.registry, type, NULL, &fields) ? fields : NULL;
}
