/* SPDX-License-Identifier: MIT */
#include "cli/options.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

/* Digits, and at most nine behind a point: value * 10^9. Returns what follows; NULL: no number, or
 * too large a one. */
static const char *parse_decimal(const char *text, uint64_t *ret_billionths)
{
	const uint64_t billion = 1000000000;
	uint64_t whole = 0, part = 0, scale = billion;

	if (!isdigit((unsigned char)*text))
		return NULL;
	for (; isdigit((unsigned char)*text); text++) {
		whole = whole * 10 + (uint64_t)(*text - '0');
		if (whole > UINT32_MAX)
			return NULL;
	}
	if (*text == '.') {
		for (text++; isdigit((unsigned char)*text); text++) {
			scale /= 10;
			part += scale * (uint64_t)(*text - '0');
		}
	}
	*ret_billionths = whole * billion + part;
	return text;
}

bool kly_parse_duration(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *name;
		uint64_t multiply, divide; /* of seconds */
	} units[] = {
		{"", 1, 1},
		{"s", 1, 1},
		{"ms", 1, 1000},
		{"us", 1, 1000000},
		{"ns", 1, 1000000000},
		{"m", 60, 1},
		{"h", 3600, 1},
	};
	uint64_t billionths, ns;
	const char *unit = parse_decimal(text, &billionths);

	if (!unit)
		return false;
	for (size_t i = 0; i < KLY_COUNT(units); i++) {
		if (strcmp(unit, units[i].name) != 0)
			continue;
		if (__builtin_mul_overflow(billionths, units[i].multiply, &ns))
			return false;
		*ret_ns = ns / units[i].divide;
		return true;
	}
	return false;
}

static bool parse_size(const char *text, uint64_t *ret_bytes)
{
	static const char letters[] = "KMGT";
	uint64_t billionths;
	const char *unit = parse_decimal(text, &billionths);

	if (!unit)
		return false;

	unsigned shift = 0;
	const char *letter = *unit ? strchr(letters, toupper((unsigned char)*unit)) : NULL;
	if (letter) {
		shift = 10 * ((unsigned)(letter - letters) + 1);
		unit++;
	}
	__extension__ unsigned __int128 bytes =
		((unsigned __int128)billionths << shift) / 1000000000;
	if (*unit || bytes == 0 || bytes > INT64_MAX)
		return false;
	*ret_bytes = (uint64_t)bytes;
	return true;
}

static bool parse_number(const char *text, int64_t *ret_number)
{
	int64_t number = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		if (!isdigit((unsigned char)*text))
			return false;
		number = number * 10 + (*text - '0');
		if (number > INT32_MAX)
			return false;
	}
	*ret_number = number;
	return true;
}

static const char *const kind_names[] = {
	[KLY_OPTION_NUMBER] = "a number",
	[KLY_OPTION_SIZE] = "a size, like 64K or 2M",
	[KLY_OPTION_DURATION] = "a duration, like 1.5 or 20ms",
};

static bool set_target(const struct kly_option *option, const char *value)
{
	struct kly_option_list *list;

	switch (option->kind) {
	case KLY_OPTION_FLAG:
		*(bool *)option->target = true;
		return true;
	case KLY_OPTION_TEXT:
		*(const char **)option->target = value;
		return true;
	case KLY_OPTION_LIST:
		list = option->target;
		list->items[list->count++] = value;
		return true;
	case KLY_OPTION_NUMBER:
		return parse_number(value, option->target);
	case KLY_OPTION_SIZE:
		return parse_size(value, option->target);
	case KLY_OPTION_DURATION:
		return kly_parse_duration(value, option->target);
	}
	return false;
}

static void show_option(
	char short_name, const char *long_name, const char *metavar, const char *help)
{
	char left[64];

	(void)snprintf(left, sizeof(left), "%c%c%s--%s%s%s", short_name ? '-' : ' ',
		short_name ? short_name : ' ', short_name ? ", " : "  ", long_name,
		metavar ? " " : "", metavar ? metavar : "");
	printf("  %-24s  %s\n", left, help);
}

