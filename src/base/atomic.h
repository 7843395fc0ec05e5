/* SPDX-License-Identifier: MIT */
/*
 * Atomics by memory order. Each name carries its order, so that a search for `_relaxed` lists all
 * places that owe an argument. The operands are plain integers: shared structs are described by
 * fixed-width types in src/wire, and a plain type keeps their layout free of the C library's
 * idea of _Atomic.
 */
#ifndef KLY_BASE_ATOMIC_H
#define KLY_BASE_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#define kly_load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define kly_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define kly_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define kly_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define kly_store_seq_cst(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define kly_exchange_acq_rel(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)
#define kly_add_relaxed(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define kly_or_acq_rel(p, v) __atomic_fetch_or((p), (v), __ATOMIC_ACQ_REL)
#define kly_and_acq_rel(p, v) __atomic_fetch_and((p), (v), __ATOMIC_ACQ_REL)

/* Compare and swap; on failure *expected is what was found. Acquire and release on success. */
#define kly_cas_acq_rel(p, expected, desired)                                                      \
	__atomic_compare_exchange_n(                                                               \
		(p), (expected), (desired), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)

/* Raises *p to at least v. */
static inline void kly_max_acq_rel(uint64_t *p, uint64_t v)
{
	uint64_t seen = kly_load_relaxed(p);

	while (seen < v && !kly_cas_acq_rel(p, &seen, v))
		;
}

/* Orders memory accesses of this thread against a signal handler or a membarrier(2) caller:
 * the compiler may not move them, the processor may. */
#define kly_compiler_fence() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#define kly_full_fence() __atomic_thread_fence(__ATOMIC_SEQ_CST)

#endif
