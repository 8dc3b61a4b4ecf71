/* SPDX-License-Identifier: Apache-2.0 */
#include "export/lines/name.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/array.h"
#include "util/hash.h"

#define TEXT_HEX	  "0123456789abcdef"
#define TEXT_DIGITS_BYTES 9 /* "_" and eight digits */
#define TEXT_OVERFLOW	  "otel_metric_overflow"

struct text_rule {
	const char *keeps; /* besides letters and digits */
	size_t limit_bytes;
};

static const struct text_rule level_rule = { "_-", NAME_LEVEL_BYTES },
	tag_rule = { "_-.", NAME_TAG_BYTES };

/* Texts as parts of names: rules 1 and 2 */

static bool is_kept(const struct text_rule *rule, char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
	       (byte >= '0' && byte <= '9') || strchr(rule->keeps, byte);
}

static bool ends_in_digits(const char *text, size_t size)
{
	return size >= TEXT_DIGITS_BYTES && text[size - TEXT_DIGITS_BYTES] == '_' &&
	       strspn(text + size - TEXT_DIGITS_BYTES + 1, TEXT_HEX) == TEXT_DIGITS_BYTES - 1;
}

/* Can it stay as it is? */
static bool text_is_plain(const struct text_rule *rule, const char *text)
{
	size_t size = 0;

	while (text[size] && is_kept(rule, text[size]))
		size++;
	return size && !text[size] && size <= rule->limit_bytes && !ends_in_digits(text, size) &&
	       strcmp(text, "_") && strcmp(text, TEXT_OVERFLOW);
}

/* Without digits, at most limit bytes. */
static void text_append_replaced(struct buf *out, const struct text_rule *rule, const char *text,
				 size_t limit)
{
	size_t at = out->size;

	for (const char *byte = text; *byte && out->size - at < limit; byte++) {
		if (is_kept(rule, *byte))
			buf_append_byte(out, (uint8_t)*byte);
		else if (((unsigned char)*byte & 0xc0) != 0x80)
			/* the first byte of a character of UTF-8 */
			buf_append_byte(out, '_');
	}
	if (out->size == at)
		buf_append_byte(out, '_');
}

/* With "_" for each character that is not kept, then digits of hash. */
static void text_append_marked(struct buf *out, const struct text_rule *rule, const char *text,
			       uint64_t hash)
{
	text_append_replaced(out, rule, text, rule->limit_bytes - TEXT_DIGITS_BYTES);
	buf_printf(out, "_%08" PRIx32, (uint32_t)hash);
}

/* text as it is if possible; if not, marked with its own hash. */
static void text_append(struct buf *out, const struct text_rule *rule, const char *text)
{
	if (text_is_plain(rule, text))
		buf_append_text(out, text);
	else
		text_append_marked(out, rule, text,
				   hash_stable(HASH_STABLE_START, text, strlen(text)));
}

static uint64_t hash_pair(const char *first, const char *second)
{
	return hash_stable(hash_text(HASH_STABLE_START, first), second, strlen(second));
}

/* Metrics */

/* The same in every process and on every machine. */
static uint64_t hash_series(const struct series *series)
{
	const struct metric *metric = series->metric;
	uint64_t hash = hash_text(hash_text(HASH_STABLE_START, metric->scope), metric->name);

	for (unsigned int i = 0; i < series->n_attributes; i++) {
		const struct attribute *attribute = &series->attributes[i];

		hash = hash_text(hash, attribute->name);
		hash = hash_stable(hash, &attribute->type, sizeof(attribute->type));
		if (attribute->type == ATTRIBUTE_TEXT)
			hash = hash_text(hash, attribute->text);
		else
			hash = hash_stable(hash, &attribute->number, sizeof(attribute->number));
	}
	return hash;
}

/* Values */

/* The metric's name: its dots separate levels. */
static void append_levels(struct buf *out, const char *name)
{
	_cleanup_(freep) char *copy = strdup(name);
	char *rest = copy, *level;

	if (!copy) {
		out->error = -ENOMEM;
		return;
	}
	while ((level = strsep(&rest, "."))) {
		if (level != copy)
			buf_append_byte(out, '.');
		text_append(out, &level_rule, level);
	}
}

/*
 * A unit, a container and a cgroup never have the same level: a unit that is plain has a "_", an id
 * has none, and the digits of all others are also those of the attribute's name.
 */
