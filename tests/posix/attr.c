/* SPDX-License-Identifier: MIT */
/* Attributes objects. */
#include <trace.h>

#include "tap.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>

static trace_attr_t fresh(void)
{
	trace_attr_t attr;

	memset(&attr, 0xa5, sizeof(attr));
	if (posix_trace_attr_init(&attr) != 0)
		abort();
	return attr;
}

/* A text of len bytes. */
static const char *text(size_t len)
{
	static char buffer[2 * TRACE_NAME_MAX + 1];

	memset(buffer, 'n', len);
	buffer[len] = '\0';
	return buffer;
}

TEST(ATTR_01_init_makes_an_object_that_every_getter_accepts)
{
	trace_attr_t attr;
	struct timespec time;
	char name[TRACE_NAME_MAX];
	size_t size;
	int policy;

	CHECK_INT(posix_trace_attr_init(&attr), 0);
	CHECK_INT(posix_trace_attr_getclockres(&attr, &time), 0);
	CHECK_INT(posix_trace_attr_getcreatetime(&attr, &time), 0);
	CHECK_INT(posix_trace_attr_getgenversion(&attr, name), 0);
	CHECK_INT(posix_trace_attr_getname(&attr, name), 0);
	CHECK_INT(posix_trace_attr_getinherited(&attr, &policy), 0);
	CHECK_INT(posix_trace_attr_getlogfullpolicy(&attr, &policy), 0);
	CHECK_INT(posix_trace_attr_getstreamfullpolicy(&attr, &policy), 0);
	CHECK_INT(posix_trace_attr_getlogsize(&attr, &size), 0);
	CHECK_INT(posix_trace_attr_getmaxdatasize(&attr, &size), 0);
	CHECK_INT(posix_trace_attr_getmaxsystemeventsize(&attr, &size), 0);
	CHECK_INT(posix_trace_attr_getmaxusereventsize(&attr, 1, &size), 0);
	CHECK_INT(posix_trace_attr_getstreamsize(&attr, &size), 0);
}

TEST(ATTR_02_a_destroyed_object_may_be_initialised_again)
{
	trace_attr_t attr = fresh();
	size_t size = 0;

	CHECK_INT(posix_trace_attr_destroy(&attr), 0);
	CHECK_INT(posix_trace_attr_init(&attr), 0);
	CHECK_INT(posix_trace_attr_setstreamsize(&attr, 8192), 0);
	CHECK_INT(posix_trace_attr_getstreamsize(&attr, &size), 0);
	CHECK_INT(size, 8192);
	CHECK_INT(posix_trace_attr_destroy(&attr), 0);
}

TEST(ATTR_02_a_destroyed_object_is_refused)
{
	trace_attr_t attr = fresh();
	size_t size;

	CHECK_INT(posix_trace_attr_destroy(&attr), 0);
	CHECK_INT(posix_trace_attr_getstreamsize(&attr, &size), EINVAL);
	CHECK_INT(posix_trace_attr_setstreamsize(&attr, 8192), EINVAL);
	CHECK_INT(posix_trace_attr_destroy(&attr), EINVAL);
}

TEST(ATTR_03_the_default_inheritance_is_close_for_child)
{
	trace_attr_t attr = fresh();
	int policy = -1;

	CHECK_INT(posix_trace_attr_getinherited(&attr, &policy), 0);
	CHECK_INT(policy, POSIX_TRACE_CLOSE_FOR_CHILD);
}

TEST(ATTR_04_the_default_log_policy_is_loop)
{
	trace_attr_t attr = fresh();
	int policy = -1;

	CHECK_INT(posix_trace_attr_getlogfullpolicy(&attr, &policy), 0);
	CHECK_INT(policy, POSIX_TRACE_LOOP);
}

TEST(ATTR_05_the_default_name_is_empty)
{
	trace_attr_t attr = fresh();
	char name[TRACE_NAME_MAX] = "x";

	CHECK_INT(posix_trace_attr_getname(&attr, name), 0);
	CHECK_STR(name, "");
}

