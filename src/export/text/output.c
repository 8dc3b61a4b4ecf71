/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#include "util/rights.h"

#define PATIENCE_MS	50   /* with a reader that takes nothing */
#define PATIENCE_END_MS 1000 /* the same when this is the end */

static const struct setting_row rows[] = {
	SETTING(struct output_options, path, "path", SETTING_TEXT, "-"),
};
const struct setting_table output_settings = SETTING_TABLE(rows, struct output_options);

/* The command line may give a relative path; it is not checked here. */
void output_options_check(const void *untyped, const struct assignments *given, struct diag *diag)
{
	const struct output_options *options = untyped;
	const char *file = options->path, *slash = strrchr(file, '/');
	char parent[PATH_MAX];
	struct stat st;

	if (!strcmp(file, "-"))
		return;
	snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - file) + 1 : 0, file);
	if (!file[0])
		assignments_complain(given, diag, "path", NULL,
				     "is empty: write the path of a file, or \"-\" for standard output");
	else if (file[0] != '/')
		assignments_complain(given, diag, "path", NULL, "must begin with \"/\", or be \"-\" for standard output");
	else if (stat(parent, &st) < 0 && errno != EACCES)
		/* only the service's user may look into it */
		assignments_complain(given, diag, "path", NULL, "the directory %s cannot be used: %m", parent);
	else if (!slash[1] || (!stat(file, &st) && S_ISDIR(st.st_mode)))
		assignments_complain(given, diag, "path", NULL, "%s is a directory, write the path of a file", file);
	else if (rights_judge() && access(file, W_OK) &&
		 (errno != ENOENT || access(parent, W_OK | X_OK)))
		assignments_complain(given, diag, "path", NULL, "%s cannot be written: %m", file);
}

/*
 * Does the file end in the middle of a line, because its last writer was killed or the disk was
 * full?
 */
static bool ends_torn(const char *path)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	char last;

	return fd >= 0 && !fstat(fd, &st) && st.st_size &&
	       pread(fd, &last, 1, st.st_size - 1) == 1 &&
	       last != '\n';
}

static int choose_patience_ms(const struct exporter *exporter)
{
	if (exporter->ops->take)
		return 0; /* it writes again and again, so no reader may hold it up */
	return exporter->context->is_once ? -1 : PATIENCE_MS;
}

int output_open(struct exporter *exporter, const void *options)
{
	const char *path = ((const struct output_options *)options)->path;
	bool is_stdout = !strcmp(path, "-");
	struct output *output = exporter->state;
	struct stat st;
	/* O_NONBLOCK: a pipe without a reader is refused instead of waited for. */
	int fd = is_stdout ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0) :
			 open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY |
			      O_NONBLOCK, 0644);
	int err = errno;

	output->fd = fd;
	if (fd < 0) {
		if (err == ENXIO && !stat(path, &st) && S_ISFIFO(st.st_mode))
			exporter_fail(exporter, LOG_LEVEL_ERROR, LOG_ID_EXPORT_FAILING,
				      "path: %s is a pipe that nobody reads", path);
		else
			exporter_fail(exporter, LOG_LEVEL_ERROR, LOG_ID_EXPORT_FAILING, "path: %s: %s",
				      path, strerror(err));
		return exporter->context->opens_later ? 0 : -err;
	}
	output->is_terminal = isatty(fd);
	output->can_block = fstat(fd, &st) < 0 || !S_ISREG(st.st_mode);
	output->is_torn = !is_stdout && !output->can_block && ends_torn(path);
	output->patience_ms = choose_patience_ms(exporter);
	exporter_works(exporter, "is open now");
	return 0;
}

size_t output_count(const struct batch *batch)
{
	struct metric *metric;
	struct series *series;
	size_t n = 0;

	batch_for_each_metric(metric, batch)
		metric_for_each_series(series, metric)
			n++;
	return n;
}

/* 0, -EAGAIN where the reader takes nothing for longer than patience, or -errno. */
static int write_rest(struct output *output, int patience_ms)
{
	struct pollfd wait = { .fd = output->fd, .events = POLLOUT };

	while (output->n_written < output->out.size) {
		size_t size = output->out.size - output->n_written;
		ssize_t n;

		if (output->can_block) {
			n = poll(&wait, 1, patience_ms);
			if (n < 0)
				continue;
			if (!n)
				return -EAGAIN;
			/* pipe(7): as much as this never blocks once poll() has said so. */
			size = size > PIPE_BUF ? PIPE_BUF : size;
		}
		n = write(output->fd, output->out.data + output->n_written, size);
		if (n >= 0)
			output->n_written += (size_t)n;
		else if (errno != EINTR && errno != EAGAIN)
			return -errno;
	}
	return 0;
}

