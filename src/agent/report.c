/* SPDX-License-Identifier: Apache-2.0 */
/* What is logged about collections: each state once, when it begins. */
#include "agent/agent.h"
#include "agent/internal.h"

#include <inttypes.h>
#include <string.h>

#include "collector/kernel/kernel.h"
#include "collector/label/cgroup.h"
#include "collector/label/watch.h"
#include "metric/bounds.h"
#include "metric/loss.h"
#include "util/array.h"

/* Collections without overflow until it is over; series come and go where room is short. */
#define QUIET_COLLECTIONS 6
/* A smaller share of missed events is not worth a message; the metrics have it all the same. */
#define LOSS_SHARE 1e-3
/* Of fewer values, no sum is looked at. */
#define UNFIT_VALUES 10

/* A failure is logged once, until a collection succeeds. */
bool agent_report_reading(const struct agent *agent, const char *collector, int err)
{
	if (err && !agent->is_read_failing)
		log_error("collector %s: its maps could not be read: %s; a later collection will catch up",
			  collector, strerror(-err));
	return err;
}

static void notice_add(struct notice *notice, const char *name, const char *collector)
{
	_cleanup_(buf_done) struct buf item = BUF_INIT;

	notice->is_on = true;
	buf_printf(&item, ", %s (%s)", name, collector);
	if (strstr(buf_text(&notice->names), buf_text(&item)))
		return;
	buf_append_text(&notice->names, buf_text(&item));
	notice->is_new = true;
}

enum news { NEWS_NONE, NEWS_ON, NEWS_OVER };

/*
 * Has something been added, is the value larger than what was said last, or has it been over for a
 * while?
 */
static enum news notice_news(struct notice *notice, const char *what, uint64_t value)
{
	bool is_new = notice->is_on &&
		      (notice->is_new || what != notice->what || value > notice->value);

	notice->n_quiet = notice->is_on ? 0 : notice->n_quiet + 1;
	notice->is_on = notice->is_new = false;
	if (!is_new)
		return notice->n_quiet == QUIET_COLLECTIONS && notice->names.size ?
		       NEWS_OVER : NEWS_NONE;
	notice->what = what;
	notice->value = value;
	return NEWS_ON;
}

/* setting: of [agent]; value: that would do. */
static void notice_log(struct notice *notice, const char *id, const char *what, const char *setting,
		       uint64_t value)
{
	enum news news = notice_news(notice, what, value);
	const char *names = buf_text(&notice->names), *unit = strcmp(setting, "memory_limit") ? "" : "MiB";
	char remedy[64];
	const struct log_field fields[] = { { "BPFPUSH_OVERFLOW", names + strspn(names, ", ") },
					    { "BPFPUSH_SETTING", remedy },
					    { NULL, NULL } };

	snprintf(remedy, sizeof(remedy), "%s = %" PRIu64 "%s in [agent]", setting, value, unit);
	if (news == NEWS_ON) {
		log_event(LOG_LEVEL_WARNING, id, fields,
			  "%s: numbers of %s are counted together, marked otel.metric.overflow=true; set %s", what,
			  fields[0].value, remedy);
	} else if (news == NEWS_OVER) {
		log_event(LOG_LEVEL_INFO, LOG_ID_OVERFLOW_OVER, fields, "there is room again for %s", fields[0].value);
		buf_reset(&notice->names);
	}
}

/* The limit, doubled until it does. */
static uint64_t double_limit(uint64_t limit, uint64_t needed)
{
	while (limit && limit < needed)
		limit *= 2;
	return limit;
}

static void report_maps(struct agent *agent)
{
	const struct collector_set *set = agent->options.set;
	uint64_t units = double_limit(2 * set->units, cgroups_count(set->labels->cgroups));
	uint64_t value = set->is_cut ? set->budget->limit_bytes >> 19 : units;
	enum news news;

	for (size_t i = 0; i < set->n; i++) {
		struct collector *collector = set->items[i];

		collector_find_maps(collector);
		array_for_each (map, collector->maps, collector->n_maps)
			if (map->is_overflowing)
				notice_add(map->has_records ? &agent->records :
					   &agent->notices[OVERFLOW_TABLE],
					   map->name, collector->name);
		array_for_each (watch, collector->watches, collector->n_watches) {
			if (watch->is_full && !watch->has_told)
				log_warning("map %s of collector %s is full, so not all cgroups that match are chosen; "
					    "give it more max_entries", watch->map, collector->name);
			watch->has_told = watch->is_full;
		}
	}
	notice_log(&agent->notices[OVERFLOW_TABLE], LOG_ID_TABLE_FULL, "tables are full",
		   set->is_cut ? "memory_limit" : "units", value);
	news = notice_news(&agent->records, NULL, 0);
	if (news == NEWS_ON)
		log_warning("records of%s are counted together, marked otel.metric.overflow=true: they were lost, they are "
			    "shorter than their structure, or the limits leave no room for more series", buf_text(&agent->records.names) + 1);
	else if (news == NEWS_OVER)
		buf_reset(&agent->records.names);
}