TEST(ATTR_06_the_default_stream_policy_shows_as_loop)
{
	trace_attr_t attr = fresh();
	int policy = -1;

	CHECK_INT(posix_trace_attr_getstreamfullpolicy(&attr, &policy), 0);
	CHECK_INT(policy, POSIX_TRACE_LOOP);
}

TEST(ATTR_07_the_version_fits_into_the_callers_array)
{
	trace_attr_t attr = fresh();
	char version[TRACE_NAME_MAX + 16];

	memset(version, '#', sizeof(version));
	CHECK_INT(posix_trace_attr_getgenversion(&attr, version), 0);
	CHECK(version[0] && memchr(version, '\0', TRACE_NAME_MAX));
	for (int i = 0; i < 16; i++)
		CHECK_INT(version[TRACE_NAME_MAX + i], '#');
}

TEST(ATTR_08_the_clock_resolution_is_positive_and_fine)
{
	trace_attr_t attr = fresh();
	struct timespec resolution = {-1, -1};

	CHECK_INT(posix_trace_attr_getclockres(&attr, &resolution), 0);
	CHECK_INT(resolution.tv_sec, 0);
	CHECK(resolution.tv_nsec > 0 && resolution.tv_nsec <= 1000);
}

TEST(ATTR_09_names_come_back_unchanged)
{
	static const size_t lengths[] = {0, 1, 8, TRACE_NAME_MAX - 1};
	trace_attr_t attr = fresh();
	char name[TRACE_NAME_MAX + 16];

	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		memset(name, '#', sizeof(name));
		CHECK_INT(posix_trace_attr_setname(&attr, text(lengths[i])), 0);
		CHECK_INT(posix_trace_attr_getname(&attr, name), 0);
		CHECK_STR(name, text(lengths[i]));
		for (size_t at = lengths[i] + 1; at < sizeof(name); at++)
			CHECK_INT(name[at], '#');
	}
}

TEST(ATTR_09_a_shorter_name_replaces_a_longer_one)
{
	trace_attr_t attr = fresh();
	char name[TRACE_NAME_MAX];

	CHECK_INT(posix_trace_attr_setname(&attr, "a long name"), 0);
	CHECK_INT(posix_trace_attr_setname(&attr, "short"), 0);
	CHECK_INT(posix_trace_attr_getname(&attr, name), 0);
	CHECK_STR(name, "short");
}

TEST(ATTR_10_a_longer_name_is_cut)
{
	trace_attr_t attr = fresh();
	char name[TRACE_NAME_MAX + 1];

	for (size_t len = TRACE_NAME_MAX; len <= 2 * TRACE_NAME_MAX; len += TRACE_NAME_MAX) {
		memset(name, '#', sizeof(name));
		CHECK_INT(posix_trace_attr_setname(&attr, text(len)), 0);
		CHECK_INT(posix_trace_attr_getname(&attr, name), 0);
		CHECK_STR(name, text(TRACE_NAME_MAX - 1));
		CHECK_INT(name[TRACE_NAME_MAX], '#');
	}
}

TEST(ATTR_11_both_inheritance_values_are_kept)
{
	static const int values[] = {POSIX_TRACE_INHERITED, POSIX_TRACE_CLOSE_FOR_CHILD};
	trace_attr_t attr = fresh();
	int got;

	for (int i = 0; i < 2; i++) {
		CHECK_INT(posix_trace_attr_setinherited(&attr, values[i]), 0);
		CHECK_INT(posix_trace_attr_getinherited(&attr, &got), 0);
		CHECK_INT(got, values[i]);
	}
}

