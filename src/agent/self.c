/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each collection walks all programs, maps and exporters, always in the same order, and reports
 * each number it meets. The n-th number of a walk belongs to the n-th item of self->numbers, which
 * keeps its series and how far it had counted. So nothing here points into the structures of
 * others, and a number that is unknown for a while (runs of programs, while the kernel does not
 * count them) has no point and goes on later without a jump.
 */
#include "agent/agent.h"
#include "agent/internal.h"

#include <fcntl.h>
#include <string.h>

#include "metric/bounds.h"
#include "metric/series.h"
#include "util/array.h"

/*
 * Collections between two looks at the kernel's accounting of map memory, which hardly ever
 * changes.
 */
#define MEMORY_EVERY 30
#define RATIO_DIVISOR 1000000000

/* From 2^-17 s (8 µs) to 2^4 s. */
#define COLLECTION_OFFSET  -17
#define COLLECTION_BUCKETS 23

#define UPDOWN METRIC_GAUGE, 1, .is_updown = true

/* With a name each, for the code below. */
#define METRICS(X) \
	X(COLLECTION, { "self", "otel.sdk.metric_reader.collection.duration", "s", "Time to read the kernel's numbers", METRIC_HISTOGRAM, NS_PER_S, \
			.layout = { 0, COLLECTION_OFFSET, COLLECTION_BUCKETS } }) \
	X(PROGRAM_ATTACHED, { "self", "bpfpush.bpf.program.attached", "{program}", "1 if the program is attached, 0 if the kernel refused it", UPDOWN }) \
	X(PROGRAM_RUNS, { "self", "bpfpush.bpf.program.runs", "{run}", "Runs of a program, while kernel.bpf_stats_enabled is on", METRIC_SUM, 1 }) \
	X(PROGRAM_TIME, { "self", "bpfpush.bpf.program.time", "s", "Time in a program, while kernel.bpf_stats_enabled is on", METRIC_SUM, NS_PER_S }) \
	X(PROGRAM_MISSED, { "self", "bpfpush.bpf.program.event.missed", "{event}", "Events that the kernel did not deliver to a program", METRIC_SUM, 1 }) \
	X(PROGRAM_MISSED_RATIO, { "self", "bpfpush.bpf.program.event.missed_ratio", "1", "Part of a program's events that the kernel did not deliver, since the last collection", METRIC_GAUGE, RATIO_DIVISOR }) \
	X(MAP_ENTRIES, { "self", "bpfpush.bpf.map.entry.count", "{entry}", "Keys in a map", UPDOWN }) \
	X(MAP_LIMIT, { "self", "bpfpush.bpf.map.entry.limit", "{entry}", "Entries that a map has room for", UPDOWN }) \
	X(MAP_MEMORY, { "self", "bpfpush.bpf.map.memory.usage", "By", "Kernel memory of a map", UPDOWN }) \
	X(MAP_OVERFLOWING, { "self", "bpfpush.bpf.map.overflowing", "{table}", "1 if a table recently had no place for a key, else 0", UPDOWN }) \
	X(SERIES, { "self", "bpfpush.series.count", "{series}", "Series of all collectors", UPDOWN }) \
	X(SERIES_LIMIT, { "self", "bpfpush.series.limit", "{series}", "Series that there is room for (series_limit)", UPDOWN }) \
	X(MEMORY, { "self", "bpfpush.memory.usage", "By", "Memory of the kernel's tables and the series", UPDOWN }) \
	X(MEMORY_LIMIT, { "self", "bpfpush.memory.limit", "By", "Memory that these may take (memory_limit)", UPDOWN }) \
	X(EXPORTED, { "self", "otel.sdk.exporter.metric_data_point.exported", "{data_point}", "Points by their fate", METRIC_SUM, 1 }) \
	X(INFLIGHT, { "self", "otel.sdk.exporter.metric_data_point.inflight", "{data_point}", "Points encoded and not yet acknowledged", UPDOWN }) \
	X(LOGS_EXPORTED, { "self", "otel.sdk.exporter.log.exported", "{log_record}", "Events by their fate", METRIC_SUM, 1 }) \
	X(LOGS_INFLIGHT, { "self", "otel.sdk.exporter.log.inflight", "{log_record}", "Events taken and not yet acknowledged", UPDOWN }) \
	X(SPANS_EXPORTED, { "self", "otel.sdk.exporter.span.exported", "{span}", "Spans by their fate", METRIC_SUM, 1 }) \
	X(SPANS_INFLIGHT, { "self", "otel.sdk.exporter.span.inflight", "{span}", "Spans taken and not yet acknowledged", UPDOWN }) \
	X(EVENTS_DROPPED, { "self", "bpfpush.events.dropped", "{event}", "Events that happened and reached no exporter", METRIC_SUM, 1 }) \
	X(REQUESTS, { "self", "bpfpush.exporter.requests", "{request}", "Requests sent, retries included", METRIC_SUM, 1 }) \
	X(RETRIES, { "self", "bpfpush.exporter.retries", "{request}", "Requests sent again", METRIC_SUM, 1 }) \
	X(SENT_BYTES, { "self", "bpfpush.exporter.request.body.size", "By", "Bytes of request bodies sent", METRIC_SUM, 1 }) \
	X(DOUBTFUL_POINTS, { "self", "bpfpush.exporter.in_doubt.data_points", "{data_point}", "Points of deltas, events or spans, that a receiver may have taken without an answer", METRIC_SUM, 1 }) \
	X(DOUBTFUL_VALUES, { "self", "bpfpush.exporter.in_doubt.values", "1", "What the sums and the counts of values in these points add up to", METRIC_SUM, 1 }) \
	X(QUEUE_BYTES, { "self", "bpfpush.exporter.queue.usage", "By", "Bytes that wait to be sent", UPDOWN }) \
	X(SPOOL_BYTES, { "self", "bpfpush.exporter.spool.usage", "By", "Bytes that a spool takes on disk", UPDOWN }) \
	X(SPOOL_DAMAGED, { "self", "bpfpush.exporter.spool.damaged", "{record}", "Records of a spool that could not be read", METRIC_SUM, 1 })

