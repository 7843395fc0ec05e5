/* SPDX-License-Identifier: MIT */
/*
 * Options of a command, from a table that also prints the help.
 *
 *	bool json = false;
 *	const struct kly_option options[] = {
 *		{'j', "json", KLY_OPTION_FLAG, &json, NULL, "one JSON object a line"},
 *	};
 *	const struct kly_usage usage = {
 *		"print", "[OPTION]... FILE", options, KLY_COUNT(options), false};
 *	int r = kly_options_parse(&usage, argc, argv);
 *	if (r < 0)
 *		return -1 - r;
 *	... argv[1] to argv[r] are the operands
 *
 * `-j`, `-jo FILE`, `-oFILE`, `--json`, `--output FILE`, `--output=FILE`. `--` ends the options.
 * Every command has -h and --help.
 */
#ifndef KLY_CLI_OPTIONS_H
#define KLY_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kly_option_kind {
	KLY_OPTION_FLAG,     /* bool */
	KLY_OPTION_TEXT,     /* const char * */
	KLY_OPTION_LIST,     /* struct kly_option_list: the option may come more than once */
	KLY_OPTION_NUMBER,   /* int64_t, from 0 to 2^31 - 1 */
	KLY_OPTION_SIZE,     /* uint64_t, bytes: 64K, 1M, 2G; not 0 */
	KLY_OPTION_DURATION, /* uint64_t, nanoseconds: 1.5, 1.5s, 20ms, 3us, 7ns, 2m, 1h */
};

/* The texts are those of argv. items: of the caller, as many as argc. */
struct kly_option_list {
	const char **items;
	size_t count;
};

struct kly_option {
	char short_name; /* 0: none */
	const char *long_name;
	enum kly_option_kind kind;
	void *target;
	const char *metavar; /* NULL for a flag */
	const char *help;
};

struct kly_usage {
	const char *command;
	const char *synopsis;
	const struct kly_option *options;
	size_t count;
	bool operand_ends; /* the first operand ends the options: it is a command of its own */
};

/*
 * Fills the targets, and moves the operands, in their order, to argv[1] and what follows. Returns
 * their number, or a negative number: -1 - r, and the command has to end with status r. Then help
 * or an error was printed.
 */
int kly_options_parse(const struct kly_usage *usage, int argc, char **argv);

/* Nanoseconds from the text of a KLY_OPTION_DURATION. */
bool kly_parse_duration(const char *text, uint64_t *ret_ns);

#endif
