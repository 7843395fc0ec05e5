/* SPDX-License-Identifier: MIT */
/* How much a stream holds, whoever writes; and what happens where memory ends. */
#include "bed.h"
#include "tap.h"

#include "trace.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define WRITERS_MAX 64

static uint32_t type;
static const char data[4096];

/* Writers that share a budget of bytes, so that it is used up by whichever is faster. */
static struct crew {
	pthread_t threads[WRITERS_MAX];
	pthread_barrier_t together;
	uint64_t left; /* of the promise, in bytes of kly_event_max() */
	uint64_t made;
	size_t len; /* of each event; 0 = mixed */
} crew;

static bool take_budget(uint64_t bytes)
{
	uint64_t left = kly_load_relaxed(&crew.left);

	while (left >= bytes)
		if (kly_cas_acq_rel(&crew.left, &left, left - bytes))
			return true;
	return false;
}

static void *spend(void *p)
{
	uint64_t seed = (uintptr_t)p + 1;

	(void)pthread_barrier_wait(&crew.together);
	for (;;) {
		size_t len = crew.len ? crew.len : bed_random(&seed) % 513;

		if (!take_budget(kly_event_max(len)))
			break;
		posix_trace_event(type, data, len);
		kly_add_relaxed(&crew.made, 1);
	}
	(void)pthread_barrier_wait(&crew.together); /* all stay alive until all are done */
	return NULL;
}

static void spend_all(unsigned writers, uint64_t budget, size_t len)
{
	crew = (struct crew){.left = budget, .len = len};
	(void)pthread_barrier_init(&crew.together, NULL, writers);
	for (uintptr_t i = 0; i < writers; i++)
		if (pthread_create(&crew.threads[i], NULL, spend, (void *)i) != 0)
			abort();
	for (unsigned i = 0; i < writers; i++)
		pthread_join(crew.threads[i], NULL);
	(void)pthread_barrier_destroy(&crew.together);
}

static void open_bed(struct bed *b, const struct kly_stream_options *o)
{
	(void)kly_process_open_type("room.event", NULL, &type);
	if (bed_open(b, o) < 0)
		abort();
	bed_start(b);
}

static uint64_t read_all(struct bed *b)
{
	struct kly_event event;
	uint64_t n = 0;

	while (bed_next(b, &event))
		n++;
	return n;
}

static const unsigned crowds[] = {1, 2, 7, 64};

TEST(SIZE_03_the_promise_holds_for_any_number_of_writers)
{
	static const uint64_t sizes[] = {4096, 65536, 1 << 20};
	static const size_t lengths[] = {0 /* mixed */, 1, 64, 512};

	for (size_t c = 0; c < KLY_COUNT(crowds); c++) {
		for (size_t s = 0; s < KLY_COUNT(sizes); s++) {
			for (size_t l = 0; l < KLY_COUNT(lengths); l++) {
				const struct kly_stream_options o = {.min_bytes = sizes[s],
					.max_data = 512, .policy = KLY_POLICY_UNTIL_FULL};
				struct bed b;

				open_bed(&b, &o);
				spend_all(crowds[c], sizes[s], lengths[l]);
				CHECK_INT(read_all(&b), crew.made);
				CHECK_INT(bed_lost_all(&b), 0);
				bed_close(&b);
			}
		}
	}
}

TEST(R50_writers_fill_a_stream_to_nine_tenths_before_the_first_loss)
{
	for (size_t c = 0; c < KLY_COUNT(crowds); c++) {
		const struct kly_stream_options o = {
			.min_bytes = 4 << 20, .max_data = 512, .policy = KLY_POLICY_UNTIL_FULL};
		struct bed b;

		open_bed(&b, &o);
		spend_all(crowds[c], UINT64_C(16) << 20, 100);
		CHECK(bed_lost(&b, KLY_LOSS_FULL) > 0);
		CHECK(read_all(&b) * kly_rec_size(100) >= o.min_bytes / 10 * 9);
		bed_close(&b);
	}
}

