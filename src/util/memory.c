/* SPDX-License-Identifier: Apache-2.0 */
#include "util/memory.h"

#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Larger than anything that a start asks for. */
#define KEPT_BYTES (256 << 20)

/* mallopt(3): what they are without it. */
#define MMAP_THRESHOLD_BYTES (128 << 10)
#define TRIM_THRESHOLD_BYTES (128 << 10)

void memory_begin_start(void)
{
	mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
	mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
}

/* Then the loader itself has written to segments that are not writable. Not seen on any machine of ours. */
static bool has_text_relocations(const struct dl_phdr_info *info)
{
	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Dyn) *entry = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);

		if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
			continue;
		for (; entry->d_tag != DT_NULL; entry++)
			if (entry->d_tag == DT_TEXTREL || (entry->d_tag == DT_FLAGS && entry->d_un.d_val & DF_TEXTREL))
				return true;
	}
	return false;
}

/* Segments that are never written hold nothing but the file, so that dropping a page loses nothing. */
static int drop_segments(struct dl_phdr_info *info, size_t size, void *user)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	if (!strncmp(info->dlpi_name, "linux-vdso", 10) || has_text_relocations(info))
		return 0;
	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t start = (info->dlpi_addr + segment->p_vaddr) & ~(page - 1);
		uintptr_t end = (info->dlpi_addr + segment->p_vaddr + segment->p_filesz) & ~(page - 1);

		if (segment->p_type == PT_LOAD && !(segment->p_flags & PF_W) && end > start)
			(void)madvise((void *)start, end - start, MADV_DONTNEED);
	}
	return 0;
}

void memory_end_start(void)
{
	mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES);
	mallopt(M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES);
	malloc_trim(0);
	dl_iterate_phdr(drop_segments, NULL);
}
