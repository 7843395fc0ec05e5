/* SPDX-License-Identifier: MIT */
/*
 * makelog NAME FILE: writes a small log that is the same in every run. Which there are: `logs`.
 *
 * The clock counts nanoseconds; the log starts at tick 1,000,000,000, on 2026-11-30 at 23:59:59
 * UTC.
 */
#include "base/util.h"
#include "log/writer.h"
#include "wire/stream.h"

#include "../unit/runs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define START UINT64_C(1000000000)
#define START_REALTIME UINT64_C(1796083199000000000)

enum {
	REQUEST = KLY_TYPE_USER,
	NOTE,
	NUMBERS,
	FORMATS,
	HOSTILE,
};

static const struct kly_log_type types[] = {
	{REQUEST, "server.request", "u32 id\nstr path\n"},
	{NOTE, "note", ""},
	{NUMBERS, "numbers",
		"u8 a\nu16 b\nu32 c\nu64 d\ni8 e\ni16 f\ni32 g\ni64 h\nf64 i\nptr j\nstr k\nbytes l\n"},
	{FORMATS, "formats",
		"u32 hex %08x\ni8 signed_hex %#hhx\nf64 fixed %.3f\nu32 wide %99999d\n"
		"u32 wrong %s\nu32 two %d%n\ni32 star %*d\n"},
	{HOSTILE, "evil\033[2J\xff", "str x\033[31m\nstr \"\n"},
};

/* A payload that is being put together. */
static uint8_t payload[4096];
static uint16_t payload_len;

static void put(const void *data, size_t len)
{
	memcpy(payload + payload_len, data, len);
	payload_len = (uint16_t)(payload_len + len);
}

static void put_number(uint64_t value, size_t size)
{
	put(&value, size);
}

static void put_text(const char *text, size_t len)
{
	put_number(len, 2);
	put(text, len);
}

/* The log and the run that is being filled. */
static struct kly_log_writer *writer;
static struct run_builder run;
static struct kly_wire_log_run run_head;
static uint64_t first, last;
static uint32_t next_request;

static void check(int r)
{
	if (r == 0)
		return;
	fprintf(stderr, "makelog: %s\n", strerror(-r));
	exit(1);
}

static void begin_run(uint32_t tid, const char *name)
{
	run = (struct run_builder){.base = START};
	run_head = (struct kly_wire_log_run){
		.base = START, .slot = tid, .thread = {.pid = 100, .tid = tid}};
	strncpy(run_head.thread.name, name, sizeof(run_head.thread.name) - 1);
	first = UINT64_MAX;
}

/* An event with the payload, so many nanoseconds after the start. */
static void event(uint16_t type, uint32_t ns)
{
	first = kly_min(first, START + ns);
	last = START + ns;
	put_record(&run, type, ns, payload, payload_len);
	run_head.events++;
	payload_len = 0;
}

static void end_run(void)
{
	check(kly_log_writer_events(writer, &run_head, run.bytes, run.size, first, last));
}

static void request(uint32_t ns, const char *path)
{
	put_number(next_request++, 4);
	put_text(path, strlen(path));
	event(REQUEST, ns);
}

static void mark(uint32_t ns)
{
	check(kly_log_writer_mark(writer, START + ns));
}

static void lose(uint32_t cause, uint64_t events, uint32_t begin_ns, uint32_t end_ns)
{
	const struct kly_log_loss loss = {cause, events, START + begin_ns, START + end_ns};

	check(kly_log_writer_loss(writer, &loss));
}

/* Two threads in turn, over midnight. */
static void make_threads(void)
{
	begin_run(100, "server");
	request(1000, "/");
	request(2500, "/index.html");
	request(1000000000, "/after/midnight");
	end_run();
	begin_run(101, "worker 1");
	request(2000, "/a");
	request(999999999, "/before/midnight");
	end_run();
	mark(1000000000);
}

/* Every type of a field, at both ends of its range; a payload that ends early, one that goes on. */
static void make_fields(void)
{
	static const double floats[] = {0.1, -1e300};

	begin_run(100, "server");
	for (int i = 0; i < 2; i++) {
		uint64_t least = i == 0 ? 0 : UINT64_MAX,
			 most_signed = i == 0 ? INT64_MAX : (uint64_t)INT64_MIN;
		for (size_t size = 1; size <= 8; size *= 2)
			put_number(least, size);
		for (size_t size = 1; size <= 8; size *= 2)
			put_number(most_signed >> (64 - 8 * size), size);
		put(&floats[i], 8);
		put_number(0x7fffdeadbeef, 8);
		put_text("say \"hi\"\n", 9);
		put_text("\x00\xff", 2);
		event(NUMBERS, 1000 + (uint32_t)i);
	}
	put_number(7, 1);
	put_number(8, 2);
	event(NUMBERS, 2000);
	put_number(9, 4);
	put_text("/more", 5);
	put_number(0x64636261, 4);
	event(REQUEST, 3000);
	put_number(9, 4);
	put_number(100, 2);
	put("cut off", 7);
	event(REQUEST | KLY_REC_TRUNCATED, 4000);
	put_number(0xbeef, 4);
	put_number(0xff, 1);
	put(&floats[0], 8);
	put_number(1, 4);
	put_number(2, 4);
	put_number(3, 4);
	put_number(4, 4);
	event(FORMATS, 5000);
	end_run();
	mark(5000);
}