static void append_owner(struct buf *out, const struct attribute *owner)
{
	char level[ATTRIBUTE_TEXT_BYTES + 1];
	bool is_known = false;
	char *dot;

	snprintf(level, sizeof(level), "%s", owner->text);
	dot = strrchr(level, '.');
	if (!strcmp(owner->name, "container.id")) {
		is_known = !level[strspn(level, TEXT_HEX)];
	} else if (!strcmp(owner->name, "systemd.unit.name") && dot) {
		is_known = dot[1] && !dot[1 + strspn(dot + 1, "abcdefghijklmnopqrstuvwxyz")];
		*dot = '_';
	}
	if (is_known && text_is_plain(&level_rule, level))
		buf_append_text(out, level);
	else
		text_append_marked(out, &level_rule, owner->text,
				   hash_pair(owner->name, owner->text));
}

/* It is the same in all series, so nothing has to be found again. NULL: there is none. */
static void append_resource(struct buf *out, const struct text_rule *rule,
			    const struct attribute *attribute)
{
	char number[ATTRIBUTE_NUMBER_BYTES];

	text_append_replaced(out, rule, attribute ? attribute_text(attribute, number) : "",
			     rule->limit_bytes);
}

static void append_value(struct buf *out, const struct attribute *attribute)
{
	char number[ATTRIBUTE_NUMBER_BYTES];

	if (attribute->type == ATTRIBUTE_TEXT && attribute_owner(attribute->name))
		append_owner(out, attribute);
	else
		text_append(out, &level_rule, attribute_text(attribute, number));
}

/* Paths */

static bool is_named(const struct attribute *attribute, const char *name, size_t size)
{
	return strlen(attribute->name) == size && !memcmp(attribute->name, name, size);
}

static const struct attribute *find_attribute(const struct attribute *attributes, unsigned int n,
					      const char *name, size_t size)
{
	for (unsigned int i = 0; i < n; i++)
		if (is_named(&attributes[i], name, size))
			return &attributes[i];
	return NULL;
}

/* Whether a placeholder other than {attributes} shows an attribute of the series. */
static bool is_in_path(const struct naming *naming, const struct attribute *attribute)
{
	if (attribute_owner(attribute->name) && naming->template.n_of[TEMPLATE_UNIT])
		return true;
	for (unsigned int i = 0; i < naming->template.n; i++) {
		const struct template_piece *piece = &naming->template.pieces[i];

		if (piece->kind == TEMPLATE_NAMED && is_named(attribute, piece->text, piece->size))
			return true;
	}
	return false;
}

/* Without any, one of the dots around them goes too. */
static void append_attributes(const struct naming *naming, const struct series *series, size_t at,
			      struct buf *out)
{
	bool is_first = true;

	for (unsigned int i = 0; i < series->n_attributes; i++) {
		const struct attribute *attribute = &series->attributes[i];

		if (is_in_path(naming, attribute))
			continue;
		if (!is_first)
			buf_append_byte(out, '.');
		is_first = false;
		/* Its name says it; "true" would not. */
		if (attribute->type == ATTRIBUTE_FLAG && series_is_overflow(series))
			buf_append_text(out, TEXT_OVERFLOW);
		else
			append_value(out, attribute);
	}
	if (is_first && out->size > at && out->data[out->size - 1] == '.')
		out->size--;
}

static void append_piece(const struct naming *naming, const struct template_piece *piece,
			 const struct series *series,
			 const char *unit_suffix, size_t at, struct buf *out)
{
	const bool is_unit = piece->kind == TEMPLATE_UNIT;
	const struct attribute *attribute;
	size_t skipped;

	switch (piece->kind) {
	case TEMPLATE_TEXT:
		/* It may begin with a dot after {attributes} that were empty. */
		skipped = out->size == at && *piece->text == '.';
		buf_append(out, piece->text + skipped, piece->size - skipped);
		break;
	case TEMPLATE_METRIC:
		append_levels(out, series->metric->name);
		buf_append_text(out, unit_suffix);
		break;
	case TEMPLATE_HOST:
		append_resource(out, &level_rule,
				find_attribute(naming->resource, naming->n_resource, "host.name", 9));
		break;
	case TEMPLATE_ATTRIBUTES:
		append_attributes(naming, series, at, out);
		break;
	case TEMPLATE_UNIT:
	case TEMPLATE_NAMED:
		attribute = is_unit ? series_owner(series) :
				      find_attribute(series->attributes, series->n_attributes,
						     piece->text, piece->size);
		if (attribute)
			append_value(out, attribute);
		else
			append_resource(out, &level_rule, is_unit ? NULL :
					find_attribute(naming->resource, naming->n_resource,
						       piece->text, piece->size));
		break;
	}
}

