/* SPDX-License-Identifier: MIT */
/* CRC32C (Castagnoli: polynomial 0x1edc6f41, reflected; start and end inverted) for any machine.
 * Users call kly_crc32c() of arch/crc32c.h, which takes the machine's own instruction if it can. */
#ifndef KLY_BASE_CRC32C_H
#define KLY_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* crc: 0, or the result for the bytes before these. */
uint32_t kly_crc32c_portable(uint32_t crc, const void *data, size_t size);

#endif
