/* SPDX-License-Identifier: MIT */
/* Thread states: who has one, how it comes and goes, and how abandoned calls are found. */
#include "core/thread.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* pthread_setspecific() does not allocate for the first keys. */
#define KEYS_WITHOUT_MALLOC 32
#define ORPHANS_A_LOOK 4 /* states that a new thread checks for a dead owner */
#define SPINS 200        /* looks at a thread before the processor is given away */

static struct kly_thread nobody;
__thread struct kly_thread *kly_self __attribute__((tls_model("initial-exec"))) = &nobody;

static struct region {
	uint32_t owners[KLY_THREADS_MAX]; /* tid; 0 = free */
	uint32_t end;                     /* states above were never taken */
	uint32_t pid;                     /* whose threads they are */
	_Alignas(4096) struct kly_thread threads[];
} *region;

static pthread_key_t key;
static bool key_is_usable;
static const uint32_t no_cpu = KLY_REC_NO_CPU;

/* Where glibc says the kernel keeps this thread's rseq area; weak: older libraries don't. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));
#define RSEQ_CPU_ID 4 /* offset of cpu_id in struct rseq */

static const uint32_t *find_cpu(void)
{
	if (!&__rseq_size || !&__rseq_offset || !__rseq_size)
		return &no_cpu;
	return (const void *)((const uint8_t *)kly_thread_pointer() + __rseq_offset + RSEQ_CPU_ID);
}

/* heir: 0, or who gives up for a dead thread: its slots may be others' by now. */
static void give_up_writers(struct kly_thread *t, uint64_t heir)
{
	for (uint32_t place = 1; place <= KLY_STREAMS_MAX; place++) {
		struct kly_stream *s = kly_load_acquire(&kly_process.streams[place]);

		if (s)
			KLY_POINT(KLY_POINT_LEAVING);
		if (s && (!heir || kly_writer_inherit(&t->writers[place], s, heir)))
			kly_writer_detach(&t->writers[place], s);
	}
}

static uint32_t index_of(const struct kly_thread *t)
{
	return (uint32_t)(t - region->threads);
}

static void on_thread_end(void *self)
{
	struct kly_thread *t = self;
	sigset_t before;

	if (!kly_load_acquire(&kly_process.ours.alive) || t != kly_self)
		return;
	kly_process_visit(&before);
	give_up_writers(t, 0);
	kly_self = &nobody;
	kly_store_release(&region->owners[index_of(t)], 0);
	kly_process_leave(&before);
}

int kly_threads_begin(void)
{
	size_t bytes = sizeof(struct region) + KLY_THREADS_MAX * sizeof(struct kly_thread);
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return -errno;
	region = p;
	region->pid = (uint32_t)getpid();
	key_is_usable = pthread_key_create(&key, on_thread_end) == 0 && key < KEYS_WITHOUT_MALLOC;
	return 0;
}

static bool thread_is_dead(uint32_t tid)
{
	return syscall(SYS_tgkill, (pid_t)kly_process.pid, (pid_t)tid, 0) < 0 && errno == ESRCH;
}

/* A state that is free, or whose thread ended without a word, or had our own number. */
static bool take_state(uint32_t index, uint32_t tid)
{
	uint32_t *owner = &region->owners[index];
	uint32_t seen = kly_load_acquire(owner);

	if (seen && seen != tid && !thread_is_dead(seen))
		return false;
	if (!kly_cas_acq_rel(owner, &seen, tid))
		return false;
	if (seen)
		give_up_writers(&region->threads[index], (uint64_t)kly_process.pid << 32 | tid);
	kly_store_relaxed(&region->threads[index].top, 0);
	return true;
}

static int find_state(uint32_t tid, uint32_t *ret)
{
	static uint32_t turn; /* relaxed: where the next look begins */
	uint32_t end = kly_load_acquire(&region->end);
	uint32_t first = kly_add_relaxed(&turn, ORPHANS_A_LOOK);

	for (uint32_t i = 0; i < end; i++) {
		uint32_t owner = kly_load_relaxed(&region->owners[i]);
		bool look = i - first % end < ORPHANS_A_LOOK;

		if ((!owner || owner == tid || look) && take_state(i, tid)) {
			*ret = i;
			return 0;
		}
	}
	while (end < KLY_THREADS_MAX) {
		if (kly_cas_acq_rel(&region->end, &end, end + 1) && take_state(end, tid)) {
			*ret = end;
			return 0;
		}
		end = kly_load_acquire(&region->end);
	}
	for (uint32_t i = 0; i < end; i++) {
		if (take_state(i, tid)) {
			*ret = i;
			return 0;
		}
	}
	return -EAGAIN;
}

int kly_thread_register(void)
{
	uint32_t tid = (uint32_t)syscall(SYS_gettid), index;

	if (!region)
		return -EAGAIN;
	int r = find_state(tid, &index);
	if (r < 0)
		return r;

	struct kly_thread *t = &region->threads[index];

	t->cpu = find_cpu();
	t->identity = (struct kly_wire_thread){
		.pid = kly_process.pid,
		.tid = tid,
		.pthread = (uint64_t)(uintptr_t)pthread_self(),
	};
	(void)prctl(PR_GET_NAME, t->identity.name);
	kly_self = t;
	if (key_is_usable)
		(void)pthread_setspecific(key, t);
	return 0;
}

