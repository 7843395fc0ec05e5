/* SPDX-License-Identifier: MIT */
/* CRC32C as fast as the machine can. */
#ifndef KLY_ARCH_CRC32C_H
#define KLY_ARCH_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* crc: 0, or the result for the bytes before these. Same results as kly_crc32c_portable(). */
uint32_t kly_crc32c(uint32_t crc, const void *data, size_t size);

#endif
