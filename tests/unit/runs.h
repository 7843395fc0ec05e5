/* SPDX-License-Identifier: MIT */
/* Builds runs of records for tests. */
#ifndef KLY_TESTS_RUNS_H
#define KLY_TESTS_RUNS_H

#include "base/util.h"
#include "wire/record.h"

#include <stdint.h>
#include <string.h>

struct run_builder {
	uint64_t base;
	uint32_t size;
	_Alignas(8) uint8_t bytes[16384];
};

static inline void put_record(
	struct run_builder *b, uint16_t type, uint32_t delta, const void *data, uint16_t len)
{
	const struct kly_wire_rec rec = {
		.type = type, .len = len, .delta = delta, .where = (uint64_t)3 << 48 | 0x401000};

	kly_assert(b->size + kly_rec_size(len) <= sizeof(b->bytes));
	memset(b->bytes + b->size, 0, kly_rec_size(len));
	memcpy(b->bytes + b->size, &rec, sizeof(rec));
	if (len)
		memcpy(b->bytes + b->size + sizeof(rec), data, len);
	b->size += kly_rec_size(len);
}

/* An event at a time, its payload is the time. */
static inline void put_event(struct run_builder *b, uint16_t type, uint64_t ticks)
{
	put_record(b, type, (uint32_t)(ticks - b->base), &ticks, sizeof(ticks));
}

static inline void put_time(struct run_builder *b, uint64_t base)
{
	put_record(b, KLY_REC_NOTE | KLY_NOTE_TIME, 0, &base, sizeof(base));
	b->base = base;
}

static inline void put_thread(struct run_builder *b, uint32_t pid, uint32_t tid, const char *name)
{
	struct kly_wire_thread thread = {.pid = pid, .tid = tid};

	strncpy(thread.name, name, sizeof(thread.name) - 1);
	put_record(b, KLY_REC_NOTE | KLY_NOTE_THREAD, 0, &thread, sizeof(thread));
}

/* The same numbers each time, and everywhere. */
static inline uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

#endif
