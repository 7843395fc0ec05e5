/* SPDX-License-Identifier: MIT */
/* What a log says besides its events, as structs of C: the writer takes them, the reader gives
 * them. The bytes are described in wire/log.h. */
#ifndef KLY_LOG_LOG_H
#define KLY_LOG_LOG_H

#include "wire/log.h"

#include <stddef.h>
#include <stdint.h>

/* From a log, texts may hold any byte but NUL: whoever prints them makes them harmless. */
struct kly_log_type {
	uint16_t id;
	const char *name;
	const char *fields; /* field text (wire/types.h), "" = opaque payload */
};

struct kly_log_process {
	uint32_t pid; /* in the recorder's pid namespace */
	uint32_t parent_pid;
	uint64_t pid_namespace;
	uint64_t start_time; /* clock ticks after boot */
	uint32_t own_pid;    /* in its own pid namespace */
	uint32_t incarnation;
	const char *exe;
	const char *args; /* as in /proc/PID/cmdline: each argument ends with a NUL */
	uint16_t args_bytes;
};

struct kly_log_loss {
	uint32_t cause; /* enum kly_loss, or a number from the future */
	uint64_t events;
	uint64_t begin, end; /* ticks: when it happened */
};

#endif
