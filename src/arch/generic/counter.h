/* SPDX-License-Identifier: MIT */
/* See arch/counter.h. No counter that could be relied on: clock_gettime serves. */
#ifndef KLY_ARCH_GENERIC_COUNTER_H
#define KLY_ARCH_GENERIC_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t kly_counter_relaxed(void)
{
	return 0;
}

static inline uint64_t kly_counter_ordered(void)
{
	return 0;
}

static inline void kly_counter_fence(void)
{
}

static inline bool kly_counter_usable(void)
{
	return false;
}

static inline uint64_t kly_counter_frequency(void)
{
	return 0;
}

static inline void *kly_thread_pointer(void)
{
	return __builtin_thread_pointer();
}

#endif
