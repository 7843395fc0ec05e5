/* SPDX-License-Identifier: MIT */
/*
 * How fast runs become one sequence: million events a second, for numbers of runs that overlap and
 * numbers of events that one of them has before another has its turn. 8-byte payloads, 16 KiB runs.
 * The best of several rounds, so that a busy machine disturbs little.
 */
#include "base/util.h"
#include "wire/order.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define RUN_BYTES 16384u
#define RECORD 24u
#define EVENTS 2000000u
#define ROUNDS 5

struct writer {
	uint32_t left; /* records that fit into its last run */
	uint32_t last;
};

static struct kly_run *runs;
static uint8_t *bytes;
static uint32_t run_count;

static uint64_t random_state;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void put(struct writer *w, uint64_t ticks)
{
	if (!w->left) {
		w->last = run_count++;
		w->left = RUN_BYTES / RECORD;
		runs[w->last] = (struct kly_run){.first = ticks, .base = ticks};
		runs[w->last].bytes = bytes + (size_t)w->last * RUN_BYTES;
	}
	struct kly_run *run = &runs[w->last];
	const struct kly_wire_rec rec = {
		.type = 1025, .len = 8, .delta = (uint32_t)(ticks - run->base)};
	memcpy((uint8_t *)run->bytes + run->size, &rec, sizeof(rec));
	run->size += RECORD;
	w->left--;
}

static void build(uint32_t writers, uint32_t burst)
{
	struct writer *w = calloc(writers, sizeof(*w));
	uint64_t ticks = 1;
	uint32_t now = 0;

	run_count = 0;
	random_state = 88172645463325252;
	for (uint32_t i = 0; i < EVENTS; i++) {
		if (i % burst == 0)
			now = (uint32_t)((next_random() >> 20) % writers);
		put(&w[now], ticks += 1 + (next_random() & 63));
	}
	free(w);
}

static int load(void *context, struct kly_run *run)
{
	return 0;
}

static void unload(void *context, struct kly_run *run)
{
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double merge(void)
{
	static const struct kly_order_source source = {.load = load, .unload = unload};
	struct kly_order order;
	struct kly_event event;
	uint64_t sum = 0, count = 0;

	kly_order_init(&order, &source, NULL);
	for (uint32_t i = 0; i < run_count; i++) {
		runs[i].offset = 0;
		runs[i].base = runs[i].first;
		runs[i].loaded = false;
		kly_order_add(&order, &runs[i]);
	}
	const double begin = seconds();
	for (; kly_order_next(&order, UINT64_MAX, &event); count++)
		sum += event.type + *(const uint64_t *)event.data;
	const double end = seconds();
	kly_assert(count == EVENTS && sum && !order.late);
	kly_order_fini(&order);
	return (double)count / (end - begin) * 1e-6;
}

int main(void)
{
	static const uint32_t writers[] = {1, 2, 8, 64, 1024}, bursts[] = {1, 32};
	const uint32_t runs_max = EVENTS / (RUN_BYTES / RECORD) + 1024 + 1;

	runs = calloc(runs_max, sizeof(*runs));
	bytes = calloc(runs_max, RUN_BYTES);
	if (!runs || !bytes)
		return 1;
	printf("%8s %6s %10s\n", "writers", "burst", "M events/s");
	for (size_t b = 0; b < KLY_COUNT(bursts); b++)
		for (size_t w = 0; w < KLY_COUNT(writers); w++) {
			double best = 0;
			build(writers[w], bursts[b]);
			for (int round = 0; round < ROUNDS; round++) {
				const double speed = merge();
				best = speed > best ? speed : best;
			}
			printf("%8u %6u %10.0f\n", writers[w], bursts[b], best);
		}
	free(runs);
	free(bytes);
	return 0;
}
