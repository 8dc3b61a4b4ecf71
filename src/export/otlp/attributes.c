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

size_t otlp_attributes_size(const struct attribute *attributes, unsigned int n)
{
	size_t total = 0;
	Otlp__KeyValue item;
	Otlp__AnyValue value;

	for (unsigned int i = 0; i < n; i++) {
		size_t size;

		fill(&item, &value, &attributes[i]);
		size = protobuf_c_message_get_packed_size(&item.base);
		total += 1 + size;
		do
			total++;
		while (size >>= 7);
	}
	return total;
}

void otlp_attributes_put(uint8_t *out, unsigned int field, const struct attribute *attributes,
			 unsigned int n)
{
	Otlp__KeyValue item;
	Otlp__AnyValue value;

	for (unsigned int i = 0; i < n; i++) {
		size_t size;

		fill(&item, &value, &attributes[i]);
		size = protobuf_c_message_get_packed_size(&item.base);
		*out++ = (uint8_t)(field << 3 | PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED);
		for (; size >= 0x80; size >>= 7)
			*out++ = (uint8_t)(size | 0x80);
		*out++ = (uint8_t)size;
		out += protobuf_c_message_pack(&item.base, out);
	}
}

const struct series_cache *otlp_attributes_of(struct series *series, unsigned int field)
{
	static const char owners[FIELDS];
	struct series_cache *cache = series_cache(series, &owners[field]);

	if (cache)
		return cache;
	cache = series_cache_new(series, &owners[field], NULL,
				 otlp_attributes_size(series->attributes, series->n_attributes));
	if (cache)
		otlp_attributes_put(cache->data, field, series->attributes, series->n_attributes);
	return cache;
}
