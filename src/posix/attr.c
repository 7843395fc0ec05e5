/* SPDX-License-Identifier: MIT */
/* Attributes objects: posix_trace_attr_*(). The setters refuse what no stream can have. */
#include "posix/attr.h"
#include "core/stream.h"

#include <errno.h>
#include <string.h>
#include <time.h>

void kly_attr_copy_name(char to[TRACE_NAME_MAX], const char *from)
{
	size_t len = strnlen(from, TRACE_NAME_MAX - 1);

	memcpy(to, from, len);
	to[len] = '\0';
}

void kly_attr_init(struct kly_attr *a)
{
	*a = (struct kly_attr){
		.magic = KLY_ATTR_MAGIC,
		.inheritance = POSIX_TRACE_CLOSE_FOR_CHILD,
		.stream_policy = KLY_ATTR_UNSET,
		.log_policy = POSIX_TRACE_LOOP,
		.stream_size = KLY_ATTR_STREAM_SIZE,
		.log_size = KLY_ATTR_LOG_SIZE,
		.max_data_size = KLY_ATTR_MAX_DATA_SIZE,
		.clock_resolution = {.tv_nsec = 1}, /* no clock of ours ticks slower */
	};
	kly_attr_copy_name(a->version, "kilroy " KLY_VERSION);
}

KLY_API int posix_trace_attr_init(trace_attr_t *attr)
{
	if (!attr)
		return EINVAL;
	kly_attr_init((struct kly_attr *)attr);
	return 0;
}

KLY_API int posix_trace_attr_destroy(trace_attr_t *attr)
{
	struct kly_attr *a = kly_attr_of(attr);

	if (!a)
		return EINVAL;
	a->magic = 0;
	return 0;
}

/*
 * Times, version and name.
 */

KLY_API int posix_trace_attr_getclockres(const trace_attr_t *attr, struct timespec *resolution)
{
	const struct kly_attr *a = kly_attr_of_const(attr);

	if (!a || !resolution)
		return EINVAL;
	*resolution = a->clock_resolution;
	return 0;
}

KLY_API int posix_trace_attr_getcreatetime(const trace_attr_t *attr, struct timespec *createtime)
{
	const struct kly_attr *a = kly_attr_of_const(attr);

	if (!a || !createtime)
		return EINVAL;
	*createtime = a->creation_time;
	return 0;
}

KLY_API int posix_trace_attr_getgenversion(const trace_attr_t *attr, char *genversion)
{
	const struct kly_attr *a = kly_attr_of_const(attr);

	if (!a || !genversion)
		return EINVAL;
	strcpy(genversion, a->version);
	return 0;
}

KLY_API int posix_trace_attr_getname(const trace_attr_t *attr, char *tracename)
{
	const struct kly_attr *a = kly_attr_of_const(attr);

	if (!a || !tracename)
		return EINVAL;
	strcpy(tracename, a->name);
	return 0;
}

KLY_API int posix_trace_attr_setname(trace_attr_t *attr, const char *tracename)
{
	struct kly_attr *a = kly_attr_of(attr);

	if (!a || !tracename)
		return EINVAL;
	kly_attr_copy_name(a->name, tracename);
	return 0;
}

/*
 * Inheritance and policies.
 */

KLY_API int posix_trace_attr_getinherited(
	const trace_attr_t *restrict attr, int *restrict inheritancepolicy)
{
	const struct kly_attr *a = kly_attr_of_const(attr);

	if (!a || !inheritancepolicy)
		return EINVAL;
	*inheritancepolicy = a->inheritance;
	return 0;
}

KLY_API int posix_trace_attr_setinherited(trace_attr_t *attr, int inheritancepolicy)
{
	struct kly_attr *a = kly_attr_of(attr);

	if (!a || (inheritancepolicy != POSIX_TRACE_CLOSE_FOR_CHILD &&
			  inheritancepolicy != POSIX_TRACE_INHERITED))
		return EINVAL;
	a->inheritance = inheritancepolicy;
	return 0;
}

KLY_API int posix_trace_attr_getlogfullpolicy(
	const trace_attr_t *restrict attr, int *restrict logpolicy)
{
	const struct kly_attr *a = kly_attr_of_const(attr);

	if (!a || !logpolicy)
		return EINVAL;
	*logpolicy = a->log_policy;
	return 0;
}

