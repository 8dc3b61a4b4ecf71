/* SPDX-License-Identifier: Apache-2.0 */
#include "export/lines/name.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "util/hash.h"

#define HASH_BYTES 9 /* "_" and eight digits */

uint64_t name_identity(const struct series *series)
{
	const struct metric *metric = series->metric;
	uint64_t hash = hash_stable(HASH_STABLE_START, metric->scope, strlen(metric->scope) + 1);

	hash = hash_stable(hash, metric->name, strlen(metric->name) + 1);
	for (unsigned int i = 0; i < series->n_attributes; i++) {
		const struct attribute *attribute = &series->attributes[i];

		hash = hash_stable(hash, attribute->name, strlen(attribute->name) + 1);
		hash = hash_stable(hash, &attribute->type, sizeof(attribute->type));
		if (attribute->type == ATTRIBUTE_TEXT)
			hash = hash_stable(hash, attribute->text, strlen(attribute->text) + 1);
		else
			hash = hash_stable(hash, &attribute->number, sizeof(attribute->number));
	}
	return hash;
}

int naming_init(struct naming *naming, const struct dialect *dialect, const char *template,
		const struct attribute *resource, unsigned int n_resource, const struct setting_list *resource_tags)
{
	const char *complaint;

	*naming = (struct naming){ .dialect = dialect, .resource = resource, .n_resource = n_resource,
				   .resource_tags = resource_tags, .limit_bytes = NAME_PATH_BYTES };
	for (int byte = 0; byte < 128; byte++)
		naming->is_kept[byte] = byte && (isalnum(byte) || strchr("_-.", byte) ||
						 (dialect->value_keeps && strchr(dialect->value_keeps, byte)));
	return template_parse(template ? template : dialect->default_template, &naming->template, &complaint);
}

int naming_check(const struct setting_list *resource_tags, const char *path, unsigned int line, struct diag *diag)
{
	if (resource_tags->n_items > NAME_RESOURCE_TAGS_MAX)
		diag_add(diag, path, line, "resource_attributes: %zu of them; %d are the limit", resource_tags->n_items,
			 NAME_RESOURCE_TAGS_MAX);
	return 0;
}

/* Cuts what out holds from at to limit bytes, the last of which tell it from all others that begin alike. */
static void cut(struct buf *out, size_t at, size_t limit, const void *whole, size_t size)
{
	if (buf_error(out) || out->size - at <= limit)
		return;
	out->size = at + limit - HASH_BYTES;
	buf_printf(out, "_%08" PRIx32, (uint32_t)hash_stable(HASH_STABLE_START, whole, size));
}

/* text with all replaced that kept does not keep; "_" for none. */
static void append_kept(struct buf *out, const bool kept[256], const char *text, size_t limit)
{
	size_t at = out->size, size = strlen(text);
	uint8_t *to = buf_reserve(out, size + 1);

	if (!to)
		return;
	for (const char *byte = text; *byte; byte++) {
		if (kept[(uint8_t)*byte])
			*to++ = (uint8_t)*byte;
		else if (((uint8_t)*byte & 0xc0) != 0x80) /* the first one of a character */
			*to++ = '_';
	}
	if (to == out->data + at)
		*to++ = '_';
	out->size = (size_t)(to - out->data);
	cut(out, at, limit, text, size);
}

/* One level of a path. */
static void append_level(struct buf *out, const char *text)
{
	static const bool kept[256] = { ['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true,
					['_'] = true, ['-'] = true };

	append_kept(out, kept, text, NAME_LEVEL_BYTES);
}

/* A metric's name: its dots make levels, none of which is empty. */
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
		append_level(out, level);
	}
}

static const char *value_text(const struct attribute *attribute, char number[24])
{
	if (attribute->type == ATTRIBUTE_TEXT)
		return attribute->text;
	if (attribute->type == ATTRIBUTE_FLAG)
		return attribute->number ? "true" : "false";
	snprintf(number, 24, "%" PRId64, attribute->number);
	return number;
}

static bool is_named(const struct attribute *attribute, const char *name, size_t size)
{
	return strlen(attribute->name) == size && !memcmp(attribute->name, name, size);
}

static const struct attribute *find(const struct attribute *attributes, unsigned int n, const char *name, size_t size)
{
	for (unsigned int i = 0; i < n; i++)
		if (is_named(&attributes[i], name, size))
			return &attributes[i];
	return NULL;
}

static const struct attribute *find_owner(const struct series *series)
{
	for (unsigned int i = 0; i < series->n_attributes; i++)
		if (attribute_is_owner(series->attributes[i].name))
			return &series->attributes[i];
	return NULL;
}

/* Whether a placeholder other than {attributes} has it in the path. */
static bool is_in_path(const struct naming *naming, const struct attribute *attribute)
{
	for (unsigned int i = 0; i < naming->template.n; i++) {
		const struct template_piece *piece = &naming->template.pieces[i];

		if (piece->kind == TEMPLATE_UNIT && attribute_is_owner(attribute->name))
			return true;
		if (piece->kind == TEMPLATE_HOST && is_named(attribute, "host.name", 9))
			return true;
		if (piece->kind == TEMPLATE_NAMED && is_named(attribute, piece->text, piece->size))
			return true;
	}
	return false;
}

static bool has_attributes_in_path(const struct naming *naming)
{
	for (unsigned int i = 0; i < naming->template.n; i++)
		if (naming->template.pieces[i].kind == TEMPLATE_ATTRIBUTES)
			return true;
	return false;
}

