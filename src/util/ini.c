/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inih splits a line in key and value; everything around that is done here, in the reader which inih
 * calls for each line. The reader sees the raw text, so it can refuse what inih would pass over in
 * silence, and it hands on only lines that every revision of inih, however it was compiled, splits
 * alike: no blanks in front, no comment, no byte order mark, short, a sound key and '='. Sections stay
 * here altogether, since inih cuts their names at 49 bytes and does not tell of empty ones.
 *
 * Measured on inih 55; the revisions that Fedora and RHEL ship are compiled with other choices.
 */
#include "util/ini.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <ini.h>

#include "util/parse.h"
#include "util/utf8.h"

struct reader {
	struct ini_file *file;
	struct diag *diag;
	char *text; /* what is still to be read, NUL-terminated */
	size_t size;
	char *strings_end;
	const char *section;  /* NULL: behind a bad section line, or before the first */
	const char *argument; /* of section */
	bool is_skipping;     /* what follows a bad section line */
	bool is_pending;      /* a line is with inih */
	unsigned int line;
	unsigned int n_mistakes;
	size_t n_allocated; /* entries */
	int error;	    /* -errno that ends the reading */
};

#define mistake(reader, ...)     \
	((reader)->n_mistakes++, \
	 diag_add((reader)->diag, (reader)->file->path, (reader)->line, __VA_ARGS__))

/* Every string of a line, with its NUL, takes no more than the line and its end did: there is room. */
static const char *keep_string(struct reader *reader, const char *text)
{
	char *start = reader->strings_end;

	reader->strings_end = stpcpy(start, text) + 1;
	return start;
}

static int add_entry(struct reader *reader, const char *key, const char *value)
{
	struct ini_file *file = reader->file;

	if (file->n_entries == INI_ENTRIES) {
		mistake(reader, "more than %u keys and sections, the rest is not read", INI_ENTRIES);
		return reader->error = -EFBIG;
	}
	if (file->n_entries == reader->n_allocated) {
		size_t n = reader->n_allocated ? reader->n_allocated * 2 : 16;
		struct ini_entry *entries = reallocarray(file->entries, n, sizeof(*entries));

		if (!entries)
			return reader->error = -ENOMEM;
		file->entries = entries;
		reader->n_allocated = n;
	}
	file->entries[file->n_entries++] = (struct ini_entry){
		.section = reader->section,
		.argument = reader->argument,
		.key = key ? keep_string(reader, key) : NULL,
		.value = key ? keep_string(reader, value) : NULL,
		.line = reader->line,
	};
	return 0;
}

static int on_entry(void *user, const char *section, const char *key, const char *value)
{
	struct reader *reader = user;

	reader->is_pending = false;
	add_entry(reader, key, value);
	return 1;
}

static char *strip(char *text)
{
	size_t length;

	text += strspn(text, " \t");
	length = strlen(text);
	while (length && (text[length - 1] == ' ' || text[length - 1] == '\t'))
		length--;
	text[length] = '\0';
	return text;
}

/* "[kind argument]", stripped. */
static void read_section(struct reader *reader, char *text)
{
	char *end = strchr(text, ']'), *kind, *argument;

	reader->section = NULL;
	reader->is_skipping = true;
	if (!end) {
		mistake(reader, "section without its \"]\": write [kind] or [kind name]");
		return;
	}
	if (end[1]) {
		mistake(reader, "text behind \"]\": a section has its line to itself");
		return;
	}
	*end = '\0';
	kind = strip(text + 1);
	argument = kind + strcspn(kind, " \t");
	if (*argument) {
		*argument++ = '\0';
		argument = strip(argument);
	}
	if (!parse_is_name(kind) || strpbrk(argument, " \t[")) {
		mistake(reader, "bad section: write [kind] or [kind name], each one word, the kind of "
				"A-Z a-z 0-9 _ . -");
		return;
	}
	reader->section = keep_string(reader, kind);
	reader->argument = *argument ? keep_string(reader, argument) : "";
	reader->is_skipping = false;
	add_entry(reader, NULL, NULL);
}

static bool has_comment(const char *value)
{
	for (const char *at = value; (at = strpbrk(at, "#;")); at++)
		if (at == value || at[-1] == ' ' || at[-1] == '\t')
			return true;
	return false;
}

/* Is it a line for inih? */
static bool check_key_value(struct reader *reader, char *text)
{
	char *equals = strchr(text, '='), *key = text, *value;

	if (!equals) {
		mistake(reader, "no \"=\": write key = value");
		return false;
	}
	if (!reader->section) {
		if (!reader->is_skipping)
			mistake(reader, "key before the first [section]");
		return false;
	}
	*equals = '\0';
	key = strip(key);
	value = strip(equals + 1);
	if (!*key) {
		mistake(reader, "no key before \"=\": write key = value");
		return false;
	}
	if (!parse_is_name(key)) {
		mistake(reader, "bad key \"%s\": a key is of A-Z a-z 0-9 _ . -", key);
		return false;
	}
	if (has_comment(value)) {
		mistake(reader, "%s: \"#\" or \";\" behind a blank: a comment needs a line of its own, "
				"and a value cannot hold this",
			key);
		return false;
	}
	/* "key=value" is never longer than what it came from. */
	text += strlen(key);
	*text++ = '=';
	memmove(text, value, strlen(value) + 1);
	return true;
}

