/* SPDX-License-Identifier: MIT */
/*
 * The first pass over a log: where its packets are. Bodies of EVENTS packets are not read, so a
 * damaged one among them is found when it is read; what is found here is where the chain of packets
 * breaks, and where it goes on.
 */
#ifndef KLY_LOG_SCAN_H
#define KLY_LOG_SCAN_H

#include "log/file.h"
#include "log/problem.h"

/* Packets one after another, without a gap. */
struct kly_log_segment {
	uint64_t begin, end;
};

struct kly_log_scan {
	/* Called for each packet with a right checksum that is no EVENTS packet. NULL, or what is
	 * wrong with it; that becomes a problem. */
	const char *(*take)(void *context, const struct kly_wire_packet *head, const uint8_t *body);
	void *context;

	struct kly_log_segment *segments;
	size_t count, room;
	uint64_t first, last; /* times of events by the heads; first > last: there is none */
};

/* Fills *scan, whose take and context are set, from the packets at `from` on. 0 or -ENOMEM. */
int kly_log_scan(struct kly_log_scan *scan, struct kly_log_file *file,
	struct kly_log_problems *problems, uint64_t from);
void kly_log_scan_fini(struct kly_log_scan *scan);

/* Is there a packet with a right checksum that begins in [from, end)? */
bool kly_log_scan_any(struct kly_log_file *file, uint64_t from, uint64_t end);

#endif
