/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A body is written once, from its beginning to its end. In protobuf the length of a message comes
 * before its content, and OTLP nests four levels of messages around a point. So each level begins
 * with four bytes for its length, which are filled in when the level ends. A short length then has
 * more bytes than it needs (5 is 85 80 80 00); the encoding allows this and parsers read it.
 */
#include "export/otlp/body.h"

#include <errno.h>

#include "otlp-metrics.pb-c.h"
#include "util/cleanup.h"

/* The numbers of fields in the messages around points: proto/otlp-metrics.proto. */
enum {
	FIELD_RESOURCE_METRICS = 1,
	FIELD_RESOURCE = 1,
	FIELD_SCOPE_METRICS = 2,
	FIELD_SCOPE = 1,
	FIELD_METRIC = 2,
	FIELD_DATA_POINT = 1,
	FIELD_RECORD = 2, /* of ScopeLogs, ScopeSpans; what is around has the numbers of metrics */
	FIELD_SCHEMA_URL = 3, /* of resources and scopes */
};

/* Which version of the semantic conventions the names are from. */
#define SCHEMA_URL "https://opentelemetry.io/schemas/1.44.0"

#define LENGTH_BYTES 4 /* of seven bits each: more than a body may have */
#define FRAME_BYTES  (1 + LENGTH_BYTES)
#define FRAMES	     9 /* the levels, the resource, the scope, the point, two schemas */

/* Writing; there is room */

static uint8_t *begin_field(struct otlp_writer *writer, unsigned int field)
{
	*writer->at = (uint8_t)(field << 3 | PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED);
	writer->at += FRAME_BYTES;
	return writer->at;
}

static void end_field(struct otlp_writer *writer, uint8_t *begun)
{
	size_t size = (size_t)(writer->at - begun);

	for (int i = 0; i < LENGTH_BYTES; i++)
		begun[i - LENGTH_BYTES] = (uint8_t)(size >> 7 * i & 0x7f) |
					  (i + 1 < LENGTH_BYTES ? 0x80 : 0);
}

static void write_bytes(struct otlp_writer *writer, struct bytes bytes)
{
	if (bytes.size) /* else data may be NULL */
		writer->at = mempcpy(writer->at, bytes.data, bytes.size);
}

static void put_message(struct otlp_writer *writer, unsigned int field, struct bytes content)
{
	uint8_t *begun = begin_field(writer, field);

	write_bytes(writer, content);
	end_field(writer, begun);
}

static void begin_levels(struct otlp_writer *writer)
{
	const struct otlp_place *place = &writer->place;
	uint8_t **begun = writer->begun;

	if (!begun[OTLP_RESOURCE_METRICS]) {
		begun[OTLP_RESOURCE_METRICS] = begin_field(writer, FIELD_RESOURCE_METRICS);
		put_message(writer, FIELD_RESOURCE, place->resource);
	}
	if (!begun[OTLP_SCOPE_METRICS]) {
		begun[OTLP_SCOPE_METRICS] = begin_field(writer, FIELD_SCOPE_METRICS);
		put_message(writer, FIELD_SCOPE, place->scope);
	}
	if (!begun[OTLP_METRIC] && place->data_field) {
		begun[OTLP_METRIC] = begin_field(writer, FIELD_METRIC);
		write_bytes(writer, place->header);
		begun[OTLP_DATA] = begin_field(writer, place->data_field);
	}
}

void otlp_writer_leave(struct otlp_writer *writer, enum otlp_level outermost)
{
	static const struct bytes schema = { (const uint8_t *)SCHEMA_URL, sizeof(SCHEMA_URL) - 1 };

	if (writer->begun[OTLP_DATA])
		write_bytes(writer, writer->place.tail);
	for (enum otlp_level level = OTLP_LEVELS; level-- > outermost;
	     writer->begun[level] = NULL) {
		if (!writer->begun[level])
			continue;
		if (level < OTLP_METRIC)
			put_message(writer, FIELD_SCHEMA_URL, schema);
		end_field(writer, writer->begun[level]);
	}
}

void otlp_writer_end(struct otlp_writer *writer)
{
	int err;

	if (!writer->n_points)
		return;
	otlp_writer_leave(writer, OTLP_RESOURCE_METRICS);
	err = writer->body(writer->user, writer->room, (size_t)(writer->at - writer->room),
			   writer->n_points);
	writer->err = writer->err ?: err;
	writer->n_points = 0;
	writer->at = writer->room;
}

/* Ends the levels that the next place is not in. */
static void move_to_place(struct otlp_writer *writer, const struct otlp_place *place)
{
	const struct otlp_place *last = &writer->place;

	if (!bytes_are_equal(place->resource, last->resource))
		otlp_writer_leave(writer, OTLP_RESOURCE_METRICS);
	else if (!bytes_are_equal(place->scope, last->scope))
		otlp_writer_leave(writer, OTLP_SCOPE_METRICS);
	else if (!bytes_are_equal(place->header, last->header) ||
		 place->data_field != last->data_field || !bytes_are_equal(place->tail, last->tail))
		otlp_writer_leave(writer, OTLP_METRIC);
	writer->place = *place;
}

void otlp_writer_put(struct otlp_writer *writer, const struct otlp_place *place,
		     struct bytes numbers, struct bytes attributes)
{
	size_t bytes = FRAMES * FRAME_BYTES + 2 * sizeof(SCHEMA_URL) + place->resource.size +
		       place->scope.size +
		       place->header.size + place->tail.size + numbers.size + attributes.size;
	uint8_t *begun;

