/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of the file is cut into strings where it lies. The reader that inih calls for each line
 * is ours: it counts lines, takes sections (inih cuts them at 49 bytes and does not report empty
 * ones), and refuses what inih would join, cut or pass over. inih splits off the key. It is not
 * given the value, because it reads at most 196 bytes of a line and takes the end of some values
 * for comments.
 */
#include "util/ini.h"

#include <errno.h>
#include <string.h>

#include <ini.h>

#include "util/array.h"
#include "util/parse.h"
#include "util/utf8.h"

struct ini_reader {
	struct ini_file *file;
	struct diag *diag;
	char *text; /* what is still to be read, NUL-terminated */
	size_t size;
	const char *section;  /* NULL: after a bad section line, or before the first */
	const char *argument; /* of section */
	bool is_skipping;     /* what follows a bad section line */
	char *key, *value;    /* of the line that inih is given */
	size_t room;	      /* for what inih is given */
	unsigned int line;
	unsigned int n_mistakes;
	int error;	    /* -errno that ends the reading */
};

#define mistake(reader, ...)     \
	((reader)->n_mistakes++, \
	 diag_add((reader)->diag, (reader)->file->path, (reader)->line, __VA_ARGS__))

/* key and value: NULL for a section. Too many, or no memory, end the reading. */
static void add_entry(struct ini_reader *reader, const char *key, const char *value)
{
	struct ini_file *file = reader->file;
	const struct ini_entry entry = { reader->section, reader->argument, key, value,
					 reader->line };

	if (file->n_entries == INI_ENTRIES) {
		mistake(reader, "more than %u keys and sections, the rest is not read", INI_ENTRIES);
		reader->error = -EFBIG;
		return;
	}
	reader->error = array_append(&file->entries, &file->n_entries, &entry);
}

static int on_entry(void *user, const char *section, const char *key, const char *value)
{
	struct ini_reader *reader = user;

	if (!*reader->key)
		mistake(reader, "no key before \"=\": write key = value");
	else if (strcmp(key, reader->key) || !parse_is_name(key))
		mistake(reader, "bad key \"%s\": a key consists of A-Z a-z 0-9 _ . -", reader->key);
	else
		add_entry(reader, reader->key, reader->value);
	return 1;
}

/* "[kind argument]", stripped. */
static void read_section(struct ini_reader *reader, char *text)
{
	char *end = strchr(text, ']'), *kind, *argument;

	if (!end) {
		mistake(reader, "this section has no \"]\": write [kind] or [kind name]");
		return;
	}
	if (end[1]) {
		mistake(reader, "text after \"]\": a section stands alone on its line");
		return;
	}
	*end = '\0';
	kind = parse_strip(text + 1);
	argument = kind + strcspn(kind, " \t");
	if (*argument) {
		*argument++ = '\0';
		argument = parse_strip(argument);
	}
	if (!parse_is_name(kind) || strpbrk(argument, " \t[")) {
		mistake(reader, "bad section: write [kind] or [kind name], each a single word; "
				"the kind consists of A-Z a-z 0-9 _ . -");
		return;
	}
	reader->section = kind;
	reader->argument = argument;
	reader->is_skipping = false;
	add_entry(reader, NULL, NULL);
}

/* text has a "=" and does not begin with a comment. */
static bool has_comment(const char *text)
{
	const char *value = strchr(text, '=') + 1;

	for (const char *at = text; (at = strpbrk(at, "#;")); at++)
		if (at == value || at[-1] == ' ' || at[-1] == '\t')
			return true;
	return false;
}

/* Would inih read it as it is meant? What it finds before "=" is checked in on_entry(). */
static bool check_line(struct ini_reader *reader, const char *text)
{
	if (!strchr(text, '='))
		mistake(reader, "no \"=\": write key = value");
	else if (!reader->section) {
		if (!reader->is_skipping)
			mistake(reader, "key before the first [section]");
	} else if (has_comment(text))
		mistake(reader, "%.*s: \"#\" or \";\" after a blank: put a comment on a line of its own; "
				"a value cannot contain this",
			(int)strcspn(text, " \t="), text);
	else if (strcspn(text, "=") >= reader->room)
		mistake(reader, "this line is too long for this machine's libinih");
	else
		return true;
	return false;
}

static bool check_bytes(struct ini_reader *reader, const char *text, size_t size)
{
	if (size > INI_LINE_BYTES) {
		mistake(reader, "this line has %zu bytes, and %d are the limit", size, INI_LINE_BYTES);
		return false;
	}
	for (size_t i = 0, bytes; i < size; i += bytes) {
		bytes = utf8_bytes(text + i, size - i);
		if (!bytes) {
			mistake(reader, "byte 0x%02x at column %zu is not UTF-8", (uint8_t)text[i], i + 1);
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
static char *next_line(struct ini_reader *reader, size_t *ret_size)
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

/*
 * The next line that is for inih; NULL at the end. Sections and mistakes are dealt with on the way.
 */
static char *find_line(struct ini_reader *reader)
{
	char *text;
	size_t size;

	while (!reader->error && (text = next_line(reader, &size))) {
		bool is_sound;

		if (reader->n_mistakes >= INI_MISTAKES) {
			mistake(reader, "%d mistakes, the rest of the file is not read", INI_MISTAKES);
			return NULL;
		}
		is_sound = check_bytes(reader, text, size);
		text = parse_strip(text);
		if (*text == '[') {
			/* After a bad line it is not known which section the keys belong to. */
			reader->section = NULL;
			reader->is_skipping = true;
			if (is_sound)
				read_section(reader, text);
		} else if (is_sound && *text && *text != '#' && *text != ';' &&
			   check_line(reader, text))
			return text;
	}
	return NULL;
}

/* The ini_reader of inih. */
static char *give_line(char *buffer, int capacity, void *stream)
{
	struct ini_reader *reader = stream;

	reader->room = (size_t)capacity - 3; /* without CR, LF and NUL */
	reader->key = find_line(reader);
	if (!reader->key)
		return NULL;
	reader->value = strchr(reader->key, '=');
	*reader->value++ = '\0';
	reader->value += strspn(reader->value, " \t");
	snprintf(buffer, (size_t)capacity, "%s=\n", parse_strip(reader->key));
	return buffer;
}

int ini_read(FILE *f, const char *path, struct diag *diag, struct ini_file **ret_file)
{
	_cleanup_(ini_file_freep) struct ini_file *file = calloc(1, sizeof(*file));
	struct ini_reader reader = { .file = file, .diag = diag };
	int r = 0;

	if (!file)
		return -ENOMEM;
	file->path = strdup(path);
	file->text = malloc(INI_FILE_BYTES + 1);
	if (!file->path || !file->text)
		return -ENOMEM;
	errno = 0;
	reader.size = fread(file->text, 1, INI_FILE_BYTES + 1, f);
	if (ferror(f))
		return errno ? -errno : -EIO;
	if (reader.size > INI_FILE_BYTES) {
		diag_add(diag, path, 0, "is larger than 1 MiB, which is too large for a configuration file");
	} else {
		size_t mark_size;

		file->text[reader.size] = '\0';
		mark_size = strncmp(file->text, "\xef\xbb\xbf", 3) ? 0 : 3;
		file->text = realloc(file->text, reader.size + 1) ?: file->text;
		reader.text = file->text + mark_size;
		reader.size -= mark_size;
		r = ini_parse_stream(give_line, &reader, on_entry, &reader);
		r = r == -2 || reader.error == -ENOMEM ? -ENOMEM : 0;
	}
	r = r ?: buf_error(&diag->text);
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
	free(file->text);
	free(file);
	return NULL;
}
