/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of exporters, and the accounts that all of them keep in the same way. What an exporter
 * holds is never computed from its counts: it is asked of the queue or buffer itself, so that a
 * point that was forgotten or counted twice shows as a difference.
 */
#include "export/exporter.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "export/transport/timer.h"
#include "util/duration.h"
#include "util/hash.h"
#include "util/utf8.h"

#define MESSAGE_BYTES 8192 /* a path of PATH_MAX and what is wrong with it */
#define CHANGES_MAX 6 /* that are logged in a minute */
#define MINUTE_NS (60 * NS_PER_S)

extern const struct exporter_ops otlp_exporter, statsd_exporter, graphite_exporter,
	console_exporter, csv_exporter, json_exporter, bpftrace_json_exporter,
	journal_exporter;

const struct exporter_ops *const exporter_table[] = {
	&otlp_exporter,
	&statsd_exporter,
	&graphite_exporter,
	&console_exporter,
	&csv_exporter,
	&json_exporter,
	&bpftrace_json_exporter,
	&journal_exporter,
	NULL,
};

const char *const points_error_type[N_POINTS] = {
	[POINTS_REJECTED] = "rejected",
	[POINTS_QUEUE_FULL] = "queue_full",
	[POINTS_TOO_LARGE] = "too_large",
	[POINTS_NOT_SENT] = "not_sent",
	[POINTS_CONNECTION_REFUSED] = "connection_refused",
	[POINTS_UNSUPPORTED] = "unsupported",
	[POINTS_IN_DOUBT] = "in_doubt",
};

const struct exporter_ops *exporter_find(const char *type)
{
	for (size_t i = 0; exporter_table[i]; i++)
		if (!strcmp(exporter_table[i]->type, type))
			return exporter_table[i];
	return NULL;
}

int exporter_open(const char *name, const struct exporter_ops *ops, const void *options,
		  const struct exporter_context *context, struct exporter **ret_exporter)
{
	struct exporter *exporter = calloc(1, sizeof(*exporter) + ops->state_bytes);
	int err;

	if (!exporter)
		return -ENOMEM;
	*exporter = (struct exporter){ .name = name, .ops = ops, .options = options,
				       .context = context,
				       .state = exporter + 1, .spool = SPOOL_INIT };
	err = ops->open(exporter, options);
	if (err && !exporter->stats.is_failing)
		exporter_fail(exporter, LOG_LEVEL_ERROR, NULL, "cannot be set up: %s", strerror(-err));
	if (err) {
		queue_done(&exporter->queue);
		free(exporter);
		return err;
	}
	*ret_exporter = exporter;
	return 0;
}

int exporter_problem_bytes(const struct exporter *exporter)
{
	const char *problem = exporter->stats.problem,
		*end = memrchr(problem, ';', strlen(problem));

	return (int)(end ? (size_t)(end - problem) : strlen(problem));
}

/* Says how many changes of the minute before were not logged. */
static void begin_minute(struct exporter *exporter, uint64_t now_ns)
{
	const char *now = exporter->stats.is_failing ? "fails" : "works";
	unsigned int n = exporter->n_minute;

	if (now_ns - exporter->minute_ns < MINUTE_NS)
		return;
	exporter->minute_ns = now_ns;
	exporter->n_minute = 0;
	if (n > CHANGES_MAX)
		exporter_log(exporter, LOG_LEVEL_WARNING, NULL, "%u more change%s not logged; now it %s", n - CHANGES_MAX,
			     n - CHANGES_MAX == 1 ? " is" : "s are", now);
}

bool exporter_may_log(struct exporter *exporter)
{
	begin_minute(exporter, timer_boottime_ns(exporter->context->event));
	return exporter->n_minute++ < CHANGES_MAX;
}

void exporter_remind(struct exporter *exporter)
{
	const struct exporter_stats *stats = &exporter->stats;
	struct sd_event *event = exporter->context->event;
	uint64_t now_ns = timer_boottime_ns(event);
	size_t n = exporter_waiting(exporter).n_points;
	char since[32];
	struct tm tm;
	time_t begin;

	begin_minute(exporter, now_ns);
	if (!stats->is_failing || now_ns - stats->failing_ns < NS_PER_HOUR ||
	    now_ns - exporter->reminded_ns < NS_PER_HOUR)
		return;
	exporter->reminded_ns = now_ns;
	begin = (time_t)((timer_turn_ns(event, CLOCK_REALTIME) + stats->failing_ns - now_ns) /
			 NS_PER_S);
	strftime(since, sizeof(since), "%F %H:%M UTC", gmtime_r(&begin, &tm));
	exporter_log(exporter, LOG_LEVEL_WARNING, LOG_ID_EXPORT_FAILING, "still failing since %s: %.*s; %zu %s%s", since,
		     exporter_problem_bytes(exporter), stats->problem, n, exporter_item(exporter),
		     n == 1 ? " waits" : "s wait");
}

