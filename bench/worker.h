/* SPDX-License-Identifier: MIT */
/*
 * A worker of bench/compare: a process that measures one tracer, when it is told to.
 *
 * It reads lines `KIND THREADS EVENTS` from standard input, runs the kind's loop in so many threads,
 * thread i on processor i, and answers with the mean processor time of an event in nanoseconds.
 * compare tells several workers in turn, so that what disturbs the machine disturbs all of them.
 */
#ifndef KLY_BENCH_WORKER_H
#define KLY_BENCH_WORKER_H

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WORKER_THREADS_MAX 16

struct worker_kind {
	const char *name;
	void (*loop)(long events, uint8_t *payload); /* payload: 256 bytes of the thread's own */
	void (*before)(void);                        /* once before a measurement; NULL = nothing */
	void (*after)(void);
};

struct worker_thread {
	pthread_t thread;
	pthread_barrier_t *together;
	const struct worker_kind *kind;
	long events;
	int processor;
	double ns; /* of an event */
};

static inline double worker_cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline void *worker_body(void *p)
{
	struct worker_thread *me = p;
	_Alignas(64) uint8_t payload[256];
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(me->processor, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
	memset(payload, 1, sizeof(payload));
	me->kind->loop(me->events / 10, payload); /* a lap: set-up and page faults are not timed */
	(void)pthread_barrier_wait(me->together);
	double begin = worker_cpu_ns();
	me->kind->loop(me->events, payload);
	me->ns = (worker_cpu_ns() - begin) / (double)me->events;
	return NULL;
}

static inline double worker_measure(const struct worker_kind *kind, int threads, long events)
{
	struct worker_thread all[WORKER_THREADS_MAX];
	pthread_barrier_t together;
	double sum = 0;

	if (kind->before)
		kind->before();
	(void)pthread_barrier_init(&together, NULL, (unsigned)threads);
	for (int i = 0; i < threads; i++) {
		all[i] = (struct worker_thread){
			.together = &together, .kind = kind, .events = events, .processor = i};
		if (pthread_create(&all[i].thread, NULL, worker_body, &all[i]) != 0)
			abort();
	}
	for (int i = 0; i < threads; i++) {
		(void)pthread_join(all[i].thread, NULL);
		sum += all[i].ns;
	}
	(void)pthread_barrier_destroy(&together);
	if (kind->after)
		kind->after();
	return sum / threads;
}

static inline int worker_main(const struct worker_kind *kinds, size_t count)
{
	char name[64];
	int threads;
	long events;

	while (scanf("%63s %d %ld", name, &threads, &events) == 3) {
		double ns = -1;

		for (size_t i = 0; i < count; i++)
			if (strcmp(kinds[i].name, name) == 0 && threads > 0 &&
				threads <= WORKER_THREADS_MAX)
				ns = worker_measure(&kinds[i], threads, events);
		printf("%.3f\n", ns);
		(void)fflush(stdout);
	}
	return 0;
}

#endif
