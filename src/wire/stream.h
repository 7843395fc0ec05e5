/* SPDX-License-Identifier: MIT */
/*
 * The stream: one shared memory object, mapped whole by its creator and by the traced processes.
 * Everything in it is a hostile input to everybody but its writer: copy, check, then use.
 *
 *      0   struct kly_wire_stream          geometry, written once by the creator
 *   4096   struct kly_wire_stream_shared   what changes while the stream lives, and the filter
 *   8192   slots: struct kly_wire_slot[slot_count]
 *    ...   lanes: uint8_t[slot_count], bit l = lane l of the slot has held a chunk; page-aligned
 *    ...   chunk words: uint64_t[chunk_count]; page-aligned
 *    ...   chunks: chunk_bytes each; page-aligned
 *
 * Lanes. A slot belongs to one thread and has KLY_LANES lanes, one per nesting level of signal
 * handlers. Each lane has a chunk of its own and publishes its position in a 32-bit word, in units
 * of 8 bytes from the first chunk; 0 = no chunk yet. Bit 31 says that a call is in flight: it may
 * have taken its time stamp and not yet published the record.
 *
 * Chunk words, one state machine a chunk:
 *
 *   0                                free
 *   OWNED | claim << 17 | RESUMED | slot << 2 | lane
 *                                    a lane writes it; valid up to the lane's position. RESUMED:
 *                                    it goes on behind what another thread left, which stays
 *                                    valid up to head.used
 *   [ROOM |] newest time                     full: valid up to head.used; ROOM = an ended thread
 *                                            left room in it
 *
 *   free  -> OWNED  a lane takes it (compare and swap); claim tells this taking from others
 *   full  -> OWNED  LOOP: the oldest is overwritten, after the horizon was raised to its newest
 *                   time; ROOM: a new thread goes on behind a THREAD note
 *   OWNED -> full   its lane seals it; or somebody does it for a lane whose thread is dead
 *   full  -> free   the reader has read it
 *
 * The pool. Lanes may take chunks only below index base_chunks + 2 * (lanes in use), and only such
 * whose memory is reserved (reserved_chunks), so that a lone writer fills a small stream when its
 * owner expects, and memory follows the number of threads alive.
 */
#ifndef KLY_WIRE_STREAM_H
#define KLY_WIRE_STREAM_H

#include "wire/loss.h"
#include "wire/record.h"
#include "wire/snapshot.h"
#include "wire/types.h"

#define KLY_STREAM_MAGIC UINT64_C(0x314d525453594c4b) /* "KLYSTRM1" */
#define KLY_STREAM_VERSION 1u
#define KLY_LANES 4u
#define KLY_SLOTS_MAX 16384u
#define KLY_DATA_MAX 65535u
#define KLY_KEEP_BYTES 1024u

#define KLY_LANE_IN_FLIGHT (UINT32_C(1) << 31)

#define KLY_CHUNK_OWNED (UINT64_C(1) << 63)
#define KLY_CHUNK_ROOM (UINT64_C(1) << 62)
#define KLY_CHUNK_TIME (KLY_CHUNK_ROOM - 1)
#define KLY_CHUNK_RESUMED (UINT64_C(1) << 16)
#define KLY_CHUNK_CLAIM_SHIFT 17 /* 46 bits of claim; below: 1 resumed, 14 slot, 2 lane */
#define KLY_CHUNK_OWNER ((UINT64_C(1) << 16) - 1)

enum kly_policy {
	KLY_POLICY_LOOP = 1,
	KLY_POLICY_UNTIL_FULL = 2,
	KLY_POLICY_FLUSH = 3,
};

#define KLY_STREAM_RELAXED 1u /* time stamps may be taken early: no order across threads */
#define KLY_STREAM_STRONG 2u  /* writers fence for themselves: no membarrier(2) needed */

/* The two low bits of the state word; the others are the time of the change in ticks. */
enum kly_state {
	KLY_STATE_SUSPENDED = 0,
	KLY_STATE_RUNNING = 1,
	KLY_STATE_FULL = 2, /* stopped by itself: until-full and flush */
	KLY_STATE_DEAD = 3,
};
#define KLY_STATE_BITS 2

