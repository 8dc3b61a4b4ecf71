/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile paths of cgroups, attributes and numbers through the exporters that write text, and through OTLP. What is
 * written is printable UTF-8 and newlines; a line of JSON ends outside a string; and all points are accounted for.
 *
 * The input is read by take_…(), in the order of the code (input.h).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "collector/label/unit.h"
#include "export/exporter.h"
#include "export/otlp/encode.h"
#include "input.h"
#include "metric/series.h"
#include "util/utf8.h"

#define SERIES_MAX 12

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct scene {
	struct input input;
	struct metric metrics[3], *list[3]; /* one of each kind */
	struct budget budget;
	struct batch batch;
};

static void demand(bool is_right, const char *what, const char *text)
{
	if (is_right)
		return;
	fprintf(stderr, "%s: %s\n", what, text);
	abort();
}

static void take_attributes(struct scene *scene, struct attributes *attributes)
{
	static const char *const paths[] = {
		"/", "/system.slice/a.service", "/user.slice/user-1.slice/user@1.service/app.slice/b.service/c",
		"/a.service/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "/_a.service",
		"//\"\\\n\x1b[2J",
	};
	static const char *const names[] = { "error.type", "a", "b.c", "process.executable.name", "otel.metric.overflow" };
	static const char *const values[] = { "", "x", "\"", "\\", "\n", "\xc3\xa9", "\xff", "\xe2\x80\xae", "\x1b[2J",
					      "\xc2\x9b" };
	const char *path = TAKE_TEXT(&scene->input, paths), *kind, *value;
	char unit[256];

	attributes_init(attributes);
	kind = unit_name(path, unit, sizeof(unit));
	demand(attribute_owner(kind) && strlen(unit) < sizeof(unit), "not an owner", kind);
	(void)attributes_add_text(attributes, kind, unit, strlen(unit));
	for (unsigned int i = 0, n = take(&scene->input) % ARRAY_SIZE(names); i < n; i++) {
		value = TAKE_TEXT(&scene->input, values);
		bool is_text = take(&scene->input) & 1;

		if (is_text && i == 1)
			(void)attributes_add_lines(attributes, names[i], value, strlen(value));
		else if (is_text)
			(void)attributes_add_text(attributes, names[i], value, strlen(value));
		else
			(void)attributes_add_number(attributes, names[i], (int64_t)take_number(&scene->input));
	}
}

static void take_series(struct scene *scene)
{
	struct metric *metric = &scene->metrics[take(&scene->input) % ARRAY_SIZE(scene->metrics)];
	uint64_t buckets[64] = { 0 };
	struct attributes attributes;
	struct series *series;

	take_attributes(scene, &attributes);
	demand(series_get(metric, &attributes, 1, &series) >= 0, "no series", "");
	series_take(series);
	if (metric->kind != METRIC_HISTOGRAM) {
		series_add(series, take_number(&scene->input));
		return;
	}
	buckets[take(&scene->input) % ARRAY_SIZE(buckets)] = take(&scene->input);
	series_add_histogram(series, take_number(&scene->input), buckets);
}

static void make_batch(struct scene *scene)
{
	static const uint64_t divisors[] = { 1, 1000000000 };

	for (unsigned int i = 0; i < ARRAY_SIZE(scene->metrics); i++) {
		scene->metrics[i] = (struct metric){
			.scope = "scope", .name = i ? i == 1 ? "b.gauge" : "c.duration" : "a.count", .unit = "1",
			.description = "", .kind = (enum metric_kind)i,
			.divisor = divisors[take(&scene->input) & 1], .layout = { 0, -30, 64 },
		};
		metric_init_series(&scene->metrics[i], &scene->budget);
		scene->list[i] = &scene->metrics[i];
		series_begin(&scene->metrics[i]);
	}
	for (unsigned int i = 0, n = take(&scene->input) % SERIES_MAX; i < n; i++)
		take_series(scene);
	for (unsigned int i = 0; i < ARRAY_SIZE(scene->metrics); i++)
		series_end(&scene->metrics[i]);
	scene->batch = (struct batch){
		1700000000000000000, 1699999999000000000, scene->list, ARRAY_SIZE(scene->list), true
	};
}

static void check_text(const char *text, size_t size, bool is_json)
{
	bool is_string = false;

	for (size_t i = 0, bytes; i < size; i += bytes) {
		bytes = text[i] == '\n' ? 1 : utf8_printable_bytes(text + i, size - i);
		demand(bytes, "not printable", text);
		if (!is_json)
			continue;
		demand(text[i] != '\n' || !is_string, "a line that ends in a string", text);
		is_string ^= text[i] == '"';
		bytes += text[i] == '\\';
	}
}

/* fd: of an empty file, which the exporter appends to. */
static void check_exporter(const struct scene *scene, const char *type, int fd)
{
	const struct exporter_ops *ops = exporter_find(type);
	const struct exporter_context context = { .version = "1" };
	_cleanup_(freep) char *options = calloc(1, ops->settings->size_bytes), *text = NULL;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	struct exporter *exporter;
	uint64_t *points, n = 0;
	char path[64];
	off_t size;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	demand(setting_table_init(ops->settings, options) >= 0, "no options", type);
	demand(!setting_table_set(ops->settings, options, &(struct assignment){ "path", path, "fuzz", 1, 0 }, &diag),
	       "no path", type);
	demand(!exporter_open("fuzz", ops, options, &context, &exporter), "not opened", type);
	demand(!exporter_encode(exporter, &scene->batch), "not pushed", type);
	points = exporter->stats.points;
	for (enum points fate = POINTS_DELIVERED; fate < N_POINTS; fate++)
		n += points[fate];
	demand(n == points[POINTS_PUSHED], "points that are not accounted for", type);
	exporter_free(exporter);
	setting_table_done(ops->settings, options);
	size = lseek(fd, 0, SEEK_END);
	text = calloc(1, (size_t)size + 1);
	demand(text && pread(fd, text, (size_t)size, 0) == size, "not read", type);
	check_text(text, (size_t)size, strstr(type, "json"));
	demand(!ftruncate(fd, 0), "not emptied", type);
}

static int ignore(void *user, const uint8_t *data, size_t size, size_t n_points)
{
	*(size_t *)user += n_points;
	return 0;
}

static void check_otlp(const struct scene *scene, enum otlp_histogram histogram)
{
	static uint8_t room[1 << 20];
	const struct otlp_encoding encoding = {
		.histogram = histogram, .has_zero_points = true, .limit_bytes = sizeof(room), .room = room,
		.version = "1",
	};
	struct otlp_encoded encoded;
	size_t n = 0;

	demand(!otlp_encode(&encoding, &scene->batch, ignore, &n, &encoded), "not encoded", "");
	demand(n == encoded.n_points, "points without a body",
	       "");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scene scene = { .input = { .data = data, .size = size } };
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	make_batch(&scene);
	check_exporter(&scene, "json", fd);
	check_exporter(&scene, "bpftrace-json", fd);
	check_exporter(&scene, "console", fd);
	check_otlp(&scene, OTLP_EXPLICIT);
	check_otlp(&scene, OTLP_EXPONENTIAL);
	for (unsigned int i = 0; i < ARRAY_SIZE(scene.metrics); i++)
		metric_done_series(&scene.metrics[i]);
	input_done(&scene.input);
	return 0;
}
