/* SPDX-License-Identifier: MIT */
#include "tap.h"

#include "wire/fields.h"

#include <errno.h>

static bool is(const char *text, size_t len, const char *want)
{
	return len == strlen(want) && memcmp(text, want, len) == 0;
}

TEST(lines_become_fields)
{
	const char *text = "u32 id\nstr path %-20s\nf64 ms % 8.3f\n";
	struct kly_field field;

	CHECK_INT(kly_field_next(&text, &field), 1);
	CHECK(field.kind == KLY_FIELD_UNSIGNED && field.size == 4);
	CHECK(is(field.name, field.name_len, "id") && field.format_len == 0);
	CHECK_INT(kly_field_next(&text, &field), 1);
	CHECK(field.kind == KLY_FIELD_STRING && is(field.name, field.name_len, "path"));
	CHECK(is(field.format, field.format_len, "%-20s"));
	CHECK_INT(kly_field_next(&text, &field), 1);
	CHECK(is(field.format, field.format_len, "% 8.3f"));
	CHECK_INT(kly_field_next(&text, &field), 0);
}

TEST(last_line_needs_no_newline)
{
	const char *text = "ptr at";
	struct kly_field field;

	CHECK_INT(kly_field_next(&text, &field), 1);
	CHECK(field.kind == KLY_FIELD_POINTER && is(field.name, field.name_len, "at"));
	CHECK_INT(kly_field_next(&text, &field), 0);
}

TEST(lines_that_are_no_fields_are_refused)
{
	static const char *const bad[] = {
		"u31 a\n", "u32\n", "u32 \n", "u32  %d\n", "\n", " u32 a\n", "u", "u32"};
	struct kly_field field;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *text = bad[i];
		CHECK_INT(kly_field_next(&text, &field), -EBADMSG);
		CHECK(text == bad[i]);
	}
}

static const uint8_t bytes[] = {0xfe, 0xff, 0xff, 0xff, 3, 0, 'a', 'b', 'c'};

TEST(signed_values_keep_their_sign)
{
	const char *text = "i8 a\n";
	struct kly_payload payload = {bytes, 1};
	struct kly_field field;
	struct kly_value value;

	CHECK_INT(kly_field_next(&text, &field), 1);
	CHECK(kly_field_value(&field, &payload, &value));
	CHECK_INT(value.i, -2);
	CHECK_INT(payload.len, 0);
}

TEST(unsigned_values_have_no_sign)
{
	const char *text = "u32 a\n";
	struct kly_payload payload = {bytes, 4};
	struct kly_field field;
	struct kly_value value;

	CHECK_INT(kly_field_next(&text, &field), 1);
	CHECK(kly_field_value(&field, &payload, &value));
	CHECK_INT(value.u, 0xfffffffe);
}

TEST(strings_are_found_by_their_length)
{
	const char *text = "str a\n";
	struct kly_payload payload = {bytes + 4, 5};
	struct kly_field field;
	struct kly_value value;

	CHECK_INT(kly_field_next(&text, &field), 1);
	CHECK(kly_field_value(&field, &payload, &value));
	CHECK(is((const char *)value.data, value.len, "abc") && !value.cut);
	CHECK_INT(payload.len, 0);
}

TEST(string_that_leaves_the_payload_is_cut)
{
	const char *text = "str a\n";
	struct kly_payload payload = {bytes + 4, 4};
	struct kly_field field;
	struct kly_value value;

	CHECK_INT(kly_field_next(&text, &field), 1);
	CHECK(kly_field_value(&field, &payload, &value));
	CHECK(is((const char *)value.data, value.len, "ab") && value.cut);
	CHECK_INT(payload.len, 0);
}

TEST(value_that_is_not_whole_is_not_given)
{
	const char *text = "u32 a\nstr b\n";
	struct kly_payload three = {bytes, 3}, one = {bytes, 1};
	struct kly_field field;
	struct kly_value value;

	CHECK_INT(kly_field_next(&text, &field), 1);
	CHECK(!kly_field_value(&field, &three, &value));
	CHECK_INT(three.len, 3);
	CHECK_INT(kly_field_next(&text, &field), 1);
	CHECK(!kly_field_value(&field, &one, &value));
}

TEST_MAIN()
