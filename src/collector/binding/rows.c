/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a binding, from the start on. Their first reading is the baseline: growth counts from
 * it, whatever hooks have counted while others were attached, iterators have found or a pinned map
 * has kept.
 */
#include "collector/binding/bindings.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "collector/binding/event.h"
#include "collector/binding/present.h"
#include "collector/table/layout.h"
#include "util/array.h"
#include "util/duration.h"
#include "util/hash.h"

struct brief {
	uint64_t id;
	uint64_t grown; /* all that the table's first metric says of the process */
};

static int compare_id(const void *left, const void *right)
{
	const struct brief *l = left, *r = right;

	return (l->id > r->id) - (l->id < r->id);
}

static int compare_grown(const void *left, const void *right)
{
	const struct brief *l = left, *r = right;

	return (l->grown < r->grown) - (l->grown > r->grown);
}

/*
 * A process that nobody will see again, and that has no series of its own: its numbers go to its
 * unit.
 */
static bool is_summed(const struct binding *binding, const struct key_label *label, const void *key)
{
	uint64_t id = label_brief(label, key);

	for (size_t i = 0; id && i < binding->n_brief; i++)
		if (binding->brief[i].id == id)
			return false;
	return id;
}

/* What a key becomes for one metric: its own attributes, then those that the section fixes. */
static int key_attributes(void *user, const void *key, const struct delta_metric *of,
			  struct attributes *attributes)
{
	const struct binding *binding = user;
	const struct descriptor_metric *described = of->user;
	int is_unknown = 0, r;

	array_for_each (label, binding->labels, binding->key.n_fields) {
		if (label->type && label->type->is_of_event)
			continue;
		r = is_summed(binding, label, key) ? 0 : label_add(label, key, attributes);
		if (r < 0 || r & LABEL_UNWANTED)
			return r;
		is_unknown |= r;
	}
	if (binding->reader.cpu_bytes) {
		r = attributes_add_number(attributes, described->cpu,
					  reader_row_cpu(&binding->reader, key));
		if (r)
			return r;
	}
	array_for_each (fixed, described->attributes.items, described->attributes.n) {
		r = attributes_add_text(attributes, fixed->text, fixed->value,
					strlen(fixed->value));
		if (r)
			return r;
	}
	return is_unknown;
}

/*
 * A row without a series yet: what its process has counted, if it is a brief one of a unit that is
 * wanted.
 */
static int add_row(struct binding *binding, uint32_t row, struct brief **items, size_t *n)
{
	const struct delta_metric *of = &binding->delta.metrics[0];
	struct rows *rows = binding->rows;
	const uint8_t *key = rows_key(rows, row);
	struct attributes attributes;
	struct brief brief = { .grown = delta_grown(rows_cells(rows, row)[of->first_cell],
						    rows_previous(rows, row)[of->first_cell],
						    of->sum_bits) };

	for (uint32_t i = 0; i < binding->key.n_fields && !brief.id; i++)
		brief.id = label_brief(&binding->labels[i], key);
	attributes_init(&attributes);
	if (!brief.id || key_attributes(binding, key, of, &attributes) >= DELTA_UNWANTED)
		return 0;
	return array_append(items, n, &brief);
}

/* Of the brief processes, those that counted most have series of their own. */
static int choose_brief(struct binding *binding)
{
	uint64_t n_most = binding->collector->labels->choice->brief_processes;
	struct rows *rows = binding->rows;
	struct brief *items = NULL;
	size_t n_rows = 0, n = 0;
	int err = 0;

	array_free(&binding->brief, &binding->n_brief);
	for (uint32_t row = 1; row < rows->n && !err; row++)
		if (rows_is_touched(rows, row) && !*rows_series(rows, row))
			err = add_row(binding, row, &items, &n_rows);
	if (n_rows)
		qsort(items, n_rows, sizeof(*items), compare_id);
	for (size_t i = 0; i < n_rows; i++)
		if (n && items[n - 1].id == items[i].id)
			items[n - 1].grown += items[i].grown;
		else
			items[n++] = items[i];
	if (n > n_most)
		qsort(items, n, sizeof(*items), compare_grown);
	binding->brief = items;
	binding->n_brief = n < n_most ? n : n_most;
	return err;
}

void binding_close(struct binding *binding)
{
	reader_close(&binding->reader);
	binding->past = reader_free(binding->past);
	array_free(&binding->brief, &binding->n_brief);
	binding->rows = rows_free(binding->rows);
}

