/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/hook/file.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/array.h"
#include "util/cleanup.h"
#include "util/hash.h"

#define NEEDED_MAX 64 /* libraries of a file that are looked into */

#if defined(__x86_64__)
#define MACHINE "x86_64-linux-gnu"
#else
#define MACHINE "aarch64-linux-gnu"
#endif

DEFINE_CLEANUP(Elf *, elf_end);

/* Where the linker and the shell look first is not asked: it differs between processes. */
#define PLACES "/usr/local/lib,/lib/" MACHINE ",/usr/lib/" MACHINE ",/lib64,/usr/lib64,/lib,/usr/lib,/usr/local/bin," \
	       "/usr/bin,/usr/sbin"

static bool is_file(const char *path)
{
	struct stat status;

	return !stat(path, &status) && S_ISREG(status.st_mode);
}

/* Makes a path of a name. A search takes a while, so the last one is remembered. */
static bool find_file(char path[TARGET_BYTES])
{
	static char name[TARGET_BYTES], found[TARGET_BYTES];
	char pattern[TARGET_BYTES + sizeof(PLACES) + 32];
	glob_t all = { 0 };

	if (strchr(path, '/') || !*path || strpbrk(path, "*?[{\\"))
		return is_file(path);
	if (strcmp(path, name) || !is_file(found)) {
		snprintf(pattern, sizeof(pattern), "{" PLACES "}/%s{,.so.[0-9]*}", path);
		memcpy(name, path, TARGET_BYTES);
		*found = '\0';
		(void)glob(pattern, GLOB_BRACE, NULL, &all);
		for (size_t i = 0; i < all.gl_pathc && !*found; i++)
			if (is_file(all.gl_pathv[i]))
				snprintf(found, sizeof(found), "%s", all.gl_pathv[i]);
		globfree(&all);
	}
	if (*found)
		memcpy(path, found, TARGET_BYTES);
	return *found;
}

const char *file_split(const char *section, char path[TARGET_BYTES])
{
	const char *rest = target_split(target_of(section), section_is(section, " usdt "), path);

	return rest && find_file(path) ? rest : NULL;
}

uint64_t file_identity(const char *section)
{
	char path[TARGET_BYTES];
	struct stat status;

	if (!file_split(section, path) || stat(path, &status))
		return 0;
	return hash_stable(hash_stable(HASH_STABLE_START, &status.st_mtim, sizeof(status.st_mtim)),
			   (uint64_t[]){ status.st_dev, status.st_ino }, 16) | 1;
}

/* What a file says of a function. */
struct sight {
	char name[TARGET_BYTES];
	bool is_elf, is_there, is_indirect, is_ambiguous, is_crowded;
	uint64_t offset; /* in the file */
	char variant[128]; /* of an indirect function, one that it may choose */
	char similar[256]; /* a function whose name is made of this one by a compiler */
	bool has_symbols; /* of functions that are not exported, too */
};

/*
 * C++ and Rust put the length before a name, and compilers call a part of a function NAME.part.0.
 */
static bool is_made_of(const char *text, const char *name, size_t n)
{
	const char *at = strstr(text, name);
	const char *digits = at;

	if (at == text)
		return at && at[n] == '.';
	while (at && digits > text && strchr("0123456789", digits[-1]))
		digits--;
	return at && *text == '_' && strtoul(digits, NULL, 10) == n;
}

/*
 * As libbpf does, which takes functions alone, with a version or without. What is imported is
 * somewhere else.
 */
static void look_for_function(Elf *elf, size_t names, Elf_Data *symbols, struct sight *sight)
{
	size_t n = strcspn(sight->name, "@");
	GElf_Sym symbol;
	GElf_Shdr head;

	for (int i = 0; gelf_getsym(symbols, i, &symbol); i++) {
		const char *text = symbol.st_shndx ? elf_strptr(elf, names, symbol.st_name) : NULL,
			*at = text;
		unsigned int type = GELF_ST_TYPE(symbol.st_info);
		bool is_called = text && !strncmp(text, sight->name, n) && strchr("@", text[n]);

		sight->is_there |= is_called && (type == STT_FUNC || type == STT_GNU_IFUNC);
		sight->is_indirect |= is_called && type == STT_GNU_IFUNC;
		if (is_called && type == STT_FUNC &&
		    gelf_getshdr(elf_getscn(elf, symbol.st_shndx), &head)) {
			uint64_t offset = symbol.st_value - head.sh_addr + head.sh_offset;

			sight->is_ambiguous |= sight->offset && sight->offset != offset;
			sight->offset = offset;
		}
		if (text && type == STT_FUNC && is_made_of(text, sight->name, n) &&
		    !*sight->similar)
			snprintf(sight->similar, sizeof(sight->similar), "%s", text);
		while (at && *at == '_')
			at++;
		if (type == STT_FUNC && at && at > text && !strncmp(at, sight->name, n) &&
		    at[n] == '_')
			snprintf(sight->variant, sizeof(sight->variant), "%s", text);
	}
}