void kly_threads_after_fork(void)
{
	struct kly_thread *t = kly_self;
	uint32_t pid = (uint32_t)getpid();

	if (!region || region->pid == pid)
		return;
	region->pid = pid;
	memset(region->owners, 0, kly_load_relaxed(&region->end) * sizeof(region->owners[0]));
	if (!kly_is_registered(t))
		return;
	uint32_t tid = (uint32_t)syscall(SYS_gettid);

	region->owners[index_of(t)] = tid;
	t->identity.pid = pid;
	t->identity.tid = tid;
}

static uint64_t monotonic_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static bool is_in_flight(uint32_t index)
{
	return kly_load_relaxed(&region->owners[index]) &&
	       kly_load_relaxed(&region->threads[index].top);
}

bool kly_threads_settle(uint64_t patience_ns)
{
	uint32_t end = region ? kly_load_acquire(&region->end) : 0;
	uint64_t deadline = 0;

	for (uint32_t i = 0; i < end; i++) {
		if (patience_ns && &region->threads[i] == kly_self)
			continue;
		for (unsigned looks = 0; is_in_flight(i); looks++) {
			if (!patience_ns)
				return false;
			if (looks < SPINS)
				continue;
			if (!deadline)
				deadline = monotonic_ns() + patience_ns;
			if (monotonic_ns() >= deadline)
				return false;
			(void)sched_yield();
		}
	}
	return true;
}

static bool attach(struct kly_thread *t, uint32_t place)
{
	struct kly_writer *w = &t->writers[place];
	struct kly_stream *s = kly_process_map_place(place);

	if (!s)
		return false;
	if (w->serial == s->serial)
		return true;
	if (w->failed_serial == s->serial && w->refusals++ % KLY_REFUSALS_A_TRY) {
		kly_stream_lost(s, w->failed_cause, 1);
		return false;
	}
	w->relaxed = s->stamp == KLY_STAMP_RELAXED ? UINT64_C(1) << place : 0;
	int r = kly_writer_attach(w, s, &t->identity);
	if (r == 0)
		return true;
	w->failed_serial = s->serial;
	w->failed_cause = r == -ENOMEM ? KLY_LOSS_MEMORY : KLY_LOSS_SLOTS;
	kly_stream_lost(s, w->failed_cause, 1);
	return false;
}

bool kly_thread_attach(struct kly_thread *t, uint32_t place)
{
	int saved = errno;
	sigset_t before;

	kly_signals_block(&before);
	bool done = attach(t, place);
	kly_signals_restore(&before);
	errno = saved;
	return done;
}

/*
 * Which calls will never return. Our own frame is live, and so is everything above it on the same
 * stack; what is at or below it has been left by a jump. Two stacks are in play if there is an
 * alternate signal stack: while we are on it, the calls on the main stack are interrupted ones; when
 * we are not, those on it are gone.
 */

struct stacks {
	uintptr_t low, high; /* the alternate stack; low == high: none */
};

static bool on_alternate(const struct stacks *s, uintptr_t p)
{
	return p >= s->low && p < s->high;
}

static bool is_gone(const struct stacks *stacks, uint64_t top, uintptr_t frame)
{
	uintptr_t theirs = top & ~KLY_TOP_LEVEL;

	if (on_alternate(stacks, theirs) == on_alternate(stacks, frame))
		return frame >= theirs;
	return on_alternate(stacks, theirs);
}

static struct stacks find_stacks(void)
{
	stack_t ss;

	if (sigaltstack(NULL, &ss) < 0 || ss.ss_flags & SS_DISABLE)
		return (struct stacks){0, 0};
	return (struct stacks){(uintptr_t)ss.ss_sp, (uintptr_t)ss.ss_sp + ss.ss_size};
}

static void heal_level(struct kly_thread *t, uint32_t level)
{
	for (uint32_t place = 1; place <= KLY_STREAMS_MAX; place++) {
		const struct kly_stream *s = kly_load_acquire(&kly_process.streams[place]);

		if (s && t->writers[place].serial == s->serial)
			kly_lane_heal(&t->writers[place], s, level);
	}
}

uint64_t kly_thread_heal(struct kly_thread *t, uintptr_t frame)
{
	int saved = errno;
	sigset_t before;

	kly_signals_block(&before);
	const struct stacks stacks = find_stacks();
	uint64_t top = kly_load_relaxed(&t->top);

	while (top && is_gone(&stacks, top, frame)) {
		uint32_t level = (uint32_t)(top & KLY_TOP_LEVEL) - 1;

		if (KLY_SWITCH(KLY_NO_HEAL))
			break;
		heal_level(t, level);
		top = level ? t->outer[level] : 0;
		t->top = top;
	}
	kly_signals_restore(&before);
	errno = saved;
	return top;
}
