/* SPDX-License-Identifier: MIT */
/* See registry.h, and wire/registry.h for the memory and why no lock is needed. */
#include "core/registry.h"
#include "base/atomic.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define RESERVE_STEP (64u << 10)

static const struct {
	uint32_t type;
	const char *name, *fields;
} predefined[] = {
	{KLY_TYPE_START, "posix_trace_start", ""},
	{KLY_TYPE_STOP, "posix_trace_stop", "i32 automatic\n"},
	{KLY_TYPE_FILTER, "posix_trace_filter", ""},
	{KLY_TYPE_OVERFLOW, "posix_trace_overflow", ""},
	{KLY_TYPE_RESUME, "posix_trace_resume", ""},
	{KLY_TYPE_FLUSH_START, "posix_trace_flush_start", ""},
	{KLY_TYPE_FLUSH_STOP, "posix_trace_flush_stop", ""},
	{KLY_TYPE_ERROR, "posix_trace_error", "i32 error\n"},
	{KLY_TYPE_UNNAMED, "posix_trace_unnamed_userevent", ""},
};

static struct kly_wire_registry *head(const struct kly_registry *r)
{
	return (void *)r->base;
}

static uint64_t *entries(const struct kly_registry *r)
{
	return (void *)(r->base + KLY_REGISTRY_ENTRIES_OFFSET);
}

/* FNV-1a: only has to tell names apart quickly. */
static uint32_t hash_name(const char *name, size_t len)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)name[i]) * 16777619u;
	return h;
}

struct found {
	const char *name, *fields;
	uint32_t name_bytes;
};

/* The descriptor behind an entry. Shared memory: lengths are copied, then checked. */
static bool look_at(const struct kly_registry *r, uint64_t entry, struct found *ret)
{
	uint32_t at = (uint32_t)entry;
	struct kly_wire_descriptor d;

	if (at < KLY_REGISTRY_POOL_OFFSET || at % 8 || at > KLY_REGISTRY_BYTES - sizeof(d))
		return false;
	memcpy(&d, r->base + at, sizeof(d));
	if (!d.name_bytes || d.name_bytes > KLY_TYPE_NAME_MAX ||
		d.fields_bytes > KLY_TYPE_FIELDS_MAX ||
		at + sizeof(d) + d.name_bytes + d.fields_bytes + 2 > KLY_REGISTRY_BYTES)
		return false;

	const char *name = (const char *)r->base + at + sizeof(d);
	if (name[d.name_bytes] || name[d.name_bytes + 1 + d.fields_bytes])
		return false;
	*ret = (struct found){name, name + d.name_bytes + 1, d.name_bytes};
	return true;
}

static bool is_named(const struct kly_registry *r, uint64_t entry, uint32_t hash, const char *name,
	size_t len)
{
	struct found f;

	return entry >> 32 == hash && look_at(r, entry, &f) && f.name_bytes == len &&
	       memcmp(f.name, name, len) == 0;
}

/* Room for a descriptor, with memory behind it. Offset from the base, or 0. */
static uint32_t take_room(const struct kly_registry *r, uint32_t bytes)
{
	struct kly_wire_registry *h = head(r);
	uint32_t used = kly_load_relaxed(&h->used);

	do {
		if (used < KLY_REGISTRY_POOL_OFFSET || used > KLY_REGISTRY_BYTES - bytes)
			return 0;
	} while (!kly_cas_acq_rel(&h->used, &used, used + bytes));

	uint32_t end = used + bytes, have = kly_load_acquire(&h->reserved);
	if (end <= have)
		return used;
	uint32_t to = (uint32_t)kly_min(KLY_ALIGN(end, RESERVE_STEP), KLY_REGISTRY_BYTES);
	uint32_t from = used & ~4095u;
	if (madvise(r->base + from, to - from, MADV_POPULATE_WRITE) < 0)
		return 0;
	while (have < to && !kly_cas_acq_rel(&h->reserved, &have, to))
		;
	return used;
}

static int write_descriptor(const struct kly_registry *r, const char *name, size_t len,
	const char *fields, uint64_t *ret_entry)
{
	size_t fields_len = strlen(fields);
	struct kly_wire_descriptor d = {
		.name_bytes = (uint16_t)len,
		.fields_bytes = (uint16_t)fields_len,
	};
	uint32_t at = take_room(
		r, (uint32_t)KLY_ALIGN(sizeof(d) + len + fields_len + 2, 8));

	if (!at)
		return -ENOMEM;
	memcpy(r->base + at, &d, sizeof(d));
	memcpy(r->base + at + sizeof(d), name, len + 1);
	memcpy(r->base + at + sizeof(d) + len + 1, fields, fields_len + 1);
	*ret_entry = (uint64_t)hash_name(name, len) << 32 | at;
	return 0;
}

/* The type with this name from `from` on. Stops at the first empty entry, which is *ret then. */
static bool find(const struct kly_registry *r, uint32_t from, uint32_t to, const char *name,
	size_t len, uint32_t *ret)
{
	uint32_t hash = hash_name(name, len);

	for (*ret = from; *ret < to; ++*ret) {
		/* Acquire: pairs with the release of the swap in kly_registry_open(). */
		uint64_t entry = kly_load_acquire(&entries(r)[*ret]);

		if (!entry)
			return false;
		if (is_named(r, entry, hash, name, len))
			return true;
	}
	return false;
}

