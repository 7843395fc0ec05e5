/* SPDX-License-Identifier: MIT */
/* What is wrong with a log, as a list of lines for the user. */
#ifndef KLY_LOG_PROBLEM_H
#define KLY_LOG_PROBLEM_H

#include "base/util.h"

#include <stddef.h>
#include <stdint.h>

struct kly_log_problem {
	uint64_t packet; /* its number in the file's sequence; KLY_LOG_NO_PACKET = the head */
	uint64_t offset; /* in the file */
	char text[120];  /* all of it: "packet 7 at 0x1c000: checksum mismatch" */
};
#define KLY_LOG_NO_PACKET UINT64_MAX
#define KLY_LOG_PROBLEMS_MAX 1000u /* kept; the last one tells that there are more */

struct kly_log_problems {
	struct kly_log_problem *list;
	size_t count, room;
};

/* Adds one, unless the same was said before. Without memory for it, it is left out. */
void kly_log_problems_add(struct kly_log_problems *problems, uint64_t packet, uint64_t offset,
	const char *format, ...) KLY_PRINTF(4, 5);
void kly_log_problems_fini(struct kly_log_problems *problems);

#endif
