/* SPDX-License-Identifier: Apache-2.0 */
#include "export/otlp/message/value.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/array.h"

#define SCOPE_BYTES 300 /* "bpfpush." and the name of a collector, which is that of a file */
struct bytes value_pack(struct buf *buf, const ProtobufCMessage *message)
{
	uint8_t *at = buf_reserve(buf, protobuf_c_message_get_packed_size(message));

	if (at)
		buf->size += protobuf_c_message_pack(message, at);
	return (struct bytes){ buf->data, buf->size };
}

static void append_length(struct buf *out, unsigned int field, size_t length)
{
	buf_append_byte(out, (uint8_t)(field << 3 | PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED));
	for (; length >= 0x80; length >>= 7)
		buf_append_byte(out, (uint8_t)(length | 0x80));
	buf_append_byte(out, (uint8_t)length);
}

static void append_bytes(struct buf *out, unsigned int field, const void *data, size_t size)
{
	append_length(out, field, size);
	buf_append(out, data, size);
}

/* The KeyValue of a list of texts, which may be many: their messages are written one by one. */
static void append_list(struct buf *out, unsigned int field, const struct attribute *attribute)
{
	enum { KEY = 1, VALUE = 2, STRING = 1, ARRAY = 5, VALUES = 1 };
	_cleanup_(buf_done) struct buf item = BUF_INIT, values = BUF_INIT, value = BUF_INIT;
	const char *text = attribute->text;

	for (int64_t i = 0; i < attribute->number; i++, text += strlen(text) + 1) {
		buf_reset(&item);
		append_bytes(&item, STRING, text, strlen(text));
		append_bytes(&values, VALUES, item.data, item.size);
	}
	append_bytes(&value, ARRAY, values.data, values.size);
	buf_reset(&item);
	append_bytes(&item, KEY, attribute->name, strlen(attribute->name));
	append_bytes(&item, VALUE, value.data, value.size);
	append_bytes(out, field, item.data, item.size);
	if (buf_error(&item) || buf_error(&values) || buf_error(&value))
		out->error = -ENOMEM;
}

static void fill_value(Otlp__AnyValue *value, const struct attribute *attribute)
{
	otlp__any_value__init(value);
	if (attribute->type == ATTRIBUTE_TEXT) {
		value->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
		value->string_value = (char *)attribute->text;
	} else if (attribute->type == ATTRIBUTE_NUMBER) {
		value->value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
		value->int_value = attribute->number;
	} else if (attribute->type == ATTRIBUTE_REAL) {
		value->value_case = OTLP__ANY_VALUE__VALUE_DOUBLE_VALUE;
		value->double_value = attribute->real;
	} else {
		value->value_case = OTLP__ANY_VALUE__VALUE_BOOL_VALUE;
		value->bool_value = attribute->number != 0;
	}
}

void value_append_attributes(struct buf *out, unsigned int field,
			     const struct attribute *attributes, unsigned int n)
{
	array_for_each (attribute, attributes, n) {
		Otlp__KeyValue item = OTLP__KEY_VALUE__INIT;
		Otlp__AnyValue value;

		if (attribute->type == ATTRIBUTE_TEXTS) {
			append_list(out, field, attribute);
			continue;
		}
		fill_value(&value, attribute);
		item.key = (char *)attribute->name;
		item.value = &value;
		append_length(out, field, protobuf_c_message_get_packed_size(&item.base));
		(void)value_pack(out, &item.base);
	}
}

struct bytes value_pack_scope(struct buf *buf, const char *name, const char *version)
{
	Otlp__InstrumentationScope scope = OTLP__INSTRUMENTATION_SCOPE__INIT;
	char text[SCOPE_BYTES];

	snprintf(text, sizeof(text), "bpfpush.%s", name);
	scope.name = text;
	scope.version = (char *)version;
	return value_pack(buf, &scope.base);
}
