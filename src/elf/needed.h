/* SPDX-License-Identifier: MIT */
/* What a program file tells about how it will be loaded. */
#ifndef KLY_ELF_NEEDED_H
#define KLY_ELF_NEEDED_H

#include <stdbool.h>

/* Whether the ELF file at path (64 bits, this byte order) names a library that begins with `name` in
 * a DT_NEEDED entry. Everything else, scripts and damaged files too: false. */
bool kly_elf_needs(const char *path, const char *name);

enum kly_elf_kind {
	KLY_ELF_DYNAMIC, /* loaded by an interpreter; also what is no ELF file or can't be read */
	KLY_ELF_STATIC,  /* asks for no interpreter, so nothing can be preloaded */
	KLY_ELF_FOREIGN, /* of another class, byte order or machine */
};
enum kly_elf_kind kly_elf_kind(const char *path);

#endif
