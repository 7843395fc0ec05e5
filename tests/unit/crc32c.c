/* SPDX-License-Identifier: MIT */
#include "arch/crc32c.h"

#include "base/crc32c.h"
#include "base/util.h"

#include "runs.h"
#include "tap.h"

TEST(both_agree_with_rfc_3720)
{
	static const struct {
		uint8_t first, step;
		uint32_t crc;
	} known[] = {
		{0, 0, 0x8a9136aa},
		{0xff, 0, 0x62a8ab43},
		{0, 1, 0x46dd794e},
		{31, 0xff, 0x113fdb5c},
	};

	for (size_t i = 0; i < KLY_COUNT(known); i++) {
		uint8_t bytes[32];
		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (uint8_t)(known[i].first + known[i].step * k);
		CHECK_INT(kly_crc32c_portable(0, bytes, 32), known[i].crc);
		CHECK_INT(kly_crc32c(0, bytes, 32), known[i].crc);
	}
	CHECK_INT(kly_crc32c(0, "123456789", 9), 0xe3069283);
}

TEST(both_agree_at_any_length_and_alignment)
{
	uint8_t bytes[256];
	uint64_t random = 4711;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)next_random(&random);

	for (size_t from = 0; from < 16; from++)
		for (size_t size = 0; size < 100; size++)
			CHECK_INT(kly_crc32c(0, bytes + from, size),
				kly_crc32c_portable(0, bytes + from, size));
}

TEST(pieces_give_the_same_as_the_whole)
{
	for (size_t cut = 0; cut <= 9; cut++) {
		const uint32_t first = kly_crc32c(0, "123456789", cut);
		CHECK_INT(kly_crc32c(first, &"123456789"[cut], 9 - cut), 0xe3069283);
	}
}

TEST_MAIN()
