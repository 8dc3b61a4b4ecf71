/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events and spans as entries of the journal, with a field for each attribute:
 * systemd.journal-fields(7) and https://systemd.io/JOURNAL_NATIVE_PROTOCOL. Each entry is a
 * datagram, and goes as StatsD's over a unix socket do (transport/udp.c).
 */
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "export/exporter.h"
#include "export/transport/socket.h"
#include "metric/event.h"
#include "util/array.h"
#include "util/buf.h"
#include "util/duration.h"
#include "util/hash.h"

#define FIELD_BYTES  64 /* the longest name */
#define RETRY_NS     (100 * NS_PER_MS)
#define RETRY_MAX_NS (30 * NS_PER_S)

struct journal_options {
	char *endpoint;
};

static int check_endpoint(const char *text, const char **ret_complaint)
{
	struct endpoint endpoint;
	int err = endpoint_parse(text, "", true, &endpoint, ret_complaint);

	if (!err && endpoint.path[0])
		return 0;
	*ret_complaint = "is not a socket; write one like unix:/run/systemd/journal/socket";
	return -EINVAL;
}

static const struct setting_row rows[] = {
	SETTING(struct journal_options, endpoint, "endpoint", SETTING_TEXT,
		"unix:/run/systemd/journal/socket", .check = check_endpoint),
};
static const struct setting_table journal_settings = SETTING_TABLE(rows, struct journal_options);

struct journal {
	struct socket *sock;
	struct buf entry, text;
};

static enum signals journal_signals(const void *options)
{
	return SIGNAL_EVENTS | SIGNAL_TRACES;
}

/* As syslog(3) numbers them. */
static const char *priority_of(enum severity severity)
{
	static const char *const names[] = { "7", "7", "6", "4", "3", "2" };

	return names[(severity - 1) / 4 % ARRAY_SIZE(names)];
}

/* With its size, because a value may have newlines. */
static void append_field(struct buf *out, const char *name, const char *value, size_t size)
{
	uint64_t size_le = htole64(size);

	buf_append_text(out, name);
	buf_append_byte(out, '\n');
	buf_append(out, &size_le, sizeof(size_le));
	buf_append(out, value, size);
	buf_append_byte(out, '\n');
}

static void append_text(struct buf *out, const char *name, const char *value)
{
	append_field(out, name, value, strlen(value));
}

static void append_buf(struct buf *out, const char *name, const struct buf *value)
{
	append_field(out, name, (const char *)value->data, value->size);
	out->error = out->error ?: buf_error(value);
}

/* process.pid: PROCESS_PID */
static void append_attribute(struct journal *journal, const struct attribute *attribute)
{
	char field[FIELD_BYTES + 1];
	size_t i = 0;

	for (; i < FIELD_BYTES && attribute->name[i]; i++)
		field[i] = attribute->name[i] == '.' ? '_' : (char)toupper(attribute->name[i]);
	field[i] = '\0';
	buf_reset(&journal->text);
	attribute_append(&journal->text, attribute);
	append_buf(&journal->entry, field, &journal->text);
}

static int make_entry(struct journal *journal, const struct event *event)
{
	struct buf *entry = &journal->entry;
	char time[24];

	buf_reset(entry);
	buf_reset(&journal->text);
	event_append_message(event, &journal->text);
	append_buf(entry, "MESSAGE", &journal->text);
	append_text(entry, "PRIORITY", priority_of(event->kind->severity));
	append_text(entry, "SYSLOG_IDENTIFIER", "bpfpush-events");
	append_text(entry, "EVENT_NAME", event->kind->name);
	append_text(entry, "BPFPUSH_COLLECTOR", event->kind->scope);
	snprintf(time, sizeof(time), "%" PRIu64, event->time_ns);
	append_text(entry, "EVENT_TIME_NS", time);
	array_for_each (attribute, event->attributes.items, event->attributes.n)
		append_attribute(journal, attribute);
	return buf_error(entry);
}

static void journal_take(struct exporter *exporter, const struct event *event)
{
	struct journal *journal = exporter->state;
	int err = make_entry(journal, event);
	uint8_t *data = err ? NULL : malloc(journal->entry.size);

	exporter_account(exporter, POINTS_PUSHED, 1);
	if (!data) {
		exporter_drop_no_memory(exporter, 1);
		return;
	}
	memcpy(data, journal->entry.data, journal->entry.size);
	queue_begin_window(&exporter->queue, event->time_ns);
	(void)exporter_enqueue(exporter, data, journal->entry.size, 1);
}

/* Sends what it can. That the journal does not read is only said once for each batch. */
static void journal_flush(struct exporter *exporter)
{
	struct journal *journal = exporter->state;

	journal->sock->ops->expired(journal->sock);
}

static int journal_push(struct exporter *exporter, const struct batch *batch)
{
	return 0;
}

static void journal_send(struct exporter *exporter, const struct batch *batch)
{
	struct journal *journal = exporter->state;

	journal->sock->ops->flush(journal->sock, batch->is_last, 0);
}

static int journal_probe(struct exporter *exporter)
{
	return socket_probe(((struct journal *)exporter->state)->sock);
}

static void journal_close(struct exporter *exporter)
{
	struct journal *journal = exporter->state;

	socket_free(journal->sock);
	buf_done(&journal->entry);
	buf_done(&journal->text);
}

static int journal_open(struct exporter *exporter, const void *untyped)
{
	const struct journal_options *options = untyped;
	struct journal *journal = exporter->state;
	struct sender_options sender = { .retry.initial_ns = RETRY_NS,
					 .retry.max_ns = RETRY_MAX_NS };
	const char *complaint;
	int err = endpoint_parse(options->endpoint, "", true, &sender.endpoint, &complaint);

	log_avoid_journal_socket();
	exporter->format = hash_text(HASH_STABLE_START, exporter->ops->type);
	err = err ?: socket_new(&udp_ops, exporter, &sender, &journal->sock);
	/* socket_new() has given it the budget of metrics. */
	queue_init(&exporter->queue, SIZE_MAX, exporter->context->events_budget);
	return err;
}

const struct exporter_ops journal_exporter = {
	.type = "journal",
	.signals = journal_signals,
	.takes = SIGNAL_EVENTS | SIGNAL_TRACES,
	.settings = &journal_settings,
	.state_bytes = sizeof(struct journal),
	.open = journal_open,
	.push = journal_push,
	.take = journal_take,
	.flush = journal_flush,
	.send = journal_send,
	.probe = journal_probe,
	.close = journal_close,
};
