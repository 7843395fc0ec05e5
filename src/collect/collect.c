/* SPDX-License-Identifier: MIT */
#include "collect/collect.h"
#include "core/registry.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SNAPSHOTS_A_SECOND 10
#define ARGS_MAX 4096
#define NO_SLOT UINT32_MAX

static const struct kly_stream *stream_of(const struct kly_collect *c)
{
	return c->drain.stream;
}

static ssize_t read_file(const char *path, char *buffer, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	ssize_t n = read(fd, buffer, room - 1);
	(void)close(fd);
	if (n < 0)
		return -errno;
	buffer[n] = '\0';
	return n;
}

void kly_collect_fill_head(struct kly_wire_log_head *head, const struct kly_stream *s, pid_t pid)
{
	char boot_id[64] = "";

	*head = (struct kly_wire_log_head){
		.machine = EM_X86_64,
		.stream_id = s->id,
		.ticks_per_second = s->head->ticks_per_second,
		.clock = (uint16_t)s->clock,
		.policy = (uint16_t)s->policy,
		.max_data = s->max_data,
		.min_bytes = s->head->min_bytes,
		.pid = (uint32_t)pid,
		.stream_flags = s->head->flags,
		.created = s->head->created,
	};
	if (read_file("/proc/sys/kernel/random/boot_id", boot_id, sizeof(boot_id)) > 0) {
		boot_id[strcspn(boot_id, "\n")] = '\0';
		memcpy(head->boot_id, boot_id, sizeof(head->boot_id) - 1);
	}
	memcpy(head->name, s->head->name, sizeof(head->name) - 1);
	(void)snprintf(head->writer, sizeof(head->writer), "kilroy %s", KLY_VERSION);
}

int kly_collect_init(struct kly_collect *c, struct kly_control *control,
	struct kly_log_writer *writer)
{
	const struct kly_stream *s = control->stream;

	*c = (struct kly_collect){
		.control = control,
		.writer = writer,
		.restarts = s->policy == KLY_POLICY_FLUSH,
		.types_end = KLY_TYPE_USER,
		.buffer = malloc(s->chunk_bytes),
	};
	int r = c->buffer ? kly_drain_init(&c->drain, s) : -ENOMEM;
	if (r < 0)
		kly_collect_fini(c);
	return r;
}

void kly_collect_fini(struct kly_collect *c)
{
	kly_drain_fini(&c->drain);
	kly_threads_fini(&c->threads);
	free(c->buffer);
	c->buffer = NULL;
}

/*
 * What explains the events.
 */

static int write_type(struct kly_collect *c, uint32_t id)
{
	struct kly_log_type type = {.id = (uint16_t)id};

	if (!kly_registry_get(&c->control->target.registry, id, &type.name, &type.fields))
		return 0;
	return kly_log_writer_types(c->writer, c->drain.until, &type, 1);
}

/* Types that were not in the log yet. Called after the stream was looked at: a type is in the
 * registry before its first event is in the stream. */
static int write_types(struct kly_collect *c)
{
	for (uint32_t id = 1; !c->predefined_written && id < KLY_TYPE_USER; id++) {
		int r = write_type(c, id);
		if (r < 0)
			return r;
	}
	c->predefined_written = true;
	for (uint32_t end = kly_registry_end(&c->control->target.registry); c->types_end < end;
		c->types_end++) {
		int r = write_type(c, c->types_end);
		if (r < 0)
			return r;
	}
	return 0;
}

static int write_thread(struct kly_collect *c, const struct kly_wire_thread *thread)
{
	return kly_log_writer_threads(c->writer, c->drain.until, thread, 1);
}

/* A thread often gets its name after it began; at its first event here the name is looked up. */
static int meet_thread(struct kly_collect *c, const struct kly_wire_thread *thread)
{
	bool is_new;
	struct kly_wire_thread *known = kly_threads_get(&c->threads, thread, &is_new);

	if (!known)
		return -ENOMEM;
	return is_new && kly_threads_refresh(known) ? write_thread(c, known) : 0;
}

