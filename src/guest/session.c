/* SPDX-License-Identifier: MIT */
#include "guest/session.h"
#include "core/fence.h"
#include "guest/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

static int random_id(uint64_t *ret)
{
	do
		if (getrandom(ret, sizeof(*ret), 0) != sizeof(*ret))
			return -errno;
	while (!*ret);
	return 0;
}

static int make_registry(struct kly_session *s, uint64_t *ret_id)
{
	int r = random_id(ret_id);

	if (r < 0)
		return r;
	kly_runtime_object_name('r', *ret_id, s->registry_name);
	kly_cleanup(kly_closep) int fd = kly_runtime_create_file(s->directory, s->registry_name);
	if (fd < 0)
		return fd;
	return kly_registry_create(fd, *ret_id, &s->control.target.registry);
}

static int make_block(struct kly_session *s, uint64_t registry_id)
{
	struct kly_identity who;

	int r = kly_identity_of(s->pid, &who);
	if (r < 0)
		return r;
	kly_runtime_block_name(&who, s->block_name);
	kly_cleanup(kly_closep) int fd = kly_runtime_create_file(s->directory, s->block_name);
	if (fd < 0)
		return fd;
	r = posix_fallocate(fd, 0, KLY_BLOCK_BYTES);
	if (r)
		return -r;
	void *p = mmap(NULL, KLY_BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	s->control.target.block = p;
	s->control.target.words = (uint64_t *)(void *)((uint8_t *)p + KLY_BLOCK_WORDS_OFFSET);
	*s->control.target.block = (struct kly_wire_block){
		.magic = KLY_BLOCK_MAGIC,
		.version = KLY_BLOCK_VERSION,
		.pid = who.pid,
		.pid_namespace = who.pid_namespace,
		.start_time = who.start_time,
		.registry_id = registry_id,
	};
	return 0;
}

static int make_stream(struct kly_session *s, const struct kly_stream_options *options,
	uint64_t registry_id)
{
	struct kly_stream_options made = *options;

	made.registry_id = registry_id;
	made.flags |= kly_fence_available() ? 0 : KLY_STREAM_STRONG;
	int r = random_id(&made.id);
	if (r < 0)
		return r;
	kly_runtime_object_name('s', made.id, s->stream_name);
	kly_cleanup(kly_closep) int fd = kly_runtime_create_file(s->directory, s->stream_name);
	return fd < 0 ? fd : kly_stream_create(fd, &made, &s->stream);
}

int kly_session_open(struct kly_session *s, pid_t pid, const struct kly_stream_options *options)
{
	uint64_t registry_id;

	*s = (struct kly_session){.pid = pid, .directory = kly_runtime_make()};
	if (s->directory < 0)
		return s->directory;
	kly_runtime_clean(s->directory);
	int r = make_registry(s, &registry_id);
	if (r == 0)
		r = make_stream(s, options, registry_id);
	if (r == 0)
		r = make_block(s, registry_id);
	if (r == 0) {
		const struct kly_target target = s->control.target;

		r = kly_control_init(&s->control, &target, &s->stream);
	}
	if (r < 0)
		kly_session_close(s);
	return r;
}

static void unlink_name(const struct kly_session *s, const char *name)
{
	if (*name)
		(void)unlinkat(s->directory, name, 0);
}

static void remove_memory(struct kly_stream *stream)
{
	const uint8_t *chunks = (const uint8_t *)stream->chunks;
	const uint8_t *end = (const uint8_t *)stream->head + stream->total_bytes;

	(void)madvise((void *)(uintptr_t)chunks, (size_t)(end - chunks), MADV_REMOVE);
}

void kly_session_close(struct kly_session *s)
{
	struct kly_target target = s->control.target;

	if (s->directory < 0)
		return;
	kly_control_fini(&s->control);
	if (s->stream.head) {
		kly_fence_writers(&s->stream);
		remove_memory(&s->stream);
		kly_stream_unmap(&s->stream);
	}
	kly_registry_unmap(&target.registry);
	if (target.block)
		(void)munmap(target.block, KLY_BLOCK_BYTES);
	unlink_name(s, s->block_name);
	unlink_name(s, s->stream_name);
	unlink_name(s, s->registry_name);
	(void)close(s->directory);
	s->directory = -1;
}

uint32_t kly_session_incarnation(const struct kly_session *s)
{
	return kly_load_acquire(&s->control.target.block->incarnation);
}
