/* SPDX-License-Identifier: Apache-2.0 */
#include "util/option.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "util/parse.h"

#define KEYS_MAX 64 /* of one table */

/* Where a value came from, for messages; diag NULL: a default of the table. */
struct place {
	const char *path;
	unsigned int line;
	struct diag *diag;
};

const struct option *option_find(const struct option *table, size_t n_options, const char *key)
{
	for (size_t i = 0; i < n_options; i++)
		if (!strcmp(table[i].key, key))
			return &table[i];
	return NULL;
}

bool option_is_list(const struct option *option)
{
	return option && (option->type == OPTION_LIST || option->type == OPTION_WORDS);
}

void option_add_unknown(struct diag *diag, const char *path, unsigned int line, const char *what,
			const char *key, const char *const *names, size_t n_names)
{
	const char *nearest = parse_nearest(key, names, n_names);
	_cleanup_(buf_done) struct buf list = BUF_INIT;

	if (nearest) {
		diag_add(diag, path, line, "unknown %s \"%s\": did you mean \"%s\"?", what, key, nearest);
		return;
	}
	for (size_t i = 0; i < n_names; i++)
		buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
	diag_add(diag, path, line, "unknown %s \"%s\": there %s %s", what, key, n_names == 1 ? "is" : "are",
		 n_names ? buf_text(&list) : "none");
	if (buf_error(&list))
		diag->text.error = buf_error(&list);
}

static void add_unknown_key(const struct option *table, size_t n_options, const char *key,
			    const struct place *place)
{
	const char *keys[KEYS_MAX];
	size_t n = n_options < KEYS_MAX ? n_options : KEYS_MAX;

	for (size_t i = 0; i < n; i++)
		keys[i] = table[i].key;
	option_add_unknown(place->diag, place->path, place->line, "key", key, keys, n);
}

#define complain(place, option, format, ...)                                                  \
	((place)->diag ? diag_add((place)->diag, (place)->path, (place)->line, "%s: " format, \
				  (option)->key, __VA_ARGS__) :                               \
			 (void)0)

struct number_type {
	int (*parse)(const char *text, uint64_t *ret_value);
	const char *what, *example; /* "a duration", "10s or 500ms" */
	const char *example_unit;   /* for the number without one; NULL: none is needed */
	const char *units[8];	    /* for limits: greatest first, with factors */
	uint64_t factors[8];
};

static const struct number_type number_types[] = {
	[OPTION_U64] = { parse_u64, "a whole number", "2000", NULL, { "" }, { 1 } },
	[OPTION_DURATION] = {
		parse_duration_ns, "a duration", "10s, 500ms or 1m30s", "s",
		{ "d", "h", "m", "s", "ms", "us", "ns" },
		{ 86400000000000, 3600000000000, 60000000000, 1000000000, 1000000, 1000, 1 },
	},
	[OPTION_SIZE] = {
		parse_size_bytes, "a size", "512B, 64KiB or 8MiB", "KiB",
		{ "TiB", "GiB", "MiB", "KiB", "B" },
		{ 1ull << 40, 1ull << 30, 1ull << 20, 1ull << 10, 1 },
	},
};

/* The limit as one would write it: 1s, 64KiB. */
static void complain_limit(const struct place *place, const struct option *option, const char *text,
			   const char *side, uint64_t limit)
{
	const struct number_type *type = &number_types[option->type];
	size_t unit = 0;

	while (type->units[unit + 1] && (!limit || limit % type->factors[unit]))
		unit++;
	complain(place, option, "\"%s\" is %s %" PRIu64 "%s", text, side, limit / type->factors[unit],
		 type->units[unit]);
}

/* What a number without a unit was meant to have: of a size in thousands, or one that may not be larger, bytes. */
static const char *likely_unit(const struct option *option, uint64_t value)
{
	bool is_too_many = option->maximum && value > option->maximum / 1024;

	if (option->type == OPTION_SIZE && ((value >= 1024 && value >= option->minimum) || is_too_many))
		return "B";
	return number_types[option->type].example_unit;
}

static int set_number(const struct option *option, void *member, const char *text,
		      const struct place *place)
{
	const struct number_type *type = &number_types[option->type];
	uint64_t value = 0, plain;
	int r;

	r = type->parse(text, &value);
	if (r == -ERANGE)
		complain(place, option, "\"%s\" is too great", text);
	else if (r < 0 && type->example_unit && !parse_u64(text, &plain))
		complain(place, option, "\"%s\" needs a unit: write %s%s (%s is written like %s)", text, text,
			 likely_unit(option, plain), type->what, type->example);
	else if (r < 0)
		complain(place, option, "\"%s\" is not %s: write it like %s", text, type->what, type->example);
	else if (value < option->minimum)
		complain_limit(place, option, text, "less than the least possible,", option->minimum);
	else if (option->maximum && value > option->maximum)
		complain_limit(place, option, text, "more than the most possible,", option->maximum);
	else {
		memcpy(member, &value, sizeof(value));
		return 0;
	}
	return -EINVAL;
}

