/* SPDX-License-Identifier: Apache-2.0 */
#include "export/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>

#include "util/log.h"

const struct option stream_option_table[STREAM_N_OPTIONS] = {
	OPTION(struct stream_options, path, "path", OPTION_TEXT, "-",
	       "file to append to; \"-\" is standard output"),
};

int stream_open(struct exporter *exporter, const void *untyped)
{
	const struct stream_options *options = untyped;
	struct stream *stream = calloc(1, sizeof(*stream));
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
	exporter->state = stream;
	return 0;
}

void stream_close(struct exporter *exporter)
{
	struct stream *stream = exporter->state;

	if (!stream)
		return;
	if (stream->is_owned)
		close(stream->fd);
	buf_done(&stream->out);
	free(stream);
	exporter->state = NULL;
}

static int write_all(int fd, const uint8_t *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);

		if (n >= 0) {
			data += n;
			size -= (size_t)n;
			continue;
		}
		if (errno == EAGAIN) { /* somebody else made our standard output non-blocking */
			struct pollfd wait = { .fd = fd, .events = POLLOUT };

			(void)poll(&wait, 1, -1);
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

int stream_flush(struct exporter *exporter, size_t n_points)
{
	struct stream *stream = exporter->state;
	struct exporter_stats *stats = &exporter->stats;
	int err = buf_error(&stream->out);

	if (!err)
		err = write_all(stream->fd, stream->out.data, stream->out.size);
	stats->requests++;
	if (err) {
		stats->points_dropped_error += n_points;
		if (!stats->is_failing)
			log_error("exporter %s: cannot write: %s", exporter->name, strerror(-err));
	} else {
		stats->points_exported += n_points;
		stats->bytes_sent += stream->out.size;
	}
	stats->is_failing = err != 0;
	stream->n_pushed++;
	buf_reset(&stream->out);
	return err;
}

void stream_window(const struct stream *stream, unsigned int *ret_columns, unsigned int *ret_lines)
{
	struct winsize size;
	bool is_known = !ioctl(stream->fd, TIOCGWINSZ, &size) && size.ws_col && size.ws_row;

	*ret_columns = is_known ? size.ws_col : 80;
	*ret_lines = is_known ? size.ws_row : 24;
}
