/* SPDX-License-Identifier: MIT */
/*
 * The pass goes from head to head. Of an EVENTS packet only the head is seen: its length and number
 * are believed for the moment. When the chain breaks behind it, because there is no head or one
 * with another number, its checksum is tested: if it is wrong, it was this packet that is damaged,
 * and its length may be what led astray.
 *
 * From the damage on, the file is searched for the next packet with a right checksum. Payloads may
 * themselves hold copies of packets (of a program that writes logs), so the place where the damaged
 * packet says that it ends is tried first, if the next number is there; and a candidate's number
 * should be possible: a packet has at least 40 bytes, hence so many bytes further on the number is
 * at most so much higher. Only when that finds nothing (part of the file was cut out) any number
 * will do. Copies of packets behind a damaged length can still deceive.
 *
 * A file made to be slow could hold millions of heads that promise 16 MiB each, none with a right
 * checksum. So the bytes that are read in vain are limited, in proportion to the file's size.
 */
#include "log/scan.h"

#include "base/util.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define SEGMENTS_FIRST 4u
#define SEGMENTS_MAX (1u << 20)
#define VAIN_BYTES (UINT64_C(64) << 20)
#define VAIN_FILES 2u

struct pass {
	struct kly_log_scan *scan;
	struct kly_log_file *file;
	struct kly_log_problems *problems;

	uint64_t at;     /* where the next packet should be */
	uint64_t number; /* which it should have */
	uint64_t vain;   /* bytes that may still be read for wrong checksums */
	bool ended;      /* an END packet was seen */

	/* the packet before `at`, if it is of events and believed for the moment */
	bool believed;
	uint64_t believed_at;
	struct kly_wire_packet believed_head;
};

static int open_segment(struct kly_log_scan *scan, uint64_t begin)
{
	if (scan->count == scan->room) {
		const size_t room = scan->room ? 2 * scan->room : SEGMENTS_FIRST;
		void *segments = reallocarray(scan->segments, room, sizeof(*scan->segments));
		if (!segments)
			return -ENOMEM;
		scan->segments = segments;
		scan->room = room;
	}
	scan->segments[scan->count++] = (struct kly_log_segment){.begin = begin, .end = begin};
	return 0;
}

static void close_segment(struct kly_log_scan *scan, uint64_t end)
{
	struct kly_log_segment *open = &scan->segments[scan->count - 1];

	open->end = end;
	if (open->begin == end)
		scan->count--;
}

/* Tests a checksum. Results as kly_log_file_packet(). */
static int prove(struct pass *pass, uint64_t offset, const struct kly_wire_packet *head,
	uint8_t **ret_packet)
{
	const int r = kly_log_file_packet(pass->file, offset, head, ret_packet);

	if (r < 0)
		pass->vain -= kly_min(pass->vain, kly_log_packet_bytes(head));
	return r;
}

static bool is_right(struct pass *pass, uint64_t offset, const struct kly_wire_packet *head)
{
	kly_cleanup(kly_freep) uint8_t *packet = NULL;

	return prove(pass, offset, head, &packet) == 0;
}

/* The believed packet is followed by another one as it should, or proved to be right. */
static void believe_no_more(struct pass *pass)
{
	if (!pass->believed)
		return;
	pass->scan->first = kly_min(pass->scan->first, pass->believed_head.begin);
	pass->scan->last = kly_max(pass->scan->last, pass->believed_head.end);
	pass->believed = false;
}

static void go_on_behind(struct pass *pass, const struct kly_wire_packet *head)
{
	believe_no_more(pass);
	if (head->kind == KLY_PACKET_EVENTS) {
		pass->believed = true;
		pass->believed_at = pass->at;
		pass->believed_head = *head;
	}
	if (pass->ended)
		kly_log_problems_add(
			pass->problems, head->sequence, pass->at, "stands behind the END packet");
	pass->ended = head->kind == KLY_PACKET_END;
	if (head->flags)
		kly_log_problems_add(pass->problems, head->sequence, pass->at,
			"compressed, or written by a later version");
	pass->number = head->sequence + 1;
	pass->at += kly_log_packet_bytes(head);
}

static void report_gap(struct pass *pass, uint64_t found)
{
	if (found < pass->number)
		kly_log_problems_add(
			pass->problems, pass->number, pass->at, "has the number %" PRIu64, found);
	else if (found == pass->number + 1)
		kly_log_problems_add(pass->problems, found, pass->at,
			"packet %" PRIu64 " before it is missing", pass->number);
	else if (found > pass->number)
		kly_log_problems_add(pass->problems, found, pass->at,
			"packets %" PRIu64 " to %" PRIu64 " before it are missing", pass->number,
			found - 1);
}

/* Looks at the packet at `at`, whose head was found. 0 = it is behind us; else what is wrong. */
static int pass_over(struct pass *pass, const struct kly_wire_packet *head)
{
	const bool expected = head->sequence == pass->number;
	kly_cleanup(kly_freep) uint8_t *packet = NULL;

	if (!expected || head->kind != KLY_PACKET_EVENTS || head->flags) {
		const int r = prove(pass, pass->at, head, &packet);
		if (r < 0)
			return r;
	}
	if (!expected) {
		if (pass->believed && !is_right(pass, pass->believed_at, &pass->believed_head))
			return -EBADMSG;
		report_gap(pass, head->sequence);
	}
	if (head->kind != KLY_PACKET_EVENTS && !head->flags) {
		const char *wrong =
			pass->scan->take(pass->scan->context, head, packet + sizeof(*head));
		if (wrong)
			kly_log_problems_add(pass->problems, head->sequence, pass->at, "%s", wrong);
	}
	go_on_behind(pass, head);
	return 0;
}

