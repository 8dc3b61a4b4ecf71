/* SPDX-License-Identifier: Apache-2.0 */
#include "lines-rig.h"

#include <stdio.h>

/* The one line that a sum with these attributes becomes. */
static void assert_name(enum dialect_id dialect, const char *template, const char *const *texts, const char *expected)
{
	struct rig rig;

	rig_init(&rig, dialect, template);
	rig.tags.n_items = 0;
	begin(&rig);
	series_add(series(&rig, 0, texts), 1);
	assert_lines(&rig, 0, expected);
	rig_done(&rig);
}

#define ASSERT_NAME(dialect, template, expected, ...) \
	assert_name(dialect, template, (const char *const[]){ __VA_ARGS__, NULL }, expected)

/* As the documentation has them: what can be read back has no digits. */
static void ordinary_names_are_as_they_are(void **state)
{
	ASSERT_NAME(DIALECT_PLAIN, NULL, "vm1.nginx_service.a.sum.openat.ENOENT:1|c", "bpfpush.syscall.name", "openat",
		    "error.type", "ENOENT", "systemd.unit.name", "nginx.service");
	ASSERT_NAME(DIALECT_PLAIN, "{unit}.{metric}.{attributes}", "session-3_scope.a.sum.bash.sda1:1|c",
		    "systemd.unit.name", "session-3.scope", "process.executable.name", "bash", "system.device", "sda1");
	ASSERT_NAME(DIALECT_PLAIN, "{unit}.{metric}", "0123456789abcdef.a.sum:1|c", "container.id", "0123456789abcdef");
	ASSERT_NAME(DIALECT_DOGSTATSD, NULL, "a.sum:1|c|#path:/usr/bin,systemd.unit.name:nginx.service", "path", "/usr/bin",
		    "systemd.unit.name", "nginx.service");
	ASSERT_NAME(DIALECT_TAGGED, NULL, "a.sum.count;systemd.unit.name=user@1000.service 1 1700000010\n",
		    "systemd.unit.name", "user@1000.service");
}

/* The digits were computed by another program: the lower half of an FNV-1a of 64 bits. */
static void text_that_cannot_be_read_back_ends_in_digits_of_its_own(void **state)
{
	static const char hostile[] = "a.b:1|c\n@#,;= []{}/../\\~\"'\xff\xc3\xa9*?%$x";

	ASSERT_NAME(DIALECT_PLAIN, "{unit}.{metric}", "user_1000_service_e3ecc218.a.sum:1|c", "systemd.unit.name",
		    "user@1000.service");
	ASSERT_NAME(DIALECT_PLAIN, "{unit}.{metric}.{attributes}",
		    "a_b_1_c_________________________x_62c626a1_75881135.a.sum.___b4a03f2d:1|c", "systemd.unit.name", hostile,
		    "process.executable.name", "..");
	ASSERT_NAME(DIALECT_TAGGED, NULL,
		    "a.sum.count;na_me_781bf486=a.b:1_c_@__________..___________x_62c626a1_2fbba3bb 1 1700000010\n", "na me", hostile);
}

/* Each of these could be taken for something else. */
static void text_that_looks_like_a_rule_ends_in_digits_too(void **state)
{
	ASSERT_NAME(DIALECT_PLAIN, "{metric}.{attributes}", "a.sum.x_01234567_e42ef338:1|c", "key", "x_01234567");
	ASSERT_NAME(DIALECT_PLAIN, "{metric}.{attributes}", "a.sum.__8602484e:1|c", "key", "_");
	ASSERT_NAME(DIALECT_GRAPHITE, NULL, "a.sum;key=__84222325:1|c", "key", "");
	ASSERT_NAME(DIALECT_PLAIN, "{metric}.{attributes}", "a.sum.otel_metric_overflow_d3188a27:1|c", "key",
		    "otel_metric_overflow");
	ASSERT_NAME(DIALECT_PLAIN, "{unit}.{metric}", "nginx_service_6ab8d08b.a.sum:1|c", "container.id", "nginx_service");
	ASSERT_NAME(DIALECT_PLAIN, "{unit}.{metric}", "nginx_service_d528d1fc.a.sum:1|c", "process.linux.cgroup",
		    "nginx_service");
}