#define METRIC_NAME(name, ...) SELF_##name,
#define METRIC_ROW(name, ...) [SELF_##name] = __VA_ARGS__,

enum self_metric { METRICS(METRIC_NAME) SELF_METRICS };

static const struct metric self_table[SELF_METRICS] = { METRICS(METRIC_ROW) };

struct number {
	struct series *series; /* NULL: it has none now */
	uint64_t last;	       /* what it was at the last collection */
};

#define LABELS 3

struct self {
	struct metric metrics[SELF_METRICS];
	struct number *numbers;
	size_t n_numbers;
	/* During a walk. */
	size_t at; /* in numbers */
	struct label {
		const char *name, *value; /* value NULL: left out */
	} labels[LABELS];
	uint64_t previous_ns; /* the start of series that are new */
	bool has_runs;	      /* the kernel counts runs of programs now */
	unsigned int n_collections;
};

/* Those of the numbers that follow. */
#define set_labels(self, ...) \
	memcpy((self)->labels, (struct label[LABELS]){ __VA_ARGS__ }, sizeof((self)->labels))

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

static int find_series(struct self *self, enum self_metric metric, struct series **ret_series)
{
	struct attributes attributes;

	attributes_init(&attributes);
	for (const struct label *label = self->labels; label < self->labels + LABELS; label++)
		if (label->value)
			(void)attributes_add_text(&attributes, label->name, label->value,
						  strlen(label->value));
	return series_get(&self->metrics[metric], &attributes, self->previous_ns, ret_series);
}

/*
 * A number that moves only while the kernel keeps it: what it grew by before it stopped still
 * counts; a gauge ends. Without memory the growth waits for the next collection.
 */
