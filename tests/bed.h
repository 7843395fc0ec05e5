/* SPDX-License-Identifier: MIT */
/*
 * A stream of the own process, with what steers and reads it, on core's own interfaces: tests look
 * inside and choose options that the native API does not have.
 */
#ifndef KLY_TESTS_BED_H
#define KLY_TESTS_BED_H

#include "core/emit.h"
#include "core/reader.h"
#include "kilroy/trace.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The sanitizer for threads delivers signals at calls only, so hardly ever inside a trace point, but
 * there even where they are blocked. */
#if defined(__SANITIZE_THREAD__)
#define BED_TSAN true
#elif defined(__has_feature)
#define BED_TSAN __has_feature(thread_sanitizer)
#else
#define BED_TSAN false
#endif

struct bed {
	int fd; /* of the stream's memory, for other mappings */
	struct kly_stream *stream;
	struct kly_control control;
	struct kly_reader reader;
};

/* 0 or -errno; then there is nothing to close. The stream is suspended. */
static inline int bed_open(struct bed *b, const struct kly_stream_options *options)
{
	const struct kly_target target = kly_process_target();

	*b = (struct bed){.fd = memfd_create("bed", MFD_CLOEXEC)};
	if (b->fd < 0 || !kly_process_ready())
		return -EMFILE;
	b->stream = kly_process_new_stream();
	int r = kly_stream_create(b->fd, options, b->stream);
	if (r < 0) {
		(void)munmap(b->stream, sizeof(*b->stream));
		(void)close(b->fd);
		return r;
	}
	b->stream->strong |= kly_process.strong;
	r = kly_control_init(&b->control, &target, b->stream);
	if (r == 0)
		kly_process_put_place(b->control.place, b->stream);
	if (r == 0)
		r = kly_reader_init(&b->reader, b->stream, &b->control);
	return r;
}

static inline void bed_close(struct bed *b)
{
	kly_control_fini(&b->control);
	kly_reader_fini(&b->reader);
	kly_process_drop_place(b->control.place);
	(void)close(b->fd);
}

static inline void bed_start(struct bed *b)
{
	(void)kly_control_start(&b->control, NULL);
}

static inline void bed_stop(struct bed *b)
{
	(void)kly_control_stop(&b->control, NULL);
}

/* The next user event; false: none now. */
static inline bool bed_next(struct bed *b, struct kly_event *event)
{
	while (kly_reader_next(&b->reader, event) == 1)
		if (event->type >= KLY_TYPE_UNNAMED)
			return true;
	return false;
}

static inline uint64_t bed_lost(const struct bed *b, enum kly_loss cause)
{
	uint64_t lost[KLY_LOSS_CAUSES];

	kly_reader_losses(&b->reader, lost);
	return lost[cause];
}

static inline uint64_t bed_lost_all(const struct bed *b)
{
	uint64_t lost[KLY_LOSS_CAUSES], sum = 0;

	kly_reader_losses(&b->reader, lost);
	for (int i = 0; i < KLY_LOSS_CAUSES; i++)
		sum += lost[i];
	return sum;
}

/* Chunks whose word is not "free"; those that a live or dead lane owns. */
static inline uint32_t bed_chunks_taken(const struct bed *b, bool owned)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->stream->chunk_count; i++) {
		uint64_t word = kly_load_acquire(&b->stream->words[i]);

		n += owned ? word >> 63 : word != 0;
	}
	return n;
}

static inline uint32_t bed_slots_taken(const struct bed *b)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->stream->slot_count; i++)
		n += kly_load_acquire(&b->stream->slots[i].owner) != 0;
	return n;
}

/* Random numbers: xorshift64*. */
static inline uint64_t bed_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

/* The seed of this run, printed once; KLY_SEED repeats one. */
static inline uint64_t bed_seed(void)
{
	static uint64_t seed;
	const char *given = getenv("KLY_SEED");

	if (!seed) {
		seed = given ? strtoull(given, NULL, 0) : kly_counter_relaxed() | 1;
		printf("# KLY_SEED=%llu\n", (unsigned long long)seed);
	}
	return seed;
}

/* How often something is done: much more often in the long suite. */
static inline uint64_t bed_times(uint64_t normal, uint64_t in_long)
{
	return getenv("KLY_LONG") ? in_long : normal;
}

static inline void bed_sleep_us(unsigned us)
{
	const struct timespec t = {us / 1000000, us % 1000000 * 1000};

	(void)nanosleep(&t, NULL);
}

/* A timer that sends `signal` to the calling thread. */
static inline timer_t bed_timer_create(int signal, unsigned us)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signal};
	const struct itimerspec period = {{0, us * 1000L}, {0, us * 1000L}};
	timer_t timer;

	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) < 0)
		abort();
	if (timer_settime(timer, 0, &period, NULL) < 0)
		abort();
	return timer;
}

#endif
