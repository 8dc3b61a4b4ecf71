/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each collection walks all programs, maps and exporters, always in the same order, and reports
 * each number it meets. The n-th number of a walk belongs to the n-th item of self->numbers, which
 * keeps its series and how far it had counted. So nothing here points into the structures of
 * others, and a number that is unknown for a while (runs of programs, while the kernel does not
 * count them) has no point and goes on later without a jump.
 */
#include "agent/self.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "metric/series.h"
#include "util/array.h"
#include "util/duration.h"

/*
 * Collections between two looks at the kernel's accounting of map memory, which hardly ever
 * changes.
 */
#define MEMORY_EVERY 30
#define RATIO_DIVISOR 1000000000

enum self_metric {
	SELF_COLLECTION,
	SELF_PROGRAM_ATTACHED,
	SELF_PROGRAM_RUNS,
	SELF_PROGRAM_TIME,
	SELF_PROGRAM_MISSED,
	SELF_PROGRAM_MISSED_RATIO,
	SELF_MAP_ENTRIES,
	SELF_MAP_LIMIT,
	SELF_MAP_MEMORY,
	SELF_MAP_OVERFLOWING,
	SELF_SERIES,
	SELF_SERIES_LIMIT,
	SELF_MEMORY,
	SELF_MEMORY_LIMIT,
	SELF_EXPORTED,
	SELF_INFLIGHT,
	SELF_REQUESTS,
	SELF_RETRIES,
	SELF_SENT_BYTES,
	SELF_QUEUE_BYTES,
	SELF_METRICS,
};

static const struct metric self_table[SELF_METRICS] = {
	[SELF_COLLECTION] = { "self", "bpfpush.collection.time", "s", "Time spent reading the kernel's numbers", METRIC_SUM, NS_PER_S },
	[SELF_PROGRAM_ATTACHED] = { "self", "bpfpush.bpf.program.attached", "{program}", "1 if the program is attached, 0 if the kernel refused it", METRIC_GAUGE, 1 },
	[SELF_PROGRAM_RUNS] = { "self", "bpfpush.bpf.program.runs", "{run}", "Runs of a program, while kernel.bpf_stats_enabled is on", METRIC_SUM, 1 },
	[SELF_PROGRAM_TIME] = { "self", "bpfpush.bpf.program.run_time", "s", "Time in a program, while kernel.bpf_stats_enabled is on", METRIC_SUM, NS_PER_S },
	[SELF_PROGRAM_MISSED] = { "self", "bpfpush.bpf.program.missed", "{event}", "Events that the kernel did not deliver to a program", METRIC_SUM, 1 },
	[SELF_PROGRAM_MISSED_RATIO] = { "self", "bpfpush.bpf.program.missed_ratio", "1", "Part of a program's events that the kernel did not deliver, since the last collection", METRIC_GAUGE, RATIO_DIVISOR },
	[SELF_MAP_ENTRIES] = { "self", "bpfpush.bpf.map.entries", "{entry}", "Keys in a map", METRIC_GAUGE, 1 },
	[SELF_MAP_LIMIT] = { "self", "bpfpush.bpf.map.limit", "{entry}", "Entries that a map has room for", METRIC_GAUGE, 1 },
	[SELF_MAP_MEMORY] = { "self", "bpfpush.bpf.map.memory", "By", "Kernel memory of a map", METRIC_GAUGE, 1 },
	[SELF_MAP_OVERFLOWING] = { "self", "bpfpush.bpf.map.overflowing", "{table}", "1 if a table recently had no place for a key, else 0", METRIC_GAUGE, 1 },
	[SELF_SERIES] = { "self", "bpfpush.series.count", "{series}", "Series of all collectors", METRIC_GAUGE, 1 },
	[SELF_SERIES_LIMIT] = { "self", "bpfpush.series.limit", "{series}", "Series that there is room for (series_limit)", METRIC_GAUGE, 1 },
	[SELF_MEMORY] = { "self", "bpfpush.memory.usage", "By", "Memory of the kernel's tables and the series", METRIC_GAUGE, 1 },
	[SELF_MEMORY_LIMIT] = { "self", "bpfpush.memory.limit", "By", "Memory that these may take (memory_limit)", METRIC_GAUGE, 1 },
	[SELF_EXPORTED] = { "self", "otel.sdk.exporter.metric_data_point.exported", "{data_point}", "Points by their fate", METRIC_SUM, 1 },
	[SELF_INFLIGHT] = { "self", "otel.sdk.exporter.metric_data_point.inflight", "{data_point}", "Points encoded and not yet acknowledged", METRIC_GAUGE, 1 },
	[SELF_REQUESTS] = { "self", "bpfpush.exporter.requests", "{request}", "Requests sent, retries included", METRIC_SUM, 1 },
	[SELF_RETRIES] = { "self", "bpfpush.exporter.retries", "{request}", "Requests sent again", METRIC_SUM, 1 },
	[SELF_SENT_BYTES] = { "self", "bpfpush.exporter.sent", "By", "Bytes of request bodies sent", METRIC_SUM, 1 },
	[SELF_QUEUE_BYTES] = { "self", "bpfpush.exporter.queue.usage", "By", "Bytes that wait to be sent", METRIC_GAUGE, 1 },
};

