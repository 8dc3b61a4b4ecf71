/* SPDX-License-Identifier: Apache-2.0 */
#include "export/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "export/columns.h"
#include "util/log.h"

#define PATIENCE_MS	50   /* with a reader that takes nothing */
#define PATIENCE_END_MS 1000 /* the same when this is the end */

const struct option stream_option_table[STREAM_N_OPTIONS] = {
	OPTION(struct stream_options, path, "path", OPTION_TEXT, "-",
	       "file to append to; \"-\" is standard output"),
};

int stream_open(struct exporter *exporter, const void *untyped)
{
	const struct stream_options *options = untyped;
	struct stream *stream = calloc(1, sizeof(*stream));
	struct stat st;
	int err;

	if (!stream)
		return -ENOMEM;
	stream->fd = STDOUT_FILENO;
	if (strcmp(options->path, "-")) {
		stream->fd = open(options->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644);
		stream->is_owned = true;
	}
	if (stream->fd < 0) {
		err = -errno;
		log_error("exporter %s: path: %s: %s", exporter->name, options->path, strerror(errno));
		free(stream);
		return err;
	}
	stream->is_terminal = isatty(stream->fd);
	stream->can_block = fstat(stream->fd, &st) < 0 || !S_ISREG(st.st_mode);
	stream->patience_ms = exporter->context->is_once ? -1 : PATIENCE_MS;
	exporter->state = stream;
	return 0;
}

/* 0, -EAGAIN where the reader takes nothing for longer than patience, or -errno. */
static int write_rest(struct stream *stream, int patience_ms)
{
	struct pollfd wait = { .fd = stream->fd, .events = POLLOUT };

	while (stream->n_written < stream->out.size) {
		size_t size = stream->out.size - stream->n_written;
		ssize_t n;

		if (stream->can_block) {
			n = poll(&wait, 1, patience_ms);
			if (!n)
				return -EAGAIN;
			/* pipe(7): as much as this never blocks once poll() has said so. */
			size = size > PIPE_BUF ? PIPE_BUF : size;
		}
		n = write(stream->fd, stream->out.data + stream->n_written, size);
		if (n >= 0)
			stream->n_written += (size_t)n;
		else if (errno != EINTR && errno != EAGAIN)
			return -errno;
	}
	return 0;
}

void stream_close(struct exporter *exporter)
{
	struct stream *stream = exporter->state;

	if (!stream)
		return;
	(void)write_rest(stream, PATIENCE_END_MS);
	if (stream->is_owned)
		close(stream->fd);
	buf_done(&stream->out);
	free(stream);
	exporter->state = NULL;
}

/* Writes what there is and counts it as what became of it. */
static int settle(struct exporter *exporter)
{
	struct stream *stream = exporter->state;
	struct exporter_stats *stats = &exporter->stats;
	int err = buf_error(&stream->out);

	if (!err)
		err = write_rest(stream, stream->patience_ms);
	stats->points_inflight = err == -EAGAIN ? stream->n_points : 0;
	stats->queue_bytes = err == -EAGAIN ? stream->out.size - stream->n_written : 0;
	if (err == -EAGAIN)
		return 0;
	if (err) {
		stats->points_dropped_error += stream->n_points;
		if (!stats->is_failing)
			log_error("exporter %s: cannot write: %s", exporter->name, strerror(-err));
	} else {
		stats->points_exported += stream->n_points;
		stats->bytes_sent += stream->out.size;
	}
	stats->is_failing = err != 0;
	stream->n_points = stream->n_written = 0;
	buf_reset(&stream->out);
	return err;
}

bool stream_is_ready(struct exporter *exporter, const struct batch *batch)
{
	struct stream *stream = exporter->state;

	if (stream->n_points)
		(void)settle(exporter);
	if (!stream->n_points)
		return true;
	if (!exporter->stats.is_failing)
		log_warning("exporter %s: its reader does not read, points are dropped", exporter->name);
	exporter->stats.is_failing = true;
	exporter->stats.points_dropped_queue += batch_count_points(batch);
	return false;
}

int stream_flush(struct exporter *exporter, const struct batch *batch)
{
	struct stream *stream = exporter->state;

	stream->n_points = batch_count_points(batch);
	stream->n_pushed++;
	exporter->stats.requests++;
	return settle(exporter);
}

void stream_window(const struct stream *stream, unsigned int *ret_columns, unsigned int *ret_lines)
{
	struct winsize size;
	bool is_known = !ioctl(stream->fd, TIOCGWINSZ, &size) && size.ws_col && size.ws_row;

	*ret_columns = is_known ? size.ws_col : 80;
	*ret_lines = is_known ? size.ws_row : 24;
}
