/* SPDX-License-Identifier: MIT */
/* Tests src/core/stream.c: geometry, reservation, and what is not mapped. */
#include "bed.h"
#include "tap.h"

#include "trace.h"

#include <sys/stat.h>

static const struct {
	uint64_t min_bytes;
	uint32_t max_data;
} sizes[] = {
	{1, 1}, {4096, 1}, {4096, 4096}, {4096, 65535}, {65536, 100}, {256 << 10, 4096},
	{(256 << 10) + 1, 4096}, {1 << 20, 4096}, {1 << 20, 65535}, {64 << 20, 4096},
	{UINT64_C(1) << 30, 4096}, {UINT64_C(1) << 30, 65535},
};

TEST(N_14_every_size_gives_chunks_that_hold_two_of_the_largest_records)
{
	for (size_t i = 0; i < KLY_COUNT(sizes); i++) {
		const struct kly_stream_options o = {
			.min_bytes = sizes[i].min_bytes, .max_data = sizes[i].max_data};
		struct kly_stream s;
		int fd = memfd_create("stream", MFD_CLOEXEC);

		if (sizes[i].min_bytes > (64 << 20)) {
			(void)close(fd); /* not reserved here: it would take a gigabyte */
			continue;
		}
		CHECK_INT(kly_stream_create(fd, &o, &s), 0);
		CHECK_INT(s.chunk_bytes % 4096, 0);
		CHECK(s.chunk_bytes >= 2 * kly_record_max(s.max_data));
		CHECK(s.base_chunks <= 1024);
		CHECK((uint64_t)s.base_chunks * s.chunk_bytes >= sizes[i].min_bytes);
		CHECK_INT(s.head->max_data, sizes[i].max_data);
		kly_stream_unmap(&s);
		(void)close(fd);
	}
}

TEST(ATTR_17_data_beyond_65535_bytes_is_refused)
{
	const struct kly_stream_options o = {.max_data = 65536};
	struct kly_stream s;
	int fd = memfd_create("stream", MFD_CLOEXEC);

	CHECK_INT(kly_stream_create(fd, &o, &s), -EINVAL);
	(void)close(fd);
}

TEST(CREATE_12_a_size_that_nobody_can_have_is_an_error)
{
	const struct kly_stream_options o = {.min_bytes = UINT64_C(1) << 62};
	struct kly_stream s;
	int fd = memfd_create("stream", MFD_CLOEXEC);

	CHECK(kly_stream_create(fd, &o, &s) < 0);
	(void)close(fd);
}

TEST(N_15_what_is_promised_at_creation_is_reserved_and_the_rest_is_sparse)
{
	const struct kly_stream_options o = {.min_bytes = 1 << 20};
	struct kly_stream s;
	struct stat st;
	int fd = memfd_create("stream", MFD_CLOEXEC);

	CHECK_INT(kly_stream_create(fd, &o, &s), 0);
	CHECK_INT(fstat(fd, &st), 0);
	uint64_t have = (uint64_t)st.st_blocks * 512;
	CHECK(have >= (uint64_t)s.base_chunks * s.chunk_bytes);
	CHECK(have < (uint64_t)st.st_size);
	CHECK(s.shared->reserved_chunks >= s.base_chunks);
	kly_stream_unmap(&s);
	(void)close(fd);
}

TEST(a_second_mapping_finds_the_same_geometry)
{
	const struct kly_stream_options o = {
		.name = "twice", .min_bytes = 100000, .max_data = 500, .policy = KLY_POLICY_UNTIL_FULL};
	struct kly_stream a, b;
	int fd = memfd_create("stream", MFD_CLOEXEC);

	CHECK_INT(kly_stream_create(fd, &o, &a), 0);
	CHECK_INT(kly_stream_map(fd, &b), 0);
	CHECK_INT(b.chunk_bytes, a.chunk_bytes);
	CHECK_INT(b.chunk_count, a.chunk_count);
	CHECK_INT(b.policy, KLY_POLICY_UNTIL_FULL);
	CHECK_STR(b.head->name, "twice");
	CHECK(b.serial != a.serial);
	kly_stream_unmap(&a);
	kly_stream_unmap(&b);
	(void)close(fd);
}

/* Each member of the header that steers a writer, with values that would lead it astray. */
TEST(N_03_headers_that_would_lead_a_writer_astray_are_refused)
{
	const struct kly_stream_options o = {.min_bytes = 65536};
	struct kly_stream s, other;
	struct kly_wire_stream good;
	int fd = memfd_create("stream", MFD_CLOEXEC);

	CHECK_INT(kly_stream_create(fd, &o, &s), 0);
	good = *s.head;
	struct kly_wire_stream *head = (struct kly_wire_stream *)(uintptr_t)s.head;
#define REFUSES(member, value)                                                                     \
	do {                                                                                       \
		head->member = (value);                                                            \
		CHECK_INT(kly_stream_map(fd, &other), -EBADMSG);                                   \
		*head = good;                                                                      \
	} while (0)
	REFUSES(magic, 0);
	REFUSES(version, 2);
	REFUSES(total_bytes, good.total_bytes + 4096);
	REFUSES(chunk_bytes, 0);
	REFUSES(chunk_bytes, good.chunk_bytes * 2);
	REFUSES(chunk_bytes, 4097);
	REFUSES(chunk_bytes, UINT32_MAX & ~4095u);
	REFUSES(chunk_count, 0);
	REFUSES(chunk_count, good.chunk_count + 1);
	REFUSES(chunk_count, UINT32_MAX);
	REFUSES(slot_count, 0);
	REFUSES(slot_count, UINT32_MAX);
	REFUSES(base_chunks, 0);
	REFUSES(base_chunks, good.chunk_count + 1);
	REFUSES(max_data, 0);
	REFUSES(max_data, 65536);
	REFUSES(max_data, 60000);
	REFUSES(policy, 0);
	REFUSES(policy, 9);
	REFUSES(clock, 0);
	REFUSES(lanes_offset, good.lanes_offset + 8);
	REFUSES(words_offset, 0);
	REFUSES(chunks_offset, good.chunks_offset - 4096);
	CHECK_INT(kly_stream_map(fd, &other), 0);
	kly_stream_unmap(&other);
	kly_stream_unmap(&s);
	(void)close(fd);
}

