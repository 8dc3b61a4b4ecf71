/* SPDX-License-Identifier: Apache-2.0 */
#include "command/answer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "export/text/output.h"
#include "util/duration.h"
#include "view/heat.h"
#include "view/view.h"

#define COLUMNS	       60 /* of a heat map whose time is known */
#define COLUMNS_MAX    4096
#define INTERVAL_MIN   (100 * NS_PER_MS)
#define INTERVAL_MAX   NS_PER_S
#define HEIGHT	       24

bool answer_can_write(const char *option, const char *path)
{
	_cleanup_(closep) int fd = -1;
	struct stat status;
	bool is_new;

	if (!path || !strcmp(path, "-") || (!stat(path, &status) && S_ISFIFO(status.st_mode)))
		return true;
	is_new = access(path, F_OK);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644);
	if (fd < 0)
		fprintf(stderr, "bpfpush %s=%s: %s\n", option, path, strerror(errno));
	else if (is_new) /* what is refused after this leaves nothing */
		unlink(path);
	return fd >= 0;
}

static bool has_end(const char *path, const char *end)
{
	size_t length = path ? strlen(path) : 0;

	return length > strlen(end) && !strcmp(path + length - strlen(end), end);
}

bool answer_can_be_drawn(const struct arguments *arguments)
{
	static const char *const others[] = { ".png", ".jpg", ".jpeg", ".gif", ".pdf", ".webp" };

	for (size_t i = 0; i < ARRAY_SIZE(others) && arguments->is_heatmap; i++)
		if (has_end(arguments->output_path, others[i])) {
			fprintf(stderr, "bpfpush once: --output=%s: only a file.svg is a picture; in other files the map is text\n",
				arguments->output_path);
			return false;
		}
	return true;
}

static bool add_heats(struct answer *answer, const struct batch *batch)
{
	answer->heats = answer->heats ?: calloc(batch->n_metrics + 1, sizeof(*answer->heats));
	for (size_t i = 0; i < batch->n_metrics && answer->heats; i++) {
		struct heat **heat = &answer->heats[i];

		if (batch->metrics[i]->kind != METRIC_HISTOGRAM)
			continue;
		*heat = *heat ?: heat_new(batch->metrics[i], COLUMNS_MAX);
		if (!*heat)
			return false;
		heat_add(*heat, batch->metrics[i], batch->time_ns);
	}
	return answer->heats;
}

/* NULL: there is one only at the end. */
static const struct batch *find_answer(const struct answer *answer)
{
	const struct batch *batch = view_batch(answer->view);

	if (answer->has_intervals)
		return answer->has_totals ? batch : view_interval(answer->view);
	return batch->is_last ? view_whole(answer->view) : NULL;
}

const struct batch *answer_take(void *user, const struct batch *batch)
{
	struct answer *answer = user;

	answer->is_failing |= view_add(answer->view, batch) ||
			      (answer->has_heats && !add_heats(answer, view_batch(answer->view)));
	batch = answer->is_failing ? NULL : find_answer(answer);
	if (!batch)
		return NULL;
	for (size_t i = 0; i < batch->n_metrics; i++)
		answer->n_series += batch->metrics[i]->n_series;
	return batch;
}

/* The setting that switches a metric on, if it is off; or NULL. */
static const char *find_switch(const struct collector *collector, const struct metric *metric)
{
	array_for_each (described, collector->descriptor->metrics, collector->descriptor->n_metrics)
		if (described->when && !strcmp(described->name, metric->name) &&
		    !variable_is_on(&collector->variables, described->when))
			return described->when;
	return NULL;
}

/* The histograms that are asked for and counted. Without any, what switches one on is said. */
static size_t count_histograms(const struct setup *setup)
{
	_cleanup_(buf_done) struct buf off = BUF_INIT;
	size_t n = 0;

	for (size_t i = 0; i < setup->set.n_shown; i++) {
		const struct collector *collector = setup->set.items[i];

		for (size_t j = 0; j < collector->n_metrics; j++) {
			const struct metric *metric = collector->metrics[j];
			const char *setting = find_switch(collector, metric);

			if (metric->kind != METRIC_HISTOGRAM ||
			    !question_wants_metric(&setup->question, metric))
				continue;
			n += !setting;
			if (setting)
				buf_printf(&off, "bpfpush once: --heatmap: %s counts only with --set=%s.%s=VALUE\n", metric->name,
					   collector->name, setting);
		}
	}
	fputs(n ? "" : buf_text(&off), stderr);
	return n;
}