	writer->at = writer->at ?: writer->room;
	move_to_place(writer, place);
	if (bytes > writer->limit_bytes - (size_t)(writer->at - writer->room) ||
	    (writer->limit_points && writer->n_points >= writer->limit_points))
		otlp_writer_end(writer);
	if (bytes > writer->limit_bytes) {
		writer->n_too_large++;
		return;
	}
	begin_levels(writer);
	begun = begin_field(writer, place->data_field ? FIELD_DATA_POINT : FIELD_RECORD);
	write_bytes(writer, numbers);
	write_bytes(writer, attributes);
	end_field(writer, begun);
	writer->n_points++;
}

/* Reading */

static bool read_varint(struct bytes *in, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; in->size && shift < 64; shift += 7) {
		uint8_t byte = *in->data++;

		in->size--;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		*ret_value = value;
		return true;
	}
	return false;
}

/*
 * The next field of a message: its number, and its content without a length (a varint: its bytes).
 * Takes it off *in. False: at the end, or if what follows is not a field; then in->size is not 0.
 */
static bool read_field(struct bytes *in, unsigned int *ret_number, struct bytes *ret_content)
{
	struct bytes rest = *in;
	uint64_t key, size = 0;
	const uint8_t *begin;

	if (!read_varint(&rest, &key))
		return false;
	begin = rest.data;
	switch (key & 7) {
	case PROTOBUF_C_WIRE_TYPE_VARINT:
		if (!read_varint(&rest, &size))
			return false;
		size = (size_t)(rest.data - begin);
		rest = (struct bytes){ begin, rest.size + size };
		break;
	case PROTOBUF_C_WIRE_TYPE_64BIT: size = 8; break;
	case PROTOBUF_C_WIRE_TYPE_32BIT: size = 4; break;
	case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
		if (!read_varint(&rest, &size))
			return false;
		break;
	default: return false;
	}
	if (size > rest.size || key >> 3 > UINT16_MAX)
		return false;
	*ret_number = (unsigned int)(key >> 3);
	*ret_content = (struct bytes){ rest.data, size };
	*in = (struct bytes){ rest.data + size, rest.size - size };
	return true;
}

struct bytes otlp_find_field(struct bytes in, unsigned int wanted)
{
	struct bytes content;
	unsigned int number;

	while (read_field(&in, &number, &content))
		if (number == wanted)
			return content;
	return (struct bytes){ 0 };
}

const struct otlp_kind otlp_kinds[] = {
	[OTLP__METRIC__DATA_GAUGE] = { &otlp__number_data_point__descriptor, 7, 8, 0 },
	[OTLP__METRIC__DATA_SUM] = { &otlp__number_data_point__descriptor, 7, 8, 6 },
	[OTLP__METRIC__DATA_HISTOGRAM] = { &otlp__histogram_data_point__descriptor, 9, 10, 4 },
	[OTLP__METRIC__DATA_EXPONENTIAL_HISTOGRAM] =
					{ &otlp__exponential_histogram_data_point__descriptor, 1,
					  10, 4 },
};

struct reader {
	otlp_point_fn *point;
	void *user;
	struct otlp_place place;
};

static int read_point(struct reader *reader, struct bytes in)
{
	struct bytes rest = in, content, attributes;
	unsigned int number = 0, wanted = otlp_kinds[reader->place.data_field].attributes;

	do {
		attributes = rest;
		if (!rest.size)
			break;
		if (!read_field(&rest, &number, &content))
			return -EBADMSG;
	} while (number != wanted);
	return reader->point(reader->user, &reader->place,
			     (struct bytes){ in.data, in.size - attributes.size }, attributes);
}

/* The points come first, and what follows them is known before they are. */
static int read_data(struct reader *reader, struct bytes in)
{
	struct bytes rest = in, content;
	unsigned int number;
	int err = 0;

	for (reader->place.tail = rest; rest.size; reader->place.tail = rest)
		if (!read_field(&rest, &number, &content))
			return -EBADMSG;
		else if (number != FIELD_DATA_POINT)
			break;
	while (!err && in.data < reader->place.tail.data && read_field(&in, &number, &content))
		err = read_point(reader, content);
	return err;
}

static int read_metric(struct reader *reader, struct bytes in)
{
	struct bytes rest = in, content;
	struct otlp_place *place = &reader->place;

	do {
		place->header = (struct bytes){ in.data, in.size - rest.size };
		if (!read_field(&rest, &place->data_field, &content))
			return -EBADMSG;
	} while (place->data_field < OTLP__METRIC__DATA_GAUGE);
	if (rest.size || place->data_field >= ARRAY_SIZE(otlp_kinds) ||
	    !otlp_kinds[place->data_field].attributes)
		return -EBADMSG;
	return read_data(reader, content);
}

/* A message of levels: the field of outer names what the fields of inner are in. */
static int read_level(struct reader *reader, struct bytes in, unsigned int level)
{
	static const unsigned int fields[] = { FIELD_SCOPE_METRICS, FIELD_METRIC };
	struct bytes content, *outer = level ? &reader->place.scope : &reader->place.resource;
	unsigned int number;
	int err = 0;

	while (!err && read_field(&in, &number, &content))
		if (number == FIELD_RESOURCE) /* and FIELD_SCOPE */
			*outer = content;
		else if (number == fields[level])
			err = level ? read_metric(reader, content) : read_level(reader, content, 1);
		else if (number != FIELD_SCHEMA_URL)
			err = -EBADMSG;
	return !err && in.size ? -EBADMSG : err;
}

int otlp_body_read(const uint8_t *data, size_t size, otlp_point_fn *point, void *user)
{
	struct reader reader = { .point = point, .user = user };
	struct bytes in = { data, size }, content;
	unsigned int number;
	int err = 0;

	while (!err && read_field(&in, &number, &content))
		err = number == FIELD_RESOURCE_METRICS ? read_level(&reader, content, 0) : -EBADMSG;
	return !err && in.size ? -EBADMSG : err;
}