TEST(ATTR_12_all_stream_policies_are_kept)
{
	static const int values[] = {POSIX_TRACE_FLUSH, POSIX_TRACE_UNTIL_FULL, POSIX_TRACE_LOOP};
	trace_attr_t attr = fresh();
	int got;

	for (int i = 0; i < 3; i++) {
		CHECK_INT(posix_trace_attr_setstreamfullpolicy(&attr, values[i]), 0);
		CHECK_INT(posix_trace_attr_getstreamfullpolicy(&attr, &got), 0);
		CHECK_INT(got, values[i]);
	}
}

TEST(ATTR_13_all_log_policies_are_kept)
{
	static const int values[] = {POSIX_TRACE_APPEND, POSIX_TRACE_UNTIL_FULL, POSIX_TRACE_LOOP};
	trace_attr_t attr = fresh();
	int got;

	for (int i = 0; i < 3; i++) {
		CHECK_INT(posix_trace_attr_setlogfullpolicy(&attr, values[i]), 0);
		CHECK_INT(posix_trace_attr_getlogfullpolicy(&attr, &got), 0);
		CHECK_INT(got, values[i]);
	}
}

TEST(ATTR_14_an_unknown_inheritance_is_refused)
{
	static const int values[] = {-1, 0, 3, INT_MAX};
	trace_attr_t attr = fresh();
	int got;

	CHECK_INT(posix_trace_attr_setinherited(&attr, POSIX_TRACE_INHERITED), 0);
	for (int i = 0; i < 4; i++) {
		CHECK_INT(posix_trace_attr_setinherited(&attr, values[i]), EINVAL);
		CHECK_INT(posix_trace_attr_getinherited(&attr, &got), 0);
		CHECK_INT(got, POSIX_TRACE_INHERITED);
	}
}

TEST(ATTR_15_an_unknown_stream_policy_is_refused)
{
	static const int values[] = {-1, 0, POSIX_TRACE_APPEND, INT_MAX};
	trace_attr_t attr = fresh();
	int got;

	CHECK_INT(posix_trace_attr_setstreamfullpolicy(&attr, POSIX_TRACE_UNTIL_FULL), 0);
	for (int i = 0; i < 4; i++) {
		CHECK_INT(posix_trace_attr_setstreamfullpolicy(&attr, values[i]), EINVAL);
		CHECK_INT(posix_trace_attr_getstreamfullpolicy(&attr, &got), 0);
		CHECK_INT(got, POSIX_TRACE_UNTIL_FULL);
	}
}

TEST(ATTR_16_an_unknown_log_policy_is_refused)
{
	static const int values[] = {-1, 0, POSIX_TRACE_FLUSH, INT_MAX};
	trace_attr_t attr = fresh();
	int got;

	CHECK_INT(posix_trace_attr_setlogfullpolicy(&attr, POSIX_TRACE_APPEND), 0);
	for (int i = 0; i < 4; i++) {
		CHECK_INT(posix_trace_attr_setlogfullpolicy(&attr, values[i]), EINVAL);
		CHECK_INT(posix_trace_attr_getlogfullpolicy(&attr, &got), 0);
		CHECK_INT(got, POSIX_TRACE_APPEND);
	}
}

TEST(ATTR_17_the_greatest_data_size_is_kept)
{
	static const size_t values[] = {1, 7, 512, 4096, 65535};
	trace_attr_t attr = fresh();
	size_t got;

	for (int i = 0; i < 5; i++) {
		CHECK_INT(posix_trace_attr_setmaxdatasize(&attr, values[i]), 0);
		CHECK_INT(posix_trace_attr_getmaxdatasize(&attr, &got), 0);
		CHECK_INT(got, values[i]);
	}
}

TEST(ATTR_17_a_data_size_that_no_stream_can_have_is_refused)
{
	trace_attr_t attr = fresh();
	size_t got;

	CHECK_INT(posix_trace_attr_setmaxdatasize(&attr, 0), EINVAL);
	CHECK_INT(posix_trace_attr_setmaxdatasize(&attr, 65536), EINVAL);
	CHECK_INT(posix_trace_attr_getmaxdatasize(&attr, &got), 0);
	CHECK_INT(got, 4096);
}

