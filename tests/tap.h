/* SPDX-License-Identifier: MIT */
/*
 * The test harness: TAP on standard output.
 *
 *	TEST(full_ring_counts_the_loss)
 *	{
 *		CHECK(lost == 3);
 *		CHECK_INT(read(fd, b, 8), 8);
 *	}
 *	TEST_MAIN()
 *
 * A failed check says where and what, fails its test and leaves it. SKIP("why") skips one. With
 * arguments only the tests whose names contain one of them run. The names are sentences.
 */
#ifndef KLY_TESTS_TAP_H
#define KLY_TESTS_TAP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tap_test {
	const char *name;
	void (*run)(void);
	struct tap_test *next;
};

static struct tap_test *tap_first, **tap_last = &tap_first;
static bool tap_failed;
static const char *tap_skipped;

#define TEST(name_)                                                                                \
	static void name_(void);                                                                   \
	__attribute__((constructor)) static void tap_add_##name_(void)                             \
	{                                                                                          \
		static struct tap_test test = {#name_, name_, NULL};                               \
		*tap_last = &test;                                                                 \
		tap_last = &test.next;                                                             \
	}                                                                                          \
	static void name_(void)

#define TAP_FAIL(...)                                                                              \
	do {                                                                                       \
		printf("# %s:%d: ", __FILE__, __LINE__);                                           \
		printf(__VA_ARGS__);                                                               \
		printf("\n");                                                                      \
		tap_failed = true;                                                                 \
		return;                                                                            \
	} while (0)

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			TAP_FAIL("%s", #condition);                                                \
	} while (0)

#define CHECK_INT(got, want)                                                                       \
	do {                                                                                       \
		long long got_ = (long long)(got), want_ = (long long)(want);                      \
		if (got_ != want_)                                                                 \
			TAP_FAIL("%s is %lld, not %lld", #got, got_, want_);                       \
	} while (0)

#define CHECK_STR(got, want)                                                                       \
	do {                                                                                       \
		const char *got_ = (got), *want_ = (want);                                         \
		if (!got_ || strcmp(got_, want_) != 0)                                             \
			TAP_FAIL("%s is \"%s\", not \"%s\"", #got, got_ ? got_ : "(null)", want_); \
	} while (0)

#define SKIP(why)                                                                                  \
	do {                                                                                       \
		tap_skipped = (why);                                                               \
		return;                                                                            \
	} while (0)

static inline bool tap_wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strstr(name, argv[i]))
			return true;
	return argc < 2;
}

static inline int tap_run(int argc, char **argv)
{
	int number = 0, failures = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (struct tap_test *t = tap_first; t; t = t->next) {
		if (!tap_wanted(t->name, argc, argv))
			continue;
		tap_failed = false;
		tap_skipped = NULL;
		t->run();
		failures += tap_failed;
		printf("%s %d - %s%s%s\n", tap_failed ? "not ok" : "ok", ++number, t->name,
			tap_skipped ? " # SKIP " : "", tap_skipped ? tap_skipped : "");
	}
	printf("1..%d\n", number);
	return failures != 0;
}

#define TEST_MAIN()                                                                                \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		return tap_run(argc, argv);                                                        \
	}

#endif