static int open_records(struct binding *binding, const struct bpf_map *map)
{
	const struct records_options options = {
		.key = &binding->key,
		.labels = binding->labels,
		.budget = binding->collector->budget,
		.is_counted = binding->delta.n_metrics,
		.take = binding->event ? event_take : NULL,
		.user = binding,
	};

	return records_open(map, &options, &binding->reader.records);
}

static int binding_open(struct binding *binding, const struct bpf_object *object)
{
	const struct bpf_map *map = bpf_object__find_map_by_name(object, binding->map);
	struct reader *reader = &binding->reader;
	struct table_parts parts;
	int err = 0;

	binding_close(binding);
	binding->sweep = (struct sweep){ 0 };
	binding->has_baseline = false;
	reader->fd = bpf_map__fd(map);
	if (reader->is_table) {
		if (!table_find(object, binding->map, &parts))
			return -ESTALE;
		reader->fd = bpf_map__fd(parts.more);
		reader->table = table_from_parts(&parts);
	}
	if (binding->event)
		event_open(binding, object);
	if (binding->first->record)
		err = open_records(binding, map);
	binding->delta.attributes = key_attributes;
	binding->delta.user = binding;
	err = err ?:
	      rows_new(reader->key_bytes + reader->cpu_bytes, reader_n_cells(reader),
		       binding->delta.n_metrics,
			      &binding->rows);
	if (!err)
		err = reader_open(reader);
	return err;
}

int bindings_open(struct collector *collector, const struct bpf_object *object)
{
	int err = 0;

	for (size_t i = 0; i < collector->n_bindings && !err; i++)
		err = binding_open(&collector->bindings[i], object);
	return err;
}

/*
 * What the collection before this reading has found. A row that never grew has its time from then
 * on, too.
 */
static void note_growth(struct binding *binding)
{
	uint32_t time_s = (uint32_t)(binding->collector->labels->previous_ns / NS_PER_S);

	for (uint32_t row = ROWS_OVERFLOW + 1; row < binding->rows->n; row++) {
		struct row *record = rows_at(binding->rows, row);

		if (rows_is_live(binding->rows, row) && (!record->idle || !record->grown_s))
			record->grown_s = time_s;
	}
}

/* Or has the key not grown for too long? */
static bool is_owner_gone(void *user, uint32_t row)
{
	const struct binding *binding = user;
	const struct row *record = rows_at(binding->rows, row);

	if (binding->expire_ns && record->idle && record->grown_s &&
	    binding->now_ns >= (record->grown_s + UINT64_C(1)) * NS_PER_S + binding->expire_ns)
		return true;
	array_for_each (label, binding->labels, binding->key.n_fields)
		if (label_is_gone(label, rows_key(binding->rows, row)))
			return true;
	return false;
}

int binding_compute(struct binding *binding, uint64_t previous_ns)
{
	int err = binding->is_broken ? 0 :
		  delta_compute(&binding->delta, binding->rows, previous_ns);

	if (!err && !binding->is_broken)
		sweep_delete(&binding->sweep, &binding->reader, binding->rows);
	return err;
}

uint64_t binding_sweep(struct binding *binding, struct sweep_turn *turn)
{
	const struct sweep_owner owner = { is_owner_gone, binding };

	if (!binding->rows || binding->is_broken)
		return SWEEP_DONE;
	binding->now_ns = turn->now_ns;
	return sweep_go_on(&binding->sweep, &binding->reader, binding->rows, &owner, turn);
}

/*
 * What came since the last reading of the process before is growth. What comes before the next
 * reading is lost.
 */
static int read_past(struct binding *binding)
{
	int err;

	if (!binding->past)
		return 0;
	/*
	 * These two find the rows of both maps, so that the reading that counts and the baseline
	 * are quick.
	 */
	(void)reader_read(&binding->reader, binding->rows);
	(void)reader_read(binding->past, binding->rows);
	err = reader_read(binding->past, binding->rows);
	delta_leave(&binding->delta, binding->rows);
	return err;
}

/* What the first reading found is growth, unless an earlier process has counted it into series. */
static void count_from_zero(struct binding *binding)
{
	struct rows *rows = binding->rows;
	bool is_counted = binding->reader.records && binding->delta.n_metrics;

	/* Records came before the start. */
	for (uint32_t row = 0; is_counted && row < rows->n; row++) {
		*rows_previous(rows, row) = 0;
		rows_at(rows, row)->stay = ROWS_GO;
	}
	array_for_each (of, binding->delta.metrics, binding->delta.n_metrics) {
		const struct descriptor_metric *described = of->user;

		if (strcmp(described->since ?: "", "zero") || of->metric->n_series)
			continue;
		for (uint32_t row = 0; row < rows->n; row++)
			if (rows_is_live(rows, row))
				memset(rows_previous(rows, row) + of->first_cell, 0,
				       (1 + of->metric->layout.n_buckets) * sizeof(uint64_t));
	}
}

