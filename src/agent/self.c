/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/self.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "metric/series.h"

/* Collections between two looks at the kernel's accounting of map memory, which hardly ever changes. */
#define MEMORY_EVERY 30

enum self_metric {
	SELF_COLLECTION,
	SELF_PROGRAM_ATTACHED,
	SELF_PROGRAM_RUNS,
	SELF_PROGRAM_TIME,
	SELF_PROGRAM_MISSED,
	SELF_MAP_ENTRIES,
	SELF_MAP_LIMIT,
	SELF_MAP_MEMORY,
	SELF_MAP_OVERFLOWING,
	SELF_EXPORTED,
	SELF_INFLIGHT,
	SELF_REQUESTS,
	SELF_RETRIES,
	SELF_SENT_BYTES,
	SELF_QUEUE_BYTES,
	SELF_COLLISIONS,
	SELF_METRICS,
};

static const struct metric self_table[SELF_METRICS] = {
	[SELF_COLLECTION] = { "self", "bpfpush.collection.time", "s", "Time spent reading the kernel's numbers", METRIC_SUM, 1000000000 },
	[SELF_PROGRAM_ATTACHED] = { "self", "bpfpush.bpf.program.attached", "{program}", "1: the hook is attached; 0: the kernel refused it", METRIC_GAUGE, 1 },
	[SELF_PROGRAM_RUNS] = { "self", "bpfpush.bpf.program.runs", "{run}", "Runs of a program, while kernel.bpf_stats_enabled is on", METRIC_SUM, 1 },
	[SELF_PROGRAM_TIME] = { "self", "bpfpush.bpf.program.run_time", "s", "Time in a program, while kernel.bpf_stats_enabled is on", METRIC_SUM, 1000000000 },
	[SELF_PROGRAM_MISSED] = { "self", "bpfpush.bpf.program.missed", "{event}", "Events that the kernel did not deliver to a program", METRIC_SUM, 1 },
	[SELF_MAP_ENTRIES] = { "self", "bpfpush.bpf.map.entries", "{entry}", "Keys in a map", METRIC_GAUGE, 1 },
	[SELF_MAP_LIMIT] = { "self", "bpfpush.bpf.map.limit", "{entry}", "Entries that a map has room for", METRIC_GAUGE, 1 },
	[SELF_MAP_MEMORY] = { "self", "bpfpush.bpf.map.memory", "By", "Kernel memory of a map", METRIC_GAUGE, 1 },
	[SELF_MAP_OVERFLOWING] = { "self", "bpfpush.bpf.map.overflowing", "{cpu}", "CPUs on which a table had no place for a key", METRIC_GAUGE, 1 },
	[SELF_EXPORTED] = { "self", "otel.sdk.exporter.metric_data_point.exported", "{data_point}", "Points by what became of them", METRIC_SUM, 1 },
	[SELF_INFLIGHT] = { "self", "otel.sdk.exporter.metric_data_point.inflight", "{data_point}", "Points encoded and not yet acknowledged", METRIC_GAUGE, 1 },
	[SELF_REQUESTS] = { "self", "bpfpush.exporter.requests", "{request}", "Requests sent, retries included", METRIC_SUM, 1 },
	[SELF_RETRIES] = { "self", "bpfpush.exporter.retries", "{request}", "Requests sent again", METRIC_SUM, 1 },
	[SELF_SENT_BYTES] = { "self", "bpfpush.exporter.sent", "By", "Bytes of request bodies sent", METRIC_SUM, 1 },
	[SELF_QUEUE_BYTES] = { "self", "bpfpush.exporter.queue.usage", "By", "Bytes that wait to be sent", METRIC_GAUGE, 1 },
	[SELF_COLLISIONS] = { "self", "bpfpush.exporter.name.collisions", "{series}", "Series whose name in the exporter's format was taken, and was added to", METRIC_SUM, 1 },
};

struct source {
	const uint64_t *value;
	uint64_t last;
	struct series *series;
};

struct map_numbers {
	struct collector *collector;
	size_t index;
	uint64_t entries, limit, memory, overflowing;
};

struct exporter_numbers {
	const struct exporter *exporter;
	struct exporter_waiting waiting;
};

struct self {
	struct metric metrics[SELF_METRICS];
	struct metric *list[SELF_METRICS];
	struct source *sources;
	size_t n_sources;
	struct map_numbers *maps;
	size_t n_maps;
	struct exporter_numbers *exporters;
	size_t n_exporters;
	uint64_t *attached; /* one for each program, 0 or 1 */
	uint64_t collection_ns;
	uint64_t start_ns;
	unsigned int n_collections;
};

