/* SPDX-License-Identifier: MIT */
/* Tests src/core/registry.c. */
#include "tap.h"

#include "core/registry.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

static struct kly_registry make(void)
{
	struct kly_registry r = {0};

	if (kly_registry_create(-1, 7, &r) < 0)
		abort();
	return r;
}

TEST(a_name_has_one_number)
{
	struct kly_registry r = make();
	uint32_t a = 0, b = 0, again = 0;

	CHECK_INT(kly_registry_open(&r, "queue.put", NULL, &a), 0);
	CHECK_INT(kly_registry_open(&r, "queue.pu", NULL, &b), 0);
	CHECK_INT(kly_registry_open(&r, "queue.put", "u32 depth\n", &again), 0);
	CHECK(a == again && a != b);
	CHECK(a >= KLY_TYPE_USER && b >= KLY_TYPE_USER);
	kly_registry_unmap(&r);
}

TEST(name_and_fields_come_back)
{
	struct kly_registry r = make();
	const char *name = NULL, *fields = NULL;
	uint32_t id = 0;

	CHECK_INT(kly_registry_open(&r, "очередь.взять", "u32 depth\nstr who\n", &id), 0);
	CHECK(kly_registry_get(&r, id, &name, &fields));
	CHECK_STR(name, "очередь.взять");
	CHECK_STR(fields, "u32 depth\nstr who\n");
	CHECK(!kly_registry_get(&r, id + 1, &name, &fields));
	kly_registry_unmap(&r);
}

TEST(a_name_is_found_only_after_it_was_opened)
{
	struct kly_registry r = make();
	uint32_t opened = 0, found = 0;

	CHECK(!kly_registry_find(&r, "queue.put", &found));
	CHECK_INT(kly_registry_open(&r, "queue.put", NULL, &opened), 0);
	CHECK(kly_registry_find(&r, "queue.put", &found));
	CHECK_INT(found, opened);
	CHECK(!kly_registry_find(&r, "queue.pu", &found));
	CHECK(kly_registry_find(&r, "posix_trace_stop", &found));
	CHECK_INT(found, KLY_TYPE_STOP);
	kly_registry_unmap(&r);
}

TEST(predefined_types_have_their_fixed_numbers)
{
	struct kly_registry r = make();
	const char *name = NULL;
	uint32_t id = 0;

	CHECK(kly_registry_get(&r, KLY_TYPE_START, &name, NULL));
	CHECK_STR(name, "posix_trace_start");
	CHECK_INT(kly_registry_open(&r, "posix_trace_unnamed_userevent", NULL, &id), 0);
	CHECK_INT(id, KLY_TYPE_UNNAMED);
	kly_registry_unmap(&r);
}

TEST(names_of_1_to_255_bytes_are_taken_and_no_others)
{
	struct kly_registry r = make();
	char name[300];
	const char *got = NULL;
	uint32_t id = 0;

	memset(name, 'x', sizeof(name));
	name[255] = '\0';
	CHECK_INT(kly_registry_open(&r, name, NULL, &id), 0);
	CHECK(kly_registry_get(&r, id, &got, NULL));
	CHECK_STR(got, name);
	name[255] = 'x';
	name[256] = '\0';
	CHECK_INT(kly_registry_open(&r, name, NULL, &id), -ENAMETOOLONG);
	CHECK_INT(kly_registry_open(&r, "", NULL, &id), -EINVAL);
	kly_registry_unmap(&r);
}

TEST(all_numbers_up_to_4095_can_be_had_and_then_no_more)
{
	struct kly_registry r = make();
	char name[32];
	uint32_t id = 0;

	for (uint32_t want = KLY_TYPE_USER; want < KLY_TYPES_MAX; want++) {
		(void)snprintf(name, sizeof(name), "type.%u", want);
		CHECK_INT(kly_registry_open(&r, name, "u64 value %x\n", &id), 0);
		CHECK_INT(id, want);
	}
	CHECK_INT(kly_registry_open(&r, "one.more", NULL, &id), -ENOSPC);
	CHECK_INT(kly_registry_open(&r, "type.2000", NULL, &id), 0);
	CHECK_INT(id, 2000);
	CHECK_INT(kly_registry_end(&r), KLY_TYPES_MAX);
	kly_registry_unmap(&r);
}

#define RACERS 8
#define NAMES 300

