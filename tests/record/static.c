/* SPDX-License-Identifier: MIT */
/* Linked statically: nothing can be preloaded. Runs what its arguments say, or ends. */
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc > 1) {
		execvp(argv[1], argv + 1);
		return 99;
	}
	puts("static");
	return 7;
}
