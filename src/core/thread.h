/* SPDX-License-Identifier: MIT */
/*
 * The traced thread: how deep it is in trace points, and its writers, one a stream.
 *
 * All states lie in one region that the process maps at load, so a new thread costs no mapping, and
 * thread-local storage holds one pointer (N-09). The region is ordinary memory: a forked child
 * finds the flight it was forked in.
 *
 * Nesting. top tells of the innermost trace point that this thread is in: its stack frame, and in the
 * low bits its level + 1; 0 = in none. It is one word, so that a handler sees both or neither.
 * outer[l] is the top that level l found when it began. By its frame a call that will never return
 * (a handler jumped out of it) is told from one that is only interrupted (N-02).
 */
#ifndef KLY_CORE_THREAD_H
#define KLY_CORE_THREAD_H

#include "core/process.h"
#include "core/writer.h"

#define KLY_THREADS_MAX 4096u

struct kly_thread {
	uint64_t top; /* only this thread and its handlers write it */
	const uint32_t *cpu; /* where the kernel keeps the CPU number */
	uint64_t outer[KLY_LANES];
	struct kly_wire_thread identity;
	/* by place; the last, as the first, is what a word that means "ask" leads to */
	struct kly_writer writers[KLY_STREAMS_MAX + 2];
};

/* Never NULL: a thread without a state has one that is nobody's, attached to no stream. */
extern __thread struct kly_thread *kly_self __attribute__((tls_model("initial-exec")));

static inline bool kly_is_registered(const struct kly_thread *t)
{
	return t->identity.tid != 0;
}

/* Maps the region and makes the key by which threads say that they end. 0 or -errno. */
int kly_threads_begin(void);

/* Gives the calling thread a state. Signals are blocked. 0, -EAGAIN: all are taken. */
int kly_thread_register(void);

/* In a forked child: keeps the state, if there is one, of the calling thread; forgets all others.
 * Once, by the thread that forked, if it is known: later the child may have more threads. */
void kly_threads_after_fork(void);

/* Whether each thread but this one has been seen outside of trace points, waiting so long for those
 * that are not; for who takes a mapping away. Without patience this thread counts too: it may have
 * interrupted itself. */
bool kly_threads_settle(uint64_t patience_ns);

/* Attaches to the stream of a place if needed. False: can't; the loss is counted. */
bool kly_thread_attach(struct kly_thread *t, uint32_t place);

/* Wins back the lanes of calls that will never return, seen from a call with this frame. The top
 * of those that will. Keeps errno. */
uint64_t kly_thread_heal(struct kly_thread *t, uintptr_t frame);

/* The level of the call that a top tells of, plus 1; and its frame. */
#define KLY_TOP_LEVEL UINT64_C(15)

#endif
