/* SPDX-License-Identifier: MIT */
/*
 * The traced process: its enable words, its place in the world, the streams that it has mapped.
 *
 * kly_process holds what the emit path reads of it. words are the control block's (wire/block.h),
 * mapped over this array, so that a trace point finds them without a pointer. ours is a page of its
 * own, which the kernel wipes in a forked child: a child that was made without pthread_atfork
 * notices there, before it writes into its parent's streams (N-08).
 *
 * Slow paths block all signals while they work, so a thread never meets its own half-made state;
 * other threads meet it only through compare and swap. No lock is ever held.
 */
#ifndef KLY_CORE_PROCESS_H
#define KLY_CORE_PROCESS_H

#include "core/registry.h"
#include "core/stream.h"
#include "wire/block.h"

#include <signal.h>

struct kly_process {
	_Alignas(4096) uint64_t words[KLY_TYPES_MAX];
	/* A page that a forked child finds wiped. keys[p] is the serial of the stream mapped at
	 * place p, plus 1; a writer is attached if its own serial plus 1 is the same. So neither a
	 * wiped key nor a writer that was never attached fits. */
	_Alignas(4096) struct {
		uint64_t alive;
		uint64_t keys[KLY_STREAMS_MAX + 2];
		uint32_t visitors; /* threads in slow paths, see kly_process_visit() */
	} ours;
	/* what a place of the block's table is mapped as; NULL = not mapped. Set before the key,
	 * taken away after it. */
	_Alignas(4096) struct kly_stream *streams[KLY_STREAMS_MAX + 2];
	/* The places of streams with the relaxed clock. A hint, read before anything is certain;
	 * the writer's member of that name is the truth. */
	uint64_t relaxed;
	uint32_t pid;
	bool strong; /* membarrier(2) can't reach this process: its writers fence for themselves */
	struct kly_wire_block *block;
	struct kly_registry registry;
};
extern struct kly_process kly_process;

/* What the folders above core find for it. Each returns a descriptor or -errno. */
struct kly_process_host {
	int (*find_block)(void);                 /* left by a controller for this process */
	int (*open_object)(char kind, uint64_t id); /* 's' or 'r': KIND.ID beside the block */
};

/* Once, from the constructor. 0 or -errno; then trace points do nothing. */
int kly_process_begin(const struct kly_process_host *host);

/* Whether the process is begun and is no child that still has its parent's streams; makes it so. */
bool kly_process_ready(void);

/* Makes all words 1 for good: trace points return at once (KILROY_DISABLE). */
void kly_process_disable(void);

/*
 * The way of a trace point that does not know what to do: registers the thread, maps streams, makes
 * the type known. Returns the type's word; without stream bits there is nothing to record.
 * Async-signal-safe; keeps errno.
 */
uint64_t kly_process_ask(uint32_t type);

/* Opens a name and makes the type known here. As kly_registry_open(). Async-signal-safe. */
int kly_process_open_type(const char *name, const char *fields, uint32_t *ret_type);

/* The stream of a place, mapped if it isn't yet; NULL: can't be had. Signals are blocked. */
struct kly_stream *kly_process_map_place(uint32_t place);

/* For a stream that this process makes itself: memory for the struct, which belongs to the place from
 * kly_process_put_place() on; kly_process_drop_place() frees it. NULL: no memory. */
struct kly_stream *kly_process_new_stream(void);
void kly_process_put_place(uint32_t place, struct kly_stream *s);

/* Takes a mapping away from all threads, at once or, if one of them stays in flight, later. Not to be
 * called in a trace point. */
void kly_process_drop_place(uint32_t place);

/*
 * Whose words: a controller works on its own process or on another one's mapped block.
 */
struct kly_target {
	struct kly_wire_block *block;
	uint64_t *words;
	struct kly_registry registry;
};
struct kly_target kly_process_target(void);

/* Puts a stream into the table. The place (1 ..) or -EAGAIN: all are taken. */
int kly_target_add(const struct kly_target *target, uint64_t stream_id);
void kly_target_remove(const struct kly_target *target, uint32_t place);

/* Makes the place's bit in the words of all known types what the stream's state and filter say, or
 * takes it back everywhere. */
void kly_target_enable(const struct kly_target *target, uint32_t place, const struct kly_stream *s);
void kly_target_disable(const struct kly_target *target, uint32_t place);

/* Filters the types whose names match none of the stream's patterns. */
void kly_stream_apply_keep(const struct kly_stream *s, const struct kly_registry *r, uint32_t type);

static inline bool kly_stream_filters(const struct kly_stream *s, uint32_t type)
{
	/* Acquire: pairs with the release in a filter change; N-04. */
	return kly_load_acquire(&s->shared->filter[type / 64]) >> type % 64 & 1;
}

/* All signals, the C library's own included, so that nothing runs on this thread between. */
void kly_signals_block(sigset_t *ret_before);
void kly_signals_restore(const sigset_t *before);

/* The same around what uses mapped streams outside of a trace point: none is unmapped meanwhile. */
void kly_process_visit(sigset_t *ret_before);
void kly_process_leave(const sigset_t *before);

#endif
