/* SPDX-License-Identifier: MIT */
/*
 * Events of a live stream, one by one, in order: a drain (drain.h) feeding an order (wire/order.h).
 *
 * Each chunk with something to read is one run. Runs are copied out when they come to the top, and
 * give their chunk back when they are used up; what the chunk has got meanwhile becomes the next
 * run. A stream that had filled up (UNTIL_FULL, FLUSH) goes on by itself when it has been read to
 * its end; the STOP and START of that are made up here, so they need no room (N-19, N-20).
 *
 * One reader a stream, used by one thread at a time.
 */
#ifndef KLY_CORE_READER_H
#define KLY_CORE_READER_H

#include "core/control.h"
#include "core/drain.h"

#include <time.h>

struct kly_piece;

struct kly_reader {
	struct kly_drain drain;
	struct kly_order order;
	struct kly_control *control; /* NULL: a stream that filled up stays so */
	struct kly_piece *spare;
	uint64_t full_word; /* the state word for which a STOP was made up; 0 = none */
	bool hold;          /* a stream that filled up is not to go on */

	/* An event that waits behind the OVERFLOW and RESUME that tell of a loss before it. */
	bool tells_losses; /* the owner wants these two */
	bool raised;       /* the horizon has risen since the last look at the losses */
	uint8_t to_tell;   /* 2: OVERFLOW given, RESUME is next; 1: then the event */
	uint64_t lost;     /* overwritten events told of */
	uint64_t last;     /* time of the last event given */
	struct kly_event held;
};

/* control, if not NULL, is used in kly_reader_next() and must outlive the reader. */
int kly_reader_init(struct kly_reader *r, const struct kly_stream *s, struct kly_control *control);
void kly_reader_fini(struct kly_reader *r);

/* 1, *event is set, good until the next call; 0: none now; -ENOMEM. */
int kly_reader_next(struct kly_reader *r, struct kly_event *event);

/* As kly_reader_next(), but waits for an event until then (CLOCK_REALTIME; NULL = without limit),
 * unless the stream does not run. 0 also when the time is up; -EINTR. */
int kly_reader_wait(struct kly_reader *r, const struct timespec *until, struct kly_event *event);

/* Throws away all events up to now, without counting them as lost. 0 or -ENOMEM. */
int kly_reader_clear(struct kly_reader *r);

/* Losses by cause, with what the reader itself had to leave out. */
void kly_reader_losses(const struct kly_reader *r, uint64_t ret[KLY_LOSS_CAUSES]);

#endif