static void report_series(struct agent *agent)
{
	const struct budget *budget = agent->options.set->budget;
	struct notice *notice = &agent->notices[OVERFLOW_SERIES];
	uint64_t n_missing = 0, bytes = budget->series_bytes + budget->table_bytes;
	struct metric *metric;

	batch_for_each_metric(metric, &agent->batch) {
		const struct series *overflow = metric->overflow[OVERFLOW_SERIES];

		if (!overflow || !overflow->n_sources)
			continue;
		n_missing += overflow->n_sources;
		notice_add(notice, metric->name, metric->scope);
	}
	if (budget->limit_series && budget->n_series + n_missing > budget->limit_series) {
		notice_log(notice, LOG_ID_SERIES_LIMIT, "series_limit is reached", "series_limit",
			   double_limit(budget->limit_series, budget->n_series + n_missing));
		return;
	}
	bytes += n_missing * (budget->series_bytes / (budget->n_series + 1));
	notice_log(notice, LOG_ID_SERIES_LIMIT, "memory_limit is reached", "memory_limit",
		   double_limit(2 * budget->limit_bytes, bytes) >> 20);
}

/* "syscalls, fileio by about 1.28 % (sys_exit)": whose numbers, by how much, and where. */
static void append_loss(struct buf *out, const struct program *program, const struct loss *loss)
{
	const struct object *object = program->collector->object;
	const char *before = out->size ? "; " : "";

	for (size_t i = 0; i < object->n_collectors; i++) {
		if (!collector_uses(object->collectors[i], program))
			continue;
		buf_printf(out, "%s%s", before, object->collectors[i]->name);
		before = ", ";
	}
	buf_append_text(out, loss->is_known ? " by about " : " by up to ");
	loss_append(loss, out);
	buf_printf(out, " (%s)", program->hook);
}

/* How often it can be divided by 1000 before it is 0. */
static unsigned int thousands_of(uint64_t number)
{
	unsigned int n = 0;

	for (; number; number /= 1000)
		n++;
	return n;
}

/*
 * What a collector's programs missed in this collection, unless it is next to nothing. Returns the
 * largest share.
 */
static double add_losses(struct agent *agent, const struct collector *collector)
{
	const struct programs *programs = &collector->object->programs;
	double worst = 0;

	array_for_each (program, programs->items, programs->n) {
		struct loss loss = program->collector == collector ? program_loss(program) :
				   (struct loss){ 0 };

		if (!loss.missed || (loss.is_known && loss_share(&loss) < LOSS_SHARE))
			continue;
		append_loss(&agent->too_low, program, &loss);
		agent->missing.is_on = true;
		if (!loss.is_known) {
			agent->missing.is_new |= thousands_of(program->missed) >
						 thousands_of(program->last_missed);
			continue;
		}
		notice_add(&agent->missing, program->hook, collector->name);
		if (loss_share(&loss) > worst)
			worst = loss_share(&loss);
	}
	return worst;
}

/*
 * Said when a further program misses events, when the largest share has doubled, and when that is
 * over. A few events now and then are nothing new: where no share is known, it is said of the first
 * one, and a thousandfold later.
 */
static void report_misses(struct agent *agent)
{
	const struct collector_set *set = agent->options.set;
	double worst = 0;
	enum news news;

	buf_reset(&agent->too_low);
	for (size_t i = 0; i < set->n; i++) {
		double share = add_losses(agent, set->items[i]);

		worst = share > worst ? share : worst;
		collector_find_losses(set->items[i]);
	}
	news = notice_news(&agent->missing, NULL, double_limit(1, (uint64_t)(worst * 1e6)));
	if (news == NEWS_ON) {
		const struct log_field fields[] = { { "BPFPUSH_MISSED", buf_text(&agent->too_low) },
						    { NULL, NULL } };

		log_event(LOG_LEVEL_WARNING, LOG_ID_EVENTS_MISSED, fields,
			  "numbers are too low, because the kernel skipped events: %s", fields[0].value);
	} else if (news == NEWS_OVER) {
		log_info("the kernel no longer skips events");
		buf_reset(&agent->missing.names);
	}
}