/* Written once, before the stream is given to anybody. */
struct kly_wire_stream {
	uint64_t magic;
	uint32_t version;
	uint32_t flags; /* KLY_STREAM_* */
	uint64_t id;    /* random: the file is called s.ID, and logs name it */
	uint64_t registry_id;
	uint64_t total_bytes;
	uint64_t min_bytes;   /* what the owner asked for: bytes of events kept without loss */
	uint32_t chunk_bytes; /* a multiple of 4096 */
	uint32_t chunk_count;
	uint32_t slot_count;
	uint32_t base_chunks;
	uint32_t max_data;
	uint16_t policy;
	uint16_t clock;
	uint64_t lanes_offset;
	uint64_t words_offset;
	uint64_t chunks_offset;
	uint64_t ticks_per_second; /* nominal; snapshots are exact */
	struct kly_wire_snapshot created;
	uint32_t creator_pid;
	uint32_t unused0;
	uint64_t creator_start; /* clock ticks after boot, as in /proc/PID/stat */
	char name[256];
	/* Shell patterns, each ended by a NUL; a type whose name matches none is filtered when it
	 * is first met. Empty: all match. */
	char keep[KLY_KEEP_BYTES];
};
static_assert(sizeof(struct kly_wire_stream) == 1432, "part of the format");
static_assert(offsetof(struct kly_wire_stream, min_bytes) == 40, "part of the format");
static_assert(offsetof(struct kly_wire_stream, max_data) == 64, "part of the format");
static_assert(offsetof(struct kly_wire_stream, lanes_offset) == 72, "part of the format");
static_assert(offsetof(struct kly_wire_stream, created) == 104, "part of the format");
static_assert(offsetof(struct kly_wire_stream, name) == 152, "part of the format");

/* Words that change, grouped by who writes them how often. */
struct kly_wire_stream_shared {
	/* read by every writer at every event, written at state changes */
	_Alignas(128) uint64_t state; /* KLY_STATE_* | time << KLY_STATE_BITS */
	uint32_t waiters;             /* futex: 1 = a reader sleeps until an event is published */
	uint32_t explicit_filter;     /* 1 = the filter was set by a call */
	uint64_t started;             /* when the state last became RUNNING */

	/* written at chunk changes and set-up */
	_Alignas(128) uint64_t horizon; /* LOOP: events up to this time are incomplete */
	uint32_t slots_used;            /* slots above were never taken */
	uint32_t chunks_used;           /* chunks above were never taken */
	uint32_t reserved_chunks;       /* memory of the chunks below is there */
	uint32_t reserved_slots;
	uint64_t first_lost; /* LOOP: least time overwritten since a reader took it; 0 = none */

	/* events that could not be booked on a slot, by cause */
	_Alignas(128) uint64_t lost[KLY_LOSS_CAUSES];

	/* the greatest time given so far; used when ticks come from clock_gettime, which can tie */
	_Alignas(128) uint64_t clock_last;

	/* bit = type is not recorded */
	_Alignas(128) uint64_t filter[KLY_TYPES_MAX / 64];
};
static_assert(sizeof(struct kly_wire_stream_shared) == 1024, "part of the format");
static_assert(offsetof(struct kly_wire_stream_shared, started) == 16, "part of the format");
static_assert(offsetof(struct kly_wire_stream_shared, horizon) == 128, "part of the format");
static_assert(offsetof(struct kly_wire_stream_shared, first_lost) == 152, "part of the format");
static_assert(offsetof(struct kly_wire_stream_shared, lost) == 256, "part of the format");
static_assert(offsetof(struct kly_wire_stream_shared, clock_last) == 384, "part of the format");
static_assert(offsetof(struct kly_wire_stream_shared, filter) == 512, "part of the format");

/* In the tid half of a slot's owner: the slot is a controller's, for the records of start, stop and
 * filter changes; it lives as long as the process. */
#define KLY_OWNER_CONTROLLER (UINT32_C(1) << 31)

/* A thread's place. The first line is stored to at every event, by its thread alone. */
struct kly_wire_slot {
	_Alignas(64) uint32_t word[KLY_LANES];
	uint64_t owner;                          /* pid << 32 | tid; 0 = free */
	_Alignas(64) uint64_t lost[KLY_LOSS_CAUSES]; /* never reset; only ever summed */
};
static_assert(sizeof(struct kly_wire_slot) == 128, "part of the format");
static_assert(offsetof(struct kly_wire_slot, owner) == 16, "part of the format");
static_assert(offsetof(struct kly_wire_slot, lost) == 64, "part of the format");

/* The start of a chunk; records follow. base names this filling of the chunk: no two have the
 * same. used, events and newest count only while the chunk word says "full". */
struct kly_wire_chunk {
	uint64_t base;
	uint64_t newest;
	uint32_t used; /* bytes with this head */
	uint32_t events;
	uint32_t dictionary; /* entries in the registry when it was sealed: enough to decode it */
	uint32_t unused0;
	struct kly_wire_thread thread;
};
static_assert(sizeof(struct kly_wire_chunk) == 64, "part of the format");
static_assert(offsetof(struct kly_wire_chunk, used) == 16, "part of the format");
static_assert(offsetof(struct kly_wire_chunk, thread) == 32, "part of the format");

#define KLY_STREAM_SHARED_OFFSET 4096u
#define KLY_STREAM_SLOTS_OFFSET 8192u

#endif