/* False: the file cannot be read. */
static bool read_symbols(const char *path, struct sight *sight)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_(elf_endp) Elf *elf = fd < 0 || !elf_version(EV_CURRENT) ? NULL :
				       elf_begin(fd, ELF_C_READ_MMAP, NULL);
	Elf_Scn *section = NULL;

	sight->is_elf = elf && elf_kind(elf) == ELF_K_ELF;
	while (sight->is_elf && (section = elf_nextscn(elf, section))) {
		GElf_Shdr head = { 0 };
		Elf_Data *data = gelf_getshdr(section, &head) ? elf_getdata(section, NULL) : NULL;

		sight->has_symbols |= head.sh_type == SHT_SYMTAB;
		if (data && (head.sh_type == SHT_DYNSYM || head.sh_type == SHT_SYMTAB))
			look_for_function(elf, head.sh_link, data, sight);
	}
	return fd >= 0;
}

/*
 * Has a library that this one needs the function? Some have moved: those of libpthread and libdl
 * are in libc now.
 */
static bool find_in_needed(Elf *elf, const char *function, char path[TARGET_BYTES])
{
	struct sight sight = { 0 };
	Elf_Scn *section = NULL;
	unsigned int n_needed = 0;
	GElf_Shdr head;
	GElf_Dyn item;

	snprintf(sight.name, sizeof(sight.name), "%s", function);
	while ((section = elf_nextscn(elf, section)) && !sight.is_there) {
		bool is_dynamic = gelf_getshdr(section, &head) && head.sh_type == SHT_DYNAMIC;
		Elf_Data *data = is_dynamic ? elf_getdata(section, NULL) : NULL;

		for (int i = 0; data && !sight.is_there && gelf_getdyn(data, i, &item); i++) {
			if (item.d_tag != DT_NEEDED || n_needed++ >= NEEDED_MAX)
				continue;
			snprintf(path, TARGET_BYTES, "%s",
				 elf_strptr(elf, head.sh_link, item.d_un.d_val) ?: "");
			if (find_file(path))
				read_symbols(path, &sight);
		}
	}
	return sight.is_there;
}

static void append_lack_of_function(const char *path, const struct sight *sight, struct buf *lack)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_(elf_endp) Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);
	char other[TARGET_BYTES];

	buf_printf(lack, "%s has no function %s", path, sight->name);
	if (*sight->similar)
		buf_printf(lack, ": did you mean %s?", sight->similar);
	else if (elf && find_in_needed(elf, sight->name, other))
		buf_printf(lack, "; %s has it", other);
	else if (!sight->has_symbols)
		buf_append_text(lack, " that it exports, and it is stripped of the names of all others");
}

/* Of a mark, only whether it is there. */
static bool look_for_mark(const char *path, struct sight *sight)
{
	struct mark *marks;
	size_t n;
	int err = marks_find(path, sight->name, &marks, &n);

	sight->is_elf = err != -ENOEXEC;
	sight->is_crowded = err == -E2BIG;
	sight->is_there = n;
	array_free(&marks, &n);
	return !err || !sight->is_elf || sight->is_crowded;
}

bool file_has(const char *section, struct buf *lack)
{
	char path[TARGET_BYTES];
	const char *rest = file_split(section, path);
	bool is_mark = section_is(section, " usdt ");
	bool (*look_at)(const char *path, struct sight *sight) = is_mark ? look_for_mark :
								 read_symbols;
	struct sight sight = { 0 };

	target_offset(rest ?: "", sight.name);
	if (!rest && !strchr(path, '/'))
		buf_printf(lack, "no library or program %s is in " PLACES "; write its path", path);
	else if (!rest)
		buf_printf(lack, access(path, F_OK) ? "this machine has no file %s" : "%s is not a file that can run", path);
	else if (!*sight.name || !look_at(path, &sight) || (sight.is_there && !sight.is_indirect))
		return true;
	else if (!sight.is_elf)
		buf_printf(lack, "%s is neither a program nor a library (ELF%s)", path, is_mark ? " of 64 bits" : "");
	else if (sight.is_crowded)
		buf_printf(lack, "%s has the USDT %s in more than %d places", path, sight.name, MARK_PLACES);
	else if (sight.is_indirect)
		buf_printf(lack, "the processor decides which function of %s is called as %s (IFUNC); %s%s", path, sight.name,
			   *sight.variant ? "name that function, such as " :
			   "the file is stripped and does not name these functions, so none of them can be probed", sight.variant);
	else if (is_mark)
		buf_printf(lack, "%s has no USDT %s", path, sight.name);
	else
		append_lack_of_function(path, &sight, lack);
	return false;
}

int file_find_marks(const char *target, struct mark **ret_marks, size_t *ret_n)
{
	char path[TARGET_BYTES];
	const char *rest = target_split(target, 1, path);

	*ret_marks = NULL;
	*ret_n = 0;
	return rest && find_file(path) ? marks_find(path, rest, ret_marks, ret_n) : -ENOENT;
}

uint64_t file_offset(const char *path, const char *function)
{
	struct sight sight = { 0 };

	snprintf(sight.name, sizeof(sight.name), "%s", function);
	return read_symbols(path, &sight) && !sight.is_ambiguous ? sight.offset : 0;
}
