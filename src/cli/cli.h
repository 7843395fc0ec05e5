/* SPDX-License-Identifier: MIT */
/* The command `kilroy`: what its parts share. A command is a file cmd-NAME.c with one function. */
#ifndef KLY_CLI_CLI_H
#define KLY_CLI_CLI_H

#include <stdbool.h>

#include "base/util.h"

/* Exit statuses of `kilroy`. */
enum {
	KLY_EXIT_OK = 0,
	KLY_EXIT_FAILED = 1,
	KLY_EXIT_USAGE = 2,
};

/* "kilroy: TEXT" on standard error, one line whatever the text holds. */
void kly_cli_error(const char *format, ...) KLY_PRINTF(1, 2);

/* Are escape sequences for colours welcome there? It is a terminal that has them, and the user did
 * not set NO_COLOR. */
bool kly_cli_colour(int fd);

/* argv[0] is the command's name. They return the exit status. */
int kly_cmd_print(int argc, char **argv);
int kly_cmd_record(int argc, char **argv);

#endif
