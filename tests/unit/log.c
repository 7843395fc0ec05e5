/* SPDX-License-Identifier: MIT */
#include "log/reader.h"
#include "log/writer.h"

#include "arch/crc32c.h"
#include "base/util.h"
#include "wire/stream.h"

#include "runs.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define USER KLY_TYPE_USER
#define SECOND UINT64_C(1000000000)

static const struct kly_wire_log_head head_template = {
	.machine = 62,
	.stream_id = 0x1234,
	.ticks_per_second = SECOND,
	.clock = KLY_CLOCK_TSC,
	.policy = KLY_POLICY_FLUSH,
	.pid = 4242,
	.created = {1000, 5 * SECOND, 6 * SECOND, 1700000000 * SECOND},
	.boot_id = "01234567-89ab-cdef-0123-456789abcdef",
	.name = "test",
	.writer = "unit test",
};

static int new_file(void)
{
	return memfd_create("log", MFD_CLOEXEC);
}

/* A run of user events at the times of a list that ends with 0; payloads are the times. */
static int append_run(struct kly_log_writer *w, uint32_t tid, const uint64_t *times)
{
	static struct run_builder b;
	struct kly_wire_log_run run = {
		.base = times[0], .slot = tid, .thread = {.pid = 1, .tid = tid}};
	uint64_t last = 0;

	b.base = times[0];
	b.size = 0;
	for (const uint64_t *t = times; *t; t++, run.events++)
		put_event(&b, USER, last = *t);
	return kly_log_writer_events(w, &run, b.bytes, b.size, times[0], last);
}
#define APPEND(w, tid, ...) append_run((w), (tid), (const uint64_t[]){__VA_ARGS__, 0})

static int append_loss(struct kly_log_writer *w, uint32_t cause, uint64_t begin, uint64_t end)
{
	const struct kly_log_loss loss = {.cause = cause, .events = 5, .begin = begin, .end = end};

	return kly_log_writer_loss(w, &loss);
}

static struct kly_log_writer *start_log(int fd)
{
	struct kly_log_writer *w = NULL;

	(void)kly_log_writer_open(fd, &head_template, &w);
	return w;
}

static struct kly_log_reader *open_log(int fd)
{
	struct kly_log_reader *log = NULL;

	(void)kly_log_reader_open_fd(fd, &log);
	return log;
}

/* The times of all events, as text. */
static const char *times_of(struct kly_log_reader *log)
{
	static char text[8192];
	size_t n = 0;
	struct kly_event e;

	text[0] = '\0';
	while (log && kly_log_reader_next(log, &e) > 0 && n < sizeof(text) - 32)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%llu%s", n ? " " : "",
			(unsigned long long)e.ticks, e.flags & KLY_EVENT_LATE ? "L" : "");
	return text;
}

/* All problems, a line each. */
static const char *problems_of(const struct kly_log_reader *log)
{
	static char text[8192];
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < kly_log_reader_problems(log) && n < sizeof(text) - 128; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? "\n" : "",
			kly_log_reader_problem(log, i)->text);
	return text;
}

/* What a file is read as: "times | problems". */
static const char *reading_of(int fd)
{
	static char text[16384];
	struct kly_log_reader *log = open_log(fd);
	if (!log)
		return "no log";

	const char *times = times_of(log);
	snprintf(text, sizeof(text), "%s | %s", times, problems_of(log));
	kly_log_reader_close(log);
	return text;
}

/*
 * A log with a packet of each kind, small enough to be damaged at each byte. Where its packets end
 * is written down, and which of them are of events.
 */
enum {
	SAMPLE_MAX = 32
};
struct sample {
	int fd;
	size_t bytes;
	uint8_t *copy; /* of the file */
	size_t packets;
	size_t end[SAMPLE_MAX]; /* without padding: what must be there to be whole */
	uint32_t body[SAMPLE_MAX];
	uint32_t events[SAMPLE_MAX];
};

static void add_sample_packet(struct sample *s, struct kly_log_writer *w, uint32_t events)
{
	s->events[s->packets] = events;
	s->end[s->packets++] = kly_log_writer_bytes(w);
}

static struct sample make_sample(void)
{
	struct sample s = {.fd = new_file()};
	const struct kly_log_type types[] = {{USER, "my.event", "u64 time\n"}, {1, "start", ""}};
	const struct kly_log_process process = {
		.pid = 1, .exe = "/bin/p", .args = "p\0-x", .args_bytes = 5};
	const struct kly_wire_thread thread = {.pid = 1, .tid = 2, .name = "worker"};
	const struct kly_wire_snapshot snapshot = {900 + SECOND, 6 * SECOND, 7 * SECOND, 1};
	struct kly_log_writer *w = start_log(s.fd);

