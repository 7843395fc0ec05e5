/* SPDX-License-Identifier: MIT */
/*
 * Preloaded: lets the nth call that asks for memory, room or a descriptor fail, once.
 *
 *	FAULT_NTH      which call, from 1
 *	FAULT_PROGRAM  counts only in the program of this name
 *	FAULT_TOLD     a file that is made when a call was let fail
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);

static long calls;

static void tell(const char *what)
{
	const char *path = getenv("FAULT_TOLD");
	long fd = path ? syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;

	if (fd < 0)
		return;
	(void)!write((int)fd, what, strlen(what));
	(void)syscall(SYS_close, fd);
}

static bool fails(const char *what)
{
	const char *nth = getenv("FAULT_NTH"), *program = getenv("FAULT_PROGRAM");

	if (!nth || !program || !program_invocation_short_name ||
		strcmp(program, program_invocation_short_name) != 0 ||
		__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) != atol(nth))
		return false;
	tell(what);
	return true;
}

static int refuse(int error)
{
	errno = error;
	return -1;
}

#define EXPORT __attribute__((visibility("default")))

EXPORT void *malloc(size_t bytes)
{
	if (fails("malloc")) {
		errno = ENOMEM;
		return NULL;
	}
	return __libc_malloc(bytes);
}

EXPORT void *calloc(size_t count, size_t bytes)
{
	if (fails("calloc")) {
		errno = ENOMEM;
		return NULL;
	}
	return __libc_calloc(count, bytes);
}

EXPORT void *realloc(void *old, size_t bytes)
{
	if (fails("realloc")) {
		errno = ENOMEM;
		return NULL;
	}
	return __libc_realloc(old, bytes);
}

EXPORT void *mmap(void *where, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	if (fails("mmap")) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, where, bytes, protection, flags, fd, offset);
}

EXPORT int madvise(void *where, size_t bytes, int advice)
{
	if (fails("madvise"))
		return refuse(ENOMEM);
	return (int)syscall(SYS_madvise, where, bytes, advice);
}

EXPORT int posix_fallocate(int fd, off_t offset, off_t bytes)
{
	if (fails("posix_fallocate"))
		return ENOSPC;
	return syscall(SYS_fallocate, fd, 0, offset, bytes) < 0 ? errno : 0;
}

EXPORT int ftruncate(int fd, off_t bytes)
{
	return fails("ftruncate") ? refuse(ENOSPC) : (int)syscall(SYS_ftruncate, fd, bytes);
}

EXPORT int memfd_create(const char *name, unsigned flags)
{
	return fails("memfd_create") ? refuse(EMFILE) : (int)syscall(SYS_memfd_create, name, flags);
}

EXPORT int pipe2(int fds[2], int flags)
{
	return fails("pipe2") ? refuse(EMFILE) : (int)syscall(SYS_pipe2, fds, flags);
}

EXPORT int openat(int directory, const char *path, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	int mode = flags & O_CREAT ? va_arg(args, int) : 0;
	va_end(args);
	return fails("openat") ? refuse(EMFILE)
			       : (int)syscall(SYS_openat, directory, path, flags, mode);
}

EXPORT int open(const char *path, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	int mode = flags & O_CREAT ? va_arg(args, int) : 0;
	va_end(args);
	return fails("open") ? refuse(EMFILE)
			     : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