struct number {
	struct series *series; /* NULL: it has none now */
	uint64_t last;	       /* what it was at the last collection */
};

struct self {
	struct collector_set *set;
	struct exporter *const *exporters;
	size_t n_exporters;
	struct metric metrics[SELF_METRICS];
	struct number *numbers;
	size_t n_numbers;
	size_t at; /* in numbers, during a walk */
	uint64_t collection_ns;
	uint64_t previous_ns; /* of this collection: the start of series that are new */
	unsigned int n_collections;
	bool has_runs; /* the kernel counts runs of programs now */
	bool is_brief; /* only programs that have missed something are told of */
};

struct label {
	const char *name, *value; /* value NULL: left out */
};
#define LABELS 3

/* The next number of the walk. NULL: no memory. */
static struct number *next_number(struct self *self)
{
	if (self->at++ < self->n_numbers)
		return &self->numbers[self->at - 1];
	/* After one that found no memory, the rest of the walk has no numbers either. */
	if (self->at > self->n_numbers + 1)
		return NULL;
	return array_add(&self->numbers, &self->n_numbers, sizeof(*self->numbers));
}

static int find_series(struct self *self, enum self_metric metric, const struct label labels[LABELS],
		       struct series **series)
{
	struct attributes attributes;

	if (*series)
		return 0;
	attributes_init(&attributes);
	for (size_t i = 0; i < LABELS; i++)
		if (labels[i].value)
			(void)attributes_add_text(&attributes, labels[i].name, labels[i].value,
						  strlen(labels[i].value));
	return series_get(&self->metrics[metric], &attributes, self->previous_ns, series);
}

/*
 * A number that moves only while the kernel keeps it: what it grew by before it stopped still
 * counts; a gauge ends. Without memory the growth waits for the next collection.
 */
static void report_if(struct self *self, bool is_kept, enum self_metric metric, const struct label labels[LABELS],
		      uint64_t value)
{
	struct number *number = next_number(self);

	if (!number)
		return;
	if (!is_kept && (!number->series || number->last == value || self_table[metric].kind == METRIC_GAUGE)) {
		series_put(number->series);
		*number = (struct number){ .last = value };
		return;
	}
	if (find_series(self, metric, labels, &number->series))
		return;
	series_add(number->series, self_table[metric].kind == METRIC_GAUGE ? value : value - number->last);
	number->last = value;
}

static void report(struct self *self, enum self_metric metric, const struct label labels[LABELS], uint64_t value)
{
	report_if(self, true, metric, labels, value);
}

/* The sysctl kernel.bpf_stats_enabled. */
static bool does_kernel_keep_runs(void)
{
	_cleanup_(closep) int fd = open("/proc/sys/kernel/bpf_stats_enabled", O_RDONLY | O_CLOEXEC);
	char digit = '0';

	return fd >= 0 && read(fd, &digit, 1) == 1 && digit != '0';
}

static void report_programs(struct self *self, struct collector *collector)
{
	const struct programs *programs = &collector->object->programs;

	for (uint32_t i = 0; i < programs->n; i++) {
		const struct program *program = &programs->items[i];
		const struct label labels[LABELS] = { { "bpfpush.collector.name", collector->name },
						      { "bpfpush.program.name", program->name } };
		bool is_attached = program->state == PROGRAM_ATTACHED, is_told = !self->is_brief || program->missed;
		struct loss loss = program_loss(program);

		if (program->collector != collector || (!is_attached && program->state != PROGRAM_REFUSED))
			continue;
		report(self, SELF_PROGRAM_ATTACHED, labels, is_attached);
		if (!is_attached)
			continue;
		report_if(self, self->has_runs, SELF_PROGRAM_RUNS, labels, program->runs);
		report_if(self, self->has_runs, SELF_PROGRAM_TIME, labels, program->run_time_ns);
		report_if(self, is_told, SELF_PROGRAM_MISSED, labels, program->missed);
		report_if(self, is_told && loss.is_known, SELF_PROGRAM_MISSED_RATIO, labels,
			  (uint64_t)(loss_share(&loss) * RATIO_DIVISOR + 0.5));
	}
}