	kly_log_writer_types(w, 1000, types, 2);
	add_sample_packet(&s, w, 0);
	kly_log_writer_processes(w, 1000, &process, 1);
	add_sample_packet(&s, w, 0);
	APPEND(w, 2, 1001, 1004, 1007);
	add_sample_packet(&s, w, 3);
	APPEND(w, 3, 1002, 1003, 1009);
	add_sample_packet(&s, w, 3);
	kly_log_writer_mark(w, 1010);
	add_sample_packet(&s, w, 0);
	kly_log_writer_threads(w, 1010, &thread, 1);
	add_sample_packet(&s, w, 0);
	append_loss(w, KLY_LOSS_FULL, 1011, 1012);
	add_sample_packet(&s, w, 0);
	APPEND(w, 2, 1020, 1021);
	add_sample_packet(&s, w, 2);
	kly_log_writer_mark(w, 1030);
	add_sample_packet(&s, w, 0);
	kly_log_writer_snapshot(w, &snapshot);
	add_sample_packet(&s, w, 0);
	APPEND(w, 4, 2000);
	add_sample_packet(&s, w, 1);
	s.bytes = kly_log_writer_bytes(w) + sizeof(struct kly_wire_packet) +
		  sizeof(struct kly_wire_log_end);
	kly_log_writer_close(w, 1040, false);
	s.end[s.packets++] = s.bytes;

	s.copy = malloc(s.bytes);
	if (pread(s.fd, s.copy, s.bytes, 0) != (ssize_t)s.bytes)
		abort();
	size_t at = sizeof(struct kly_wire_log_head);
	for (size_t i = 0; i < s.packets; i++) {
		struct kly_wire_packet head;
		memcpy(&head, s.copy + at, sizeof(head));
		s.body[i] = head.body_bytes;
		at = s.end[i];
		s.end[i] -= KLY_ALIGN(head.body_bytes, 8) - head.body_bytes;
	}
	return s;
}

static void free_sample(struct sample *s)
{
	free(s->copy);
	close(s->fd);
}

static size_t sample_begin(const struct sample *s, size_t packet)
{
	return packet ? KLY_ALIGN(s->end[packet - 1], 8) : sizeof(struct kly_wire_log_head);
}

static uint32_t count_events(int fd, size_t *ret_problems)
{
	struct kly_log_reader *log = open_log(fd);
	uint32_t count = 0;
	uint64_t last = 0;
	struct kly_event e;

	*ret_problems = 0;
	if (!log)
		return 0;
	for (; kly_log_reader_next(log, &e) > 0; count++) {
		if (e.ticks < last)
			tap_failed = true;
		last = e.ticks;
	}
	*ret_problems = kly_log_reader_problems(log);
	kly_log_reader_close(log);
	return count;
}

TEST(all_that_is_written_is_read)
{
	struct sample s = make_sample();
	struct kly_log_reader *log = open_log(s.fd);
	CHECK(log);

	const struct kly_wire_log_head *head = kly_log_reader_head(log);
	CHECK_STR(head->name, "test");
	CHECK_STR(head->writer, "unit test");
	CHECK_INT(head->version, KLY_LOG_VERSION);
	CHECK_INT(head->pid, 4242);

	CHECK_STR(kly_log_reader_type(log, USER)->name, "my.event");
	CHECK_STR(kly_log_reader_type(log, USER)->fields, "u64 time\n");
	CHECK_STR(kly_log_reader_type(log, 1)->fields, "");
	CHECK(!kly_log_reader_type(log, 2));
	CHECK(!kly_log_reader_type(log, 65535));

	const struct kly_log_process *processes;
	CHECK_INT(kly_log_reader_processes(log, &processes), 1);
	CHECK_STR(processes[0].exe, "/bin/p");
	CHECK_INT(processes[0].args_bytes, 5);
	CHECK(memcmp(processes[0].args, "p\0-x", 5) == 0);

	CHECK_STR(kly_log_reader_thread(log, 1, 2)->name, "worker");
	CHECK(!kly_log_reader_thread(log, 1, 3));

	const struct kly_log_loss *losses;
	CHECK_INT(kly_log_reader_losses(log, &losses), 1);
	CHECK_INT(losses[0].cause, KLY_LOSS_FULL);
	CHECK_INT(losses[0].events, 5);
	CHECK_INT(losses[0].begin, 1011);
	CHECK_INT(losses[0].end, 1012);

	const struct kly_wire_log_end *end = kly_log_reader_end(log);
	CHECK(end);
	CHECK_INT(end->events, 9);
	CHECK_INT(end->lost[KLY_LOSS_FULL], 5);
	CHECK_INT(end->running, 0);

	uint64_t first, last;
	CHECK(kly_log_reader_span(log, &first, &last));
	CHECK_INT(first, 1001);
	CHECK_INT(last, 2000);

	/* The snapshot is a second later by the clock and 100 ticks earlier by the counter. */
	const struct kly_timeline *timeline = kly_log_reader_timeline(log);
	CHECK_INT(kly_timeline_monotonic(timeline, 900 + SECOND), 6 * SECOND);
	CHECK_INT(kly_timeline_realtime(timeline, 900 + SECOND), 1700000001 * SECOND);

	CHECK_STR(times_of(log), "1001 1002 1003 1004 1007 1009 1020 1021 2000");
	CHECK_STR(problems_of(log), "");
	kly_log_reader_close(log);
	free_sample(&s);
}

TEST(event_carries_the_thread_and_payload_of_its_record)
{
	struct sample s = make_sample();
	struct kly_log_reader *log = open_log(s.fd);
	struct kly_event e;

	CHECK_INT(kly_log_reader_next(log, &e), 1);
	CHECK_INT(kly_log_reader_next(log, &e), 1);
	CHECK_INT(e.ticks, 1002);
	CHECK_INT(e.type, USER);
	CHECK_INT(e.cpu, 3);
	CHECK_INT(e.address, 0x401000);
	CHECK_INT(e.thread->tid, 3);
	CHECK_INT(e.len, 8);
	CHECK(memcmp(e.data, &e.ticks, 8) == 0);
	CHECK((uintptr_t)e.data % 8 == 0);
	kly_log_reader_close(log);
	free_sample(&s);
}

