/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/reader/record.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/label/label.h"
#include "metric/metric.h"
#include "util/array.h"

#define PERF_PAGES   16	   /* for each CPU */
#define ROWS_MAX     65536 /* whatever the budget */
#define TURN_RECORDS 4096
#define RECORD_BYTES 16 /* at least, in a ring */

struct records {
	struct records_options options;
	uint32_t bytes; /* of a ring */
	struct ring_buffer *ring; /* one of both */
	struct perf_buffer *perf;
	struct rows *rows; /* meanwhile, as is n_left */
	unsigned int n_left;
	struct records_lost lost;
	uint8_t *made; /* room for a key, zero between its members */
	uint8_t *whole; /* room for a record */
};

/* Growth is counted without a map: what the row held before is less by as much. */
static void add_growth(struct rows *rows, uint32_t row, uint64_t n)
{
	*rows_previous(rows, row) -= n;
	if (row != ROWS_OVERFLOW)
		rows_at(rows, row)->stay = ROWS_KEPT;
}

static void count_record(struct records *records, const uint8_t *record)
{
	const struct records_options *options = &records->options;
	struct rows *rows = records->rows;
	uint32_t row = ROWS_OVERFLOW;

	if (record) {
		array_for_each (label, options->labels, options->key->n_fields)
			if (label->attribute && !label->type->is_of_event)
				memcpy(records->made + label->field->offset_bytes,
				       record + label->field->offset_bytes,
				       label->field->size_bytes);
		row = rows_find(rows, records->made);
		if (row == ROWS_OVERFLOW && rows->n_live < ROWS_MAX &&
		    (!options->budget || budget_has_room(options->budget)))
			(void)rows_touch(rows, records->made, &row);
	}
	add_growth(rows, row, 1);
}

/* As many bytes as its structure has. NULL: it is too short. */
static const uint8_t *fill_record(struct records *records, const uint8_t *data, size_t size)
{
	const struct shape *key = records->options.key;
	const struct field *last = &key->fields[key->n_fields - 1];
	bool is_array = last->class == FIELD_TEXT || last->class == FIELD_BYTES;

	if (size >= key->size_bytes)
		return data;
	/* The kernel pads those of a perf event array with anything. */
	if (!is_array || !records->ring || size < last->offset_bytes)
		return NULL;
	memcpy(records->whole, data, size);
	memset(records->whole + size, 0, key->size_bytes - size);
	return records->whole;
}

static int take_record(void *user, void *data, size_t size)
{
	struct records *records = user;
	const uint8_t *record = fill_record(records, data, size);

	records->lost.n_short += !record;
	if (records->options.is_counted)
		count_record(records, record);
	if (record && records->options.take)
		records->options.take(records->options.user, record);
	return --records->n_left ? 0 : -EAGAIN;
}

static void take_sample(void *user, int cpu, void *data, uint32_t size)
{
	(void)take_record(user, data, size);
}

static void take_lost(void *user, int cpu, __u64 n)
{
	struct records *records = user;

	records->lost.n_full += n;
	if (records->options.is_counted)
		add_growth(records->rows, ROWS_OVERFLOW, n);
}

int records_open(const struct bpf_map *map, const struct records_options *options,
		 struct records **ret_records)
{
	_cleanup_(records_freep) struct records *records = calloc(1, sizeof(*records));

	if (!records)
		return -ENOMEM;
	*records = (struct records){ .options = *options, .bytes = bpf_map__max_entries(map),
				     .made = calloc(1, options->key->size_bytes),
				     .whole = malloc(options->key->size_bytes) };
	if (!records->made || !records->whole)
		return -ENOMEM;
	if (bpf_map__type(map) == BPF_MAP_TYPE_PERF_EVENT_ARRAY)
		records->perf = perf_buffer__new(bpf_map__fd(map), PERF_PAGES, take_sample,
						 take_lost, records, NULL);
	else
		records->ring = ring_buffer__new(bpf_map__fd(map), take_record, records, NULL);
	if (!records->perf && !records->ring)
		return -errno;
	*ret_records = TAKE_PTR(records);
	return 0;
}

struct records *records_free(struct records *records)
{
	if (!records)
		return NULL;
	ring_buffer__free(records->ring);
	perf_buffer__free(records->perf);
	free(records->made);
	free(records->whole);
	free(records);
	return NULL;
}

int records_wake_fd(const struct records *records)
{
	return records->perf ? perf_buffer__epoll_fd(records->perf) :
	       ring_buffer__epoll_fd(records->ring);
}

struct records_lost records_lost(const struct records *records)
{
	return records->lost;
}

void records_take(struct records *records, struct rows *rows, bool is_all)
{
	records->rows = rows;
	records->n_left = is_all ? records->bytes / RECORD_BYTES + 1 : TURN_RECORDS;
	if (records->perf)
		(void)perf_buffer__consume(records->perf);
	else
		(void)ring_buffer__consume(records->ring);
}
