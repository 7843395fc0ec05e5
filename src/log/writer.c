/* SPDX-License-Identifier: MIT */
/*
 * append() is the one way by which a packet gets into the file: head, pieces of the body and
 * padding in one gathered write. Lists are put together in a buffer first; runs of events, which
 * are nearly all of a log, go out from where they lie.
 */
#include "log/writer.h"

#include "arch/crc32c.h"
#include "base/buffer.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define FIRST_FD 3        /* never a standard descriptor that the program has closed */
#define PIECES_MAX 2      /* of a body */
#define LIST_BYTES 65536u /* a packet of a list is closed when it has as many */

struct kly_log_writer {
	int fd;
	bool regular; /* else: write in sequence, nothing can be taken back */
	bool tail;    /* part of a failed packet lies behind `bytes`; it could not be cut off yet */
	int broken;   /* -Exxx: half a packet went out in sequence */

	/* of whole packets */
	uint64_t bytes;
	uint64_t sequence;
	uint64_t events;
	uint64_t lost[KLY_LOSS_CAUSES];

	struct kly_buffer list;
};

/* Moves past bytes that were written. */
static void advance(struct iovec **pieces, int *count, size_t written)
{
	while (*count && written >= (*pieces)->iov_len) {
		written -= (*pieces)->iov_len;
		++*pieces;
		--*count;
	}
	if (*count) {
		(*pieces)->iov_base = (char *)(*pieces)->iov_base + written;
		(*pieces)->iov_len -= written;
	}
}

/* Writes all pieces, however often that takes. *done is what is out, also on failure. */
static int write_pieces(
	struct kly_log_writer *writer, struct iovec *pieces, int count, uint64_t *done)
{
	for (*done = 0, advance(&pieces, &count, 0); count;) {
		const ssize_t n = writer->regular ? pwritev(writer->fd, pieces, count,
							    (off_t)(writer->bytes + *done))
						  : writev(writer->fd, pieces, count);

		if (n < 0 && errno == EAGAIN)
			(void)poll(&(struct pollfd){.fd = writer->fd, .events = POLLOUT}, 1, -1);
		else if (n < 0 && errno != EINTR)
			return -errno;
		else if (n == 0)
			return -EIO;
		else if (n > 0) {
			*done += (uint64_t)n;
			advance(&pieces, &count, (size_t)n);
		}
	}
	return 0;
}

static int cut_tail(struct kly_log_writer *writer)
{
	if (writer->tail && ftruncate(writer->fd, (off_t)writer->bytes) < 0)
		return -errno;
	writer->tail = false;
	return 0;
}

/* All or nothing, as far as the file allows. */
static int write_whole(struct kly_log_writer *writer, struct iovec *pieces, int count)
{
	uint64_t done;

	if (writer->broken)
		return writer->broken;
	int r = cut_tail(writer);
	if (r < 0)
		return r;

	r = write_pieces(writer, pieces, count, &done);
	if (r == 0) {
		writer->bytes += done;
	} else if (writer->regular) {
		writer->tail = true; /* even if done is 0: who knows what a failed write left */
		(void)cut_tail(writer);
	} else if (done) {
		writer->broken = r;
	}
	return r;
}

static int append(struct kly_log_writer *writer, uint16_t kind, uint64_t begin, uint64_t end,
	const struct iovec *body, int body_pieces)
{
	static const uint64_t zero;
	struct kly_wire_packet head = {.magic = KLY_PACKET_MAGIC,
		.kind = kind,
		.sequence = writer->sequence,
		.begin = begin,
		.end = end};
	struct iovec pieces[1 + PIECES_MAX + 1] = {{.iov_base = &head, .iov_len = sizeof(head)}};
	const size_t hashed = offsetof(struct kly_wire_packet, body_bytes);
	size_t bytes = 0;

	for (int i = 0; i < body_pieces; i++) {
		if (body[i].iov_len > KLY_PACKET_BODY_MAX - bytes)
			return -EMSGSIZE;
		bytes += body[i].iov_len;
		pieces[1 + i] = body[i];
	}
	pieces[1 + body_pieces] = (struct iovec){
		.iov_base = (void *)&zero, .iov_len = KLY_ALIGN(bytes, sizeof(zero)) - bytes};

	head.body_bytes = (uint32_t)bytes;
	head.crc = kly_crc32c(0, (const char *)&head + hashed, sizeof(head) - hashed);
	for (int i = 0; i < body_pieces; i++)
		head.crc = kly_crc32c(head.crc, body[i].iov_base, body[i].iov_len);

	const int r = write_whole(writer, pieces, 1 + body_pieces + 1);
	if (r == 0)
		writer->sequence++;
	return r;
}

