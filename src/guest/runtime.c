/* SPDX-License-Identifier: MIT */
#include "guest/runtime.h"
#include "base/atomic.h"
#include "base/util.h"
#include "wire/block.h"
#include "wire/stream.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define UNFINISHED_S 60 /* nobody takes so long to make a stream */

/* Text by hand: snprintf() is not async-signal-safe. */
static char *put_text(char *to, const char *text)
{
	while (*text)
		*to++ = *text++;
	*to = '\0';
	return to;
}

static char *put_number(char *to, uint64_t n, unsigned base, unsigned least_digits)
{
	char digits[24];
	unsigned count = 0;

	do {
		digits[count++] = "0123456789abcdef"[n % base];
		n /= base;
	} while (n || count < least_digits);
	while (count)
		*to++ = digits[--count];
	*to = '\0';
	return to;
}

static ssize_t read_small(const char *path, char *buffer, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	ssize_t n = read(fd, buffer, room - 1);
	(void)close(fd);
	if (n >= 0)
		buffer[n] = '\0';
	return n;
}

static uint64_t parse_number(const char *text)
{
	uint64_t n = 0;

	for (; *text >= '0' && *text <= '9'; text++)
		n = n * 10 + (uint64_t)(*text - '0');
	return n;
}

/* Field 22 of /proc/PID/stat. The name in field 2 may hold anything, also ')'. */
static bool find_start_time(const char *stat, uint64_t *ret)
{
	const char *p = strrchr(stat, ')');

	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (!p)
		return false;
	*ret = parse_number(p + 1);
	return true;
}

int kly_identity_of(pid_t pid, struct kly_identity *ret)
{
	char path[64], text[1024];
	char *end = put_text(path, "/proc/");

	end = pid ? put_number(end, (uint64_t)pid, 10, 1) : put_text(end, "self");
	(void)put_text(end, "/stat");
	ssize_t n = read_small(path, text, sizeof(text));
	if (n == -ENOENT || n == -ESRCH)
		return -ESRCH;
	if (n <= 0 || !find_start_time(text, &ret->start_time))
		return -EIO;
	ret->pid = pid ? (uint32_t)pid : (uint32_t)getpid();

	(void)put_text(end, "/ns/pid");
	n = readlink(path, text, sizeof(text) - 1);
	text[n < 0 ? 0 : n] = '\0';
	const char *number = strchr(text, '[');
	ret->pid_namespace = number ? parse_number(number + 1) : 0;
	return 0;
}

static int candidate(unsigned i, char path[256])
{
	const char *forced = getauxval(AT_SECURE) ? NULL : getenv("KILROY_RUNTIME_DIR");

	if (forced) {
		if (i || strlen(forced) >= 256)
			return -ENOENT;
		(void)put_text(path, forced);
		return 0;
	}
	switch (i) {
	case 0:
		(void)put_number(put_text(path, "/dev/shm/kilroy-"), geteuid(), 10, 1);
		return 0;
	case 1:
		(void)put_text(put_number(put_text(path, "/run/user/"), geteuid(), 10, 1),
			"/kilroy");
		return 0;
	}
	return -ENOENT;
}

static int open_usable(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 07777) == 0700)
		return fd;
	(void)close(fd);
	return -EPERM;
}

static int open_first(bool make)
{
	char path[256];

	for (unsigned i = 0; candidate(i, path) == 0; i++) {
		if (make && mkdir(path, 0700) == 0)
			(void)chmod(path, 0700); /* whatever the umask is */
		int fd = open_usable(path);
		if (fd >= 0)
			return fd;
	}
	return -ENOENT;
}

int kly_runtime_open(void)
{
	return open_first(false);
}

int kly_runtime_make(void)
{
	return open_first(true);
}

void kly_runtime_block_name(const struct kly_identity *who, char name[KLY_RUNTIME_NAME])
{
	char *end = put_number(put_text(name, "p."), who->pid_namespace, 10, 1);

	end = put_number(put_text(end, "."), who->pid, 10, 1);
	(void)put_number(put_text(end, "."), who->start_time, 10, 1);
}

void kly_runtime_object_name(char kind, uint64_t id, char name[KLY_RUNTIME_NAME])
{
	name[0] = kind;
	name[1] = '.';
	(void)put_number(name + 2, id, 16, 16);
}

int kly_runtime_open_file(int directory, const char *name)
{
	struct stat st;
	int fd = openat(directory, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
		st.st_nlink == 1)
		return fd;
	(void)close(fd);
	return -EPERM;
}

int kly_runtime_create_file(int directory, const char *name)
{
	int fd = openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	(void)fchmod(fd, 0600); /* whatever the umask is */
	return fd;
}

