/* SPDX-License-Identifier: MIT */
/* Writers with signal handlers that write, against a live reader: see load.h for what must hold. */
#include "load.h"
#include "tap.h"

#define MIB (UINT64_C(1) << 20)

/* Writers never run so far ahead of the reader that the stream could be full. */
static struct load lossless(unsigned writers)
{
	return (struct load){
		.stream = {.min_bytes = 16 * MIB, .policy = KLY_POLICY_UNTIL_FULL},
		.writers = writers,
		.events = bed_times(BED_TSAN ? 60000 : 400000, 12000000) / writers,
		.timer_us = 70 + (unsigned)(bed_seed() % 60),
		.extra = (unsigned)(bed_seed() % 700),
		.in_stream = 10000,
	};
}

static void expect_all(const struct load *load)
{
	struct verdict v;

	CHECK_INT(load_run(load, &v), 0);
	load_print(&v);
	CHECK_INT(v.torn, 0);
	CHECK_INT(v.backwards, 0);
	CHECK_INT(v.gaps, 0);
	CHECK_INT(v.causal, 0);
	CHECK_INT(v.misplaced, 0);
	CHECK_INT(v.unpaired, 0);
	CHECK_INT(v.lost_all, 0);
	CHECK_INT(v.seen, v.made);
}

TEST(one_writer_with_handlers_loses_nothing)
{
	const struct load load = lossless(1);
	expect_all(&load);
}

TEST(two_writers_with_handlers_lose_nothing)
{
	const struct load load = lossless(2);
	expect_all(&load);
}

TEST(four_writers_with_handlers_lose_nothing)
{
	const struct load load = lossless(4);
	expect_all(&load);
}

TEST(reader_that_writes_itself_misses_nothing)
{
	struct load load = lossless(2);
	load.reader_writes = true;
	expect_all(&load);
}

TEST(reader_in_another_process_misses_nothing)
{
	struct load load = lossless(3);
	load.other_process = true;
	expect_all(&load);
}

TEST(writers_that_fence_for_themselves_lose_nothing)
{
	struct load load = lossless(2);
	load.stream.flags = KLY_STREAM_STRONG;
	load.other_process = true;
	expect_all(&load);
}

TEST(small_chunks_that_change_often_lose_nothing)
{
	struct load load = lossless(4);
	load.stream.min_bytes = 256 << 10;
	load.stream.max_data = 1024;
	load.in_stream = 500;
	expect_all(&load);
}

TEST(stream_in_the_clock_of_gettime_loses_nothing)
{
	struct load load = lossless(2);
	load.events /= 4;
	(void)setenv("KILROY_CLOCK", "monotonic", 1);
	expect_all(&load);
	(void)unsetenv("KILROY_CLOCK");
}

/* What is missing is counted, by the cause that this kind of stream has; the rest is right. How much
 * is missing is a matter of speed: where writers are slow, it may be nothing. */
static void expect_counted(const struct load *load, enum kly_loss cause, uint64_t least)
{
	struct verdict v;

	CHECK_INT(load_run(load, &v), 0);
	load_print(&v);
	CHECK_INT(v.torn, 0);
	CHECK_INT(v.backwards, 0);
	CHECK_INT(v.causal, 0);
	CHECK_INT(v.misplaced, 0);
	CHECK_INT(v.unpaired, 0);
	CHECK(v.lost[cause] >= least);
	CHECK_INT(v.lost_all, v.lost[cause]);
	CHECK_INT(v.seen + v.lost_all, v.made + (v.starts == 0));
}

static struct load lossy(enum kly_policy policy, unsigned writers)
{
	struct load load = lossless(writers);

	load.stream = (struct kly_stream_options){
		.min_bytes = 128 << 10, .max_data = 1024, .policy = policy};
	load.in_stream = 0;
	load.events *= BED_TSAN ? 4 : 1; /* enough to fill it */
	load.pause_us = 300;
	return load;
}

TEST(slow_reader_of_a_loop_finds_all_losses_counted)
{
	for (unsigned writers = 1; writers <= 4; writers *= 2) {
		const struct load load = lossy(KLY_POLICY_LOOP, writers);
		expect_counted(&load, KLY_LOSS_OVERWRITTEN, 0);
	}
}

TEST(fast_reader_of_a_loop_finds_all_losses_counted)
{
	struct load load = lossy(KLY_POLICY_LOOP, 4);
	load.pause_us = 100;
	load.stream.min_bytes = 16 << 10;
	expect_counted(&load, KLY_LOSS_OVERWRITTEN, 0);
}

TEST(slow_reader_in_another_process_finds_all_losses_counted)
{
	struct load load = lossy(KLY_POLICY_LOOP, 2);
	load.other_process = true;
	expect_counted(&load, KLY_LOSS_OVERWRITTEN, 0);
}

TEST(stream_that_fills_up_and_goes_on_counts_all_losses)
{
	for (unsigned writers = 1; writers <= 4; writers *= 2) {
		const struct load load = lossy(KLY_POLICY_UNTIL_FULL, writers);
		expect_counted(&load, KLY_LOSS_FULL, 0);
	}
}

TEST(stream_that_fills_up_for_good_counts_all_losses)
{
	struct load load = lossy(KLY_POLICY_UNTIL_FULL, 3);
	load.other_process = true; /* cannot restart it */
	expect_counted(&load, KLY_LOSS_FULL, 1);
}

TEST_MAIN()