/*
 * Takes what was written of out from the end of the file again, unless another writer has appended
 * since.
 */
static bool cut_back(const struct output *output)
{
	off_t end = lseek(output->fd, 0, SEEK_CUR), start = end - (off_t)output->n_written;
	struct stat st;

	if (output->can_block || end < 0 || start < 0 || fstat(output->fd, &st) < 0 ||
	    st.st_size != end)
		return false;
	return !ftruncate(output->fd, start) && lseek(output->fd, start, SEEK_SET) == start;
}

/*
 * The rest of out will never be written: no half line may stay that the next one would be glued to.
 */
static void remove_half_line(struct output *output)
{
	if (output->n_written && !cut_back(output))
		output->is_torn = output->out.data[output->n_written - 1] != '\n';
}

void output_close(struct exporter *exporter)
{
	struct output *output = exporter->state;

	if (write_rest(output, PATIENCE_END_MS) < 0)
		remove_half_line(output);
	if (output->fd >= 0)
		close(output->fd);
	buf_done(&output->out);
	buf_done(&output->head);
}

/* Writes the buffer and accounts for its points. */
static int flush_buffer(struct exporter *exporter)
{
	struct output *output = exporter->state;
	struct exporter_stats *stats = &exporter->stats;
	const char *path = ((const struct output_options *)exporter->options)->path;
	int err = buf_error(&output->out);

	if (!strcmp(path, "-"))
		path = "standard output";
	if (!err)
		err = write_rest(output, output->patience_ms);
	if (err == -EAGAIN)
		return 0;
	if (err) {
		remove_half_line(output);
		exporter_account(exporter, POINTS_NOT_SENT, output->n_points);
		output->n_lost += output->n_points;
		/* A filter whose reader is gone says nothing. */
		exporter_fail(exporter, err == -EPIPE && exporter->context->is_once ?
			      LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR,
			      NULL, "cannot write to %s: %s", path, strerror(-err));
	} else {
		exporter_works(exporter, "writes to %s again; %zu %s%s lost meanwhile", path, output->n_lost,
			       exporter_item(exporter), output->n_lost == 1 ? " was" : "s were");
		output->n_lost = 0;
		output->is_torn = false;
		exporter_account(exporter, POINTS_DELIVERED, output->n_points);
		stats->bytes_sent += output->out.size;
	}
	output->n_points = output->n_written = 0;
	buf_reset(&output->out);
	return err;
}

bool output_is_idle(struct exporter *exporter)
{
	struct output *output = exporter->state;

	if (output->out.size)
		(void)flush_buffer(exporter);
	return !output->out.size;
}

bool output_is_ready(struct exporter *exporter, size_t n_points)
{
	struct output *output = exporter->state;

	bool is_idle = output_is_idle(exporter);

	if (output->fd < 0)
		(void)output_open(exporter, exporter->options);
	output->n_unsupported = 0;
	if (output->fd >= 0 && is_idle) {
		if (output->is_torn)
			buf_append_byte(&output->out, '\n');
		return true;
	}
	if (output->fd >= 0)
		exporter_fail(exporter, LOG_LEVEL_WARNING, NULL, "nobody reads its output: %ss are dropped",
			      exporter_item(exporter));
	exporter_account(exporter, POINTS_PUSHED, n_points);
	exporter_account(exporter, output->fd < 0 ? POINTS_NOT_SENT : POINTS_QUEUE_FULL, n_points);
	return false;
}

int output_flush(struct exporter *exporter, size_t n_points)
{
	struct output *output = exporter->state;

	output->n_points = n_points - output->n_unsupported;
	exporter_account(exporter, POINTS_PUSHED, output->n_points + output->n_unsupported);
	exporter_drop(exporter, POINTS_UNSUPPORTED, output->n_unsupported,
		      "points are dropped, because its format cannot express them");
	exporter->stats.requests++;
	return flush_buffer(exporter);
}

struct exporter_waiting output_waiting(const struct exporter *exporter)
{
	const struct output *output = exporter->state;

	return (struct exporter_waiting){ output->n_points,
					  output->out.size - output->n_written, false };
}