static int write_last_names(struct kly_collect *c)
{
	for (uint32_t i = 0; i < c->threads.room; i++) {
		struct kly_wire_thread *thread = &c->threads.table[i];

		if (!thread->tid || !kly_threads_refresh(thread))
			continue;
		int r = write_thread(c, thread);
		if (r < 0)
			return r;
	}
	return 0;
}

int kly_collect_process(struct kly_collect *c, pid_t pid, uint32_t incarnation, const char *exe,
	const char *args, size_t args_bytes)
{
	char path[64], exe_text[4096], args_text[ARGS_MAX];

	if (!exe) {
		(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
		ssize_t n = readlink(path, exe_text, sizeof(exe_text) - 1);
		if (n < 0)
			return 0; /* gone meanwhile: nothing to tell */
		exe_text[n] = '\0';
		(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
		n = read_file(path, args_text, sizeof(args_text));
		exe = exe_text;
		args = args_text;
		args_bytes = n > 0 ? (size_t)n : 0;
	}
	const struct kly_log_process process = {
		.pid = (uint32_t)pid,
		.parent_pid = (uint32_t)getpid(),
		.pid_namespace = c->control->target.block->pid_namespace,
		.start_time = c->control->target.block->start_time,
		.own_pid = c->control->target.block->pid,
		.incarnation = incarnation,
		.exe = exe,
		.args = args,
		.args_bytes = (uint16_t)kly_min(args_bytes, ARGS_MAX),
	};
	return kly_log_writer_processes(c->writer, kly_stream_now(stream_of(c)), &process, 1);
}

/*
 * Events.
 */

static int write_piece(struct kly_collect *c, uint32_t chunk)
{
	struct kly_run run = {0};
	struct kly_run_extent extent;

	if (!kly_drain_copy(&c->drain, chunk, c->buffer, &run))
		return 0;
	kly_run_measure(&run, &extent);

	const struct kly_wire_log_run head = {
		.base = run.base,
		.slot = chunk,
		.events = extent.events,
		.thread = run.thread,
	};
	if (extent.events) {
		int r = meet_thread(c, &run.thread);
		if (r == 0)
			r = meet_thread(c, &extent.thread);
		if (r == 0)
			r = kly_log_writer_events(c->writer, &head, run.bytes, extent.bytes,
				extent.first, extent.last);
		if (r < 0)
			return r;
	}
	c->events += extent.events;
	c->bytes_taken += extent.bytes;
	kly_drain_taken(&c->drain, chunk, &extent);
	return 0;
}

/* A START or STOP that nobody wrote: the stream filled up, or goes on after that. */
static int write_made_up(struct kly_collect *c, uint16_t type, const void *data, uint16_t len,
	uint64_t ticks)
{
	struct {
		struct kly_wire_rec rec;
		uint8_t payload[KLY_TYPES_MAX / 8];
	} one = {.rec = {.type = type, .len = len, .where = (uint64_t)KLY_REC_NO_CPU << 48}};
	const struct kly_wire_log_run head = {.base = ticks, .slot = NO_SLOT, .events = 1};

	memcpy(one.payload, data, len);
	return kly_log_writer_events(c->writer, &head, &one, kly_rec_size(len), ticks, ticks);
}

/* As stop_if_full() in core/reader.c. */
static int write_stop_if_full(struct kly_collect *c)
{
	uint64_t word = kly_load_acquire(&stream_of(c)->shared->state);
	const int32_t automatic = 1;

	if (kly_state_of(word) != KLY_STATE_FULL || word == c->full_word ||
		kly_state_time(word) > c->drain.until)
		return 0;
	int r = write_made_up(
		c, KLY_TYPE_STOP, &automatic, sizeof(automatic), kly_state_time(word));
	if (r == 0)
		c->full_word = word;
	return r;
}

/* All that was in reach has been written, so a stream that was full is empty. */
static int restart_if_full(struct kly_collect *c)
{
	const struct kly_stream *s = stream_of(c);
	uint64_t now = kly_stream_now(s);

	if (!c->full_word || !c->restarts)
		return 0;
	int r = write_made_up(c, KLY_TYPE_START, s->shared->filter, sizeof(s->shared->filter), now);
	if (r < 0)
		return r;
	if (kly_control_restart(c->control, c->full_word, now))
		c->full_word = 0;
	return 0;
}

/*
 * Losses, time, mark.
 */

static int write_loss(struct kly_collect *c, enum kly_loss cause, uint64_t events, uint64_t end)
{
	const struct kly_log_loss loss = {
		.cause = cause,
		.events = events,
		.begin = kly_min(c->last_until, end),
		.end = end,
	};

	return kly_log_writer_loss(c->writer, &loss);
}

static int write_losses(struct kly_collect *c)
{
	uint64_t now[KLY_LOSS_CAUSES];

	kly_drain_losses(&c->drain, now);
	for (int cause = 0; cause < KLY_LOSS_CAUSES; cause++) {
		bool overwritten = cause == KLY_LOSS_OVERWRITTEN;
		bool moved = overwritten && c->drain.horizon > c->horizon;

		if (now[cause] <= c->lost[cause] && !moved)
			continue;
		uint64_t more = now[cause] - kly_min(c->lost[cause], now[cause]);
		int r = write_loss(c, cause, more,
			overwritten ? c->drain.horizon : c->drain.until);
		if (r < 0)
			return r;
		c->lost[cause] += more;
		if (overwritten)
			c->horizon = c->drain.horizon;
	}
	return 0;
}

static int write_snapshot(struct kly_collect *c, bool now)
{
	const struct kly_stream *s = stream_of(c);
	struct kly_wire_snapshot snapshot;
	uint64_t step = s->head->ticks_per_second / SNAPSHOTS_A_SECOND;

	if (!now && c->drain.until - c->last_snapshot < step)
		return 0;
	kly_clock_snapshot(s->clock, &snapshot);
	int r = kly_log_writer_snapshot(c->writer, &snapshot);
	if (r == 0)
		c->last_snapshot = snapshot.ticks;
	return r;
}

static int write_mark(struct kly_collect *c)
{
	int r = kly_log_writer_mark(c->writer, c->drain.until);

	if (r == 0)
		c->last_until = c->drain.until;
	return r;
}

static int by_base(const void *a, const void *b, void *chunks)
{
	const struct kly_drain_chunk *x = (const struct kly_drain_chunk *)chunks + *(const uint32_t *)a;
	const struct kly_drain_chunk *y = (const struct kly_drain_chunk *)chunks + *(const uint32_t *)b;

	return (x->base > y->base) - (x->base < y->base);
}

/* A round may break off half-way (a full disk, a recorder that is killed). What is in the log then
 * has no gaps in a lane's events if its chunks come in the order in which they were filled. */
static void sort_pieces(struct kly_collect *c)
{
	if (c->drain.ready_count > 1)
		qsort_r(c->drain.ready, c->drain.ready_count, sizeof(*c->drain.ready), by_base,
			c->drain.chunks);
}

int kly_collect_round(struct kly_collect *c)
{
	kly_drain_round(&c->drain);
	sort_pieces(c);
	c->bytes_taken = 0;
	int r = write_types(c);
	for (uint32_t i = 0; r == 0 && i < c->drain.ready_count; i++)
		r = write_piece(c, c->drain.ready[i]);
	if (r == 0)
		r = write_stop_if_full(c);
	if (r == 0)
		r = write_losses(c);
	if (r == 0)
		r = write_snapshot(c, false);
	if (r == 0 && (c->bytes_taken || c->drain.until - c->last_until >
					 stream_of(c)->head->ticks_per_second))
		r = write_mark(c);
	return r < 0 ? r : restart_if_full(c);
}

int kly_collect_rest(struct kly_collect *c)
{
	c->restarts = false;
	do {
		int r = kly_collect_round(c);
		if (r < 0)
			return r;
	} while (c->bytes_taken);
	int r = write_last_names(c);
	if (r == 0)
		r = write_snapshot(c, true);
	return r < 0 ? r : write_mark(c);
}
