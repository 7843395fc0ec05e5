/* SPDX-License-Identifier: MIT */
#include "base/buffer.h"

#include "base/util.h"

#include <errno.h>
#include <string.h>

#define ROOM_FIRST 256u

static int make_room(struct kly_buffer *buffer, size_t more)
{
	if (buffer->room - buffer->size >= more)
		return 0;
	if (more > SIZE_MAX / 4 || buffer->size > SIZE_MAX / 4)
		return -ENOMEM;

	const size_t room = kly_max(kly_max(2 * buffer->room, buffer->size + more), ROOM_FIRST);
	uint8_t *bytes = realloc(buffer->bytes, room);
	if (!bytes)
		return -ENOMEM;
	buffer->bytes = bytes;
	buffer->room = room;
	return 0;
}

void kly_buffer_fini(struct kly_buffer *buffer)
{
	free(buffer->bytes);
	*buffer = (struct kly_buffer){0};
}

int kly_buffer_add(struct kly_buffer *buffer, const void *data, size_t size)
{
	const int r = make_room(buffer, size);

	if (r < 0 || !size)
		return r;
	memcpy(buffer->bytes + buffer->size, data, size);
	buffer->size += size;
	return 0;
}

int kly_buffer_pad(struct kly_buffer *buffer, size_t to)
{
	const size_t more = KLY_ALIGN(buffer->size, to) - buffer->size;
	const int r = make_room(buffer, more);

	if (r < 0 || !more)
		return r;
	memset(buffer->bytes + buffer->size, 0, more);
	buffer->size += more;
	return 0;
}
