/* SPDX-License-Identifier: MIT */
/*
 * What an architecture has to say about time and place:
 *
 *   uint64_t kly_counter_ordered(void)  the clock counter, read neither before nor after what
 *                                       surrounds it in program order: its value obeys causality
 *                                       between threads
 *   uint64_t kly_counter_relaxed(void)  the same, but the processor may read it early
 *   void kly_counter_fence(void)        makes a later kly_counter_relaxed() an ordered one with
 *                                       regard to all that is before the fence
 *   bool kly_counter_usable(void)       it counts at one rate, on all processors alike
 *   uint64_t kly_counter_frequency(void)  nominal ticks a second, 0 = the processor doesn't say
 *   void *kly_thread_pointer(void)      what the C library's thread offsets count from
 */
#ifndef KLY_ARCH_COUNTER_H
#define KLY_ARCH_COUNTER_H

#if defined(__x86_64__)
#include "arch/x86_64/counter.h"
#else
#include "arch/generic/counter.h"
#endif

#endif
