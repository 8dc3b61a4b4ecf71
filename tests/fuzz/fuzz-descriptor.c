/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/descriptor.h"
#include "collector/grammar/grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int is_true)
{
	if (!is_true)
		abort();
}

static void check_metric(const struct descriptor_metric *metric, bool is_sound)
{
	demand(metric->line && metric->map && metric->member);
	for (size_t i = 0; i < metric->attributes.n; i++)
		demand(*metric->attributes.items[i].text && *metric->attributes.items[i].value &&
		       metric->attributes.items[i].line);
	if (!is_sound)
		return;
	demand(*metric->map && !grammar_check_name(metric->name) && *metric->unit && metric->description);
	for (size_t i = 0; i < metric->attributes.n; i++)
		demand(!grammar_check_name(metric->attributes.items[i].text));
}

/* What collector_open() counts on, whatever the text was. */
static void check(const struct descriptor *d, bool is_sound)
{
	demand(d->description != NULL);
	demand(!is_sound || d->n_metrics);
	for (size_t i = 0; i < d->n_params; i++)
		demand(d->params[i].line && d->params[i].name);
	for (size_t i = 0; i < d->n_metrics; i++)
		check_metric(&d->metrics[i], is_sound);
	for (size_t i = 0; i < d->n_labels; i++)
		demand(d->labels[i].line && d->labels[i].map && d->labels[i].member);
	for (size_t i = 0; i < d->n_programs; i++)
		demand(d->programs[i].line && d->programs[i].name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(fclosep) FILE *f = size ? fmemopen((void *)data, size, "r") : NULL;
	_cleanup_(descriptor_freep) struct descriptor *descriptor = NULL;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;

	if (!f)
		return 0;
	demand(descriptor_parse(f, "fuzz", &diag, &descriptor) == 0);
	demand(!diag.n_errors == !diag.text.size);
	check(descriptor, !diag.n_errors);
	return 0;
}
