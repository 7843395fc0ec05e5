/* SPDX-License-Identifier: MIT */
/* Small things that every folder needs: branch hints, cleanup, sizes, assertions. */
#ifndef KLY_BASE_UTIL_H
#define KLY_BASE_UTIL_H

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define KLY_API __attribute__((visibility("default")))
#define KLY_LIKELY(x) __builtin_expect(!!(x), 1)
#define KLY_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define KLY_COLD __attribute__((noinline, cold))
#define KLY_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define KLY_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define KLY_ALIGN(n, to) (((n) + (to)-1) / (to) * (to))

/* Our own mistakes, never input. */
#define kly_assert(condition) assert(condition)

/* kly_cleanup(f) T v: f(&v) runs when v goes out of scope. KLY_TAKE(v) moves the value out. */
#define kly_cleanup(f) __attribute__((cleanup(f)))
#define KLY_TAKE(v)                                                                                \
	__extension__({                                                                            \
		__typeof__(v) taken_ = (v);                                                        \
		(v) = 0;                                                                           \
		taken_;                                                                            \
	})

static inline void kly_freep(void *p)
{
	free(*(void **)p);
}

static inline void kly_closep(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

static inline uint64_t kly_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t kly_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

#endif
