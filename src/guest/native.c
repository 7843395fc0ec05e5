/* SPDX-License-Identifier: MIT */
/*
 * Streams of the own process: <kilroy/trace.h>. A stream is a memfd that is mapped and closed, its
 * control and its reader.
 */
#include "base/timeline.h"
#include "core/fence.h"
#include "core/reader.h"
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
#define SNAPSHOTS_A_SECOND 1000
#define SNAPSHOTS_MAX 4096 /* then the old ones are forgotten: reading does not go back */

struct kilroy_stream {
	uint32_t pid; /* of the process whose it is */
	struct kly_stream *stream;
	struct kly_control control; /* under lock */
	pthread_mutex_t lock;
	struct kly_reader reader; /* its caller's order, as the header says */
	struct kly_timeline timeline;
	uint64_t snapshot_ticks;
	struct kly_wire_thread thread;
	struct kilroy_event event;
};

static bool is_ours(const struct kilroy_stream *s)
{
	return s && kly_process.ours.alive && s->pid == kly_process.pid;
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

static int make_stream(const struct kly_stream_options *options, struct kly_stream **ret)
{
	struct kly_stream *s = kly_process_new_stream();

	if (!s)
		return -ENOMEM;
	kly_cleanup(kly_closep) int fd = memfd_create("kilroy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = fd < 0 ? -errno : kly_stream_create(fd, options, s);
	if (r < 0) {
		(void)munmap(s, sizeof(*s));
		return r;
	}
	(void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	s->strong |= kly_process.strong;
	*ret = s;
	return 0;
}

static struct kly_instant instant_of(const struct kly_wire_snapshot *s)
{
	return (struct kly_instant){s->ticks, s->monotonic_ns, s->boottime_ns, s->realtime_ns};
}

/* Ticks of events up to now can be converted exactly when a snapshot from after them is there. */
static void take_snapshot(struct kilroy_stream *s)
{
	uint64_t step = s->stream->head->ticks_per_second / SNAPSHOTS_A_SECOND;
	struct kly_wire_snapshot now;

	if (s->reader.drain.until - s->snapshot_ticks < step)
		return;
	kly_clock_snapshot(s->stream->clock, &now);
	s->snapshot_ticks = now.ticks;
	const struct kly_instant instant = instant_of(&now);
	if (s->timeline.count >= SNAPSHOTS_MAX)
		s->timeline.count = 1;
	(void)kly_timeline_add(&s->timeline, &instant); /* no memory: less exact */
}

static void free_handle(struct kilroy_stream *s)
{
	kly_timeline_fini(&s->timeline);
	free(s);
}

static int begin(struct kilroy_stream *s)
{
	const struct kly_target target = kly_process_target();
	const struct kly_instant created = instant_of(&s->stream->head->created);

	kly_timeline_init(&s->timeline, s->stream->head->ticks_per_second);
	int r = kly_timeline_add_creation(&s->timeline, &created);
	if (r < 0)
		return r;
	s->snapshot_ticks = created.ticks;
	r = kly_control_init(&s->control, &target, s->stream);
	if (r < 0)
		return r;
	kly_process_put_place(s->control.place, s->stream);
	r = kly_reader_init(&s->reader, s->stream, &s->control);
	if (r < 0) {
		kly_control_fini(&s->control);
		kly_process_drop_place(s->control.place);
		s->stream = NULL;
	}
	return r;
}

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
	if (!kly_process_ready())
		return -ENOMEM;
	struct kilroy_stream *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->pid = kly_process.pid;
	(void)pthread_mutex_init(&s->lock, NULL);
	const struct kly_stream_options made = {
		.name = o->name ? o->name : program_invocation_short_name,
		.min_bytes = o->stream_bytes,
		.max_data = o->max_data,
		.policy = o->policy,
		.flags = o->flags | (kly_fence_available() ? 0 : KLY_STREAM_STRONG),
		.keep = keep,
	};
	r = make_stream(&made, &s->stream);
	if (r == 0)
		r = begin(s);
	if (r < 0) {
		if (s->stream) {
			kly_stream_unmap(s->stream);
			(void)munmap(s->stream, sizeof(*s->stream));
		}
		free_handle(s);
		return r;
	}
	*ret_stream = s;
	return 0;
}

KLY_API int kilroy_stream_start(struct kilroy_stream *s)
{
	if (!is_ours(s))
		return -EINVAL;
	(void)pthread_mutex_lock(&s->lock);
	s->reader.hold = false;
	int r = kly_control_start(&s->control, __builtin_return_address(0));
	(void)pthread_mutex_unlock(&s->lock);
	return r;
}

KLY_API int kilroy_stream_stop(struct kilroy_stream *s)
{
	if (!is_ours(s))
		return -EINVAL;
	(void)pthread_mutex_lock(&s->lock);
	s->reader.hold = true;
	int r = kly_control_stop(&s->control, __builtin_return_address(0));
	(void)pthread_mutex_unlock(&s->lock);
	return r;
}

KLY_API int kilroy_stream_clear(struct kilroy_stream *s)
{
	if (!is_ours(s))
		return -EINVAL;
	return kly_reader_clear(&s->reader);
}

KLY_API void kilroy_stream_close(struct kilroy_stream *s)
{
	if (!s)
		return;
	if (!is_ours(s)) {
		free_handle(s); /* a child: the stream is its parent's, and not even mapped */
		return;
	}
	kly_control_fini(&s->control);
	kly_reader_fini(&s->reader);
	kly_process_drop_place(s->control.place);
	(void)pthread_mutex_destroy(&s->lock);
	free_handle(s);
}

static void fill(struct kilroy_stream *s, const struct kly_event *e)
{
	const char *name = "", *fields = "";

	(void)kly_registry_get(&kly_process.registry, e->type, &name, &fields);
	s->thread = *e->thread;
	s->event = (struct kilroy_event){
		.time_ns = kly_timeline_realtime(&s->timeline, e->ticks),
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
	r = kly_reader_next(&s->reader, &event);
	if (r == 0 && timeout_ns) {
		const struct timespec until = deadline(timeout_ns > 0 ? timeout_ns : 0);

		r = kly_reader_wait(&s->reader, timeout_ns > 0 ? &until : NULL, &event);
	}
	if (r <= 0)
		return r;
	take_snapshot(s);
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
	kly_reader_losses(&s->reader, lost);
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
		*ret_time_ns = kly_timeline_realtime(&s->timeline, ticks);
		return 0;
	case CLOCK_MONOTONIC:
		*ret_time_ns = kly_timeline_monotonic(&s->timeline, ticks);
		return 0;
	case CLOCK_BOOTTIME:
		*ret_time_ns = kly_timeline_boottime(&s->timeline, ticks);
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
