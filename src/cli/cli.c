/* SPDX-License-Identifier: MIT */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void kly_cli_error(const char *format, ...)
{
	char line[1024];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);

	/* Names of files and what logs say may hold anything, escape sequences too. */
	for (char *c = line; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = '?';
	(void)fprintf(stderr, "kilroy: %s\n", line);
}

bool kly_cli_colour(int fd)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(fd) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}