TEST(end_of_the_log_is_told_as_often_as_asked)
{
	struct sample s = make_sample();
	struct kly_log_reader *log = open_log(s.fd);
	struct kly_event e;
	while (kly_log_reader_next(log, &e) > 0)
		;
	CHECK_INT(kly_log_reader_next(log, &e), 0);
	CHECK_INT(kly_log_reader_next(log, &e), 0);
	kly_log_reader_close(log);
	free_sample(&s);
}

TEST(rewind_starts_again_from_any_place)
{
	struct sample s = make_sample();
	struct kly_log_reader *log = open_log(s.fd);
	struct kly_event e;

	for (int stop = 0; stop < 10; stop++) {
		for (int i = 0; i < stop; i++)
			kly_log_reader_next(log, &e);
		CHECK_INT(kly_log_reader_rewind(log), 0);
		CHECK_STR(times_of(log), "1001 1002 1003 1004 1007 1009 1020 1021 2000");
		kly_log_reader_rewind(log);
	}
	kly_log_reader_close(log);
	free_sample(&s);
}

TEST(two_readers_of_a_log_are_independent)
{
	struct sample s = make_sample();
	struct kly_log_reader *a = open_log(s.fd), *b = open_log(s.fd);
	struct kly_event e, f;

	for (int i = 0; i < 5; i++)
		kly_log_reader_next(a, &e);
	kly_log_reader_next(b, &f);
	CHECK_INT(f.ticks, 1001);
	kly_log_reader_close(a);
	CHECK_STR(times_of(b), "1002 1003 1004 1007 1009 1020 1021 2000");
	kly_log_reader_close(b);
	free_sample(&s);
}

TEST(event_behind_its_mark_is_raised_to_the_time_reached)
{
	const int fd = new_file();
	struct kly_log_writer *w = start_log(fd);
	APPEND(w, 1, 10, 20, 30);
	kly_log_writer_mark(w, 25);
	APPEND(w, 2, 15, 27);
	kly_log_writer_close(w, 40, false);

	CHECK_STR(reading_of(fd), "10 20 20L 27 30 | ");
	close(fd);
}

TEST(log_of_a_killed_recorder_is_read_to_its_end)
{
	const int fd = new_file();
	struct kly_log_writer *w = start_log(fd);
	APPEND(w, 1, 10, 20);
	kly_log_writer_mark(w, 20);
	APPEND(w, 2, 31, 32);
	APPEND(w, 3, 30, 33);
	kly_log_writer_abandon(w);

	struct kly_log_reader *log = open_log(fd);
	CHECK(!kly_log_reader_end(log));
	CHECK_STR(times_of(log), "10 20 30 31 32 33");
	CHECK_STR(problems_of(log), "");
	kly_log_reader_close(log);
	close(fd);
}

TEST(log_without_packets_is_empty)
{
	const int fd = new_file();
	kly_log_writer_abandon(start_log(fd));

	struct kly_log_reader *log = open_log(fd);
	uint64_t first, last;
	CHECK(log);
	CHECK(!kly_log_reader_span(log, &first, &last));
	CHECK_STR(times_of(log), "");
	CHECK_STR(problems_of(log), "");
	kly_log_reader_close(log);
	close(fd);
}

TEST(what_was_overwritten_leaves_no_gap)
{
	const int fd = new_file();
	struct kly_log_writer *w = start_log(fd);
	APPEND(w, 1, 10, 20);
	kly_log_writer_mark(w, 20);
	append_loss(w, KLY_LOSS_OVERWRITTEN, 20, 50);
	APPEND(w, 2, 40, 50, 60);
	kly_log_writer_mark(w, 60);
	kly_log_writer_close(w, 70, false);

	CHECK_STR(reading_of(fd), "10 20 60 | ");
	close(fd);
}

static int append_control(struct kly_log_writer *w, uint16_t type, uint64_t ticks)
{
	struct run_builder b = {.base = ticks};
	const struct kly_wire_log_run run = {.base = ticks, .events = 1};

	put_event(&b, type, ticks);
	return kly_log_writer_events(w, &run, b.bytes, b.size, ticks, ticks);
}

TEST(events_of_a_stopped_stream_are_dropped)
{
	const int fd = new_file();
	struct kly_log_writer *w = start_log(fd);
	append_control(w, KLY_TYPE_STOP, 15);
	append_control(w, KLY_TYPE_START, 35);
	APPEND(w, 1, 10, 20, 30, 40);
	kly_log_writer_close(w, 70, false);

	CHECK_STR(reading_of(fd), "10 15 35 40 | ");
	close(fd);
}

TEST(loss_ends_the_stopped_state)
{
	const int fd = new_file();
	struct kly_log_writer *w = start_log(fd);
	append_control(w, KLY_TYPE_STOP, 15);
	kly_log_writer_mark(w, 15);
	append_loss(w, KLY_LOSS_OVERWRITTEN, 15, 20);
	APPEND(w, 1, 30, 40);
	kly_log_writer_close(w, 70, false);

	CHECK_STR(reading_of(fd), "15 30 40 | ");
	close(fd);
}

