/* SPDX-License-Identifier: MIT */
/*
 * The control block: how a traced process is found and steered. A file in the user's runtime
 * directory, p.PIDNS.PID.START: pid namespace inode, pid in it, start time; unique per life of a
 * process. Whoever comes first, the process or a controller, makes it complete under a temporary
 * name and links it.
 *
 *      0   struct kly_wire_block
 *   4096   struct kly_wire_image[KLY_IMAGES]: the last programs that the process has run
 *  20480   enable words: uint64_t[KLY_TYPES_MAX]
 *
 * An enable word: bit 0 = the type is known here; bit s (1 .. 62) = the stream in table place s
 * wants it; bit 63 = ask once. Exactly 1 means "nobody wants it"; 0 means "ask" (never seen, or
 * wiped by a fork). Each controller sets and clears its own bit atomically.
 */
#ifndef KLY_WIRE_BLOCK_H
#define KLY_WIRE_BLOCK_H

#include "wire/types.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define KLY_BLOCK_MAGIC UINT64_C(0x314b4c42594c4b) /* "KLYBLK1" */
#define KLY_BLOCK_VERSION 1u
#define KLY_STREAMS_MAX 62u /* table places 1 .. 62; 0 is not used */

#define KLY_WORD_KNOWN UINT64_C(1)
#define KLY_WORD_ASK (UINT64_C(1) << 63)
#define KLY_WORD_STREAMS (~(KLY_WORD_KNOWN | KLY_WORD_ASK))

/* A place in the stream table. The creator writes id, then generation (odd = in use), then the
 * enable bits; it takes the bits back, then makes generation even. */
struct kly_wire_place {
	uint64_t stream_id; /* the file s.ID beside the block */
	uint32_t generation;
	uint32_t refused; /* generation that the process could not map at its start; 0 = none */
};

struct kly_wire_block {
	uint64_t magic;
	uint32_t version;
	uint32_t incarnation; /* raised by the constructor of each new image; 0 = no image yet */
	uint32_t pid;         /* in its own namespace */
	uint32_t unused0;
	uint64_t pid_namespace;
	uint64_t start_time;
	uint64_t registry_id; /* the file r.ID beside the block */
	char boot_id[40];
	uint64_t unused1;
	struct kly_wire_place places[KLY_STREAMS_MAX + 1];
};
static_assert(offsetof(struct kly_wire_block, places) == 96, "part of the format");
static_assert(sizeof(struct kly_wire_block) == 96 + 63 * 16, "part of the format");

/* What an image of the process is: written by its constructor, at incarnation % KLY_IMAGES. The
 * writer sets incarnation to 0, writes the rest, then sets it. */
#define KLY_IMAGES 8u
struct kly_wire_image {
	uint32_t incarnation;
	uint16_t exe_bytes;  /* with the NUL; 0 = not known */
	uint16_t args_bytes; /* as in /proc/PID/cmdline, cut */
	char text[2040];     /* the path, then the arguments */
};
static_assert(sizeof(struct kly_wire_image) == 2048, "part of the format");

#define KLY_BLOCK_IMAGES_OFFSET 4096u
#define KLY_BLOCK_WORDS_OFFSET (KLY_BLOCK_IMAGES_OFFSET + KLY_IMAGES * 2048u)
#define KLY_BLOCK_BYTES (KLY_BLOCK_WORDS_OFFSET + KLY_TYPES_MAX * 8)

#endif
