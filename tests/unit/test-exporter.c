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
#include "export/otlp/options.h"
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

static struct exporter *open_otlp(const struct exporter_context *context, const char *request_size, void **ret_options)
{
	const char *const settings[] = { "endpoint", "http://127.0.0.1:9", "temporality", "delta",
					 "max_request_size", request_size };
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
	exporter = open_otlp(&context, "4KiB", &options);
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
	struct exporter *before, *same, *other, *foreign;
	void *options[4];
	struct fixture fixture;
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct store store;

	assert_true(sd_event_new(&context.event) >= 0);
	assert_ok(stores_open(fd, &store, 1));
	close(fd);
	fixture_init(&fixture);
	before = open_otlp(&context, "4KiB", &options[0]);
	assert_ok(push(before, &fixture.batch));
	for (int i = 0; i < 200 && !before->stats.is_failing; i++)
		assert_true(sd_event_run(context.event, 50000) >= 0);
	assert_true(before->stats.is_failing);
	assert_true(before->stats.failing_ns != 0);
	exporter_save(before, &store);

	same = open_otlp(&context, "4KiB", &options[1]);
	exporter_restore(same, &(struct stored){ store.data, store.data + store.size, false }, true);
	assert_true(same->stats.is_failing);
	assert_int_equal(same->stats.failing_ns, before->stats.failing_ns);
	assert_string_equal(same->stats.problem, before->stats.problem);
	assert_accounted(same);
	assert_int_equal(exporter_waiting(same).n_points, exporter_waiting(before).n_points);

	other = open_otlp(&context, "4KiB", &options[2]);
	exporter_restore(other, &(struct stored){ store.data, store.data + store.size, false }, false);
	assert_false(other->stats.is_failing);
	assert_string_equal(other->stats.problem, "");
	assert_int_equal(other->stats.failing_ns, 0);
	assert_int_equal(other->stats.delivered_ns, 0);
	assert_accounted(other);
	assert_int_equal(exporter_waiting(other).n_points, exporter_waiting(before).n_points);
	foreign = open_otlp(&context, "4KiB", &options[3]);
	foreign->format++;
	exporter_restore(foreign, &(struct stored){ store.data, store.data + store.size, false }, true);
	assert_int_equal(foreign->stats.points[POINTS_NOT_SENT], exporter_waiting(before).n_points);
	assert_accounted(foreign);

	close_otlp(foreign, options[3]);
	close_otlp(before, options[0]);
	close_otlp(same, options[1]);
	close_otlp(other, options[2]);
	stores_close(&store, 1);
	fixture_done(&fixture);
	sd_event_unref(context.event);
}

/* As a later process has it, of what was saved there. */
static struct exporter *restore_skipping(const struct exporter_context *context, const uint8_t *begin,
					 const uint8_t *end, void **ret_options)
{
	struct exporter *exporter = open_otlp(context, "4KiB", ret_options);

	((struct otlp_options *)*ret_options)->when_in_doubt = OTLP_SKIP;
	exporter_restore(exporter, &(struct stored){ begin, end, false }, true);
	assert_accounted(exporter);
	return exporter;
}

