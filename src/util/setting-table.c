/* SPDX-License-Identifier: Apache-2.0 */
#include "util/setting-table.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "util/array.h"
#include "util/parse.h"

const struct setting_row *setting_table_find(const struct setting_table *table, const char *key)
{
	return array_find(table->rows, table->n_rows, key);
}

bool setting_row_is_list(const struct setting_row *row)
{
	return row && (row->type == SETTING_LIST || row->type == SETTING_WORDS);
}

const struct assignment *assignments_find(const struct assignments *all, const char *key,
					  const char *text)
{
	for (size_t i = all->n; i--;)
		if (!strcmp(all->items[i].key, key) &&
		    (!text || !strcmp(all->items[i].value, text)))
			return &all->items[i];
	return NULL;
}

struct assignment assignments_place(const struct assignments *all, const char *key,
				    const char *text)
{
	const struct assignment *found = assignments_find(all, key, text);

	return found ? *found : (struct assignment){ .path = all->path, .line = all->line };
}

#define complain(at, diag, format, ...) \
	diag_add(diag, (at)->path, (at)->line, "%s: " format, (at)->key, __VA_ARGS__)

struct number_type {
	int (*parse)(const char *text, uint64_t *ret_value);
	const char *what, *example; /* "a duration", "10s or 500ms" */
	const char *example_unit;   /* for the number without one; NULL: none is needed */
	const struct parse_unit *units; /* NULL: none */
};

static const struct number_type number_types[] = {
	[SETTING_U64] = { parse_u64, "a whole number", "2000", NULL, NULL },
	[SETTING_DURATION] = { parse_duration_ns, "a duration", "10s, 500ms or 1m30s", "s", parse_duration_units },
	[SETTING_SIZE] = { parse_size_bytes, "a size", "512B, 64KiB or 8MiB", "KiB", parse_size_units },
};

/* The limit as one would write it: 1s, 64KiB. */
static void complain_limit(const struct setting_row *row, const struct assignment *at,
			   struct diag *diag, const char *side, uint64_t limit)
{
	static const struct parse_unit none[] = { { "", 1 }, { NULL, 0 } };
	const struct parse_unit *unit = number_types[row->type].units ?: none;

	while ((!limit || limit % unit->factor) && unit[1].name)
		unit++;
	complain(at, diag, "\"%s\" is %s %" PRIu64 "%s", at->value, side, limit / unit->factor, unit->name);
}

/*
 * The unit that was probably meant: bytes, for a size in thousands or one that may not be larger.
 */
static const char *likely_unit(const struct setting_row *row, uint64_t value)
{
	bool is_too_many = row->maximum && value > row->maximum / 1024;

	if (row->type == SETTING_SIZE && ((value >= 1024 && value >= row->minimum) || is_too_many))
		return "B";
	return number_types[row->type].example_unit;
}

static int set_number(const struct setting_row *row, void *member, const struct assignment *at,
		      struct diag *diag)
{
	const struct number_type *type = &number_types[row->type];
	const char *text = at->value;
	uint64_t value = 0, plain;
	int r = type->parse(text, &value);
	if (r == -ERANGE)
		complain(at, diag, "\"%s\" is too large", text);
	else if (r < 0 && type->example_unit && !parse_u64(text, &plain))
		complain(at, diag, "\"%s\" needs a unit: write %s%s (%s is written like %s)", text, text,
			 likely_unit(row, plain), type->what, type->example);
	else if (r < 0)
		complain(at, diag, "\"%s\" is not %s: write it like %s", text, type->what, type->example);
	else if (value < row->minimum && (value || !row->takes_zero))
		complain_limit(row, at, diag, row->takes_zero ? "too small: write 0, or at least" :
								"too small: the minimum is", row->minimum);
	else if (row->maximum && value > row->maximum)
		complain_limit(row, at, diag, "too large: the maximum is", row->maximum);
	else {
		memcpy(member, &value, sizeof(value));
		return 0;
	}
	return -EINVAL;
}

static int set_bool(const struct setting_row *row, void *member, const struct assignment *at,
		    struct diag *diag)
{
	int r = parse_bool(at->value, member);

	if (r < 0)
		complain(at, diag, "\"%s\" is neither yes nor no", at->value);
	return r;
}

static int set_choice(const struct setting_row *row, void *member, const struct assignment *at,
		      struct diag *diag)
{
	size_t n = 0;

