/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/internal.h"

#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Only what the kernel can read from the file again. Of data it then reads the pages that are asked for, without
 * those around them. A kernel that cannot do this (before 5.4, or for a file of somebody else) leaves the pages.
 */
static int page_out(struct dl_phdr_info *object, size_t size, void *unused)
{
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);

	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];
		uintptr_t at = object->dlpi_addr + part->p_vaddr, before = at % page_bytes;
		void *start = (void *)(at - before);

		if (part->p_type != PT_LOAD || part->p_flags & PF_W)
			continue;
		if (!(part->p_flags & PF_X))
			(void)madvise(start, before + part->p_memsz, MADV_RANDOM);
		(void)madvise(start, before + part->p_memsz, MADV_PAGEOUT);
	}
	return 0;
}

void agent_return_memory(void)
{
	malloc_trim(0);
	dl_iterate_phdr(page_out, NULL);
}
