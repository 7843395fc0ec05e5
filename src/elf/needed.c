/* SPDX-License-Identifier: MIT */
#include "elf/needed.h"
#include "base/util.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct image {
	const uint8_t *bytes;
	uint64_t size;
};

/* A part of the file; NULL if it is not there. */
static const void *part(const struct image *f, uint64_t at, uint64_t bytes)
{
	return at <= f->size && bytes <= f->size - at ? f->bytes + at : NULL;
}

static const Elf64_Phdr *segments(const struct image *f, unsigned *ret_count)
{
	const Elf64_Ehdr *e = part(f, 0, sizeof(*e));

	if (!e || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 || e->e_ident[EI_CLASS] != ELFCLASS64 ||
		e->e_ident[EI_DATA] != ELFDATA2LSB || e->e_phentsize != sizeof(Elf64_Phdr) ||
		e->e_phoff % 8)
		return NULL;
	*ret_count = e->e_phnum;
	return part(f, e->e_phoff, (uint64_t)e->e_phnum * sizeof(Elf64_Phdr));
}

/* The place in the file of an address in the memory of the program. */
static uint64_t offset_of(const Elf64_Phdr *segment, unsigned count, uint64_t address)
{
	for (unsigned i = 0; i < count; i++)
		if (segment[i].p_type == PT_LOAD && address >= segment[i].p_vaddr &&
			address - segment[i].p_vaddr < segment[i].p_filesz)
			return segment[i].p_offset + (address - segment[i].p_vaddr);
	return UINT64_MAX;
}

static bool names(const struct image *f, uint64_t at, const char *name)
{
	size_t len = strlen(name);
	const char *text = part(f, at, len);

	return text && memcmp(text, name, len) == 0;
}

static bool needs(const struct image *f, const char *name)
{
	unsigned count = 0, entries = 0;
	const Elf64_Phdr *segment = segments(f, &count);
	const Elf64_Dyn *dynamic = NULL;
	uint64_t strings = UINT64_MAX;

	for (unsigned i = 0; segment && i < count; i++) {
		if (segment[i].p_type != PT_DYNAMIC || segment[i].p_offset % 8)
			continue;
		dynamic = part(f, segment[i].p_offset, segment[i].p_filesz);
		entries = (unsigned)(segment[i].p_filesz / sizeof(*dynamic));
	}
	for (unsigned i = 0; dynamic && i < entries; i++)
		if (dynamic[i].d_tag == DT_STRTAB)
			strings = offset_of(segment, count, dynamic[i].d_un.d_ptr);
	for (unsigned i = 0; dynamic && strings != UINT64_MAX && i < entries; i++)
		if (dynamic[i].d_tag == DT_NEEDED &&
			names(f, strings + dynamic[i].d_un.d_val, name))
			return true;
	return false;
}

bool kly_elf_needs(const char *path, const char *name)
{
	struct stat st;
	kly_cleanup(kly_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
		return false;
	void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return false;
	const struct image f = {p, (uint64_t)st.st_size};
	bool found = needs(&f, name);
	(void)munmap(p, (size_t)st.st_size);
	return found;
}
