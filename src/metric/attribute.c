/* SPDX-License-Identifier: Apache-2.0 */
#include "metric/attribute.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metric/decimal.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/hash.h"
#include "util/buf.h"
#include "util/utf8.h"

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

const char *attribute_owner(const char *name)
{
	static const char *const names[] = { "systemd.unit.name", "container.id", "process.linux.cgroup" };
	const char *const *found = array_find(names, ARRAY_SIZE(names), name);

	return found ? *found : NULL;
}

void attributes_init(struct attributes *attributes)
{
	attributes->n = 0;
	attributes->used = 0;
	attributes->is_of_event = false;
}

static int add_item(struct attributes *attributes, struct attribute item)
{
	if (attributes->n == ATTRIBUTES_MAX)
		return -ENOSPC;
	attributes->items[attributes->n++] = item;
	return 0;
}

#define HASH_TEXT_BYTES 9 /* "~" and eight digits */

/*
 * After what was cut or replaced, in place of its last characters if need be: two texts that look
 * alike stay two.
 */
static char *put_hash(char *start, char *end, size_t limit, uint64_t hash)
{
	if (end > start + limit - HASH_TEXT_BYTES) {
		end = start + limit - HASH_TEXT_BYTES;
		while (end > start && ((uint8_t)*end & 0xc0) == 0x80)
			end--;
	}
	return end + snprintf(end, HASH_TEXT_BYTES + 1, "~%08" PRIx32, (uint32_t)hash);
}

/* What one text may have, while each of the attributes to come may be a short one. */
static size_t long_text_limit(const struct attributes *attributes)
{
	size_t kept_free = (ATTRIBUTES_MAX - attributes->n) * (ATTRIBUTE_TEXT_BYTES + 1);

	return ATTRIBUTE_TEXT_BYTES + sizeof(attributes->storage) - attributes->used - kept_free;
}

static int add_text(struct attributes *attributes, const char *name, const void *text, size_t size,
		    size_t limit, bool has_lines)
{
	char *start = attributes->storage + attributes->used, *end = start;
	const char *from = text;
	size_t whole = size;
	bool is_changed = false;

	if (attributes->n == ATTRIBUTES_MAX)
		return -ENOSPC;
	while (size) {
		size_t bytes = has_lines && *from == '\n' ? 1 : utf8_printable_bytes(from, size);
		size_t kept = bytes ? bytes : sizeof(replacement) - 1;

		if ((size_t)(end - start) + kept > limit)
			break;
		memcpy(end, bytes ? from : replacement, kept);
		end += kept;
		is_changed |= !bytes;
		from += bytes ? bytes : 1;
		size -= bytes ? bytes : 1;
	}
	if (size || is_changed)
		end = put_hash(start, end, limit, hash_stable(HASH_STABLE_START, text, whole));
	(void)add_item(attributes,
		       (struct attribute){ .name = name, .type = ATTRIBUTE_TEXT, .text = start });
	*end++ = '\0';
	attributes->used += (size_t)(end - start);
	return 0;
}

int attributes_add_text(struct attributes *attributes, const char *name, const void *text,
			size_t size)
{
	size_t limit = attributes->is_of_event ? long_text_limit(attributes) : ATTRIBUTE_TEXT_BYTES;

	return add_text(attributes, name, text, size, limit, false);
}

int attributes_add_lines(struct attributes *attributes, const char *name, const void *text,
			 size_t size)
{
	return add_text(attributes, name, text, size, long_text_limit(attributes), true);
}

int attributes_add_number(struct attributes *attributes, const char *name, int64_t number)
{
	const struct attribute item = { .name = name, .type = ATTRIBUTE_NUMBER, .number = number };

	return add_item(attributes, item);
}

int attributes_add_flag(struct attributes *attributes, const char *name, bool flag)
{
	const struct attribute item = { .name = name, .type = ATTRIBUTE_FLAG, .number = flag };

	return add_item(attributes, item);
}

