/* SPDX-License-Identifier: MIT */
/* See arch/counter.h. The counter is the TSC. */
#ifndef KLY_ARCH_X86_64_COUNTER_H
#define KLY_ARCH_X86_64_COUNTER_H

#include <cpuid.h>
#include <stdbool.h>
#include <stdint.h>

static inline uint64_t kly_counter_relaxed(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high)::"memory");
	return (uint64_t)high << 32 | low;
}

/* lfence waits until all earlier loads are done, so the time stamp can't precede the load that
 * showed another thread's event. A locked instruction before, or a fence after, does not do it. */
static inline void kly_counter_fence(void)
{
	__asm__ volatile("lfence" ::: "memory");
}

static inline uint64_t kly_counter_ordered(void)
{
	kly_counter_fence();
	return kly_counter_relaxed();
}

static inline bool kly_counter_usable(void)
{
	uint32_t a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1u << 8; /* invariant TSC */
}

static inline uint64_t kly_counter_frequency(void)
{
	uint32_t denominator, numerator, crystal, d;

	if (!__get_cpuid_count(0x15, 0, &denominator, &numerator, &crystal, &d))
		return 0;
	return denominator && crystal ? (uint64_t)crystal * numerator / denominator : 0;
}

static inline void *kly_thread_pointer(void)
{
	void *p;

	__asm__("mov %%fs:0, %0" : "=r"(p));
	return p;
}

#endif