/*
 * A tmpfs of 4 MiB, in a mount namespace of its own. The child does it all: a process with threads
 * can't leave its namespace.
 */
static int mount_small(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("small", "/mnt", "tmpfs", 0, "size=4m") < 0)
		return -errno;
	return open("/mnt/stream", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static int fill_the_rest(void)
{
	static const char block[65536];
	int fd = open("/mnt/rest", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	while (write(fd, block, sizeof(block)) > 0)
		;
	while (write(fd, block, 1) > 0)
		;
	return fd;
}

enum { UNDERSTOOD = 0, NOT_ALLOWED = 77, WRONG = 1 };

static int too_large_is_refused(void)
{
	const struct kly_stream_options o = {.min_bytes = 64 << 20};
	struct kly_stream s;
	int fd = mount_small();

	if (fd < 0)
		return NOT_ALLOWED;
	return kly_stream_create(fd, &o, &s) == -ENOSPC ? UNDERSTOOD : WRONG;
}

static pthread_barrier_t recorded;

static void *record_one(void *p)
{
	posix_trace_event(type, data, 8);
	(void)pthread_barrier_wait(&recorded);
	return p;
}

/* A stream that fits; then the file system is filled, and 100 threads come. Those for whom memory
 * was reserved record, the others' events are counted as lost; nobody gets a SIGBUS. */
static int latecomers_are_refused(void)
{
	const struct kly_stream_options o = {
		.min_bytes = 256 << 10, .max_data = 256, .policy = KLY_POLICY_UNTIL_FULL};
	const struct kly_target target = kly_process_target();
	struct kly_stream *s = kly_process_new_stream();
	pthread_t threads[100];
	struct kly_control control;
	struct kly_reader reader;
	struct kly_event event;
	uint64_t seen = 0, lost[KLY_LOSS_CAUSES];
	int fd = mount_small();

	if (fd < 0)
		return NOT_ALLOWED;
	(void)kly_process_open_type("room.event", NULL, &type);
	if (kly_stream_create(fd, &o, s) < 0 || kly_control_init(&control, &target, s) < 0 ||
		kly_reader_init(&reader, s, &control) < 0)
		return WRONG;
	kly_process_put_place(control.place, s);
	(void)kly_control_start(&control, NULL);
	(void)fill_the_rest();
	(void)pthread_barrier_init(&recorded, NULL, KLY_COUNT(threads));
	for (size_t i = 0; i < KLY_COUNT(threads); i++)
		if (pthread_create(&threads[i], NULL, record_one, NULL) != 0)
			return WRONG;
	for (size_t i = 0; i < KLY_COUNT(threads); i++)
		pthread_join(threads[i], NULL);
	while (kly_reader_next(&reader, &event) == 1)
		seen += event.type == type;
	kly_reader_losses(&reader, lost);
	return seen >= 15 && lost[KLY_LOSS_MEMORY] > 0 &&
			       seen + lost[KLY_LOSS_MEMORY] == KLY_COUNT(threads)
		       ? UNDERSTOOD
		       : WRONG;
}

static int in_child(int (*body)(void))
{
	int status = 0;
	pid_t child = fork();

	if (child == 0)
		_exit(kly_process_ready() ? body() : WRONG);
	if (waitpid(child, &status, 0) != child)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(R53_a_stream_that_does_not_fit_is_refused_when_it_is_made)
{
	int status = in_child(too_large_is_refused);

	if (status == NOT_ALLOWED)
		SKIP("needs the right to mount");
	CHECK_INT(status, UNDERSTOOD);
}

TEST(N_15_where_memory_ends_a_new_writer_loses_its_events_and_nobody_else)
{
	int status = in_child(latecomers_are_refused);

	if (status == NOT_ALLOWED)
		SKIP("needs the right to mount");
	CHECK_INT(status, UNDERSTOOD);
}

TEST_MAIN()
