/* SPDX-License-Identifier: MIT */
/*
 * The macros of <kilroy/trace.h>, against a library that only keeps the last payload. Strict C11;
 * api-cpp.cc compiles the same text as C++17.
 */
#include <kilroy/trace.h>

#include "tap.h"

#ifndef __cplusplus
#include <trace.h>

#include "wire/loss.h"
#include "wire/order.h"
#include "wire/stream.h"

/* The numbers outside are those inside. */
#define SAME(outside, inside) static_assert((int)(outside) == (int)(inside), #outside)
SAME(KILROY_LOOP, KLY_POLICY_LOOP);
SAME(KILROY_UNTIL_FULL, KLY_POLICY_UNTIL_FULL);
SAME(KILROY_RELAXED, KLY_STREAM_RELAXED);
SAME(KILROY_STRONG, KLY_STREAM_STRONG);
SAME(KILROY_EVENT_TRUNCATED, KLY_EVENT_TRUNCATED);
SAME(KILROY_EVENT_LATE, KLY_EVENT_LATE);
SAME(KILROY_LOSS_FULL, KLY_LOSS_FULL);
SAME(KILROY_LOSS_OVERWRITTEN, KLY_LOSS_OVERWRITTEN);
SAME(KILROY_LOSS_DEPTH, KLY_LOSS_DEPTH);
SAME(KILROY_LOSS_SLOTS, KLY_LOSS_SLOTS);
SAME(KILROY_LOSS_MEMORY, KLY_LOSS_MEMORY);
SAME(KILROY_LOSS_DIED, KLY_LOSS_DIED);
SAME(KILROY_LOSS_DAMAGED, KLY_LOSS_DAMAGED);
SAME(KILROY_LOSS_DISK, KLY_LOSS_DISK);
SAME(KILROY_LOSS_DISK + 1, KLY_LOSS_CAUSES);
SAME(POSIX_TRACE_START, KLY_TYPE_START);
SAME(POSIX_TRACE_STOP, KLY_TYPE_STOP);
SAME(POSIX_TRACE_FILTER, KLY_TYPE_FILTER);
SAME(POSIX_TRACE_OVERFLOW, KLY_TYPE_OVERFLOW);
SAME(POSIX_TRACE_RESUME, KLY_TYPE_RESUME);
SAME(POSIX_TRACE_FLUSH_START, KLY_TYPE_FLUSH_START);
SAME(POSIX_TRACE_FLUSH_STOP, KLY_TYPE_FLUSH_STOP);
SAME(POSIX_TRACE_ERROR, KLY_TYPE_ERROR);
SAME(POSIX_TRACE_UNNAMED_USEREVENT, KLY_TYPE_UNNAMED);
SAME(POSIX_TRACE_UNNAMED_USER_EVENT, KLY_TYPE_UNNAMED);
SAME(TRACE_EVENT_NAME_MAX, KLY_TYPE_NAME_MAX);
SAME(TRACE_USER_EVENT_MAX, KLY_TYPES_MAX - KLY_TYPE_UNNAMED);
#endif

/* What the fake library saw. */
static struct {
	int calls, calls_in_parts;
	struct kilroy_event_type *type;
	unsigned char data[200000];
	size_t len;
	const void *address;
} seen;

#ifdef __cplusplus
extern "C" {
#endif

const uint64_t kilroy_unknown_word = 0;

__attribute__((noinline, nothrow)) void kilroy_record(
	struct kilroy_event_type *type, const void *data, size_t len)
{
	seen.calls++;
	seen.type = type;
	memcpy(seen.data, data, len);
	seen.len = len;
	seen.address = __builtin_return_address(0);
}

__attribute__((noinline, nothrow)) void kilroy_record_parts(
	struct kilroy_event_type *type, const struct kilroy_part *parts, unsigned count)
{
	seen.calls++;
	seen.calls_in_parts++;
	seen.type = type;
	seen.len = 0;
	for (unsigned i = 0; i < count; i++) {
		if (parts[i].len == 0)
			continue; /* memcpy() may not be given NULL, not even for no bytes */
		memcpy(seen.data + seen.len, parts[i].data, parts[i].len);
		seen.len += parts[i].len;
	}
	seen.address = __builtin_return_address(0);
}

#ifdef __cplusplus
}
#endif

/* Compares the payload seen with `want`, a list of values. */
static size_t want_len;
static unsigned char want[200000];

static void want_bytes(const void *data, size_t len)
{
	memcpy(want + want_len, data, len);
	want_len += len;
}

#define WANT(type, value)                              \
	do {                                           \
		type wanted_ = (value);                \
		want_bytes(&wanted_, sizeof(wanted_)); \
	} while (0)