TEST(log_cut_at_any_byte_gives_all_whole_packets)
{
	struct sample s = make_sample();

	for (size_t cut = 0; cut < s.bytes; cut++) {
		uint32_t events = 0;
		bool clean = cut == sizeof(struct kly_wire_log_head);
		for (size_t p = 0; p < s.packets && s.end[p] <= cut; p++) {
			events += s.events[p];
			clean = cut <= KLY_ALIGN(s.end[p], 8);
		}

		const int fd = new_file();
		if (write(fd, s.copy, cut) != (ssize_t)cut)
			abort();
		size_t problems;
		const uint32_t got = count_events(fd, &problems);
		struct kly_log_reader *log = open_log(fd);
		close(fd);

		CHECK_INT(log != NULL, cut >= 8);
		CHECK_INT(got, events);
		CHECK_INT(problems, cut >= 8 && !clean);
		kly_log_reader_close(log);
	}
	free_sample(&s);
}

/* Is this byte of no meaning: padding between packets? */
static bool is_padding(const struct sample *s, size_t byte)
{
	for (size_t p = 0; p < s->packets; p++)
		if (byte >= s->end[p] && byte < KLY_ALIGN(s->end[p], 8))
			return true;
	return false;
}

TEST(log_with_any_byte_changed_gives_all_other_packets)
{
	struct sample s = make_sample();
	static const uint8_t masks[] = {0x01, 0x08, 0x80, 0xff};
	uint32_t all = 0;
	for (size_t p = 0; p < s.packets; p++)
		all += s.events[p];

	for (size_t byte = 0; byte < s.bytes; byte++)
		for (size_t m = 0; m < sizeof(masks); m++) {
			uint32_t events = all;
			for (size_t p = 0; p < s.packets; p++)
				if (byte >= sample_begin(&s, p) && byte < s.end[p])
					events -= s.events[p];

			const uint8_t changed = s.copy[byte] ^ masks[m];
			if (pwrite(s.fd, &changed, 1, (off_t)byte) != 1)
				abort();
			size_t problems;
			const uint32_t got = count_events(s.fd, &problems);
			if (pwrite(s.fd, &s.copy[byte], 1, (off_t)byte) != 1)
				abort();
			if (got != events || (problems == 0) != is_padding(&s, byte))
				TAP_FAIL("byte %zu ^ %02x: %u events, not %u; %zu problems", byte,
					masks[m], got, events, problems);
		}
	free_sample(&s);
}

TEST(damage_is_told_with_packet_and_place)
{
	struct sample s = make_sample();
	const size_t at = sample_begin(&s, 3);
	const uint8_t changed = s.copy[at + 100] ^ 1;
	char want[200];
	pwrite(s.fd, &changed, 1, (off_t)at + 100);
	snprintf(want, sizeof(want),
		"1001 1004 1007 1020 1021 2000 | packet 3 at 0x%zx: checksum mismatch", at);

	CHECK_STR(reading_of(s.fd), want);
	free_sample(&s);
}

TEST(problem_is_told_once_however_often_it_is_met)
{
	struct sample s = make_sample();
	const size_t at = sample_begin(&s, 3) + 100;
	const uint8_t changed = s.copy[at] ^ 1;
	pwrite(s.fd, &changed, 1, (off_t)at);
	struct kly_log_reader *log = open_log(s.fd);

	CHECK_INT(kly_log_reader_problems(log), 0);
	for (int i = 0; i < 3; i++) {
		CHECK_STR(times_of(log), "1001 1004 1007 1020 1021 2000");
		CHECK_INT(kly_log_reader_problems(log), 1);
		CHECK(!kly_log_reader_problem(log, 1));
		kly_log_reader_rewind(log);
	}
	kly_log_reader_close(log);
	free_sample(&s);
}

TEST(missing_packets_are_told)
{
	struct sample s = make_sample();
	const size_t from = sample_begin(&s, 2), to = sample_begin(&s, 4);
	const int fd = new_file();
	char want[200];
	write(fd, s.copy, from);
	write(fd, s.copy + to, s.bytes - to);
	snprintf(want, sizeof(want),
		"1020 1021 2000 | packet 4 at 0x%zx: packets 2 to 3 before it are missing", from);

	CHECK_STR(reading_of(fd), want);
	close(fd);
	free_sample(&s);
}

TEST(inserted_bytes_are_passed_over)
{
	struct sample s = make_sample();
	const size_t from = sample_begin(&s, 3);
	const int fd = new_file();
	char want[200];
	write(fd, s.copy, from);
	write(fd, "what is this doing here?", 24);
	write(fd, s.copy + from, s.bytes - from);
	snprintf(want, sizeof(want),
		"1001 1002 1003 1004 1007 1009 1020 1021 2000 | packet 3 at 0x%zx: damaged head",
		from);

	CHECK_STR(reading_of(fd), want);
	close(fd);
	free_sample(&s);
}

