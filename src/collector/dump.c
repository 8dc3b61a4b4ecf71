/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the stages of the data pipeline that belong to a collector, for people and golden files.
 */
#include <inttypes.h>

#include "collector/binding/binding.h"
#include "collector/collector.h"
#include "util/array.h"

void collector_dump_descriptor(const struct collector *collector, FILE *f)
{
	fprintf(f, "collector %s\n", collector->name);
	descriptor_dump(collector->descriptor, f);
}

static void dump_fields(const struct shape *shape, const struct key_label *labels, FILE *f)
{
	static const char *const classes[] = { "integer", "enum", "text", "bytes", "histogram" };

	for (uint32_t i = 0; i < shape->n_fields; i++) {
		const struct field *field = &shape->fields[i];
		uint32_t buckets_end = field->bucket_offset_bytes +
				       field->n_buckets * field->bucket_bytes;
		bool is_histogram = field->class == FIELD_HISTOGRAM;
		uint32_t size_bytes = is_histogram ? buckets_end - field->offset_bytes :
				      field->size_bytes;
		const char *name = *field->name ? field->name : "(itself)";
		const char *type = *field->type_name ? field->type_name : "-";

		fprintf(f, "  %-24s %-9s %-13s at %" PRIu32 ", %" PRIu32 " bytes", name, classes[field->class], type,
			field->offset_bytes, size_bytes);
		if (is_histogram)
			fprintf(f, ", %" PRIu32 " buckets at %" PRIu32, field->n_buckets,
				field->bucket_offset_bytes);
		if (labels)
			fprintf(f, " -> %s", labels[i].attribute ? labels[i].attribute : "(no attribute)");
		fputc('\n', f);
	}
}

static void dump_bounds(const struct delta_metric *of, FILE *f)
{
	const struct metric *metric = of->metric;

	if (!metric->layout.bounds)
		return;
	fprintf(f, "  %s: %" PRIu32 " buckets up to", metric->name, metric->layout.n_buckets);
	array_for_each (bound, metric->layout.bounds, metric->layout.n_buckets - 1)
		fprintf(f, " %" PRIu64, bound->upper);
	fprintf(f, ", divided by %" PRIu64 "%s\n", metric->divisor, metric->layout.has_no_sum ? ", no sum" : "");
}

void collector_dump_shape(const struct collector *collector, FILE *f)
{
	array_for_each (binding, collector->bindings, collector->n_bindings) {
		fprintf(f, "%s%s", binding->map, binding->reader.is_table ? " (flat table)" : "");
		fputs(variable_is_on(&collector->variables, binding->first->when) ? "" : " (off)", f);
		fprintf(f, " key, %" PRIu32 " bytes\n", binding->key.size_bytes);
		dump_fields(&binding->key, binding->labels, f);
		fprintf(f, "%s value, %" PRIu32 " bytes\n", binding->map, binding->value.size_bytes);
		dump_fields(&binding->value, NULL, f);
		array_for_each (of, binding->delta.metrics, binding->delta.n_metrics)
			dump_bounds(of, f);
	}
}

void collector_dump_snapshot(const struct collector *collector, FILE *f)
{
	array_for_each (binding, collector->bindings, collector->n_bindings) {
		struct rows *rows = binding->rows;

		for (uint32_t row = 0; rows && row < rows->n; row++) {
			const uint8_t *key = rows_key(rows, row);

			if (!rows_is_live(rows, row))
				continue;
			fprintf(f, "%s ", binding->map);
			for (uint32_t j = 0; row && j < rows->key_bytes; j++)
				fprintf(f, "%02x", key[j]);
			fputs(row ? "" : "(overflow)", f);
			for (uint32_t j = 0; j < rows->n_cells; j++)
				fprintf(f, " %" PRIu64, rows_cells(rows, row)[j]);
			fputc('\n', f);
		}
	}
}
