/* SPDX-License-Identifier: MIT */
/*
 * Reads a log (wire/log.h, docs/format.md): what it says about itself, and its events in order.
 *
 *	struct kly_log_reader *log;
 *	int r = kly_log_reader_open(path, &log);
 *	...
 *	struct kly_event event;
 *	while ((r = kly_log_reader_next(log, &event)) > 0)
 *		show(&event, kly_log_reader_type(log, event.type));
 *	for (size_t i = 0; i < kly_log_reader_problems(log); i++)
 *		warnx("%s: %s", path, kly_log_reader_problem(log, i)->text);
 *	kly_log_reader_close(log);
 *
 * Opening passes over the heads of all packets and reads the bodies of those that explain events.
 * Events are read when it is their turn. So opening takes little time, and memory follows the
 * number of runs that overlap in time, not the size of the file.
 *
 * Any bytes are survived. What can't be read becomes a problem and is left out, the rest is given
 * out; damage inside an EVENTS packet is found only when that packet's turn comes, so the list of
 * problems is complete at the end. A log whose recorder was killed, or is still at work, is
 * read up to the end that it had when it was opened.
 *
 * What the accessors return lives as long as the reader, unless said otherwise. A reader is used
 * by one thread at a time; several readers of one file need nothing.
 */
#ifndef KLY_LOG_READER_H
#define KLY_LOG_READER_H

#include "base/timeline.h"
#include "log/log.h"
#include "log/problem.h"
#include "wire/order.h"

#include <stdbool.h>

struct kly_log_reader;

/*
 * 0, or -EBADMSG: this is no log (wrong magic, and no packet found); -EPROTONOSUPPORT: a log of
 * another version or byte order; -ESPIPE: no regular file; or what open(2) and
 * read(2) say. Damage to a log is a problem, no error. The reader keeps a duplicate of fd, which
 * must be open for reading, and does not move its offset.
 */
int kly_log_reader_open(const char *path, struct kly_log_reader **ret_reader);
int kly_log_reader_open_fd(int fd, struct kly_log_reader **ret_reader);
void kly_log_reader_close(struct kly_log_reader *reader);

/* Texts in it end with a NUL. A damaged head is a problem, and given as it is: numbers in it can
 * be wrong. */
const struct kly_wire_log_head *kly_log_reader_head(const struct kly_log_reader *reader);

/* Converts event.ticks to nanoseconds: kly_timeline_monotonic(), kly_timeline_realtime(). */
const struct kly_timeline *kly_log_reader_timeline(const struct kly_log_reader *reader);

/* NULL: the log does not define it. */
const struct kly_log_type *kly_log_reader_type(const struct kly_log_reader *reader, uint16_t id);

/* In the order of the file; a pid may come more than once (new program, or a pid used again). */
size_t kly_log_reader_processes(
	const struct kly_log_reader *reader, const struct kly_log_process **ret_processes);

/* The last name that a THREADS packet gives a thread, for events whose event.thread->name is
 * empty or has changed since. NULL: none does. */
const struct kly_wire_thread *kly_log_reader_thread(
	const struct kly_log_reader *reader, uint32_t pid, uint32_t tid);

/* In the order of the file. In a very long list neighbours of one cause are put together. */
size_t kly_log_reader_losses(
	const struct kly_log_reader *reader, const struct kly_log_loss **ret_losses);

/* NULL: the log has no END; its recorder was killed, or is still at work. */
const struct kly_wire_log_end *kly_log_reader_end(const struct kly_log_reader *reader);

/* Times of the earliest and the latest event by the packets' heads; false: there is no event. */
bool kly_log_reader_span(
	const struct kly_log_reader *reader, uint64_t *ret_first, uint64_t *ret_last);

/* The next event: 1; 0 at the end, as often as asked; -ENOMEM. Pointers in *event are good until
 * the next call. Times never decrease (wire/order.h). */
int kly_log_reader_next(struct kly_log_reader *reader, struct kly_event *event);

/* Back to the first event. Problems known stay, and are not reported twice. */
int kly_log_reader_rewind(struct kly_log_reader *reader);

/* How the events came out so far: given, late, dropped; see there. */
const struct kly_order *kly_log_reader_order(const struct kly_log_reader *reader);

/* At most KLY_LOG_PROBLEMS_MAX lines for the user. The list only grows, by kly_log_reader_next().
 * problem(): good until the next call of that; NULL: there is no i-th. */
size_t kly_log_reader_problems(const struct kly_log_reader *reader);
const struct kly_log_problem *kly_log_reader_problem(const struct kly_log_reader *reader, size_t i);

#endif
