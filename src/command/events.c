/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "command/setup.h"
#include "export/text/output.h"
#include "util/array.h"
#include "util/duration.h"
#include "view/event-lines.h"

#define POLL_MS 100
#define LOOK_NS (10 * NS_PER_S) /* how often names and the clock are looked at again */

enum { FORMAT_TABLE, FORMAT_CSV, FORMAT_JSON };

struct stream {
	const struct question *question;
	struct event_lines lines;
	struct buf out;
	int format;
	int err; /* -errno of the first write that failed */
};

static bool take_event(void *user, const struct event *event)
{
	struct stream *stream = user;

	if (!question_wants_event(stream->question, &event->attributes))
		return question_wants_owner(stream->question, &event->attributes);
	if (stream->format == FORMAT_JSON)
		event_append_json(event, &stream->out);
	else if (stream->format == FORMAT_CSV)
		event_lines_append_csv(&stream->lines, event, &stream->out);
	else
		event_lines_append(&stream->lines, event, &stream->out);
	return true;
}

/* Has a signal come that is to end the program, and that the loop has not seen yet? */
static bool is_to_end(void)
{
	sigset_t set;

	return !sigpending(&set) &&
	       (sigismember(&set, SIGINT) == 1 || sigismember(&set, SIGTERM) == 1 ||
		sigismember(&set, SIGHUP) == 1);
}

/* A reader that does not read is waited for, but not by someone who wants to end. -errno. */
static int write_some(const uint8_t *data, size_t size)
{
	struct pollfd pollfd = { STDOUT_FILENO, POLLOUT, 0 };
	ssize_t n;

	while (poll(&pollfd, 1, POLL_MS) <= 0)
		if (is_to_end())
			return -ECANCELED;
	/* For so many bytes there is room. */
	n = write(STDOUT_FILENO, data, size < PIPE_BUF ? size : PIPE_BUF);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		n = 0;
	return n < 0 ? -errno : (int)n;
}

/* After a failure, all ends as after SIGTERM. */
static void write_out(void *user)
{
	struct stream *stream = user;
	struct buf *out = &stream->out;
	int r = buf_error(out);

	for (size_t at = 0; at < out->size && r >= 0 && !stream->err; at += (size_t)r)
		r = write_some(out->data + at, out->size - at);
	buf_reset(out);
	if (r >= 0 || stream->err)
		return;
	stream->err = r;
	if (r != -ECANCELED)
		kill(getpid(), SIGTERM);
}

/* The columns of all events that collectors here may make; how many kinds there are. */
static size_t add_columns(const struct collector_set *set, struct event_lines *lines)
{
	size_t n_kinds = 0;

	for (size_t i = 0; i < set->n_shown; i++) {
		struct names names = { 0 };

		for (size_t j = 0; collector_event(set->items[i], j, &names); j++)
			n_kinds++;
		for (size_t j = 0; j < names.n; j++)
			event_lines_add_column(lines, names.items[j]);
	}
	lines->has_several = n_kinds > 1;
	return n_kinds;
}

static struct event_losses sum_losses(const struct collector *collector)
{
	struct event_losses sum = { 0 };
	struct names names = { 0 };

	for (size_t i = 0; collector_event(collector, i, &names); i++) {
		struct event_losses losses = collector_event_losses(collector, i);

		sum.limited += losses.limited;
		sum.full += losses.full;
		sum.damaged += losses.damaged;
	}
	return sum;
}

static void report_losses(const struct collector_set *set)
{
	for (size_t i = 0; i < set->n_shown; i++) {
		const char *name = set->items[i]->name;
		struct event_losses losses = sum_losses(set->items[i]);

		if (losses.limited)
			fprintf(stderr, "bpfpush events: %s: %" PRIu64 " more event%s happened than rate_limit lets through; "
				"--set=%s.rate_limit=0 shows all\n", name, losses.limited, plural(losses.limited), name);
		if (losses.full)
			fprintf(stderr, "bpfpush events: %s: %" PRIu64 " event%s found no room, since they came faster than they "
				"were written\n", name, losses.full, plural(losses.full));
		if (losses.damaged)
			fprintf(stderr, "bpfpush events: %s: %" PRIu64 " record%s shorter than the structure in the descriptor\n",
				name, losses.damaged, losses.damaged == 1 ? " is" : "s are");
	}
}

int command_events(const struct arguments *arguments)
{
	_cleanup_(setup_done) struct setup setup = { 0 };
	struct stream stream = { .question = &setup.question, .format = arguments->format,
				 .out = BUF_INIT };
	const struct event_sink sink = { take_event, write_out, &stream };
	enum exit_code code = setup_open(arguments, arguments->words, &setup);

	if (code != EXIT_OK)
		return code;
	stream.lines.has_all_owners = arguments->format == FORMAT_CSV;
	stream.lines.is_alone = arguments->is_alone && arguments->format == FORMAT_TABLE;
	if (!add_columns(&setup.set, &stream.lines)) {
		fprintf(stderr, "bpfpush events: no collector that counts here has events: name one that has, like exec\n");
		return EXIT_USE;
	}
	stream.lines.has_colour = output_has_colour(STDOUT_FILENO, &stream.lines.width);
	if (!isatty(STDOUT_FILENO))
		stream.lines.width = 0;
	setup.counting.sink = &sink;
	setup.counting.interval_ns = LOOK_NS;
	code = setup_count(arguments, &setup, NULL);
	buf_done(&stream.out);
	report_losses(&setup.set);
	if (stream.err == -ECANCELED)
		fprintf(stderr, "bpfpush events: lines are missing at the end, since their reader did not read\n");
	else if (stream.err) {
		fprintf(stderr, "bpfpush events: standard output cannot be written: %s\n", strerror(-stream.err));
		return EXIT_OUTPUT;
	}
	return code == EXIT_OK ? setup.status : (int)code;
}
