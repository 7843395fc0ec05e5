/* SPDX-License-Identifier: MIT */
/* Event sets. */
#include <trace.h>

#include "tap.h"

#include <errno.h>

static const trace_event_id_t system_types[] = {POSIX_TRACE_START, POSIX_TRACE_STOP,
	POSIX_TRACE_FILTER, POSIX_TRACE_OVERFLOW, POSIX_TRACE_RESUME, POSIX_TRACE_FLUSH_START,
	POSIX_TRACE_FLUSH_STOP, POSIX_TRACE_ERROR, traceSigGeneration, traceSigDelivery,
	traceSigCatchFunc, traceMutexLock, traceMutexTryLock, traceMutexUnlock};
#define SYSTEM_TYPES (sizeof(system_types) / sizeof(*system_types))

/* Larger than every id: the types that a set may have. */
#define END ((trace_event_id_t)(8 * sizeof(trace_event_set_t)))

static trace_event_id_t opened(const char *name)
{
	trace_event_id_t id;

	if (posix_trace_eventid_open(name, &id) != 0)
		abort();
	return id;
}

static trace_event_set_t garbage(int byte)
{
	trace_event_set_t set;

	memset(&set, byte, sizeof(set));
	return set;
}

static trace_event_set_t filled(int what)
{
	trace_event_set_t set = garbage(0x5a);

	if (posix_trace_eventset_fill(&set, what) != 0)
		abort();
	return set;
}

static trace_event_set_t emptied(void)
{
	trace_event_set_t set = garbage(0x5a);

	if (posix_trace_eventset_empty(&set) != 0)
		abort();
	return set;
}

static bool has(const trace_event_set_t *set, trace_event_id_t id)
{
	int is = -1;

	if (posix_trace_eventset_ismember(id, set, &is) != 0)
		abort();
	return is != 0;
}

static unsigned count(const trace_event_set_t *set)
{
	unsigned n = 0;

	for (trace_event_id_t id = 1; id < END; id++)
		n += has(set, id);
	return n;
}

TEST(SET_01_the_empty_set_has_no_member)
{
	trace_event_set_t set = emptied();

	CHECK_INT(count(&set), 0);
}

TEST(SET_02_add_makes_one_type_a_member)
{
	trace_event_id_t type = opened("set.add");
	trace_event_set_t set = emptied();

	CHECK_INT(posix_trace_eventset_add(type, &set), 0);
	CHECK(has(&set, type));
	CHECK_INT(count(&set), 1);
}

TEST(SET_03_del_takes_one_type_away)
{
	trace_event_id_t type = opened("set.del");
	trace_event_set_t set = filled(POSIX_TRACE_ALL_EVENTS);
	unsigned before = count(&set);

	CHECK_INT(posix_trace_eventset_del(type, &set), 0);
	CHECK(!has(&set, type));
	CHECK_INT(count(&set), before - 1);
}

TEST(SET_04_adding_twice_is_adding_once)
{
	trace_event_set_t set = emptied();

	CHECK_INT(posix_trace_eventset_add(POSIX_TRACE_STOP, &set), 0);
	CHECK_INT(posix_trace_eventset_add(POSIX_TRACE_STOP, &set), 0);
	CHECK_INT(count(&set), 1);
}

TEST(SET_04_what_is_no_member_can_be_deleted)
{
	trace_event_set_t set = emptied();

	CHECK_INT(posix_trace_eventset_del(POSIX_TRACE_STOP, &set), 0);
	CHECK_INT(count(&set), 0);
}

TEST(SET_05_all_events_are_system_and_user_types)
{
	trace_event_id_t type = opened("set.all");
	trace_event_set_t set = filled(POSIX_TRACE_ALL_EVENTS);

	CHECK(has(&set, type));
	CHECK(has(&set, POSIX_TRACE_UNNAMED_USEREVENT));
	for (size_t i = 0; i < SYSTEM_TYPES; i++)
		CHECK(has(&set, system_types[i]));
}

TEST(SET_05_all_events_include_types_that_are_opened_later)
{
	trace_event_set_t set = filled(POSIX_TRACE_ALL_EVENTS);

	CHECK(has(&set, opened("set.all.later")));
}