/* Killed while a request of deltas was on its way: the receiver may have it. Those after it only waited. */
static void what_was_being_sent_is_in_doubt_for_a_later_process(void **state)
{
	struct exporter_context context = { .version = "1" };
	struct exporter *before, *same, *other, *last;
	void *options[4];
	struct fixture fixture;
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct queue_item *first;
	struct store store;
	size_t n_points, begin;

	assert_true(sd_event_new(&context.event) >= 0);
	assert_ok(stores_open(fd, &store, 1));
	close(fd);
	fixture_init(&fixture);
	before = open_otlp(&context, "4KiB", &options[0]);
	for (int i = 0; i < 2; i++)
		assert_ok(exporter_encode(before, &fixture.batch));
	exporter_save(before, &store);
	begin = store.size;
	exporter_send(before, &fixture.batch); /* the mark changes in what was saved */
	n_points = TAILQ_FIRST(&before->queue.items)->n_points;

	same = restore_skipping(&context, store.data, store.data + begin, &options[1]);
	first = TAILQ_FIRST(&same->queue.items);
	assert_true(first->is_doubtful);
	assert_false(TAILQ_NEXT(first, link)->is_doubtful);
	exporter_send(same, &fixture.batch);
	assert_int_equal(same->stats.points[POINTS_IN_DOUBT], n_points);
	assert_int_equal(same->stats.doubtful_points, n_points);
	assert_accounted(same);

	/* That one is killed, too, and has saved nothing: what it gave up is in doubt, and what it sent then. */
	other = restore_skipping(&context, store.data, store.data + begin, &options[2]);
	exporter_send(other, &fixture.batch);
	assert_int_equal(other->stats.points[POINTS_IN_DOUBT], 2 * n_points);
	assert_int_equal(other->stats.doubtful_values, 2 * same->stats.doubtful_values);

	/* Or it has saved, but no collection has reported it. */
	exporter_save(same, &store);
	last = restore_skipping(&context, store.data + begin, store.data + store.size, &options[3]);
	assert_int_equal(last->stats.points[POINTS_IN_DOUBT], n_points);

	for (int i = 0; i < 4; i++)
		close_otlp((struct exporter *[]){ before, same, other, last }[i], options[i]);
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
	struct queue_budget budget = { .limit_bytes = 4096 };
	struct exporter_context context = { .version = "1", .queue_budget = &budget };
	struct exporter *exporter;
	struct fixture fixture;
	void *options;

	assert_true(sd_event_new(&context.event) >= 0);
	fixture_init(&fixture);
	exporter = open_otlp(&context, "4KiB", &options);
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

/* 0: the clock is true. Else it stands still, except where a test moves it. */
static uint64_t clock_us;

int sd_event_now(sd_event *event, clockid_t clock, uint64_t *ret_us)
{
	struct timespec now;

	clock_gettime(clock, &now);
	*ret_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
	if (clock_us)
		*ret_us = clock_us + (clock == CLOCK_REALTIME ? UINT64_C(1767225600000000) : 0); /* 2026-01-01 */
	return 0;
}

/* An exporter whose changes are made by hand, and the log. */
struct patient {
	struct exporter_context context;
	struct exporter *exporter;
	void *options;
};

static void patient_init(struct patient *patient)
{
	*patient = (struct patient){ .context.version = "1" };
	assert_true(sd_event_new(&patient->context.event) >= 0);
	patient->exporter = open_otlp(&patient->context, "4KiB", &patient->options);
	clock_us = UINT64_C(1000000000000);
	log_to_journal();
}

static void patient_done(struct patient *patient)
{
	log_to_stderr();
	clock_us = 0;
	buf_done(&journal);
	close_otlp(patient->exporter, patient->options);
	sd_event_unref(patient->context.event);
}

/* Messages that hold text since the last call. */
static unsigned int count_logged(const char *text)
{
	unsigned int n = 0;

	for (const char *at = buf_text(&journal), *found; (at = strstr(at, "MESSAGE=")); at++) {
		found = strstr(at, text);
		n += found && found < strchr(at, '\n');
	}
	buf_reset(&journal);
	return n;
}

static void break_off(struct exporter *exporter, const char *problem, uint64_t delay_ns)
{
	exporter_fail_until(exporter, LOG_LEVEL_WARNING, LOG_ID_EXPORT_FAILING, delay_ns, "%s; kept", problem);
}

static void when_it_tries_again_is_logged_and_makes_no_new_message(void **state)
{
	struct patient patient;

	patient_init(&patient);
	break_off(patient.exporter, "no", 1500000000);
	assert_int_equal(count_logged("no; kept in 1.5 s"), 1);
	assert_string_equal(patient.exporter->stats.problem, "no; kept");
	assert_int_equal(exporter_problem_bytes(patient.exporter), 2);
	break_off(patient.exporter, "no", 3000000000);
	assert_int_equal(count_logged(""), 0);
	break_off(patient.exporter, "never; ever", 31400000000);
	assert_int_equal(count_logged("never; ever; kept in 31 s"), 1);
	assert_int_equal(exporter_problem_bytes(patient.exporter), strlen("never; ever"));
	patient_done(&patient);
}

static void it_delivers_again_only_if_it_did_before(void **state)
{
	struct patient patient;

	patient_init(&patient);
	for (int i = 0; i < 2; i++) {
		break_off(patient.exporter, "no", 0);
		exporter_delivers(patient.exporter);
		exporter_delivers(patient.exporter);
		exporter_account(patient.exporter, POINTS_DELIVERED, 1);
		assert_int_equal(count_logged(i ? "test: delivers again" : "test: delivers"), 1);
	}
	patient_done(&patient);
}

static void only_the_first_changes_of_a_minute_are_logged(void **state)
{
	const struct batch nothing = { 0 };
	struct patient patient;

	patient_init(&patient);
	clock_us += 60000000;
	for (int i = 0; i < 10; i++) {
		break_off(patient.exporter, "no", 0);
		exporter_delivers(patient.exporter);
	}
	break_off(patient.exporter, "no", 0);
	assert_true(patient.exporter->stats.is_failing);
	assert_int_equal(count_logged(""), 6);
	clock_us += 59000000;
	assert_ok(exporter_encode(patient.exporter, &nothing));
	assert_int_equal(count_logged(""), 0);
	clock_us += 1000000;
	assert_ok(exporter_encode(patient.exporter, &nothing));
	assert_ok(exporter_encode(patient.exporter, &nothing));
	assert_int_equal(count_logged("test: 15 more changes are not logged; now it fails"), 1);
	exporter_delivers(patient.exporter);
	assert_int_equal(count_logged("delivers"), 1);
	patient_done(&patient);
}

static void a_failure_that_lasts_is_said_once_an_hour(void **state)
{
	const struct batch nothing = { 0 };
	struct patient patient;

	patient_init(&patient);
	break_off(patient.exporter, "no way", 0);
	exporter_account(patient.exporter, POINTS_PUSHED, 3);
	patient.exporter->n_doubtful = 3;
	for (int i = 0, n = 0; i < 250; i++) {
		assert_ok(exporter_encode(patient.exporter, &nothing));
		n = (int)count_logged("still failing since 2026-01-12 ");
		assert_int_equal(n, i == 60 || i == 120 || i == 180 || i == 240);
		clock_us += 60000000;
	}
	patient.exporter->reminded_ns = 0;
	assert_ok(exporter_encode(patient.exporter, &nothing));
	assert_int_equal(count_logged(" UTC: no way; 3 points wait"), 1);
	exporter_delivers(patient.exporter);
	break_off(patient.exporter, "no way", 0);
	buf_reset(&journal);
	assert_ok(exporter_encode(patient.exporter, &nothing));
	assert_int_equal(count_logged(""), 0);
	patient_done(&patient);
}

static void a_loss_is_said_once_an_hour_and_for_each_reason(void **state)
{
	const struct batch nothing = { 0 };
	struct patient patient;

	patient_init(&patient);
	patient.exporter->queue.limit_items = 1;
	for (int i = 0; i < 130; i++) {
		queue_put(&patient.exporter->queue, calloc(1, 1), 1, 1); /* cannot be merged */
		assert_ok(exporter_encode(patient.exporter, &nothing));
		assert_int_equal(count_logged("its queue is full"), i == 1 || i == 61 || i == 121);
		/* Numbers make no new reason. */
		exporter_drop(patient.exporter, POINTS_REJECTED, 1, i % 2 ? "no 1" : "no 22");
		assert_int_equal(count_logged("MESSAGE=exporter test: no "), i % 60 == 0);
		exporter_drop(patient.exporter, POINTS_NOT_SENT, 1, i < 30 ? "never" : "not now");
		assert_int_equal(count_logged("MESSAGE=exporter test: n"), i == 0 || i == 30 || i == 90);
		exporter_drop(patient.exporter, POINTS_IN_DOUBT, 0, "perhaps");
		clock_us += 60000000;
	}
	assert_int_equal(count_logged(""), 0);
	assert_int_equal(patient.exporter->stats.points[POINTS_REJECTED], 130);
	patient_done(&patient);
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
	exporter = open_otlp(&context, "4MiB", &options);
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

/* With allocations failing from the first, the second … on: a point is lost where there was no memory for it. */
static void exporters_that_send_the_same_encode_once_and_share_it(void **state)
{
	struct exporter *exporters[4] = { NULL };
	struct exporter_context context = { .version = "1", .opened = exporters };
	const struct queue_item *items[3];
	bool has_failed = true;
	struct fixture fixture;
	void *options[3];

	assert_true(sd_event_new(&context.event) >= 0);
	fixture_init(&fixture);
	for (size_t i = 0; i < 3; i++)
		exporters[i] = open_otlp(&context, i == 1 ? "8KiB" : "4KiB", &options[i]);
	for (unsigned int n = 0; has_failed; n++) {
		alloc_fail_at(n);
		for (size_t i = 0; i < 3; i++)
			(void)exporter_encode(exporters[i], &fixture.batch);
		has_failed = alloc_end();
		for (size_t i = 0; i < 3; i++) {
			assert_int_equal(exporters[i]->stats.points[POINTS_PUSHED], (n + 1) * DELTA_POINTS);
			assert_accounted(exporters[i]);
		}
	}
	for (size_t i = 0; i < 3; i++)
		items[i] = TAILQ_LAST(&exporters[i]->queue.items, queue_items);
	assert_ptr_equal(items[0]->data, items[2]->data);
	assert_ptr_not_equal(items[0]->data, items[1]->data);
	assert_int_equal(items[0]->time_ns, items[2]->time_ns);
	close_otlp(exporters[0], options[0]);
	assert_true(items[2]->data[0] != 0 && items[2]->sharer == items[2]); /* what the other has stays */
	close_otlp(exporters[1], options[1]);
	close_otlp(exporters[2], options[2]);
	fixture_done(&fixture);
	sd_event_unref(context.event);
}

static void one_that_cannot_be_opened_leaves_the_budget(void **state)
{
	struct queue_budget budget = { .limit_bytes = 1 << 20 };
	struct exporter_context context = { .version = "1", .queue_budget = &budget };
	struct exporter *first, *second = NULL;
	void *options;

	assert_true(sd_event_new(&context.event) >= 0);
	first = open_otlp(&context, "4KiB", &options);
	for (unsigned int n = 0; !second; n++) {
		alloc_fail_at(n);
		(void)exporter_open("second", first->ops, options, &context, &second);
		assert_int_equal(alloc_end(), !second);
		assert_ptr_equal(SLIST_FIRST(&budget.queues), second ? &second->queue : &first->queue);
	}
	exporter_free(second);
	close_otlp(first, options);
	assert_true(SLIST_EMPTY(&budget.queues));
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
		cmocka_unit_test(what_was_being_sent_is_in_doubt_for_a_later_process),
		cmocka_unit_test(a_full_queue_is_accounted_for_and_told_with_the_name_of_the_exporter),
		cmocka_unit_test(when_it_tries_again_is_logged_and_makes_no_new_message),
		cmocka_unit_test(it_delivers_again_only_if_it_did_before),
		cmocka_unit_test(only_the_first_changes_of_a_minute_are_logged),
		cmocka_unit_test(a_failure_that_lasts_is_said_once_an_hour),
		cmocka_unit_test(a_loss_is_said_once_an_hour_and_for_each_reason),
		cmocka_unit_test(the_first_mebibyte_of_the_room_for_bodies_stays),
		cmocka_unit_test(exporters_that_send_the_same_encode_once_and_share_it),
		cmocka_unit_test(one_that_cannot_be_opened_leaves_the_budget),
		cmocka_unit_test(freeing_nothing_is_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