static void report_if(struct self *self, bool is_kept, enum self_metric metric, uint64_t value)
{
	bool is_gauge = self_table[metric].kind == METRIC_GAUGE;
	struct number *number = next_number(self);

	if (!number)
		return;
	if (!is_kept && (!number->series || number->last == value || is_gauge)) {
		series_put(number->series);
		*number = (struct number){ .last = value };
	} else if (number->series || !find_series(self, metric, &number->series)) {
		series_add(number->series, is_gauge ? value : value - number->last);
		number->last = value;
	}
}

static void report_value(struct self *self, enum self_metric metric, uint64_t value)
{
	report_if(self, true, metric, value);
}

static void report_collection(struct self *self, uint64_t ns)
{
	const struct metric *metric = &self->metrics[SELF_COLLECTION];
	struct number *number = next_number(self);
	uint64_t buckets[COLLECTION_BUCKETS] = { 0 };
	uint32_t i = 0;

	set_labels(self, { "otel.component.name", "periodic_metric_reader/0" },
		   { "otel.component.type", "periodic_metric_reader" });
	while (ns > bounds_upper_raw(metric, i))
		i++;
	buckets[i] = 1;
	if (number && (number->series || !find_series(self, SELF_COLLECTION, &number->series)))
		series_add_histogram(number->series, ns, buckets);
}

/* is_brief: only what has missed something is told of. */
static void report_programs(struct self *self, struct collector *collector, bool is_brief)
{
	const struct programs *programs = &collector->object->programs;

	array_for_each (program, programs->items, programs->n) {
		bool is_attached = program->state == PROGRAM_ATTACHED,
			is_told = !is_brief || program->missed;
		struct loss loss = program_loss(program);

		if (program->collector != collector ||
		    (!is_attached && program->state != PROGRAM_REFUSED))
			continue;
		set_labels(self, { "bpfpush.collector.name", collector->name }, { "bpfpush.program.name", program->name });
		report_value(self, SELF_PROGRAM_ATTACHED, is_attached);
		if (!is_attached)
			continue;
		report_if(self, self->has_runs, SELF_PROGRAM_RUNS, program->runs);
		report_if(self, self->has_runs, SELF_PROGRAM_TIME, program->run_time_ns);
		report_if(self, is_told, SELF_PROGRAM_MISSED, program->missed);
		report_if(self, is_told && loss.is_known, SELF_PROGRAM_MISSED_RATIO,
			  (uint64_t)(loss_share(&loss) * RATIO_DIVISOR + 0.5));
	}
}

static void report_maps(struct self *self, struct collector *collector)
{
	bool is_memory_read = self->n_collections % MEMORY_EVERY == 0;

	collector_find_maps(collector);
	array_for_each (map, collector->maps, collector->n_maps) {
		set_labels(self, { "bpfpush.collector.name", collector->name }, { "bpfpush.map.name", map->name });
		report_value(self, SELF_MAP_ENTRIES, map->n_keys);
		report_value(self, SELF_MAP_LIMIT, map->max_entries);
		report_value(self, SELF_MAP_OVERFLOWING, map->is_overflowing);
		report_value(self, SELF_MAP_MEMORY, is_memory_read || self->at >= self->n_numbers ?
			     collector_map_kernel_bytes(map) : self->numbers[self->at].last);
	}
}

static void report_events(struct self *self, const struct collector *collector)
{
	const struct event_kind *kind;
	struct names names = { 0 };

	for (size_t i = 0; (kind = collector_event(collector, i, &names)); i++) {
		struct event_losses losses = collector_event_losses(collector, i);
		const struct {
			const char *reason;
			uint64_t n;
		} rows[] = {
			{ "limit", losses.limited },
			{ "ring_full", losses.full },
			{ "damaged", losses.damaged },
		};

		for (size_t j = 0; j < ARRAY_SIZE(rows); j++) {
			set_labels(self, { "bpfpush.collector.name", collector->name },
				   { "bpfpush.event.name", kind->name },
				   { "error.type", rows[j].reason });
			report_value(self, SELF_EVENTS_DROPPED, rows[j].n);
		}
	}
}

