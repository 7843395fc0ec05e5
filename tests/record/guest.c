/* SPDX-License-Identifier: MIT */
/*
 * What the tests record: a program that makes events and then gets into trouble.
 *
 *	guest STEP [ARG]... [STEP [ARG]...]...
 *
 * It calls the library only if that has been loaded, so that it can be built with or without it. An
 * event `guest.count` holds a number that goes up from 0 in each image.
 */
#include <kilroy/trace.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint64_t unknown_word;
static struct kilroy_event_type count_type = {&unknown_word, 0, 0, "guest.count", "u64 n\n"};
static struct kilroy_event_type signal_type = {&unknown_word, 0, 0, "guest.signal", "u32 number\n"};
static struct kilroy_event_type child_type = {&unknown_word, 0, 0, "guest.child", "u32 pid\n"};

static void (*record)(struct kilroy_event_type *, const void *, size_t);
static uint64_t counted, none;
static uint64_t *oracle = &none; /* events whose calls have returned */

static void make(struct kilroy_event_type *type, const void *data, size_t len)
{
	if (record)
		record(type, data, len);
}

static void count(long events)
{
	for (long i = 0; i < events; i++) {
		make(&count_type, &counted, sizeof(counted));
		counted++;
		__atomic_store_n(oracle, counted, __ATOMIC_RELEASE);
	}
}

static void fail(const char *what)
{
	perror(what);
	exit(99);
}

static void on_signal(int number)
{
	uint32_t n = (uint32_t)number;
	int saved = errno;

	make(&signal_type, &n, sizeof(n));
	errno = saved;
}

static void step_count(char **arg)
{
	count(atol(arg[0]));
}

static void step_exit(char **arg)
{
	exit(atoi(arg[0]));
}

static void step_raise(char **arg)
{
	raise(atoi(arg[0]));
}

static void step_print(char **arg)
{
	printf("%s\n", arg[0]);
	fflush(stdout);
}

/* How many events were made, in a file that survives us. */
static void step_oracle(char **arg)
{
	int fd = open(arg[0], O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, 8) < 0)
		fail(arg[0]);
	oracle = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (oracle == MAP_FAILED)
		fail("mmap");
	close(fd);
}

static void step_forever(char **arg)
{
	(void)arg;
	for (;;) {
		count(20);
		usleep(1000);
	}
}

/* Makes many events until a file exists. */
static void step_fill(char **arg)
{
	while (access(arg[0], F_OK) < 0) {
		count(500);
		usleep(1000);
	}
}

/* Says that it waits, then waits until a file exists, and makes events meanwhile. */
static void step_until(char **arg)
{
	while (access(arg[0], F_OK) < 0) {
		count(1);
		usleep(2000);
	}
}

static void step_touch(char **arg)
{
	int fd = open(arg[0], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		fail(arg[0]);
	dprintf(fd, "%d\n", (int)getpid());
	close(fd);
}

static void step_sleep(char **arg)
{
	usleep((useconds_t)atoi(arg[0]) * 1000);
}

static void step_exec(char **arg)
{
	execvp(arg[0], arg);
	fail(arg[0]);
}

static void check_child(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status) {
		fprintf(stderr, "child: status %#x\n", status);
		exit(98);
	}
}

static void be_child(void)
{
	for (int i = 0; i < 100; i++) {
		uint32_t pid = (uint32_t)getpid();

		make(&child_type, &pid, sizeof(pid));
	}
}

static void step_fork(char **arg)
{
	(void)arg;
	pid_t pid = fork();
	if (pid == 0) {
		be_child();
		exit(0);
	}
	check_child(pid);
}

static void step_raw_fork(char **arg)
{
	(void)arg;
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		be_child();
		_exit(0);
	}
	check_child(pid);
	pid = _Fork();
	if (pid == 0) {
		be_child();
		_exit(0);
	}
	check_child(pid);
}

static void step_closeall(char **arg)
{
	(void)arg;
	for (int fd = 0; fd < 1024; fd++)
		close(fd);
}

static void limit(int what, rlim_t to)
{
	const struct rlimit limit = {to, to};

	if (setrlimit(what, &limit) < 0)
		fail("setrlimit");
}

static void step_nofile(char **arg)
{
	limit(RLIMIT_NOFILE, (rlim_t)atol(arg[0]));
}

static void step_memory(char **arg)
{
	limit(RLIMIT_AS, (rlim_t)atol(arg[0]) << 20);
}

