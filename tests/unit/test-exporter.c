/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-event.h>
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "accounted.h"
#include "alloc.h"
#include "fixture.h"
#include "util/buf.h"
#include "util/cleanup.h"
#include "util/log.h"

static void every_type_is_found_by_its_name(void **state)
{
	static const char *const types[] = { "otlp", "console", "json", "bpftrace-json" };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		assert_non_null(exporter_find(types[i]));
		assert_string_equal(exporter_find(types[i])->type, types[i]);
	}
	assert_null(exporter_find("otl"));
	assert_null(exporter_find(""));
}

static void every_row_is_whole_and_its_defaults_are_valid(void **state)
{
	for (size_t i = 0; exporter_table[i]; i++) {
		const struct exporter_ops *ops = exporter_table[i];
		void *options = calloc(1, ops->settings->size_bytes);

		assert_non_null(ops->open);
		assert_non_null(ops->push);
		assert_non_null(ops->close);
		assert_ok(setting_table_init(ops->settings, options));
		if (ops->check) {
			const struct assignments nothing = { 0 };
			struct diag diag = DIAG_INIT;

			ops->check(options, &nothing, &diag);
			assert_int_equal(diag.n_errors, 0);
		}
		setting_table_done(ops->settings, options);
		free(options);
	}
}

#define DELTA_POINTS 12 /* of the fixture: sums and histograms that grew, the gauges, and one that ended */

static struct exporter *open_otlp(const struct exporter_context *context, const char *queue_size,
				  const char *request_size, void **ret_options)
{
	const char *const settings[] = { "endpoint", "http://127.0.0.1:9", "temporality", "delta",
					 "queue_size", queue_size, "max_request_size", request_size };
	const struct exporter_ops *ops = exporter_find("otlp");
	struct diag diag = DIAG_INIT;
	struct exporter *exporter;
	void *options = calloc(1, ops->settings->size_bytes);

	assert_ok(setting_table_init(ops->settings, options));
	for (size_t i = 0; i < ARRAY_SIZE(settings); i += 2)
		assert_ok(setting_table_set(ops->settings, options,
					    &(struct assignment){ settings[i], settings[i + 1], "", 0 }, &diag));
	assert_int_equal(diag.n_errors, 0);
	assert_ok(exporter_open("test", ops, options, context, &exporter));
	*ret_options = options;
	return exporter;
}

static int push(struct exporter *exporter, const struct batch *batch)
{
	int err = exporter_encode(exporter, batch);

	exporter_send(exporter, batch);
	return err;
}

static void close_otlp(struct exporter *exporter, void *options)
{
	const struct exporter_ops *ops = exporter->ops;

	exporter_free(exporter);
	setting_table_done(ops->settings, options);
	free(options);
}

/* With allocations failing from the first, the second … on, until none fails. */
static void points_that_delta_leaves_out_are_not_lost_without_memory(void **state)
{
	struct exporter_context context = { .version = "1" };
	uint64_t n_lost = 0, n_pushed = 0;
	struct exporter *exporter;
	struct fixture fixture;
	bool has_failed = true;
	void *options;

	assert_true(sd_event_new(&context.event) >= 0);
	fixture_init(&fixture);
	exporter = open_otlp(&context, "1MiB", "4KiB", &options);
	for (unsigned int n = 0; has_failed; n++) {
		const uint64_t *points = exporter->stats.points;
		int err;

		alloc_fail_at(n);
		err = push(exporter, &fixture.batch);
		has_failed = alloc_end();
		n_pushed += DELTA_POINTS;
		assert_int_equal(points[POINTS_PUSHED], n_pushed);
		assert_accounted(exporter);
		assert_int_equal(err, points[POINTS_NOT_SENT] > n_lost ? -ENOMEM : 0);
		assert_true(points[POINTS_NOT_SENT] <= n_lost + DELTA_POINTS);
		n_lost = points[POINTS_NOT_SENT];
	}
	assert_true(n_lost > DELTA_POINTS);
	assert_int_equal(exporter_waiting(exporter).n_points, n_pushed - n_lost);
	close_otlp(exporter, options);
	fixture_done(&fixture);
	sd_event_unref(context.event);
}

/* Nobody listens there. A later process knows that it fails, and since when, before it has tried. */
static void how_an_exporter_fails_is_known_to_a_later_process(void **state)
{
	struct exporter_context context = { .version = "1" };
	struct exporter *before, *same, *other;
	void *options[3];
	struct fixture fixture;
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct store store;

	assert_true(sd_event_new(&context.event) >= 0);
	assert_ok(stores_open(fd, &store, 1));
	close(fd);
	fixture_init(&fixture);
	before = open_otlp(&context, "1MiB", "4KiB", &options[0]);
	assert_ok(push(before, &fixture.batch));
	for (int i = 0; i < 200 && !before->stats.is_failing; i++)
		assert_true(sd_event_run(context.event, 50000) >= 0);
	assert_true(before->stats.is_failing);
	assert_true(before->stats.failing_ns != 0);
	exporter_save(before, &store);

	same = open_otlp(&context, "1MiB", "4KiB", &options[1]);
	exporter_restore(same, &(struct stored){ store.data, store.data + store.size, false }, true);
	assert_true(same->stats.is_failing);
	assert_int_equal(same->stats.failing_ns, before->stats.failing_ns);
	assert_string_equal(same->stats.problem, before->stats.problem);
	assert_accounted(same);
	assert_int_equal(exporter_waiting(same).n_points, exporter_waiting(before).n_points);

	other = open_otlp(&context, "1MiB", "4KiB", &options[2]);
	exporter_restore(other, &(struct stored){ store.data, store.data + store.size, false }, false);
	assert_false(other->stats.is_failing);
	assert_string_equal(other->stats.problem, "");
	assert_int_equal(other->stats.failing_ns, 0);
	assert_int_equal(other->stats.delivered_ns, 0);
	assert_accounted(other);

	close_otlp(before, options[0]);
	close_otlp(same, options[1]);
	close_otlp(other, options[2]);
	stores_close(&store, 1);
	fixture_done(&fixture);
	sd_event_unref(context.event);
}

