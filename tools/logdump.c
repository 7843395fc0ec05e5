// SPDX-License-Identifier: MIT
/*
 * logdump [--raw | --events] FILE: shows what a log holds.
 *
 * This is a second reader of logs, written from docs/format.md alone: it shares no line with
 * src/wire and src/log, so that what the document says and what the code does can be compared
 * (tests/logdump). It is short, not fast: the file is read whole, and every checksum is computed
 * before anything else is done. "Section" in the comments below is one of that document.
 *
 * In the order of this file:
 *	struct view	bytes with an end; whatever is read from the file is read through one
 *	find_packets	the file, cut into packets, around damage (sections 2 and 7)
 *	explain_all	what explains events: types, snapshots, names of threads (2, 5)
 *	struct run	the records of a packet, one after the other (3)
 *	merge		the order of events, and which ones are left out (6)
 *	show_*		the lines (4)
 *
 * Without an option there is a line an event
 *
 *	TICKS PID TID TYPE-NAME CPU ADDRESS FLAGS NAME=VALUE... HEX
 *
 * and behind them the losses and what is wrong with the file. FLAGS are c for a cut payload, l for
 * a late event, or -. With --events there are the objects of `kilroy print --json` instead, save
 * that the cause of a loss is its number. With --raw the packets come as they lie in the file.
 * The status is 1 if something is wrong, as that of `kilroy print`, and 2 for a wrong command.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	HEAD_BYTES = 512,
	PACKET_HEAD_BYTES = 40,
	BODY_BYTES_MAX = 16777216,
	EVENTS_HEAD_BYTES = 48,
	RECORD_HEAD_BYTES = 16,
	THREAD_BYTES = 32,
	SNAPSHOT_BYTES = 32,
	LOSS_BYTES = 16,
	TYPES_MAX = 4096,
};

enum kind { EVENTS = 1, MARK, TYPES, SNAPSHOT, LOSS, PROCESS, THREADS, END };
enum { START_EVENT = 1, STOP_EVENT = 2, FIRST_USER_EVENT = 1024 };
enum { RECORD_CUT = 1 << 12, RECORD_NOTE = 1 << 13, RECORD_UNUSED = 3 << 14 };
enum { NOTE_BASE = 1, NOTE_THREAD = 2 };
enum { LOSS_FULL = 0, LOSS_OVERWRITTEN = 1 };

#define PACKET_MAGIC 0x544b504bu
#define NS_PER_S INT64_C(1000000000)

struct view {
	const uint8_t *at;
	size_t size;
};

/*
 * A packet, or what seems to be one. Of a packet that is not good nothing but the size is known to
 * be right, and that only because the next one begins where it ends.
 */
struct packet {
	size_t offset;
	uint64_t number, begin, end;
	uint16_t kind, flags;
	bool good;  /* the checksum is right */
	bool gap;  /* something is missing before this one */
	struct view body;
};

struct type {
	bool known;
	struct view name, fields;
};

struct snapshot {
	uint64_t ticks, mono, boot, real;
};

struct thread {
	uint32_t pid, tid;
	struct view name;
};

struct record {
	uint16_t bits, type;
	uint32_t ticks;
	uint64_t address;
	uint16_t cpu;
	struct view payload;
};

/* An event, with what the records before it say. */
struct event {
	uint64_t time;
	bool late;
	struct record record;
	struct thread thread;
};

/*
 * An EVENTS packet on its way out; or a LOSS packet, which is shown at the time of its begin.
 * time is that of what comes next: before the packet was opened its begin, then that of event.
 */
struct run {
	uint64_t time;
	const struct packet *packet;
	bool open;
	struct view rest;
	uint64_t base;
	struct event event;
};

enum mode { MODE_TEXT, MODE_RAW, MODE_EVENTS };

static enum mode mode;
static bool big_endian, head_good;
static struct view file;
static uint64_t ticks_per_s = NS_PER_S;  /* if nothing is known, a tick is 1 ns */

static struct packet *packets;
static size_t n_packets;
static struct type types[TYPES_MAX];
static struct snapshot *snapshots, origin;
static size_t n_snapshots;
static bool has_origin;
static struct thread *threads;
static size_t n_threads;

/* Lines that belong behind the events: losses, then problems. */
static char *loss_lines, *problem_lines;
static size_t loss_lines_size, problem_lines_size;
static FILE *losses, *problems;
static int status;

/* Memory */