/*
 * A tally cannot be told from two readings at once, so it is held in the reading after a failure
 * too; nor from a walk that broke off.
 */
int binding_read(struct binding *binding, bool is_walk_broken)
{
	bool was_broken = binding->is_broken;
	bool is_on = variable_is_on(&binding->collector->variables, binding->first->when);
	bool has_past = binding->past;
	int past_err = read_past(binding);
	int err = is_on ? reader_read(&binding->reader, binding->rows) : 0;

	binding->past = reader_free(binding->past);
	if (!err && is_on && binding->has_zero)
		err = zeros_touch(binding);
	if (!err && !binding->has_baseline) {
		if (!is_walk_broken)
			delta_baseline(binding->rows);
		if (!has_past)
			count_from_zero(binding);
		binding->has_baseline = !is_walk_broken;
	} else if (!err && variable_is_on(&binding->collector->variables, "per_process")) {
		err = choose_brief(binding);
	}
	if (!err && binding->reader.cpu_bytes)
		cpus_choose(binding);
	if (binding->expire_ns)
		note_growth(binding);
	binding->is_broken = err || !binding->has_baseline;
	array_for_each (of, binding->delta.metrics, binding->delta.n_metrics)
		if (of->metric->kind == METRIC_GAUGE &&
		    (binding->is_broken || ((was_broken || is_walk_broken) && of->is_tally)))
			of->metric->is_held = true;
	return past_err ?: err;
}

/* What keys and cells of a row are; never 0. */
static uint64_t shape_hash(const struct binding *binding)
{
	const struct descriptor *descriptor = binding->collector->descriptor;
	const struct reader *reader = &binding->reader;
	const uint32_t key_bytes = reader->key_bytes + reader->cpu_bytes;
	uint64_t hash = hash_stable(HASH_STABLE_START, &key_bytes, sizeof(key_bytes));

	array_for_each (run, reader->runs, reader->n_runs) {
		const uint32_t parts[] = { run->offset_bytes, run->size_bytes, run->count,
					   run->first_cell, run->is_maximum + 2u * run->is_last };

		hash = hash_stable(hash, parts, sizeof(parts));
	}
	for (uint32_t i = 0; i < binding->key.n_fields; i++) {
		const struct field *field = &binding->key.fields[i];

		hash = hash_stable(hash_text(hash, field->name), &field->offset_bytes,
				   sizeof(field->offset_bytes));
	}
	for (size_t i = 0; i < binding->delta.n_metrics; i++) {
		const struct descriptor_metric *described = binding->delta.metrics[i].user;

		hash = hash_text(hash_text(hash, described->name), described->member);
	}
	/* Of a probe, all keys have the same members, which mean what it says. */
	if (descriptor->text_hash)
		hash = hash_stable(hash, &descriptor->text_hash, sizeof(descriptor->text_hash));
	return hash | 1;
}

void binding_save(const struct binding *binding, struct store *out)
{
	size_t begin;

	store_text(out, binding->map);
	store_number(out, binding->has_baseline ? shape_hash(binding) : 0);
	store_number(out, binding->reader.table.base);
	begin = store_begin(out);
	if (binding->has_baseline)
		rows_save(binding->rows, binding->delta.n_metrics, out);
	if (binding->has_baseline && binding->reader.is_table)
		table_save(&binding->reader.table, out);
	store_end(out, begin);
}

int binding_restore(struct binding *binding, uint64_t shape, struct stored *in,
		    const struct restored *restored, struct reader *past)
{
	struct reader *reader = &binding->reader;
	int err;

	if (!binding->rows || binding->has_baseline || binding->past ||
	    shape != shape_hash(binding)) {
		reader_free(past);
		return -ESTALE;
	}
	err = rows_restore(&binding->delta, binding->rows, in, restored);
	if (!err && reader->is_table)
		err = table_restore(&(past ?: reader)->table, in);
	binding->past = past;
	binding->has_baseline = !past && !err && !in->is_bad;
	if (!err && !in->is_bad)
		return 0;
	binding->past = reader_free(past);
	delta_release(&binding->delta, binding->rows);
	binding->rows = rows_free(binding->rows);
	err = rows_new(reader->key_bytes + reader->cpu_bytes, reader_n_cells(reader),
		       binding->delta.n_metrics, &binding->rows);
	return err ?: -EINVAL;
}