static void want_content(const char *content, uint16_t len)
{
	WANT(uint16_t, len);
	want_bytes(content, len);
}

#define CHECK_PAYLOAD()                                        \
	do {                                                   \
		CHECK_INT(seen.len, want_len);                 \
		CHECK(memcmp(seen.data, want, want_len) == 0); \
	} while (0)

static void begin(void)
{
	seen.calls = seen.calls_in_parts = 0;
	seen.len = 0;
	seen.type = NULL;
	want_len = 0;
}

KILROY_EVENT(unsigned_integers, "test.unsigned", (u8, a), (u16, b), (u32, c), (u64, d));
KILROY_EVENT(signed_integers, "test.signed", (i8, a), (i16, b), (i32, c), (i64, d));
KILROY_EVENT(others, "test.others", (f64, seconds), (ptr, where));

TEST(unsigned_fields_are_packed_without_padding)
{
	begin();
	KILROY_RECORD(unsigned_integers, UINT8_MAX, 0x1234, 0x12345678, UINT64_MAX - 1);
	WANT(uint8_t, UINT8_MAX);
	WANT(uint16_t, 0x1234);
	WANT(uint32_t, 0x12345678);
	WANT(uint64_t, UINT64_MAX - 1);
	CHECK_PAYLOAD();
}

TEST(signed_fields_keep_their_sign)
{
	begin();
	KILROY_RECORD(signed_integers, INT8_MIN, -2, INT32_MIN, INT64_MIN);
	WANT(int8_t, INT8_MIN);
	WANT(int16_t, -2);
	WANT(int32_t, INT32_MIN);
	WANT(int64_t, INT64_MIN);
	CHECK_PAYLOAD();
}

TEST(doubles_and_pointers_take_eight_bytes)
{
	begin();
	KILROY_RECORD(others, -0.5, &seen);
	WANT(double, -0.5);
	WANT(uint64_t, (uint64_t)(uintptr_t)&seen);
	CHECK_PAYLOAD();
}

TEST(fixed_fields_arrive_in_one_piece)
{
	begin();
	KILROY_RECORD(unsigned_integers, 1, 2, 3, 4);
	CHECK_INT(seen.calls, 1);
	CHECK_INT(seen.calls_in_parts, 0);
}

KILROY_EVENT(string, "test.string", (str, path));
KILROY_EVENT(bytes, "test.bytes", (bytes, body));
KILROY_EVENT(mixed, "test.mixed", (u32, id), (str, path), (u8, flag), (bytes, body), (i64, after));

TEST(a_string_is_its_length_and_its_bytes)
{
	begin();
	KILROY_RECORD(string, "/etc/hosts");
	want_content("/etc/hosts", 10);
	CHECK_PAYLOAD();
	CHECK_INT(seen.calls_in_parts, 1);
}

TEST(an_empty_string_is_a_length_of_zero)
{
	begin();
	KILROY_RECORD(string, "");
	want_content("", 0);
	CHECK_PAYLOAD();
}

TEST(no_string_is_recorded_as_null_in_parentheses)
{
	begin();
	KILROY_RECORD(string, NULL);
	want_content("(null)", 6);
	CHECK_PAYLOAD();
}

TEST(bytes_may_contain_zeros)
{
	begin();
	KILROY_RECORD(bytes, "a\0b\0", 4);
	want_content("a\0b\0", 4);
	CHECK_PAYLOAD();
}

TEST(no_bytes_have_no_length)
{
	begin();
	KILROY_RECORD(bytes, NULL, 7);
	want_content("", 0);
	CHECK_PAYLOAD();
}

TEST(fields_around_strings_and_bytes_keep_their_places)
{
	begin();
	KILROY_RECORD(mixed, 7, "path", 1, "body!", 5, -9);
	WANT(uint32_t, 7);
	want_content("path", 4);
	WANT(uint8_t, 1);
	want_content("body!", 5);
	WANT(int64_t, -9);
	CHECK_PAYLOAD();
}

TEST(long_contents_are_cut_at_65535_bytes)
{
	static char longer[70001];

	memset(longer, 'x', sizeof(longer) - 1);
	begin();
	KILROY_RECORD(mixed, 7, longer, 1, longer, sizeof(longer), -9);
	WANT(uint32_t, 7);
	want_content(longer, UINT16_MAX);
	WANT(uint8_t, 1);
	want_content(longer, UINT16_MAX);
	WANT(int64_t, -9);
	CHECK_PAYLOAD();
}

KILROY_EVENT(nothing, "test.nothing");

TEST(an_event_without_fields_has_no_payload)
{
	begin();
	KILROY_RECORD(nothing);
	CHECK_INT(seen.calls, 1);
	CHECK_INT(seen.len, 0);
	CHECK_STR(seen.type->fields, "");
}

