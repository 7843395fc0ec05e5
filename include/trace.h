/* SPDX-License-Identifier: MIT */
/*
 * <trace.h>: the Tracing option of POSIX.1-2008, as far as it is there: trace points and their
 * event types.
 */
#ifndef KILROY_POSIX_TRACE_H
#define KILROY_POSIX_TRACE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __cplusplus
#define KILROY_RESTRICT __restrict
#else
#define KILROY_RESTRICT restrict
#endif

typedef unsigned int trace_event_id_t;
typedef unsigned int trace_id_t; /* 0 is no stream */

/* Bytes in the name of an event type without the NUL, and user event types of a process with the
 * unnamed one; what POSIX guarantees everywhere (glibc's <limits.h> lacks these). */
#define TRACE_EVENT_NAME_MAX 255
#define TRACE_USER_EVENT_MAX 3072
#ifndef _POSIX_TRACE_EVENT_NAME_MAX
#define _POSIX_TRACE_EVENT_NAME_MAX 30
#endif
#ifndef _POSIX_TRACE_USER_EVENT_MAX
#define _POSIX_TRACE_USER_EVENT_MAX 32
#endif

/* The system event types, and the user event type that has no name. */
#define POSIX_TRACE_START 1u
#define POSIX_TRACE_STOP 2u
#define POSIX_TRACE_FILTER 3u
#define POSIX_TRACE_OVERFLOW 4u
#define POSIX_TRACE_RESUME 5u
#define POSIX_TRACE_FLUSH_START 6u
#define POSIX_TRACE_FLUSH_STOP 7u
#define POSIX_TRACE_ERROR 8u
#define POSIX_TRACE_UNNAMED_USER_EVENT 1024u
#define POSIX_TRACE_UNNAMED_USEREVENT POSIX_TRACE_UNNAMED_USER_EVENT /* POSIX has both */

/*
 * The trace point: record an event of the type with a copy of the data in every running stream that
 * does not filter the type. data_ptr may be NULL if data_len is 0. Data beyond a stream's
 * max-data-size is cut; a type that was never opened, or a system type, is ignored.
 * Async-signal-safe; errno is kept; no cancellation point. POSIX.1-2008.
 */
void posix_trace_event(
	trace_event_id_t event_id, const void *KILROY_RESTRICT data_ptr, size_t data_len);

/*
 * The event type of a name, the same one for the same name. When the process has
 * TRACE_USER_EVENT_MAX types, a new name gives POSIX_TRACE_UNNAMED_USER_EVENT; the name of a
 * system type gives that type. 0, or ENAMETOOLONG: more than TRACE_EVENT_NAME_MAX bytes.
 * Not async-signal-safe; no cancellation point. POSIX.1-2008.
 */
int posix_trace_eventid_open(
	const char *KILROY_RESTRICT event_name, trace_event_id_t *KILROY_RESTRICT event_id);

#undef KILROY_RESTRICT

#ifdef __cplusplus
}
#endif

#endif
