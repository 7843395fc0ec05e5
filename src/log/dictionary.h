/* SPDX-License-Identifier: MIT */
/* What a log says besides its events, collected from its packets. */
#ifndef KLY_LOG_DICTIONARY_H
#define KLY_LOG_DICTIONARY_H

#include "base/timeline.h"
#include "log/log.h"

#include <stdbool.h>

/* A hostile file may not take more memory than this for processes and threads. */
#define KLY_LOG_DICTIONARY_MAX (64u << 20)
#define KLY_LOG_LOSSES_MAX 65536u

struct kly_log_dictionary {
	struct kly_log_type *types[KLY_TYPES_MAX]; /* with its texts; NULL = not defined */

	struct kly_log_process *processes; /* texts: one allocation each, at exe */
	size_t process_count, process_room;
	size_t bytes; /* that count against KLY_LOG_DICTIONARY_MAX */

	/* The first sorted_threads are sorted by pid and tid, none twice; the others are newer. */
	struct kly_wire_thread *threads;
	size_t sorted_threads, thread_count, thread_room;

	struct kly_log_loss *losses;
	size_t loss_count, loss_room;

	struct kly_wire_log_end end;
	bool ended;

	struct kly_timeline timeline; /* the owner initialises it */
};

/* Takes over what a packet says; EVENTS and unknown kinds say nothing. The body may hold anything.
 * NULL, or what is wrong with it; what else it says is taken over all the same. */
const char *kly_log_dictionary_take(struct kly_log_dictionary *dictionary,
	const struct kly_wire_packet *head, const uint8_t *body);

/* Makes all threads known to kly_log_dictionary_thread(): sorts them, and of several with the same
 * number the newest stays. 0 or -ENOMEM. */
int kly_log_dictionary_settle(struct kly_log_dictionary *dictionary);

/* NULL: not known. */
const struct kly_wire_thread *kly_log_dictionary_thread(
	const struct kly_log_dictionary *dictionary, uint32_t pid, uint32_t tid);

void kly_log_dictionary_fini(struct kly_log_dictionary *dictionary);

#endif
