/* SPDX-License-Identifier: MIT */
#include "cli/when.h"

#include <ctype.h>
#include <stddef.h>
#include <time.h>

#include "cli/options.h"

#define SECOND_NS UINT64_C(1000000000)

/* `.` and one to nine digits, or nothing. NULL: neither. */
static const char *parse_fraction(const char *text, uint64_t *ret_ns)
{
	uint64_t ns = 0, scale = SECOND_NS;

	if (*text == '.') {
		if (!isdigit((unsigned char)*++text))
			return NULL;
		for (; isdigit((unsigned char)*text) && scale > 1; text++) {
			scale /= 10;
			ns += scale * (uint64_t)(*text - '0');
		}
	}
	*ret_ns = ns;
	return text;
}

static bool from_calendar(struct tm *tm, bool utc, uint64_t part_ns, uint64_t *ret_ns)
{
	tm->tm_isdst = -1;
	time_t seconds = utc ? timegm(tm) : mktime(tm);

	if (seconds < 0 || (uint64_t)seconds > UINT64_MAX / SECOND_NS - 1)
		return false;
	*ret_ns = (uint64_t)seconds * SECOND_NS + part_ns;
	return true;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static bool nearest_day(
	const struct tm *time_of_day, uint64_t part_ns, uint64_t start_ns, uint64_t *ret_ns)
{
	time_t start = (time_t)(start_ns / SECOND_NS);
	struct tm day;
	bool found = false;

	if (!localtime_r(&start, &day))
		return false;
	for (int shift = -1; shift <= 1; shift++) {
		struct tm tm = *time_of_day;
		uint64_t ns;

		tm.tm_year = day.tm_year;
		tm.tm_mon = day.tm_mon;
		tm.tm_mday = day.tm_mday + shift;
		if (!from_calendar(&tm, false, part_ns, &ns))
			continue;
		if (!found || distance(ns, start_ns) < distance(*ret_ns, start_ns))
			*ret_ns = ns;
		found = true;
	}
	return found;
}

static bool parse_absolute(const char *text, uint64_t start_ns, uint64_t *ret_ns)
{
	struct tm tm = {.tm_sec = 0};
	uint64_t part_ns, ns;
	const char *behind_date = strptime(text, "%Y-%m-%d", &tm);

	if (behind_date) {
		if (*behind_date != 'T' && *behind_date != ' ')
			return false;
		text = behind_date + 1;
	}
	if (!isdigit((unsigned char)*text))
		return false;
	text = strptime(text, "%H:%M:%S", &tm);
	if (!text)
		return false;
	text = parse_fraction(text, &part_ns);
	if (!text)
		return false;

	bool utc = behind_date && *text == 'Z';
	if (text[utc])
		return false;
	if (behind_date ? !from_calendar(&tm, utc, part_ns, &ns)
			: !nearest_day(&tm, part_ns, start_ns, &ns))
		return false;
	*ret_ns = ns;
	return true;
}

bool kly_when_parse(const char *text, uint64_t start_ns, uint64_t *ret_ns)
{
	uint64_t offset_ns;

	if (*text != '+')
		return parse_absolute(text, start_ns, ret_ns);
	if (!kly_parse_duration(text + 1, &offset_ns) || offset_ns > UINT64_MAX - start_ns)
		return false;
	*ret_ns = start_ns + offset_ns;
	return true;
}
