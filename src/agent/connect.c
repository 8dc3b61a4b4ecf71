/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/connect.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "agent/status/page.h"
#include "build-config.h"
#include "export/transport/timer.h"
#include "util/array.h"
#include "util/duration.h"
#include "util/utf8.h"

#define LIMIT_NS (15 * NS_PER_S)
#define TURN_US	 20000 /* between looks at what is going on */

static void print_result(const struct exporter *exporter, int result, uint64_t took_ns, FILE *out)
{
	_cleanup_(buf_done) struct buf place = BUF_INIT;
	/* Without what becomes of the points: there are none. */
	const char *words = result ? exporter->stats.problem : "no answer";
	const char *advice = result < 0 ? memrchr(words, ';', strlen(words)) : NULL;
	int length = advice ? (int)(advice - words) : -1;

	page_append_place(exporter, &place);
	utf8_clean((char *)buf_text(&place));
	fprintf(out, "exporter %s: %s: %s: %.*s (%.3f s)\n", exporter->name, buf_text(&place),
		result > 0 ? "works" : "fails", length, words, (double)took_ns / (double)NS_PER_S);
}

/* Those that have a result are freed, and no longer among the n. */
static int try_all(struct sd_event *event, struct exporter **exporters, size_t *n, FILE *out)
{
	uint64_t begun_ns = timer_now_ns(event);
	int r = 0, is_failing = 0;

	while (*n && r >= 0) {
		uint64_t took_ns = timer_now_ns(event) - begun_ns;

		for (size_t i = *n; i--;) {
			struct exporter *exporter = exporters[i];
			int result = exporter->ops->probe(exporter);

			if (!result && took_ns < LIMIT_NS)
				continue;
			print_result(exporter, result, took_ns, out);
			is_failing |= result <= 0;
			exporters[i] = exporters[--*n];
			exporter_free(exporter);
		}
		r = sd_event_run(event, TURN_US);
	}
	return r < 0 ? r : is_failing;
}

/* Opens what sends one signal of it, if there is a receiver. */
static int add_trial(const struct config_exporter *exporter, enum signals signal,
		     enum signals made, const struct exporter_context *context,
		     struct exporter **ret_exporter)
{
	const char *name;
	const struct exporter_ops *ops = config_exporter_ops(exporter, signal, &name);

	if (!ops || !ops->probe || !(made & (ops->takes ?: SIGNAL_METRICS)))
		return 0;
	return exporter_open(name, ops, exporter->options, context, ret_exporter);
}

int agent_connect(const struct config *config, enum signals made, FILE *out)
{
	struct exporter_context context = {
		.resource = config->resource.items,
		.n_resource = config->resource.n,
		.version = VERSION,
		.interval_ns = config->agent.interval_ns,
		.opens_later = true,
		.is_trial = true,
	};
	_cleanup_(freep) struct exporter **exporters = calloc(SIGNALS * config->n_exporters + 1,
							      sizeof(*exporters));
	size_t n = 0;
	int r = exporters ? sd_event_new(&context.event) : -ENOMEM;

	signal(SIGPIPE, SIG_IGN);
	if (r < 0)
		return r;
	array_for_each (exporter, config->exporters, config->n_exporters) {
		size_t n_before = n;

		for_each_signal(signal) {
			if (r >= 0)
				r = add_trial(exporter, signal, made, &context, &exporters[n]);
			n += exporters[n] != NULL;
		}
		if (n == n_before && r >= 0)
			fprintf(out, "exporter %s: not tried: %s\n", exporter->name,
				exporter->ops->probe ?
					"it sends no metrics, and no collector that runs has what it sends" :
					"it has no receiver");
	}
	if (r >= 0)
		r = try_all(context.event, exporters, &n, out);
	while (n)
		exporter_free(exporters[--n]);
	sd_event_unref(context.event);
	return r;
}