static bool find_predefined(const char *name, uint32_t *ret_type)
{
	for (size_t i = 0; i < KLY_COUNT(predefined); i++) {
		if (strcmp(predefined[i].name, name) == 0) {
			*ret_type = predefined[i].type;
			return true;
		}
	}
	return false;
}

bool kly_registry_find(const struct kly_registry *r, const char *name, uint32_t *ret_type)
{
	size_t len = strnlen(name, KLY_TYPE_NAME_MAX + 1);
	uint32_t type;

	if (find_predefined(name, ret_type))
		return true;
	if (len > KLY_TYPE_NAME_MAX || !find(r, KLY_TYPE_USER, KLY_TYPES_MAX, name, len, &type))
		return false;
	*ret_type = type;
	return true;
}

int kly_registry_open(const struct kly_registry *r, const char *name, const char *fields,
	uint32_t *ret_type)
{
	size_t len = strnlen(name, KLY_TYPE_NAME_MAX + 1);
	uint64_t entry = 0, empty = 0;
	uint32_t type;

	if (!len)
		return -EINVAL;
	fields = fields ? fields : "";
	if (len > KLY_TYPE_NAME_MAX ||
		strnlen(fields, KLY_TYPE_FIELDS_MAX + 1) > KLY_TYPE_FIELDS_MAX)
		return -ENAMETOOLONG;
	if (find_predefined(name, ret_type))
		return 0;
	for (uint32_t from = KLY_TYPE_USER;; from = type) {
		if (find(r, from, KLY_TYPES_MAX, name, len, &type)) {
			*ret_type = type;
			return 0;
		}
		if (type == KLY_TYPES_MAX)
			return -ENOSPC;
		if (!entry) {
			int e = write_descriptor(r, name, len, fields, &entry);
			if (e < 0)
				return e;
		}
		empty = 0;
		if (kly_cas_acq_rel(&entries(r)[type], &empty, entry)) {
			*ret_type = type;
			return 0;
		}
	}
}

bool kly_registry_get(const struct kly_registry *r, uint32_t type, const char **ret_name,
	const char **ret_fields)
{
	struct found f;

	if (type >= KLY_TYPES_MAX || !r->base)
		return false;
	if (!look_at(r, kly_load_acquire(&entries(r)[type]), &f))
		return false;
	if (ret_name)
		*ret_name = f.name;
	if (ret_fields)
		*ret_fields = f.fields;
	return true;
}

uint32_t kly_registry_end(const struct kly_registry *r)
{
	uint32_t type = KLY_TYPE_USER;

	while (type < KLY_TYPES_MAX && kly_load_acquire(&entries(r)[type]))
		type++;
	return type;
}

uint64_t kly_registry_id(const struct kly_registry *r)
{
	return head(r)->id;
}

static int map_whole(int fd, uint8_t **ret)
{
	int flags = MAP_SHARED | MAP_NORESERVE | (fd < 0 ? MAP_ANONYMOUS : 0);
	void *p = mmap(NULL, KLY_REGISTRY_BYTES, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	*ret = p;
	return 0;
}

static int enter_predefined(const struct kly_registry *r)
{
	for (size_t i = 0; i < KLY_COUNT(predefined); i++) {
		const char *name = predefined[i].name;
		int e = write_descriptor(r, name, strlen(name), predefined[i].fields,
			&entries(r)[predefined[i].type]);

		if (e < 0)
			return e;
	}
	return 0;
}

int kly_registry_create(int fd, uint64_t id, struct kly_registry *ret)
{
	struct kly_registry r = {0};
	int e;

	if (fd >= 0) {
		if (ftruncate(fd, KLY_REGISTRY_BYTES) < 0)
			return -errno;
		e = posix_fallocate(fd, 0, KLY_REGISTRY_POOL_OFFSET + RESERVE_STEP);
		if (e)
			return -e;
	}
	e = map_whole(fd, &r.base);
	if (e < 0)
		return e;
	*head(&r) = (struct kly_wire_registry){
		.magic = KLY_REGISTRY_MAGIC,
		.version = KLY_REGISTRY_VERSION,
		.total_bytes = KLY_REGISTRY_BYTES,
		.id = id,
		.used = KLY_REGISTRY_POOL_OFFSET,
		.reserved = KLY_REGISTRY_POOL_OFFSET + RESERVE_STEP,
	};
	e = enter_predefined(&r);
	if (e < 0) {
		kly_registry_unmap(&r);
		return e;
	}
	*ret = r;
	return 0;
}

int kly_registry_map(int fd, struct kly_registry *ret)
{
	struct kly_registry r = {0};
	struct kly_wire_registry h;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size != KLY_REGISTRY_BYTES || pread(fd, &h, sizeof(h), 0) != sizeof(h) ||
		h.magic != KLY_REGISTRY_MAGIC || h.version != KLY_REGISTRY_VERSION)
		return -EBADMSG;
	int e = map_whole(fd, &r.base);
	if (e < 0)
		return e;
	*ret = r;
	return 0;
}

void kly_registry_unmap(struct kly_registry *registry)
{
	if (registry->base)
		(void)munmap(registry->base, KLY_REGISTRY_BYTES);
	registry->base = NULL;
}
