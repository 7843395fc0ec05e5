/* SPDX-License-Identifier: MIT */
/*
 * Taking records out of a live stream. One drain a stream; it is the stream's reader.
 *
 * A round looks at the stream once and finds out what is there and how far it may be trusted:
 *
 *   T = ordered time; barrier for all writers; wait for each lane in flight to move, 10 ms in all
 *   (a lane passed over is not waited for again until it moves, N-05);
 *   then, chunk by chunk, up to where it is filled
 *
 * All events up to T are then in reach, but for those of lanes passed over. Each chunk has a cursor
 * here; pieces are copied out of the chunk and handed on, and a full chunk that has been taken
 * whole is freed.
 *
 * Overwriting. In LOOP a chunk can be taken by a writer at any moment. Its base names the filling
 * and is changed before any record is; so a piece is good if the base is the same after the copy.
 * Shared memory is hostile: every number is copied, then bounded by the private geometry, and
 * records are parsed in the copy.
 */
#ifndef KLY_CORE_DRAIN_H
#define KLY_CORE_DRAIN_H

#include "core/stream.h"
#include "wire/order.h"

struct kly_drain_chunk {
	uint64_t filling; /* base of the chunk when first seen; 0 = nothing known */
	uint64_t base;    /* holds at offset, as does thread */
	uint32_t offset;  /* bytes from the chunk's start that were taken */
	uint32_t limit;   /* bytes that may be taken */
	uint32_t given;   /* events taken of this filling */
	bool whole;       /* the chunk is full: behind limit comes nothing */
	bool queued;      /* for the owner of the drain: a run for it exists */
	struct kly_wire_thread thread;
};

struct kly_drain {
	const struct kly_stream *stream;
	struct kly_drain_chunk *chunks; /* stream->chunk_count */
	uint32_t *passed_over;          /* words of lanes that were waited for in vain; 0 = none */
	bool *rested;                   /* lanes seen at rest since they were passed over */
	uint32_t *ready;                /* chunks with something to take */
	uint32_t ready_count;

	uint64_t until;   /* T of this round */
	uint64_t horizon; /* LOOP: events up to here are incomplete */
	/* Events taken from fillings that were overwritten later: the writers counted them as lost. */
	uint64_t taken_before_overwritten;
	uint64_t damaged; /* chunks given up because what they hold are no records */
};

int kly_drain_init(struct kly_drain *d, const struct kly_stream *stream);
void kly_drain_fini(struct kly_drain *d);

/* Looks at the stream. Afterwards `ready` lists the chunks in which offset < limit. */
void kly_drain_round(struct kly_drain *d);

/*
 * Copies what the chunk's cursor has in reach into buffer (at least chunk_bytes), as a run whose
 * base and thread are set. Bytes copied; 0: the filling was overwritten meanwhile, the cursor is
 * empty and the horizon has been raised.
 */
uint32_t kly_drain_copy(struct kly_drain *d, uint32_t chunk, void *buffer, struct kly_run *run);

/* The time of the first record in reach, without taking it. False: overwritten, as above. */
bool kly_drain_peek(struct kly_drain *d, uint32_t chunk, uint64_t *ret_time);

/* Moves the cursor behind what was copied, and frees the chunk if it was full and that was all. */
void kly_drain_taken(struct kly_drain *d, uint32_t chunk, const struct kly_run_extent *extent);

/* The same for a copy of a filling that the cursor has left meanwhile: its events were given. */
void kly_drain_taken_late(struct kly_drain *d, uint32_t events);

/* Losses by cause, as far as they are known now: what writers counted, without what was taken
 * before it was overwritten. */
void kly_drain_losses(const struct kly_drain *d, uint64_t ret[KLY_LOSS_CAUSES]);

#endif
