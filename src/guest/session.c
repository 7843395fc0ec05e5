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

static int make_registry(struct kly_session *s, uint64_t id)
{
	kly_runtime_object_name('r', id, s->registry_name);
	kly_cleanup(kly_closep) int fd = kly_runtime_create_file(s->directory, s->registry_name);
	if (fd < 0)
		return fd;
	return kly_registry_create(fd, id, &s->control.target.registry);
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
	struct kly_identity self;

	if (kly_identity_of(0, &self) == 0) {
		made.creator_namespace = (uint32_t)self.pid_namespace;
		made.creator_start = self.start_time;
	}
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
	int r = random_id(&registry_id);
	if (r == 0)
		r = make_stream(s, options, registry_id); /* first: it says whose the registry is */
	if (r == 0)
		r = make_registry(s, registry_id);
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

/* Nobody can begin a record any more; who still is in one would find a hole, and a hole in a full
 * file system is SIGBUS. Such memory stays as long as the program has it. */
static bool is_idle(const struct kly_stream *stream)
{
	uint32_t used = (uint32_t)kly_min(
		kly_load_acquire(&stream->shared->slots_used), stream->slot_count);

	for (uint32_t i = 0; i < used * KLY_LANES; i++)
		if (kly_load_acquire(&stream->slots[i / KLY_LANES].word[i % KLY_LANES]) &
			KLY_LANE_IN_FLIGHT)
			return false;
	return true;
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
		if (is_idle(&s->stream))
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

bool kly_session_is_refused(const struct kly_session *s)
{
	const struct kly_wire_place *place = &s->control.target.block->places[s->control.place];

	return kly_load_acquire(&place->refused) == kly_load_relaxed(&place->generation);
}

bool kly_session_image(const struct kly_session *s, uint32_t incarnation, struct kly_wire_image *ret)
{
	const uint8_t *block = (const uint8_t *)s->control.target.block;
	const struct kly_wire_image *at = (const void *)(block + KLY_BLOCK_IMAGES_OFFSET +
							 incarnation % KLY_IMAGES * sizeof(*at));

	/* Acquire: pairs with the release in note_image(). */
	if (kly_load_acquire(&at->incarnation) != incarnation)
		return false;
	memcpy(ret, at, sizeof(*ret));
	__atomic_thread_fence(__ATOMIC_ACQUIRE); /* the same again: not overwritten meanwhile */
	return kly_load_relaxed(&at->incarnation) == incarnation && ret->exe_bytes &&
	       ret->exe_bytes + ret->args_bytes <= sizeof(ret->text) &&
	       !ret->text[ret->exe_bytes - 1];
}

uint32_t kly_session_incarnation(const struct kly_session *s)
{
	return kly_load_acquire(&s->control.target.block->incarnation);
}
