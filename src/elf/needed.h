/* SPDX-License-Identifier: MIT */
/* Which shared libraries a program asks for. */
#ifndef KLY_ELF_NEEDED_H
#define KLY_ELF_NEEDED_H

#include <stdbool.h>

/* Whether the ELF file at path (64 bits, this byte order) names a library that begins with `name` in
 * a DT_NEEDED entry. Everything else, scripts and damaged files too: false. */
bool kly_elf_needs(const char *path, const char *name);

#endif
