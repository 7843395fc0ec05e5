/* SPDX-License-Identifier: MIT */
/*
 * What a trace_attr_t holds. It is flat: nothing has to be freed, so posix_trace_get_attr() may
 * fill an object that was never initialised.
 *
 * The stream policy of a fresh object is KLY_ATTR_UNSET: LOOP for a stream without a log, FLUSH for
 * one with a log, which is not known before the stream is created. Every other field always holds a
 * value that a stream can be created with, but for sizes beyond the memory there is.
 */
#ifndef KLY_POSIX_ATTR_H
#define KLY_POSIX_ATTR_H

#include "base/util.h"
#include "trace.h"

#include <assert.h>
#include <stdint.h>

#define KLY_ATTR_MAGIC UINT64_C(0x31525454414c594b) /* "KYLATTR1" */
#define KLY_ATTR_UNSET 0

#define KLY_ATTR_STREAM_SIZE ((size_t)1 << 20)
#define KLY_ATTR_LOG_SIZE ((size_t)64 << 20)
#define KLY_ATTR_MAX_DATA_SIZE ((size_t)4096)

struct kly_attr {
	uint64_t magic; /* anything else: not initialised, or destroyed */
	int inheritance;
	int stream_policy; /* or KLY_ATTR_UNSET */
	int log_policy;
	size_t stream_size;
	size_t log_size;
	size_t max_data_size; /* 1 .. KLY_DATA_MAX */
	struct timespec clock_resolution;
	struct timespec creation_time; /* 0 unless the object describes a stream */
	char version[TRACE_NAME_MAX];  /* these two with a NUL */
	char name[TRACE_NAME_MAX];
};
static_assert(sizeof(struct kly_attr) <= sizeof(trace_attr_t), "part of the ABI");
static_assert(_Alignof(struct kly_attr) <= _Alignof(trace_attr_t), "part of the ABI");

/* The defaults, as posix_trace_attr_init() sets them. */
void kly_attr_init(struct kly_attr *a);

/* Copies with a NUL what fits into TRACE_NAME_MAX bytes. */
void kly_attr_copy_name(char to[TRACE_NAME_MAX], const char *from);

/* NULL: that is no object in use. */
static inline struct kly_attr *kly_attr_of(trace_attr_t *attr)
{
	struct kly_attr *a = (struct kly_attr *)attr;

	return a && a->magic == KLY_ATTR_MAGIC ? a : NULL;
}

static inline const struct kly_attr *kly_attr_of_const(const trace_attr_t *attr)
{
	return kly_attr_of((trace_attr_t *)(uintptr_t)attr);
}

#endif
