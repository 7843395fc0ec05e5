/* SPDX-License-Identifier: MIT */
/*
 * Steering a stream: the controller's side, in the traced process itself or in another one.
 *
 * START and STOP are records in a lane of the controller's own, with the time at which the state
 * changed; readers drop user events between a STOP and the next START, so the change is exact
 * although writers may be between check and record (N-19). One control is used by one thread at a
 * time.
 */
#ifndef KLY_CORE_CONTROL_H
#define KLY_CORE_CONTROL_H

#include "core/process.h"
#include "core/writer.h"

struct kly_control {
	struct kly_target target;
	struct kly_stream *stream;
	uint32_t place;
	struct kly_writer writer;
};

/* Puts the stream into the target's table. 0; -EAGAIN: no place; -ENOMEM. What target and stream
 * point to stays the caller's and must outlive the control. */
int kly_control_init(struct kly_control *c, const struct kly_target *target,
	struct kly_stream *stream);
/* Shuts the stream down: its state is dead, the target's bits are taken back. */
void kly_control_fini(struct kly_control *c);

/* 0 also if the stream is running, suspended or full already. caller: address to record. */
int kly_control_start(struct kly_control *c, const void *caller);
int kly_control_stop(struct kly_control *c, const void *caller);

/* The filter: a bit for each type, set = not recorded. A change while the stream runs is recorded,
 * and holds for all trace points that begin after the call. */
#define KLY_FILTER_WORDS (KLY_TYPES_MAX / 64)
void kly_control_get_filter(const struct kly_control *c, uint64_t ret[KLY_FILTER_WORDS]);
void kly_control_set_filter(
	struct kly_control *c, const uint64_t filter[KLY_FILTER_WORDS], const void *caller);

/* A stream that had filled up goes on, from `ticks`; for readers that have emptied it. */
bool kly_control_restart(struct kly_control *c, uint64_t full_word, uint64_t ticks);

#endif