const char *exporter_item(const struct exporter *exporter)
{
	return signal_words(exporter->ops->takes)->item;
}

enum signals exporter_signals(const struct exporter_ops *ops, const void *options)
{
	return ops->signals ? ops->signals(options) : SIGNAL_METRICS;
}

void exporter_send(struct exporter *exporter, const struct batch *batch)
{
	if (exporter->ops->send)
		exporter->ops->send(exporter, batch);
}

void exporter_fail_until(struct exporter *exporter, enum log_level level, const char *id,
			 uint64_t delay_ns, const char *format, ...)
{
	struct exporter_stats *stats = &exporter->stats;
	char message[MESSAGE_BYTES], problem[sizeof(stats->problem)], delay[32] = "";
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	snprintf(problem, sizeof(problem), "%.*s", (int)sizeof(problem) - 1, message);
	utf8_clean(problem);
	if (stats->is_failing && !strcmp(problem, stats->problem))
		return;
	if (!stats->is_failing)
		stats->failing_ns = timer_boottime_ns(exporter->context->event);
	stats->is_failing = true;
	stats->n_changes++;
	memcpy(stats->problem, problem, sizeof(problem));
	if (delay_ns)
		snprintf(delay, sizeof(delay), " in %.*f s", delay_ns < 10 * NS_PER_S,
			 (double)delay_ns / (double)NS_PER_S);
	if (!exporter->context->is_trial && exporter_may_log(exporter))
		exporter_log(exporter, level, id, "%s%s", message, delay);
}

bool exporter_recovers(struct exporter *exporter)
{
	struct exporter_stats *stats = &exporter->stats;

	if (!stats->is_failing)
		return false;
	stats->n_changes++;
	stats->is_failing = false;
	stats->failing_ns = 0;
	stats->problem[0] = '\0';
	return exporter_may_log(exporter);
}

void exporter_asks(struct exporter *exporter, bool is_asking)
{
	exporter->stats.asked_ns = is_asking ? timer_boottime_ns(exporter->context->event) : 0;
}

void exporter_account(struct exporter *exporter, enum points fate, uint64_t n)
{
	struct exporter_stats *stats = &exporter->stats;

	stats->points[fate] += n;
	if (fate != POINTS_DELIVERED || !n)
		return;
	stats->delivered_ns = timer_boottime_ns(exporter->context->event);
	stats->n_changes++;
}

static void log_loss(struct exporter *exporter, const char *why)
{
	const char *points = strstr(why, "points");

	if (points)
		exporter_log(exporter, LOG_LEVEL_WARNING, LOG_ID_DATA_DROPPED, "%.*s%s%s",
			     (int)(points - why), why, exporter_item(exporter),
			     points + strlen("point"));
	else
		exporter_log(exporter, LOG_LEVEL_WARNING, LOG_ID_DATA_DROPPED, "%s", why);
}

void exporter_drop(struct exporter *exporter, enum points fate, uint64_t n, const char *why)
{
	uint64_t now_ns, hash;
	bool was_told;

	exporter_account(exporter, fate, n);
	if (!n)
		return;
	now_ns = timer_boottime_ns(exporter->context->event);
	hash = hash_words(HASH_STABLE_START, why);
	was_told = exporter->told_ns[fate] && now_ns - exporter->told_ns[fate] < NS_PER_HOUR;
	/* However much else there is to say, a loss that begins is said. */
	if (was_told && (exporter->told[fate] == hash || !exporter_may_log(exporter)))
		return;
	exporter->told[fate] = hash;
	exporter->told_ns[fate] = now_ns;
	log_loss(exporter, why);
}

void exporter_drop_no_memory(struct exporter *exporter, uint64_t n)
{
	exporter_drop(exporter, POINTS_NOT_SENT, n, "points are lost, because there is not enough memory");
}

struct exporter_waiting exporter_waiting(const struct exporter *exporter)
{
	const struct queue *queue = &exporter->queue;

	if (exporter->ops->waiting)
		return exporter->ops->waiting(exporter);
	return (struct exporter_waiting){ queue->n_points + exporter->n_doubtful, queue->size_bytes,
					  queue->n_items > queue->n_held };
}

bool exporter_is_idle(const struct exporter *exporter)
{
	return !exporter_waiting(exporter).is_sending;
}

struct exporter *exporter_free(struct exporter *exporter)
{
	if (!exporter)
		return NULL;
	exporter->ops->close(exporter);
	queue_done(&exporter->queue);
	spool_close(&exporter->spool);
	free(exporter);
	return NULL;
}
