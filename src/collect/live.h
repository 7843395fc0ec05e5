/* SPDX-License-Identifier: MIT */
/*
 * A stream of the own process, or of another one, with what its controller needs: control, reader,
 * and a timeline that converts the ticks of events just read.
 *
 * The timeline gets a snapshot before each batch of events that a reader takes (N-38), so an event
 * lies between two of them; old ones are forgotten, since reading does not go back.
 */
#ifndef KLY_COLLECT_LIVE_H
#define KLY_COLLECT_LIVE_H

#include "base/timeline.h"
#include "core/reader.h"

struct kly_live {
	struct kly_stream *stream; /* of the process's place, or the caller's */
	struct kly_control control;
	struct kly_reader reader;
	struct kly_timeline timeline;
	uint64_t snapshot_ticks;
};

/* Makes a stream in memory for the own process. 0, -EINVAL, -ENOMEM, -ENOSPC, -EAGAIN. */
int kly_live_open(struct kly_live *l, const struct kly_stream_options *options);
/* Shuts it down. Threads may be in trace points, not in other calls on it. */
void kly_live_close(struct kly_live *l);

/* To be called after an event was read, before its time is converted. */
void kly_live_snapshot(struct kly_live *l);

#endif
