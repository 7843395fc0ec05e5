/* SPDX-License-Identifier: MIT */
/* A process that opens as many names as it may: a program of its own, since it keeps them. */
#include <trace.h>

#include "tap.h"

#include <errno.h>

#define NAMES (TRACE_USER_EVENT_MAX - 1) /* the unnamed type counts */

static trace_event_id_t ids[NAMES];

static int open_number(int number, trace_event_id_t *ret)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "name %d", number);
	return posix_trace_eventid_open(name, ret);
}

static bool fill(void)
{
	for (int i = 0; i < NAMES; i++)
		if (open_number(i, &ids[i]) != 0 || ids[i] == POSIX_TRACE_UNNAMED_USEREVENT)
			return false;
	return true;
}

TEST(NAME_16_all_names_up_to_the_limit_can_be_opened)
{
	CHECK(fill());
}

TEST(NAME_16_a_new_name_at_the_limit_gives_the_unnamed_type)
{
	trace_event_id_t id = 0;

	CHECK(fill());
	for (int i = 0; i < 3; i++) {
		CHECK_INT(open_number(NAMES + i, &id), 0);
		CHECK_INT(id, POSIX_TRACE_UNNAMED_USEREVENT);
	}
}

TEST(NAME_17_names_that_were_opened_keep_their_ids_at_the_limit)
{
	trace_event_id_t id, refused;

	CHECK(fill());
	CHECK_INT(open_number(NAMES, &refused), 0);
	for (int i = 0; i < NAMES; i += 17) {
		CHECK_INT(open_number(i, &id), 0);
		CHECK_INT(id, ids[i]);
	}
}

TEST(NAME_17_predefined_names_keep_their_types_at_the_limit)
{
	trace_event_id_t id = 0;

	CHECK(fill());
	CHECK_INT(posix_trace_eventid_open("posix_trace_stop", &id), 0);
	CHECK_INT(id, POSIX_TRACE_STOP);
}

TEST(NAME_04_a_name_beyond_the_limit_is_refused_in_a_full_process_too)
{
	char name[TRACE_EVENT_NAME_MAX + 2];
	trace_event_id_t id = 0;

	CHECK(fill());
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	CHECK_INT(posix_trace_eventid_open(name, &id), ENAMETOOLONG);
}

TEST_MAIN()
