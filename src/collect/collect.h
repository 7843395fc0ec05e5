/* SPDX-License-Identifier: MIT */
/*
 * From a stream into a log: the only place where core and log meet.
 *
 * A round takes what is in reach (core/drain.h) and writes it as it lies in the chunks, unmerged: a
 * packet a piece. Then it writes what explains it (new types, new names of threads), what was lost
 * since the last round, and a mark at the round's time. Merging is the log reader's work.
 *
 * A write that fails (disk full) leaves the events in the stream: nothing is taken before it is
 * written. A later round goes on; what the stream has lost meanwhile is counted there.
 */
#ifndef KLY_COLLECT_COLLECT_H
#define KLY_COLLECT_COLLECT_H

#include "collect/threads.h"
#include "core/control.h"
#include "core/drain.h"
#include "log/writer.h"

struct kly_collect {
	struct kly_drain drain;
	struct kly_control *control;
	struct kly_log_writer *writer;
	struct kly_threads threads;
	uint64_t *buffer; /* for one chunk */
	bool restarts;    /* FLUSH: a stream that filled up goes on when it is empty */

	uint32_t types_end;     /* user types below are in the log */
	bool predefined_written;
	uint64_t full_word;     /* the stop by itself that is in the log */
	uint64_t last_until;    /* time of the last mark */
	uint64_t last_snapshot; /* ticks */
	uint64_t lost[KLY_LOSS_CAUSES]; /* in the log */
	uint64_t horizon;               /* in the log */
	uint64_t events;                /* in the log */
	uint64_t bytes_taken;           /* in the last round: how busy the stream is */
};

/* The log's head, from the stream's. pid: of the traced process. */
void kly_collect_fill_head(struct kly_wire_log_head *head, const struct kly_stream *s, pid_t pid);

/* control and writer stay the caller's. 0 or -errno. */
int kly_collect_init(struct kly_collect *c, struct kly_control *control,
	struct kly_log_writer *writer);
void kly_collect_fini(struct kly_collect *c);

/* 0 or -errno of writing. */
int kly_collect_round(struct kly_collect *c);

/* After the stream was stopped: rounds until nothing is left. 0 or -errno. */
int kly_collect_rest(struct kly_collect *c);

/* Says which program a process runs. exe, args: as in /proc; NULL: read them there. 0 or -errno. */
int kly_collect_process(struct kly_collect *c, pid_t pid, uint32_t incarnation, const char *exe,
	const char *args, size_t args_bytes);

#endif
