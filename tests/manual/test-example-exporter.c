/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter that docs/writing-exporters.md shows, to the letter: what it writes, and that each point has a fate. */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "export/exporter.h"
#include "fixture.h"

extern const struct exporter_ops sums_exporter;

static const struct exporter_context context = { .version = "1" };

/* The only setting comes first in the options. */
static struct exporter *open_to(char **path)
{
	struct exporter *exporter = NULL;

	assert_ok(exporter_open("example", &sums_exporter, path, &context, &exporter));
	return exporter;
}

static void the_increase_of_each_sum_is_written(void **state)
{
	char path[] = "/tmp/bpfpush-example.XXXXXX", text[1024], *option = path;
	int fd = mkstemp(path);
	struct exporter *exporter = open_to(&option);
	struct fixture fixture;
	ssize_t size;

	fixture_init(&fixture);
	assert_ok(exporter_encode(exporter, &fixture.batch));
	size = read(fd, text, sizeof(text) - 1);
	assert_true(size > 0);
	text[size] = '\0';
	assert_string_equal(text, "bpfpush.syscalls 234.000000\n"
				  "bpfpush.syscalls 0.000000\n"
				  "bpfpush.syscalls 1.000000\n"
				  "bpfpush.syscalls 9.000000\n"
				  "bpfpush.syscalls 5.000000\n"
				  "bpfpush.scheduler.cpu.time 0.250000\n");
	assert_int_equal(exporter->stats.points[POINTS_PUSHED], FIXTURE_POINTS);
	assert_int_equal(exporter->stats.points[POINTS_DELIVERED], 6);
	assert_int_equal(exporter->stats.points[POINTS_UNSUPPORTED], FIXTURE_POINTS - 6);
	fixture_done(&fixture);
	exporter_free(exporter);
	close(fd);
	unlink(path);
}

static void what_cannot_be_written_is_counted(void **state)
{
	char *option = "/dev/full";
	struct exporter *exporter = open_to(&option);
	struct fixture fixture;

	fixture_init(&fixture);
	assert_error(exporter_encode(exporter, &fixture.batch), EIO);
	assert_int_equal(exporter->stats.points[POINTS_DELIVERED], 0);
	assert_int_equal(exporter->stats.points[POINTS_NOT_SENT], 6);
	fixture_done(&fixture);
	exporter_free(exporter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_increase_of_each_sum_is_written),
		cmocka_unit_test(what_cannot_be_written_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
