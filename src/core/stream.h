/* SPDX-License-Identifier: MIT */
/*
 * A stream as one process has it mapped.
 *
 * The geometry is copied out of the shared header once, checked, and from then on trusted: no later
 * store into the shared memory can make a writer write elsewhere (N-03). The life of the memory:
 * kly_stream_create() makes and reserves it, kly_stream_map() maps it elsewhere,
 * kly_stream_unmap() takes the mapping away; the object goes when the last mapping has gone and
 * its file, if it has one, is unlinked.
 *
 * Who may call what at once: everything here is safe against writers in any process. create, map
 * and unmap of one struct need their caller's order.
 */
#ifndef KLY_CORE_STREAM_H
#define KLY_CORE_STREAM_H

#include "base/atomic.h"
#include "base/util.h"
#include "core/clock.h"
#include "wire/stream.h"

#include <stdbool.h>

#define KLY_STREAM_BYTES_MAX (UINT64_C(8) << 30) /* that an owner may ask for */

struct kly_stream {
	/* What the writer needs at every event comes first. */
	uint64_t *chunks; /* the first chunk; positions count from here in units of 8 bytes */
	struct kly_wire_stream_shared *shared;
	enum kly_stamp stamp;
	uint64_t serial; /* no two mappings that a process has made have the same; not 0 */
	uint32_t max_data;
	bool strong; /* this process's writers fence for themselves */
	bool own;    /* made here, and no other process writes into it */

	uint32_t chunk_bytes, chunk_count, slot_count, base_chunks;
	enum kly_policy policy;
	enum kly_clock clock;
	uint64_t id, registry_id;
	uint64_t *words;             /* of the chunks */
	uint8_t *lanes;              /* of the slots */
	struct kly_wire_slot *slots;
	const struct kly_wire_stream *head;
	size_t total_bytes;
};

struct kly_stream_options {
	const char *name;       /* cut to 255 bytes; NULL = "" */
	uint64_t id;            /* 0 = choose one */
	uint64_t registry_id;   /* 0 = none: the creator is the only process */
	uint64_t min_bytes;     /* bytes of events kept without loss; 0 = 1 MiB */
	uint32_t max_data;      /* 0 = 4096; at most KLY_DATA_MAX */
	enum kly_policy policy; /* 0 = LOOP */
	uint32_t flags;         /* KLY_STREAM_* */
	uint32_t slot_count;    /* 0 = 4096: how many threads may write at once */
	const char *keep;       /* KLY_KEEP_BYTES of patterns, each with a NUL; NULL = all */
	uint32_t creator_namespace; /* identify the creator to who cleans up after it; 0: untold */
	uint64_t creator_start;
};

/*
 * Makes a stream in fd's file, which must be empty and stays the caller's, and reserves its least
 * memory. 0, or -EINVAL: an option is out of range; -ENOMEM, -ENOSPC: no room for it.
 */
int kly_stream_create(int fd, const struct kly_stream_options *options, struct kly_stream *ret);

/* Maps a stream that somebody made. 0, -EBADMSG: that is no stream that could be used, -errno. */
int kly_stream_map(int fd, struct kly_stream *ret);
void kly_stream_unmap(struct kly_stream *stream);

/* Bytes of memory that a stream of this kind reserves at creation; for messages. */
uint64_t kly_stream_reserve_bytes(const struct kly_stream_options *options);

static inline uint64_t kly_stream_now(const struct kly_stream *stream)
{
	return kly_clock_stamp(stream->stamp == KLY_STAMP_GETTIME ? KLY_STAMP_GETTIME
								  : KLY_STAMP_ORDERED,
		&stream->shared->clock_last);
}

static inline uint64_t kly_state_word(enum kly_state state, uint64_t ticks)
{
	return ticks << KLY_STATE_BITS | state;
}

static inline enum kly_state kly_state_of(uint64_t word)
{
	return word & ((1u << KLY_STATE_BITS) - 1);
}

static inline uint64_t kly_state_time(uint64_t word)
{
	return word >> KLY_STATE_BITS;
}

static inline struct kly_wire_chunk *kly_stream_chunk(const struct kly_stream *s, uint32_t index)
{
	return (struct kly_wire_chunk *)(s->chunks + (size_t)index * (s->chunk_bytes / 8));
}

/* A record's room must leave at least this much of a chunk before the chunk is given up. */
static inline uint32_t kly_record_max(uint32_t max_data)
{
	uint32_t filter_event = 2 * KLY_TYPES_MAX / 8;

	return kly_rec_size(max_data > filter_event ? max_data : filter_event);
}

/* The greatest room that an event of len bytes can take: with a note of a new time base. */
static inline uint64_t kly_event_max(uint64_t len)
{
	return sizeof(struct kly_wire_rec) + KLY_ALIGN(len, 8) + kly_rec_size(8);
}

/* Counts events that no slot could be booked with. */
static inline void kly_stream_lost(const struct kly_stream *s, enum kly_loss cause, uint64_t n)
{
	kly_add_relaxed(&s->shared->lost[cause], n); /* relaxed: only ever summed */
}

/* Events lost so far by cause, summed over all writers. */
void kly_stream_losses(const struct kly_stream *stream, uint64_t ret[KLY_LOSS_CAUSES]);

/* Makes memory of chunks below `chunks` and slots below `slots` certain. 0 or -ENOMEM. */
int kly_stream_reserve(const struct kly_stream *stream, uint32_t chunks, uint32_t slots);

#endif