int attributes_add_real(struct attributes *attributes, const char *name, double real)
{
	const struct attribute item = { .name = name, .type = ATTRIBUTE_REAL, .real = real };

	return add_item(attributes, item);
}

/* Each is a text of its own at first, so that it is made safe in the same way. */
int attributes_add_texts(struct attributes *attributes, const char *name, const char *texts,
			 size_t size)
{
	char *start = attributes->storage + attributes->used;
	unsigned int n = attributes->n;
	static const char more[] = "\xe2\x80\xa6";
	size_t limit, length;
	int64_t n_texts = 0;
	int err = 0;

	if (n == ATTRIBUTES_MAX)
		return -ENOSPC;
	limit = long_text_limit(attributes);
	while (size && !texts[size - 1])
		size--;
	for (; size && !err; n_texts++, attributes->n = n) {
		size_t left = limit - (size_t)(attributes->storage + attributes->used - start);

		if (left < HASH_TEXT_BYTES + sizeof(more)) {
			texts = more;
			size = sizeof(more) - 1;
		} else {
			left -= sizeof(more); /* which may follow */
		}
		length = strnlen(texts, size);
		err = add_text(attributes, name, texts, length, left, false);
		size -= length < size ? length + 1 : length;
		texts += length + 1;
	}
	return add_item(attributes, (struct attribute){ .name = name, .type = ATTRIBUTE_TEXTS,
							.text = n_texts ? start : "",
							.number = n_texts });
}

void attributes_drop(struct attributes *attributes, const char *name)
{
	bool is_owner = !strcmp(name, "unit");
	unsigned int n = 0;

	for (unsigned int i = 0; i < attributes->n; i++)
		if (strcmp(attributes->items[i].name, name) &&
		    !(is_owner && attribute_owner(attributes->items[i].name)))
			attributes->items[n++] = attributes->items[i];
	attributes->n = n;
}

static int by_name(const void *left, const void *right)
{
	return strcmp(((const struct attribute *)left)->name,
		      ((const struct attribute *)right)->name);
}

void attributes_sort(struct attributes *attributes)
{
	qsort(attributes->items, attributes->n, sizeof(*attributes->items), by_name);
}

const char *attribute_text(const struct attribute *attribute, char room[ATTRIBUTE_NUMBER_BYTES])
{
	if (attribute->type == ATTRIBUTE_TEXT || attribute->type == ATTRIBUTE_TEXTS)
		return attribute->text;
	if (attribute->type == ATTRIBUTE_FLAG)
		return attribute->number ? "true" : "false";
	if (attribute->type == ATTRIBUTE_REAL)
		return decimal_print_double(room, attribute->real);
	snprintf(room, ATTRIBUTE_NUMBER_BYTES, "%" PRId64, attribute->number);
	return room;
}

void attribute_append(struct buf *out, const struct attribute *attribute)
{
	char number[ATTRIBUTE_NUMBER_BYTES];
	const char *text = attribute_text(attribute, number);
	int64_t n = attribute->type == ATTRIBUTE_TEXTS ? attribute->number : 1;

	for (int64_t i = 0; i < n; i++, text += strlen(text) + 1) {
		buf_append_text(out, i ? " " : "");
		buf_append_text(out, text);
	}
}

void attribute_append_json(struct buf *out, const struct attribute *attribute)
{
	const char *text = attribute->text;

	buf_append_json(out, attribute->name);
	buf_append_byte(out, ':');
	if (attribute->type == ATTRIBUTE_TEXT) {
		buf_append_json(out, text);
	} else if (attribute->type == ATTRIBUTE_TEXTS) {
		buf_append_byte(out, '[');
		for (int64_t i = 0; i < attribute->number; i++, text += strlen(text) + 1) {
			buf_append_text(out, i ? "," : "");
			buf_append_json(out, text);
		}
		buf_append_byte(out, ']');
	} else {
		attribute_append(out, attribute);
	}
}
