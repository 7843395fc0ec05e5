/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a log that is read: heads of packets through a window, whole packets with their
 * checksum. The file may be cut or changed by others meanwhile; so nothing is mapped, and what was
 * seen before is compared with what is read now.
 */
#ifndef KLY_LOG_FILE_H
#define KLY_LOG_FILE_H

#include "wire/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kly_log_file {
	int fd; /* -1 = none */
	uint64_t bytes;

	/*
	 * A copy of the file's bytes from window_at. A head is 40 bytes, a body may have 16 MiB:
	 * the window grows while it serves many heads and shrinks while it serves one, so that
	 * small packets cost few reads and big ones are not read only to be passed over.
	 */
	uint8_t *window;
	uint64_t window_at;
	size_t window_bytes, window_step;
	uint32_t window_uses;
};

int kly_log_file_open(struct kly_log_file *file, int fd); /* takes fd, also on failure */
void kly_log_file_close(struct kly_log_file *file);

/* -ENODATA: the file ends before; or what pread(2) says. */
int kly_log_file_read(const struct kly_log_file *file, uint64_t offset, void *bytes, size_t size);

/* 1 = here is a head, and its body lies within the file; 0 = the file ends exactly here; -EBADMSG
 * = no head; -ENODATA = the file ends inside; or what pread(2) says. The checksum is not tested. */
int kly_log_file_head(struct kly_log_file *file, uint64_t offset, struct kly_wire_packet *head);

/* Reads a whole packet, whose head was seen before, into memory that the caller frees; its body is
 * at *ret + sizeof(head), 8-byte aligned. -EILSEQ: wrong checksum; -ENOMEM; -ENODATA; ... */
int kly_log_file_packet(const struct kly_log_file *file, uint64_t offset,
	const struct kly_wire_packet *head, uint8_t **ret_packet);

/* Looks for the magic of a packet, from an offset on that is a multiple of 8: 1 = *ret_offset, 0 =
 * there is none below `end`, -Exxx = the file can't be read there. */
int kly_log_file_find(struct kly_log_file *file, uint64_t from, uint64_t end, uint64_t *ret_offset);

/* Bytes from head to head. */
static inline uint64_t kly_log_packet_bytes(const struct kly_wire_packet *head)
{
	return sizeof(*head) + (((uint64_t)head->body_bytes + 7) & ~UINT64_C(7));
}

#endif