static void report_exporter(struct self *self, struct exporter *exporter)
{
	const struct exporter_stats *stats = &exporter->stats;
	static const struct {
		enum self_metric exported, inflight;
	} of_signal[SIGNALS] = {
		{ SELF_EXPORTED, SELF_INFLIGHT },
		{ SELF_LOGS_EXPORTED, SELF_LOGS_INFLIGHT },
		{ SELF_SPANS_EXPORTED, SELF_SPANS_INFLIGHT },
	};
	size_t signal = signal_index(exporter->ops->takes);
	const struct exporter_waiting waiting = exporter_waiting(exporter);

	set_labels(self, { "otel.component.name", exporter->name },
		   { "otel.component.type", exporter->ops->component ?: exporter->ops->type }, { "error.type", NULL });
	report_value(self, of_signal[signal].inflight, waiting.n_points);
	report_value(self, SELF_QUEUE_BYTES, waiting.n_bytes);
	report_value(self, SELF_REQUESTS, stats->requests);
	report_value(self, SELF_RETRIES, stats->retries);
	report_value(self, SELF_SENT_BYTES, stats->bytes_sent);
	report_value(self, SELF_DOUBTFUL_POINTS, stats->doubtful_points);
	report_value(self, SELF_DOUBTFUL_VALUES, stats->doubtful_values);
	report_if(self, exporter->queue.spool, SELF_SPOOL_BYTES, spool_bytes(&exporter->spool));
	report_if(self, exporter->queue.spool, SELF_SPOOL_DAMAGED, exporter->spool.n_damaged);
	for (enum points fate = POINTS_DELIVERED; fate < N_POINTS; fate++) {
		self->labels[2].value = points_error_type[fate];
		report_value(self, of_signal[signal].exported, stats->points[fate]);
	}
	memcpy(exporter->reported, stats->points, sizeof(stats->points));
}

void self_collect(struct self *self, const struct agent *agent)
{
	const struct collector_set *set = agent->options.set;
	const struct budget *budget = set->budget;
	_cleanup_(closep) int fd = open("/proc/sys/kernel/bpf_stats_enabled", O_RDONLY | O_CLOEXEC);
	char digit = '0';

	self->previous_ns = agent->batch.previous_ns;
	self->has_runs = agent->options.has_runs ||
			 (fd >= 0 && read(fd, &digit, 1) == 1 && digit != '0');
	self->at = 0;
	for (size_t i = 0; i < SELF_METRICS; i++)
		series_begin(&self->metrics[i]);
	report_collection(self, agent->collection_ns);
	set_labels(self, { NULL });
	report_value(self, SELF_SERIES, budget->n_series);
	report_value(self, SELF_SERIES_LIMIT, budget->limit_series);
	report_value(self, SELF_MEMORY, budget->series_bytes + budget->table_bytes);
	report_value(self, SELF_MEMORY_LIMIT, budget->limit_bytes);
	for (size_t i = 0; i < set->n; i++) {
		report_programs(self, set->items[i], !agent->options.has_self);
		if (agent->options.has_self)
			report_maps(self, set->items[i]);
		if (agent->options.has_self)
			report_events(self, set->items[i]);
	}
	for (size_t i = 0; i < agent->n_exporters; i++)
		report_exporter(self, agent->exporters[i]);
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

struct self *self_new(void)
{
	struct self *self = calloc(1, sizeof(*self));

	for (size_t i = 0; self && i < SELF_METRICS; i++) {
		self->metrics[i] = self_table[i];
		metric_init_series(&self->metrics[i], NULL);
	}
	return self;
}

void self_free(struct self *self)
{
	if (!self)
		return;
	self_restart(self);
	free(self->numbers);
	free(self);
}

struct metric *self_metrics(struct self *self, const struct agent_options *options, size_t *ret_n)
{
	size_t n_without = options->is_once ? 2 : 0;

	*ret_n = options->has_self ? SELF_METRICS : n_without;
	return options->has_self ? self->metrics : &self->metrics[SELF_PROGRAM_MISSED];
}
