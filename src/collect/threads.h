/* SPDX-License-Identifier: MIT */
/* Threads that were met, by number, with the name that was last known: for names given after a
 * thread's first event. */
#ifndef KLY_COLLECT_THREADS_H
#define KLY_COLLECT_THREADS_H

#include "wire/record.h"

#include <stdbool.h>

struct kly_threads {
	struct kly_wire_thread *table; /* open addressing; tid 0 = empty */
	uint32_t room, count;          /* room: a power of two, at least twice count */
};

void kly_threads_fini(struct kly_threads *t);

/* The entry of a thread; *ret_new tells that it was made by this call. NULL: no memory. */
struct kly_wire_thread *kly_threads_get(
	struct kly_threads *t, const struct kly_wire_thread *thread, bool *ret_new);

/* Asks the system for the name that the thread has now. True: it has changed. */
bool kly_threads_refresh(struct kly_wire_thread *thread);

#endif
