/* SPDX-License-Identifier: MIT */
#include "collect/live.h"
#include "core/fence.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SNAPSHOTS_A_SECOND 1000
#define SNAPSHOTS_MAX 4096

/* A memfd, mapped and closed. */
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

static int begin_timeline(struct kly_live *l)
{
	const struct kly_instant created = instant_of(&l->stream->head->created);

	kly_timeline_init(&l->timeline, l->stream->head->ticks_per_second);
	l->snapshot_ticks = created.ticks;
	return kly_timeline_add_creation(&l->timeline, &created);
}

static int begin(struct kly_live *l)
{
	const struct kly_target target = kly_process_target();

	int r = begin_timeline(l);
	if (r < 0)
		return r;
	r = kly_reader_init(&l->reader, l->stream, &l->control);
	if (r < 0)
		return r;
	return kly_control_init(&l->control, &target, l->stream);
}

int kly_live_open(struct kly_live *l, const struct kly_stream_options *options)
{
	struct kly_stream_options made = *options;

	*l = (struct kly_live){0};
	if (!kly_process_ready())
		return -ENOMEM;
	made.flags |= kly_fence_available() ? 0 : KLY_STREAM_STRONG;
	int r = make_stream(&made, &l->stream);
	if (r == 0)
		r = begin(l);
	if (r < 0) {
		if (l->reader.drain.stream)
			kly_reader_fini(&l->reader);
		if (l->stream) {
			kly_stream_unmap(l->stream);
			(void)munmap(l->stream, sizeof(*l->stream));
		}
		kly_timeline_fini(&l->timeline);
		return r;
	}
	kly_process_put_place(l->control.place, l->stream);
	return 0;
}

void kly_live_close(struct kly_live *l)
{
	uint32_t place = l->control.place;

	kly_control_fini(&l->control);
	kly_reader_fini(&l->reader);
	kly_process_drop_place(place);
	kly_timeline_fini(&l->timeline);
}

void kly_live_snapshot(struct kly_live *l)
{
	uint64_t step = l->stream->head->ticks_per_second / SNAPSHOTS_A_SECOND;
	struct kly_wire_snapshot now;

	if (l->reader.drain.until - l->snapshot_ticks < step)
		return;
	kly_clock_snapshot(l->stream->clock, &now);
	l->snapshot_ticks = now.ticks;
	const struct kly_instant instant = instant_of(&now);
	if (l->timeline.count >= SNAPSHOTS_MAX)
		l->timeline.count = 1;
	(void)kly_timeline_add(&l->timeline, &instant); /* no memory: less exact */
}