TEST(hole_in_the_middle_costs_only_its_packets)
{
	struct sample s = make_sample();
	const size_t from = sample_begin(&s, 2) + 16, to = sample_begin(&s, 6) + 8;
	const int fd = new_file();
	write(fd, s.copy, s.bytes);
	const uint8_t zeros[4096] = {0};
	pwrite(fd, zeros, to - from, (off_t)from);

	struct kly_log_reader *log = open_log(fd);
	CHECK_STR(times_of(log), "1020 1021 2000");
	CHECK_INT(kly_log_reader_problems(log), 2);
	CHECK(strstr(problems_of(log), "packets 3 to 6 before it are missing"));
	kly_log_reader_close(log);
	close(fd);
	free_sample(&s);
}

TEST(log_in_a_payload_is_not_taken_for_packets)
{
	struct sample s = make_sample();
	static struct run_builder b;
	const struct kly_wire_log_run run = {.base = 100, .events = 1};
	const int fd = new_file();
	struct kly_log_writer *w = start_log(fd);
	APPEND(w, 1, 10);
	b.base = 100;
	b.size = 0;
	put_record(&b, USER, 0, s.copy + sizeof(struct kly_wire_log_head),
		(uint16_t)(s.bytes - sizeof(struct kly_wire_log_head)));
	const uint64_t at = kly_log_writer_bytes(w);
	kly_log_writer_events(w, &run, b.bytes, b.size, 100, 100);
	APPEND(w, 1, 200);
	kly_log_writer_close(w, 300, false);
	char want[200];
	snprintf(want, sizeof(want), "10 200 | packet 1 at 0x%zx: checksum mismatch", (size_t)at);

	/* bytes of the head behind the length, and some of the body */
	for (size_t byte = 12; byte < 60; byte++) {
		uint8_t bytes[2];
		pread(fd, bytes, 1, (off_t)(at + byte));
		bytes[1] = bytes[0] ^ 0x10;
		pwrite(fd, bytes + 1, 1, (off_t)(at + byte));
		CHECK_STR(reading_of(fd), want);
		pwrite(fd, bytes, 1, (off_t)(at + byte));
	}
	close(fd);
	free_sample(&s);
}

TEST(foreign_files_are_refused)
{
	static const char *const texts[] = {"", "x", "hello, world\n", "\x89KLX\r\n\x1a\n........"};

	for (size_t i = 0; i < KLY_COUNT(texts); i++) {
		const int fd = new_file();
		struct kly_log_reader *log = NULL;
		write(fd, texts[i], strlen(texts[i]));
		const int r = kly_log_reader_open_fd(fd, &log);
		close(fd);
		CHECK_INT(r, -EBADMSG);
		CHECK(!log);
	}
	const int fd = new_file();
	uint64_t random = 77;
	for (int i = 0; i < 10000; i++) {
		next_random(&random);
		write(fd, &random, 8);
	}
	struct kly_log_reader *log = NULL;
	CHECK_INT(kly_log_reader_open_fd(fd, &log), -EBADMSG);
	close(fd);
	CHECK_INT(kly_log_reader_open("/", &log), -EISDIR);
	CHECK_INT(kly_log_reader_open("/dev/null", &log), -ESPIPE);
	CHECK_INT(kly_log_reader_open("/nonexistent", &log), -ENOENT);
	CHECK_INT(kly_log_reader_open_fd(-1, &log), -EBADF);
}

/* Changes the head of a log and makes its checksum right again. */
static void change_head(int fd, size_t offset, uint32_t value)
{
	struct kly_wire_log_head head;

	pread(fd, &head, sizeof(head), 0);
	memcpy((char *)&head + offset, &value, sizeof(value));
	head.crc = kly_crc32c(0, &head, offsetof(struct kly_wire_log_head, crc));
	pwrite(fd, &head, sizeof(head), 0);
}

TEST(other_versions_and_byte_orders_are_refused)
{
	struct kly_log_reader *log = NULL;
	struct sample s = make_sample();
	change_head(s.fd, offsetof(struct kly_wire_log_head, version), 2);
	CHECK_INT(kly_log_reader_open_fd(s.fd, &log), -EPROTONOSUPPORT);
	change_head(s.fd, offsetof(struct kly_wire_log_head, version), 1);
	change_head(s.fd, offsetof(struct kly_wire_log_head, byte_order), 0x04030201);
	CHECK_INT(kly_log_reader_open_fd(s.fd, &log), -EPROTONOSUPPORT);
	free_sample(&s);
}

TEST(random_changes_with_right_checksums_are_survived)
{
	struct sample s = make_sample();
	uint8_t *copy = malloc(s.bytes);
	uint64_t random = 20240607;

	for (int round = 0; round < 3000; round++) {
		memcpy(copy, s.copy, s.bytes);
		for (size_t p = 0; p < s.packets; p++) {
			uint8_t *at = copy + sample_begin(&s, p);
			struct kly_wire_packet head;
			memcpy(&head, at, sizeof(head));
			for (uint64_t n = next_random(&random) % 4; n && head.body_bytes; n--)
				at[sizeof(head) + next_random(&random) % head.body_bytes] =
					(uint8_t)(next_random(&random) % 3 * 127);
			if (next_random(&random) % 8 == 0)
				head.kind = (uint16_t)(next_random(&random) % 12);
			if (next_random(&random) % 8 == 0)
				head.begin = next_random(&random);
			if (next_random(&random) % 8 == 0)
				head.end = next_random(&random);
			if (next_random(&random) % 16 == 0)
				head.sequence = next_random(&random) % 16;
			if (next_random(&random) % 16 == 0)
				head.body_bytes =
					(uint32_t)(next_random(&random) % (head.body_bytes + 1));
			head.crc = kly_crc32c(0, (uint8_t *)&head + 8, sizeof(head) - 8);
			head.crc = kly_crc32c(head.crc, at + sizeof(head), head.body_bytes);
			memcpy(at, &head, sizeof(head));
		}
		pwrite(s.fd, copy, s.bytes, 0);
		struct kly_log_reader *log = open_log(s.fd);
		uint64_t last = 0;
		struct kly_event e;
		CHECK(log);
		while (kly_log_reader_next(log, &e) > 0) {
			CHECK(e.ticks >= last);
			last = e.ticks;
			CHECK(strlen(e.thread->name) < 16);
		}
		kly_log_reader_close(log);
	}
	free(copy);
	free_sample(&s);
}

