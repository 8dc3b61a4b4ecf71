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

const struct assignment *assignments_find(const struct assignments *all, const char *key, const char *text)
{
	for (size_t i = all->n; i--;)
		if (!strcmp(all->items[i].key, key) && (!text || !strcmp(all->items[i].value, text)))
			return &all->items[i];
	return NULL;
}

struct assignment assignments_place(const struct assignments *all, const char *key, const char *text)
{
	const struct assignment *found = assignments_find(all, key, text);

	return found ? *found : (struct assignment){ .path = all->path, .line = all->line };
}

/* A text and where it stands, for messages. diag NULL: a default of the table. */
struct place {
	const struct assignment *at;
	struct diag *diag;
};

#define complain(place, row, format, ...)                                                          \
	((place)->diag ? diag_add((place)->diag, (place)->at->path, (place)->at->line,             \
				  "%s: " format, (row)->key, __VA_ARGS__) :                        \
			 (void)0)

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
static void complain_limit(const struct place *place, const struct setting_row *row, const char *text,
			   const char *side, uint64_t limit)
{
	const struct parse_unit *unit = number_types[row->type].units;

	while (unit && (!limit || limit % unit->factor) && unit[1].name)
		unit++;
	complain(place, row, "\"%s\" is %s %" PRIu64 "%s", text, side, unit ? limit / unit->factor : limit,
		 unit ? unit->name : "");
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

static int set_number(const struct setting_row *row, void *member, const char *text,
		      const struct place *place)
{
	const struct number_type *type = &number_types[row->type];
	uint64_t value = 0, plain;
	int r;

	r = type->parse(text, &value);
	if (r == -ERANGE)
		complain(place, row, "\"%s\" is too large", text);
	else if (r < 0 && type->example_unit && !parse_u64(text, &plain))
		complain(place, row, "\"%s\" needs a unit: write %s%s (%s is written like %s)", text, text,
			 likely_unit(row, plain), type->what, type->example);
	else if (r < 0)
		complain(place, row, "\"%s\" is not %s: write it like %s", text, type->what, type->example);
	else if (value < row->minimum)
		complain_limit(place, row, text, "too small: the minimum is", row->minimum);
	else if (row->maximum && value > row->maximum)
		complain_limit(place, row, text, "too large: the maximum is", row->maximum);
	else {
		memcpy(member, &value, sizeof(value));
		return 0;
	}
	return -EINVAL;
}

static int set_bool(const struct setting_row *row, void *member, const char *text, const struct place *place)
{
	int r = parse_bool(text, member);

	if (r < 0)
		complain(place, row, "\"%s\" is neither yes nor no", text);
	return r;
}

static int set_choice(const struct setting_row *row, void *member, const char *text,
		      const struct place *place)
{
	_cleanup_(buf_done) struct buf list = BUF_INIT;
	const char *nearest;
	size_t n = 0;

	for (; row->choices[n]; n++)
		if (!strcasecmp(text, row->choices[n])) {
			*(int *)member = (int)n;
			return 0;
		}
	nearest = parse_nearest(text, row->choices, n);
	for (size_t i = 0; i < n; i++)
		buf_printf(&list, "%s%s", !i ? "" : i + 1 < n ? ", " :
								" or ",
			   row->choices[i]);
	if (nearest)
		complain(place, row, "\"%s\" is not allowed: did you mean \"%s\"? (%s)", text, nearest,
			 buf_text(&list));
	else
		complain(place, row, "\"%s\" is not allowed: write %s", text, buf_text(&list));
	return buf_error(&list) ?: -EINVAL;
}

/* What the row's own check says. */
static int check_text(const struct setting_row *row, const char *text, const struct place *place)
{
	const char *complaint = "not allowed";
	int r = row->check ? row->check(text, &complaint) : 0;

	if (r == -ENOMEM && place->diag)
		place->diag->text.error = r; /* which is not a mistake of the text */
	else if (r < 0 && row->type == SETTING_WORDS)
		complain(place, row, "\"%s\": %s", text, complaint);
	else if (r < 0)
		complain(place, row, "%s", complaint);
	return r;
}

static int set_text(const struct setting_row *row, void *member, const char *text, const struct place *place)
{
	char **text_member = member, *copy = NULL;

	if (*text || row->default_text) {
		copy = strdup(text);
		if (!copy)
			return -ENOMEM;
	}
	free(*text_member);
	*text_member = copy;
	return 0;
}

static void list_clear(struct setting_list *list)
{
	for (size_t i = 0; i < list->n_items; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct setting_list){ 0 };
}

static int set_list(const struct setting_row *row, void *member, const char *text, const struct place *place)
{
	const char *separators = row->type == SETTING_WORDS ? ", \t" : "";
	struct setting_list *list = member;

	if (list->is_default || !*text)
		list_clear(list);
	while (*text) {
		size_t length = strcspn(text, separators);
		_cleanup_(freep) char *item = strndup(text, length);
		char **new;

		if (!item)
			return -ENOMEM;
		text += length + strspn(text + length, separators);
		/* One bad word does not hide what is wrong with the next. */
		if (!length || check_text(row, item, place))
			continue;
		new = array_add(&list->items, &list->n_items, sizeof(*new));
		if (!new)
			return -ENOMEM;
		*new = TAKE_PTR(item);
	}
	list->is_default = !place->diag && list->n_items;
	return 0;
}

static int set_value(const struct setting_row *row, void *structure, const char *text,
		     const struct place *place)
{
	static int (*const setters[])(const struct setting_row *, void *, const char *, const struct place *) = {
		[SETTING_BOOL] = set_bool,
		[SETTING_U64] = set_number,
		[SETTING_DURATION] = set_number,
		[SETTING_SIZE] = set_number,
		[SETTING_TEXT] = set_text,
		[SETTING_CHOICE] = set_choice,
		[SETTING_LIST] = set_list,
		[SETTING_WORDS] = set_list,
	};
	bool is_unset = row->type == SETTING_TEXT && !*text && !row->default_text;

	if (!setting_row_is_list(row) && !is_unset && check_text(row, text, place) < 0)
		return -EINVAL;
	return setters[row->type](row, (char *)structure + row->offset, text, place);
}

int setting_table_init(const struct setting_table *table, void *structure)
{
	const struct place place = { 0 };

	for (size_t i = 0; i < table->n_rows; i++) {
		const struct setting_row *row = &table->rows[i];
		int r = row->default_text ? set_value(row, structure, row->default_text, &place) : 0;

		if (r < 0) {
			setting_table_done(table, structure);
			return r;
		}
	}
	return 0;
}

int setting_table_new(const struct setting_table *table, void **ret_structure)
{
	void *structure = calloc(1, table->size_bytes ?: 1);
	int r = structure ? setting_table_init(table, structure) : -ENOMEM;

	if (r < 0) {
		free(structure);
		return r;
	}
	*ret_structure = structure;
	return 0;
}

int setting_table_set(const struct setting_table *table, void *structure, const struct assignment *assignment,
		      struct diag *diag)
{
	const struct setting_row *row = setting_table_find(table, assignment->key);
	const struct place place = { assignment, diag };

	if (!row) {
		diag_add_unknown(diag, assignment->path, assignment->line, "key", assignment->key, table->rows,
				 table->n_rows);
		return 0;
	}
	if (assignment->earlier_line && !setting_row_is_list(row)) {
		complain(&place, row, "already set on line %u", assignment->earlier_line);
		return 0;
	}
	return set_value(row, structure, assignment->value, &place) == -ENOMEM ? -ENOMEM : 0;
}

void setting_table_done(const struct setting_table *table, void *structure)
{
	for (size_t i = 0; i < table->n_rows; i++) {
		void *member = (char *)structure + table->rows[i].offset;

		if (setting_row_is_list(&table->rows[i]))
			list_clear(member);
		if (table->rows[i].type == SETTING_TEXT) {
			free(*(char **)member);
			*(char **)member = NULL;
		}
	}
}

void setting_table_free(const struct setting_table *table, void *structure)
{
	if (structure)
		setting_table_done(table, structure);
	free(structure);
}
