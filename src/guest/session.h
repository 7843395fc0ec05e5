/* SPDX-License-Identifier: MIT */
/*
 * What a controller prepares in the runtime directory before a program runs: the program's control
 * block, without an image yet, a registry, and a stream in the block's table. The program's library
 * finds the block when it is loaded; also when a shell execs it later, since a process keeps its
 * pid and start time.
 */
#ifndef KLY_GUEST_SESSION_H
#define KLY_GUEST_SESSION_H

#include "core/control.h"

struct kly_session {
	int directory;
	pid_t pid;
	struct kly_stream stream;
	struct kly_control control;
	char block_name[80], stream_name[80], registry_name[80];
};

/* For a process that exists and has not been given to anybody yet. options->id and registry_id are
 * chosen here. 0 or -errno; -ENOSPC: no room in the runtime directory, -ENOENT: there is none. */
int kly_session_open(struct kly_session *s, pid_t pid, const struct kly_stream_options *options);

/* Shuts the stream down, gives its memory back though the program has it mapped, and unlinks the
 * names. */
void kly_session_close(struct kly_session *s);

/* How many images of the process have found the block. */
uint32_t kly_session_incarnation(const struct kly_session *s);

#endif
