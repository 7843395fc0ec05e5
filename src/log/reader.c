/* SPDX-License-Identifier: MIT */
/*
 * Opening: head, then scan.c finds the packets and dictionary.c takes over what explains events.
 * Reading: a second walk over the heads queues the runs up to the next MARK in an order
 * (wire/order.h), which asks for the bytes of a run when it comes to its top, and gives out events
 * up to the mark. When it has no more, the walk goes on to the mark after that.
 */
#include "log/reader.h"

#include "arch/crc32c.h"
#include "base/util.h"
#include "log/dictionary.h"
#include "log/file.h"
#include "log/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define FIRST_FD 3            /* never a standard descriptor that the program has closed */
#define HEAD_BYTES_MAX 65536u /* later versions may have more to say there */
#define FOREIGN_BYTES (KLY_PACKET_BODY_MAX * 2u) /* where a log without its head has a packet */

/* A run that waits in the order, or is read. */
struct run {
	struct kly_run run; /* the first member: the order hands out this */
	uint64_t offset;
	struct kly_wire_packet head;
	uint8_t *packet; /* NULL = not loaded */
};

struct kly_log_reader {
	struct kly_log_file file;
	struct kly_wire_log_head head;
	bool head_is_good;
	struct kly_log_problems problems;
	struct kly_log_dictionary dictionary;
	struct kly_log_scan scan;

	/* The second walk: it stands at `at` in a segment; events up to `until` may be given. */
	size_t segment;
	uint64_t at;
	uint64_t until;
	struct kly_order order;
};

/* Runs. */

static const char *reason(int error)
{
	switch (error) {
	case -EILSEQ:
		return "checksum mismatch";
	case -ENODATA:
		return "the file ends inside it";
	case -EBADMSG:
		return "too short for its kind";
	default:
		return strerror(-error);
	}
}

static int read_run(struct kly_log_reader *reader, struct run *run)
{
	struct kly_wire_log_run wire;

	const int r = kly_log_file_packet(&reader->file, run->offset, &run->head, &run->packet);
	if (r < 0)
		return r;
	if (run->head.body_bytes < sizeof(wire))
		return -EBADMSG;
	const uint8_t *body = run->packet + sizeof(run->head);
	memcpy(&wire, body, sizeof(wire));
	run->run.bytes = body + sizeof(wire);
	run->run.size = run->head.body_bytes - (uint32_t)sizeof(wire);
	run->run.base = wire.base;
	run->run.thread = wire.thread;
	return 0;
}

static int load_run(void *context, struct kly_run *order_run)
{
	struct kly_log_reader *reader = context;
	struct run *run = (struct run *)order_run;
	const int r = read_run(reader, run);

	if (r < 0)
		kly_log_problems_add(
			&reader->problems, run->head.sequence, run->offset, "%s", reason(r));
	return r;
}

static void unload_run(void *context, struct kly_run *order_run)
{
	struct kly_log_reader *reader = context;
	struct run *run = (struct run *)order_run;

	if (order_run->damaged)
		kly_log_problems_add(&reader->problems, run->head.sequence, run->offset,
			"no record at byte %u of its records", order_run->offset);
	free(run->packet);
	free(run);
}

static const struct kly_order_source run_source = {.load = load_run, .unload = unload_run};

static int queue_run(
	struct kly_log_reader *reader, uint64_t offset, const struct kly_wire_packet *head)
{
	struct run *run = calloc(1, sizeof(*run));
	if (!run)
		return -ENOMEM;
	run->run.first = head->begin;
	run->offset = offset;
	run->head = *head;

	const int r = kly_order_add(&reader->order, &run->run);
	if (r < 0)
		free(run);
	return r;
}

/* The second walk. */

static void start_walk(struct kly_log_reader *reader)
{
	kly_order_init(&reader->order, &run_source, reader);
	reader->segment = 0;
	reader->at = reader->scan.count ? reader->scan.segments[0].begin : 0;
	reader->until = 0;
}

/* What the loss of events means for those that are there. */
static void heed_loss(
	struct kly_log_reader *reader, uint64_t offset, const struct kly_wire_packet *head)
{
	kly_cleanup(kly_freep) uint8_t *packet = NULL;
	struct kly_wire_log_loss loss;

	if (kly_log_file_packet(&reader->file, offset, head, &packet) < 0)
		return;
	for (size_t i = 0; i + sizeof(loss) <= head->body_bytes; i += sizeof(loss)) {
		memcpy(&loss, packet + sizeof(*head) + i, sizeof(loss));
		if (loss.cause == KLY_LOSS_OVERWRITTEN)
			reader->order.horizon = kly_max(reader->order.horizon, head->end);
		if (loss.cause != KLY_LOSS_FULL)
			reader->order.suspended = false; /* the START may be lost */
	}
}

