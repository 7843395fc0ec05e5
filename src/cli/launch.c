/* SPDX-License-Identifier: MIT */
#include "cli/launch.h"
#include "base/util.h"
#include "elf/needed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARY "libkilroy.so.0"
#define NOT_RUN 127

extern char **environ;

/*
 * Which file is run, and which library goes with it.
 */

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* As execvp() does it. */
static int find_program(const char *name, char path[PATH_MAX])
{
	const char *search = getenv("PATH");

	if (strchr(name, '/')) {
		struct stat st;

		if ((size_t)snprintf(path, PATH_MAX, "%s", name) >= PATH_MAX)
			return -ENAMETOOLONG;
		if (stat(path, &st) < 0)
			return -errno;
		return is_program(path) ? 0 : -EACCES;
	}
	for (const char *p = search ? search : "/usr/bin:/bin"; *name; p++) {
		size_t len = strcspn(p, ":");

		if ((size_t)snprintf(path, PATH_MAX, "%.*s/%s", (int)(len ? len : 1), len ? p : ".",
			    name) < PATH_MAX &&
			is_program(path))
			return 0;
		p += len;
		if (!*p)
			break;
	}
	return -ENOENT;
}

static bool library_at(char path[PATH_MAX], const char *directory, const char *rest)
{
	return (size_t)snprintf(path, PATH_MAX, "%s%s/%s", directory, rest, LIBRARY) < PATH_MAX &&
	       access(path, R_OK) == 0;
}

/* Beside the command (as built), or in the library directory of the same prefix (as installed). */
static bool find_library(char path[PATH_MAX])
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0)
		return false;
	self[n] = '\0';
	char *slash = strrchr(self, '/');
	*slash = '\0';
	return library_at(path, self, "") || library_at(path, self, "/../" KLY_LIBDIR) ||
	       library_at(path, self, "/../lib");
}

/* The environment with the library in LD_PRELOAD, before what is there already. */
static char **preload(const char *library)
{
	const char *others = getenv("LD_PRELOAD");
	size_t count = 0, used = 0;
	char *entry;

	while (environ[count])
		count++;
	char **env = calloc(count + 2, sizeof(*env));
	if (!env || asprintf(&entry, "LD_PRELOAD=%s%s%s", library, others && *others ? ":" : "",
			    others ? others : "") < 0) {
		free(env);
		return NULL;
	}
	env[used++] = entry;
	for (size_t i = 0; i < count; i++)
		if (strncmp(environ[i], "LD_PRELOAD=", strlen("LD_PRELOAD=")) != 0)
			env[used++] = environ[i];
	return env;
}

static int choose_environment(const char *program, char ***ret)
{
	char library[PATH_MAX];

	*ret = environ;
	if (kly_elf_needs(program, "libkilroy.so") || kly_elf_needs(program, "libtrace.so"))
		return 0;
	if (!find_library(library))
		return -ELIBACC;
	*ret = preload(library);
	return *ret ? 0 : -ENOMEM;
}

/*
 * The process.
 */

static void keep_args(struct kly_launch *l, char *const *argv)
{
	for (; *argv; argv++) {
		size_t len = strlen(*argv) + 1;

		if (len > sizeof(l->args) - l->args_bytes)
			return;
		memcpy(l->args + l->args_bytes, *argv, len);
		l->args_bytes += len;
	}
}

static _Noreturn void run(int go_fd, int result_fd, const char *path, char *const *argv,
	char *const *env, const sigset_t *mask)
{
	char byte;

	if (read(go_fd, &byte, 1) != 1)
		_exit(NOT_RUN); /* cancelled, or the recorder died */
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGXFSZ, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, mask, NULL);
	(void)execve(path, argv, env);
	int error = errno;
	(void)!write(result_fd, &error, sizeof(error));
	_exit(NOT_RUN);
}

int kly_launch_prepare(struct kly_launch *l, char *const *argv, const sigset_t *mask)
{
	int go[2], result[2];
	char **env;

	*l = (struct kly_launch){.go_fd = -1, .result_fd = -1};
	int r = find_program(argv[0], l->path);
	if (r == 0)
		r = choose_environment(l->path, &env);
	if (r < 0)
		return r;
	keep_args(l, argv);
	if (pipe2(go, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(result, O_CLOEXEC) < 0) {
		r = -errno;
		(void)close(go[0]);
		(void)close(go[1]);
		return r;
	}
	l->pid = fork();
	if (l->pid == 0) {
		(void)close(go[1]);
		run(go[0], result[1], l->path, argv, env, mask);
	}
	r = l->pid < 0 ? -errno : 0;
	(void)close(go[0]);
	(void)close(result[1]);
	l->go_fd = go[1];
	l->result_fd = result[0];
	return r;
}

static void close_pipes(struct kly_launch *l)
{
	kly_closep(&l->go_fd);
	kly_closep(&l->result_fd);
	l->go_fd = l->result_fd = -1;
}

int kly_launch_go(struct kly_launch *l)
{
	int error = 0;

	if (write(l->go_fd, "", 1) != 1)
		error = EIO;
	else if (read(l->result_fd, &error, sizeof(error)) != sizeof(error))
		error = 0; /* closed by exec */
	close_pipes(l);
	if (error)
		(void)waitpid(l->pid, NULL, 0);
	return -error;
}

void kly_launch_cancel(struct kly_launch *l)
{
	close_pipes(l);
	(void)waitpid(l->pid, NULL, 0);
}