/* Programs that are attached at functions still are, and the kernel does not run them. */
static void report_tracing(struct agent *agent)
{
	const struct collector_set *set = agent->options.set;
	_cleanup_(buf_done) struct buf names = BUF_INIT;
	bool is_off = !kernel_traces_functions();

	if (is_off == agent->is_tracing_off)
		return;
	for (size_t i = 0; i < set->n; i++)
		if (programs_are_at_functions(&set->items[i]->object->programs))
			buf_printf(&names, "%s%s", names.size ? ", " : "", set->items[i]->name);
	agent->is_tracing_off = is_off && names.size;
	if (agent->is_tracing_off)
		log_event(LOG_LEVEL_WARNING, LOG_ID_PARTIAL, NULL, "counting only in part: %s: " NO_TRACED_FUNCTIONS,
			  buf_text(&names));
	else if (!is_off)
		log_info("counting again at functions: %s: the sysctl kernel.ftrace_enabled is 1", buf_text(&names));
}

/* The first series whose sum its bounds do not allow. NULL: there is none. */
static const struct series *find_unfit(const struct metric *metric, double *ret_least,
				       double *ret_most)
{
	const struct series *series;

	metric_for_each_series(series, metric)
		if (series->total.count >= UNFIT_VALUES &&
		    !bounds_fit(metric, &series->total, ret_least, ret_most))
			return series;
	return NULL;
}

/*
 * Said once of a metric, if the same series is so twice: numbers that were read while they changed
 * fit the next time. Where numbers are counted together for lack of room, some of a histogram may
 * be missing in its series.
 */
static void report_bounds(const struct agent *agent)
{
	struct metric *metric;
	double least, most;

	batch_for_each_metric(metric, &agent->batch) {
		const struct series *unfit, *before = metric->unfit;

		metric->is_judged |= metric->overflow[OVERFLOW_SERIES] ||
				     metric->overflow[OVERFLOW_TABLE];
		if (!metric->layout.bounds || metric->layout.has_no_sum || metric->is_judged)
			continue;
		metric->unfit = unfit = find_unfit(metric, &least, &most);
		if (!unfit ||
		    (unfit != before && !(agent->options.is_once && agent->batch.is_last)))
			continue;
		metric->is_judged = true;
		log_warning("collector %s: the sum of %s is %g, and its bounds allow %g to %g: its map lost counts, or \"buckets\" "
			    "describes other bounds than the program has; see bpfpush.collector(5)", metric->scope, metric->name,
			    (double)unfit->total.sum / (double)metric->divisor, least, most);
	}
}

void agent_report(struct agent *agent)
{
	report_bounds(agent);
	report_tracing(agent);
	report_misses(agent);
	report_maps(agent);
	report_series(agent);
}

void agent_report_restored(const struct agent *agent)
{
	uint64_t n_points = 0;

	for (size_t i = 0; i < agent->n_exporters; i++)
		n_points += exporter_waiting(agent->exporters[i]).n_points;
	log_info("%" PRIu64 " series and %" PRIu64 " waiting point%s go on from the process before, which collected %.1f s ago",
		 agent->options.set->budget->n_series, n_points, plural(n_points),
		 (double)(clock_ns(CLOCK_BOOTTIME) - agent->boottime_ns) / 1e9);
}

/* What becomes of what waits. */
static const char *future_of(const struct agent *agent, const struct queue *queue)
{
	if (queue->spooled_bytes && queue->spooled_bytes == queue->size_bytes)
		return "the spool keeps them";
	if (!agent->state)
		return queue->spooled_bytes ? "those that are not in the spool are lost" : "lost";
	return queue->spooled_bytes ? "the spool and a restart by systemd keep them, a stop only what is in the spool" :
				      "a restart by systemd keeps them, a stop does not";
}

void agent_report_unsent(const struct agent *agent)
{
	for (size_t i = 0; i < agent->n_exporters && agent->reload != RELOAD_EXEC; i++) {
		const struct exporter *exporter = agent->exporters[i];
		uint64_t n = exporter_waiting(exporter).n_points;

		if (n && !exporter_is_idle(exporter))
			log_warning("exporter %s: stopped with %" PRIu64 " %s%s unsent; %s", exporter->name, n,
				    exporter_item(exporter), plural(n),
				    future_of(agent, &exporter->queue));
	}
}
