/* SPDX-License-Identifier: MIT */
/*
 * Writes a log (wire/log.h, docs/format.md), packet by packet.
 *
 * What is in the file is valid at any moment: each packet is one gathered write behind the last
 * whole one. A write that fails half-way is cut off again, nothing of it counts, and its sequence
 * number goes to the next packet that succeeds. So after -ENOSPC, -EFBIG or -EIO the caller keeps
 * its events, tries again later, and books what it had to give up as KLY_LOSS_DISK.
 *
 * A regular file is the writer's own from offset 0, whatever it held before and wherever the
 * descriptor stands. Anything else (a pipe, a socket, a terminal) is written in sequence; there a
 * packet once begun can't be taken back: the writer waits until the rest is out, and when that
 * fails, all later calls fail with the same error.
 *
 * Signals. Writing can raise SIGPIPE and SIGXFSZ in the calling thread, and their default is to
 * kill the program. The writer changes no signal state: a command ignores both; a library blocks
 * both in its own thread, or around the call, and then takes a pending one off with sigtimedwait().
 * With them ignored or blocked the calls return -EPIPE and -EFBIG.
 *
 * Results are 0 or -Exxx. No call is safe in a signal handler. One writer is used by one thread at
 * a time; different writers need nothing.
 */
#ifndef KLY_LOG_WRITER_H
#define KLY_LOG_WRITER_H

#include "log/log.h"

#include <stdbool.h>

struct kly_log_writer;

/* Writes the head: a copy of *head with magic, version, sizes, byte order and checksum filled in.
 * The writer keeps a duplicate of fd. -EBADF: not open for writing; else what write(2) says. */
int kly_log_writer_open(
	int fd, const struct kly_wire_log_head *head, struct kly_log_writer **ret_writer);

/* Writes the END packet, with what the writer has counted, and frees the writer, also if that
 * fails. running: the stream goes on without this log. NULL is allowed. */
int kly_log_writer_close(struct kly_log_writer *writer, uint64_t ticks, bool running);

/* Frees the writer without an END packet: as if it had been killed. NULL is allowed. */
void kly_log_writer_abandon(struct kly_log_writer *writer);

/* A run of records, from first to last (times of the first and the last event). The records are
 * neither copied nor checked, and must not change during the call: not shared memory. run->base
 * and run->thread hold for the first record. -EMSGSIZE: more than KLY_LOG_RUN_MAX bytes. */
#define KLY_LOG_RUN_MAX (KLY_PACKET_BODY_MAX - (uint32_t)sizeof(struct kly_wire_log_run))
int kly_log_writer_events(struct kly_log_writer *writer, const struct kly_wire_log_run *run,
	const void *records, size_t bytes, uint64_t first, uint64_t last);

/* All events up to `until` are written (or lost). Readers give out nothing before they see it. */
int kly_log_writer_mark(struct kly_log_writer *writer, uint64_t until);

/* `ticks`: the time of writing. A list that does not fit into one packet takes several; on
 * failure those before the failed one stay. Repeating an entry does no harm. */
int kly_log_writer_types(struct kly_log_writer *writer, uint64_t ticks,
	const struct kly_log_type *types, size_t count);
int kly_log_writer_processes(struct kly_log_writer *writer, uint64_t ticks,
	const struct kly_log_process *processes, size_t count);
int kly_log_writer_threads(struct kly_log_writer *writer, uint64_t ticks,
	const struct kly_wire_thread *threads, size_t count);

int kly_log_writer_snapshot(
	struct kly_log_writer *writer, const struct kly_wire_snapshot *snapshot);

/* KLY_LOSS_OVERWRITTEN is special: readers leave out events up to loss->end that they have not
 * given out before. Write it before the next mark. */
int kly_log_writer_loss(struct kly_log_writer *writer, const struct kly_log_loss *loss);

/* Of the file, up to the last whole packet. */
uint64_t kly_log_writer_bytes(const struct kly_log_writer *writer);

#endif
