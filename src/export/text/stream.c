/* SPDX-License-Identifier: Apache-2.0 */
#include "export/text/stream.h"

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

static const struct setting_row rows[] = {
	SETTING(struct stream_options, path, "path", SETTING_TEXT, "-"),
};
const struct setting_table stream_settings = SETTING_TABLE(rows, struct stream_options);

/* What is wrong with the text alone, or NULL. On the command line, a relative path has its meaning. */
static const char *path_complaint(const char *text)
{
	if (!text[0])
		return "is empty: write the path of a file, or \"-\" for standard output";
	if (text[0] != '/')
		return "must begin with \"/\", or be \"-\" for standard output";
	return NULL;
}

int stream_options_check(const void *untyped, const char *path, unsigned int line, struct diag *diag)
{
	const struct stream_options *options = untyped;
	const char *file = options->path, *slash = strrchr(file, '/'), *complaint = path_complaint(file);
	_cleanup_(freep) char *parent = NULL;
	struct stat st;

	if (!strcmp(file, "-"))
		return 0;
	if (complaint) {
		diag_add(diag, path, line, "path: %s", complaint);
		return 0;
	}
	parent = strndup(file, (size_t)(slash - file) + 1);
	if (!parent)
		return -ENOMEM;
	/* A directory that only the service's user may look into is no mistake of whoever checks. */
	if (stat(parent, &st) < 0 && errno != EACCES)
		diag_add(diag, path, line, "path: the directory %s: %m", parent);
	else if (!slash[1] || (!stat(file, &st) && S_ISDIR(st.st_mode)))
		diag_add(diag, path, line, "path: %s is a directory, write the path of a file", file);
	return 0;
}

/* A pipe without a reader is refused instead of waited for, and what is written may be waited for again. */
static int open_path(const char *path)
{
	_cleanup_(closep) int fd =
		open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
	int flags = fd < 0 ? -1 : fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int open_failed(const struct exporter *exporter, const char *path, int err)
{
	struct stat st;

	if (err == -ENXIO && !stat(path, &st) && S_ISFIFO(st.st_mode))
		log_error("exporter %s: path: %s is a pipe that nobody reads", exporter->name, path);
	else
		log_error("exporter %s: path: %s: %s", exporter->name, path, strerror(-err));
	return err;
}

/* Did whoever wrote the file last (a process that was killed, a disk that was full) end in the midst of a line? */
static bool ends_torn(const char *path)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	char last;

	return fd >= 0 && !fstat(fd, &st) && st.st_size && pread(fd, &last, 1, st.st_size - 1) == 1 &&
	       last != '\n';
}

int stream_open(struct exporter *exporter, const void *untyped)
{
	const struct stream_options *options = untyped;
	int fd = STDOUT_FILENO;
	struct stream *stream;
	struct stat st;

	if (strcmp(options->path, "-")) {
		fd = open_path(options->path);
		if (fd < 0)
			return open_failed(exporter, options->path, fd);
	}
	stream = calloc(1, sizeof(*stream));
	if (!stream) {
		if (fd != STDOUT_FILENO)
			close(fd);
		return -ENOMEM;
	}
	stream->fd = fd;
	stream->is_owned = fd != STDOUT_FILENO;
	stream->is_terminal = isatty(fd);
	stream->can_block = fstat(fd, &st) < 0 || !S_ISREG(st.st_mode);
	stream->is_torn = stream->is_owned && !stream->can_block && ends_torn(options->path);
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

/* Takes what was written of out from the end of the file again, unless somebody else has appended since. */
static bool cut_back(const struct stream *stream)
{
	off_t end = lseek(stream->fd, 0, SEEK_CUR), start = end - (off_t)stream->n_written;
	struct stat st;

	if (stream->can_block || end < 0 || start < 0 || fstat(stream->fd, &st) < 0 || st.st_size != end)
		return false;
	return !ftruncate(stream->fd, start) && lseek(stream->fd, start, SEEK_SET) == start;
}

/* The rest of out will never be written: no half line may stay that the next one would be glued to. */
static void mend(struct stream *stream)
{
	if (stream->n_written && !cut_back(stream))
		stream->is_torn = stream->out.data[stream->n_written - 1] != '\n';
}

void stream_close(struct exporter *exporter)
{
	struct stream *stream = exporter->state;

	if (!stream)
		return;
	if (write_rest(stream, PATIENCE_END_MS) < 0)
		mend(stream);
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
	if (err == -EAGAIN)
		return 0;
	if (err) {
		mend(stream);
		exporter_account(exporter, POINTS_NOT_SENT, stream->n_points);
		if (!stats->is_failing)
			log_error("exporter %s: cannot write: %s", exporter->name, strerror(-err));
	} else {
		stream->is_torn = false;
		exporter_account(exporter, POINTS_DELIVERED, stream->n_points);
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
	if (!stream->n_points) {
		if (stream->is_torn)
			buf_append_byte(&stream->out, '\n');
		return true;
	}
	if (!exporter->stats.is_failing)
		log_warning("exporter %s: its reader does not read, points are dropped", exporter->name);
	exporter->stats.is_failing = true;
	exporter_account(exporter, POINTS_PUSHED, batch_count_points(batch));
	exporter_account(exporter, POINTS_QUEUE_FULL, batch_count_points(batch));
	return false;
}

int stream_flush(struct exporter *exporter, const struct batch *batch)
{
	struct stream *stream = exporter->state;

	stream->n_points = batch_count_points(batch);
	exporter_account(exporter, POINTS_PUSHED, stream->n_points);
	stream->n_pushed++;
	exporter->stats.requests++;
	return settle(exporter);
}

struct exporter_waiting stream_waiting(const struct exporter *exporter)
{
	const struct stream *stream = exporter->state;

	return (struct exporter_waiting){ stream->n_points, stream->out.size - stream->n_written, false };
}

void stream_window(const struct stream *stream, unsigned int *ret_columns, unsigned int *ret_lines)
{
	struct winsize size;
	bool is_known = !ioctl(stream->fd, TIOCGWINSZ, &size) && size.ws_col && size.ws_row;

	*ret_columns = is_known ? size.ws_col : 80;
	*ret_lines = is_known ? size.ws_row : 24;
}