static void append_value(const struct attribute *attribute, struct buf *out)
{
	char number[24];

	append_level(out, attribute ? value_text(attribute, number) : "");
}

/* The values of all that no other placeholder takes; without any, one of the dots around them goes too. */
static void append_attributes(const struct naming *naming, const struct series *series, size_t at, struct buf *out)
{
	bool is_first = true;

	for (unsigned int i = 0; i < series->n_attributes; i++) {
		const struct attribute *attribute = &series->attributes[i];

		if (is_in_path(naming, attribute))
			continue;
		if (!is_first)
			buf_append_byte(out, '.');
		is_first = false;
		/* That something is so says its name; "true" alone would not. */
		if (attribute->type == ATTRIBUTE_FLAG)
			append_level(out, attribute->name);
		else
			append_value(attribute, out);
	}
	if (is_first && out->size > at && out->data[out->size - 1] == '.')
		out->size--;
}

static void append_piece(const struct naming *naming, const struct template_piece *piece, const struct series *series,
			 const char *suffix, size_t at, struct buf *out)
{
	const struct attribute *attribute;
	size_t skipped;

	switch (piece->kind) {
	case TEMPLATE_TEXT:
		/* It begins with a dot behind {attributes} of which there were none. */
		skipped = out->size == at && *piece->text == '.';
		buf_append(out, piece->text + skipped, piece->size - skipped);
		break;
	case TEMPLATE_METRIC:
		append_levels(out, series->metric->name);
		buf_append_text(out, suffix);
		break;
	case TEMPLATE_HOST:
		append_value(find(naming->resource, naming->n_resource, "host.name", 9), out);
		break;
	case TEMPLATE_UNIT:
		append_value(find_owner(series), out);
		break;
	case TEMPLATE_ATTRIBUTES:
		append_attributes(naming, series, at, out);
		break;
	case TEMPLATE_NAMED:
		attribute = find(series->attributes, series->n_attributes, piece->text, piece->size);
		if (!attribute)
			attribute = find(naming->resource, naming->n_resource, piece->text, piece->size);
		append_value(attribute, out);
		break;
	}
}

void name_append_path(const struct naming *naming, const struct series *series, const char *suffix, size_t spare_bytes,
		      struct buf *out)
{
	size_t at = out->size;
	uint64_t identity;

	for (unsigned int i = 0; i < naming->template.n; i++)
		append_piece(naming, &naming->template.pieces[i], series, suffix, at, out);
	if (out->size - at <= naming->limit_bytes - spare_bytes)
		return;
	identity = name_identity(series);
	cut(out, at, naming->limit_bytes - spare_bytes, &identity, sizeof(identity));
}

/* Names that mean something else to a receiver, or that we give. */
static bool is_reserved(const char *name)
{
	static const char *const names[] = { "name", "__name__", NAME_TAG_UPPER, NAME_TAG_SERIES };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

#define TAGS_MAX (ATTRIBUTES_MAX + NAME_RESOURCE_TAGS_MAX)

struct tag_names {
	char names[TAGS_MAX][NAME_TAG_BYTES + TAGS_MAX + 1];
	unsigned int n;
};

static bool has_tag(const struct tag_names *tags, const char *name)
{
	for (unsigned int i = 0; i < tags->n; i++)
		if (!strcmp(tags->names[i], name))
			return true;
	return false;
}

static void append_attribute(const struct naming *naming, size_t at, const struct attribute *attribute,
			     struct tag_names *tags, struct buf *out)
{
	static const bool kept[256] = { ['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true,
					['_'] = true, ['-'] = true, ['.'] = true };
	_cleanup_(buf_done) struct buf name = BUF_INIT;
	char number[24];

	append_kept(&name, kept, attribute->name, NAME_TAG_BYTES);
	while (!buf_error(&name) && (is_reserved(buf_text(&name)) || has_tag(tags, buf_text(&name))))
		buf_append_byte(&name, '_');
	if (tags->n < ARRAY_SIZE(tags->names))
		snprintf(tags->names[tags->n++], sizeof(tags->names[0]), "%s", buf_text(&name));
	name_append_tag(naming, at, buf_text(&name), "", out);
	append_kept(out, naming->is_kept, value_text(attribute, number), NAME_LEVEL_BYTES);
	if (buf_error(&name))
		out->error = -ENOMEM;
}

void name_append_tags(const struct naming *naming, const struct series *series, struct buf *out)
{
	struct tag_names tags = { .n = 0 };
	size_t at = out->size;

	if (!naming->dialect->tag_first)
		return;
	for (size_t i = 0; i < naming->resource_tags->n_items; i++) {
		const char *name = naming->resource_tags->items[i];
		const struct attribute *attribute = find(naming->resource, naming->n_resource, name, strlen(name));

		if (attribute && !is_in_path(naming, attribute))
			append_attribute(naming, at, attribute, &tags, out);
	}
	for (unsigned int i = 0; !has_attributes_in_path(naming) && i < series->n_attributes; i++)
		if (!is_in_path(naming, &series->attributes[i]))
			append_attribute(naming, at, &series->attributes[i], &tags, out);
}

void name_append_tag(const struct naming *naming, size_t tags_at, const char *name, const char *value, struct buf *out)
{
	const struct dialect *dialect = naming->dialect;

	if (out->size == tags_at)
		buf_append_text(out, dialect->tag_first);
	else
		buf_append_byte(out, (uint8_t)dialect->tag_next);
	buf_append_text(out, name);
	buf_append_byte(out, (uint8_t)dialect->tag_equals);
	buf_append_text(out, value);
}