/* Payloads without fields, and a type that nobody defined. */
static void make_bytes(void)
{
	begin_run(100, "server");
	event(NOTE, 1000);
	put("one\n", 4);
	event(NOTE, 2000);
	put("0123456789abcdef", 16);
	event(NOTE, 3000);
	put("The quick brown fox jumps over the lazy dog", 43);
	event(NOTE, 4000);
	put("?", 1);
	event(3000, 5000);
	end_run();
	mark(5000);
}

static void make_losses(void)
{
	begin_run(100, "server");
	request(1000, "/a");
	request(5000, "/b");
	request(9000, "/c");
	end_run();
	lose(KLY_LOSS_FULL, 7, 2000, 4000);
	lose(KLY_LOSS_DEPTH, 1, 6000, 6000);
	lose(99, 2, 6000, 7000);
	mark(9000);
	begin_run(101, "worker 1");
	request(8000, "/late");
	end_run();
	mark(10000);
}

/* Text that would harm a terminal, or a reader of JSON. */
static void make_hostile(void)
{
	begin_run(100, "a\033]0;b\007\xff");
	put_text("\033[2J\r\xc2\x9b\xc3", 8);
	put_text("\xe2\x82\xac\"\\", 5);
	event(HOSTILE, 1000);
	end_run();
	mark(1000);
}

/* Sets of types: none, one that has a name, many that have none, and one that is cut. */
static void make_filters(void)
{
	static const struct kly_log_type predefined[] = {
		{KLY_TYPE_START, "posix_trace_start", ""},
		{KLY_TYPE_FILTER, "posix_trace_filter", ""},
	};
	static uint8_t set[KLY_TYPES_MAX / 8];

	check(kly_log_writer_types(writer, START, predefined, KLY_COUNT(predefined)));
	begin_run(100, "server");
	put(set, sizeof(set));
	event(KLY_TYPE_START, 1000);
	set[NOTE / 8] = 1 << NOTE % 8;
	put(set, sizeof(set));
	event(KLY_TYPE_FILTER, 2000);
	set[0] = 0x30;
	put(set, sizeof(set));
	event(KLY_TYPE_FILTER, 3000);
	put(set, 8);
	event(KLY_TYPE_FILTER | KLY_REC_TRUNCATED, 4000);
	end_run();
	mark(4000);
}

static const struct {
	const char *name;
	void (*make)(void);
} logs[] = {
	{"threads", make_threads},
	{"fields", make_fields},
	{"bytes", make_bytes},
	{"losses", make_losses},
	{"hostile", make_hostile},
	{"filters", make_filters},
};

int main(int argc, char **argv)
{
	static const char args[] = "server\0-p\0"
				   "80";
	const struct kly_wire_snapshot created = {START, START, START, START_REALTIME};
	const struct kly_log_process process = {.pid = 100,
		.own_pid = 100,
		.exe = "/usr/bin/server",
		.args = args,
		.args_bytes = sizeof(args)};
	struct kly_wire_log_head head = {
		.machine = 62,
		.ticks_per_second = 1000000000,
		.clock = KLY_CLOCK_GETTIME,
		.policy = KLY_POLICY_LOOP,
		.max_data = 4096,
		.pid = 100,
		.created = created,
		.name = "golden",
		.writer = "makelog",
	};

	if (argc != 3)
		return 2;
	int fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return 1;
	check(kly_log_writer_open(fd, &head, &writer));
	check(kly_log_writer_snapshot(writer, &created));
	check(kly_log_writer_processes(writer, START, &process, 1));
	check(kly_log_writer_types(writer, START, types, KLY_COUNT(types)));
	for (size_t i = 0; i < KLY_COUNT(logs); i++)
		if (strcmp(logs[i].name, argv[1]) == 0)
			logs[i].make();
	check(kly_log_writer_close(writer, START + 2000000000, false));
	close(fd);
	return 0;
}