static bool is_dead(const struct kly_identity *who)
{
	struct kly_identity now;

	int r = kly_identity_of((pid_t)who->pid, &now);

	return r == -ESRCH || (r == 0 && now.start_time != who->start_time);
}

/*
 * What is whose: a block is its process's, a stream its creator's; a registry is in use as long as a
 * block or a stream names it. A stream is made before its registry, and a stream without a creator
 * is one that is being made, or whose maker died at that: age tells.
 */

struct cleaner {
	int directory;
	uint64_t pid_namespace;
};

static bool parse_object(const char *name, char kind, uint64_t *ret_id)
{
	char same[KLY_RUNTIME_NAME];

	if (name[0] != kind || name[1] != '.')
		return false;
	*ret_id = strtoull(name + 2, NULL, 16);
	kly_runtime_object_name(kind, *ret_id, same);
	return strcmp(name, same) == 0;
}

/* False: it can't be judged from here. */
static bool block_is_dead(const struct cleaner *c, const char *name)
{
	struct kly_identity who;
	unsigned long namespace, start;

	if (sscanf(name, "p.%lu.%u.%lu", &namespace, &who.pid, &start) != 3 ||
		namespace != c->pid_namespace)
		return false;
	who.start_time = start;
	return is_dead(&who);
}

static bool read_head(const struct cleaner *c, const char *name, void *head, size_t bytes)
{
	kly_cleanup(kly_closep) int fd = kly_runtime_open_file(c->directory, name);

	return fd >= 0 && pread(fd, head, bytes, 0) == (ssize_t)bytes;
}

static bool is_old(const struct cleaner *c, const char *name)
{
	struct stat st;

	return fstatat(c->directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       time(NULL) - st.st_mtime > UNFINISHED_S;
}

static bool stream_is_dead(const struct cleaner *c, const char *name)
{
	struct kly_wire_stream head;

	if (!read_head(c, name, &head, sizeof(head)) || head.magic != KLY_STREAM_MAGIC)
		return is_old(c, name);
	const struct kly_identity who = {
		.pid = head.creator_pid, .start_time = head.creator_start};
	return head.creator_namespace == c->pid_namespace && is_dead(&who);
}

static bool names_registry(const struct cleaner *c, const char *name, uint64_t id)
{
	struct kly_wire_stream stream;
	struct kly_wire_block block;

	if (name[0] == 's')
		return !read_head(c, name, &stream, sizeof(stream)) || stream.registry_id == id;
	return name[0] == 'p' &&
	       (!read_head(c, name, &block, sizeof(block)) || block.registry_id == id);
}

static void each_name(
	const struct cleaner *c, void (*visit)(const struct cleaner *, const char *, void *), void *data)
{
	int copy = openat(c->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	if (!dir) {
		kly_closep(&copy);
		return;
	}
	while ((entry = readdir(dir)))
		visit(c, entry->d_name, data);
	(void)closedir(dir);
}

/* The writers of a dead one's stream stop, or they would go on for nobody. */
static void shut_down(const struct cleaner *c, const char *name)
{
	kly_cleanup(kly_closep) int fd = kly_runtime_open_file(c->directory, name);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size < KLY_STREAM_SLOTS_OFFSET)
		return;
	struct kly_wire_stream_shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		MAP_SHARED, fd, KLY_STREAM_SHARED_OFFSET);
	if (shared == MAP_FAILED)
		return;
	kly_or_acq_rel(&shared->state, (uint64_t)KLY_STATE_DEAD);
	(void)munmap(shared, sizeof(*shared));
}

static void clean_owned(const struct cleaner *c, const char *name, void *data)
{
	uint64_t id;

	(void)data;
	if (block_is_dead(c, name)) {
		(void)unlinkat(c->directory, name, 0);
	} else if (parse_object(name, 's', &id) && stream_is_dead(c, name)) {
		shut_down(c, name);
		(void)unlinkat(c->directory, name, 0);
	}
}

struct registry_use {
	uint64_t id;
	bool used;
};

static void look_for_use(const struct cleaner *c, const char *name, void *data)
{
	struct registry_use *use = data;

	use->used |= names_registry(c, name, use->id);
}

static void clean_registry(const struct cleaner *c, const char *name, void *data)
{
	struct registry_use use = {0};

	(void)data;
	if (!parse_object(name, 'r', &use.id))
		return;
	each_name(c, look_for_use, &use);
	if (!use.used)
		(void)unlinkat(c->directory, name, 0);
}

void kly_runtime_clean(int directory)
{
	struct kly_identity self;

	if (kly_identity_of(0, &self) < 0)
		return;
	const struct cleaner c = {directory, self.pid_namespace};
	each_name(&c, clean_owned, NULL);
	each_name(&c, clean_registry, NULL);
}
