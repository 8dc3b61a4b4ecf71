/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>

#include "agent/internal.h"
#include "collector/binding/binding.h"
#include "collector/collector.h"
#include "collector/label/cgroup.h"
#include "logged.h"
#include "metric/series.h"

/* What the agent knows: two metrics that share a budget, and a collector with two tables. */
struct scene {
	struct budget budget;
	struct metric metrics[2], *list[2];
	struct series *series[2][8];
	struct binding bindings[2];
	struct collector_map maps[2];
	struct object object;
	struct collector collector, *collectors[1];
	struct label_choice choice;
	struct collector_set set;
	struct agent agent;
};

static void scene_init(struct scene *scene)
{
	struct labels *labels;

	*scene = (struct scene){ .metrics = { { .scope = "one", .name = "calls" }, { .scope = "two", .name = "bytes" } } };
	for (int i = 0; i < 2; i++) {
		scene->list[i] = &scene->metrics[i];
		metric_init_series(&scene->metrics[i], &scene->budget);
		scene->maps[i] = (struct collector_map){ .name = i ? "errors" : "all", .binding = &scene->bindings[i] };
		assert_ok(rows_new(8, 1, 1, &scene->bindings[i].rows));
	}
	scene->collector = (struct collector){ .name = "one", .object = &scene->object, .bindings = scene->bindings,
					       .n_bindings = 2, .maps = scene->maps, .n_maps = 2 };
	scene->collectors[0] = &scene->collector;
	assert_ok(labels_new(0, &scene->choice, &labels));
	scene->set = (struct collector_set){ .items = scene->collectors, .n = 1, .budget = &scene->budget,
					      .labels = labels };
	scene->agent.options.set = &scene->set;
	scene->agent.batch.metrics = scene->list;
	scene->agent.batch.n_metrics = 2;
}

static void scene_done(struct scene *scene)
{
	for (int i = 0; i < 2; i++) {
		metric_done_series(&scene->metrics[i]);
		rows_free(scene->bindings[i].rows);
		buf_done(&scene->agent.notices[i].names);
	}
	labels_free(scene->set.labels);
}

/* From here on, so many series of the metric are fed. */
static void feed(struct scene *scene, int metric, int n)
{
	struct attributes attributes;

	for (int i = 0; i < 8; i++) {
		series_put(scene->series[metric][i]);
		scene->series[metric][i] = NULL;
	}
	for (int i = 0; i < n; i++) {
		attributes_init(&attributes);
		assert_ok(attributes_add_number(&attributes, "n", i));
		assert_ok(series_get(&scene->metrics[metric], &attributes, 1, &scene->series[metric][i]));
	}
}

static const char *report(struct scene *scene)
{
	log_catch();
	agent_report(&scene->agent);
	return log_caught();
}

/* Five reports of nothing, and what the sixth says. */
static const char *report_later(struct scene *scene)
{
	for (int i = 0; i < 5; i++)
		assert_string_equal(report(scene), "");
	return report(scene);
}

#define MARKED "are counted together, marked otel.metric.overflow=true; set "

static void a_spent_budget_is_said_when_it_grows_and_when_it_is_over(void **state)
{
	struct scene scene;

	scene_init(&scene);
	scene.budget.limit_series = 3;
	feed(&scene, 0, 3);
	assert_string_equal(report(&scene), "");
	feed(&scene, 0, 4);
	assert_string_equal(report(&scene), "<4>series_limit is reached: numbers of calls (one) " MARKED
					    "series_limit = 6 in [agent]\n");
	assert_string_equal(report(&scene), "");
	feed(&scene, 1, 1);
	assert_string_equal(report(&scene), "<4>series_limit is reached: numbers of calls (one), bytes (two) " MARKED
					    "series_limit = 6 in [agent]\n");
	feed(&scene, 1, 4);
	assert_string_equal(report(&scene), "<4>series_limit is reached: numbers of calls (one), bytes (two) " MARKED
					    "series_limit = 12 in [agent]\n");
	feed(&scene, 1, 3);
	assert_string_equal(report(&scene), "");
	/* A pause is not the end. */
	feed(&scene, 0, 0);
	feed(&scene, 1, 3);
	assert_string_equal(report(&scene), "");
	feed(&scene, 1, 4);
	assert_string_equal(report(&scene), "");
	feed(&scene, 1, 3);
	assert_string_equal(report_later(&scene), "<6>there is room again for calls (one), bytes (two)\n");
	assert_string_equal(report(&scene), "");
	feed(&scene, 1, 4);
	assert_string_equal(report(&scene), "<4>series_limit is reached: numbers of bytes (two) " MARKED
					    "series_limit = 6 in [agent]\n");
	scene_done(&scene);
}

static void a_lack_of_memory_names_the_other_setting(void **state)
{
	struct scene scene;

	scene_init(&scene);
	scene.budget.limit_series = 1000;
	scene.budget.limit_bytes = 10 << 20;
	feed(&scene, 0, 3);
	scene.budget.table_bytes = 10 << 20;
	feed(&scene, 1, 1);
	assert_string_equal(report(&scene), "<4>memory_limit is reached: numbers of bytes (two) " MARKED
					    "memory_limit = 20MiB in [agent]\n");
	/* Also if what was refused has left room meanwhile. */
	scene.budget.table_bytes = 0;
	assert_string_equal(report(&scene), "");
	/* Both limits: the number of series comes first. */
	scene.budget.limit_series = 3;
	assert_string_equal(report(&scene), "<4>series_limit is reached: numbers of bytes (two) " MARKED
					    "series_limit = 6 in [agent]\n");
	scene_done(&scene);
}

