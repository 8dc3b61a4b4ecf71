/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/hook/mark.h"

#include <asm/ptrace.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/cleanup.h"

#define OPERAND_BYTES 128
#define ADDRESSES     24 /* the bytes of the three that begin a note */

struct file {
	Elf *elf;
	uint64_t base; /* where .stapsdt.base is; 0: nowhere */
	const char *name;
	struct mark **marks;
	size_t *n_marks;
	int err;
};

/* Where an operand is. */
struct at {
	Elf *elf;
	uint64_t place; /* its address */
};

#if defined(__x86_64__)
#define INSTRUCTION "rip"
#define CONSTANT    "$"
#define ROW(name, ...) { " " #name " " __VA_ARGS__, offsetof(struct pt_regs, name) }
static const struct {
	const char *names;
	size_t offset;
} registers[] = {
	ROW(rax, "eax ax al "), ROW(rbx, "ebx bx bl "), ROW(rcx, "ecx cx cl "), ROW(rdx, "edx dx dl "),
	ROW(rsi, "esi si sil "), ROW(rdi, "edi di dil "), ROW(rbp, "ebp bp bpl "), ROW(rsp, "esp sp spl "),
	ROW(r8, "r8d r8w r8b "), ROW(r9, "r9d r9w r9b "), ROW(r10, "r10d r10w r10b "), ROW(r11, "r11d r11w r11b "),
	ROW(r12, "r12d r12w r12b "), ROW(r13, "r13d r13w r13b "), ROW(r14, "r14d r14w r14b "),
	ROW(r15, "r15d r15w r15b "), ROW(rip, ""),
};

/* 1 + its place; 0: it is not a register, or one that programs cannot see. */
static uint16_t find_register(const char *name)
{
	char word[OPERAND_BYTES + 2];

	snprintf(word, sizeof(word), " %s ", *name == '%' ? name + 1 : "");
	array_for_each (row, registers, ARRAY_SIZE(registers))
		if (strstr(row->names, word))
			return (uint16_t)(1 + row->offset);
	return 0;
}

/* "-12(%rbp,%rsi,4)" is "-12", and "%rbp", "%rsi", "4". */
static char *split_operand(char *operand, char *parts[3])
{
	char *rest = strchr(operand, '(');

	if (rest) {
		*rest++ = '\0';
		rest[strcspn(rest, ")")] = '\0';
	}
	for (int i = 0; i < 3; i++)
		parts[i] = strsep(&rest, ",");
	return operand;
}
#else
#define INSTRUCTION "pc"
#define CONSTANT    ""

static uint16_t find_register(const char *name)
{
	unsigned int number = 31;
	int n = 0;

	if (!strcmp(name, "sp"))
		return 1 + offsetof(struct user_pt_regs, sp);
	if ((sscanf(name, "x%u%n", &number, &n) != 1 && sscanf(name, "w%u%n", &number, &n) != 1) || name[n] || number > 30)
		return 0;
	return (uint16_t)(1 + offsetof(struct user_pt_regs, regs) + 8 * number);
}

/* "[x0, x1, lsl 3]" is "", and "x0", "x1", "8"; "[sp, 28]" is "28", and "sp". */
static char *split_operand(char *operand, char *parts[3])
{
	static char factor[4];
	char *rest = *operand == '[' ? operand + 1 : NULL, *shift;

	if (!rest)
		return operand;
	rest[strcspn(rest, "]")] = '\0';
	for (int i = 0; i < 3; i++) {
		parts[i] = strsep(&rest, ",");
		while (parts[i] && *parts[i] == ' ')
			parts[i]++;
	}
	shift = parts[2] && !strncmp(parts[2], "lsl", 3) ? parts[2] + 3 + strspn(parts[2] + 3, " #") : NULL;
	if (shift) {
		snprintf(factor, sizeof(factor), "%u", 1u << (strtoul(shift, NULL, 10) & 7));
		parts[2] = factor;
	}
	if (!parts[1] || find_register(parts[1]))
		return "";
	operand = parts[1];
	parts[1] = NULL;
	return operand;
}
#endif