static void attributes_that_are_not_there_leave_no_level(void **state)
{
	static const struct {
		const char *template, *expected;
	} cases[] = {
		{ "{metric}.{attributes}", "a.sum:1|c" },
		{ "{attributes}.{metric}", "a.sum:1|c" },
		{ "x.{attributes}.{metric}", "x.a.sum:1|c" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rig rig;

		rig_init(&rig, DIALECT_PLAIN, cases[i].template);
		begin(&rig);
		series_add(SERIES(&rig, 0), 1);
		assert_lines(&rig, 0, cases[i].expected);
		rig_done(&rig);
	}
}

static void what_the_path_has_is_no_tag(void **state)
{
	struct rig rig;

	rig_init(&rig, DIALECT_INFLUX, "{host}.{unit}.{metric}");
	begin(&rig);
	series_add(SERIES(&rig, 0, "systemd.unit.name", "cron.service", "error.type", "EIO"), 1);
	assert_lines(&rig, 0, "vm1.cron_service.a.sum,deployment.environment.name=prod/eu,error.type=EIO:1|c");
	rig_done(&rig);
}

static void names_of_tags_that_are_taken_end_in_digits(void **state)
{
	struct rig rig;

	rig_init(&rig, DIALECT_GRAPHITE, NULL);
	rig.tags.n_items = 1;
	begin(&rig);
	series_add(SERIES(&rig, 0, "a b", "1", "a:b", "2", "a_b", "3", "host.name", "4", "name", "5", "series", "6", "upper", "7"), 1);
	assert_lines(&rig, 0,
		     "a.sum;host.name=vm1;a_b_04833892=1;a_b_04a01160=2;a_b=3;host.name_e889669f=4;name_6a10bdd3=5;series=6;upper_bee8e2ac=7:1|c");
	rig_done(&rig);
}

static void long_values_are_cut_and_stay_apart(void **state)
{
	char one[256], other[256];
	struct rig rig;
	const char *first, *second;

	memset(one, 'x', 255);
	one[255] = '\0';
	memcpy(other, one, 256);
	other[254] = 'y';
	rig_init(&rig, DIALECT_PLAIN, "{metric}.{attributes}");
	begin(&rig);
	series_add(SERIES(&rig, 0, "key", one), 1);
	series_add(SERIES(&rig, 0, "key", other), 2);
	assert_ok(push(&rig, 0));
	first = buf_text(&rig.out);
	second = strchr(first, '\n') + 1;
	assert_int_equal(second - first, 6 + NAME_LEVEL_BYTES + 4 + 1);
	assert_int_equal(strlen(second), 6 + NAME_LEVEL_BYTES + 4);
	assert_memory_equal(first, second, 6 + NAME_LEVEL_BYTES - 8);
	assert_memory_not_equal(first, second, 6 + NAME_LEVEL_BYTES);
	rig_done(&rig);
}

static void a_path_is_bounded(void **state)
{
	struct rig rig;
	char text[256], name[8];
	const char *texts[33] = { 0 };
	char names[16][8];

	memset(text, 'x', 255);
	text[255] = '\0';
	for (size_t i = 0; i < 16; i++) {
		snprintf(name, sizeof(name), "k%zu", i);
		memcpy(names[i], name, sizeof(name));
		texts[2 * i] = names[i];
		texts[2 * i + 1] = text;
	}
	rig_init(&rig, DIALECT_DOTTED, "{metric}.{attributes}");
	begin(&rig);
	series_add(series(&rig, 0, texts), 1);
	assert_ok(push(&rig, 0));
	assert_int_equal(strcspn(buf_text(&rig.out), " "), NAME_PATH_BYTES);
	rig_done(&rig);
}

static void a_shorter_bound_holds_for_every_line(void **state)
{
	const uint64_t bucket[6] = { 1, 1, 1, 1, 1, 1 };
	static const char text[] = "0123456789012345678901234567890123456789012345678901234567890123456789";
	struct rig rig;

	rig_init(&rig, DIALECT_PLAIN, "{metric}.{attributes}");
	rig.lines.naming.limit_bytes = NAME_PATH_LEAST;
	begin(&rig);
	series_add(SERIES(&rig, 0, "key", text, "other", "a/b"), 1);
	series_add(SERIES(&rig, 0, "key", text, "other", "a b"), 1);
	series_add_histogram(SERIES(&rig, 2, "key", text), 1000, bucket);
	assert_ok(push(&rig, 0));
	assert_int_equal(rig.n_points, 3);
	for (const char *line = buf_text(&rig.out); line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		assert_true(strcspn(line, ":") <= NAME_PATH_LEAST);
	rig_done(&rig);
}

/* Which of the attributes a template leaves out: a series that has none of them has the plain name. */
static void attributes_that_are_not_shown_are_digits(void **state)
{
	struct rig rig;
	const char *second;

	rig_init(&rig, DIALECT_DOTTED, "{host}.{unit}.{metric}");
	begin(&rig);
	series_add(SERIES(&rig, 0, "systemd.unit.name", "a.service"), 1);
	series_add(SERIES(&rig, 0, "systemd.unit.name", "a.service", "key", "x"), 2);
	assert_ok(push(&rig, 0));
	second = strchr(buf_text(&rig.out), '\n') + 1;
	assert_memory_equal(buf_text(&rig.out), "vm1.a_service.a.sum.count 1 1700000010\n", 38);
	assert_memory_equal(second, "vm1.a_service.a.sum_", 20);
	assert_int_equal(strspn(second + 20, "0123456789abcdef"), 8);
	assert_memory_equal(second + 28, ".count 2 ", 9);
	rig_done(&rig);
}

static void a_template_whose_values_cannot_be_found_again_adds_digits(void **state)
{
	static const char *const templates[] = { "{unit}-{key}.{metric}", "{unit}{metric}.{attributes}",
						 "{attributes}.{metric}", "{metric}.{attributes}-x" };

	for (size_t i = 0; i < ARRAY_SIZE(templates); i++) {
		struct rig rig;
		size_t size;

		rig_init(&rig, DIALECT_PLAIN, templates[i]);
		begin(&rig);
		series_add(SERIES(&rig, 0, "key", "a"), 1);
		assert_ok(push(&rig, 0));
		size = strcspn(buf_text(&rig.out), ":");
		assert_int_equal(rig.out.data[size - 9], '_');
		assert_int_equal(strspn((const char *)rig.out.data + size - 8, "0123456789abcdef"), 8);
		rig_done(&rig);
	}
}

static void a_value_that_is_called_like_the_suffix_is_none(void **state)
{
	ASSERT_NAME(DIALECT_DOTTED, "{metric}.{attributes}", "a.sum.count.count 1 1700000010\n", "key", "count");
	ASSERT_NAME(DIALECT_DOTTED, "{metric}.{key}", "a.sum.count.count 1 1700000010\n", "key", "count");
}

/* The one whose name is longer gives way, whichever comes first; where both are one, it is the later collector's. */
static void metrics_whose_lines_could_meet_are_kept_apart(void **state)
{
	static const struct {
		const char *template, *first, *second;
		bool is_kept_apart;
	} cases[] = {
		{ "{metric}", "x", "x.count", true },		{ "{metric}", "x", "x.bucket.0_5", true },
		{ "{metric}", "x", "x.other", false },		{ "{metric}", "x", "xx", false },
		{ "{metric}.{attributes}", "x", "x.y", true },	{ "{metric}", "x", "x", true },
	};

	for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		char expected[64];
		struct rig rig;
		const char *text;

		rig_init(&rig, DIALECT_PLAIN, cases[i / 2].template);
		rig.metrics[2].name = cases[i / 2].first;
		rig.metrics[0].name = cases[i / 2].second;
		rig.metrics[0].scope = "test2";
		rig.lines.time_unit = LINES_SECONDS;
		if (i % 2) {
			rig.list[0] = &rig.metrics[2];
			rig.list[2] = &rig.metrics[0];
		}
		add_times(&rig, 0, 0, 1, 0);
		series_add(SERIES(&rig, 0), 77);
		assert_ok(push(&rig, 0));
		text = buf_text(&rig.out);
		snprintf(expected, sizeof(expected), "%s.bucket.0_5:1|c", cases[i / 2].first);
		assert_non_null(strstr(text, expected));
		snprintf(expected, sizeof(expected), "%s%s", cases[i / 2].second, cases[i / 2].is_kept_apart ? "_" : ":77|c");
		assert_non_null(strstr(text, expected));
		rig_done(&rig);
	}
}

#define KEYS 40

static void add_key(struct rig *rig, unsigned int i)
{
	static const char *const texts[] = { "a/b", "a b", "a_b", "a:b", "x", "", "_", "count" };
	char number[16];

	snprintf(number, sizeof(number), "%u", i / (unsigned int)ARRAY_SIZE(texts));
	series_add(SERIES(rig, 0, "key", texts[i % ARRAY_SIZE(texts)], "number", number, "systemd.unit.name",
			  texts[(i + 1) % ARRAY_SIZE(texts)]),
		   i + 1);
}

/* Not at all random, so that a failure comes again. */
static unsigned int next_random(void)
{
	static uint64_t state = 1;

	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned int)(state >> 33);
}

