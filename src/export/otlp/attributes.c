/* SPDX-License-Identifier: Apache-2.0 */
#include "export/otlp/attributes.h"

#include "otlp-metrics.pb-c.h"

#define FIELDS 16

static void fill(Otlp__KeyValue *item, Otlp__AnyValue *value, const struct attribute *attribute)
{
	otlp__key_value__init(item);
	otlp__any_value__init(value);
	item->key = (char *)attribute->name;
	item->value = value;
	switch (attribute->type) {
	case ATTRIBUTE_TEXT:
		value->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
		value->string_value = (char *)attribute->text;
		break;
	case ATTRIBUTE_NUMBER:
		value->value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
		value->int_value = attribute->number;
		break;
	case ATTRIBUTE_FLAG:
		value->value_case = OTLP__ANY_VALUE__VALUE_BOOL_VALUE;
		value->bool_value = attribute->number != 0;
		break;
	}
}

void otlp_attributes_append(struct buf *out, unsigned int field, const struct attribute *attributes, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		Otlp__KeyValue item;
		Otlp__AnyValue value;
		size_t size, length;
		uint8_t *at;

		fill(&item, &value, &attributes[i]);
		size = protobuf_c_message_get_packed_size(&item.base);
		buf_append_byte(out, (uint8_t)(field << 3 | PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED));
		for (length = size; length >= 0x80; length >>= 7)
			buf_append_byte(out, (uint8_t)(length | 0x80));
		buf_append_byte(out, (uint8_t)length);
		at = buf_reserve(out, size);
		if (at)
			out->size += protobuf_c_message_pack(&item.base, at);
	}
}

const struct series_cache *otlp_attributes_of(struct series *series, unsigned int field)
{
	static const char owners[FIELDS];
	const struct series_cache *cache = series_cache(series, &owners[field]);
	_cleanup_(buf_done) struct buf encoded = BUF_INIT;

	if (cache)
		return cache;
	otlp_attributes_append(&encoded, field, series->attributes, series->n_attributes);
	if (buf_error(&encoded))
		return NULL;
	return series_cache_new(series, &owners[field], encoded.data, encoded.size);
}
