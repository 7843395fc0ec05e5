/* SPDX-License-Identifier: MIT */
/*
 * Names of event types and their numbers; the memory is described in wire/registry.h. All calls
 * are safe against each other in any number of threads and processes, and in signal handlers.
 */
#ifndef KLY_CORE_REGISTRY_H
#define KLY_CORE_REGISTRY_H

#include "wire/registry.h"

#include <stdbool.h>

struct kly_registry {
	uint8_t *base; /* NULL = none */
};

/* fd: an empty file that stays the caller's, or -1: memory that is shared with forked children
 * only. Predefined types are entered. 0 or -errno. */
int kly_registry_create(int fd, uint64_t id, struct kly_registry *ret);
/* 0; -EBADMSG: that is no registry; -errno. */
int kly_registry_map(int fd, struct kly_registry *ret);
void kly_registry_unmap(struct kly_registry *registry);

uint64_t kly_registry_id(const struct kly_registry *registry);

/*
 * The number of a name; a new name gets one, with these fields. fields: text as in wire/types.h,
 * NULL = none. 0; -EINVAL: empty; -ENAMETOOLONG: more than KLY_TYPE_NAME_MAX bytes, or fields too
 * long; -ENOSPC: all numbers are taken; -ENOMEM.
 */
int kly_registry_open(const struct kly_registry *registry, const char *name, const char *fields,
	uint32_t *ret_type);

/* The number that a name has already; predefined names too. false: it has none. */
bool kly_registry_find(const struct kly_registry *registry, const char *name, uint32_t *ret_type);

/* Name and fields of a type; they end with a NUL and live as long as the mapping. Both may be
 * NULL. false: there is no such type. */
bool kly_registry_get(const struct kly_registry *registry, uint32_t type, const char **ret_name,
	const char **ret_fields);

/* The end of the types in use: all are below. */
uint32_t kly_registry_end(const struct kly_registry *registry);

#endif
