/* SPDX-License-Identifier: MIT */
/*
 * The registry: which number an event name has. One shared memory object for a family of
 * processes (a program, the children that it forks, and whoever traces them); it only grows.
 *
 *      0   struct kly_wire_registry
 *   4096   entries: uint64_t[KLY_TYPES_MAX], index = type; 0 = none, else
 *          hash of the name << 32 | offset of its descriptor from the start of the object
 *  36864   descriptors: struct kly_wire_descriptor, 8-byte aligned, one after another
 *
 * To open a name: look for it in the entries; else write a descriptor into room taken from
 * `used` by compare and swap, and put it into the first empty entry by compare and swap; who finds
 * that entry taken compares the name and goes on. So there is no lock that could die with its
 * holder, the entries have no gaps, and a name has one number. A crash costs a few unused bytes.
 */
#ifndef KLY_WIRE_REGISTRY_H
#define KLY_WIRE_REGISTRY_H

#include "wire/types.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define KLY_REGISTRY_MAGIC UINT64_C(0x3154534947594c4b) /* "KLYGIST1" */
#define KLY_REGISTRY_VERSION 1u
#define KLY_REGISTRY_ENTRIES_OFFSET 4096u
#define KLY_REGISTRY_POOL_OFFSET 36864u
#define KLY_REGISTRY_BYTES (4u << 20)

struct kly_wire_registry {
	uint64_t magic;
	uint32_t version;
	uint32_t total_bytes;
	uint64_t id;
	uint32_t used;     /* end of the descriptors; free-running up to reserved */
	uint32_t reserved; /* memory below is there */
};
static_assert(sizeof(struct kly_wire_registry) == 32, "part of the format");

struct kly_wire_descriptor {
	uint16_t name_bytes;   /* 1 .. KLY_TYPE_NAME_MAX */
	uint16_t fields_bytes; /* 0 .. KLY_TYPE_FIELDS_MAX */
	uint32_t flags;        /* none yet */
	/* name, NUL, fields, NUL */
};
static_assert(sizeof(struct kly_wire_descriptor) == 8, "part of the format");

#endif
