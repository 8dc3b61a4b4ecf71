/* SPDX-License-Identifier: Apache-2.0 */
/* Readings of a collector that is attached to the running kernel. */
#include "test.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <unistd.h>

#include "collector/binding/binding.h"
#include "collector/collector.h"
#include "kernel.h"
#include "tree.h"

static const struct label_choice choice;

static const char descriptor[] = "[collector]\ndescription = D\n"
				 "[metric gauges.level]\nname = test.level\nunit = 1\ndescription = D\nkind = gauge\n"
				 "[metric gauges.tally]\nname = test.tally\nunit = 1\ndescription = D\nkind = gauge\n";

static struct collector *start(struct labels *labels, struct tree *tree)
{
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	_cleanup_(buf_done) struct buf why = BUF_INIT;
	struct collector *collector = NULL;

	tree_init(tree);
	tree_write(tree, "gauges.conf", descriptor);
	tree_link(tree, "gauges.bpf.o", OBJECTS "/gauges.bpf.o");
	assert_ok(collector_open(tree->path, "gauges", &(struct collector_options){ .labels = labels }, &diag, &collector));
	assert_string_equal(buf_text(&diag.text), "");
	assert_ok(collector_start(collector, &why));
	assert_ok(collector_read(collector)); /* the baseline */
	return collector;
}

static void a_map_that_cannot_be_read_is_not_zero(void **state)
{
	_cleanup_(labels_freep) struct labels *labels = NULL;
	_cleanup_(tree_done) struct tree tree;
	struct collector *collector;
	int *fd, kept;

	assert_ok(labels_new(0, &choice, &labels));
	collector = start(labels, &tree);
	fd = &collector->bindings[0].reader.fd;
	kept = *fd;
	for (int i = 0; i < 6; i++) {
		struct metric **metrics = collector->metrics;

		*fd = i == 2 ? -1 : kept;
		assert_error(collector_read(collector), i == 2 ? EBADF : 0);
		assert_ok(collector_compute(collector, 1));
		assert_int_equal(collector->n_metrics, 2);
		for (size_t j = 0; j < collector->n_metrics; j++) {
			assert_int_equal(metrics[j]->n_series, 1);
			assert_true(metrics[j]->series[0]->is_present);
			assert_int_equal(metrics[j]->series[0]->total.sum, 5);
		}
	}
	collector_free(collector);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_map_that_cannot_be_read_is_not_zero),
	};

	if (kernel_refuses_programs())
		return KERNEL_SKIPPED;
	programs_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