/* What is searched, and the head of what was found. */
struct search {
	uint64_t damage, number;
	struct kly_wire_packet head;
};

/* Is here a packet with a right checksum, whose number is at most so much higher? */
static bool goes_on(struct pass *pass, struct search *search, uint64_t offset, uint64_t most)
{
	return kly_log_file_head(pass->file, offset, &search->head) == 1 &&
	       search->head.sequence - search->number <= most &&
	       is_right(pass, offset, &search->head);
}

/* Does the chain go on where the damaged packet says? Then *ret_offset is set. */
static bool goes_on_behind(struct pass *pass, struct search *search, uint64_t *ret_offset)
{
	if (kly_log_file_head(pass->file, search->damage, &search->head) != 1)
		return false;
	const uint64_t offset = search->damage + kly_log_packet_bytes(&search->head);
	if (!goes_on(pass, search, offset, 1) || search->head.sequence == search->number)
		return false;
	*ret_offset = offset;
	return true;
}

/* Looks for a packet from the damage on. */
static bool goes_on_later(
	struct pass *pass, struct search *search, bool any_number, uint64_t *ret_offset)
{
	uint64_t offset;

	for (uint64_t from = search->damage + 8; pass->vain; from = offset + 8) {
		if (kly_log_file_find(pass->file, from, UINT64_MAX, &offset) <= 0)
			return false;
		const uint64_t most = (offset - search->damage) / sizeof(search->head);
		if (goes_on(pass, search, offset, any_number ? UINT64_MAX : most)) {
			*ret_offset = offset;
			return true;
		}
	}
	return false;
}

/* The packet `number`, at `damage`, is damaged. If the chain goes on, sets `at` and `number`. */
static bool find_next(struct pass *pass, uint64_t damage, uint64_t number)
{
	struct search search = {.damage = damage, .number = number};

	if (!goes_on_behind(pass, &search, &pass->at) &&
		!goes_on_later(pass, &search, false, &pass->at) &&
		!goes_on_later(pass, &search, true, &pass->at))
		return false;
	pass->number = search.head.sequence == number ? number : number + 1;
	return true;
}

static void report_damage(
	struct pass *pass, uint64_t number, uint64_t offset, int error, bool goes_on_later)
{
	const char *text;

	switch (error) {
	case -EILSEQ:
		text = "checksum mismatch";
		break;
	case -EBADMSG:
		text = "damaged head";
		break;
	case -ENODATA:
		text = goes_on_later ? "damaged head" : "the file ends inside it";
		break;
	default:
		text = strerror(-error);
	}
	kly_log_problems_add(pass->problems, number, offset, "%s", text);
	if (!pass->vain)
		kly_log_problems_add(
			pass->problems, number, offset, "too much damage: the rest is not read");
}

/* The chain breaks at `at`. 1 = it goes on somewhere else, 0 = it does not, or -ENOMEM. */
static int recover(struct pass *pass, int error)
{
	uint64_t damage = pass->at, number = pass->number;

	if (pass->believed && !is_right(pass, pass->believed_at, &pass->believed_head)) {
		damage = pass->believed_at;
		number = pass->believed_head.sequence;
		error = -EILSEQ;
		pass->believed = false;
	}
	believe_no_more(pass);
	close_segment(pass->scan, damage);

	const bool found = find_next(pass, damage, number);
	report_damage(pass, number, damage, error, found);
	if (!found || pass->scan->count == SEGMENTS_MAX)
		return 0;
	const int opened = open_segment(pass->scan, pass->at);
	return opened < 0 ? opened : 1;
}

/* At the file's end nobody vouches for the last packet. */
static bool at_sound_end(struct pass *pass)
{
	return !pass->believed || is_right(pass, pass->believed_at, &pass->believed_head);
}

int kly_log_scan(struct kly_log_scan *scan, struct kly_log_file *file,
	struct kly_log_problems *problems, uint64_t from)
{
	struct pass pass = {.scan = scan,
		.file = file,
		.problems = problems,
		.at = from,
		.vain = VAIN_BYTES + VAIN_FILES * file->bytes};

	scan->first = UINT64_MAX;
	scan->last = 0;
	int r = open_segment(scan, from);
	if (r < 0)
		return r;

	for (;;) {
		struct kly_wire_packet head;
		r = kly_log_file_head(file, pass.at, &head);
		if (r == 0 && at_sound_end(&pass))
			break;
		if (r == 0)
			r = -EILSEQ;
		else if (r > 0)
			r = pass_over(&pass, &head);
		if (r == 0)
			continue;
		if (r == -ENOMEM)
			return r;
		r = recover(&pass, r);
		if (r <= 0)
			return r;
	}
	believe_no_more(&pass);
	close_segment(scan, kly_min(pass.at, file->bytes));
	return 0;
}

void kly_log_scan_fini(struct kly_log_scan *scan)
{
	free(scan->segments);
	scan->segments = NULL;
	scan->count = scan->room = 0;
}

bool kly_log_scan_any(struct kly_log_file *file, uint64_t from, uint64_t end)
{
	struct pass pass = {.file = file, .vain = VAIN_BYTES};
	uint64_t offset;

	for (; kly_log_file_find(file, from, end, &offset) > 0 && pass.vain; from = offset + 8) {
		struct kly_wire_packet head;
		if (kly_log_file_head(file, offset, &head) == 1 && is_right(&pass, offset, &head))
			return true;
	}
	return false;
}