static int show_help(const struct kly_usage *usage)
{
	printf("usage: kilroy %s %s\n\n", usage->command, usage->synopsis);
	for (size_t i = 0; i < usage->count; i++) {
		const struct kly_option *option = &usage->options[i];
		show_option(option->short_name, option->long_name, option->metavar, option->help);
	}
	show_option('h', "help", NULL, "show this text");
	return -1 - KLY_EXIT_OK;
}

static int wrong(const struct kly_usage *usage, const char *option, const char *what)
{
	kly_cli_error("%s: %s; see `kilroy %s --help`", option, what, usage->command);
	return -1 - KLY_EXIT_USAGE;
}

static const struct kly_option help_option = {.short_name = 'h', .long_name = "help"};

static const struct kly_option *find_short(const struct kly_usage *usage, char name)
{
	for (size_t i = 0; i < usage->count; i++)
		if (usage->options[i].short_name == name)
			return &usage->options[i];
	return name == 'h' ? &help_option : NULL;
}

static const struct kly_option *find_long(
	const struct kly_usage *usage, const char *name, size_t len)
{
	for (size_t i = 0; i <= usage->count; i++) {
		const struct kly_option *option =
			i < usage->count ? &usage->options[i] : &help_option;
		if (strncmp(option->long_name, name, len) == 0 && !option->long_name[len])
			return option;
	}
	return NULL;
}

/* What is left to parse. */
struct arguments {
	int argc, next;
	char **argv;
};

/* 0, or what kly_options_parse() returns. inline_value: what stands behind the name; NULL: nothing.
 */
static int apply(const struct kly_usage *usage, const struct kly_option *option, const char *shown,
	const char *inline_value, struct arguments *arguments)
{
	const char *value = inline_value;
	char text[160];

	if (option->kind == KLY_OPTION_FLAG && value)
		return wrong(usage, shown, "takes no value");
	if (option->kind != KLY_OPTION_FLAG && !value) {
		if (arguments->next == arguments->argc) {
			(void)snprintf(text, sizeof(text), "needs %s", option->metavar);
			return wrong(usage, shown, text);
		}
		value = arguments->argv[arguments->next++];
	}
	if (!set_target(option, value)) {
		(void)snprintf(
			text, sizeof(text), "\"%.60s\" is not %s", value, kind_names[option->kind]);
		return wrong(usage, shown, text);
	}
	return 0;
}

/* One word `--name`, `--name=value`. */
static int parse_long(const struct kly_usage *usage, char *word, struct arguments *arguments)
{
	size_t len = strcspn(word + 2, "=");
	const char *value = word[2 + len] ? word + 3 + len : NULL;
	const struct kly_option *option = find_long(usage, word + 2, len);
	char shown[64];

	(void)snprintf(shown, sizeof(shown), "%.*s", (int)kly_min(2 + len, 60), word);
	if (!option)
		return wrong(usage, shown, "no such option");
	if (option == &help_option)
		return show_help(usage);
	return apply(usage, option, shown, value, arguments);
}

/* One word `-a`, `-abc`, `-oVALUE`. */
static int parse_short(const struct kly_usage *usage, const char *word, struct arguments *arguments)
{
	for (const char *c = word + 1; *c; c++) {
		const struct kly_option *option = find_short(usage, *c);
		char shown[] = {'-', *c, 0};

		if (!option)
			return wrong(usage, shown, "no such option");
		if (option == &help_option)
			return show_help(usage);
		bool takes_rest = option->kind != KLY_OPTION_FLAG && c[1];
		int r = apply(usage, option, shown, takes_rest ? c + 1 : NULL, arguments);
		if (r < 0 || takes_rest)
			return r;
	}
	return 0;
}

int kly_options_parse(const struct kly_usage *usage, int argc, char **argv)
{
	struct arguments arguments = {.argc = argc, .next = 1, .argv = argv};
	bool ended = false;
	int operands = 0;

	while (arguments.next < argc) {
		char *word = argv[arguments.next++];
		int r = 0;

		if (ended || word[0] != '-' || !word[1]) {
			argv[++operands] = word;
			ended |= usage->operand_ends;
		} else if (strcmp(word, "--") == 0) {
			ended = true;
		} else if (word[1] == '-') {
			r = parse_long(usage, word, &arguments);
		} else {
			r = parse_short(usage, word, &arguments);
		}
		if (r < 0)
			return r;
	}
	return operands;
}
