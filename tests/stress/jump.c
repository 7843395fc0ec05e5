/* SPDX-License-Identifier: MIT */
/*
 * Calls that never return: a handler that interrupted a trace point jumps out of it, or ends the
 * thread. Every event whose call returned is read; each jump costs at most the event that it
 * interrupted, and no chunk (N-01, N-02).
 *
 * One thread records, is interrupted, lands, records once more (which heals) and reads what is
 * there. Each event has a number; `returned` says which calls have ended.
 */
#include "bed.h"
#include "tap.h"

#include <pthread.h>
#include <setjmp.h>

#define CALLS_MAX (1u << 16) /* between two landings */
#define CALLS_OF_HANDLERS 1000
#define STACK_BYTES (256u << 10)

KILROY_EVENT(call, "stress.call", (u64, number), (bytes, body));

struct outcome {
	uint64_t jumps, made, seen;
	uint64_t missing;  /* returned, but not read */
	uint64_t lost;     /* not returned, and not read */
	uint64_t torn, backwards;
	uint64_t died, lost_else; /* as the stream counted */
	uint32_t owned;    /* chunks owned in the end */
};

static struct jumper {
	struct bed bed;
	struct outcome o;
	sigjmp_buf landing;
	bool armed;
	bool handler_records;
	uint64_t first, next; /* numbers since the last landing */
	bool returned[CALLS_MAX], seen[CALLS_MAX];
	enum kly_point jump_at; /* NONE: wherever the timer says */
	unsigned chance;        /* one in so many passings of jump_at */
	uint64_t random;
} j;

static uint8_t fill(uint64_t number)
{
	return (uint8_t)(number * 40503u >> 7);
}

static __attribute__((noinline)) void record_one(void)
{
	uint8_t body[256];
	uint64_t number = kly_add_relaxed(&j.next, 1); /* a handler may come between */
	size_t len = number * 7919 % sizeof(body);

	memset(body, fill(number), len);
	KILROY_RECORD(call, number, body, len);
	j.returned[number - j.first] = true;
}

/* From another depth of the stack each time: the frame of the next call is above or below. */
static __attribute__((noinline)) void record_deep(unsigned depth)
{
	volatile char pad[200];

	pad[0] = 0;
	if (depth)
		record_deep(depth - 1);
	else
		record_one();
	(void)pad[0];
}

static void on_signal(int signal)
{
	if (!j.armed || !(kly_self->top))
		return;
	if (j.handler_records && j.next % 2)
		record_one();
	if (signal == SIGUSR2) /* the other one goes on */
		return;
	j.armed = false;
	siglongjmp(j.landing, 1);
}

static void jump_at_point(enum kly_point point)
{
	if (point == j.jump_at && j.armed && bed_random(&j.random) % j.chance == 0)
		(void)raise(SIGUSR1);
}

static void judge(const struct kly_event *e)
{
	const uint8_t *data = e->data;
	static uint64_t last;
	uint64_t number;
	uint16_t len;

	if (e->len < sizeof(number) + sizeof(len)) {
		j.o.torn++;
		return;
	}
	memcpy(&number, data, sizeof(number));
	memcpy(&len, data + sizeof(number), sizeof(len));
	data += sizeof(number) + sizeof(len);
	j.o.seen++;
	if (number < j.first) { /* complete when it was left, and published by a later call */
		j.o.lost--;
		return;
	}
	if (number >= j.next) {
		j.o.torn++;
		return;
	}
	j.o.torn += e->len != sizeof(number) + sizeof(len) + len || len != number * 7919 % 256;
	for (unsigned i = 0; i < len; i++)
		j.o.torn += data[i] != fill(number);
	j.o.torn += j.seen[number - j.first];
	j.seen[number - j.first] = true;
	j.o.backwards += e->ticks < last;
	last = e->ticks;
}

static void read_and_count(void)
{
	struct kly_event e;

	while (bed_next(&j.bed, &e))
		judge(&e);
	for (uint64_t i = 0; i < j.next - j.first; i++) {
		j.o.missing += j.returned[i] && !j.seen[i];
		j.o.lost += !j.returned[i] && !j.seen[i];
		j.returned[i] = j.seen[i] = false;
	}
	j.o.made += j.next - j.first;
	j.first = j.next;
}

