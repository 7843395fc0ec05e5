/* SPDX-License-Identifier: MIT */
/*
 * Points in time as a user writes them:
 *
 *	+1.5s                          after the start of the log; units as in options.h
 *	14:03:22.5                     that time of day which is the nearest to the start of the log
 *	2026-11-30T14:03:22.5          a space may stand for the T
 *	2026-11-30T14:03:22.5Z         UTC; the others are local time
 *
 * Seconds may have up to nine digits behind the point.
 */
#ifndef KLY_CLI_WHEN_H
#define KLY_CLI_WHEN_H

#include <stdbool.h>
#include <stdint.h>

/* Nanoseconds of CLOCK_REALTIME; false: the text is no point in time. */
bool kly_when_parse(const char *text, uint64_t start_ns, uint64_t *ret_ns);

#endif