	for (; row->choices[n]; n++)
		if (!strcasecmp(at->value, row->choices[n])) {
			*(int *)member = (int)n;
			return 0;
		}
	diag_add_unknown(diag, at->path, at->line, row->key, at->value, row->choices, n);
	return -EINVAL;
}

/* What the row's own check says. text: the value, or an item of it. */
static int check_text(const struct setting_row *row, const char *text, const struct assignment *at,
		      struct diag *diag)
{
	const char *complaint = "not allowed";
	int r = row->check ? row->check(text, &complaint) : 0;

	if (r == -ENOMEM)
		diag->text.error = r; /* which is not a mistake of the text */
	else if (r < 0 && row->type == SETTING_WORDS)
		complain(at, diag, "\"%.100s\": %s", text, complaint);
	else if (r < 0)
		complain(at, diag, "%s", complaint);
	return r;
}

static int set_text(const struct setting_row *row, void *member, const struct assignment *at,
		    struct diag *diag)
{
	bool is_set = *at->value || row->default_text;
	char **text = member, *copy = is_set ? strdup(at->value) : NULL;

	if (is_set && !copy)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

void setting_list_clear(struct setting_list *list)
{
	for (size_t i = 0; i < list->n_items; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct setting_list){ 0 };
}

int setting_list_add(struct setting_list *list, const char *text)
{
	char **item = array_add(&list->items, &list->n_items, sizeof(*item));

	return item && (*item = strdup(text)) ? 0 : -ENOMEM;
}

static int set_list(const struct setting_row *row, void *member, const struct assignment *at,
		    struct diag *diag)
{
	const char *separators = row->type == SETTING_WORDS ? ", \t" : "", *text = at->value;
	struct setting_list *list = member;

	if (list->is_default || !*text)
		setting_list_clear(list);
	while (*text) {
		size_t length = strcspn(text, separators);
		_cleanup_(freep) char *item = strndup(text, length);

		if (!item)
			return -ENOMEM;
		text += length + strspn(text + length, separators);
		/* One bad word does not hide what is wrong with the next. */
		if (!length || check_text(row, item, at, diag))
			continue;
		if (setting_list_add(list, item))
			return -ENOMEM;
	}
	return 0;
}

static int set_value(const struct setting_row *row, void *structure, const struct assignment *at,
		     struct diag *diag)
{
	static int (*const setters[])(const struct setting_row *, void *, const struct assignment *,
				      struct diag *) = {
		[SETTING_BOOL] = set_bool,
		[SETTING_U64] = set_number,
		[SETTING_DURATION] = set_number,
		[SETTING_SIZE] = set_number,
		[SETTING_TEXT] = set_text,
		[SETTING_CHOICE] = set_choice,
		[SETTING_LIST] = set_list,
		[SETTING_WORDS] = set_list,
	};
	bool is_unset = row->type == SETTING_TEXT && !*at->value && !row->default_text;

	if (!setting_row_is_list(row) && !is_unset && check_text(row, at->value, at, diag) < 0)
		return -EINVAL;
	return setters[row->type](row, (char *)structure + row->offset, at, diag);
}

int setting_table_init(const struct setting_table *table, void *structure)
{
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;

	for (size_t i = 0; i < table->n_rows; i++) {
		const struct setting_row *row = &table->rows[i];
		const struct assignment at = { row->key, row->default_text, "default", 0, 0 };
		int r = row->default_text ? set_value(row, structure, &at, &diag) : 0;

		if (r < 0)
			return r;
		if (setting_row_is_list(row))
			((struct setting_list *)((char *)structure + row->offset))->is_default =
				true;
	}
	return 0;
}

int setting_table_set(const struct setting_table *table, void *structure,
		      const struct assignment *assignment, struct diag *diag)
{
	const struct setting_row *row = diag_find(diag, assignment->path, assignment->line, "key",
						  assignment->key, table->rows, table->n_rows);

	if (!row)
		return 0;
	if (assignment->earlier_line && !setting_row_is_list(row)) {
		complain(assignment, diag, "already set on line %u", assignment->earlier_line);
		return 0;
	}
	return set_value(row, structure, assignment, diag) == -ENOMEM ? -ENOMEM : 0;
}

void setting_table_done(const struct setting_table *table, void *structure)
{
	for (size_t i = 0; structure && i < table->n_rows; i++) {
		void *member = (char *)structure + table->rows[i].offset;

		if (setting_row_is_list(&table->rows[i]))
			setting_list_clear(member);
		if (table->rows[i].type == SETTING_TEXT) {
			free(*(char **)member);
			*(char **)member = NULL;
		}
	}
}
