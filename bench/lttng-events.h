/* SPDX-License-Identifier: MIT */
/* The events of bench/lttng.c, as LTTng-UST wants them declared. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER kly_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng-events.h"

#if !defined(KLY_BENCH_LTTNG_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define KLY_BENCH_LTTNG_EVENTS_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(kly_bench, eight, LTTNG_UST_TP_ARGS(uint64_t, value),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, value, value)))
LTTNG_UST_TRACEPOINT_EVENT(kly_bench, block64, LTTNG_UST_TP_ARGS(const uint8_t *, data),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_array(uint8_t, data, data, 64)))
LTTNG_UST_TRACEPOINT_EVENT(kly_bench, block256, LTTNG_UST_TP_ARGS(const uint8_t *, data),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_array(uint8_t, data, data, 256)))

#endif

#include <lttng/tracepoint-event.h>
