/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A receiver that takes all, a part or nothing, while series come, grow and end: what it adds up is what was counted,
 * and what waits stays small.
 */
#include "lines-rig.h"

#include <math.h>

#define SERIES_N  6
#define ROUNDS	  400
#define SEEDS	  40
#define NAMES_MAX 128

/* What a receiver has: the sum for each name. Graphite replaces a value by a later one of the same time. */
static struct have {
	char name[64];
	unsigned long time_s;
	double sum, last;
} have[NAMES_MAX];
static size_t n_have;

static struct have *have_of(const char *name)
{
	struct have *at = have;

	while (at < have + n_have && strcmp(at->name, name))
		at++;
	assert_true(at < have + NAMES_MAX);
	n_have += at == have + n_have;
	snprintf(at->name, sizeof(at->name), "%s", name);
	return at;
}

static void receive(const char *name, unsigned long time_s, double value)
{
	struct have *at = have_of(name);

	assert_true(time_s >= at->time_s);
	at->sum += time_s && time_s == at->time_s ? value - at->last : value;
	at->last = value;
	at->time_s = time_s;
}

static void read_line(const char *line, bool is_graphite)
{
	char name[64], type[8];
	unsigned long time_s = 0;
	double value, rate = 1;

	if (is_graphite) {
		assert_int_equal(sscanf(line, "%63s %lf %lu", name, &value, &time_s), 3);
	} else {
		assert_true(sscanf(line, "%63[^:]:%lf|%7[a-z]|@%lf", name, &value, type, &rate) >= 3);
		if (!strcmp(type, "ms"))
			value = round(1 / rate); /* how many values it stands for */
	}
	receive(name, time_s, value);
}

static void read_item(struct queue *queue, const struct queue_item *item, bool is_graphite)
{
	_cleanup_(freep) char *text = strndup((const char *)item->data, item->size);
	char *rest = text, *line;

	while ((line = strsep(&rest, "\n")))
		if (*line)
			read_line(line, is_graphite);
}

static void take(struct exporter *exporter, size_t n, bool is_graphite)
{
	struct queue *queue = &exporter->queue;
	struct queue_item *item;

	while (n-- && (item = queue_begin(queue))) {
		read_item(queue, item, is_graphite);
		exporter_account(exporter, POINTS_DELIVERED, item->n_points);
		queue_end(queue, POINTS_DELIVERED);
	}
}

struct scene {
	struct rig rig;
	struct queue_budget budget;
	struct series *series[2][SERIES_N]; /* NULL: it is not there now */
	uint64_t counted[2][SERIES_N];
	size_t most_bytes;
};

static void grow(struct scene *scene, size_t kind, size_t i)
{
	const char *const text[] = { "n", (const char *[]){ "a", "b", "c", "d", "e", "f" }[i], NULL };
	uint64_t n = (uint64_t)random() % 5, bucket[6] = { 0, n };
	struct series **at = &scene->series[kind][i];

	if (!*at && random() % 4)
		return;
	if (!*at)
		*at = series(&scene->rig, kind ? 2 : 0, text);
	if (kind)
		series_add_histogram(*at, n * 1000000, bucket);
	else
		series_add(*at, n);
	scene->counted[kind][i] += n;
	if (random() % 8)
		return;
	series_put(*at);
	*at = NULL;
}

/* The clock was set back; even so the new time may be the later one. All series are made anew. */
static void restart(struct scene *scene)
{
	for (size_t i = 0; i < 3; i++)
		metric_done_series(&scene->rig.metrics[i]);
	memset(scene->series, 0, sizeof(scene->series));
	scene->rig.batch.time_ns += UINT64_C(1000000000);
	scene->rig.batch.previous_ns--;
}

static void push_round(struct scene *scene, bool is_last)
{
	struct rig *rig = &scene->rig;

	rig->batch.previous_ns = rig->batch.time_ns;
	if (!(random() % 50))
		restart(scene);
	begin(rig);
	for (size_t kind = 0; kind < 2; kind++)
		for (size_t i = 0; i < SERIES_N && !is_last; i++)
			grow(scene, kind, i);
	for (size_t i = 0; i < 3; i++)
		series_end(&rig->metrics[i]);
	rig->batch.time_ns += UINT64_C(500000000) * (random() % 16 ? 2 + random() % 2 : 1); /* two may share a second */
	rig->exporter.queue.time_ns = rig->batch.time_ns;
	assert_ok(lines_push(&rig->lines, &rig->batch, rig->batch.time_ns / 1000000000));
	assert_accounted(&rig->exporter);
	if (rig->exporter.queue.size_bytes > scene->most_bytes)
		scene->most_bytes = rig->exporter.queue.size_bytes;
}