/* Takes up the packet at `at`. 1 = it was a MARK, 0 = another one, or -Exxx. */
static int walk_over(struct kly_log_reader *reader)
{
	struct kly_wire_packet head;
	const uint64_t offset = reader->at;
	int r = kly_log_file_head(&reader->file, offset, &head);
	if (r == 0)
		r = -ENODATA;
	if (r < 0)
		return r; /* others have changed the file since it was opened */

	reader->at += kly_log_packet_bytes(&head);
	if (head.flags)
		return 0; /* reported by the scan */
	switch (head.kind) {
	case KLY_PACKET_EVENTS:
		return queue_run(reader, offset, &head);
	case KLY_PACKET_LOSS:
		heed_loss(reader, offset, &head);
		return 0;
	case KLY_PACKET_MARK:
		reader->until = kly_max(reader->until, head.end);
		return 1;
	default:
		return 0;
	}
}

/* Queues the runs before the next mark. 1, 0 at the end of the file, or -ENOMEM. */
static int walk_to_mark(struct kly_log_reader *reader)
{
	while (reader->segment < reader->scan.count) {
		const struct kly_log_segment *segment = &reader->scan.segments[reader->segment];
		int r = 0;

		while (r == 0 && reader->at < segment->end)
			r = walk_over(reader);
		if (r > 0 || r == -ENOMEM)
			return r;
		if (r < 0)
			kly_log_problems_add(&reader->problems, 0, reader->at,
				"the file has changed: %s", reason(r));
		if (++reader->segment < reader->scan.count)
			reader->at = segment[1].begin;
		reader->order.suspended = false; /* the START may be in the gap */
	}
	return 0;
}

int kly_log_reader_next(struct kly_log_reader *reader, struct kly_event *event)
{
	for (;;) {
		if (KLY_LIKELY(kly_order_next(&reader->order, reader->until, event)))
			return 1;
		if (reader->until == UINT64_MAX && reader->segment >= reader->scan.count)
			return 0;
		const int r = walk_to_mark(reader);
		if (r < 0)
			return r;
		if (r == 0)
			reader->until = UINT64_MAX;
	}
}

int kly_log_reader_rewind(struct kly_log_reader *reader)
{
	kly_order_fini(&reader->order);
	start_walk(reader);
	return 0;
}

/* Opening. */

static void end_texts(struct kly_wire_log_head *head)
{
	head->boot_id[sizeof(head->boot_id) - 1] = '\0';
	head->name[sizeof(head->name) - 1] = '\0';
	head->writer[sizeof(head->writer) - 1] = '\0';
}

static void add_creation(struct kly_log_reader *reader)
{
	const struct kly_wire_snapshot *created = &reader->head.created;
	const struct kly_instant instant = {.ticks = created->ticks,
		.monotonic_ns = created->monotonic_ns,
		.boottime_ns = created->boottime_ns,
		.realtime_ns = created->realtime_ns};

	if (created->monotonic_ns || created->realtime_ns)
		(void)kly_timeline_add_creation(&reader->dictionary.timeline, &instant);
}

/* 0, or -EBADMSG, -EPROTONOSUPPORT; a damaged head is a problem. */
static int read_head(struct kly_log_reader *reader)
{
	struct kly_wire_log_head *head = &reader->head;
	const size_t bytes = kly_min(sizeof(*head), reader->file.bytes);
	const int r = kly_log_file_read(&reader->file, 0, head, bytes);
	if (r < 0)
		return r;

	const bool magic = memcmp(head->magic, KLY_LOG_MAGIC, sizeof(head->magic)) == 0;
	const bool good = magic && bytes == sizeof(*head) &&
			  head->crc == kly_crc32c(0, head, offsetof(struct kly_wire_log_head, crc));
	if (magic && head->byte_order == __builtin_bswap32(KLY_LOG_BYTE_ORDER))
		return -EPROTONOSUPPORT;
	if (good && (head->version != KLY_LOG_VERSION || head->byte_order != KLY_LOG_BYTE_ORDER))
		return -EPROTONOSUPPORT;
	if (!magic && !kly_log_scan_any(&reader->file, sizeof(*head), FOREIGN_BYTES))
		return -EBADMSG;

	if (bytes < sizeof(*head))
		kly_log_problems_add(
			&reader->problems, KLY_LOG_NO_PACKET, 0, "the file ends inside it");
	else if (!good)
		kly_log_problems_add(&reader->problems, KLY_LOG_NO_PACKET, 0, "%s",
			magic ? "checksum mismatch" : "wrong magic");
	end_texts(head);
	reader->head_is_good = good;
	return 0;
}