static int set_bool(const struct option *option, void *member, const char *text, const struct place *place)
{
	int r = parse_bool(text, member);

	if (r < 0)
		complain(place, option, "\"%s\" is neither yes nor no", text);
	return r;
}

static int set_choice(const struct option *option, void *member, const char *text,
		      const struct place *place)
{
	_cleanup_(buf_done) struct buf list = BUF_INIT;
	const char *nearest;
	size_t n = 0;

	for (; option->choices[n]; n++)
		if (!strcasecmp(text, option->choices[n])) {
			*(int *)member = (int)n;
			return 0;
		}
	nearest = parse_nearest(text, option->choices, n);
	for (size_t i = 0; i < n; i++)
		buf_printf(&list, "%s%s", !i ? "" : i + 1 < n ? ", " :
								" or ",
			   option->choices[i]);
	if (nearest)
		complain(place, option, "\"%s\" is not possible: did you mean \"%s\"? (%s)", text, nearest,
			 buf_text(&list));
	else
		complain(place, option, "\"%s\" is not possible: write %s", text, buf_text(&list));
	return buf_error(&list) ?: -EINVAL;
}

/* What the option's own check says. */
static int check_text(const struct option *option, const char *text, const struct place *place)
{
	const char *complaint = "not possible";
	int r = option->check ? option->check(text, &complaint) : 0;

	if (r < 0 && option->type == OPTION_WORDS)
		complain(place, option, "\"%s\": %s", text, complaint);
	else if (r < 0)
		complain(place, option, "%s", complaint);
	return r;
}

static int set_text(const struct option *option, void *member, const char *text, const struct place *place)
{
	char **text_member = member, *copy = NULL;

	if (*text || option->default_text) {
		copy = strdup(text);
		if (!copy)
			return -ENOMEM;
	}
	free(*text_member);
	*text_member = copy;
	return 0;
}

static void list_clear(struct option_list *list)
{
	for (size_t i = 0; i < list->n_items; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct option_list){ 0 };
}

static int list_add(struct option_list *list, const char *text, size_t length)
{
	char **items, *copy;

	items = reallocarray(list->items, list->n_items + 1, sizeof(*items));
	if (!items)
		return -ENOMEM;
	list->items = items;
	copy = strndup(text, length);
	if (!copy)
		return -ENOMEM;
	items[list->n_items++] = copy;
	return 0;
}

static int set_list(const struct option *option, void *member, const char *text, const struct place *place)
{
	const char *separators = option->type == OPTION_WORDS ? ", \t" : "";
	_cleanup_(freep) char *item = NULL;
	struct option_list *list = member;
	int r = 0;

	if (list->is_default || !*text)
		list_clear(list);
	while (*text && r >= 0) {
		size_t length = strcspn(text, separators);

		free(item);
		item = strndup(text, length);
		if (!item)
			return -ENOMEM;
		/* One bad word does not hide what is wrong with the next. */
		if (length && !check_text(option, item, place))
			r = list_add(list, item, length);
		text += length + strspn(text + length, separators);
	}
	list->is_default = !place->diag && list->n_items;
	return r;
}

static int set_value(const struct option *option, void *structure, const char *text,
		     const struct place *place)
{
	static int (*const setters[])(const struct option *, void *, const char *, const struct place *) = {
		[OPTION_BOOL] = set_bool,
		[OPTION_U64] = set_number,
		[OPTION_DURATION] = set_number,
		[OPTION_SIZE] = set_number,
		[OPTION_TEXT] = set_text,
		[OPTION_CHOICE] = set_choice,
		[OPTION_LIST] = set_list,
		[OPTION_WORDS] = set_list,
	};
	bool is_unset = option->type == OPTION_TEXT && !*text && !option->default_text;

	if (!option_is_list(option) && !is_unset && check_text(option, text, place) < 0)
		return -EINVAL;
	return setters[option->type](option, (char *)structure + option->offset, text, place);
}

int options_init(const struct option *table, size_t n_options, void *structure)
{
	const struct place place = { 0 };

	for (size_t i = 0; i < n_options; i++) {
		int r = table[i].default_text ? set_value(&table[i], structure, table[i].default_text, &place) : 0;

		if (r < 0) {
			options_done(table, n_options, structure);
			return r;
		}
	}
	return 0;
}

int option_set(const struct option *table, size_t n_options, void *structure, const char *key,
	       const char *value, const char *path, unsigned int line, struct diag *diag)
{
	const struct option *option = option_find(table, n_options, key);
	const struct place place = { path, line, diag };

	if (!option) {
		add_unknown_key(table, n_options, key, &place);
		return 0;
	}
	return set_value(option, structure, value, &place) == -ENOMEM ? -ENOMEM : 0;
}

void options_done(const struct option *table, size_t n_options, void *structure)
{
	for (size_t i = 0; i < n_options; i++) {
		void *member = (char *)structure + table[i].offset;

		if (option_is_list(&table[i]))
			list_clear(member);
		if (table[i].type == OPTION_TEXT) {
			free(*(char **)member);
			*(char **)member = NULL;
		}
	}
}
