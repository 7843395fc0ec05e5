/* SPDX-License-Identifier: MIT */
/* Bytes that grow at the end. All zero is an empty buffer. */
#ifndef KLY_BASE_BUFFER_H
#define KLY_BASE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

struct kly_buffer {
	uint8_t *bytes;
	size_t size, room;
};

void kly_buffer_fini(struct kly_buffer *buffer);

/* 0 or -ENOMEM; then the buffer is as before. */
int kly_buffer_add(struct kly_buffer *buffer, const void *data, size_t size);

/* Adds zero bytes up to the next multiple of `to`. */
int kly_buffer_pad(struct kly_buffer *buffer, size_t to);

/* Empties it and keeps its memory. */
static inline void kly_buffer_clear(struct kly_buffer *buffer)
{
	buffer->size = 0;
}

#endif