TEST(a_file_of_heads_that_promise_too_much_is_read_in_time)
{
	/* 2 MiB of heads, each of 1 MiB with a wrong checksum and a possible number. */
	const size_t heads = 2 * 1024 * 1024 / sizeof(struct kly_wire_packet);
	const int fd = new_file();
	kly_log_writer_abandon(start_log(fd));
	struct kly_wire_packet *many = calloc(heads, sizeof(*many));
	for (size_t i = 0; i < heads; i++)
		many[i] = (struct kly_wire_packet){.magic = KLY_PACKET_MAGIC,
			.body_bytes = 1 << 20,
			.kind = KLY_PACKET_SNAPSHOT,
			.sequence = i};
	pwrite(fd, many, heads * sizeof(*many), 512);
	free(many);

	struct kly_log_reader *log = open_log(fd);
	CHECK_STR(times_of(log), "");
	CHECK(strstr(problems_of(log), "too much damage"));
	kly_log_reader_close(log);
	close(fd);
}

TEST(many_problems_are_cut_short)
{
	const int fd = new_file();
	struct kly_log_writer *w = start_log(fd);
	for (uint64_t i = 1; i < 3000; i++) {
		const struct kly_wire_snapshot back = {2000 + i, 5 * SECOND - i, 0, 0};
		kly_log_writer_snapshot(w, &back);
	}
	kly_log_writer_close(w, 1, false);
	struct kly_log_reader *log = open_log(fd);

	CHECK_INT(kly_log_reader_problems(log), KLY_LOG_PROBLEMS_MAX);
	CHECK(strstr(kly_log_reader_problem(log, KLY_LOG_PROBLEMS_MAX - 1)->text, "more problems"));
	kly_log_reader_close(log);
	close(fd);
}

TEST(long_lists_take_several_packets)
{
	static char names[3000][32], fields[4096];
	static struct kly_log_type types[3000];
	static struct kly_wire_thread threads[5000];
	static struct kly_log_process processes[3000];
	memset(fields, 'f', sizeof(fields) - 1);
	for (unsigned i = 0; i < 3000; i++) {
		snprintf(names[i], sizeof(names[i]), "name %u", i);
		types[i] = (struct kly_log_type){(uint16_t)(i + 1), names[i], fields};
		processes[i] = (struct kly_log_process){.pid = i, .exe = fields, .args = ""};
	}
	for (unsigned i = 0; i < 5000; i++) {
		threads[i] = (struct kly_wire_thread){.pid = 1, .tid = 5000 - i};
		snprintf(threads[i].name, 16, "t%u", 5000 - i);
	}
	const int fd = new_file();
	struct kly_log_writer *w = start_log(fd);
	CHECK_INT(kly_log_writer_types(w, 1, types, 3000), 0);
	CHECK_INT(kly_log_writer_types(w, 1, types, 3000), 0); /* again: no harm */
	CHECK_INT(kly_log_writer_processes(w, 1, processes, 3000), 0);
	CHECK_INT(kly_log_writer_threads(w, 1, threads, 5000), 0);
	strcpy(threads[77].name, "renamed");
	CHECK_INT(kly_log_writer_threads(w, 1, threads + 77, 1), 0);
	CHECK_INT(kly_log_writer_types(w, 1, NULL, 0), 0);
	CHECK_INT(kly_log_writer_close(w, 1, true), 0);

	struct kly_log_reader *log = open_log(fd);
	const struct kly_log_process *read_processes;
	CHECK_STR(problems_of(log), "");
	CHECK_STR(kly_log_reader_type(log, 3000)->name, "name 2999");
	CHECK_STR(kly_log_reader_type(log, 1)->fields, fields);
	CHECK_INT(kly_log_reader_processes(log, &read_processes), 3000);
	CHECK_STR(read_processes[2999].exe, fields);
	CHECK_STR(kly_log_reader_thread(log, 1, 4999)->name, "t4999");
	CHECK_STR(kly_log_reader_thread(log, 1, 5000 - 77)->name, "renamed");
	CHECK_INT(kly_log_reader_end(log)->running, 1);
	kly_log_reader_close(log);
	close(fd);
}

