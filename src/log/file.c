/* SPDX-License-Identifier: MIT */
#include "log/file.h"

#include "arch/crc32c.h"
#include "base/util.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define WINDOW_MIN 4096u
#define WINDOW_MAX 65536u
#define USES_MANY 4u

int kly_log_file_open(struct kly_log_file *file, int fd)
{
	struct stat status;

	*file = (struct kly_log_file){.fd = fd, .window_step = WINDOW_MIN};
	if (fstat(fd, &status) < 0)
		return -errno;
	if (S_ISDIR(status.st_mode))
		return -EISDIR;
	if (!S_ISREG(status.st_mode))
		return -ESPIPE;
	file->bytes = (uint64_t)status.st_size;
	file->window = malloc(WINDOW_MAX);
	return file->window ? 0 : -ENOMEM;
}

void kly_log_file_close(struct kly_log_file *file)
{
	if (file->fd >= 0)
		(void)close(file->fd);
	free(file->window);
	*file = (struct kly_log_file){.fd = -1};
}

int kly_log_file_read(const struct kly_log_file *file, uint64_t offset, void *bytes, size_t size)
{
	for (size_t done = 0; done < size;) {
		const ssize_t n =
			pread(file->fd, (char *)bytes + done, size - done, (off_t)(offset + done));
		if (n == 0)
			return -ENODATA;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			done += (size_t)n;
	}
	return 0;
}

static void adapt_step(struct kly_log_file *file)
{
	if (file->window_uses >= USES_MANY)
		file->window_step = kly_min(2 * file->window_step, WINDOW_MAX);
	else
		file->window_step = kly_max(file->window_step / 2, WINDOW_MIN);
	file->window_uses = 0;
}

/* Moves the window, so that it begins at offset, and holds what the file has there up to its step.
 * The caller has checked that offset lies within the file. */
static int move_window(struct kly_log_file *file, uint64_t offset)
{
	const size_t size = kly_min(file->window_step, file->bytes - offset);

	file->window_bytes = 0;
	const int r = kly_log_file_read(file, offset, file->window, size);
	if (r < 0)
		return r;
	file->window_at = offset;
	file->window_bytes = size;
	return 0;
}

static bool window_has(const struct kly_log_file *file, uint64_t offset, size_t size)
{
	return offset >= file->window_at && size <= file->window_bytes &&
	       offset - file->window_at <= file->window_bytes - size;
}

int kly_log_file_head(struct kly_log_file *file, uint64_t offset, struct kly_wire_packet *head)
{
	if (offset >= file->bytes)
		return 0;
	if (file->bytes - offset < sizeof(*head))
		return -ENODATA;

	if (!window_has(file, offset, sizeof(*head))) {
		adapt_step(file);
		const int r = move_window(file, offset);
		if (r < 0)
			return r;
	}
	file->window_uses++;
	memcpy(head, file->window + (offset - file->window_at), sizeof(*head));

	if (head->magic != KLY_PACKET_MAGIC || head->body_bytes > KLY_PACKET_BODY_MAX)
		return -EBADMSG;
	if (head->body_bytes > file->bytes - offset - sizeof(*head))
		return -ENODATA;
	return 1;
}

int kly_log_file_packet(const struct kly_log_file *file, uint64_t offset,
	const struct kly_wire_packet *head, uint8_t **ret_packet)
{
	const size_t size = sizeof(*head) + head->body_bytes;
	const size_t hashed = offsetof(struct kly_wire_packet, body_bytes);
	kly_cleanup(kly_freep) uint8_t *packet = malloc(size);
	if (!packet)
		return -ENOMEM;

	const int r = kly_log_file_read(file, offset, packet, size);
	if (r < 0)
		return r;
	if (memcmp(packet, head, sizeof(*head)) != 0 ||
		kly_crc32c(0, packet + hashed, size - hashed) != head->crc)
		return -EILSEQ;
	*ret_packet = KLY_TAKE(packet);
	return 0;
}

int kly_log_file_find(struct kly_log_file *file, uint64_t from, uint64_t end, uint64_t *ret_offset)
{
	const uint32_t magic = KLY_PACKET_MAGIC;

	end = kly_min(end, file->bytes);
	for (uint64_t offset = from; offset < end && end - offset >= sizeof(magic); offset += 8) {
		if (!window_has(file, offset, sizeof(magic))) {
			file->window_step = WINDOW_MAX;
			const int r = move_window(file, offset);
			if (r < 0)
				return r;
		}
		if (memcmp(file->window + (offset - file->window_at), &magic, sizeof(magic)) == 0) {
			*ret_offset = offset;
			return 1;
		}
	}
	return 0;
}