static struct buf journal; /* the fields of all messages, each ended by a newline */

int sd_journal_sendv(const struct iovec *fields, int n)
{
	for (int i = 0; i < n; i++) {
		buf_append(&journal, fields[i].iov_base, fields[i].iov_len);
		buf_append_byte(&journal, '\n');
	}
	return 0;
}

static void log_to_journal(void)
{
	char stream[64];
	struct stat st;

	assert_ok(fstat(STDERR_FILENO, &st));
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	log_init(LOG_LEVEL_INFO);
	assert_true(log_is_journal());
}

static void log_to_stderr(void)
{
	unsetenv("JOURNAL_STREAM");
	log_init(LOG_LEVEL_INFO);
}

static void a_full_queue_is_accounted_for_and_told_with_the_name_of_the_exporter(void **state)
{
	struct exporter_context context = { .version = "1" };
	struct exporter *exporter;
	struct fixture fixture;
	void *options;

	assert_true(sd_event_new(&context.event) >= 0);
	fixture_init(&fixture);
	exporter = open_otlp(&context, "4KiB", "4KiB", &options);
	log_to_journal();
	for (unsigned int i = 0; i < 20; i++) {
		assert_ok(push(exporter, &fixture.batch));
		assert_accounted(exporter);
		assert_true(exporter_waiting(exporter).n_bytes <= 4096);
	}
	log_to_stderr();
	assert_non_null(strstr(buf_text(&journal), "MESSAGE_ID=" LOG_ID_DATA_DROPPED "\n"));
	assert_non_null(strstr(buf_text(&journal), "BPFPUSH_EXPORTER=test\n")); /* as the catalog shows it */
	buf_done(&journal);
	assert_int_equal(exporter->stats.points[POINTS_PUSHED], 20 * DELTA_POINTS);
	assert_true(exporter->stats.points[POINTS_QUEUE_FULL] > 0);
	assert_true(exporter_waiting(exporter).n_points > 0);
	close_otlp(exporter, options);
	fixture_done(&fixture);
	sd_event_unref(context.event);
}

static void add_series(struct metric *metric, unsigned int n)
{
	struct attributes attributes;
	struct series *series;

	metric_init_series(metric, NULL);
	series_begin(metric);
	for (unsigned int i = 0; i < n; i++) {
		attributes_init(&attributes);
		assert_ok(attributes_add_number(&attributes, "number", i));
		assert_ok(series_get(metric, &attributes, 1, &series));
		series_add(series, 1);
	}
	series_end(metric);
}

/* What lies above is given back, so that a large batch is not paid for ever after. */
static void the_first_mebibyte_of_the_room_for_bodies_stays(void **state)
{
	struct metric metric = { .scope = "a", .name = "m", .unit = "1", .description = "", .divisor = 1 };
	struct metric *list[] = { &metric };
	const struct batch batch = { .time_ns = 2, .previous_ns = 1, .metrics = list, .n_metrics = 1 };
	struct exporter_context context = { .version = "1" };
	struct rusage before, after;
	struct exporter *exporter;
	void *options;

#ifdef __SANITIZE_ADDRESS__
	print_message("skipped: a sanitizer touches memory of its own for the first time all the time\n");
	skip();
#endif
	/* The heap keeps its pages too, and does not fill what is freed. */
	mallopt(M_PERTURB, 0);
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 32 << 20);
	assert_true(sd_event_new(&context.event) >= 0);
	add_series(&metric, 15000); /* some 800 KiB */
	exporter = open_otlp(&context, "1MiB", "4MiB", &options);
	for (int i = 0; i < 3; i++)
		assert_ok(push(exporter, &batch));
	getrusage(RUSAGE_SELF, &before);
	assert_ok(push(exporter, &batch));
	getrusage(RUSAGE_SELF, &after);
	assert_true(after.ru_minflt - before.ru_minflt < 100);
	close_otlp(exporter, options);
	metric_done_series(&metric);
	sd_event_unref(context.event);
}

static void freeing_nothing_is_fine(void **state)
{
	assert_null(exporter_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_is_found_by_its_name),
		cmocka_unit_test(every_row_is_whole_and_its_defaults_are_valid),
		cmocka_unit_test(points_that_delta_leaves_out_are_not_lost_without_memory),
		cmocka_unit_test(how_an_exporter_fails_is_known_to_a_later_process),
		cmocka_unit_test(a_full_queue_is_accounted_for_and_told_with_the_name_of_the_exporter),
		cmocka_unit_test(the_first_mebibyte_of_the_room_for_bodies_stays),
		cmocka_unit_test(freeing_nothing_is_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