struct racer {
	const struct kly_registry *registry;
	uint32_t ids[NAMES];
	unsigned first;
	pthread_barrier_t *together;
};

static void *race(void *p)
{
	struct racer *me = p;
	char name[32];

	(void)pthread_barrier_wait(me->together);
	for (unsigned i = 0; i < NAMES; i++) {
		unsigned n = (me->first + i) % NAMES;

		(void)snprintf(name, sizeof(name), "raced.%u", n);
		if (kly_registry_open(me->registry, name, NULL, &me->ids[n]) < 0)
			me->ids[n] = 0;
	}
	return NULL;
}

TEST(NAME_12_concurrent_opens_of_a_name_give_one_number)
{
	static struct racer racers[RACERS];
	struct kly_registry r = make();
	pthread_t threads[RACERS];
	pthread_barrier_t together;

	pthread_barrier_init(&together, NULL, RACERS);
	for (unsigned i = 0; i < RACERS; i++) {
		racers[i] = (struct racer){.registry = &r, .first = i * 7, .together = &together};
		pthread_create(&threads[i], NULL, race, &racers[i]);
	}
	for (unsigned i = 0; i < RACERS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned n = 0; n < NAMES; n++) {
		CHECK(racers[0].ids[n] != 0);
		for (unsigned i = 1; i < RACERS; i++)
			CHECK_INT(racers[i].ids[n], racers[0].ids[n]);
		for (unsigned m = 0; m < n; m++)
			CHECK(racers[0].ids[m] != racers[0].ids[n]);
	}
	CHECK_INT(kly_registry_end(&r), KLY_TYPE_USER + NAMES);
	pthread_barrier_destroy(&together);
	kly_registry_unmap(&r);
}

TEST(a_second_mapping_sees_the_same_names)
{
	struct kly_registry a = {0}, b = {0};
	uint32_t id = 0, same = 0;
	int fd = memfd_create("registry", MFD_CLOEXEC);

	CHECK_INT(kly_registry_create(fd, 42, &a), 0);
	CHECK_INT(kly_registry_map(fd, &b), 0);
	CHECK_INT(kly_registry_open(&a, "from.a", NULL, &id), 0);
	CHECK_INT(kly_registry_open(&b, "from.a", NULL, &same), 0);
	CHECK_INT(id, same);
	CHECK_INT(kly_registry_id(&b), 42);
	kly_registry_unmap(&a);
	kly_registry_unmap(&b);
	(void)close(fd);
}

TEST(what_is_no_registry_is_refused)
{
	struct kly_registry r = {0};
	int fd = memfd_create("registry", MFD_CLOEXEC);

	CHECK_INT(kly_registry_map(fd, &r), -EBADMSG);
	CHECK_INT(ftruncate(fd, KLY_REGISTRY_BYTES), 0);
	CHECK_INT(kly_registry_map(fd, &r), -EBADMSG);
	(void)close(fd);
}

/* N-03: whatever stands in the shared memory, a look-up reads inside it and ends. */
TEST(damaged_entries_and_descriptors_are_no_types)
{
	struct kly_registry r = make();
	uint64_t *entries = (void *)(r.base + KLY_REGISTRY_ENTRIES_OFFSET);
	const char *name = NULL;
	uint32_t id = 0;

	CHECK_INT(kly_registry_open(&r, "good", "u8 x\n", &id), 0);
	uint64_t good = entries[id];
	const uint64_t bad[] = {1, KLY_REGISTRY_BYTES, KLY_REGISTRY_BYTES - 8, good + 4, UINT32_MAX,
		KLY_REGISTRY_ENTRIES_OFFSET};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		entries[id] = bad[i];
		CHECK(!kly_registry_get(&r, id, &name, NULL));
	}
	entries[id] = good;
	memset(r.base + (uint32_t)good, 0xff, 8);
	CHECK(!kly_registry_get(&r, id, &name, NULL));
	kly_registry_unmap(&r);
}

TEST(a_full_pool_is_an_error)
{
	struct kly_registry r = make();
	struct kly_wire_registry *head = (void *)r.base;
	uint32_t id = 0;

	head->used = KLY_REGISTRY_BYTES - 16;
	CHECK_INT(kly_registry_open(&r, "a.name.too.long.for.what.is.left", NULL, &id), -ENOMEM);
	kly_registry_unmap(&r);
}

TEST_MAIN()