TEST(a_file_that_is_cut_or_empty_is_refused)
{
	const struct kly_stream_options o = {.min_bytes = 65536};
	struct kly_stream s, other;
	int fd = memfd_create("stream", MFD_CLOEXEC);

	CHECK_INT(kly_stream_map(fd, &other), -EBADMSG);
	CHECK_INT(kly_stream_create(fd, &o, &s), 0);
	kly_stream_unmap(&s);
	CHECK_INT(ftruncate(fd, 8192), 0);
	CHECK_INT(kly_stream_map(fd, &other), -EBADMSG);
	(void)close(fd);
}

static const char byte_of_data[1] = {1};

static void record(uint32_t type, size_t len)
{
	static const char data[65536];

	posix_trace_event(type, len == 1 ? byte_of_data : data, len);
}

static uint32_t open_type(const char *name)
{
	uint32_t type = 0;

	(void)kly_process_open_type(name, NULL, &type);
	return type;
}

/* The greatest sum of event sizes that the promise covers, written by one thread. */
static uint64_t write_promised(uint32_t type, uint64_t min_bytes, size_t len)
{
	uint64_t n = 0;

	for (uint64_t left = min_bytes; left >= kly_event_max(len); left -= kly_event_max(len), n++)
		record(type, len);
	return n;
}

TEST(SIZE_01_events_whose_sizes_sum_to_the_stream_size_are_all_kept)
{
	static const size_t lengths[] = {0, 1, 7, 8, 9, 100, 4095, 4096};
	uint32_t type = open_type("stream.promise");

	for (size_t i = 0; i < KLY_COUNT(lengths); i++) {
		const struct kly_stream_options o = {
			.min_bytes = 65536, .policy = KLY_POLICY_UNTIL_FULL};
		struct kly_event event;
		struct bed b;
		uint64_t seen = 0;

		CHECK_INT(bed_open(&b, &o), 0);
		bed_start(&b);
		uint64_t made = write_promised(type, o.min_bytes, lengths[i]);
		while (bed_next(&b, &event))
			seen++;
		CHECK_INT(seen, made);
		CHECK_INT(bed_lost_all(&b), 0);
		bed_close(&b);
	}
}

TEST(N_13_a_lone_writer_fills_a_small_stream_when_its_owner_expects)
{
	const struct kly_stream_options o = {
		.min_bytes = 4096, .max_data = 256, .policy = KLY_POLICY_UNTIL_FULL};
	uint32_t type = open_type("stream.lone");
	uint64_t bytes = 0;
	struct bed b;

	CHECK_INT(bed_open(&b, &o), 0);
	bed_start(&b);
	while (kly_state_of(b.stream->shared->state) == KLY_STATE_RUNNING) {
		record(type, 8);
		bytes += kly_rec_size(8);
	}
	CHECK(bytes >= o.min_bytes);
	CHECK(bytes <= o.min_bytes + 4 * b.stream->chunk_bytes);
	bed_close(&b);
}

TEST(SIZE_04_what_was_read_gives_its_room_back)
{
	const struct kly_stream_options o = {
		.min_bytes = 4096, .max_data = 256, .policy = KLY_POLICY_UNTIL_FULL};
	uint32_t type = open_type("stream.again");
	struct kly_event event;
	struct bed b;

	CHECK_INT(bed_open(&b, &o), 0);
	bed_start(&b);
	for (int i = 0; i < 20000; i++) {
		record(type, (size_t)i % 257);
		CHECK(bed_next(&b, &event));
		CHECK_INT(event.len, i % 257);
	}
	CHECK_INT(bed_lost_all(&b), 0);
	bed_close(&b);
}

TEST(TRUNC_02_longer_data_is_cut_and_marked)
{
	const struct kly_stream_options o = {.max_data = 100};
	uint32_t type = open_type("stream.long");
	struct kly_event event;
	struct bed b;

	CHECK_INT(bed_open(&b, &o), 0);
	bed_start(&b);
	record(type, 100);
	record(type, 101);
	CHECK(bed_next(&b, &event));
	CHECK(event.len == 100 && !(event.flags & KLY_EVENT_TRUNCATED));
	CHECK(bed_next(&b, &event));
	CHECK(event.len == 100 && event.flags & KLY_EVENT_TRUNCATED);
	bed_close(&b);
}

TEST_MAIN()