static void assert_counted(struct scene *scene, const char *const suffixes[2])
{
	const char *time = scene->rig.lines.naming.dialect->is_graphite || *suffixes[1] == 0 ? "time" : "time_us";
	const uint64_t *points = scene->rig.exporter.stats.points;
	char name[64];

	assert_int_equal(points[POINTS_QUEUE_FULL], 0);
	for (size_t kind = 0; kind < 2; kind++)
		for (size_t i = 0; i < SERIES_N; i++) {
			snprintf(name, sizeof(name), "a.%s.%c%s", kind ? time : "sum", 'a' + (int)i, suffixes[kind]);
			if (have_of(name)->sum != (double)scene->counted[kind][i])
				fail_msg("%s: %g of %" PRIu64 " have come", name, have_of(name)->sum, scene->counted[kind][i]);
		}
	assert_int_equal(points[POINTS_DELIVERED], points[POINTS_PUSHED]);
}

static void play(unsigned int seed, enum dialect_id dialect, enum lines_histogram histogram, uint64_t limit_bytes,
		 const char *const suffixes[2])
{
	bool is_graphite = dialect == DIALECT_DOTTED;
	struct scene scene = { .budget.limit_bytes = limit_bytes };
	unsigned int until = 0, takes = 0;
	size_t piece_bytes = seed % 2 ? 200 : 50; /* one holds points, or several are one point */

	srandom(seed);
	rig_init(&scene.rig, dialect, "{metric}.{n}");
	scene.rig.lines.histogram = histogram;
	scene.rig.lines.pack = (struct pack){ .limit_bytes = piece_bytes, .put = exporter_enqueue,
					      .user = &scene.rig.exporter };
	queue_init(&scene.rig.exporter.queue, SIZE_MAX, &scene.budget);
	n_have = 0;
	memset(have, 0, sizeof(have));
	for (unsigned int i = 0; i < ROUNDS; i++) {
		if (i == until) {
			takes = (unsigned int)random() % 3; /* all, a part, or nothing */
			until = i + 1 + (unsigned int)random() % 60;
		}
		push_round(&scene, false);
		take(&scene.rig.exporter,
		     takes == 0 ? SIZE_MAX : takes == 1 ? (size_t)random() % 3 * 200 / piece_bytes : 0, is_graphite);
	}
	push_round(&scene, true);
	take(&scene.rig.exporter, SIZE_MAX, is_graphite);
	assert_counted(&scene, suffixes);
	assert_true(scene.most_bytes <= limit_bytes);
	for (size_t kind = 0; kind < 2; kind++)
		for (size_t i = 0; i < SERIES_N; i++)
			series_put(scene.series[kind][i]);
	queue_done(&scene.rig.exporter.queue);
	rig_done(&scene.rig);
}

static void counters_of_statsd_add_up(void **state)
{
	for (unsigned int seed = 1; seed <= SEEDS; seed++)
		play(seed, DIALECT_PLAIN, LINES_COUNTERS, 12288, (const char *const[]){ "", ".count" });
}

static void timers_of_statsd_add_up(void **state)
{
	for (unsigned int seed = 1; seed <= SEEDS; seed++)
		play(seed, DIALECT_PLAIN, LINES_TIMER, 12288, (const char *const[]){ "", "" });
}

static void points_of_graphite_add_up(void **state)
{
	for (unsigned int seed = 1; seed <= SEEDS; seed++)
		play(seed, DIALECT_DOTTED, LINES_COUNTERS, 40960, (const char *const[]){ ".count", ".count" });
}

static void push_total(struct rig *rig, struct series *series, uint64_t grown)
{
	rig->batch.previous_ns = rig->batch.time_ns;
	rig->batch.time_ns += UINT64_C(1000000000);
	begin(rig);
	series_add(series, grown);
	series_end(&rig->metrics[0]);
	rig->exporter.queue.time_ns = rig->batch.time_ns;
	assert_ok(lines_push(&rig->lines, &rig->batch, rig->batch.time_ns / 1000000000));
	assert_accounted(&rig->exporter);
}

/* Totals grew in the window that is made again, if not since. */
static void a_total_that_nobody_took_comes_again(void **state)
{
	struct queue_budget budget = { .limit_bytes = 30 }; /* three quarters are a line */
	struct series *a;
	struct rig rig;

	rig_init(&rig, DIALECT_DOTTED, "{metric}");
	rig.lines.is_cumulative = true;
	rig.lines.pack = (struct pack){ .limit_bytes = 200, .put = exporter_enqueue, .user = &rig.exporter };
	queue_init(&rig.exporter.queue, SIZE_MAX, &budget);
	a = SERIES(&rig, 0);
	push_total(&rig, a, 5);
	for (int i = 0; i < 3; i++) {
		n_have = 0;
		memset(have, 0, sizeof(have));
		assert_int_equal(rig.exporter.queue.n_items, 1);
		read_item(&rig.exporter.queue, TAILQ_FIRST(&rig.exporter.queue.items), true);
		assert_int_equal(have->last, 5);
		assert_int_equal(have->time_s, rig.batch.time_ns / 1000000000);
		if (i == 1)
			series_put(a);
		if (i < 2)
			push_total(&rig, a, 0);
	}
	queue_done(&rig.exporter.queue);
	rig_done(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_of_statsd_add_up),
		cmocka_unit_test(timers_of_statsd_add_up),
		cmocka_unit_test(points_of_graphite_add_up),
		cmocka_unit_test(a_total_that_nobody_took_comes_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