static void step_allocate(char **arg)
{
	char *p = malloc((size_t)atol(arg[0]) << 20);

	if (!p)
		fail("malloc");
	memset(p, 1, (size_t)atol(arg[0]) << 20);
	free(p);
}

static void step_user(char **arg)
{
	if (setgroups(0, NULL) < 0 || setgid((gid_t)atoi(arg[0])) < 0 ||
		setuid((uid_t)atoi(arg[0])) < 0)
		fail("setuid");
}

static void step_root(char **arg)
{
	if (chroot(arg[0]) < 0 || chdir("/") < 0)
		fail("chroot");
}

static void *thread(void *arg)
{
	(void)arg;
	for (uint64_t n = 0; n < 1000; n++)
		make(&count_type, &n, sizeof(n));
	return NULL;
}

static void step_threads(char **arg)
{
	for (int i = atoi(arg[0]); i > 0; i--) {
		pthread_t t;

		if (pthread_create(&t, NULL, thread, NULL))
			thread(NULL);
		else
			pthread_join(t, NULL);
	}
}

/* Its own handlers for two signals, at work. */
static void step_signals(char **arg)
{
	const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	(void)arg;
	sigaction(SIGCHLD, &sa, NULL);
	sigaction(SIGPROF, &sa, NULL);
	setitimer(ITIMER_PROF, &often, NULL);
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();
		if (pid == 0)
			_exit(0);
		check_child(pid);
		count(1000);
	}
	setitimer(ITIMER_PROF, &never, NULL);
}

static void on_interrupt(int number)
{
	on_signal(number);
	_exit(40 + number);
}

/* Ends with 40 + signal when it is interrupted. */
static void step_catch(char **arg)
{
	(void)arg;
	signal(SIGINT, on_interrupt);
	signal(SIGTERM, on_interrupt);
	signal(SIGHUP, on_interrupt);
}

static void step_ignore(char **arg)
{
	signal(atoi(arg[0]), SIG_IGN);
}

static void step_env(char **arg)
{
	const char *value = getenv(arg[0]);

	printf("%s=%s\n", arg[0], value ? value : "");
	fflush(stdout);
}

static void step_ignored(char **arg)
{
	struct sigaction sa;

	sigaction(atoi(arg[0]), NULL, &sa);
	puts(sa.sa_handler == SIG_IGN ? "ignored" : "not ignored");
	fflush(stdout);
}

/* Descriptors above standard error that are open here. */
static void step_files(char **arg)
{
	(void)arg;
	for (int fd = 0; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			dprintf(2, "%d ", fd);
	dprintf(2, "\n");
}

static const struct {
	const char *name;
	void (*run)(char **arg);
	int args;
} steps[] = {
	{"count", step_count, 1},
	{"exit", step_exit, 1},
	{"raise", step_raise, 1},
	{"print", step_print, 1},
	{"oracle", step_oracle, 1},
	{"forever", step_forever, 0},
	{"fill", step_fill, 1},
	{"until", step_until, 1},
	{"touch", step_touch, 1},
	{"sleep", step_sleep, 1},
	{"exec", step_exec, 1},
	{"fork", step_fork, 0},
	{"raw-fork", step_raw_fork, 0},
	{"closeall", step_closeall, 0},
	{"nofile", step_nofile, 1},
	{"memory", step_memory, 1},
	{"allocate", step_allocate, 1},
	{"user", step_user, 1},
	{"root", step_root, 1},
	{"threads", step_threads, 1},
	{"signals", step_signals, 0},
	{"catch", step_catch, 0},
	{"ignore", step_ignore, 1},
	{"env", step_env, 1},
	{"ignored", step_ignored, 1},
	{"files", step_files, 0},
};

int main(int argc, char **argv)
{
	void *found = dlsym(RTLD_DEFAULT, "kilroy_record");

	memcpy(&record, &found, sizeof(record));
#ifdef GUEST_LINKED
	(void)kilroy_version(); /* so that it is asked for */
#endif
	for (char **arg = argv + 1; *arg;) {
		size_t i = 0;

		while (i < sizeof(steps) / sizeof(steps[0]) && strcmp(steps[i].name, *arg) != 0)
			i++;
		if (i == sizeof(steps) / sizeof(steps[0]) || arg + steps[i].args >= argv + argc) {
			fprintf(stderr, "%s: no such step\n", *arg);
			return 97;
		}
		steps[i].run(arg + 1);
		arg += 1 + steps[i].args;
	}
	return 0;
}