/* Where the packets begin. */
static uint64_t packets_begin(struct kly_log_reader *reader)
{
	const uint32_t bytes = reader->head.head_bytes;

	if (reader->head_is_good && bytes >= sizeof(reader->head) && bytes <= HEAD_BYTES_MAX &&
		bytes % 8 == 0)
		return bytes;
	if (reader->head_is_good)
		kly_log_problems_add(&reader->problems, KLY_LOG_NO_PACKET, 0,
			"says that it has %u bytes", bytes);
	return sizeof(reader->head);
}

static const char *take_packet(
	void *context, const struct kly_wire_packet *head, const uint8_t *body)
{
	struct kly_log_reader *reader = context;

	return kly_log_dictionary_take(&reader->dictionary, head, body);
}

static int read_all_but_events(struct kly_log_reader *reader)
{
	int r = read_head(reader);
	if (r < 0)
		return r;

	/* Numbers of a damaged head are not believed where a wrong one does harm. */
	kly_timeline_init(&reader->dictionary.timeline,
		reader->head_is_good ? reader->head.ticks_per_second : 0);
	if (reader->head_is_good)
		add_creation(reader);

	reader->scan.take = take_packet;
	reader->scan.context = reader;
	r = kly_log_scan(&reader->scan, &reader->file, &reader->problems, packets_begin(reader));
	if (r < 0)
		return r;
	if (!reader->dictionary.timeline.count)
		add_creation(reader);
	return kly_log_dictionary_settle(&reader->dictionary);
}

static void closep(struct kly_log_reader **reader)
{
	kly_log_reader_close(*reader);
}

/* Takes fd. */
static int open_own(int fd, struct kly_log_reader **ret_reader)
{
	kly_cleanup(closep) struct kly_log_reader *reader = calloc(1, sizeof(*reader));
	if (!reader) {
		(void)close(fd);
		return -ENOMEM;
	}

	int r = kly_log_file_open(&reader->file, fd);
	if (r == 0)
		r = read_all_but_events(reader);
	start_walk(reader);
	if (r < 0)
		return r;
	*ret_reader = KLY_TAKE(reader);
	return 0;
}

int kly_log_reader_open(const char *path, struct kly_log_reader **ret_reader)
{
	/* Not blocking: path may be a FIFO that nobody writes. */
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	return fd < 0 ? -errno : open_own(fd, ret_reader);
}

int kly_log_reader_open_fd(int fd, struct kly_log_reader **ret_reader)
{
	const int own = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD);

	return own < 0 ? -errno : open_own(own, ret_reader);
}

void kly_log_reader_close(struct kly_log_reader *reader)
{
	if (!reader)
		return;
	kly_order_fini(&reader->order);
	kly_log_scan_fini(&reader->scan);
	kly_log_dictionary_fini(&reader->dictionary);
	kly_log_problems_fini(&reader->problems);
	kly_log_file_close(&reader->file);
	free(reader);
}

/* Accessors. */

const struct kly_wire_log_head *kly_log_reader_head(const struct kly_log_reader *reader)
{
	return &reader->head;
}

const struct kly_timeline *kly_log_reader_timeline(const struct kly_log_reader *reader)
{
	return &reader->dictionary.timeline;
}

const struct kly_log_type *kly_log_reader_type(const struct kly_log_reader *reader, uint16_t id)
{
	return id < KLY_TYPES_MAX ? reader->dictionary.types[id] : NULL;
}

size_t kly_log_reader_processes(
	const struct kly_log_reader *reader, const struct kly_log_process **ret_processes)
{
	*ret_processes = reader->dictionary.processes;
	return reader->dictionary.process_count;
}

const struct kly_wire_thread *kly_log_reader_thread(
	const struct kly_log_reader *reader, uint32_t pid, uint32_t tid)
{
	return kly_log_dictionary_thread(&reader->dictionary, pid, tid);
}

size_t kly_log_reader_losses(
	const struct kly_log_reader *reader, const struct kly_log_loss **ret_losses)
{
	*ret_losses = reader->dictionary.losses;
	return reader->dictionary.loss_count;
}

const struct kly_wire_log_end *kly_log_reader_end(const struct kly_log_reader *reader)
{
	return reader->dictionary.ended ? &reader->dictionary.end : NULL;
}

bool kly_log_reader_span(
	const struct kly_log_reader *reader, uint64_t *ret_first, uint64_t *ret_last)
{
	if (reader->scan.first > reader->scan.last)
		return false;
	*ret_first = reader->scan.first;
	*ret_last = reader->scan.last;
	return true;
}

const struct kly_order *kly_log_reader_order(const struct kly_log_reader *reader)
{
	return &reader->order;
}

size_t kly_log_reader_problems(const struct kly_log_reader *reader)
{
	return reader->problems.count;
}

const struct kly_log_problem *kly_log_reader_problem(const struct kly_log_reader *reader, size_t i)
{
	return i < reader->problems.count ? &reader->problems.list[i] : NULL;
}
