/* SPDX-License-Identifier: MIT */
/*
 * Event sets: posix_trace_eventset_*(). A set has a bit for each number that a type can have, also
 * types that nobody has opened yet; so "all" stays all. The bit of 0, which is no type, is never
 * set: sets with the same members are the same bytes. They are the filters of core, word by word.
 */
#include "base/util.h"
#include "trace.h"
#include "wire/types.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define WORD_BITS (8 * sizeof(unsigned long))

static_assert(sizeof(trace_event_set_t) == KLY_TYPES_MAX / 8, "part of the ABI");

static bool is_type(trace_event_id_t id)
{
	return id != KLY_TYPE_NONE && id < KLY_TYPES_MAX;
}

static void add(trace_event_set_t *set, trace_event_id_t id)
{
	set->posix_trace_bits[id / WORD_BITS] |= 1ul << id % WORD_BITS;
}

static void add_range(trace_event_set_t *set, trace_event_id_t from, trace_event_id_t to)
{
	for (trace_event_id_t id = from; id < to; id++)
		add(set, id);
}

/* System events that the system begins by itself, not for a process's request. */
static void add_without_process(trace_event_set_t *set)
{
	add(set, POSIX_TRACE_OVERFLOW);
	add(set, POSIX_TRACE_RESUME);
	add(set, POSIX_TRACE_FLUSH_START);
	add(set, POSIX_TRACE_FLUSH_STOP);
	add(set, POSIX_TRACE_ERROR);
}

KLY_API int posix_trace_eventset_empty(trace_event_set_t *set)
{
	if (!set)
		return EINVAL;
	memset(set, 0, sizeof(*set));
	return 0;
}

KLY_API int posix_trace_eventset_fill(trace_event_set_t *set, int what)
{
	trace_event_set_t filled = {0};

	switch (what) {
	case POSIX_TRACE_WOPID_EVENTS:
		add_without_process(&filled);
		break;
	case POSIX_TRACE_SYSTEM_EVENTS:
		add_range(&filled, KLY_TYPE_START, KLY_TYPE_UNNAMED);
		break;
	case POSIX_TRACE_ALL_EVENTS:
		add_range(&filled, KLY_TYPE_START, KLY_TYPES_MAX);
		break;
	default:
		return EINVAL;
	}
	if (!set)
		return EINVAL;
	*set = filled;
	return 0;
}

KLY_API int posix_trace_eventset_add(trace_event_id_t event_id, trace_event_set_t *set)
{
	if (!set || !is_type(event_id))
		return EINVAL;
	add(set, event_id);
	return 0;
}

KLY_API int posix_trace_eventset_del(trace_event_id_t event_id, trace_event_set_t *set)
{
	if (!set || !is_type(event_id))
		return EINVAL;
	set->posix_trace_bits[event_id / WORD_BITS] &= ~(1ul << event_id % WORD_BITS);
	return 0;
}

KLY_API int posix_trace_eventset_ismember(
	trace_event_id_t event_id, const trace_event_set_t *restrict set, int *restrict ismember)
{
	if (!set || !ismember || !is_type(event_id))
		return EINVAL;
	*ismember = set->posix_trace_bits[event_id / WORD_BITS] >> event_id % WORD_BITS & 1;
	return 0;
}
