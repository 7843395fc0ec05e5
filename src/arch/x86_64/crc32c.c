/* SPDX-License-Identifier: MIT */
/* The crc32 instruction came with SSE4.2 (2008); x86-64 as such does not promise it. */
#include "arch/crc32c.h"

#include "base/crc32c.h"
#include "base/util.h"

#include <nmmintrin.h>
#include <string.h>

__attribute__((target("sse4.2"))) static uint32_t by_instruction(
	uint32_t crc, const uint8_t *p, size_t size)
{
	uint64_t sum = ~crc;

	for (; size >= 8; size -= 8, p += 8) {
		uint64_t word;
		memcpy(&word, p, sizeof(word));
		sum = _mm_crc32_u64(sum, word);
	}
	for (; size; size--, p++)
		sum = _mm_crc32_u8((uint32_t)sum, *p);
	return ~(uint32_t)sum;
}

uint32_t kly_crc32c(uint32_t crc, const void *data, size_t size)
{
	if (KLY_LIKELY(__builtin_cpu_supports("sse4.2")))
		return by_instruction(crc, data, size);
	return kly_crc32c_portable(crc, data, size);
}
