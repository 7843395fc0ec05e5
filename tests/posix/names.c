/* SPDX-License-Identifier: MIT */
/* Names of event types, as far as they need no stream; names-limit.c opens very many. */
#include <trace.h>

#include "tap.h"

#include <errno.h>
#include <pthread.h>

static trace_event_id_t opened(const char *name)
{
	trace_event_id_t id;

	if (posix_trace_eventid_open(name, &id) != 0)
		abort();
	return id;
}

static void *open_in_thread(void *name)
{
	return (void *)(uintptr_t)opened(name);
}

static const char *text(size_t len)
{
	static char buffer[TRACE_EVENT_NAME_MAX + 2];

	memset(buffer, 'n', len);
	buffer[len] = '\0';
	return buffer;
}

TEST(NAME_01_a_name_gives_the_same_id_in_every_thread)
{
	char name[] = "same";
	trace_event_id_t id = opened(name);
	pthread_t thread;
	void *theirs;

	CHECK_INT(pthread_create(&thread, NULL, open_in_thread, name), 0);
	CHECK_INT(pthread_join(thread, &theirs), 0);
	CHECK_INT((uintptr_t)theirs, id);
	CHECK_INT(opened("same"), id);
}

TEST(NAME_02_names_are_told_apart_byte_by_byte)
{
	static const char *const names[] = {"door", "Door", "doo", "doors", "door ", "d\303\266r",
		"d\303\265r", "d\366r", "posix_trace_star", "дверь", "дверЬ"};
	const int n = sizeof(names) / sizeof(*names);

	for (int i = 0; i < n; i++)
		for (int j = 0; j < i; j++)
			CHECK(opened(names[i]) != opened(names[j]));
}

TEST(NAME_02_a_named_type_is_not_the_unnamed_one)
{
	CHECK(opened("named") != POSIX_TRACE_UNNAMED_USEREVENT);
}

TEST(NAME_04_a_name_beyond_the_limit_is_refused)
{
	trace_event_id_t id = 77;

	CHECK_INT(posix_trace_eventid_open(text(TRACE_EVENT_NAME_MAX + 1), &id), ENAMETOOLONG);
	CHECK_INT(id, 77);
}

TEST(LIM_09_names_in_utf_8_may_have_52_bytes)
{
	/* 52 bytes */
	CHECK(opened("дверь открыта, свет горит, все") != opened("дверь открыта, свет горит, вс"));
}

/* The name is that of a system type, which it stays. */
TEST(SYS_01_a_predefined_name_gives_the_predefined_type)
{
	CHECK_INT(opened("posix_trace_start"), POSIX_TRACE_START);
	CHECK_INT(opened("posix_trace_error"), POSIX_TRACE_ERROR);
	CHECK_INT(opened("posix_trace_unnamed_userevent"), POSIX_TRACE_UNNAMED_USEREVENT);
}

#define THREADS 8
#define NAMES 50

static pthread_barrier_t barrier;

/* The ids that one thread got. */
static void *open_all(void *ids)
{
	trace_event_id_t *id = ids;
	char name[32];

	(void)pthread_barrier_wait(&barrier);
	for (int i = 0; i < NAMES; i++) {
		(void)snprintf(name, sizeof(name), "at once %d", i);
		id[i] = opened(name);
	}
	return NULL;
}

TEST(NAME_12_threads_that_open_names_at_once_agree)
{
	static trace_event_id_t ids[THREADS][NAMES];
	pthread_t threads[THREADS];

	CHECK_INT(pthread_barrier_init(&barrier, NULL, THREADS), 0);
	for (int t = 0; t < THREADS; t++)
		CHECK_INT(pthread_create(&threads[t], NULL, open_all, ids[t]), 0);
	for (int t = 0; t < THREADS; t++)
		CHECK_INT(pthread_join(threads[t], NULL), 0);
	for (int i = 0; i < NAMES; i++) {
		for (int t = 1; t < THREADS; t++)
			CHECK_INT(ids[t][i], ids[0][i]);
		for (int j = 0; j < i; j++)
			CHECK(ids[0][i] != ids[0][j]);
	}
}

TEST(EVENT_03_without_a_stream_a_trace_point_does_nothing)
{
	errno = 7;
	posix_trace_event(opened("nobody listens"), "data", 4);
	posix_trace_event(POSIX_TRACE_UNNAMED_USEREVENT, NULL, 0);
	CHECK_INT(errno, 7);
}

TEST(EVENT_03_a_type_that_was_never_opened_is_ignored)
{
	posix_trace_event(0, "data", 4);
	posix_trace_event(POSIX_TRACE_START, "data", 4);
	posix_trace_event(4095, "data", 4);
	posix_trace_event(4096, "data", 4);
	posix_trace_event(-1u, "data", 4);
}

TEST_MAIN()
