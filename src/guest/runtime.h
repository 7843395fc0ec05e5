/* SPDX-License-Identifier: MIT */
/*
 * The runtime directory of a user: where control blocks, streams and registries have their names
 * (N-29). The first usable one of
 *
 *	$KILROY_RUNTIME_DIR (alone, if set; ignored in set-uid programs)
 *	/dev/shm/kilroy-UID
 *	/run/user/UID/kilroy
 *
 * that is a real directory of this user with mode 0700. Names:
 *
 *	p.PIDNS.PID.START  control block of a process (wire/block.h), numbers in decimal
 *	s.ID, r.ID         stream, registry; ID in 16 hexadecimal digits
 *
 * Everything here but kly_runtime_make() and kly_runtime_clean() is async-signal-safe.
 */
#ifndef KLY_GUEST_RUNTIME_H
#define KLY_GUEST_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define KLY_RUNTIME_NAME 80 /* bytes that the longest name needs */

struct kly_identity { /* of a process; unique per life of it */
	uint64_t pid_namespace;
	uint64_t start_time; /* clock ticks after boot */
	uint32_t pid;
};

/* Of a process in this pid namespace; 0 = the caller. 0 or -ESRCH. */
int kly_identity_of(pid_t pid, struct kly_identity *ret);

/* A descriptor of the directory, or -ENOENT: there is none. make: creates it. */
int kly_runtime_open(void);
int kly_runtime_make(void);

void kly_runtime_block_name(const struct kly_identity *who, char name[KLY_RUNTIME_NAME]);
void kly_runtime_object_name(char kind, uint64_t id, char name[KLY_RUNTIME_NAME]);

/* An existing file in it: regular, this user's, one link. The descriptor or -errno. */
int kly_runtime_open_file(int directory, const char *name);
/* A new file, O_RDWR, mode 0600. The descriptor or -errno. */
int kly_runtime_create_file(int directory, const char *name);

/* Unlinks what processes that are dead have left. */
void kly_runtime_clean(int directory);

#endif