struct label {
	const char *name, *value;
};

static int watch(struct self *self, enum self_metric metric, const uint64_t *value, const struct label *labels,
		 size_t n_labels)
{
	struct source *sources = reallocarray(self->sources, self->n_sources + 1, sizeof(*sources));
	struct attributes attributes;

	if (!sources)
		return -ENOMEM;
	self->sources = sources;
	attributes_init(&attributes);
	for (size_t i = 0; i < n_labels; i++)
		if (labels[i].value)
			(void)attributes_add_text(&attributes, labels[i].name, labels[i].value,
						  strlen(labels[i].value));
	sources[self->n_sources] = (struct source){ .value = value };
	return series_get(&self->metrics[metric], &attributes, self->start_ns, &sources[self->n_sources++].series);
}

struct watched {
	enum self_metric metric;
	size_t offset;
	const char *error_type;
};

static int watch_all(struct self *self, const struct watched *table, size_t n, const void *base,
		     const struct label *labels)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		const struct label all[] = { labels[0], labels[1], { "error.type", table[i].error_type } };

		err = watch(self, table[i].metric, (const uint64_t *)((const char *)base + table[i].offset), all, 3);
	}
	return err;
}

static int watch_programs(struct self *self, struct collector *collector, uint64_t **attached)
{
	static const struct watched table[] = {
		{ SELF_PROGRAM_RUNS, offsetof(struct program, runs), NULL },
		{ SELF_PROGRAM_TIME, offsetof(struct program, run_time_ns), NULL },
		{ SELF_PROGRAM_MISSED, offsetof(struct program, missed), NULL },
	};
	const struct programs *programs = collector_programs(collector);
	int err = 0;

	for (uint32_t i = 0; i < programs->n && !err; i++) {
		const struct program *program = &programs->items[i];
		const struct label labels[] = { { "bpfpush.collector.name", collector_name(collector) },
						{ "bpfpush.program.name", program->name } };

		if (program->state != PROGRAM_ATTACHED && program->state != PROGRAM_REFUSED)
			continue;
		**attached = program->state == PROGRAM_ATTACHED;
		err = watch(self, SELF_PROGRAM_ATTACHED, (*attached)++, labels, 2);
		if (!err && program->state == PROGRAM_ATTACHED)
			err = watch_all(self, table, ARRAY_SIZE(table), program, labels);
	}
	return err;
}

static int watch_maps(struct self *self)
{
	static const struct watched table[] = {
		{ SELF_MAP_ENTRIES, offsetof(struct map_numbers, entries), NULL },
		{ SELF_MAP_LIMIT, offsetof(struct map_numbers, limit), NULL },
		{ SELF_MAP_MEMORY, offsetof(struct map_numbers, memory), NULL },
		{ SELF_MAP_OVERFLOWING, offsetof(struct map_numbers, overflowing), NULL },
	};
	int err = 0;

	for (size_t i = 0; i < self->n_maps && !err; i++) {
		struct collector_map map;
		struct label labels[2];

		if (!collector_map(self->maps[i].collector, self->maps[i].index, &map))
			continue;
		labels[0] = (struct label){ "bpfpush.collector.name", collector_name(self->maps[i].collector) };
		labels[1] = (struct label){ "bpfpush.map.name", map.name };
		err = watch_all(self, table, ARRAY_SIZE(table), &self->maps[i], labels);
	}
	return err;
}

static int watch_exporter(struct self *self, const struct exporter_numbers *numbers)
{
	static const struct watched counted[] = {
		{ SELF_REQUESTS, offsetof(struct exporter_stats, requests), NULL },
		{ SELF_RETRIES, offsetof(struct exporter_stats, retries), NULL },
		{ SELF_SENT_BYTES, offsetof(struct exporter_stats, bytes_sent), NULL },
		{ SELF_COLLISIONS, offsetof(struct exporter_stats, name_collisions), NULL },
	};
	static const struct watched waiting[] = {
		{ SELF_INFLIGHT, offsetof(struct exporter_waiting, n_points), NULL },
		{ SELF_QUEUE_BYTES, offsetof(struct exporter_waiting, n_bytes), NULL },
	};
	const struct exporter *exporter = numbers->exporter;
	const struct label labels[] = { { "otel.component.name", exporter->name },
					{ "otel.component.type", exporter->ops->type } };
	int err = 0;

	for (enum points fate = POINTS_DELIVERED; fate < N_POINTS && !err; fate++) {
		const struct watched points = { SELF_EXPORTED, fate * sizeof(uint64_t), points_error_type[fate] };

		err = watch_all(self, &points, 1, exporter->stats.points, labels);
	}
	if (!err)
		err = watch_all(self, counted, ARRAY_SIZE(counted), &exporter->stats, labels);
	return err ? err : watch_all(self, waiting, ARRAY_SIZE(waiting), &numbers->waiting, labels);
}

