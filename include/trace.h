/* SPDX-License-Identifier: MIT */
/*
 * <trace.h>: the Tracing option group of POSIX.1-2008, as far as it is there: trace points, event
 * types, event sets and attributes. The functions that act on streams are not, so the C library's
 * word that the options are not supported stands.
 *
 * Functions return 0 or an error number and leave errno alone, but for posix_trace_event(), which
 * returns nothing. Only that one is async-signal-safe; all are safe in any number of threads, and
 * none is a cancellation point. The manual says what each does: posix_trace_event(3),
 * posix_trace_attr_init(3), posix_trace_eventset_add(3).
 */
#ifndef KILROY_POSIX_TRACE_H
#define KILROY_POSIX_TRACE_H

#include <pthread.h> /* pthread_t, struct timespec: in strict C too */
#include <stddef.h>
#include <sys/types.h>

/* What POSIX guarantees everywhere. */
#ifndef _POSIX_TRACE_EVENT_NAME_MAX
#define _POSIX_TRACE_EVENT_NAME_MAX 30
#endif
#ifndef _POSIX_TRACE_NAME_MAX
#define _POSIX_TRACE_NAME_MAX 8
#endif
#ifndef _POSIX_TRACE_SYS_MAX
#define _POSIX_TRACE_SYS_MAX 8
#endif
#ifndef _POSIX_TRACE_USER_EVENT_MAX
#define _POSIX_TRACE_USER_EVENT_MAX 32
#endif

/*
 * What is the case here; sysconf() says the same. An event name may have TRACE_EVENT_NAME_MAX
 * bytes, so an array for it needs one more for the NUL. Stream names and versions fit with their
 * NUL into TRACE_NAME_MAX bytes.
 */
#undef TRACE_EVENT_NAME_MAX
#undef TRACE_NAME_MAX
#undef TRACE_SYS_MAX
#undef TRACE_USER_EVENT_MAX
#define TRACE_EVENT_NAME_MAX 255
#define TRACE_NAME_MAX 255
#define TRACE_SYS_MAX 56          /* streams that a user may have at once */
#define TRACE_USER_EVENT_MAX 3072 /* user event types of a process, the unnamed one included */

