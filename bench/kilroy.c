/* SPDX-License-Identifier: MIT */
/* Worker of bench/compare: kilroy, and the bare instructions that it is held against. */
#include "worker.h"

#include <kilroy/trace.h>
#include <trace.h>

#define STREAM_BYTES (4 << 20)
#define STREAMS 4

KILROY_EVENT(eight, "bench.eight", (u64, value));
KILROY_EVENT(unwanted, "off.macro", (u64, value));

static struct kilroy_stream *streams[STREAMS], *relaxed;
static trace_event_id_t block, off;

#define REPEAT(statement)                                                                          \
	for (long i = 0; i < events; i++) {                                                        \
		*(volatile long *)payload = i;                                                     \
		statement;                                                                         \
	}

static void loop_8(long events, uint8_t *payload)
{
	REPEAT(KILROY_RECORD(eight, (uint64_t)i));
}

static void loop_64(long events, uint8_t *payload)
{
	REPEAT(posix_trace_event(block, payload, 64));
}

static void loop_256(long events, uint8_t *payload)
{
	REPEAT(posix_trace_event(block, payload, 256));
}

static void loop_off_macro(long events, uint8_t *payload)
{
	REPEAT(KILROY_RECORD(unwanted, (uint64_t)i));
}

static void loop_off_function(long events, uint8_t *payload)
{
	REPEAT(posix_trace_event(off, payload, 8));
}

static void loop_empty(long events, uint8_t *payload)
{
	REPEAT((void)0);
}

static void loop_ordered(long events, uint8_t *payload)
{
	REPEAT(__asm__ volatile("lfence\n\trdtsc" ::: "rax", "rdx", "memory"));
}

static void loop_unordered(long events, uint8_t *payload)
{
	REPEAT(__asm__ volatile("rdtsc" ::: "rax", "rdx", "memory"));
}

static void start(int count)
{
	for (int i = 0; i < count; i++)
		if (kilroy_stream_start(streams[i]) < 0)
			abort();
}

static void start_1(void)
{
	start(1);
}

static void start_2(void)
{
	start(2);
}

static void start_4(void)
{
	start(4);
}

static void stop_all(void)
{
	for (int i = 0; i < STREAMS; i++)
		(void)kilroy_stream_stop(streams[i]);
}

static void start_relaxed(void)
{
	if (kilroy_stream_start(relaxed) < 0)
		abort();
}

static void stop_relaxed(void)
{
	(void)kilroy_stream_stop(relaxed);
}

static struct kilroy_stream *make(uint32_t flags)
{
	static const char *const keep[] = {"bench.*", NULL};
	const struct kilroy_stream_options options = {
		.size = sizeof(options), .stream_bytes = STREAM_BYTES, .flags = flags, .keep = keep};
	struct kilroy_stream *stream;

	if (kilroy_stream_create(&options, &stream) < 0)
		abort();
	return stream;
}

/* Written once around before anything is timed: else page faults are. */
static void lap(void (*begin)(void), void (*end)(void))
{
	uint8_t payload[256] = {0};

	begin();
	loop_256(STREAM_BYTES / 200, payload);
	end();
}

int main(void)
{
	static const struct worker_kind kinds[] = {
		{"8", loop_8, start_1, stop_all},
		{"64", loop_64, start_1, stop_all},
		{"256", loop_256, start_1, stop_all},
		{"8-relaxed", loop_8, start_relaxed, stop_relaxed},
		{"8-two-streams", loop_8, start_2, stop_all},
		{"8-four-streams", loop_8, start_4, stop_all},
		{"off-macro", loop_off_macro, start_1, stop_all},
		{"off-function", loop_off_function, start_1, stop_all},
		{"empty", loop_empty, NULL, NULL},
		{"lfence-rdtsc", loop_ordered, NULL, NULL},
		{"rdtsc", loop_unordered, NULL, NULL},
	};

	for (int i = 0; i < STREAMS; i++)
		streams[i] = make(0);
	relaxed = make(KILROY_RELAXED);
	if (posix_trace_eventid_open("bench.block", &block) || posix_trace_eventid_open("off", &off))
		abort();
	lap(start_4, stop_all);
	lap(start_relaxed, stop_relaxed);
	return worker_main(kinds, sizeof(kinds) / sizeof(kinds[0]));
}