static bool find_symbol(Elf *elf, const char *name, size_t n, uint64_t *ret_address)
{
	Elf_Scn *section = NULL;
	GElf_Shdr head;
	GElf_Sym symbol;

	while ((section = elf_nextscn(elf, section))) {
		bool is_read = gelf_getshdr(section, &head);
		bool has_symbols = is_read && (head.sh_type == SHT_SYMTAB || head.sh_type == SHT_DYNSYM);
		Elf_Data *data = has_symbols ? elf_getdata(section, NULL) : NULL;

		for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
			const char *text = symbol.st_shndx ? elf_strptr(elf, head.sh_link, symbol.st_name) : NULL;

			if (!text || strncmp(text, name, n) || text[n] || GELF_ST_TYPE(symbol.st_info) == STT_TLS)
				continue;
			*ret_address = symbol.st_value;
			return true;
		}
	}
	return false;
}

/* "12", "table", "12+table", "table-4". A symbol is as far from the instruction as in the file, wherever that is loaded. */
static bool read_displacement(const char *text, const struct at *at, struct mark_argument *argument)
{
	uint64_t sum = 0, value;
	bool is_relative = false;
	char *end;

	while (*text) {
		bool is_minus = *text == '-';

		text += is_minus || *text == '+';
		value = strtoull(text, &end, 0);
		if (!isdigit((unsigned char)*text)) {
			end = (char *)text + strcspn(text, "+-");
			if (is_minus || is_relative || !find_symbol(at->elf, text, (size_t)(end - text), &value))
				return false;
			value -= at->place;
			is_relative = true;
		}
		if (*end && !strchr("+-", *end))
			return false;
		sum += is_minus ? -value : value;
		text = end;
	}
	argument->number = (int64_t)sum;
	if (is_relative && !argument->base)
		argument->base = find_register("%" INSTRUCTION);
	/* With the instruction pointer, only a symbol has a meaning; without it, a symbol's address is not known. */
	return is_relative == (argument->base && argument->base == find_register("%" INSTRUCTION));
}

static bool read_operand(char *operand, const struct at *at, struct mark_argument *argument)
{
	char *parts[3] = { NULL }, *displacement;
	unsigned long factor;

	argument->base = find_register(operand);
	if (argument->base)
		return true;
	if (*operand == *CONSTANT || (!*CONSTANT && *operand != '['))
		return read_displacement(operand + strlen(CONSTANT), at, argument) && !argument->base;
	argument->is_memory = true;
	displacement = split_operand(operand, parts);
	argument->base = parts[0] && *parts[0] ? find_register(parts[0]) : 0;
	argument->index = parts[1] && *parts[1] ? find_register(parts[1]) : 0;
	factor = parts[2] && *parts[2] ? strtoul(parts[2], NULL, 10) : 1;
	if ((parts[0] && *parts[0] && !argument->base) || (parts[1] && *parts[1] && !argument->index))
		return false;
	if (!factor || factor > 8 || factor & (factor - 1) || (!parts[0] && !*displacement))
		return false;
	argument->shift = (uint8_t)__builtin_ctzl(factor);
	return read_displacement(displacement, at, argument);
}

/* An operand that cannot be read spoils itself alone. */
static void read_argument(const char *text, size_t n, const struct at *at, struct mark_argument *ret_argument)
{
	struct mark_argument argument = { 0 };
	char operand[OPERAND_BYTES];
	int bytes = 0, begin = 0;

	*ret_argument = argument;
	if (n >= sizeof(operand))
		return;
	snprintf(operand, sizeof(operand), "%.*s", (int)n, text);
	if (sscanf(operand, "%d@%n", &bytes, &begin) != 1 || !begin || !strchr("\1\2\4\10", abs(bytes)) || !bytes)
		return;
	argument.is_signed = bytes < 0;
	if (!read_operand(operand + begin, at, &argument))
		return;
	argument.bytes = (uint8_t)abs(bytes);
	*ret_argument = argument;
}

size_t mark_operand(const struct mark *mark, unsigned int number, const char **ret_operand)
{
	const char *at = mark->operands, *end;

	for (;; at = end) {
		at += strspn(at, " ");
		for (end = at; *end && (*end != ' ' || end[-1] == ','); end++) /* of ARM: -4@[sp, 28] */
			;
		if (end == at || !number--)
			break;
	}
	*ret_operand = at;
	return (size_t)(end - at);
}

