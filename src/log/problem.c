/* SPDX-License-Identifier: MIT */
#include "log/problem.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define ROOM_FIRST 16u

static bool make_room(struct kly_log_problems *problems)
{
	if (problems->count < problems->room)
		return true;

	const size_t room = problems->room ? 2 * problems->room : ROOM_FIRST;
	void *list = reallocarray(problems->list, room, sizeof(*problems->list));
	if (!list)
		return false;
	problems->list = list;
	problems->room = room;
	return true;
}

static bool is_known(const struct kly_log_problems *problems, const struct kly_log_problem *problem)
{
	for (size_t i = 0; i < problems->count; i++)
		if (problems->list[i].offset == problem->offset &&
			strcmp(problems->list[i].text, problem->text) == 0)
			return true;
	return false;
}

void kly_log_problems_add(struct kly_log_problems *problems, uint64_t packet, uint64_t offset,
	const char *format, ...)
{
	struct kly_log_problem problem = {.packet = packet, .offset = offset};
	const size_t size = sizeof(problem.text);
	int n;

	if (problems->count == KLY_LOG_PROBLEMS_MAX || !make_room(problems))
		return;
	if (problems->count == KLY_LOG_PROBLEMS_MAX - 1)
		format = "more problems, not listed";

	if (packet == KLY_LOG_NO_PACKET)
		n = snprintf(problem.text, size, "head: ");
	else
		n = snprintf(problem.text, size, "packet %" PRIu64 " at 0x%" PRIx64 ": ", packet,
			offset);
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(problem.text + n, size - (size_t)n, format, arguments);
	va_end(arguments);

	if (!is_known(problems, &problem))
		problems->list[problems->count++] = problem;
}

void kly_log_problems_fini(struct kly_log_problems *problems)
{
	free(problems->list);
	*problems = (struct kly_log_problems){0};
}
