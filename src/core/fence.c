/* SPDX-License-Identifier: MIT */
#include "core/fence.h"
#include "core/probe.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SETTLE_NS 20000 /* 3,000 were enough behind 50 stores that missed the cache */

static long membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

bool kly_fence_register(void)
{
	(void)membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
	return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
}

bool kly_fence_available(void)
{
	return membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The hole in GLOBAL_EXPEDITED; see fence.h. */
static void wait_for_stores(void)
{
	uint64_t end = now_ns() + SETTLE_NS;

	while (now_ns() < end)
		;
}

void kly_fence_writers(const struct kly_stream *s)
{
	kly_full_fence();
	if (s->head->flags & KLY_STREAM_STRONG || KLY_SWITCH(KLY_NO_MEMBARRIER))
		return;
	if (s->own && kly_fence_threads())
		return;
	(void)membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
	wait_for_stores();
}

bool kly_fence_threads(void)
{
	return membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
}

void kly_wait_announce(const struct kly_stream *s)
{
	kly_store_seq_cst(&s->shared->waiters, 1);
}

int kly_wait(const struct kly_stream *s, const struct timespec *until)
{
	long r = syscall(SYS_futex, &s->shared->waiters, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 1,
		until, NULL, FUTEX_BITSET_MATCH_ANY);

	return r < 0 && errno != EAGAIN ? -errno : 0;
}

void kly_wake(const struct kly_stream *s)
{
	int saved = errno;

	if (!s)
		return;
	if (kly_exchange_acq_rel(&s->shared->waiters, 0))
		(void)syscall(SYS_futex, &s->shared->waiters, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	errno = saved;
}
