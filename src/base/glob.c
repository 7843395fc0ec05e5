/* SPDX-License-Identifier: MIT */
/*
 * Matching goes through pattern and text once. At a mismatch it goes back to the last `*` and lets
 * that take one byte more; earlier ones need no second try, for what they took longer the last one
 * can take as well.
 */
#include "base/glob.h"

#include <stddef.h>

/* The `]` that ends a set; NULL: there is none. One that comes first belongs to the set. */
static const char *end_of_set(const char *set)
{
	set += *set == '!' || *set == '^';
	if (*set == ']')
		set++;
	while (*set && *set != ']')
		set++;
	return *set ? set : NULL;
}

static bool in_set(const char *set, const char *end, unsigned char c)
{
	bool negated = *set == '!' || *set == '^';
	bool found = false;

	for (set += negated; set < end; set++) {
		unsigned char low = (unsigned char)*set, high = low;
		if (set + 2 < end && set[1] == '-') {
			high = (unsigned char)set[2];
			set += 2;
		}
		found |= low <= c && c <= high;
	}
	return found != negated;
}

/* Bytes of the character at text. */
static size_t character(const char *text)
{
	size_t n = 1;

	if ((*text & 0xc0) == 0xc0)
		while (n < 4 && (text[n] & 0xc0) == 0x80)
			n++;
	return n;
}

/* One element of the pattern, no `*`, against the text's beginning. Returns the bytes of text that
 * it takes, 0 = no match, and moves *pattern behind it. */
static size_t match_one(const char **pattern, const char *text)
{
	const char *p = *pattern, *end;

	if (!*text || !*p)
		return 0;
	switch (*p) {
	case '?':
		*pattern = p + 1;
		return character(text);
	case '[':
		end = end_of_set(p + 1);
		if (!end)
			break;
		*pattern = end + 1;
		return in_set(p + 1, end, (unsigned char)*text);
	case '\\':
		if (p[1])
			p++;
		break;
	}
	*pattern = p + 1;
	return *p == *text;
}

bool kly_glob_match(const char *pattern, const char *text)
{
	const char *behind_star = NULL, *star_end = NULL;

	while (*text || *pattern) {
		if (*pattern == '*') {
			behind_star = ++pattern;
			star_end = text;
			continue;
		}
		size_t taken = match_one(&pattern, text);
		if (taken) {
			text += taken;
			continue;
		}
		if (!behind_star || !*star_end)
			return false;
		pattern = behind_star;
		text = ++star_end;
	}
	return true;
}
