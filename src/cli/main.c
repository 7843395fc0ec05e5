/* SPDX-License-Identifier: MIT */
/* `kilroy COMMAND ...`: finds the command in a table and runs it. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{"record", kly_cmd_record, "run a program and record its events"},
	{"print", kly_cmd_print, "show the events of a log"},
};

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < KLY_COUNT(commands); i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static int show_help(void)
{
	printf("usage: kilroy COMMAND [OPTION]... [ARGUMENT]...\n\n");
	for (size_t i = 0; i < KLY_COUNT(commands); i++)
		printf("  %-10s %s\n", commands[i].name, commands[i].help);
	printf("\n`kilroy COMMAND --help` lists a command's options, `man kilroy-COMMAND` explains "
	       "them.\n");
	return KLY_EXIT_OK;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return show_help();
	if (strcmp(name, "--version") == 0) {
		printf("kilroy %s\n", KLY_VERSION);
		return KLY_EXIT_OK;
	}
	if (argc < 2) {
		kly_cli_error("which command? `kilroy --help` lists them");
		return KLY_EXIT_USAGE;
	}

	const struct command *command = find_command(name);
	if (!command) {
		kly_cli_error("%s: no such command; `kilroy --help` lists them", name);
		return KLY_EXIT_USAGE;
	}
	return command->run(argc - 1, argv + 1);
}