TEST(types_that_cannot_be_written_are_refused)
{
	static char name[300];
	const int fd = new_file();
	struct kly_log_writer *w = start_log(fd);
	struct kly_log_type type = {USER, "", ""};
	CHECK_INT(kly_log_writer_types(w, 1, &type, 1), -EINVAL);
	memset(name, 'n', sizeof(name) - 1);
	type.name = name;
	CHECK_INT(kly_log_writer_types(w, 1, &type, 1), -EINVAL);
	CHECK_INT(kly_log_writer_bytes(w), sizeof(struct kly_wire_log_head));
	kly_log_writer_abandon(w);
	close(fd);
}

TEST(run_that_is_too_long_is_refused)
{
	const int fd = new_file();
	struct kly_log_writer *w = start_log(fd);
	const struct kly_wire_log_run run = {0};
	void *records = calloc(1, KLY_LOG_RUN_MAX + 8);

	CHECK_INT(kly_log_writer_events(w, &run, records, KLY_LOG_RUN_MAX + 8, 1, 1), -EMSGSIZE);
	CHECK_INT(kly_log_writer_events(w, &run, records, KLY_LOG_RUN_MAX, 1, 1), 0);
	CHECK_INT(kly_log_writer_mark(w, 1), 0);
	kly_log_writer_abandon(w);
	free(records);
	char want[100];
	snprintf(want, sizeof(want), " | packet 0 at 0x200: no record at byte 0 of its records");
	CHECK_STR(reading_of(fd), want);
	close(fd);
}

TEST(old_contents_of_a_file_do_not_shine_through)
{
	static const int flags[] = {O_RDWR, O_RDWR | O_APPEND};

	for (size_t i = 0; i < KLY_COUNT(flags); i++) {
		char path[] = "/tmp/kilroy-log-XXXXXX";
		int fd = mkstemp(path);
		for (int line = 0; line < 1000; line++)
			write(fd, "old text, and a lot of it\n", 26);
		close(fd);
		fd = open(path, flags[i] | O_CLOEXEC);
		lseek(fd, 777, SEEK_SET);
		struct kly_log_writer *w = start_log(fd);
		APPEND(w, 1, 10);
		APPEND(w, 1, 20);
		kly_log_writer_abandon(w);
		const char *reading = reading_of(fd);
		const off_t offset = lseek(fd, 0, SEEK_CUR);
		close(fd);
		unlink(path);
		CHECK_STR(reading, "10 20 | ");
		CHECK(flags[i] & O_APPEND || offset == 777);
	}
}

TEST(writer_needs_a_descriptor_open_for_writing)
{
	struct kly_log_writer *w = NULL;
	const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CHECK_INT(kly_log_writer_open(fd, &head_template, &w), -EBADF);
	close(fd);
	CHECK_INT(kly_log_writer_open(fd, &head_template, &w), -EBADF);
	CHECK_INT(kly_log_writer_open(-1, &head_template, &w), -EBADF);
	CHECK(!w);
	CHECK_INT(kly_log_writer_close(NULL, 0, false), 0);
	kly_log_writer_abandon(NULL);
	kly_log_reader_close(NULL);
}

TEST(full_device_is_an_error_of_the_open)
{
	struct kly_log_writer *w = NULL;
	const int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	CHECK_INT(kly_log_writer_open(fd, &head_template, &w), -ENOSPC);
	close(fd);
}

/* Fills a log until a write fails, makes room, and goes on: the file must be whole all the time. */
static void fill_and_go_on(int fd, void (*make_room)(void *), void *context, int want_error)
{
	static struct run_builder b;
	struct kly_log_writer *w = start_log(fd);
	uint64_t ticks = 1, good = 0;
	int r;
	CHECK(w);

	do {
		const struct kly_wire_log_run run = {.base = ticks, .events = 1};
		b.base = ticks;
		b.size = 0;
		put_record(&b, USER, 0, (const uint8_t[3000]){1}, 3000);
		r = kly_log_writer_events(w, &run, b.bytes, b.size, ticks, ticks);
		good += r == 0;
		ticks += 10;
	} while (r == 0 && good < 10000);
	CHECK_INT(r, want_error);

	/* Smaller packets may find room, or fail as well. */
	r = kly_log_writer_mark(w, ticks);
	CHECK(r == 0 || r == want_error);

	struct stat status;
	size_t problems;
	fstat(fd, &status);
	CHECK_INT(status.st_size, kly_log_writer_bytes(w));
	CHECK_INT(count_events(fd, &problems), good);
	CHECK_INT(problems, 0);

	make_room(context);
	CHECK_INT(append_loss(w, KLY_LOSS_DISK, ticks, ticks), 0);
	CHECK_INT(APPEND(w, 1, ticks + 1, ticks + 2), 0);
	CHECK_INT(kly_log_writer_close(w, ticks + 3, false), 0);

	struct kly_log_reader *log = open_log(fd);
	struct kly_event e;
	uint64_t count = 0;
	CHECK(log);
	while (kly_log_reader_next(log, &e) > 0)
		count++;
	CHECK_INT(count, good + 2);
	CHECK_STR(problems_of(log), "");
	CHECK_INT(kly_log_reader_end(log)->events, good + 2);
	CHECK_INT(kly_log_reader_end(log)->lost[KLY_LOSS_DISK], 5);
	kly_log_reader_close(log);
}

static void remove_file(void *path)
{
	unlink(path);
}