/* The names in the order of the values, which say which series it was. */
static void collect_names(struct rig *rig, char names[KEYS][128])
{
	(void)buf_text(&rig->out); /* ends it */
	for (char *line = (char *)rig->out.data, *next; line; line = next) {
		char *colon = strchr(line, ':');
		unsigned long i = strtoul(colon + 1, NULL, 10) - 1;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		assert_true(i < KEYS && colon - line < 128);
		memcpy(names[i], line, (size_t)(colon - line));
		names[i][colon - line] = '\0';
	}
}

/* In any order, after any restart, with any of the series there: the names are the same, and each is another. */
static void names_depend_on_nothing_but_the_series(void **state)
{
	static char first[KEYS][128], names[KEYS][128];
	unsigned int order[KEYS];

	for (unsigned int run = 0; run < 200; run++) {
		unsigned int n = run ? 1 + next_random() % KEYS : KEYS;
		struct rig rig;

		for (unsigned int i = 0; i < KEYS; i++) {
			unsigned int j = next_random() % (i + 1);

			order[i] = order[j];
			order[j] = i;
		}
		memset(names, 0, sizeof(names));
		rig_init(&rig, DIALECT_PLAIN, NULL);
		begin(&rig);
		for (unsigned int i = 0; i < n; i++)
			add_key(&rig, order[i]);
		assert_ok(push(&rig, 0));
		collect_names(&rig, run ? names : first);
		for (unsigned int i = 0; run && i < n; i++)
			assert_string_equal(names[order[i]], first[order[i]]);
		rig_done(&rig);
	}
	for (unsigned int i = 0; i < KEYS; i++)
		for (unsigned int j = 0; j < i; j++)
			assert_string_not_equal(first[i], first[j]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ordinary_names_are_as_they_are),
		cmocka_unit_test(text_that_cannot_be_read_back_ends_in_digits_of_its_own),
		cmocka_unit_test(text_that_looks_like_a_rule_ends_in_digits_too),
		cmocka_unit_test(attributes_that_are_not_there_leave_no_level),
		cmocka_unit_test(what_the_path_has_is_no_tag),
		cmocka_unit_test(names_of_tags_that_are_taken_end_in_digits),
		cmocka_unit_test(long_values_are_cut_and_stay_apart),
		cmocka_unit_test(a_path_is_bounded),
		cmocka_unit_test(a_shorter_bound_holds_for_every_line),
		cmocka_unit_test(attributes_that_are_not_shown_are_digits),
		cmocka_unit_test(a_template_whose_values_cannot_be_found_again_adds_digits),
		cmocka_unit_test(a_value_that_is_called_like_the_suffix_is_none),
		cmocka_unit_test(metrics_whose_lines_could_meet_are_kept_apart),
		cmocka_unit_test(names_depend_on_nothing_but_the_series),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
