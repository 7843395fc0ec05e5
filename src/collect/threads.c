/* SPDX-License-Identifier: MIT */
#include "collect/threads.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROOM_FIRST 64u

void kly_threads_fini(struct kly_threads *t)
{
	free(t->table);
	*t = (struct kly_threads){0};
}

static struct kly_wire_thread *find(const struct kly_threads *t, const struct kly_wire_thread *who)
{
	uint32_t at = (who->tid * 2654435761u ^ who->pid) & (t->room - 1);

	while (t->table[at].tid &&
		(t->table[at].tid != who->tid || t->table[at].pid != who->pid))
		at = (at + 1) & (t->room - 1);
	return &t->table[at];
}

static bool grow(struct kly_threads *t)
{
	struct kly_threads larger = {.room = t->room ? 2 * t->room : ROOM_FIRST, .count = t->count};

	larger.table = calloc(larger.room, sizeof(*larger.table));
	if (!larger.table)
		return false;
	for (uint32_t i = 0; i < t->room; i++)
		if (t->table[i].tid)
			*find(&larger, &t->table[i]) = t->table[i];
	free(t->table);
	*t = larger;
	return true;
}

struct kly_wire_thread *kly_threads_get(
	struct kly_threads *t, const struct kly_wire_thread *thread, bool *ret_new)
{
	if (2 * (t->count + 1) > t->room && !grow(t))
		return NULL;
	struct kly_wire_thread *at = find(t, thread);

	*ret_new = !at->tid;
	if (!at->tid) {
		*at = *thread;
		t->count++;
	}
	return at;
}

bool kly_threads_refresh(struct kly_wire_thread *thread)
{
	char path[64], name[sizeof(thread->name) + 1] = "";

	(void)snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", thread->pid, thread->tid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, name, sizeof(name) - 1);
	(void)close(fd);
	if (n <= 0)
		return false;
	name[strcspn(name, "\n")] = '\0';
	name[sizeof(thread->name) - 1] = '\0';
	if (strcmp(name, thread->name) == 0)
		return false;
	memset(thread->name, 0, sizeof(thread->name));
	memcpy(thread->name, name, strlen(name));
	return true;
}