static enum exit_code begin_heats(struct answer *answer, const struct arguments *arguments,
				  struct setup *setup)
{
	uint64_t interval_ns = arguments->duration_ns / COLUMNS;
	size_t n = count_histograms(setup);

	if (!n || (n > 1 && has_end(arguments->output_path, ".svg"))) {
		fprintf(stderr, "bpfpush once: --heatmap: %zu metrics that count here are histograms; name %s, like run_queue.duration\n",
			n, n ? "one of them for a file.svg" : "a metric that is one");
		return EXIT_USE;
	}
	if (interval_ns > INTERVAL_MAX || !arguments->duration_ns)
		interval_ns = arguments->duration_ns || !arguments->command ? INTERVAL_MAX :
			      INTERVAL_MIN;
	setup->counting.interval_ns = interval_ns < INTERVAL_MIN ? INTERVAL_MIN : interval_ns;
	answer->has_heats = true;
	return EXIT_OK;
}

enum exit_code answer_begin(struct answer *answer, const struct arguments *arguments,
			    struct setup *setup)
{
	enum exit_code code = arguments->is_heatmap ? begin_heats(answer, arguments, setup) :
			      EXIT_OK;
	/* Then exporters take what is counted. */
	bool is_of_batch = !arguments->is_heatmap && question_is_empty(&setup->question);

	answer->has_intervals = arguments->interval_ns;
	answer->has_totals = arguments->format;
	if (code != EXIT_OK || (is_of_batch && (!answer->has_intervals || answer->has_totals)))
		return code;
	if (view_new(&setup->question, !answer->has_intervals, &answer->view))
		return EXIT_INTERNAL;
	setup->counting.view = answer_take;
	setup->counting.view_user = answer;
	return EXIT_OK;
}

enum exit_code answer_write(const struct answer *answer, const struct arguments *arguments)
{
	const char *path = arguments->output_path && strcmp(arguments->output_path, "-") ?
			   arguments->output_path : NULL;
	const char *mode = has_end(path, ".svg") ? "we" : "ae";
	_cleanup_(buf_done) struct buf out = BUF_INIT;
	unsigned int width = 80;
	size_t n = answer->heats ? view_batch(answer->view)->n_metrics : 0, n_heats = 0;
	bool has_colour = !path && output_has_colour(STDOUT_FILENO, &width), has_failed;
	FILE *f;

	for (size_t i = 0; i < n; i++)
		n_heats += answer->heats[i] != NULL;
	for (size_t i = 0; i < n; i++) {
		if (!answer->heats[i] || (heat_is_empty(answer->heats[i]) && n_heats > 1))
			continue;
		if (has_end(path, ".svg"))
			heat_svg(answer->heats[i], &out);
		else
			heat_print(answer->heats[i], width, HEIGHT - 2, has_colour, &out);
	}
	if (!out.size || buf_error(&out))
		return buf_error(&out) ? EXIT_INTERNAL : EXIT_OK;
	f = path ? fopen(path, mode) : stdout;
	has_failed = !f || fwrite(out.data, 1, out.size, f) < out.size;
	if (f && path)
		has_failed |= fclose(f) != 0;
	if (has_failed)
		fprintf(stderr, "bpfpush once: %s: %s\n", path ?: "standard output", strerror(errno));
	return has_failed ? EXIT_OUTPUT : EXIT_OK;
}

void answer_done(struct answer *answer)
{
	for (size_t i = 0; answer->heats && i < view_batch(answer->view)->n_metrics; i++)
		heat_free(answer->heats[i]);
	free(answer->heats);
	view_free(answer->view);
}