KLY_API int posix_trace_attr_setlogfullpolicy(trace_attr_t *attr, int logpolicy)
{
	struct kly_attr *a = kly_attr_of(attr);

	if (!a || (logpolicy != POSIX_TRACE_LOOP && logpolicy != POSIX_TRACE_UNTIL_FULL &&
			  logpolicy != POSIX_TRACE_APPEND))
		return EINVAL;
	a->log_policy = logpolicy;
	return 0;
}

KLY_API int posix_trace_attr_getstreamfullpolicy(
	const trace_attr_t *restrict attr, int *restrict streampolicy)
{
	const struct kly_attr *a = kly_attr_of_const(attr);

	if (!a || !streampolicy)
		return EINVAL;
	*streampolicy = a->stream_policy == KLY_ATTR_UNSET ? POSIX_TRACE_LOOP : a->stream_policy;
	return 0;
}

KLY_API int posix_trace_attr_setstreamfullpolicy(trace_attr_t *attr, int streampolicy)
{
	struct kly_attr *a = kly_attr_of(attr);

	if (!a || (streampolicy != POSIX_TRACE_LOOP && streampolicy != POSIX_TRACE_UNTIL_FULL &&
			  streampolicy != POSIX_TRACE_FLUSH))
		return EINVAL;
	a->stream_policy = streampolicy;
	return 0;
}

/*
 * Sizes. 0 is refused: a stream or a log without room, events without data.
 */

KLY_API int posix_trace_attr_getlogsize(const trace_attr_t *restrict attr, size_t *restrict logsize)
{
	const struct kly_attr *a = kly_attr_of_const(attr);

	if (!a || !logsize)
		return EINVAL;
	*logsize = a->log_size;
	return 0;
}

KLY_API int posix_trace_attr_setlogsize(trace_attr_t *attr, size_t logsize)
{
	struct kly_attr *a = kly_attr_of(attr);

	if (!a || !logsize)
		return EINVAL;
	a->log_size = logsize;
	return 0;
}

KLY_API int posix_trace_attr_getmaxdatasize(
	const trace_attr_t *restrict attr, size_t *restrict maxdatasize)
{
	const struct kly_attr *a = kly_attr_of_const(attr);

	if (!a || !maxdatasize)
		return EINVAL;
	*maxdatasize = a->max_data_size;
	return 0;
}

KLY_API int posix_trace_attr_setmaxdatasize(trace_attr_t *attr, size_t maxdatasize)
{
	struct kly_attr *a = kly_attr_of(attr);

	if (!a || !maxdatasize || maxdatasize > KLY_DATA_MAX)
		return EINVAL;
	a->max_data_size = maxdatasize;
	return 0;
}

/* The greatest system events: FILTER with two event sets, of those that carry one or less. */
KLY_API int posix_trace_attr_getmaxsystemeventsize(
	const trace_attr_t *restrict attr, size_t *restrict eventsize)
{
	const struct kly_attr *a = kly_attr_of_const(attr);

	if (!a || !eventsize)
		return EINVAL;
	*eventsize = kly_event_max(2 * sizeof(trace_event_set_t));
	return 0;
}

KLY_API int posix_trace_attr_getmaxusereventsize(
	const trace_attr_t *restrict attr, size_t data_len, size_t *restrict eventsize)
{
	const struct kly_attr *a = kly_attr_of_const(attr);

	if (!a || !eventsize)
		return EINVAL;
	*eventsize = kly_event_max(kly_min(data_len, a->max_data_size));
	return 0;
}

KLY_API int posix_trace_attr_getstreamsize(
	const trace_attr_t *restrict attr, size_t *restrict streamsize)
{
	const struct kly_attr *a = kly_attr_of_const(attr);

	if (!a || !streamsize)
		return EINVAL;
	*streamsize = a->stream_size;
	return 0;
}

KLY_API int posix_trace_attr_setstreamsize(trace_attr_t *attr, size_t streamsize)
{
	struct kly_attr *a = kly_attr_of(attr);

	if (!a || !streamsize)
		return EINVAL;
	a->stream_size = streamsize;
	return 0;
}
