/* SPDX-License-Identifier: MIT */
#include "guest/runtime.h"
#include "base/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

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
	if (read_small(path, text, sizeof(text)) <= 0 || !find_start_time(text, &ret->start_time))
		return -ESRCH;
	ret->pid = pid ? (uint32_t)pid : (uint32_t)getpid();

	(void)put_text(end, "/ns/pid");
	ssize_t n = readlink(path, text, sizeof(text) - 1);
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

	return kly_identity_of((pid_t)who->pid, &now) < 0 || now.start_time != who->start_time;
}

void kly_runtime_clean(int directory)
{
	struct kly_identity self, who;
	unsigned long namespace, start;
	struct dirent *entry;
	int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);

	if (!dir) {
		if (copy >= 0)
			(void)close(copy);
		return;
	}
	(void)kly_identity_of(0, &self);
	while ((entry = readdir(dir))) {
		if (sscanf(entry->d_name, "p.%lu.%u.%lu", &namespace, &who.pid, &start) != 3 ||
			namespace != self.pid_namespace)
			continue;
		who.start_time = start;
		if (is_dead(&who))
			(void)unlinkat(directory, entry->d_name, 0);
	}
	(void)closedir(dir);
}