static int append_one(struct kly_log_writer *writer, uint16_t kind, uint64_t begin, uint64_t end,
	const void *body, size_t bytes)
{
	const struct iovec piece = {.iov_base = (void *)body, .iov_len = bytes};

	return append(writer, kind, begin, end, &piece, 1);
}

/* Writes the list that was put together so far, if it has at least so many bytes. */
static int append_list(
	struct kly_log_writer *writer, uint16_t kind, uint64_t ticks, size_t at_least)
{
	if (writer->list.size < at_least)
		return 0;
	const int r = append_one(writer, kind, ticks, ticks, writer->list.bytes, writer->list.size);
	kly_buffer_clear(&writer->list);
	return r;
}

static int write_head(struct kly_log_writer *writer, const struct kly_wire_log_head *given)
{
	struct kly_wire_log_head head = *given;

	memcpy(head.magic, KLY_LOG_MAGIC, sizeof(head.magic));
	head.version = KLY_LOG_VERSION;
	head.head_bytes = sizeof(head);
	head.byte_order = KLY_LOG_BYTE_ORDER;
	head.crc = kly_crc32c(0, &head, offsetof(struct kly_wire_log_head, crc));

	struct iovec piece = {.iov_base = &head, .iov_len = sizeof(head)};
	return write_whole(writer, &piece, 1);
}

static void abandonp(struct kly_log_writer **writer)
{
	kly_log_writer_abandon(*writer);
}

int kly_log_writer_open(
	int fd, const struct kly_wire_log_head *head, struct kly_log_writer **ret_writer)
{
	const int flags = fcntl(fd, F_GETFL);
	if (flags < 0)
		return -errno;
	if ((flags & O_ACCMODE) == O_RDONLY)
		return -EBADF;

	kly_cleanup(abandonp) struct kly_log_writer *writer = calloc(1, sizeof(*writer));
	if (!writer)
		return -ENOMEM;
	writer->fd = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD);
	if (writer->fd < 0)
		return -errno;

	struct stat status;
	if (fstat(writer->fd, &status) < 0)
		return -errno;
	writer->regular = S_ISREG(status.st_mode);
	writer->tail = writer->regular; /* what the file held before */

	const int r = write_head(writer, head);
	if (r < 0)
		return r;
	*ret_writer = KLY_TAKE(writer);
	return 0;
}

void kly_log_writer_abandon(struct kly_log_writer *writer)
{
	if (!writer)
		return;
	if (writer->fd > 0)
		(void)close(writer->fd);
	kly_buffer_fini(&writer->list);
	free(writer);
}

int kly_log_writer_close(struct kly_log_writer *writer, uint64_t ticks, bool running)
{
	if (!writer)
		return 0;

	struct kly_wire_log_end end = {.events = writer->events, .running = running};
	static_assert(sizeof(end.lost) == sizeof(writer->lost), "the same causes");
	memcpy(end.lost, writer->lost, sizeof(end.lost));

	int r = append_one(writer, KLY_PACKET_END, ticks, ticks, &end, sizeof(end));
	/* A network file system may tell only now that there was no room. */
	if (close(writer->fd) < 0 && r == 0 && errno != EINTR)
		r = -errno;
	writer->fd = -1;
	kly_log_writer_abandon(writer);
	return r;
}

int kly_log_writer_events(struct kly_log_writer *writer, const struct kly_wire_log_run *run,
	const void *records, size_t bytes, uint64_t first, uint64_t last)
{
	const struct iovec body[PIECES_MAX] = {
		{.iov_base = (void *)run, .iov_len = sizeof(*run)},
		{.iov_base = (void *)records, .iov_len = bytes},
	};
	const int r = append(writer, KLY_PACKET_EVENTS, first, last, body, PIECES_MAX);

	if (r == 0)
		writer->events += run->events;
	return r;
}

int kly_log_writer_mark(struct kly_log_writer *writer, uint64_t until)
{
	return append(writer, KLY_PACKET_MARK, until, until, NULL, 0);
}

