/* SPDX-License-Identifier: MIT */
/*
 * The record: one event, or one note about the records that follow it. The same bytes stand in a
 * stream's chunk and in a log's packet. Native byte order, 8-byte aligned.
 *
 *   offset size
 *      0     2   bits 0-11 event type; bits 12-13 KLY_REC_*; bits 14-15 zero
 *      2     2   payload bytes, without padding
 *      4     4   clock ticks since the run's base
 *      8     8   bits 0-47 program address, bits 48-63 CPU number, KLY_REC_NO_CPU = not known
 *     16     -   payload, padded with anything to a multiple of 8
 *
 * A run is a sequence of records of one writer, sorted by time: what a chunk holds, or a packet.
 * Whoever stores a run states its base time and the thread that wrote its first record. Notes
 * change both on the way: a TIME note sets a new base when 32 bits of ticks do not suffice, a
 * THREAD note tells that another thread goes on from here.
 */
#ifndef KLY_WIRE_RECORD_H
#define KLY_WIRE_RECORD_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define KLY_REC_TYPE 0x0fffu
#define KLY_REC_TRUNCATED 0x1000u /* the payload was cut to the stream's greatest data size */
#define KLY_REC_NOTE 0x2000u      /* a note, not an event; the type bits are a KLY_NOTE_* */
#define KLY_REC_RESERVED 0xc000u

#define KLY_NOTE_TIME 1u   /* payload: uint64_t, the new base; its own delta is 0 */
#define KLY_NOTE_THREAD 2u /* payload: struct kly_wire_thread */

#define KLY_REC_NO_CPU 0xffffu
#define KLY_REC_ADDRESS ((UINT64_C(1) << 48) - 1)

struct kly_wire_rec {
	uint16_t type;
	uint16_t len;
	uint32_t delta;
	uint64_t where;
};
static_assert(sizeof(struct kly_wire_rec) == 16, "part of the format");
static_assert(offsetof(struct kly_wire_rec, len) == 2, "part of the format");
static_assert(offsetof(struct kly_wire_rec, delta) == 4, "part of the format");
static_assert(offsetof(struct kly_wire_rec, where) == 8, "part of the format");

/* Who wrote a run. name is the kernel's 15 bytes and a NUL. */
struct kly_wire_thread {
	uint32_t pid;
	uint32_t tid;
	uint64_t pthread; /* pthread_t, 0 = not known */
	char name[16];
};
static_assert(sizeof(struct kly_wire_thread) == 32, "part of the format");
static_assert(offsetof(struct kly_wire_thread, name) == 16, "part of the format");

/* Bytes that a record with this payload length takes. */
static inline uint32_t kly_rec_size(uint32_t len)
{
	return (uint32_t)sizeof(struct kly_wire_rec) + ((len + 7) & ~7u);
}

#endif