TEST(ATTR_18_the_stream_size_is_kept)
{
	static const size_t values[] = {4096, 5000, 1 << 20, SIZE_MAX};
	trace_attr_t attr = fresh();
	size_t got;

	for (int i = 0; i < 4; i++) {
		CHECK_INT(posix_trace_attr_setstreamsize(&attr, values[i]), 0);
		CHECK_INT(posix_trace_attr_getstreamsize(&attr, &got), 0);
		CHECK(got == values[i]);
	}
}

TEST(ATTR_19_the_log_size_is_kept)
{
	static const size_t values[] = {4096, 5000, 1 << 20, SIZE_MAX};
	trace_attr_t attr = fresh();
	size_t got;

	for (int i = 0; i < 4; i++) {
		CHECK_INT(posix_trace_attr_setlogsize(&attr, values[i]), 0);
		CHECK_INT(posix_trace_attr_getlogsize(&attr, &got), 0);
		CHECK(got == values[i]);
	}
}

TEST(ATTR_20_the_size_of_a_user_event_grows_with_its_data_up_to_the_limit)
{
	trace_attr_t attr = fresh();
	size_t last = 0, size, largest;

	CHECK_INT(posix_trace_attr_setmaxdatasize(&attr, 1000), 0);
	for (size_t len = 0; len <= 1000; len++) {
		CHECK_INT(posix_trace_attr_getmaxusereventsize(&attr, len, &size), 0);
		CHECK(size >= len && size >= last && size > 0);
		last = size;
	}
	for (size_t len = 1000; len; len *= 2) {
		CHECK_INT(posix_trace_attr_getmaxusereventsize(&attr, len, &largest), 0);
		CHECK(largest == last);
	}
	CHECK_INT(posix_trace_attr_getmaxusereventsize(&attr, SIZE_MAX, &largest), 0);
	CHECK(largest == last);
}

TEST(ATTR_20_the_size_of_a_user_event_depends_on_the_object_alone)
{
	trace_attr_t small = fresh(), large = fresh();
	size_t of_small, of_large;

	CHECK_INT(posix_trace_attr_setmaxdatasize(&small, 16), 0);
	CHECK_INT(posix_trace_attr_setmaxdatasize(&large, 1600), 0);
	CHECK_INT(posix_trace_attr_getmaxusereventsize(&small, 2000, &of_small), 0);
	CHECK_INT(posix_trace_attr_getmaxusereventsize(&large, 2000, &of_large), 0);
	CHECK(of_small < of_large);
}

TEST(ATTR_21_the_size_of_a_system_event_covers_two_event_sets)
{
	trace_attr_t attr = fresh();
	size_t size = 0;

	CHECK_INT(posix_trace_attr_setmaxdatasize(&attr, 1), 0);
	CHECK_INT(posix_trace_attr_getmaxsystemeventsize(&attr, &size), 0);
	CHECK(size > 2 * sizeof(trace_event_set_t));
}

TEST(ATTR_22_objects_are_independent)
{
	trace_attr_t one = fresh(), other = fresh();
	char name[TRACE_NAME_MAX];
	size_t size;

	CHECK_INT(posix_trace_attr_setname(&one, "one"), 0);
	CHECK_INT(posix_trace_attr_setname(&other, "other"), 0);
	CHECK_INT(posix_trace_attr_setstreamsize(&one, 4096), 0);
	CHECK_INT(posix_trace_attr_setstreamsize(&other, 8192), 0);
	CHECK_INT(posix_trace_attr_destroy(&one), 0);
	CHECK_INT(posix_trace_attr_getname(&other, name), 0);
	CHECK_STR(name, "other");
	CHECK_INT(posix_trace_attr_getstreamsize(&other, &size), 0);
	CHECK_INT(size, 8192);
}

TEST_MAIN()