static void record_until_jump(void)
{
	static uint64_t calls;

	j.armed = true;
	while (kly_load_relaxed(&j.next) - j.first < CALLS_MAX - CALLS_OF_HANDLERS)
		record_deep(++calls * 2654435761u >> 7 & 15);
	j.armed = false;
}

static void land(void)
{
	/* Heals what lies below; signals are not yet armed. Now and then from so far below that the
	 * call that was left looks alive: the reader waits for it in vain, and it is healed later. */
	if (j.o.jumps % 64)
		record_one();
	else
		record_deep(4);
	read_and_count();
	record_deep(9);
}

/* Jumps until there were enough; each landing reads. In a function that keeps nothing across. */
static void jump_often(uint64_t jumps)
{
	static uint64_t wanted, rounds;

	wanted = jumps;
	rounds = 0;
	if (sigsetjmp(j.landing, 1))
		j.o.jumps++;
	land();
	if (j.o.jumps < wanted && rounds++ < 2 * wanted)
		record_until_jump();
	if (j.o.jumps < wanted && rounds < 2 * wanted)
		siglongjmp(j.landing, 0x7fffffff);
}

static void watch_signals(int flags)
{
	const struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};

	(void)sigaction(SIGUSR1, &action, NULL);
	(void)sigaction(SIGUSR2, &action, NULL);
}

static void begin(const struct kly_stream_options *options, int flags)
{
	memset(&j, 0, sizeof(j));
	j.random = bed_seed();
	j.chance = 1;
	if (bed_open(&j.bed, options) < 0)
		abort();
	bed_start(&j.bed);
	watch_signals(flags);
}

static void finish(void)
{
	kly_point_hook = NULL;
	record_one(); /* above all that was left */
	read_and_count();
	j.o.died = bed_lost(&j.bed, KLY_LOSS_DIED);
	j.o.lost_else = bed_lost_all(&j.bed) - j.o.died;
	j.o.owned = bed_chunks_taken(&j.bed, true);
	bed_close(&j.bed);
	printf("# jumps %llu made %llu seen %llu missing %llu lost %llu (counted %llu) torn %llu "
	       "backwards %llu owned %u\n",
		(unsigned long long)j.o.jumps, (unsigned long long)j.o.made,
		(unsigned long long)j.o.seen, (unsigned long long)j.o.missing,
		(unsigned long long)j.o.lost, (unsigned long long)j.o.died,
		(unsigned long long)j.o.torn, (unsigned long long)j.o.backwards, j.o.owned);
}

static const struct kly_stream_options small = {
	.min_bytes = 8 << 20, .max_data = 512, .policy = KLY_POLICY_UNTIL_FULL};

static void jump_by_timer(uint64_t jumps, int flags)
{
	begin(&small, flags);
	j.handler_records = true;
	timer_t one = bed_timer_create(SIGUSR1, 60), two = bed_timer_create(SIGUSR2, 35);
	jump_often(jumps);
	(void)timer_delete(one);
	(void)timer_delete(two);
	finish();
}

static void jump_by_point(enum kly_point point, uint64_t jumps)
{
	begin(&small, 0);
	j.jump_at = point;
	j.chance = point < KLY_POINT_CLAIMED ? 20 : 2;
	kly_point_hook = jump_at_point;
	jump_often(jumps);
	finish();
}

/* A controller's lane, four of ours, and one more where a timer may have jumped out again. */
#define OWNED_MAX (1 + KLY_LANES)

#define CHECK_OUTCOME(jumps_)                                                                      \
	do {                                                                                       \
		CHECK_INT(j.o.jumps, jumps_);                                                      \
		CHECK_INT(j.o.missing, 0);                                                         \
		CHECK_INT(j.o.torn, 0);                                                            \
		CHECK_INT(j.o.backwards, 0);                                                       \
		CHECK_INT(j.o.lost_else, 0);                                                       \
		CHECK(j.o.lost <= j.o.jumps);                                                      \
		CHECK(j.o.died <= j.o.lost);                                                       \
		CHECK(j.o.owned <= OWNED_MAX);                                                     \
	} while (0)

