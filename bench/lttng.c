/* SPDX-License-Identifier: MIT */
/* Worker of bench/compare: LTTng-UST, into the session that bench/run has made. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng-events.h"

#include "worker.h"

#define REPEAT(statement)                                                                          \
	for (long i = 0; i < events; i++) {                                                        \
		*(volatile long *)payload = i;                                                     \
		statement;                                                                         \
	}

static void loop_8(long events, uint8_t *payload)
{
	REPEAT(lttng_ust_tracepoint(kly_bench, eight, (uint64_t)i));
}

static void loop_64(long events, uint8_t *payload)
{
	REPEAT(lttng_ust_tracepoint(kly_bench, block64, payload));
}

static void loop_256(long events, uint8_t *payload)
{
	REPEAT(lttng_ust_tracepoint(kly_bench, block256, payload));
}

int main(void)
{
	static const struct worker_kind kinds[] = {
		{"8", loop_8, NULL, NULL},
		{"64", loop_64, NULL, NULL},
		{"256", loop_256, NULL, NULL},
	};

	return worker_main(kinds, sizeof(kinds) / sizeof(kinds[0]));
}