/* The overflow rows of the tables; a reading in which one does not grow makes it one more. */
static void set_idle(struct scene *scene, uint32_t first, uint32_t second)
{
	rows_at(scene->bindings[0].rows, ROWS_OVERFLOW)->idle = first;
	rows_at(scene->bindings[1].rows, ROWS_OVERFLOW)->idle = second;
}

static void full_tables_are_said_together(void **state)
{
	struct scene scene;

	scene_init(&scene);
	assert_string_equal(report(&scene), "");
	set_idle(&scene, UINT32_MAX / 2, 0);
	assert_non_null(strstr(report(&scene), "tables are full: numbers of errors (one) " MARKED));
	set_idle(&scene, 0, 1);
	assert_non_null(strstr(report(&scene), "tables are full: numbers of errors (one), all (one) " MARKED));
	set_idle(&scene, 4, 5);
	assert_string_equal(report(&scene), "");
	set_idle(&scene, 5, 6);
	assert_string_equal(report(&scene), "");
	set_idle(&scene, 6, 7);
	assert_string_equal(report_later(&scene), "<6>there is room again for errors (one), all (one)\n");
	scene_done(&scene);
}

/* Doubling again and again would take many restarts. */
static void as_many_units_as_there_are_have_room(void **state)
{
	struct scene scene;

	scene_init(&scene);
	scene.set.units = 10;
	set_idle(&scene, 0, 1);
	for (uint64_t id = 2; id < 52; id++)
		cgroups_tell(scene.set.labels->cgroups, id, 0, "/some.slice");
	assert_non_null(strstr(report(&scene), MARKED "units = 80 in [agent]"));
	scene_done(&scene);
}

/* Since the last collection, a program has run so often and missed so many events. */
static void run(struct program *program, uint64_t runs, uint64_t missed)
{
	program->last_runs = program->runs;
	program->last_missed = program->missed;
	program->runs += runs;
	program->missed += missed;
}

#define TOO_LOW "<4>numbers are too low, because the kernel skipped events: "

static void missed_events_are_said_when_they_become_more_and_when_they_are_over(void **state)
{
	struct descriptor descriptor = { 0 };
	struct program programs[] = { { .name = "exit__btf", .hook = "exit" }, { .name = "send", .hook = "send" } };
	struct scene scene;

	scene_init(&scene);
	scene.collector.descriptor = &descriptor;
	scene.object.programs = (struct programs){ programs, ARRAY_SIZE(programs) };
	scene.object.collectors = scene.collectors;
	scene.object.n_collectors = 1;
	programs[0].collector = programs[1].collector = &scene.collector;
	run(&programs[0], 999001, 999); /* not worth a message */
	assert_string_equal(report(&scene), "");
	run(&programs[0], 9872, 128);
	assert_string_equal(report(&scene), TOO_LOW "one by about 1.28 % (exit)\n");
	run(&programs[0], 985, 15);
	assert_string_equal(report(&scene), "");
	assert_string_equal(buf_text(&scene.agent.too_low), "one by about 1.5 % (exit)");
	run(&programs[0], 95, 5);
	run(&programs[1], 0, 1); /* nobody knows how often it ran */
	assert_string_equal(report(&scene), TOO_LOW "one by about 5 % (exit); one by up to 1 event (send)\n");
	run(&programs[0], 9, 1);
	run(&programs[1], 0, 0);
	assert_string_equal(report(&scene), TOO_LOW "one by about 10 % (exit)\n");
	run(&programs[0], 5, 0);
	assert_string_equal(report_later(&scene), "<6>the kernel no longer skips events\n");
	assert_string_equal(buf_text(&scene.agent.too_low), "");
	run(&programs[0], 5, 5);
	assert_string_equal(report(&scene), TOO_LOW "one by about 50 % (exit)\n");
	run(&programs[0], 5, 0);
	run(&programs[1], 0, 1);
	assert_string_equal(report_later(&scene), ""); /* not all of it is over */
	run(&programs[1], 0, 0);
	assert_string_equal(report_later(&scene), "<6>the kernel no longer skips events\n");
	/* Where no share is known, nothing begins or ends. */
	run(&programs[1], 0, 997);
	assert_string_equal(report(&scene), "");
	assert_string_equal(buf_text(&scene.agent.too_low), "one by up to 997 events (send)");
	run(&programs[1], 0, 1);
	assert_string_equal(report(&scene), TOO_LOW "one by up to 1 event (send)\n");
	run(&programs[1], 0, 0);
	assert_string_equal(report_later(&scene), "");
	buf_done(&scene.agent.missing.names);
	buf_done(&scene.agent.too_low);
	scene_done(&scene);
}

static void a_loss_is_a_share_if_that_is_known(void **state)
{
	static const struct {
		struct loss loss;
		const char *text;
	} cases[] = {
		{ { 1, 2, true }, "33.3 %" },
		{ { 1, 0, true }, "100 %" },
		{ { 60404, 2292753, true }, "2.57 %" },
		{ { 1, 99999, true }, "0.001 %" },
		{ { 1, 100000, true }, "less than 0.001 %" },
		{ { 442, 0, false }, "442 events" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(buf_done) struct buf out = BUF_INIT;

		loss_append(&cases[i].loss, &out);
		assert_string_equal(buf_text(&out), cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_spent_budget_is_said_when_it_grows_and_when_it_is_over),
		cmocka_unit_test(a_lack_of_memory_names_the_other_setting),
		cmocka_unit_test(full_tables_are_said_together),
		cmocka_unit_test(as_many_units_as_there_are_have_room),
		cmocka_unit_test(missed_events_are_said_when_they_become_more_and_when_they_are_over),
		cmocka_unit_test(a_loss_is_a_share_if_that_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
