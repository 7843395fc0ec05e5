/* SPDX-License-Identifier: MIT */
#include "tap.h"

#include "cli/out.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>

static struct kly_out out;

/* Takes what was put out since the last time. */
static const char *text(void)
{
	out.bytes[out.used] = 0;
	out.used = 0;
	return out.bytes;
}

TEST(numbers_look_as_printf_makes_them)
{
	static const uint64_t numbers[] = {0, 9, 10, 99, 100, 101, 999, 1000, 12345678, INT64_MAX,
		UINT64_MAX, 10000000000000000000u};
	char want[64];

	kly_out_init(&out, -1);
	for (size_t i = 0; i < KLY_COUNT(numbers); i++) {
		kly_out_unsigned(&out, numbers[i]);
		snprintf(want, sizeof(want), "%llu", (unsigned long long)numbers[i]);
		CHECK_STR(text(), want);
		kly_out_signed(&out, (int64_t)numbers[i]);
		snprintf(want, sizeof(want), "%lld", (long long)numbers[i]);
		CHECK_STR(text(), want);
		kly_out_right(&out, numbers[i], 7);
		snprintf(want, sizeof(want), "%7llu", (unsigned long long)numbers[i]);
		CHECK_STR(text(), want);
		kly_out_digits(&out, numbers[i] % 1000000000, 9);
		snprintf(want, sizeof(want), "%09llu", (unsigned long long)numbers[i] % 1000000000);
		CHECK_STR(text(), want);
		kly_out_hex(&out, numbers[i]);
		snprintf(want, sizeof(want), "0x%llx", (unsigned long long)numbers[i]);
		CHECK_STR(text(), want);
	}
}

TEST(controls_are_escaped)
{
	kly_out_init(&out, -1);
	CHECK_INT(kly_out_escaped(&out, "a\n\033[1m\0\177\\", 9, 0), 20);
	CHECK_STR(text(), "a\\n\\x1b[1m\\x00\\x7f\\\\");
}

TEST(utf8_is_shown_and_what_is_not_is_escaped)
{
	kly_out_init(&out, -1);
	CHECK_INT(kly_out_escaped(&out, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9, 0), 3);
	CHECK_STR(text(), "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
	/* cut, overlong, surrogate, beyond U+10FFFF, a lone continuation, a C1 control */
	kly_out_escaped(&out, "\xc3", 1, 0);
	CHECK_STR(text(), "\\xc3");
	kly_out_escaped(&out, "\xc0\xaf", 2, 0);
	CHECK_STR(text(), "\\xc0\\xaf");
	kly_out_escaped(&out, "\xed\xa0\x80", 3, 0);
	CHECK_STR(text(), "\\xed\\xa0\\x80");
	kly_out_escaped(&out, "\xf4\x90\x80\x80", 4, 0);
	CHECK_STR(text(), "\\xf4\\x90\\x80\\x80");
	kly_out_escaped(&out, "\x80z", 2, 0);
	CHECK_STR(text(), "\\x80z");
	kly_out_escaped(&out, "\xc2\x9b", 2, 0);
	CHECK_STR(text(), "\\xc2\\x9b");
}

TEST(quote_is_escaped_when_asked)
{
	kly_out_init(&out, -1);
	kly_out_escaped(&out, "a\"b", 3, '"');
	CHECK_STR(text(), "a\\\"b");
	kly_out_escaped(&out, "a\"b", 3, 0);
	CHECK_STR(text(), "a\"b");
}

TEST(json_strings_are_valid)
{
	kly_out_init(&out, -1);
	kly_out_json(&out, "a\"\\\n\001\xff\xc3\xa4", 8);
	CHECK_STR(text(), "\"a\\\"\\\\\\u000a\\u0001\xef\xbf\xbd\xc3\xa4\"");
	kly_out_json(&out, "", 0);
	CHECK_STR(text(), "\"\"");
}

TEST(everything_is_written_in_order)
{
	int fd = memfd_create("out", MFD_CLOEXEC);
	static char big[3 * KLY_OUT_BYTES];
	size_t total = 0;
	char c;

	memset(big, 'x', sizeof(big));
	kly_out_init(&out, fd);
	for (int i = 0; i < 100000; i++) {
		kly_out_unsigned(&out, 1234567);
		total += 7;
	}
	kly_out_bytes(&out, big, sizeof(big));
	kly_out_char(&out, 'y');
	CHECK_INT(kly_out_flush(&out), 0);
	total += sizeof(big) + 1;
	CHECK_INT(lseek(fd, 0, SEEK_END), total);
	CHECK_INT(pread(fd, &c, 1, 699999), 1);
	CHECK(c == '7');
	CHECK_INT(pread(fd, &c, 1, 700000), 1);
	CHECK(c == 'x');
	CHECK_INT(pread(fd, &c, 1, (off_t)total - 1), 1);
	CHECK(c == 'y');
	close(fd);
}

TEST(error_is_remembered)
{
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	kly_out_init(&out, fd);
	kly_out_text(&out, "abc");
	CHECK_INT(kly_out_flush(&out), -ENOSPC);
	kly_out_text(&out, "abc");
	CHECK_INT(kly_out_flush(&out), -ENOSPC);
	close(fd);
}

TEST_MAIN()