static void report_maps(struct self *self, struct collector *collector)
{
	bool is_memory_read = self->n_collections % MEMORY_EVERY == 0;
	struct collector_map map;

	for (size_t i = 0; collector_map(collector, i, &map); i++) {
		const struct label labels[LABELS] = { { "bpfpush.collector.name", collector->name },
						      { "bpfpush.map.name", map.name } };

		report(self, SELF_MAP_ENTRIES, labels, map.n_keys);
		report(self, SELF_MAP_LIMIT, labels, map.max_entries);
		report(self, SELF_MAP_OVERFLOWING, labels, map.is_overflowing);
		report(self, SELF_MAP_MEMORY, labels,
		       is_memory_read || self->at >= self->n_numbers ? collector_map_kernel_bytes(&map) :
								       self->numbers[self->at].last);
	}
}

static void report_budget(struct self *self, const struct budget *budget)
{
	const struct label none[LABELS] = { 0 };

	report(self, SELF_SERIES, none, budget->n_series);
	report(self, SELF_SERIES_LIMIT, none, budget->limit_series);
	report(self, SELF_MEMORY, none, budget->series_bytes + budget->table_bytes);
	report(self, SELF_MEMORY_LIMIT, none, budget->limit_bytes);
}

static void report_exporter(struct self *self, const struct exporter *exporter)
{
	const struct exporter_stats *stats = &exporter->stats;
	const struct exporter_waiting waiting = exporter_waiting(exporter);
	struct label labels[LABELS] = { { "otel.component.name", exporter->name },
					{ "otel.component.type", exporter->ops->type } };

	report(self, SELF_INFLIGHT, labels, waiting.n_points);
	report(self, SELF_QUEUE_BYTES, labels, waiting.n_bytes);
	report(self, SELF_REQUESTS, labels, stats->requests);
	report(self, SELF_RETRIES, labels, stats->retries);
	report(self, SELF_SENT_BYTES, labels, stats->bytes_sent);
	for (enum points fate = POINTS_DELIVERED; fate < N_POINTS; fate++) {
		labels[2] = (struct label){ "error.type", points_error_type[fate] };
		report(self, SELF_EXPORTED, labels, stats->points[fate]);
	}
}

void self_collect(struct self *self, uint64_t collection_ns, uint64_t previous_ns)
{
	const struct label none[LABELS] = { 0 };

	self->collection_ns += collection_ns;
	self->previous_ns = previous_ns;
	self->has_runs = does_kernel_keep_runs();
	self->at = 0;
	for (size_t i = 0; i < SELF_METRICS; i++)
		series_begin(&self->metrics[i]);
	report(self, SELF_COLLECTION, none, self->collection_ns);
	report_budget(self, self->set->budget);
	for (size_t i = 0; i < self->set->n; i++) {
		report_programs(self, self->set->items[i]);
		if (!self->is_brief)
			report_maps(self, self->set->items[i]);
	}
	for (size_t i = 0; i < self->n_exporters; i++)
		report_exporter(self, self->exporters[i]);
	for (size_t i = 0; i < SELF_METRICS; i++)
		series_end(&self->metrics[i]);
	self->n_collections++;
}

void self_restart(struct self *self)
{
	for (size_t i = 0; i < self->n_numbers; i++)
		self->numbers[i].series = NULL;
	for (size_t i = 0; i < SELF_METRICS; i++)
		metric_done_series(&self->metrics[i]);
}

int self_new(struct collector_set *set, struct exporter *const *exporters, size_t n_exporters, bool is_brief,
	     struct self **ret_self)
{
	struct self *self = calloc(1, sizeof(*self));

	if (!self)
		return -ENOMEM;
	self->set = set;
	self->exporters = exporters;
	self->n_exporters = n_exporters;
	self->is_brief = is_brief;
	for (size_t i = 0; i < SELF_METRICS; i++) {
		self->metrics[i] = self_table[i];
		metric_init_series(&self->metrics[i], NULL);
	}
	*ret_self = self;
	return 0;
}

struct self *self_free(struct self *self)
{
	if (!self)
		return NULL;
	for (size_t i = 0; i < SELF_METRICS; i++)
		metric_done_series(&self->metrics[i]);
	free(self->numbers);
	free(self);
	return NULL;
}

struct metric *self_metrics(struct self *self, size_t *ret_n)
{
	*ret_n = self->is_brief ? 2 : SELF_METRICS;
	return self->is_brief ? &self->metrics[SELF_PROGRAM_MISSED] : self->metrics;
}