/* Rules 3 and 4. */
static bool needs_digits(const struct naming *naming, const struct series *series,
			 const struct name_kind *kind)
{
	bool has_place = naming->dialect->tag_first || naming->template.n_of[TEMPLATE_ATTRIBUTES];

	if (kind->is_shadowed || (series->n_attributes && !naming->template.is_readable))
		return true;
	for (unsigned int i = 0; !has_place && i < series->n_attributes; i++)
		if (!is_in_path(naming, &series->attributes[i]))
			return true;
	return false;
}

void name_append_path(const struct naming *naming, const struct series *series,
		      const struct name_kind *kind, struct buf *out)
{
	size_t suffix_size = strlen(kind->path_suffix);
	size_t limit = naming->limit_bytes - kind->spare_bytes - suffix_size;
	bool has_digits = needs_digits(naming, series, kind);
	size_t at = out->size, value_end = at;

	for (unsigned int i = 0; i < naming->template.n; i++) {
		const struct template_piece *piece = &naming->template.pieces[i];
		size_t before = out->size;

		append_piece(naming, piece, series, kind->unit_suffix, at, out);
		if (piece->kind != TEMPLATE_TEXT && piece->kind != TEMPLATE_METRIC &&
		    out->size > before)
			value_end = out->size;
	}
	if (buf_error(out))
		return;
	/* A value that happens to be "count" is not the suffix. */
	if (out->size - value_end > suffix_size &&
	    !memcmp(out->data + out->size - suffix_size, kind->path_suffix, suffix_size))
		out->size -= suffix_size;
	if (out->size - at > limit - (has_digits ? TEXT_DIGITS_BYTES : 0)) {
		out->size = at + limit - TEXT_DIGITS_BYTES;
		has_digits = true;
	}
	if (has_digits)
		buf_printf(out, "_%08" PRIx32, (uint32_t)hash_series(series));
	buf_append_text(out, kind->path_suffix);
}

/* Tags */

/*
 * Up to where the value goes. taken_as: NULL; or if somebody else has the tag's name, who wants it
 * here: so the digits are neither those that the text itself may need, nor the same for a resource
 * and its series.
 */
static void begin_tag(const struct naming *naming, size_t at, const char *name,
		      const char *taken_as, struct buf *out)
{
	if (out->size == at)
		buf_append_text(out, naming->dialect->tag_first);
	else
		buf_append_byte(out, (uint8_t)naming->dialect->tag_next);
	if (taken_as)
		text_append_marked(out, &tag_rule, name, hash_pair(taken_as, name));
	else
		text_append(out, &tag_rule, name);
	buf_append_byte(out, (uint8_t)naming->dialect->tag_equals);
}

/* Names that mean something else to a receiver, or are ours. */
static bool is_reserved(const char *name)
{
	return !strcmp(name, "name") || !strcmp(name, "__name__") || !strcmp(name, NAME_TAG_UPPER);
}

static void append_resource_tags(const struct naming *naming,
				 const struct text_rule *rule, size_t at, struct buf *out)
{
	const struct setting_list *tags = naming->resource_tags;

	for (size_t i = 0; i < tags->n_items; i++) {
		const char *name = tags->items[i];
		const struct attribute *attribute =
			find_attribute(naming->resource, naming->n_resource, name, strlen(name));
		bool is_host = !strcmp(name, "host.name") && naming->template.n_of[TEMPLATE_HOST];

		if (!attribute || is_host || is_in_path(naming, attribute) ||
		    array_find(tags->items, i, name))
			continue;
		begin_tag(naming, at, name, is_reserved(name) ? "resource" : NULL, out);
		append_resource(out, rule, attribute);
	}
}

void name_append_tags(const struct naming *naming, const struct series *series, struct buf *out)
{
	const struct setting_list *resource_tags = naming->resource_tags;
	const struct text_rule rule = { naming->dialect->value_keeps, NAME_LEVEL_BYTES };
	size_t at = out->size;
	char number[ATTRIBUTE_NUMBER_BYTES];

	if (!naming->dialect->tag_first)
		return;
	append_resource_tags(naming, &rule, at, out);
	if (naming->template.n_of[TEMPLATE_ATTRIBUTES])
		return;
	for (unsigned int i = 0; i < series->n_attributes; i++) {
		const struct attribute *attribute = &series->attributes[i];
		bool is_taken = is_reserved(attribute->name) ||
				array_find(resource_tags->items, resource_tags->n_items,
					   attribute->name);

		if (is_in_path(naming, attribute))
			continue;
		begin_tag(naming, at, attribute->name, is_taken ? "series" : NULL, out);
		text_append(out, &rule, attribute_text(attribute, number));
	}
}
