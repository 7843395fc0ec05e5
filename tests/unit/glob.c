/* SPDX-License-Identifier: MIT */
#include "tap.h"

#include "base/glob.h"

TEST(plain_text_matches_itself)
{
	CHECK(kly_glob_match("mutex.lock", "mutex.lock"));
	CHECK(!kly_glob_match("mutex.lock", "mutex.locks"));
	CHECK(!kly_glob_match("mutex.lock", "mutex.loc"));
	CHECK(kly_glob_match("", ""));
	CHECK(!kly_glob_match("", "a"));
	CHECK(!kly_glob_match("a", ""));
}

TEST(star_takes_any_text)
{
	CHECK(kly_glob_match("*", ""));
	CHECK(kly_glob_match("*", "mutex.lock"));
	CHECK(kly_glob_match("mutex.*", "mutex."));
	CHECK(kly_glob_match("*.lock", "mutex.lock"));
	CHECK(kly_glob_match("*ab*ab", "aabab.ab"));
	CHECK(kly_glob_match("m**k", "mutex.lock"));
	CHECK(!kly_glob_match("*.lock", "mutex.unlock"));
	CHECK(!kly_glob_match("*ab", "aba"));
}

TEST(question_mark_takes_one_character)
{
	CHECK(kly_glob_match("a?c", "abc"));
	CHECK(kly_glob_match("a?c", "a\xc3\xa4"
				    "c"));
	CHECK(kly_glob_match("a?c", "a\xff"
				    "c"));
	CHECK(!kly_glob_match("a?c", "ac"));
	CHECK(!kly_glob_match("a?", "a"));
	CHECK(kly_glob_match("*?", "a"));
	CHECK(!kly_glob_match("*?", ""));
}

TEST(set_takes_one_of_its_bytes)
{
	CHECK(kly_glob_match("cpu[0-3]", "cpu2"));
	CHECK(!kly_glob_match("cpu[0-3]", "cpu4"));
	CHECK(kly_glob_match("[abc-]", "-"));
	CHECK(kly_glob_match("[]]", "]"));
	CHECK(kly_glob_match("[!]]", "a"));
	CHECK(!kly_glob_match("[!]]", "]"));
	CHECK(kly_glob_match("[!a-c]x", "dx"));
	CHECK(!kly_glob_match("[!a-c]x", "bx"));
	CHECK(!kly_glob_match("[!a]", ""));
}

TEST(set_without_its_end_is_plain_text)
{
	CHECK(kly_glob_match("a[b", "a[b"));
	CHECK(!kly_glob_match("a[b", "ab"));
	CHECK(kly_glob_match("[", "["));
	CHECK(kly_glob_match("[!", "[!"));
}

TEST(backslash_makes_plain)
{
	CHECK(kly_glob_match("a\\*", "a*"));
	CHECK(!kly_glob_match("a\\*", "ab"));
	CHECK(kly_glob_match("a\\", "a\\"));
}

TEST(many_stars_end_soon)
{
	char pattern[256], text[256];

	for (int i = 0; i < 254; i += 2)
		memcpy(pattern + i, "*a", 2);
	strcpy(pattern + 254, "b");
	memset(text, 'a', 255);
	text[255] = 0;
	CHECK(!kly_glob_match(pattern, text));
}

TEST_MAIN()
