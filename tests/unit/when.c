/* SPDX-License-Identifier: MIT */
#include "tap.h"

#include "base/util.h"
#include "cli/when.h"

#include <time.h>

/* 2026-11-30T13:03:22.5Z, in a zone that is one hour ahead */
#define START UINT64_C(1796043802500000000)
#define SECOND UINT64_C(1000000000)

static uint64_t when(const char *text)
{
	uint64_t ns = 0;

	setenv("TZ", "CET-1", 1);
	tzset();
	return kly_when_parse(text, START, &ns) ? ns : 0;
}

TEST(offset_counts_from_the_start)
{
	CHECK_INT(when("+0"), START);
	CHECK_INT(when("+1.5s"), START + 1500000000);
	CHECK_INT(when("+20ms"), START + 20000000);
}

TEST(date_and_time_are_local)
{
	CHECK_INT(when("2026-11-30T14:03:22.5"), START);
	CHECK_INT(when("2026-11-30 14:03:22.500000001"), START + 1);
}

TEST(z_means_utc)
{
	CHECK_INT(when("2026-11-30T13:03:22.5Z"), START);
}

TEST(time_of_day_is_the_nearest_one)
{
	CHECK_INT(when("14:03:22.5"), START);
	CHECK_INT(when("14:03:20"), START - 2500000000);
	CHECK_INT(when("00:00:00"), START + 35797 * SECOND + 500000000);
	CHECK_INT(when("04:00:00"), START - 36202 * SECOND - 500000000);
}

TEST(what_is_no_time_is_refused)
{
	static const char *const bad[] = {"", "+", "+x", "+1d", "14", "14:03", "14:03:22.",
		"14:03:22x", "14:03:22Z", "25:00:00", "2026-11-30", "2026-11-30T",
		"2026-13-30T14:03:22", "2026-11-30T14:03:22.5ZZ", "1800-01-01T00:00:00",
		"14:03:22.1234567890", " 14:03:22"};

	for (size_t i = 0; i < KLY_COUNT(bad); i++)
		if (when(bad[i]))
			TAP_FAIL("\"%s\" was taken", bad[i]);
}

TEST_MAIN()