/* 0: it is in no part of the file that is loaded. */
static uint64_t file_place(Elf *elf, uint64_t address)
{
	GElf_Phdr part;

	for (int i = 0; gelf_getphdr(elf, i, &part); i++)
		if (part.p_type == PT_LOAD && address >= part.p_vaddr && address - part.p_vaddr < part.p_filesz)
			return address - part.p_vaddr + part.p_offset;
	return 0;
}

/* A semaphore is where a program's data is, beyond what the file holds of it, too. */
static uint64_t semaphore_place(Elf *elf, uint64_t address)
{
	GElf_Phdr part;

	for (int i = 0; address && gelf_getphdr(elf, i, &part); i++)
		if (part.p_type == PT_LOAD && address >= part.p_vaddr && address - part.p_vaddr < part.p_memsz)
			return address - part.p_vaddr + part.p_offset;
	return 0;
}

static void add_mark(struct file *file, const uint64_t addresses[3], const char *operands)
{
	uint64_t moved = file->base ? file->base - addresses[1] : 0;
	const struct at at = { file->elf, addresses[0] + moved };
	struct mark mark = { .offset = file_place(file->elf, at.place),
			     .semaphore = semaphore_place(file->elf, addresses[2] ? addresses[2] + moved : 0) };
	const char *operand;
	size_t n;

	snprintf(mark.operands, sizeof(mark.operands), "%s", operands);
	for (; (n = mark_operand(&mark, mark.n_arguments, &operand)); mark.n_arguments++)
		if (mark.n_arguments < MARK_ARGUMENTS)
			read_argument(operand, n, &at, &mark.arguments[mark.n_arguments]);
	if (!mark.offset)
		return;
	file->err = *file->n_marks == MARK_PLACES ? -E2BIG : array_append(file->marks, file->n_marks, &mark);
}

/* The provider, the name and the operands each have a 0 at their end. */
static void read_notes(struct file *file, Elf_Data *notes)
{
	size_t size = strlen(file->name) + 1, name_at, text_at;
	uint64_t addresses[3];
	char wanted[256 + 1];
	GElf_Nhdr note;

	if (size > sizeof(wanted))
		return;
	memcpy(wanted, file->name, size);
	wanted[strcspn(wanted, ":")] = '\0';
	for (size_t at = 0; !file->err && (at = gelf_getnote(notes, at, &note, &name_at, &text_at));) {
		const char *text = (const char *)notes->d_buf + text_at;

		if (note.n_descsz <= ADDRESSES + size || memcmp(text + ADDRESSES, wanted, size) ||
		    !memchr(text + ADDRESSES + size, '\0', note.n_descsz - ADDRESSES - size))
			continue;
		memcpy(addresses, text, sizeof(addresses));
		add_mark(file, addresses, text + ADDRESSES + size);
	}
}

int marks_find(const char *path, const char *name, struct mark **ret_marks, size_t *ret_n)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = fd < 0 || !elf_version(EV_CURRENT) ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);
	struct file file = { .elf = elf, .name = name, .marks = ret_marks, .n_marks = ret_n };
	Elf_Scn *section = NULL;
	size_t names;
	GElf_Shdr head;

	*ret_marks = NULL;
	*ret_n = 0;
	if (!elf || elf_kind(elf) != ELF_K_ELF || gelf_getclass(elf) != ELFCLASS64 || elf_getshdrstrndx(elf, &names)) {
		file.err = fd < 0 ? -errno : -ENOEXEC;
		elf_end(elf);
		return file.err;
	}
	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &head) && !strcmp(elf_strptr(elf, names, head.sh_name) ?: "", ".stapsdt.base"))
			file.base = head.sh_addr;
	while (!file.err && (section = elf_nextscn(elf, section))) {
		bool has_notes = gelf_getshdr(section, &head) && head.sh_type == SHT_NOTE;
		Elf_Data *data = has_notes ? elf_getdata(section, NULL) : NULL;

		if (data)
			read_notes(&file, data);
	}
	elf_end(elf);
	if (file.err)
		array_free(ret_marks, ret_n);
	return file.err;
}