static bool check_bytes(struct reader *reader, const char *text, size_t size)
{
	if (size > INI_LINE_BYTES) {
		mistake(reader, "line of %zu bytes: at most %d are possible; give a list as several lines, "
				"a long secret as a file",
			size, INI_LINE_BYTES);
		return false;
	}
	for (size_t i = 0, bytes; i < size; i += bytes) {
		bytes = utf8_bytes(text + i, size - i);
		if (!bytes) {
			mistake(reader, "byte 0x%02x at column %zu is no UTF-8", (uint8_t)text[i], i + 1);
			return false;
		}
		if (utf8_is_control(text + i) && text[i] != '\t') {
			mistake(reader, "control character 0x%02x at column %zu",
				(uint8_t)text[i + bytes - 1], i + 1);
			return false;
		}
	}
	return true;
}

/* The next line, without its end and blanks around it; NULL at the end of the text. */
static char *next_line(struct reader *reader, size_t *ret_size)
{
	char *start = reader->text, *end;
	size_t size;

	if (!reader->size)
		return NULL;
	end = memchr(start, '\n', reader->size);
	size = end ? (size_t)(end - start) : reader->size;
	reader->text += size + !!end;
	reader->size -= size + !!end;
	if (size && start[size - 1] == '\r')
		size--;
	start[size] = '\0';
	*ret_size = size;
	reader->line++;
	return start;
}

/* inih did not call back for the line that it was given last. No revision is known that does this. */
static void check_pending(struct reader *reader)
{
	if (reader->is_pending)
		mistake(reader, "cannot be read as key = value");
	reader->is_pending = false;
}

/* The ini_reader of inih: the next line that is for inih, in buffer, or NULL. */
static char *give_line(char *buffer, int capacity, void *stream)
{
	struct reader *reader = stream;
	char *text;
	size_t size;

	check_pending(reader);
	while (!reader->error && (text = next_line(reader, &size))) {
		if (reader->n_mistakes >= INI_MISTAKES) {
			mistake(reader, "%d mistakes, the rest of the file is not read", INI_MISTAKES);
			return NULL;
		}
		if (!check_bytes(reader, text, size)) {
			/* What the keys behind it belong to is not known. */
			if (text[strspn(text, " \t")] == '[') {
				reader->section = NULL;
				reader->is_skipping = true;
			}
			continue;
		}
		text = strip(text);
		if (!*text || *text == '#' || *text == ';')
			continue;
		if (*text == '[') {
			read_section(reader, text);
			continue;
		}
		if (!check_key_value(reader, text))
			continue;
		size = strlen(text);
		/* Room for what inih wants behind: CR, LF, NUL. */
		if (capacity < 4 || size > (size_t)capacity - 3) {
			mistake(reader, "line too long for this machine's libinih");
			continue;
		}
		memcpy(buffer, text, size);
		memcpy(buffer + size, "\n", 2);
		reader->is_pending = true;
		return buffer;
	}
	return NULL;
}

/* All of f with a NUL behind; -EFBIG over the limit. */
static int read_text(FILE *f, struct buf *text)
{
	char block[4096];
	size_t n;

	text->limit_bytes = INI_FILE_BYTES;
	errno = 0;
	while (!buf_error(text) && (n = fread(block, 1, sizeof(block), f)))
		buf_append(text, block, n);
	if (ferror(f))
		return errno ? -errno : -EIO;
	buf_text(text);
	return buf_error(text);
}

static int read_entries(struct ini_file *file, struct buf *text, struct diag *diag)
{
	static const char mark[] = "\xef\xbb\xbf";
	struct reader reader = {
		.file = file,
		.diag = diag,
		.text = (char *)text->data,
		.size = text->size,
	};

	if (text->size >= 3 && !memcmp(text->data, mark, 3)) {
		reader.text += 3;
		reader.size -= 3;
	}
	/* Beside what the lines hold: two NULs of a last line "k=" that has no end. */
	reader.strings_end = file->strings = malloc(text->size + 2);
	if (!file->strings)
		return -ENOMEM;
	if (ini_parse_stream(give_line, &reader, on_entry, &reader) == -2)
		return -ENOMEM;
	check_pending(&reader);
	return reader.error == -EFBIG ? 0 : reader.error;
}

int ini_read(FILE *f, const char *path, struct diag *diag, struct ini_file **ret_file)
{
	_cleanup_(ini_file_freep) struct ini_file *file = calloc(1, sizeof(*file));
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	int r;

	if (!file)
		return -ENOMEM;
	file->path = strdup(path);
	if (!file->path)
		return -ENOMEM;
	r = read_text(f, &text);
	if (r == -EFBIG)
		diag_add(diag, path, 0, "larger than 1 MiB: this is no configuration");
	else if (r < 0)
		return r;
	else
		r = read_entries(file, &text, diag);
	if (r >= 0 || r == -EFBIG)
		r = buf_error(&diag->text);
	if (r < 0)
		return r;
	*ret_file = TAKE_PTR(file);
	return 0;
}

const struct ini_entry *ini_find_earlier(const struct ini_file *file, const struct ini_entry *entry)
{
	for (const struct ini_entry *other = file->entries; other < entry; other++) {
		if (!other->key != !entry->key || strcmp(other->section, entry->section) ||
		    strcmp(other->argument, entry->argument))
			continue;
		if (!entry->key || !strcmp(other->key, entry->key))
			return other;
	}
	return NULL;
}

struct ini_file *ini_file_free(struct ini_file *file)
{
	if (!file)
		return NULL;
	free(file->path);
	free(file->entries);
	free(file->strings);
	free(file);
	return NULL;
}