#ifdef __cplusplus
#define KILROY_RESTRICT __restrict
extern "C" {
#else
#define KILROY_RESTRICT restrict
#endif

typedef unsigned int trace_event_id_t;

/* 0 is no stream. Valid in the process that made it, and never given twice. */
typedef unsigned long trace_id_t;

/* A bit for each event type: a copy is a full copy. */
typedef struct {
	unsigned long posix_trace_bits[4096 / (8 * sizeof(unsigned long))];
} trace_event_set_t;

/* Opaque. Holds no memory of its own, but is not to be copied by assignment, as POSIX has it. */
typedef struct {
	unsigned long posix_trace_data[80];
} trace_attr_t;

struct posix_trace_event_info {
	trace_event_id_t posix_event_id;
	pid_t posix_pid;                 /* who caused the event; 0 = no process */
	void *posix_prog_address;        /* of the call; NULL = none */
	pthread_t posix_thread_id;       /* in its own process; 0 = none */
	struct timespec posix_timestamp; /* CLOCK_REALTIME */
	int posix_truncation_status;     /* POSIX_TRACE_*TRUNCATED* */
};

struct posix_trace_status_info {
	int posix_stream_status;         /* POSIX_TRACE_RUNNING, _SUSPENDED */
	int posix_stream_full_status;    /* POSIX_TRACE_FULL, _NOT_FULL */
	int posix_stream_overrun_status; /* POSIX_TRACE_OVERRUN, _NO_OVERRUN; asking resets it */
	int posix_stream_flush_status;   /* POSIX_TRACE_FLUSHING, _NOT_FLUSHING */
	int posix_stream_flush_error;    /* first error number of flushing; asking resets it */
	int posix_log_full_status;       /* as for the stream */
	int posix_log_overrun_status;
};

/* posix_stream_status */
#define POSIX_TRACE_SUSPENDED 0
#define POSIX_TRACE_RUNNING 1
/* posix_stream_full_status, posix_log_full_status */
#define POSIX_TRACE_NOT_FULL 0
#define POSIX_TRACE_FULL 1
/* posix_stream_overrun_status, posix_log_overrun_status */
#define POSIX_TRACE_NO_OVERRUN 0
#define POSIX_TRACE_OVERRUN 1
/* posix_stream_flush_status */
#define POSIX_TRACE_NOT_FLUSHING 0
#define POSIX_TRACE_FLUSHING 1
/* posix_truncation_status */
#define POSIX_TRACE_NOT_TRUNCATED 0
#define POSIX_TRACE_TRUNCATED_RECORD 1 /* when it was recorded */
#define POSIX_TRACE_TRUNCATED_READ 2   /* by the reader's short array */

/* Policies of full streams: LOOP, UNTIL_FULL, FLUSH; of full logs: LOOP, UNTIL_FULL, APPEND. */
#define POSIX_TRACE_LOOP 1       /* the newest events stay */
#define POSIX_TRACE_UNTIL_FULL 2 /* the oldest events stay */
#define POSIX_TRACE_FLUSH 3      /* as UNTIL_FULL, and the stream is flushed to its log in time */
#define POSIX_TRACE_APPEND 4     /* the log grows as it must */

/* Inheritance: what becomes of a forked child. */
#define POSIX_TRACE_CLOSE_FOR_CHILD 1
#define POSIX_TRACE_INHERITED 2

/* posix_trace_eventset_fill() */
#define POSIX_TRACE_WOPID_EVENTS 1 /* system events that no process causes */
#define POSIX_TRACE_SYSTEM_EVENTS 2
#define POSIX_TRACE_ALL_EVENTS 3

/* posix_trace_set_filter() */
#define POSIX_TRACE_SET_EVENTSET 1
#define POSIX_TRACE_ADD_EVENTSET 2
#define POSIX_TRACE_SUB_EVENTSET 3

/* The system event types, and the user event type that has no name. */
#define POSIX_TRACE_START 1u    /* data: the filter, a trace_event_set_t */
#define POSIX_TRACE_STOP 2u     /* data: int, 0 = by posix_trace_stop() */
#define POSIX_TRACE_FILTER 3u   /* data: the old and the new filter */
#define POSIX_TRACE_OVERFLOW 4u /* events were lost from here ... */
#define POSIX_TRACE_RESUME 5u   /* ... up to here */
#define POSIX_TRACE_FLUSH_START 6u
#define POSIX_TRACE_FLUSH_STOP 7u
#define POSIX_TRACE_ERROR 8u /* data: int, an error number */
#define POSIX_TRACE_UNNAMED_USER_EVENT 1024u
#define POSIX_TRACE_UNNAMED_USEREVENT POSIX_TRACE_UNNAMED_USER_EVENT /* POSIX has both */

/*
 * System events of the real-time system oc2000. The data are words (intptr_t); threads are
 * pthread_t, 0 = not known. Not there when a program asks for POSIX alone: the names are its own.
 *
 *	traceSigGeneration  sending thread, target process, signal, value, how, target thread
 *	traceSigDelivery    receiving thread, signal, value
 *	traceSigCatchFunc   handling thread, signal, value
 *	traceMutexLock      result, call address, kind of mutex, mutex, owner
 *	traceMutexTryLock   result, call address, kind of mutex, mutex, owner
 *	traceMutexUnlock    result, call address, kind of mutex, mutex
 */
#if defined _DEFAULT_SOURCE || defined _GNU_SOURCE || \
	!(defined _POSIX_C_SOURCE || defined _XOPEN_SOURCE)
#define traceSigGeneration 16u
#define traceSigDelivery 17u
#define traceSigCatchFunc 18u
#define traceMutexLock 19u
#define traceMutexTryLock 20u
#define traceMutexUnlock 21u
#endif

/*
 * Trace points and names: posix_trace_event(3), posix_trace_eventid_equal(3).
 */

void posix_trace_event(
	trace_event_id_t event_id, const void *KILROY_RESTRICT data_ptr, size_t data_len);
int posix_trace_eventid_open(
	const char *KILROY_RESTRICT event_name, trace_event_id_t *KILROY_RESTRICT event_id);

/*
 * Attributes: posix_trace_attr_init(3), posix_trace_attr_getname(3),
 * posix_trace_attr_getinherited(3), posix_trace_attr_getstreamsize(3).
 */

int posix_trace_attr_init(trace_attr_t *attr);
int posix_trace_attr_destroy(trace_attr_t *attr);

int posix_trace_attr_getclockres(const trace_attr_t *attr, struct timespec *resolution);
int posix_trace_attr_getcreatetime(const trace_attr_t *attr, struct timespec *createtime);
int posix_trace_attr_getgenversion(const trace_attr_t *attr, char *genversion);
int posix_trace_attr_getname(const trace_attr_t *attr, char *tracename);
int posix_trace_attr_setname(trace_attr_t *attr, const char *tracename);

int posix_trace_attr_getinherited(
	const trace_attr_t *KILROY_RESTRICT attr, int *KILROY_RESTRICT inheritancepolicy);
int posix_trace_attr_setinherited(trace_attr_t *attr, int inheritancepolicy);
int posix_trace_attr_getlogfullpolicy(
	const trace_attr_t *KILROY_RESTRICT attr, int *KILROY_RESTRICT logpolicy);
int posix_trace_attr_setlogfullpolicy(trace_attr_t *attr, int logpolicy);
int posix_trace_attr_getstreamfullpolicy(
	const trace_attr_t *KILROY_RESTRICT attr, int *KILROY_RESTRICT streampolicy);
int posix_trace_attr_setstreamfullpolicy(trace_attr_t *attr, int streampolicy);

int posix_trace_attr_getlogsize(
	const trace_attr_t *KILROY_RESTRICT attr, size_t *KILROY_RESTRICT logsize);
int posix_trace_attr_setlogsize(trace_attr_t *attr, size_t logsize);
int posix_trace_attr_getmaxdatasize(
	const trace_attr_t *KILROY_RESTRICT attr, size_t *KILROY_RESTRICT maxdatasize);
int posix_trace_attr_setmaxdatasize(trace_attr_t *attr, size_t maxdatasize);
int posix_trace_attr_getmaxsystemeventsize(
	const trace_attr_t *KILROY_RESTRICT attr, size_t *KILROY_RESTRICT eventsize);
int posix_trace_attr_getmaxusereventsize(const trace_attr_t *KILROY_RESTRICT attr, size_t data_len,
	size_t *KILROY_RESTRICT eventsize);
int posix_trace_attr_getstreamsize(
	const trace_attr_t *KILROY_RESTRICT attr, size_t *KILROY_RESTRICT streamsize);
int posix_trace_attr_setstreamsize(trace_attr_t *attr, size_t streamsize);

/*
 * Event sets: posix_trace_eventset_add(3).
 */

int posix_trace_eventset_empty(trace_event_set_t *set);
int posix_trace_eventset_fill(trace_event_set_t *set, int what);
int posix_trace_eventset_add(trace_event_id_t event_id, trace_event_set_t *set);
int posix_trace_eventset_del(trace_event_id_t event_id, trace_event_set_t *set);
int posix_trace_eventset_ismember(trace_event_id_t event_id,
	const trace_event_set_t *KILROY_RESTRICT set, int *KILROY_RESTRICT ismember);

#undef KILROY_RESTRICT

#ifdef __cplusplus
}
#endif

#endif