static int watch_exporters(struct self *self, struct exporter *const *exporters, size_t n)
{
	int err = 0;

	self->exporters = calloc(n + 1, sizeof(*self->exporters));
	if (!self->exporters)
		return -ENOMEM;
	self->n_exporters = n;
	for (size_t i = 0; i < n && !err; i++) {
		self->exporters[i].exporter = exporters[i];
		err = watch_exporter(self, &self->exporters[i]);
	}
	return err;
}

static int find_maps(struct self *self, struct collector_set *set)
{
	struct collector_map map;

	for (size_t i = 0; i < set->n; i++)
		for (size_t j = 0; collector_map(set->items[i], j, &map); j++) {
			struct map_numbers *maps = reallocarray(self->maps, self->n_maps + 1, sizeof(*maps));

			if (!maps)
				return -ENOMEM;
			self->maps = maps;
			maps[self->n_maps++] = (struct map_numbers){ .collector = set->items[i], .index = j };
		}
	return 0;
}

static int watch_everything(struct self *self, struct collector_set *set, struct exporter *const *exporters,
			    size_t n_exporters)
{
	uint64_t *attached;
	size_t n_programs = 0;
	int err;

	for (size_t i = 0; i < set->n; i++)
		n_programs += collector_programs(set->items[i])->n;
	self->attached = attached = calloc(n_programs + 1, sizeof(*attached));
	if (!attached)
		return -ENOMEM;
	err = find_maps(self, set);
	if (!err)
		err = watch(self, SELF_COLLECTION, &self->collection_ns, NULL, 0);
	for (size_t i = 0; i < set->n && !err; i++)
		err = watch_programs(self, set->items[i], &attached);
	if (!err)
		err = watch_maps(self);
	return err ? err : watch_exporters(self, exporters, n_exporters);
}

int self_new(struct collector_set *set, struct exporter *const *exporters, size_t n_exporters, uint64_t now_ns,
	     struct self **ret_self)
{
	_cleanup_(self_freep) struct self *self = calloc(1, sizeof(*self));
	int err;

	if (!self)
		return -ENOMEM;
	self->start_ns = now_ns;
	for (size_t i = 0; i < SELF_METRICS; i++) {
		self->metrics[i] = self_table[i];
		metric_init_series(&self->metrics[i], 0);
		self->list[i] = &self->metrics[i];
	}
	err = watch_everything(self, set, exporters, n_exporters);
	if (err)
		return err;
	*ret_self = TAKE_PTR(self);
	return 0;
}

struct self *self_free(struct self *self)
{
	if (!self)
		return NULL;
	for (size_t i = 0; i < SELF_METRICS; i++)
		metric_done_series(&self->metrics[i]);
	free(self->sources);
	free(self->maps);
	free(self->exporters);
	free(self->attached);
	free(self);
	return NULL;
}

static void read_maps(struct self *self)
{
	bool is_memory = self->n_collections++ % MEMORY_EVERY == 0;

	for (size_t i = 0; i < self->n_maps; i++) {
		struct map_numbers *numbers = &self->maps[i];
		struct collector_map map;

		if (!collector_map(numbers->collector, numbers->index, &map))
			continue;
		numbers->entries = map.n_keys;
		numbers->limit = map.max_entries;
		numbers->overflowing = map.overflowing;
		if (is_memory)
			numbers->memory = collector_map_kernel_bytes(numbers->collector, numbers->index);
	}
}

void self_collect(struct self *self, uint64_t collection_ns)
{
	self->collection_ns += collection_ns;
	read_maps(self);
	for (size_t i = 0; i < self->n_exporters; i++)
		self->exporters[i].waiting = exporter_waiting(self->exporters[i].exporter);
	for (size_t i = 0; i < SELF_METRICS; i++)
		series_begin(&self->metrics[i]);
	for (size_t i = 0; i < self->n_sources; i++) {
		struct source *source = &self->sources[i];
		bool is_gauge = source->series->metric->kind == METRIC_GAUGE;

		series_add(source->series, is_gauge ? *source->value : *source->value - source->last);
		source->last = *source->value;
	}
	for (size_t i = 0; i < SELF_METRICS; i++)
		series_end(&self->metrics[i]);
}

struct metric **self_metrics(struct self *self, size_t *ret_n)
{
	*ret_n = SELF_METRICS;
	return self->list;
}