TEST(full_disk_costs_what_does_not_fit_and_nothing_else)
{
	char folder[] = "/tmp/kilroy-disk-XXXXXX", log[64], ballast[64];
	CHECK(mkdtemp(folder));
	if (mount("kilroy-test", folder, "tmpfs", 0, "size=256k") < 0) {
		rmdir(folder);
		SKIP("may not mount a tmpfs");
	}
	snprintf(log, sizeof(log), "%s/log", folder);
	snprintf(ballast, sizeof(ballast), "%s/ballast", folder);
	int fd = open(ballast, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	for (int i = 0; i < 10; i++)
		write(fd, (const char[8192]){0}, 8192);
	close(fd);

	fd = open(log, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	fill_and_go_on(fd, remove_file, ballast, -ENOSPC);
	close(fd);
	umount(folder);
	rmdir(folder);
}

static void lift_limit(void *limit)
{
	setrlimit(RLIMIT_FSIZE, limit);
}

TEST(limit_of_file_size_costs_what_does_not_fit_and_nothing_else)
{
	char path[] = "/tmp/kilroy-log-XXXXXX";
	struct rlimit old, low;
	const int fd = mkstemp(path);
	unlink(path);
	getrlimit(RLIMIT_FSIZE, &old);
	low = old;
	low.rlim_cur = 100000;
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &low);
	fill_and_go_on(fd, lift_limit, &old, -EFBIG);
	setrlimit(RLIMIT_FSIZE, &old);
	signal(SIGXFSZ, SIG_DFL);
	close(fd);
}

/* Copies what comes through a pipe into a file, slowly. */
struct copier {
	int from, to;
};

static void *copy_slowly(void *argument)
{
	const struct copier *copier = argument;
	char bytes[1000];
	ssize_t n;

	while ((n = read(copier->from, bytes, sizeof(bytes))) > 0) {
		write(copier->to, bytes, (size_t)n);
		usleep(100);
	}
	return NULL;
}

TEST(log_goes_through_a_pipe)
{
	static const int flags[] = {O_CLOEXEC, O_CLOEXEC | O_NONBLOCK};

	for (size_t i = 0; i < KLY_COUNT(flags); i++) {
		int ends[2];
		pthread_t thread;
		static struct run_builder b;
		const struct kly_wire_log_run run = {.base = 1, .events = 1};
		pipe2(ends, O_CLOEXEC);
		fcntl(ends[1], F_SETFL, flags[i] & O_NONBLOCK);
		struct copier copier = {.from = ends[0], .to = new_file()};
		pthread_create(&thread, NULL, copy_slowly, &copier);

		struct kly_log_writer *w = start_log(ends[1]);
		b.size = 0;
		put_record(&b, USER, 0, (const uint8_t[15000]){1}, 15000);
		for (int k = 0; k < 20; k++)
			CHECK_INT(kly_log_writer_events(w, &run, b.bytes, b.size, 1, 1), 0);
		const uint64_t bytes = kly_log_writer_bytes(w);
		CHECK_INT(kly_log_writer_close(w, 2, false), 0);
		close(ends[1]);
		pthread_join(thread, NULL);
		close(ends[0]);

		struct stat status;
		fstat(copier.to, &status);
		CHECK_INT(status.st_size, bytes + 40 + sizeof(struct kly_wire_log_end));
		struct kly_log_reader *log = open_log(copier.to);
		CHECK_STR(times_of(log), "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1");
		CHECK_STR(problems_of(log), "");
		kly_log_reader_close(log);
		close(copier.to);
	}
}

TEST(closed_pipe_is_an_error_from_then_on)
{
	int ends[2];
	pipe2(ends, O_CLOEXEC);
	signal(SIGPIPE, SIG_IGN);
	struct kly_log_writer *w = start_log(ends[1]);
	CHECK_INT(kly_log_writer_mark(w, 1), 0);
	close(ends[0]);
	CHECK_INT(kly_log_writer_mark(w, 2), -EPIPE);
	CHECK_INT(kly_log_writer_mark(w, 3), -EPIPE);
	CHECK_INT(kly_log_writer_close(w, 4, false), -EPIPE);
	signal(SIGPIPE, SIG_DFL);
	close(ends[1]);
}

TEST(huge_file_is_opened_without_reading_it)
{
	/* 2,000 packets of 1 MiB whose bodies are holes: 2 GB that nobody wrote. */
	const int fd = new_file();
	kly_log_writer_abandon(start_log(fd));
	off_t at = 512;
	for (uint64_t i = 0; i < 2000; i++) {
		const struct kly_wire_packet head = {.magic = KLY_PACKET_MAGIC,
			.body_bytes = (1 << 20) - sizeof(head),
			.kind = KLY_PACKET_EVENTS,
			.sequence = i,
			.begin = i + 1,
			.end = i + 1};
		if (pwrite(fd, &head, sizeof(head), at) != sizeof(head)) {
			close(fd);
			SKIP("no room for heads of packets");
		}
		at += 1 << 20;
	}
	if (ftruncate(fd, at) < 0) {
		close(fd);
		SKIP("file system without large files");
	}

	struct kly_log_reader *log = open_log(fd);
	uint64_t first, last;
	CHECK(log);
	CHECK(kly_log_reader_span(log, &first, &last));
	CHECK_INT(last, 1999); /* the last one is tested, for nothing follows it */
	kly_log_reader_close(log);
	close(fd);
}

TEST_MAIN()
