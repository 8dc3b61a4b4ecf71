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
#define NOTE_TYPE     3

DEFINE_CLEANUP(Elf *, elf_end);

struct file {
	Elf *elf;
	uint64_t base; /* where .stapsdt.base is; 0: nowhere */
	uint64_t place; /* the address of the mark that is read now */
	const char *name;
	struct mark **marks;
	size_t *n_marks;
	int err;
	/* The symbol that was looked for last: the places of a mark mostly have the same. */
	char symbol[OPERAND_BYTES];
	uint64_t address;
	bool is_symbol;
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

/*
 * "-12(%rbp,%rsi,4)" is "-12", and "%rbp", "%rsi", "4". NULL: a bracket is not closed, or holds
 * nothing.
 */
static char *split_operand(char *operand, char *parts[3])
{
	char *rest = strchr(operand, '('), *end = rest ? strchr(rest, ')') : NULL;

	if (rest && (!end || end[1] || end == rest + 1))
		return NULL;
	if (rest) {
		*rest++ = '\0';
		*end = '\0';
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
	if ((sscanf(name, "x%u%n", &number, &n) != 1 && sscanf(name, "w%u%n", &number, &n) != 1) || name[n] ||
	    number > 30)
		return 0;
	return (uint16_t)(1 + offsetof(struct user_pt_regs, regs) + 8 * number);
}

/*
 * "[x0, x1, lsl 3]" is "", and "x0", "x1", "8"; "[sp, 28]" is "28", and "sp". NULL: it does not
 * end, or is empty.
 */
static char *split_operand(char *operand, char *parts[3])
{
	static char factor[4];
	char *rest = operand + 1, *end = strchr(rest, ']'), *shift;

	if (!end || end[1] || end == rest)
		return NULL;
	*end = '\0';
	for (int i = 0; i < 3; i++) {
		parts[i] = strsep(&rest, ",");
		while (parts[i] && *parts[i] == ' ')
			parts[i]++;
	}
	shift = parts[2] && !strncmp(parts[2], "lsl", 3) ? parts[2] + 3 + strspn(parts[2] + 3, " #") :
		NULL;
	/* else the word stays, and is not a factor */
	if (shift && isdigit((unsigned char)*shift)) {
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

/* False: there is none, or several places have this name, as static variables of several files. */
static bool search_symbol(Elf *elf, const char *name, uint64_t *ret_address)
{
	bool is_found = false;
	Elf_Scn *section = NULL;
	GElf_Shdr head;
	GElf_Sym symbol;

	while ((section = elf_nextscn(elf, section))) {
		bool is_read = gelf_getshdr(section, &head);
		bool has_symbols = is_read &&
				   (head.sh_type == SHT_SYMTAB || head.sh_type == SHT_DYNSYM);
		Elf_Data *data = has_symbols ? elf_getdata(section, NULL) : NULL;

		for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
			const char *text = symbol.st_shndx ?
					   elf_strptr(elf, head.sh_link, symbol.st_name) : NULL;

			if (!text || strcmp(text, name) || GELF_ST_TYPE(symbol.st_info) == STT_TLS)
				continue;
			if (is_found && *ret_address != symbol.st_value)
				return false;
			*ret_address = symbol.st_value;
			is_found = true;
		}
	}
	return is_found;
}

static bool find_symbol(struct file *file, const char *name, size_t n, uint64_t *ret_address)
{
	if (!n || n >= sizeof(file->symbol))
		return false;
	if (strncmp(file->symbol, name, n) || file->symbol[n]) {
		snprintf(file->symbol, sizeof(file->symbol), "%.*s", (int)n, name);
		file->is_symbol = search_symbol(file->elf, file->symbol, &file->address);
	}
	*ret_address = file->address;
	return file->is_symbol;
}

/*
 * "12", "table", "12+table", "table-4". A symbol is as far from the instruction as in the file,
 * wherever that is loaded.
 */
static bool read_displacement(const char *text, struct file *file, struct mark_argument *argument)
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
			if (is_minus || is_relative ||
			    !find_symbol(file, text, (size_t)(end - text), &value))
				return false;
			value -= file->place;
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
	/*
	 * With the instruction pointer, only a symbol has a meaning; without it, a symbol's address
	 * is not known.
	 */
	return is_relative == (argument->base && argument->base == find_register("%" INSTRUCTION));
}

static bool read_operand(char *operand, struct file *file, struct mark_argument *argument)
{
	char *parts[3] = { NULL }, *displacement;
	unsigned long factor;

	argument->base = find_register(operand);
	if (argument->base)
		return true;
	if (*CONSTANT ? *operand == *CONSTANT : *operand != '[') {
		operand += strlen(CONSTANT);
		return *operand && read_displacement(operand, file, argument) && !argument->base;
	}
	argument->is_memory = true;
	displacement = split_operand(operand, parts);
	if (!displacement)
		return false;
	argument->base = parts[0] && *parts[0] ? find_register(parts[0]) : 0;
	argument->index = parts[1] && *parts[1] ? find_register(parts[1]) : 0;
	factor = parts[2] && *parts[2] ? strtoul(parts[2], NULL, 10) : 1;
	if ((parts[0] && *parts[0] && !argument->base) ||
	    (parts[1] && *parts[1] && !argument->index))
		return false;
	if (!factor || factor > 8 || factor & (factor - 1) || (!parts[0] && !*displacement))
		return false;
	argument->shift = (uint8_t)__builtin_ctzl(factor);
	return read_displacement(displacement, file, argument);
}

/* An operand that cannot be read spoils itself alone: *ret_argument stays zero. */
static void read_argument(const char *text, size_t n, struct file *file,
			  struct mark_argument *ret_argument)
{
	struct mark_argument argument = { 0 };
	char operand[OPERAND_BYTES];
	int bytes = 0, begin = 0;

	if (n >= sizeof(operand))
		return;
	snprintf(operand, sizeof(operand), "%.*s", (int)n, text);
	(void)sscanf(operand, "%3d@%n", &bytes, &begin);
	argument.bytes = (uint8_t)abs(bytes);
	argument.is_signed = bytes < 0;
	if (begin && abs(bytes) <= 8 && __builtin_popcount(argument.bytes) == 1 &&
	    read_operand(operand + begin, file, &argument))
		*ret_argument = argument;
}

size_t mark_operand(const struct mark *mark, unsigned int number, const char **ret_operand)
{
	const char *at = mark->operands, *end;

	for (;; at = end) {
		bool is_inside = false; /* of ARM: -4@[x0, x1, lsl 2] */

		at += strspn(at, " ");
		for (end = at; *end && (*end != ' ' || is_inside); end++)
			is_inside = *end == '[' || (is_inside && *end != ']');
		if (end == at || !number--)
			break;
	}
	*ret_operand = at;
	return (size_t)(end - at);
}

/*
 * 0: it is in no part of the file that is loaded. A semaphore may be in data that begins as zeros,
 * beyond the file.
 */
static uint64_t file_place(Elf *elf, uint64_t address)
{
	GElf_Phdr part;

	for (int i = 0; gelf_getphdr(elf, i, &part); i++)
		if (part.p_type == PT_LOAD && address >= part.p_vaddr &&
		    address - part.p_vaddr < part.p_memsz)
			return address - part.p_vaddr + part.p_offset;
	return 0;
}

/*
 * Equal code of several functions may be one, with all their notes. Where these differ, an argument
 * is unknown.
 */
static bool is_known(const struct file *file, const struct mark *mark)
{
	array_for_each (known, *file->marks, *file->n_marks) {
		if (known->offset != mark->offset)
			continue;
		for (size_t i = 0; i < MARK_ARGUMENTS; i++)
			if (memcmp(&known->arguments[i], &mark->arguments[i],
				   sizeof(known->arguments[i])))
				known->arguments[i] = (struct mark_argument){ 0 };
		return true;
	}
	return false;
}

static void add_mark(struct file *file, const uint64_t addresses[3], const char *operands)
{
	uint64_t moved = file->base && addresses[1] ? file->base - addresses[1] : 0;
	struct mark mark = { .offset = file_place(file->elf, addresses[0] + moved),
			     .semaphore = addresses[2] ?
					  file_place(file->elf, addresses[2] + moved) : 0 };
	const char *operand;
	size_t n;

	file->place = addresses[0] + moved;
	if (snprintf(mark.operands, sizeof(mark.operands), "%s", operands) >= MARK_TEXT_BYTES)
		*(strrchr(mark.operands, ' ') ?: mark.operands) = '\0'; /* the last one is cut */
	for (; (n = mark_operand(&mark, mark.n_arguments, &operand)); mark.n_arguments++)
		if (mark.n_arguments < MARK_ARGUMENTS)
			read_argument(operand, n, file, &mark.arguments[mark.n_arguments]);
	if (!mark.offset || is_known(file, &mark))
		return;
	file->err = *file->n_marks == MARK_PLACES ? -E2BIG :
		    array_append(file->marks, file->n_marks, &mark);
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
	for (size_t at = 0;
	     !file->err && (at = gelf_getnote(notes, at, &note, &name_at, &text_at));) {
		const char *text = (const char *)notes->d_buf + text_at;

		if (note.n_type != NOTE_TYPE || note.n_descsz <= ADDRESSES + size ||
		    memcmp(text + ADDRESSES, wanted, size) ||
		    !memchr(text + ADDRESSES + size, '\0', note.n_descsz - ADDRESSES - size))
			continue;
		memcpy(addresses, text, sizeof(addresses));
		add_mark(file, addresses, text + ADDRESSES + size);
	}
}

int marks_find(const char *path, const char *name, struct mark **ret_marks, size_t *ret_n)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_(elf_endp) Elf *elf = fd < 0 || !elf_version(EV_CURRENT) ? NULL :
				       elf_begin(fd, ELF_C_READ, NULL);
	struct file file = { .elf = elf, .name = name, .marks = ret_marks, .n_marks = ret_n };
	Elf_Scn *section = NULL, *notes = NULL;
	Elf_Data *data;
	size_t names;
	GElf_Shdr head;

	*ret_marks = NULL;
	*ret_n = 0;
	if (!elf || elf_kind(elf) != ELF_K_ELF || gelf_getclass(elf) != ELFCLASS64 ||
	    elf_getshdrstrndx(elf, &names))
		return fd < 0 ? -errno : -ENOEXEC;
	while ((section = elf_nextscn(elf, section))) {
		const char *called = gelf_getshdr(section, &head) ?
				     elf_strptr(elf, names, head.sh_name) : NULL;

		if (called && !strcmp(called, ".stapsdt.base"))
			file.base = head.sh_addr;
		if (called && !strcmp(called, ".note.stapsdt") && head.sh_type == SHT_NOTE)
			notes = section;
	}
	if (notes && (data = elf_getdata(notes, NULL)))
		read_notes(&file, data);
	if (file.err)
		array_free(ret_marks, ret_n);
	return file.err;
}
