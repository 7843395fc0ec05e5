/* SPDX-License-Identifier: MIT */
#include "base/buffer.h"

#include "tap.h"

#include <errno.h>

TEST(buffer_grows_and_keeps_its_bytes)
{
	struct kly_buffer b = {0};
	for (int i = 0; i < 1000; i++)
		CHECK_INT(kly_buffer_add(&b, "abc", 3), 0);
	CHECK_INT(b.size, 3000);
	CHECK(memcmp(b.bytes + 2997, "abc", 3) == 0);
	kly_buffer_fini(&b);
}

TEST(padding_is_zero_and_reaches_the_multiple)
{
	struct kly_buffer b = {0};
	CHECK_INT(kly_buffer_pad(&b, 8), 0);
	CHECK_INT(b.size, 0);
	kly_buffer_add(&b, "abc", 3);
	CHECK_INT(kly_buffer_pad(&b, 8), 0);
	CHECK_INT(b.size, 8);
	CHECK(memcmp(b.bytes, "abc\0\0\0\0\0", 8) == 0);
	CHECK_INT(kly_buffer_pad(&b, 8), 0);
	CHECK_INT(b.size, 8);
	kly_buffer_fini(&b);
}

TEST(absurd_sizes_are_refused)
{
	struct kly_buffer b = {0};
	kly_buffer_add(&b, "abc", 3);
	CHECK_INT(kly_buffer_add(&b, "", SIZE_MAX - 1), -ENOMEM);
	CHECK_INT(b.size, 3);
	kly_buffer_fini(&b);
}

TEST(cleared_buffer_is_empty_and_keeps_its_memory)
{
	struct kly_buffer b = {0};
	kly_buffer_add(&b, "abc", 3);
	const size_t room = b.room;
	kly_buffer_clear(&b);
	CHECK_INT(b.size, 0);
	CHECK_INT(b.room, room);
	kly_buffer_fini(&b);
}

TEST_MAIN()