TEST(N_01_jumps_at_random_instants_cost_one_event_each)
{
	const uint64_t jumps = bed_times(3000, 100000);

	if (BED_TSAN)
		SKIP("signals do not come inside a trace point under this sanitizer");
	jump_by_timer(jumps, 0);
	CHECK_OUTCOME(jumps);
}

TEST(N_02_jumps_at_every_step_of_a_call_cost_one_event_each)
{
	const uint64_t jumps = bed_times(1000, 10000);

	if (BED_TSAN)
		SKIP("signals do not come inside a trace point under this sanitizer");
	for (enum kly_point p = KLY_POINT_MARKED; p <= KLY_POINT_FLIPPED; p++) {
		jump_by_point(p, jumps);
		CHECK_OUTCOME(jumps);
	}
}

/* The same with handlers on an alternate stack, below or above the thread's own. */

static void *jump_with_alternate_stack(void *alternate)
{
	const stack_t stack = {.ss_sp = alternate, .ss_size = STACK_BYTES};

	(void)sigaltstack(&stack, NULL);
	jump_by_timer(bed_times(1500, 15000), SA_ONSTACK);
	return NULL;
}

static bool run_between_stacks(bool below)
{
	uint8_t *stacks = mmap(NULL, 3 * (size_t)STACK_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	pthread_attr_t attr;
	pthread_t thread;

	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstack(&attr, stacks + STACK_BYTES, STACK_BYTES);
	bool ran = pthread_create(&thread, &attr, jump_with_alternate_stack,
			   below ? stacks : stacks + 2 * STACK_BYTES) == 0 &&
		   pthread_join(thread, NULL) == 0;
	(void)pthread_attr_destroy(&attr);
	(void)munmap(stacks, 3 * (size_t)STACK_BYTES);
	return ran;
}

TEST(N_02_jumps_from_an_alternate_stack_below_cost_one_event_each)
{
	if (BED_TSAN)
		SKIP("signals do not come inside a trace point under this sanitizer");
	CHECK(run_between_stacks(true));
	CHECK_OUTCOME(bed_times(1500, 15000));
}

TEST(N_02_jumps_from_an_alternate_stack_above_cost_one_event_each)
{
	if (BED_TSAN)
		SKIP("signals do not come inside a trace point under this sanitizer");
	CHECK(run_between_stacks(false));
	CHECK_OUTCOME(bed_times(1500, 15000));
}

/*
 * Threads that end inside a call, from a handler.
 */

enum ending { BY_EXIT, BY_CANCEL };

static __thread struct ender {
	enum ending ending;
	unsigned left; /* passings of the point before it ends */
	uint64_t returned;
} *ender;

static void on_end_signal(int signal)
{
	if (ender->ending == BY_EXIT)
		pthread_exit(NULL);
	(void)pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	(void)pthread_cancel(pthread_self());
}

static void end_at_point(enum kly_point point)
{
	if (ender && ender->left && point == j.jump_at && !--ender->left)
		(void)raise(SIGUSR1);
}

static void *record_and_end(void *argument)
{
	static const uint8_t body[200];

	ender = argument;
	for (uint64_t i = 0; i < 10000; i++) {
		KILROY_RECORD(call, i, body, sizeof(body));
		ender->returned++;
	}
	return NULL;
}

/* Returned calls that were not read. */
static uint64_t missing_after_endings(enum ending ending, uint64_t threads)
{
	uint64_t returned = 0, seen = 0;
	struct kly_event e;

	for (uint64_t i = 0; i < threads; i++) {
		struct ender end = {
			.ending = ending,
			.left = 1 + (unsigned)(bed_random(&j.random) % (j.jump_at < KLY_POINT_CLAIMED ? 50 : 3)),
		};
		pthread_t thread;

		if (pthread_create(&thread, NULL, record_and_end, &end) != 0)
			abort();
		(void)pthread_join(thread, NULL);
		returned += end.returned;
		while (bed_next(&j.bed, &e))
			seen++;
	}
	/* What was not returned may be there nevertheless, one a thread. */
	return seen < returned || seen > returned + threads ? returned - seen : 0;
}

static void expect_endings(enum ending ending)
{
	const uint64_t threads = bed_times(100, 2000);

	for (enum kly_point p = KLY_POINT_MARKED; p <= KLY_POINT_FLIPPED; p++) {
		begin(&small, 0);
		const struct sigaction action = {.sa_handler = on_end_signal};
		(void)sigaction(SIGUSR1, &action, NULL);
		j.jump_at = p;
		kly_point_hook = end_at_point;
		uint64_t missing = missing_after_endings(ending, threads);
		kly_point_hook = NULL;
		uint32_t slots = bed_slots_taken(&j.bed), owned = bed_chunks_taken(&j.bed, true);
		uint32_t taken = bed_chunks_taken(&j.bed, false);
		bed_close(&j.bed);
		CHECK_INT(missing, 0);
		CHECK(slots <= 2); /* the controller's, and that of another test's thread */
		CHECK(owned <= 2);
		CHECK(taken <= 3); /* all was read: nothing but the owned ones and a leftover */
	}
}

TEST(N_01_pthread_exit_out_of_a_call_leaves_nothing_behind)
{
	if (BED_TSAN)
		SKIP("signals do not come inside a trace point under this sanitizer");
	expect_endings(BY_EXIT);
}

TEST(N_01_cancellation_out_of_a_call_leaves_nothing_behind)
{
	if (BED_TSAN)
		SKIP("signals do not come inside a trace point under this sanitizer");
	expect_endings(BY_CANCEL);
}

/* The safeguards (core/probe.h): without them the same jumps do harm. */

KILROY_EVENT(eight, "stress.eight", (u64, number));

static sigjmp_buf out_of_the_call;
static bool jump_now;

static void jump_out(enum kly_point point)
{
	if (point == KLY_POINT_MARKED && jump_now) {
		jump_now = false;
		siglongjmp(out_of_the_call, 1);
	}
}

static __attribute__((noinline)) void record_eight(uint64_t number)
{
	KILROY_RECORD(eight, number);
}

static __attribute__((noinline)) void record_in_parts(uint64_t number)
{
	KILROY_RECORD(call, number, "", 0);
}

/* Both calls are from one depth; the second must not take the first for one that is interrupted. */
TEST(N_02_the_next_call_from_the_same_depth_wins_the_lane_back)
{
	static void (*const ways[])(uint64_t) = {record_eight, record_in_parts};
	const struct kly_stream_options options = {.min_bytes = 65536};

	for (size_t i = 0; i < KLY_COUNT(ways); i++) {
		struct bed bed;

		CHECK_INT(bed_open(&bed, &options), 0);
		bed_start(&bed);
		ways[i](0);
		kly_point_hook = jump_out;
		jump_now = true;
		if (sigsetjmp(out_of_the_call, 0) == 0)
			ways[i](1);
		kly_point_hook = NULL;
		ways[i](2);
		for (uint32_t n = 0; n < bed.stream->slot_count * KLY_LANES; n++)
			CHECK(!(bed.stream->slots[n / KLY_LANES].word[n % KLY_LANES] &
				KLY_LANE_IN_FLIGHT));
		CHECK_INT(bed_lost(&bed, KLY_LOSS_DIED), 1);
		bed_close(&bed);
	}
}

TEST(lanes_that_are_not_won_back_are_noticed)
{
	if (BED_TSAN)
		SKIP("signals do not come inside a trace point under this sanitizer");
	kly_switches = KLY_NO_HEAL;
	jump_by_point(KLY_POINT_WRITTEN, 8);
	kly_switches = 0;
	CHECK(j.o.missing > 0 || j.o.lost_else > 0);
}

TEST(chunk_changes_that_are_not_done_again_are_noticed)
{
	if (BED_TSAN)
		SKIP("signals do not come inside a trace point under this sanitizer");
	kly_switches = KLY_NO_REDO;
	jump_by_point(KLY_POINT_CLAIMED, 100);
	kly_switches = 0;
	CHECK(j.o.missing > 0 || j.o.torn > 0 || j.o.owned > OWNED_MAX);
}

TEST_MAIN()