TEST(SET_06_system_events_are_no_user_types)
{
	trace_event_id_t type = opened("set.system");
	trace_event_set_t set = filled(POSIX_TRACE_SYSTEM_EVENTS);

	for (size_t i = 0; i < SYSTEM_TYPES; i++)
		CHECK(has(&set, system_types[i]));
	CHECK(!has(&set, POSIX_TRACE_UNNAMED_USEREVENT));
	CHECK(!has(&set, type));
	CHECK(!has(&set, opened("set.system.later")));
}

TEST(SET_07_events_without_process_are_system_events)
{
	trace_event_set_t wopid = filled(POSIX_TRACE_WOPID_EVENTS);
	trace_event_set_t system = filled(POSIX_TRACE_SYSTEM_EVENTS);

	CHECK(has(&wopid, POSIX_TRACE_OVERFLOW) && has(&wopid, POSIX_TRACE_RESUME));
	CHECK(has(&wopid, POSIX_TRACE_ERROR));
	CHECK(has(&wopid, POSIX_TRACE_FLUSH_START) && has(&wopid, POSIX_TRACE_FLUSH_STOP));
	for (trace_event_id_t id = 1; id < END; id++)
		CHECK(!has(&wopid, id) || has(&system, id));
}

TEST(SET_07_events_of_a_call_have_a_process)
{
	trace_event_set_t wopid = filled(POSIX_TRACE_WOPID_EVENTS);

	CHECK(!has(&wopid, POSIX_TRACE_START) && !has(&wopid, POSIX_TRACE_STOP));
	CHECK(!has(&wopid, POSIX_TRACE_FILTER) && !has(&wopid, traceMutexLock));
}

TEST(SET_08_empty_and_fill_do_not_care_what_was_there)
{
	for (int byte = 0; byte < 256; byte += 85) {
		trace_event_set_t set = garbage(byte), filled_one = garbage(byte);
		trace_event_set_t all = filled(POSIX_TRACE_ALL_EVENTS);

		CHECK_INT(posix_trace_eventset_empty(&set), 0);
		CHECK_INT(count(&set), 0);
		CHECK_INT(posix_trace_eventset_fill(&filled_one, POSIX_TRACE_ALL_EVENTS), 0);
		CHECK_INT(count(&filled_one), count(&all));
	}
}

TEST(SET_08_an_unknown_kind_of_filling_is_refused)
{
	static const int kinds[] = {-1, 0, 4};
	trace_event_set_t set = emptied();

	for (int i = 0; i < 3; i++) {
		CHECK_INT(posix_trace_eventset_fill(&set, kinds[i]), EINVAL);
		CHECK_INT(count(&set), 0);
	}
}

TEST(SET_09_ismember_tells_members_from_others)
{
	trace_event_set_t set = emptied();
	int is = -1;

	CHECK_INT(posix_trace_eventset_add(POSIX_TRACE_FILTER, &set), 0);
	CHECK_INT(posix_trace_eventset_ismember(POSIX_TRACE_FILTER, &set, &is), 0);
	CHECK(is != 0);
	CHECK_INT(posix_trace_eventset_ismember(POSIX_TRACE_START, &set, &is), 0);
	CHECK_INT(is, 0);
}

TEST(SET_09_an_id_that_no_type_can_have_is_refused)
{
	static const trace_event_id_t ids[] = {0, END, -1u};
	trace_event_set_t set = emptied();
	int is = -1;

	for (int i = 0; i < 3; i++) {
		CHECK_INT(posix_trace_eventset_ismember(ids[i], &set, &is), EINVAL);
		CHECK_INT(posix_trace_eventset_add(ids[i], &set), EINVAL);
		CHECK_INT(posix_trace_eventset_del(ids[i], &set), EINVAL);
		CHECK_INT(is, -1);
	}
}

TEST(SET_10_every_id_can_be_a_member)
{
	trace_event_set_t set = emptied();

	for (trace_event_id_t id = 1; id < END; id++) {
		CHECK(!has(&set, id));
		CHECK_INT(posix_trace_eventset_add(id, &set), 0);
		CHECK(has(&set, id));
		CHECK_INT(posix_trace_eventset_del(id, &set), 0);
		CHECK(!has(&set, id));
	}
}

TEST(SET_10_a_copy_is_independent)
{
	trace_event_set_t set = emptied(), copy;

	CHECK_INT(posix_trace_eventset_add(POSIX_TRACE_START, &set), 0);
	copy = set;
	CHECK_INT(posix_trace_eventset_del(POSIX_TRACE_START, &set), 0);
	CHECK(has(&copy, POSIX_TRACE_START) && !has(&set, POSIX_TRACE_START));
}

TEST_MAIN()
