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

__attribute__((constructor(101))) static void begin(void)
{
	static const struct kly_process_host host = {find_block, open_object};
	int saved = errno;

	if (getenv("KILROY_DISABLE") || kly_process_begin(&host) < 0)
		kly_process_disable();
	errno = saved;
}
