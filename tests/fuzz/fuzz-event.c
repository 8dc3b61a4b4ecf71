/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events with any texts, lists, numbers and times, as lines for people, CSV, JSON and log records. What is written is
 * printable UTF-8 and newlines, a line of JSON ends outside a string, and a log record says the same as the event.
 *
 * The input is read by take_…(), in the order of the code (input.h).
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/otlp/message/value.h"
#include "input.h"
#include "metric/event.h"
#include "util/utf8.h"
#include "view/event-lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool is_right, const char *what, const char *text)
{
	if (is_right)
		return;
	fprintf(stderr, "%s: %s\n", what, text);
	abort();
}

static void take_list(struct input *input, struct attributes *attributes, const char *name)
{
	char texts[8192];
	size_t size = (size_t)take_bytes(input, 2) % sizeof(texts);

	for (size_t i = 0; i < size; i++)
		texts[i] = i < 256 ? (char)take(input) : texts[i - 256];
	(void)attributes_add_texts(attributes, name, texts, size);
}

static void take_attribute(struct input *input, struct attributes *attributes, const char *name)
{
	static const char *const values[] = { "", "x", "\"", "\\", "\n", "\xc3\xa9", "\xff", "\xe2\x80\xae", "\x1b[2J", "=1,2" };
	const char *text;

	switch (take(input) % 5) {
	case 0:
		text = TAKE_TEXT(input, values);
		(void)attributes_add_text(attributes, name, text, strlen(text));
		break;
	case 1: take_list(input, attributes, name); break;
	case 2: (void)attributes_add_number(attributes, name, (int64_t)take_number(input)); break;
	case 3: (void)attributes_add_flag(attributes, name, take(input) & 1); break;
	default: (void)attributes_add_real(attributes, name, (double)take_number(input) / 1e9); break;
	}
	demand(attributes->used <= sizeof(attributes->storage), "too much", name);
}

static void take_event(struct input *input, struct event *event)
{
	static const char *const names[] = { "systemd.unit.name", "error.type", "process.pid", "process.command_args", "a", "b.c", "d.path",
					     "e.time", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o" };

	attributes_init(&event->attributes);
	event->attributes.is_of_event = true;
	event->time_ns = take_number(input);
	for (unsigned int i = 0, n = take(input) % (ARRAY_SIZE(names) + 1); i < n; i++)
		take_attribute(input, &event->attributes, names[i]);
}

static void check_text(struct buf *out, bool is_json)
{
	const char *text = buf_text(out);
	bool is_string = false;

	demand(!buf_error(out), "no memory", "");
	for (size_t i = 0, bytes; i < out->size; i += bytes) {
		bytes = text[i] == '\n' || text[i] == '\r' ? 1 : utf8_printable_bytes(text + i, out->size - i);
		demand(bytes, "not printable", text);
		if (!is_json)
			continue;
		demand(text[i] != '\n' || !is_string, "a line that ends in a string", text);
		if (text[i] == '\\')
			bytes++;
		else if (text[i] == '"')
			is_string = !is_string;
	}
	demand(!out->size || text[out->size - 1] == '\n', "no newline at the end", text);
	buf_reset(out);
}

static void check_lines(const struct event *event, struct buf *out)
{
	struct event_lines lines = { .width = 80 }, csv = { .has_all_owners = true }, several = { .has_several = true };

	for (unsigned int i = 0; i < event->attributes.n; i++) {
		event_lines_add_column(&lines, event->attributes.items[i].name);
		event_lines_add_column(&csv, event->attributes.items[i].name);
	}
	event_lines_append(&lines, event, out);
	event_lines_append(&several, event, out);
	check_text(out, false);
	event_lines_append_csv(&csv, event, out);
	check_text(out, false);
	event_append_json(event, out);
	check_text(out, true);
}

static void check_list(const struct attribute *attribute, const Otlp__ArrayValue *array)
{
	const char *text = attribute->text;

	demand(array->n_values == (size_t)attribute->number, "another list", attribute->name);
	for (size_t i = 0; i < array->n_values; i++, text += strlen(text) + 1)
		demand(!strcmp(array->values[i]->string_value, text), "another text of a list", text);
}

static void check_value(const struct attribute *attribute, const Otlp__AnyValue *value)
{
	static const Otlp__AnyValue__ValueCase cases[] = {
		[ATTRIBUTE_TEXT] = OTLP__ANY_VALUE__VALUE_STRING_VALUE,
		[ATTRIBUTE_NUMBER] = OTLP__ANY_VALUE__VALUE_INT_VALUE,
		[ATTRIBUTE_FLAG] = OTLP__ANY_VALUE__VALUE_BOOL_VALUE,
		[ATTRIBUTE_REAL] = OTLP__ANY_VALUE__VALUE_DOUBLE_VALUE,
		[ATTRIBUTE_TEXTS] = OTLP__ANY_VALUE__VALUE_ARRAY_VALUE,
	};

	demand(value->value_case == cases[attribute->type], "another type", attribute->name);
	if (attribute->type == ATTRIBUTE_TEXT)
		demand(!strcmp(value->string_value, attribute->text), "another text", attribute->text);
	else if (attribute->type == ATTRIBUTE_TEXTS)
		check_list(attribute, value->array_value);
	else if (attribute->type == ATTRIBUTE_NUMBER)
		demand(value->int_value == attribute->number, "another number", attribute->name);
}

/* They are the attributes of a resource here, which has nothing else. */
static void check_record(const struct event *event)
{
	_cleanup_(buf_done) struct buf packed = BUF_INIT;
	Otlp__Resource *resource;

	value_append_attributes(&packed, 1, event->attributes.items, event->attributes.n);
	resource = otlp__resource__unpack(NULL, packed.size, packed.data);
	demand(resource && resource->n_attributes == event->attributes.n, "not read again", "");
	for (unsigned int i = 0; i < event->attributes.n; i++) {
		demand(!strcmp(resource->attributes[i]->key, event->attributes.items[i].name), "another name",
		       resource->attributes[i]->key);
		check_value(&event->attributes.items[i], resource->attributes[i]->value);
	}
	otlp__resource__free_unpacked(resource, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct event_kind kind = { "scope", "an.event", "", SEVERITY_WARN };
	struct input input = { .data = data, .size = size };
	_cleanup_(buf_done) struct buf out = BUF_INIT;
	struct event event = { .kind = &kind };

	setlocale(LC_CTYPE, "C.UTF-8"); /* as main() */
	take_event(&input, &event);
	check_lines(&event, &out);
	check_record(&event);
	input_done(&input);
	return 0;
}