static int put_type(struct kly_buffer *list, const struct kly_log_type *type)
{
	const size_t name_bytes = strlen(type->name), fields_bytes = strlen(type->fields);
	if (!name_bytes || name_bytes > KLY_TYPE_NAME_MAX || fields_bytes > KLY_TYPE_FIELDS_MAX)
		return -EINVAL;

	const struct kly_wire_log_type wire = {.type = type->id,
		.name_bytes = (uint16_t)name_bytes,
		.fields_bytes = (uint16_t)fields_bytes};
	int r = kly_buffer_add(list, &wire, sizeof(wire));
	if (r == 0)
		r = kly_buffer_add(list, type->name, name_bytes);
	if (r == 0)
		r = kly_buffer_add(list, type->fields, fields_bytes);
	return r < 0 ? r : kly_buffer_pad(list, 8);
}

int kly_log_writer_types(struct kly_log_writer *writer, uint64_t ticks,
	const struct kly_log_type *types, size_t count)
{
	int r = 0;

	kly_buffer_clear(&writer->list);
	for (size_t i = 0; i < count && r == 0; i++) {
		r = put_type(&writer->list, &types[i]);
		if (r == 0)
			r = append_list(writer, KLY_PACKET_TYPES, ticks, LIST_BYTES);
	}
	return r < 0 ? r : append_list(writer, KLY_PACKET_TYPES, ticks, 1);
}

static int put_process(struct kly_buffer *list, const struct kly_log_process *process)
{
	const size_t exe_bytes = strnlen(process->exe, UINT16_MAX - 1);
	const struct kly_wire_log_process wire = {.pid = process->pid,
		.parent_pid = process->parent_pid,
		.pid_namespace = process->pid_namespace,
		.start_time = process->start_time,
		.own_pid = process->own_pid,
		.incarnation = process->incarnation,
		.exe_bytes = (uint16_t)(exe_bytes + 1),
		.args_bytes = process->args_bytes};
	int r = kly_buffer_add(list, &wire, sizeof(wire));

	if (r == 0)
		r = kly_buffer_add(list, process->exe, exe_bytes);
	if (r == 0)
		r = kly_buffer_add(list, "", 1);
	if (r == 0)
		r = kly_buffer_add(list, process->args, process->args_bytes);
	return r < 0 ? r : kly_buffer_pad(list, 8);
}

int kly_log_writer_processes(struct kly_log_writer *writer, uint64_t ticks,
	const struct kly_log_process *processes, size_t count)
{
	int r = 0;

	kly_buffer_clear(&writer->list);
	for (size_t i = 0; i < count && r == 0; i++) {
		r = put_process(&writer->list, &processes[i]);
		if (r == 0)
			r = append_list(writer, KLY_PACKET_PROCESS, ticks, LIST_BYTES);
	}
	return r < 0 ? r : append_list(writer, KLY_PACKET_PROCESS, ticks, 1);
}

int kly_log_writer_threads(struct kly_log_writer *writer, uint64_t ticks,
	const struct kly_wire_thread *threads, size_t count)
{
	const size_t most = LIST_BYTES / sizeof(*threads);
	int r = 0;

	for (size_t done = 0; done < count && r == 0; done += most)
		r = append_one(writer, KLY_PACKET_THREADS, ticks, ticks, threads + done,
			kly_min(most, count - done) * sizeof(*threads));
	return r;
}

int kly_log_writer_snapshot(struct kly_log_writer *writer, const struct kly_wire_snapshot *snapshot)
{
	return append_one(writer, KLY_PACKET_SNAPSHOT, snapshot->ticks, snapshot->ticks, snapshot,
		sizeof(*snapshot));
}

int kly_log_writer_loss(struct kly_log_writer *writer, const struct kly_log_loss *loss)
{
	const struct kly_wire_log_loss wire = {.cause = loss->cause, .events = loss->events};
	const int r =
		append_one(writer, KLY_PACKET_LOSS, loss->begin, loss->end, &wire, sizeof(wire));

	if (r == 0 && loss->cause < KLY_LOSS_CAUSES)
		writer->lost[loss->cause] += loss->events;
	return r;
}

uint64_t kly_log_writer_bytes(const struct kly_log_writer *writer)
{
	return writer->bytes;
}
