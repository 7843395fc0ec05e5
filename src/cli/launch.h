/* SPDX-License-Identifier: MIT */
/*
 * A program that is about to run: its process exists and waits, so that whoever wants to trace it
 * can prepare for its pid.
 */
#ifndef KLY_CLI_LAUNCH_H
#define KLY_CLI_LAUNCH_H

#include "elf/needed.h"

#include <limits.h>
#include <signal.h>
#include <sys/types.h>

/* What the program shall find; the recorder changes it for itself. */
struct kly_launch_signals {
	sigset_t mask;
	struct sigaction pipe, file_size, child;
};

struct kly_launch {
	pid_t pid;
	enum kly_elf_kind kind;
	char path[PATH_MAX];   /* of the program */
	char args[4096];       /* as in /proc/PID/cmdline, cut */
	size_t args_bytes;
	int go_fd;     /* written to: the process execs */
	int result_fd; /* read: the errno of exec; nothing if it succeeded */
};

void kly_launch_save_signals(struct kly_launch_signals *ret);

/* Makes the process. argv: ends with NULL, and stays the caller's until go. The library of kilroy is
 * preloaded unless the program is linked with it. 0; -ENOENT: there is no such program, -EACCES: it
 * may not be run, -ELIBACC: the library can't be preloaded, -errno. */
int kly_launch_prepare(
	struct kly_launch *l, char *const *argv, const struct kly_launch_signals *signals);

/* Lets it run. 0 or the -errno of exec; the process has been waited for then. */
int kly_launch_go(struct kly_launch *l);

/* Ends a process that was prepared, without having run the program. */
void kly_launch_cancel(struct kly_launch *l);

#endif
