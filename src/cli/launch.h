/* SPDX-License-Identifier: MIT */
/*
 * A program that is about to run: its process exists and waits, so that whoever wants to trace it
 * can prepare for its pid.
 */
#ifndef KLY_CLI_LAUNCH_H
#define KLY_CLI_LAUNCH_H

#include <limits.h>
#include <signal.h>
#include <sys/types.h>

struct kly_launch {
	pid_t pid;
	char path[PATH_MAX];   /* of the program */
	char args[4096];       /* as in /proc/PID/cmdline, cut */
	size_t args_bytes;
	int go_fd;     /* written to: the process execs */
	int result_fd; /* read: the errno of exec; nothing if it succeeded */
};

/* Makes the process. argv: ends with NULL, and stays the caller's until go. mask: its signal mask.
 * The library of kilroy is preloaded unless the program is linked with it. 0; -ENOENT: there is no
 * such program, -ENOEXEC ... -errno. */
int kly_launch_prepare(struct kly_launch *l, char *const *argv, const sigset_t *mask);

/* Lets it run. 0 or the -errno of exec; the process has been waited for then. */
int kly_launch_go(struct kly_launch *l);

/* Ends a process that was prepared, without having run the program. */
void kly_launch_cancel(struct kly_launch *l);

#endif
