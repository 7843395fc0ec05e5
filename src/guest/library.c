/* SPDX-License-Identifier: MIT */
/*
 * The library comes to life in a process: before main(), and before the constructors of what was
 * loaded after it. Trace points that run earlier find empty words and ask; until here they are told
 * that there is nothing to do.
 */
#include "base/util.h"
#include "core/process.h"
#include "guest/runtime.h"

#include <errno.h>
#include <fcntl.h>

static int find_block(void)
{
	struct kly_identity self;
	char name[KLY_RUNTIME_NAME];
	int directory = kly_runtime_open();

	if (directory < 0)
		return directory;
	int r = kly_identity_of(0, &self);
	if (r == 0) {
		kly_runtime_block_name(&self, name);
		r = kly_runtime_open_file(directory, name);
	}
	(void)close(directory);
	return r;
}

static int open_object(char kind, uint64_t id)
{
	char name[KLY_RUNTIME_NAME];
	int directory = kly_runtime_open();

	if (directory < 0)
		return directory;
	kly_runtime_object_name(kind, id, name);
	int fd = kly_runtime_open_file(directory, name);
	(void)close(directory);
	return fd;
}

static size_t read_path(const char *path, char *to, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	ssize_t n = read(fd, to, room);
	(void)close(fd);
	return n > 0 ? (size_t)n : 0;
}

/* For the recorder: by the time it looks, this image may have run another one, or ended. */
static void note_image(void)
{
	uint32_t incarnation = kly_process.block->incarnation;
	struct kly_wire_image *image = (void *)((uint8_t *)kly_process.block +
		KLY_BLOCK_IMAGES_OFFSET + incarnation % KLY_IMAGES * sizeof(*image));

	kly_store_release(&image->incarnation, 0);
	ssize_t n = readlink("/proc/self/exe", image->text, sizeof(image->text) / 2);
	n = n < 0 ? 0 : n;
	image->text[n] = '\0';
	image->exe_bytes = (uint16_t)(n + 1);
	image->args_bytes = (uint16_t)read_path("/proc/self/cmdline", image->text + n + 1,
		sizeof(image->text) - (size_t)n - 1);
	/* Release: pairs with the acquire in kly_session_image(). */
	kly_store_release(&image->incarnation, incarnation);
}

/*
 * Streams that wait for this process are mapped now: later the program may have changed its user,
 * its root directory or its limits, and could not open them.
 */
static void map_streams(void)
{
	sigset_t before;

	kly_signals_block(&before);
	for (uint32_t i = 1; i <= KLY_STREAMS_MAX; i++) {
		struct kly_wire_place *place = &kly_process.block->places[i];
		uint32_t generation = kly_load_acquire(&place->generation);

		if (generation & 1 && !kly_process_map_place(i))
			kly_store_release(&place->refused, generation);
	}
	kly_signals_restore(&before);
}

__attribute__((constructor(101))) static void begin(void)
{
	static const struct kly_process_host host = {find_block, open_object};
	int saved = errno;

	if (getenv("KILROY_DISABLE") || kly_process_begin(&host) < 0) {
		kly_process_disable();
	} else if (kly_process.block->incarnation && kly_process.block->registry_id) {
		note_image();
		map_streams();
	}
	errno = saved;
}