KILROY_EVENT(twelve_values, "test.twelve.values", (u8, a), (u8, b), (u8, c), (u8, d), (u8, e),
	(u8, f), (u8, g), (u8, h), (u8, i), (u8, j), (u8, k), (u8, l));
KILROY_EVENT(twelve_bytes, "test.twelve.bytes", (bytes, a), (bytes, b), (bytes, c), (bytes, d),
	(bytes, e), (bytes, f), (bytes, g), (bytes, h), (bytes, i), (bytes, j), (bytes, k),
	(bytes, l));

TEST(twelve_fields_are_allowed)
{
	begin();
	KILROY_RECORD(twelve_values, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
	for (uint8_t i = 1; i <= 12; i++)
		WANT(uint8_t, i);
	CHECK_PAYLOAD();
}

TEST(twelve_fields_may_all_be_bytes)
{
	begin();
	KILROY_RECORD(twelve_bytes, "a", 1, "b", 1, "c", 1, "d", 1, "e", 1, "f", 1, "g", 1, "h", 1,
		"i", 1, "j", 1, "k", 1, "l", 1);
	for (char c = 'a'; c <= 'l'; c++)
		want_content(&c, 1);
	CHECK_PAYLOAD();
}

KILROY_EVENT(described, "test.described", (u64, id), (i32, status, "%+d"), (f64, ms, "%.3f"),
	(ptr, where), (str, path, "%s"), (bytes, body));

TEST(the_descriptor_has_a_line_for_each_field)
{
	CHECK_STR(KILROY_TYPE(described)->name, "test.described");
	CHECK_STR(KILROY_TYPE(described)->fields,
		"u64 id\ni32 status %+d\nf64 ms %.3f\nptr where\nstr path %s\nbytes body\n");
}

TEST(a_fresh_descriptor_asks)
{
	CHECK(KILROY_TYPE(described)->word == &kilroy_unknown_word);
	CHECK_INT(KILROY_TYPE(described)->id, 0);
	CHECK_INT(KILROY_TYPE(described)->flags, 0);
	CHECK(KILROY_ENABLED(described));
}

KILROY_EVENT(switched, "test.switched", (u64, value), (str, text));

static int evaluations;

static uint64_t count_evaluation(void)
{
	evaluations++;
	return 1;
}

/* Steers the type `switched` as the library does. */
static void switch_to(uint64_t state)
{
	static uint64_t word;

	word = state;
	KILROY_TYPE(switched)->word = &word;
	evaluations = 0;
	begin();
}

TEST(an_event_that_nobody_wants_makes_no_call)
{
	switch_to(1);
	KILROY_RECORD(switched, count_evaluation(), "text");
	CHECK_INT(seen.calls, 0);
	CHECK(!KILROY_ENABLED(switched));
}

TEST(arguments_of_an_unwanted_event_are_not_evaluated)
{
	switch_to(1);
	KILROY_RECORD(switched, count_evaluation(), "text");
	CHECK_INT(evaluations, 0);
}

TEST(arguments_of_a_wanted_event_are_evaluated_once)
{
	switch_to(1 | 1 << 5);
	KILROY_RECORD(switched, count_evaluation(), "text");
	CHECK_INT(seen.calls, 1);
	CHECK_INT(evaluations, 1);
	CHECK(seen.type == KILROY_TYPE(switched));
}

TEST(a_wiped_word_asks_again)
{
	switch_to(0);
	KILROY_RECORD(switched, 1, "text");
	CHECK_INT(seen.calls, 1);
}

TEST(recording_is_one_statement)
{
	switch_to(3);
	if (evaluations)
		KILROY_RECORD(switched, count_evaluation(), "text");
	else
		KILROY_RECORD(nothing);
	CHECK_INT(evaluations, 0);
	CHECK(seen.type == KILROY_TYPE(nothing));
}

static __attribute__((noinline)) const void *record_here(void)
{
	KILROY_RECORD(nothing);
	return seen.address;
}

static __attribute__((noinline)) const void *record_there(void)
{
	KILROY_RECORD(string, "there");
	return seen.address;
}

TEST(the_address_of_an_event_lies_in_the_caller)
{
	const char *here = (const char *)record_here(), *there = (const char *)record_there();

	CHECK(here == (const char *)record_here());
	CHECK(here > (const char *)(uintptr_t)record_here);
	CHECK(here < (const char *)(uintptr_t)record_here + 2048);
	CHECK(there > (const char *)(uintptr_t)record_there);
	CHECK(there < (const char *)(uintptr_t)record_there + 2048);
}

#ifndef __cplusplus
TEST_MAIN()
#endif
