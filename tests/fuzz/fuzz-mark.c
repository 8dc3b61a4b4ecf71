/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file with a USDT, which anyone may have made: after an even first byte the operands of its note, else the whole
 * file.
 */
#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector/hook/mark.h"
#include "demand.h"
#include "util/array.h"
#include "util/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PLACE	 0x1000
#define OPERANDS 4096
#define REGISTERS 512 /* bytes that those of no processor take */

static struct program {
	Elf64_Ehdr head;
	Elf64_Phdr part;
	Elf64_Shdr sections[5];
	Elf64_Sym symbols[2];
	char names[64];
	uint32_t unused; /* for no gap before the addresses */
	Elf64_Nhdr note;
	char owner[8];
	uint64_t addresses[3];
	char text[4 + OPERANDS];
} program = {
	.head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		  .e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_ehsize = sizeof(Elf64_Ehdr),
		  .e_phoff = offsetof(struct program, part), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 1,
		  .e_shoff = offsetof(struct program, sections), .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 5,
		  .e_shstrndx = 1 },
	.part = { .p_type = PT_LOAD, .p_vaddr = PLACE, .p_filesz = sizeof(struct program),
		  .p_memsz = 2 * sizeof(struct program) },
	.sections = {
		[1] = { .sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = offsetof(struct program, names),
			.sh_size = sizeof(program.names) },
		[2] = { .sh_name = 21, .sh_type = SHT_NOTE, .sh_offset = offsetof(struct program, note),
			.sh_addralign = 4 },
		[3] = { .sh_name = 7, .sh_type = SHT_PROGBITS, .sh_addr = PLACE + 8 },
		[4] = { .sh_name = 1, .sh_type = SHT_SYMTAB, .sh_offset = offsetof(struct program, symbols),
			.sh_link = 1, .sh_size = sizeof(program.symbols), .sh_entsize = sizeof(Elf64_Sym) },
	},
	.symbols = { [1] = { .st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), .st_shndx = 3,
			     .st_value = PLACE } },
	.names = "\0table\0.stapsdt.base\0.note.stapsdt",
	.note = { .n_namesz = 8, .n_type = 3 },
	.owner = "stapsdt",
	.addresses = { PLACE + 16, PLACE + 8, PLACE + sizeof(struct program) },
	.text = "a\0b",
};

static void look(const void *file, size_t size)
{
	_cleanup_(closep) int fd = memfd_create("mark", MFD_CLOEXEC);
	struct mark *marks;
	char path[64];
	size_t n;

	demand(fd >= 0 && write(fd, file, size) == (ssize_t)size, "no file");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	demand(!marks_find(path, "a:b", &marks, &n) || !n, "marks after a failure");
	demand(n <= MARK_PLACES, "too many places");
	array_for_each (mark, marks, n) {
		const char *operand;
		unsigned int n_arguments = 0;

		while (mark_operand(mark, n_arguments, &operand))
			n_arguments++;
		demand(n_arguments == mark->n_arguments, "other operands");
		array_for_each (argument, mark->arguments, MARK_ARGUMENTS) {
			demand(argument->bytes <= 8 && !(argument->bytes & (argument->bytes - 1)), "no size");
			demand(argument->shift <= 3, "no factor");
			demand(argument->base <= REGISTERS && argument->index <= REGISTERS, "no register");
		}
	}
	array_free(&marks, &n);
}

_Static_assert(offsetof(struct program, addresses) == offsetof(struct program, owner) + 8, "a gap in the note");

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = size ? size - 1 : 0;

	if (!size || data[0] % 2) {
		look(size ? data + 1 : data, n);
		return 0;
	}
	n = n < OPERANDS ? n : OPERANDS;
	memcpy(program.text + 4, data + 1, n);
	program.note.n_descsz = (uint32_t)(sizeof(program.addresses) + 4 + n);
	program.sections[2].sh_size = sizeof(program.note) + sizeof(program.owner) +
				      (program.note.n_descsz + 3) / 4 * 4;
	look(&program, sizeof(program));
	return 0;
}