static void die(const char *what)
{
	fprintf(stderr, "logdump: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Room for one more in an array of n; it doubles at each power of two. */
static void *grow(void *array, size_t n, size_t size)
{
	if (n & (n - 1))
		return array;
	array = realloc(array, (n ? 2 * n : 1) * size);
	if (!array)
		die("memory");
	return array;
}

/* Views. What is behind the end reads as nothing, and as 0: no length needs to be believed. */

static struct view part(struct view v, size_t from, size_t size)
{
	if (from > v.size)
		from = v.size;
	if (size > v.size - from)
		size = v.size - from;
	return (struct view){v.at + from, size};
}

static struct view behind(struct view v, size_t from)
{
	return part(v, from, v.size);
}

static uint64_t value_at(struct view v, size_t from, size_t size)
{
	struct view bytes = part(v, from, size);
	uint64_t value = 0;

	if (bytes.size < size)
		return 0;
	for (size_t i = 0; i < size; i++)
		value |= (uint64_t)bytes.at[i] << 8 * (big_endian ? size - 1 - i : i);
	return value;
}

static uint16_t u16(struct view v, size_t from)
{
	return value_at(v, from, 2);
}

static uint32_t u32(struct view v, size_t from)
{
	return value_at(v, from, 4);
}

static uint64_t u64(struct view v, size_t from)
{
	return value_at(v, from, 8);
}

static struct view until_nul(struct view v)
{
	const uint8_t *nul = v.size ? memchr(v.at, 0, v.size) : NULL;

	return nul ? part(v, 0, nul - v.at) : v;
}

static struct view view_of(const char *text)
{
	return (struct view){(const uint8_t *)text, strlen(text)};
}

static bool is(struct view v, const char *text)
{
	return v.size == strlen(text) && memcmp(v.at, text, v.size) == 0;
}

static size_t align8(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

static uint32_t crc32c(struct view v)
{
	static uint32_t table[256];
	uint32_t crc = ~0u;

	for (uint32_t i = 0; !table[255] && i < 256; i++) {
		uint32_t r = i;
		for (int bit = 0; bit < 8; bit++)
			r = r >> 1 ^ (r & 1 ? 0x82f63b78 : 0);  /* 0x1edc6f41, reflected */
		table[i] = r;
	}
	for (size_t i = 0; i < v.size; i++)
		crc = crc >> 8 ^ table[(crc ^ v.at[i]) & 255];
	return ~crc;
}

/* Text */

/* The length of the UTF-8 character that v begins with, 0 if there is none. */
static size_t character(struct view v)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	uint8_t first = v.size ? v.at[0] : 0xff;
	size_t length = first < 0x80 ? 1 : first < 0xc0 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
	uint32_t code = length < 2 ? first : first & (0xff >> (length + 1));

	if (length == 0 || first >= 0xf8 || length > v.size)
		return 0;
	for (size_t i = 1; i < length; i++) {
		if ((v.at[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (v.at[i] & 0x3f);
	}
	if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	return length;
}

static void print_json(FILE *out, struct view v)
{
	putc('"', out);
	for (size_t length; v.size > 0; v = behind(v, length ? length : 1)) {
		length = character(v);
		if (length == 0)
			fputs("\xef\xbf\xbd", out);
		else if (v.at[0] == '"' || v.at[0] == '\\')
			fprintf(out, "\\%c", v.at[0]);
		else if (v.at[0] < ' ' || v.at[0] == 0x7f)
			fprintf(out, "\\u%04x", v.at[0]);
		else
			fwrite(v.at, 1, length, out);
	}
	putc('"', out);
}

/* For lines that are split at spaces: neither space nor anything that is not ASCII is left. */
static void print_word(FILE *out, struct view v)
{
	for (size_t i = 0; i < v.size; i++)
		if (v.at[i] > ' ' && v.at[i] < 0x7f && v.at[i] != '\\')
			putc(v.at[i], out);
		else
			fprintf(out, "\\x%02x", v.at[i]);
	if (v.size == 0)
		putc('-', out);
}

static void print_hex(FILE *out, struct view v)
{
	for (size_t i = 0; i < v.size; i++)
		fprintf(out, "%02x", v.at[i]);
}

__attribute__((format(printf, 2, 3)))
static void problem(const struct packet *p, const char *format, ...)
{
	FILE *out = mode == MODE_EVENTS ? stderr : mode == MODE_RAW ? stdout : problems;
	va_list args;

	status = 1;
	fputs(mode == MODE_EVENTS ? "logdump: " : "problem ", out);
	if (p)
		fprintf(out, "packet %" PRIu64 " at 0x%zx: ", p->number, p->offset);
	va_start(args, format);
	vfprintf(out, format, args);
	va_end(args);
	putc('\n', out);
}

/* Packets: sections 2 and 7 */

/* Is there at least the form of a packet? ret->good tells whether it is one. */
static bool packet_at(size_t offset, struct packet *ret)
{
	struct view v = behind(file, offset);
	uint32_t size = u32(v, 8);

	if (v.size < PACKET_HEAD_BYTES || u32(v, 0) != PACKET_MAGIC || size > BODY_BYTES_MAX ||
			size > v.size - PACKET_HEAD_BYTES)
		return false;
	*ret = (struct packet){
		.offset = offset,
		.number = u64(v, 16),
		.begin = u64(v, 24),
		.end = u64(v, 32),
		.kind = u16(v, 12),
		.flags = u16(v, 14),
		.good = u32(v, 4) == crc32c(part(v, 8, PACKET_HEAD_BYTES - 8 + size)),
		.body = part(v, PACKET_HEAD_BYTES, size),
	};
	return true;
}

static size_t end_of(const struct packet *p)
{
	return p->offset + align8(PACKET_HEAD_BYTES + p->body.size);
}

/*
 * The next good packet behind the damage at `from`, where number `expected` should be; the end of
 * the file if there is none.
 */
static size_t find_good(size_t from, uint64_t expected)
{
	struct packet p;
	size_t any = file.size;

	for (size_t at = from + 8; at < file.size; at += 8) {
		if (!packet_at(at, &p) || !p.good)
			continue;
		if (p.number >= expected && p.number - expected <= (at - from) / PACKET_HEAD_BYTES)
			return at;
		if (any == file.size)
			any = at;
	}
	return any;
}

static void add_packet(struct packet p)
{
	packets = grow(packets, n_packets, sizeof(*packets));
	packets[n_packets++] = p;
}

static void tell_damage(size_t at, uint64_t expected, bool last)
{
	struct packet p = {.offset = at, .number = expected};
	struct view v = behind(file, at);
	uint32_t size = u32(v, 8);

	if (last && (v.size < PACKET_HEAD_BYTES || (u32(v, 0) == PACKET_MAGIC &&
			size <= BODY_BYTES_MAX && size > v.size - PACKET_HEAD_BYTES)))
		problem(&p, "the file ends inside it");
	else
		problem(&p, u32(v, 0) == PACKET_MAGIC ? "checksum mismatch" : "no packet");
}

static void find_packets(size_t at)
{
	uint64_t expected = 0;
	bool gap = false;

	while (at < file.size) {
		struct packet p, next;
		bool whole = packet_at(at, &p);

		if (whole && p.good) {
			p.gap = gap || p.number != expected;
			if (p.number != expected)
				problem(&p, "number %" PRIu64 " should be here", expected);
			if (p.flags != 0)
				problem(&p, "unknown flags");
		} else if (whole && packet_at(end_of(&p), &next) && next.good &&
				next.number == expected + 1) {
			p.number = expected;
			problem(&p, "checksum mismatch");
		} else {
			size_t good = find_good(at, expected);
			tell_damage(at, expected, good == file.size);
			at = good;
			gap = true;
			continue;
		}
		add_packet(p);
		expected = p.number + 1;
		gap = false;
		at = end_of(&p);
	}
}

/* Lists, and what explains the events: sections 2 and 5 */

static struct thread thread_of(struct view v)
{
	return (struct thread){u32(v, 0), u32(v, 4), until_nul(part(v, 16, 15))};
}

static struct snapshot snapshot_of(struct view v)
{
	return (struct snapshot){u64(v, 0), u64(v, 8), u64(v, 16), u64(v, 24)};
}

/* Is p a list, of entries of at least this size? 0: it is none. */
static size_t least_entry(const struct packet *p)
{
	static const uint8_t sizes[] = {[TYPES] = 8, [SNAPSHOT] = SNAPSHOT_BYTES, [LOSS] = LOSS_BYTES,
		[PROCESS] = 40, [THREADS] = THREAD_BYTES, [END] = 0};

	return p->good && p->flags == 0 && p->kind <= END ? sizes[p->kind] : 0;
}

/*
 * Takes an entry from what is left of a list, which begins as the body of p; false at its end. An
 * entry that leaves the body is an end, too.
 */
static bool take_entry(const struct packet *p, struct view *rest, struct view *ret)
{
	size_t size = least_entry(p);

	if (size == 0 || rest->size < size)
		return false;
	if (p->kind == TYPES)
		size += u16(*rest, 2) + u16(*rest, 4);
	if (p->kind == PROCESS)
		size += u16(*rest, 32) + u16(*rest, 34);
	*ret = part(*rest, 0, size);
	*rest = behind(*rest, align8(size));
	return ret->size == size;
}

/* May b follow a? No clock goes backwards. */
static bool in_order(const struct snapshot *a, const struct snapshot *b)
{
	return a->ticks < b->ticks && a->mono <= b->mono && a->boot <= b->boot;
}

/* They are kept in the order of ticks. Whoever comes first in the file is right. */
static void add_snapshot(const struct packet *p, struct snapshot s)
{
	size_t i = n_snapshots;

	if (!has_origin)
		origin = s;
	has_origin = true;
	while (i > 0 && snapshots[i - 1].ticks > s.ticks)
		i--;
	if (i > 0 && memcmp(&snapshots[i - 1], &s, sizeof(s)) == 0)
		return;
	if ((i > 0 && !in_order(&snapshots[i - 1], &s)) ||
			(i < n_snapshots && !in_order(&s, &snapshots[i]))) {
		problem(p, "a snapshot contradicts those before");
		return;
	}
	snapshots = grow(snapshots, n_snapshots, sizeof(*snapshots));
	memmove(&snapshots[i + 1], &snapshots[i], (n_snapshots++ - i) * sizeof(*snapshots));
	snapshots[i] = s;
}

static void explain_type(const struct packet *p, struct view entry)
{
	uint16_t type = u16(entry, 0), name_bytes = u16(entry, 2), field_bytes = u16(entry, 4);

	if (type == 0 || type >= TYPES_MAX || name_bytes == 0 || name_bytes > 255 ||
			field_bytes > 4095)
		problem(p, "type %u has a wrong number or size", type);
	else if (!types[type].known)
		types[type] = (struct type){
			.known = true,
			.name = part(entry, 8, name_bytes),
			.fields = part(entry, 8 + name_bytes, field_bytes),
		};
}

static void explain(const struct packet *p, struct view entry)
{
	if (p->kind == TYPES)
		explain_type(p, entry);
	if (p->kind == SNAPSHOT)
		add_snapshot(p, snapshot_of(entry));
	if (p->kind == THREADS) {
		threads = grow(threads, n_threads, sizeof(*threads));
		threads[n_threads++] = thread_of(entry);
	}
}

/* By pid and tid; of the entries of one thread the last in the file comes last. */
static int compare_threads(const void *a, const void *b)
{
	const struct thread *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->name.at < y->name.at ? -1 : x->name.at > y->name.at;
}

static struct view name_of(struct thread t)
{
	size_t low = 0, high = n_threads;

	if (t.name.size > 0)
		return t.name;
	while (low < high) {  /* the first behind all of t is threads[low] */
		size_t middle = low + (high - low) / 2;
		const struct thread *m = &threads[middle];
		if (m->pid < t.pid || (m->pid == t.pid && m->tid <= t.tid))
			low = middle + 1;
		else
			high = middle;
	}
	if (low > 0 && threads[low - 1].pid == t.pid && threads[low - 1].tid == t.tid)
		return threads[low - 1].name;
	return t.name;
}

static void explain_head(void)
{
	static const uint8_t unknown[SNAPSHOT_BYTES];
	struct view snapshot = part(file, 80, SNAPSHOT_BYTES);

	if (snapshot.size == SNAPSHOT_BYTES && memcmp(snapshot.at, unknown, SNAPSHOT_BYTES) != 0)
		add_snapshot(NULL, snapshot_of(snapshot));
}

static void explain_all(void)
{
	if (head_good)
		explain_head();
	for (size_t i = 0; i < n_packets; i++) {
		const struct packet *p = &packets[i];
		struct view rest = p->body, entry;

		while (take_entry(p, &rest, &entry))
			explain(p, entry);
		if (least_entry(p) && rest.size > 0)
			problem(p, "its list is wrong at the end");
	}
	if (n_snapshots == 0)  /* better than nothing if the head is damaged */
		explain_head();
	if (n_threads > 0)
		qsort(threads, n_threads, sizeof(*threads), compare_threads);
}

static struct view name_of_type(uint16_t type, char *room, size_t size)
{
	if (types[type].known)
		return types[type].name;
	snprintf(room, size, "type-%u", type);
	return view_of(room);
}

/* CLOCK_MONOTONIC, in ns: section 5 */

/* a x b / c, rounded down. */
static int64_t scale(int64_t a, int64_t b, int64_t c)
{
	__int128 product = (__int128)a * b;
	__int128 quotient = product / c;

	return quotient - (product % c < 0);
}

/*
 * The line through `point` with the slope from a to b, or that of the nominal rate. The way from
 * the point is rounded down, on both sides of it.
 */
static int64_t on_line(const struct snapshot *point, const struct snapshot *a,
	const struct snapshot *b, uint64_t ticks)
{
	int64_t mono = a ? b->mono - a->mono : NS_PER_S;
	int64_t span = a ? b->ticks - a->ticks : ticks_per_s;

	if (ticks < point->ticks)
		return point->mono - scale(point->ticks - ticks, mono, span);
	return point->mono + scale(ticks - point->ticks, mono, span);
}

static int64_t monotonic(uint64_t ticks)
{
	static const struct snapshot zero;
	const struct snapshot *s = snapshots;
	size_t n = n_snapshots, i;

	if (n == 0)
		return on_line(&zero, NULL, NULL, ticks);
	if (ticks < s[0].ticks) {
		for (i = 1; i < n && s[i].ticks - s[0].ticks < ticks_per_s / 10; i++)
			continue;
		return on_line(&s[0], i < n ? &s[0] : NULL, &s[i], ticks);
	}
	if (ticks >= s[n - 1].ticks) {
		for (i = n - 1; i > 0 && s[n - 1].ticks - s[i - 1].ticks <= ticks_per_s / 10; i--)
			continue;
		return on_line(&s[n - 1], i > 0 ? &s[i - 1] : NULL, &s[n - 1], ticks);
	}
	for (i = 1; ticks >= s[i].ticks; i++)
		continue;
	return on_line(&s[i - 1], &s[i - 1], &s[i], ticks);
}

static int64_t ns_of(uint64_t ticks)
{
	return monotonic(ticks) - (int64_t)origin.mono;
}

/* Records: section 3 */

/* The record that v begins with. Returns its size, 0 if it is none. */
static size_t record_at(struct view v, struct record *ret)
{
	uint16_t bits = u16(v, 0), size = u16(v, 2), type = bits & 0xfff;
	bool note = bits & RECORD_NOTE;

	if (v.size < RECORD_HEAD_BYTES || v.size - RECORD_HEAD_BYTES < size || type == 0 ||
			bits & RECORD_UNUSED || (note && type == NOTE_BASE && size != 8) ||
			(note && type == NOTE_THREAD && size != THREAD_BYTES))
		return 0;
	*ret = (struct record){
		.bits = bits,
		.type = type,
		.ticks = u32(v, 4),
		.address = u64(v, 8) & ((UINT64_C(1) << 48) - 1),
		.cpu = u64(v, 8) >> 48,
		.payload = part(v, RECORD_HEAD_BYTES, size),
	};
	return align8(RECORD_HEAD_BYTES + size);
}

enum { RUN_EVENT, RUN_END, RUN_DAMAGED };

static int run_next(struct run *r)
{
	while (r->rest.size > 0) {
		struct record *record = &r->event.record;
		size_t size = record_at(r->rest, record);

		if (size == 0) {
			problem(r->packet, "a record at 0x%zx is wrong", (size_t)(r->rest.at - file.at));
			return RUN_DAMAGED;
		}
		r->rest = behind(r->rest, size);
		if (!(record->bits & RECORD_NOTE)) {
			r->time = r->event.time = r->base + record->ticks;
			return RUN_EVENT;
		}
		if (record->type == NOTE_BASE)
			r->base = u64(record->payload, 0);
		else if (record->type == NOTE_THREAD)
			r->event.thread = thread_of(record->payload);
	}
	return RUN_END;
}

static int run_open(struct run *r)
{
	struct view body = r->packet->body;

	r->open = true;
	if (!r->packet->good)
		return RUN_DAMAGED;
	if (body.size < EVENTS_HEAD_BYTES) {
		problem(r->packet, "too short for events");
		return RUN_DAMAGED;
	}
	r->base = u64(body, 0);
	r->event.thread = thread_of(part(body, 16, THREAD_BYTES));
	r->rest = behind(body, EVENTS_HEAD_BYTES);
	return run_next(r);
}

/* Values: section 4 */

enum form { UNSIGNED, SIGNED, FLOAT, POINTER, TEXT, HEX };

static const struct field_type {
	const char *name;
	enum form form;
	uint8_t size;  /* of TEXT and HEX: that of their length */
} field_types[] = {
	{"u8", UNSIGNED, 1}, {"u16", UNSIGNED, 2}, {"u32", UNSIGNED, 4}, {"u64", UNSIGNED, 8},
	{"i8", SIGNED, 1}, {"i16", SIGNED, 2}, {"i32", SIGNED, 4}, {"i64", SIGNED, 8},
	{"f64", FLOAT, 8}, {"ptr", POINTER, 8}, {"str", TEXT, 2}, {"bytes", HEX, 2},
};

struct field {
	const struct field_type *type;
	struct view name;
	uint64_t bits;  /* of a number */
	struct view bytes;  /* of TEXT and HEX */
};

static const struct field_type *field_type(struct view name)
{
	for (size_t i = 0; i < sizeof(field_types) / sizeof(field_types[0]); i++)
		if (is(name, field_types[i].name))
			return &field_types[i];
	return NULL;
}

/* What is before the first c; v goes on behind it. */
static struct view take_until(struct view *v, char c)
{
	const uint8_t *at = v->size ? memchr(v->at, c, v->size) : NULL;
	struct view before = at ? part(*v, 0, at - v->at) : *v;

	*v = behind(*v, before.size + 1);
	return before;
}

/* Takes a line from text; false if there is none, or one that is no field: the fields end here. */
static bool take_field(struct view *text, struct field *ret)
{
	struct view line = take_until(text, '\n');

	ret->type = field_type(take_until(&line, ' '));
	ret->name = until_nul(take_until(&line, ' '));
	return ret->type && ret->name.size > 0;
}

/* Takes the value of f from a payload; false if it isn't there. */
static bool take_value(struct view *payload, struct field *f)
{
	unsigned size = f->type->size, unused_bits = 64 - 8 * size;

	if (payload->size < size)
		return false;
	f->bits = value_at(*payload, 0, size);
	*payload = behind(*payload, size);
	if (f->type->form == SIGNED)
		f->bits = (int64_t)(f->bits << unused_bits) >> unused_bits;
	if (f->type->form == TEXT || f->type->form == HEX) {
		f->bytes = part(*payload, 0, f->bits);
		*payload = behind(*payload, f->bits);
	}
	return true;
}

static bool has_fields(const struct type *type)
{
	struct view text = type->fields;
	struct field f;

	return take_field(&text, &f);
}

/* With enough digits to lead back to the same number. */
static void print_float(FILE *out, double value)
{
	char digits[32];

	snprintf(digits, sizeof(digits), "%.15g", value);
	if (strtod(digits, NULL) != value)
		snprintf(digits, sizeof(digits), "%.17g", value);
	if (isfinite(value))
		fputs(digits, out);
	else
		fprintf(out, mode == MODE_EVENTS ? "\"%s\"" : "%s", isnan(value) ? "nan" : digits);
}

static void print_value(FILE *out, const struct field *f)
{
	const char *quote = mode == MODE_EVENTS ? "\"" : "";
	double value;

	switch (f->type->form) {
	case UNSIGNED:
		fprintf(out, "%" PRIu64, f->bits);
		break;
	case SIGNED:
		fprintf(out, "%" PRId64, (int64_t)f->bits);
		break;
	case FLOAT:
		memcpy(&value, &f->bits, sizeof(value));
		print_float(out, value);
		break;
	case POINTER:
		fprintf(out, "%s0x%" PRIx64 "%s", quote, f->bits, quote);
		break;
	case TEXT:
		if (mode == MODE_EVENTS)
			print_json(out, f->bytes);
		else
			print_word(out, f->bytes);
		break;
	case HEX:
		fputs(quote, out);
		print_hex(out, f->bytes);
		fputs(quote, out);
		break;
	}
}

/* Lines */

static void show_fields(const struct type *type, struct view *payload)
{
	struct view text = type->fields;
	struct field f;

	while (take_field(&text, &f) && take_value(payload, &f)) {
		putchar(' ');
		print_word(stdout, f.name);
		putchar('=');
		print_value(stdout, &f);
	}
}

static void show_text(const struct event *e)
{
	const struct record *r = &e->record;
	bool cut = r->bits & RECORD_CUT;
	struct view payload = r->payload;
	char room[32];

	printf("%" PRIu64 " %u %u ", e->time, e->thread.pid, e->thread.tid);
	print_word(stdout, name_of_type(r->type, room, sizeof(room)));
	if (r->cpu == 0xffff)
		printf(" -");
	else
		printf(" %u", r->cpu);
	printf(" 0x%" PRIx64 " %s", r->address, cut ? e->late ? "cl" : "c" : e->late ? "l" : "-");
	show_fields(&types[r->type], &payload);
	if (payload.size > 0)
		putchar(' ');
	print_hex(stdout, payload);
	putchar('\n');
}

static void show_time(uint64_t ticks)
{
	int64_t ns = ns_of(ticks), day = origin.real + ns;
	time_t seconds = scale(day, 1, NS_PER_S);
	struct tm tm = {0};

	gmtime_r(&seconds, &tm);
	printf("\"time\":\"%04d-%02d-%02dT%02d:%02d:%02d.%09dZ\",\"ns\":%" PRId64,
		tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
		(int)(day - seconds * NS_PER_S), ns);
}

static void show_json_fields(const struct type *type, struct view *payload)
{
	struct view text = type->fields;
	struct field f;
	const char *comma = "";

	printf(",\"fields\":{");
	while (take_field(&text, &f) && take_value(payload, &f)) {
		fputs(comma, stdout);
		print_json(stdout, f.name);
		putchar(':');
		print_value(stdout, &f);
		comma = ",";
	}
	putchar('}');
}

static void show_json(const struct event *e)
{
	const struct record *r = &e->record;
	bool cut = r->bits & RECORD_CUT;
	const struct type *type = &types[r->type];
	struct view payload = r->payload;
	char room[32];

	putchar('{');
	show_time(e->time);
	if (r->cpu != 0xffff)
		printf(",\"cpu\":%u", r->cpu);
	printf(",\"pid\":%u,\"tid\":%u,\"thread\":", e->thread.pid, e->thread.tid);
	print_json(stdout, name_of(e->thread));
	printf(",\"event\":");
	print_json(stdout, name_of_type(r->type, room, sizeof(room)));
	printf(",\"address\":\"0x%" PRIx64 "\"", r->address);
	if (has_fields(type))
		show_json_fields(type, &payload);
	if (!has_fields(type) || payload.size > 0) {
		printf(",\"data\":\"");
		print_hex(stdout, payload);
		putchar('"');
	}
	printf("%s%s}\n", cut ? ",\"cut\":true" : "", e->late ? ",\"late\":true" : "");
}

static void show_event(const struct event *e)
{
	if (mode == MODE_EVENTS)
		show_json(e);
	else
		show_text(e);
}

static void show_loss(const struct packet *p)
{
	struct view rest = p->body, entry;

	while (take_entry(p, &rest, &entry)) {
		uint64_t lost = u64(entry, 8);
		uint32_t cause = u32(entry, 0);

		if (mode != MODE_EVENTS) {
			fprintf(losses, "lost %" PRIu64 " cause %u from %" PRIu64 " to %" PRIu64 "\n",
				lost, cause, p->begin, p->end);
			continue;
		}
		putchar('{');
		show_time(p->begin);
		printf(",\"until_ns\":%" PRId64 ",\"lost\":%" PRIu64 ",\"cause\":%u}\n",
			ns_of(p->end), lost, cause);
	}
}

/* The order of events: section 6 */

static struct run *heap;  /* heap[0] is next, heap[i] before heap[2 * i + 1] and heap[2 * i + 2] */
static size_t n_heap;
static uint64_t horizon, last_time;
static bool has_horizon, running = true;

/* Of runs of equal time the one that lies first in the file is next. */
static bool before(const struct run *a, const struct run *b)
{
	return a->time != b->time ? a->time < b->time : a->packet < b->packet;
}

static void swap(struct run *a, struct run *b)
{
	struct run c = *a;

	*a = *b;
	*b = c;
}

static void heap_down(size_t i)
{
	for (;;) {
		size_t first = i;
		for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < n_heap; child++)
			if (before(&heap[child], &heap[first]))
				first = child;
		if (first == i)
			return;
		swap(&heap[i], &heap[first]);
		i = first;
	}
}

static void heap_add(const struct packet *p)
{
	heap = grow(heap, n_heap, sizeof(*heap));
	heap[n_heap] = (struct run){.time = p->begin, .packet = p};
	for (size_t i = n_heap++; i > 0 && before(&heap[i], &heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&heap[i], &heap[(i - 1) / 2]);
}

static void heap_remove_first(void)
{
	heap[0] = heap[--n_heap];
	heap_down(0);
}

static void give_out(struct event *e)
{
	uint16_t type = e->record.type;

	if (has_horizon && e->time <= horizon) {
		running = true;
		return;
	}
	if (type == START_EVENT || type == STOP_EVENT)
		running = type == START_EVENT;
	if (!running && type >= FIRST_USER_EVENT)
		return;
	e->late = e->time < last_time;
	if (e->late)
		e->time = last_time;
	last_time = e->time;
	show_event(e);
}

static void give_out_until(uint64_t limit)
{
	while (n_heap > 0 && heap[0].time <= limit) {
		struct run *r = &heap[0];
		int what;

		if (r->packet->kind == LOSS) {
			show_loss(r->packet);
			what = RUN_END;
		} else if (!r->open) {
			what = run_open(r);
		} else {
			give_out(&r->event);
			what = run_next(r);
		}
		if (what == RUN_DAMAGED)
			running = true;
		if (what == RUN_EVENT)
			heap_down(0);
		else
			heap_remove_first();
	}
}

static void meet_loss(const struct packet *p)
{
	struct view rest = p->body, entry;

	while (take_entry(p, &rest, &entry)) {
		uint32_t cause = u32(entry, 0);

		if (cause != LOSS_FULL)
			running = true;
		if (cause == LOSS_OVERWRITTEN && (!has_horizon || p->end > horizon)) {
			has_horizon = true;
			horizon = p->end;
		}
	}
}

static void merge(void)
{
	uint64_t mark = 0;

	for (size_t i = 0; i < n_packets; i++) {
		const struct packet *p = &packets[i];

		if (p->gap || (!p->good && (p->kind != EVENTS || p->flags != 0)))
			running = true;
		if (p->flags != 0)
			continue;
		if (p->kind == EVENTS || (p->kind == LOSS && p->good))
			heap_add(p);
		if (p->kind == LOSS && p->good)
			meet_loss(p);
		if (p->kind == MARK && p->good) {
			mark = p->end > mark ? p->end : mark;
			give_out_until(mark);
		}
	}
	running = true;  /* a START may not have come into the file */
	give_out_until(UINT64_MAX);
}

/* --raw */

static void raw_record(const struct record *r)
{
	char room[32];

	printf("  0x%zx ", (size_t)(r->payload.at - RECORD_HEAD_BYTES - file.at));
	if (r->bits & RECORD_NOTE)
		printf("note-%u", r->type);
	else
		print_word(stdout, name_of_type(r->type, room, sizeof(room)));
	printf(" ticks +%u cpu %u address 0x%" PRIx64 "%s ", r->ticks, r->cpu, r->address,
		r->bits & RECORD_CUT ? " cut" : "");
	print_hex(stdout, r->payload);
	putchar('\n');
}

static void raw_events(const struct packet *p)
{
	struct view body = p->body;
	struct thread t = thread_of(part(body, 16, THREAD_BYTES));
	struct record record;
	size_t size;

	printf("  base %" PRIu64 " writer %u events %u thread %u/%u ", u64(body, 0), u32(body, 8),
		u32(body, 12), t.pid, t.tid);
	print_word(stdout, t.name);
	putchar('\n');
	for (struct view rest = behind(body, EVENTS_HEAD_BYTES); rest.size > 0;
			rest = behind(rest, size)) {
		size = record_at(rest, &record);
		if (size == 0) {
			problem(p, "a record at 0x%zx is wrong", (size_t)(rest.at - file.at));
			break;
		}
		raw_record(&record);
	}
}

static void raw_list(const struct packet *p)
{
	struct view rest = p->body, entry;

	while (take_entry(p, &rest, &entry)) {
		printf("  ");
		print_hex(stdout, entry);
		putchar('\n');
	}
}

static void show_raw(void)
{
	static const char *const names[] = {"?", "EVENTS", "MARK", "TYPES", "SNAPSHOT", "LOSS",
		"PROCESS", "THREADS", "END"};

	for (size_t i = 0; i < n_packets; i++) {
		const struct packet *p = &packets[i];

		printf("packet %" PRIu64 " at 0x%zx %s kind %u flags %u bytes %zu from %" PRIu64
		       " to %" PRIu64 "%s%s\n", p->number, p->offset,
			names[p->kind <= END ? p->kind : 0], p->kind, p->flags, p->body.size, p->begin,
			p->end, p->gap ? " gap" : "", p->good ? "" : " damaged");
		if (!p->good || p->flags != 0)
			continue;
		if (p->kind == EVENTS)
			raw_events(p);
		else
			raw_list(p);
	}
}

/* The file: section 1 */

static void read_file(const char *path)
{
	uint8_t *at = NULL;
	size_t size = 0, room = 0;
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die(path);
	do {
		if (size == room) {
			room = room ? 2 * room : 1 << 16;
			at = realloc(at, room);
			if (!at)
				die("memory");
		}
		n = read(fd, at + size, room - size);
		if (n < 0)
			die(path);
		size += n;
	} while (n > 0);
	close(fd);
	file = (struct view){at, size};
}

static bool has_magic(struct view head)
{
	static const uint8_t magic[] = {0x89, 'K', 'L', 'Y', 0x0d, 0x0a, 0x1a, 0x0a};

	return head.size >= sizeof(magic) && memcmp(head.at, magic, sizeof(magic)) == 0;
}

/* Where the packets begin. */
static size_t read_head(struct view head)
{
	big_endian = u32(head, 16) == 0x04030201;
	head_good = has_magic(head) && crc32c(part(head, 0, 508)) == u32(head, 508);
	if (!head_good) {
		problem(NULL, "the head is damaged");
		return HEAD_BYTES;
	}
	if (u32(head, 8) != 1) {
		fprintf(stderr, "logdump: version %u of the format is unknown\n", u32(head, 8));
		exit(1);
	}
	if (u64(head, 32) > 0)
		ticks_per_s = u64(head, 32);
	if (u32(head, 12) < HEAD_BYTES || u32(head, 12) % 8 != 0) {
		problem(NULL, "packets can't begin at %u", u32(head, 12));
		return HEAD_BYTES;
	}
	return u32(head, 12);
}

static void dump(const char *path)
{
	read_file(path);
	find_packets(read_head(part(file, 0, HEAD_BYTES)));
	if (n_packets == 0 && !has_magic(file)) {
		fprintf(stderr, "logdump: %s: not a kilroy log\n", path);
		exit(1);
	}
	if (n_packets == 0 || packets[n_packets - 1].kind != END || !packets[n_packets - 1].good)
		problem(NULL, "the end is missing");
	explain_all();
	if (mode == MODE_RAW)
		show_raw();
	else
		merge();
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--raw") == 0)
		mode = MODE_RAW;
	else if (argc == 3 && strcmp(argv[1], "--events") == 0)
		mode = MODE_EVENTS;
	else if (argc != 2 || argv[1][0] == '-') {
		fprintf(stderr, "usage: logdump [--raw | --events] FILE\n");
		return 2;
	}
	losses = open_memstream(&loss_lines, &loss_lines_size);
	problems = open_memstream(&problem_lines, &problem_lines_size);
	if (!losses || !problems)
		die("memory");
	dump(argv[argc - 1]);
	if (fclose(losses) != 0 || fclose(problems) != 0)
		die("memory");
	fwrite(loss_lines, 1, loss_lines_size, stdout);
	fwrite(problem_lines, 1, problem_lines_size, stdout);
	if (fflush(stdout) != 0)
		die("standard output");
	return status;
}
