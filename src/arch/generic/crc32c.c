/* SPDX-License-Identifier: MIT */
#include "arch/crc32c.h"

#include "base/crc32c.h"

uint32_t kly_crc32c(uint32_t crc, const void *data, size_t size)
{
	return kly_crc32c_portable(crc, data, size);
}
