/* SPDX-License-Identifier: MIT */
#include "tap.h"

#include "cli/options.h"

#include "base/util.h"

#include <fcntl.h>

/* One command line of every kind of option. What it prints goes to /dev/null. */
static struct {
	bool json, verbose;
	const char *output;
	const char *keep_items[16];
	struct kly_option_list keep;
	int64_t pid;
	uint64_t size, time;
	char *argv[17];
	int result;
} got;

static void parse(bool operand_ends, const char *words[])
{
	const struct kly_option options[] = {
		{'j', "json", KLY_OPTION_FLAG, &got.json, NULL, "help"},
		{'v', "verbose", KLY_OPTION_FLAG, &got.verbose, NULL, "help"},
		{'o', "output", KLY_OPTION_TEXT, &got.output, "FILE", "help"},
		{0, "keep", KLY_OPTION_LIST, &got.keep, "GLOB", "help"},
		{'p', "pid", KLY_OPTION_NUMBER, &got.pid, "PID", "help"},
		{'s', "size", KLY_OPTION_SIZE, &got.size, "SIZE", "help"},
		{'d', "duration", KLY_OPTION_DURATION, &got.time, "SECONDS", "help"},
	};
	const struct kly_usage usage = {
		"test", "[OPTION]...", options, KLY_COUNT(options), operand_ends};
	int argc = 1;

	memset(&got, 0, sizeof(got));
	got.keep.items = got.keep_items;
	got.argv[0] = (char *)"test";
	while (words[argc - 1]) {
		got.argv[argc] = (char *)words[argc - 1];
		argc++;
	}

	fflush(stdout);
	int out = dup(1), err = dup(2), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	dup2(null, 1);
	dup2(null, 2);
	got.result = kly_options_parse(&usage, argc, got.argv);
	fflush(stdout);
	dup2(out, 1);
	dup2(err, 2);
	close(out);
	close(err);
	close(null);
}

#define PARSE(...) parse(false, (const char *[]){__VA_ARGS__, NULL})
#define PARSE_COMMAND(...) parse(true, (const char *[]){__VA_ARGS__, NULL})

TEST(short_options_stand_together)
{
	PARSE("-jv", "-oa");
	CHECK_INT(got.result, 0);
	CHECK(got.json && got.verbose);
	CHECK_STR(got.output, "a");
	PARSE("-jo", "b", "c");
	CHECK_INT(got.result, 1);
	CHECK_STR(got.output, "b");
	CHECK_STR(got.argv[1], "c");
}

TEST(long_options_take_values_in_two_ways)
{
	PARSE("--output=a=b", "--keep", "x*", "--keep=y");
	CHECK_INT(got.result, 0);
	CHECK_STR(got.output, "a=b");
	CHECK_INT(got.keep.count, 2);
	CHECK_STR(got.keep.items[0], "x*");
	CHECK_STR(got.keep.items[1], "y");
	PARSE("--output=");
	CHECK_STR(got.output, "");
}

TEST(options_may_follow_operands)
{
	PARSE("a", "-j", "b", "--", "-v", "-");
	CHECK_INT(got.result, 4);
	CHECK(got.json && !got.verbose);
	CHECK_STR(got.argv[1], "a");
	CHECK_STR(got.argv[2], "b");
	CHECK_STR(got.argv[3], "-v");
	CHECK_STR(got.argv[4], "-");
}

TEST(options_of_a_command_line_stay_with_it)
{
	PARSE_COMMAND("-j", "ls", "-v", "--", "-o");
	CHECK_INT(got.result, 4);
	CHECK(got.json && !got.verbose);
	CHECK_STR(got.argv[1], "ls");
	CHECK_STR(got.argv[2], "-v");
	CHECK_STR(got.argv[3], "--");
	PARSE_COMMAND("--", "-v");
	CHECK_INT(got.result, 1);
	CHECK_STR(got.argv[1], "-v");
}

TEST(wrong_options_end_with_status_2)
{
	PARSE("--jso");
	CHECK_INT(got.result, -3);
	PARSE("--jsonx");
	CHECK_INT(got.result, -3);
	PARSE("-x");
	CHECK_INT(got.result, -3);
	PARSE("--output");
	CHECK_INT(got.result, -3);
	PARSE("-o");
	CHECK_INT(got.result, -3);
	PARSE("--json=1");
	CHECK_INT(got.result, -3);
}

TEST(help_ends_with_status_0)
{
	PARSE("-j", "--help", "--wrong");
	CHECK_INT(got.result, -1);
	PARSE("-jh");
	CHECK_INT(got.result, -1);
}

TEST(numbers_are_whole_and_small)
{
	PARSE("-p", "2147483647");
	CHECK_INT(got.result, 0);
	CHECK_INT(got.pid, 2147483647);
	static const char *const bad[] = {
		"", "-1", "+1", " 1", "1 ", "0x10", "1.5", "2147483648", "99999999999999999999"};
	for (size_t i = 0; i < KLY_COUNT(bad); i++) {
		PARSE("-p", bad[i]);
		CHECK_INT(got.result, -3);
	}
}

TEST(sizes_have_letters)
{
	PARSE("-s", "4096");
	CHECK_INT(got.size, 4096);
	PARSE("-s64k");
	CHECK_INT(got.size, 65536);
	PARSE("-s", "1.5M");
	CHECK_INT(got.size, 1572864);
	PARSE("-s", "2G");
	CHECK_INT(got.size, 2147483648);
	static const char *const bad[] = {
		"", "0", "K", "1KB", "1.5.2M", "-1K", "99999999999T", "1 K"};
	for (size_t i = 0; i < KLY_COUNT(bad); i++) {
		PARSE("-s", bad[i]);
		CHECK_INT(got.result, -3);
	}
}

TEST(durations_have_units)
{
	PARSE("-d", "1.5");
	CHECK_INT(got.time, 1500000000);
	PARSE("-d", "2s");
	CHECK_INT(got.time, 2000000000);
	PARSE("-d", "20ms");
	CHECK_INT(got.time, 20000000);
	PARSE("-d", "0.5us");
	CHECK_INT(got.time, 500);
	PARSE("-d", "7ns");
	CHECK_INT(got.time, 7);
	PARSE("-d", "2m");
	CHECK_INT(got.time, 120000000000);
	PARSE("-d", "1h");
	CHECK_INT(got.time, 3600000000000);
	static const char *const bad[] = {"", "s", "1d", "1 s", "-1", "1e3", "4294967295h", "1sm"};
	for (size_t i = 0; i < KLY_COUNT(bad); i++) {
		PARSE("-d", bad[i]);
		CHECK_INT(got.result, -3);
	}
}

TEST_MAIN()
