/* SPDX-License-Identifier: MIT */
/*
 * The two rare halves of what writers do with cheap stores: the barrier that a reader makes all
 * writers pass, and sleeping until a writer publishes.
 *
 * membarrier(GLOBAL_EXPEDITED) reaches the processes that registered. Where it is refused (seccomp,
 * gVisor), a process marks its lanes with a locked instruction instead ("strong"), and a reader
 * makes streams whose writers are all strong (N-06).
 *
 * GLOBAL_EXPEDITED has a hole, at least in Linux 6.18: an idle processor that still holds a
 * process's memory from before it registered does not learn of the registration when the process
 * comes back to it, and is left out until another program has run there. So a stream that only this
 * process writes is fenced by PRIVATE_EXPEDITED, which asks what runs on the processor now; for
 * others, the reader waits SETTLE_NS longer: by then the stores that a processor had ready are out.
 */
#ifndef KLY_CORE_FENCE_H
#define KLY_CORE_FENCE_H

#include "core/stream.h"

#include <time.h>

/* Registers this process; lost by exec, kept by fork. False: refused. */
bool kly_fence_register(void);
/* Whether this process can make others pass a barrier. */
bool kly_fence_available(void);

/* After it, every writer of the stream has published its mark or will take its time later. */
void kly_fence_writers(const struct kly_stream *s);
/* The same for the threads of this process; false: it can't be had. */
bool kly_fence_threads(void);

/* Says that a reader is going to sleep. Then fence, look once more, and only then wait. */
void kly_wait_announce(const struct kly_stream *s);
/* Sleeps until an event is published or the state changes. until: CLOCK_REALTIME, NULL = without
 * limit. 0 = woken (or not: look), -ETIMEDOUT, -EINTR. Restarted by the kernel after a handler
 * with SA_RESTART if there is no limit. */
int kly_wait(const struct kly_stream *s, const struct timespec *until);
/* Wakes sleeping readers. Async-signal-safe; keeps errno. NULL: taken away, nobody sleeps. */
void kly_wake(const struct kly_stream *s);

#endif
