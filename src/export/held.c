/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an exporter holds until it is sent, and beyond the end of the process: in memory that
 * outlives it, and on disk if there is a spool. The memory says which transaction of the spool was
 * the last, and has what could not be written.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/backlog.h"
#include "export/exporter.h"
#include "export/transport/timer.h"
#include "export/spool/requests.h"
#include "util/buf.h"
#include "util/duration.h"

#define DEFAULT_DIRECTORY "/var/lib/bpfpush"
#define REQUEST_BYTES	  4096 /* of a spool, for each request that may wait: most are larger */

static void limit_queue(struct exporter *exporter)
{
	struct queue *queue = &exporter->queue;

	/* The rest of the room is for what does not wait any more, until its segment goes. */
	queue->limit_bytes = exporter->spool.error ? SIZE_MAX : exporter->spool.limit_bytes / 4 * 3;
}

void exporter_set_spool(struct exporter *exporter, uint64_t limit_bytes, uint32_t format)
{
	const char *path = getenv("STATE_DIRECTORY"); /* of systemd */
	struct queue *queue = &exporter->queue;

	if (!limit_bytes || exporter->context->is_once || exporter->context->is_trial)
		return;
	exporter->spool.name = exporter->name;
	exporter->spool.path = path && *path ? path : DEFAULT_DIRECTORY;
	exporter->spool.format = format;
	exporter->spool.limit_bytes = limit_bytes;
	queue->spool = &exporter->spool;
	queue->limit_items += limit_bytes / REQUEST_BYTES;
	limit_queue(exporter);
}

static const char *words_of(int err)
{
	switch (err) {
	case -ENOENT: return "the state directory is not there; systemd makes it, or set STATE_DIRECTORY";
	case -ENOTSUP: return "another user owns it or can write to it";
	case -ESTALE: return "it was deleted";
	case -EWOULDBLOCK: return "another bpfpush uses it";
	default: return strerror(-err);
	}
}

static const char *segment_words(int err)
{
	if (err == -ENOENT)
		return "it is missing";
	return err == -ENOTSUP || err == -ELOOP ? "it is not a file that belongs to this user alone" : strerror(-err);
}

#define spool_warn(exporter, format, ...)					\
	exporter_log(exporter, LOG_LEVEL_WARNING, LOG_ID_SPOOL, "the spool %s/spool/%s" format,	\
		     (exporter)->spool.path, (exporter)->name, __VA_ARGS__)

static void update_error(struct exporter *exporter, int err)
{
	struct spool *spool = &exporter->spool;

	if (err == spool->error)
		return;
	spool->error = err;
	limit_queue(exporter);
	if (err)
		spool_warn(exporter, " cannot be used now: %s; what waits stays in memory", words_of(err));
	else
		exporter_log(exporter, LOG_LEVEL_INFO, LOG_ID_SPOOL, "the spool is used again");
}

/* Is there a spool, and can it be used? */
static bool is_spooled(const struct exporter *exporter)
{
	return exporter->queue.spool && exporter->spool.directory >= 0 && !exporter->spool.error;
}

/* Its files are gone: what is in memory, or in a file that is still open, goes on. */
static void abandon_spool(struct exporter *exporter)
{
	struct queue *queue = &exporter->queue;
	struct queue_item *item = TAILQ_FIRST(&queue->items), *next;

	for (; item; item = next) {
		next = TAILQ_NEXT(item, link);
		if (!item->place)
			continue;
		if (queue_load(queue, item))
			exporter_drop(exporter, POINTS_NOT_SENT, item->n_points, "points are lost: the spool was deleted");
		queue_unspool(queue, item);
		if (!item->data)
			queue_remove(queue, item);
	}
	spool_leave(&exporter->spool);
}

static void count_spooled(struct exporter *exporter, const uint64_t points[N_POINTS])
{
	const struct spool_found *found = &exporter->spool.found;
	uint64_t n = exporter->queue.n_points;

	for (enum points fate = 0; fate < N_POINTS; fate++)
		exporter_account(exporter, fate, points[fate]);
	if (exporter->queue.spooled_bytes)
		exporter_log(exporter, LOG_LEVEL_INFO, NULL, "%" PRIu64 " point%s of before wait in its spool", n, plural(n));
	exporter_drop_no_memory(exporter, found->n_unkept);
	if (found->n_foreign)
		spool_warn(exporter, ": %" PRIu64 " point%s lost, since another temporality or compression made them",
			   found->n_foreign, plural(found->n_foreign));
	if (found->n_damaged)
		spool_warn(exporter, ": %" PRIu64 " damaged record%s, %" PRIu64 " point%s lost%s; the segment becomes the file "
			   "\"damaged\" there", found->n_damaged, plural(found->n_damaged), found->n_lost,
			   plural(found->n_lost), found->n_unknown ? ", and others, whose number is not known" : "");
	if (found->n_unread)
		spool_warn(exporter, ": %" PRIu64 " segment%s cannot be read, and it is not known how many points are there; the "
			   "first is %08x: %s", found->n_unread, plural(found->n_unread), found->unread,
			   segment_words(found->unread_error));
}

void exporter_spool(struct exporter *exporter)
{
	struct queue *queue = &exporter->queue;
	uint64_t points[N_POINTS];
	int err;

	if (!queue->spool)
		return;
	if (queue->spool->directory >= 0) {
		err = spool_commit(queue->spool, queue);
		if (err == -ESTALE)
			abandon_spool(exporter);
	} else {
		/*
		 * The first commit is for later, when it is saved which transaction was the last.
		 */
		err = spool_open(queue->spool, queue, points);
		if (!err)
			count_spooled(exporter, points);
	}
	update_error(exporter, err);
	queue_aim(queue);
}

/* Drops what the queue has no room for. */
static void trim_queue(struct exporter *exporter)
{
	size_t n_dropped = queue_trim(&exporter->queue);

	exporter->n_losses += n_dropped != 0;
	exporter_drop(exporter, POINTS_QUEUE_FULL, n_dropped,
		      exporter->ops->merge ?
			      "its queue is full, the oldest points are dropped; queue_size in [agent], or spool, gives it more room" :
			      "its queue is full, the oldest points are dropped; queue_size in [agent] gives it more room");
}

void exporter_tidy(struct exporter *exporter, bool is_last)
{
	/* When no events come, nothing else makes a queue of them shorter. */
	if (exporter->ops->take)
		trim_queue(exporter);
	if (!exporter->ops->merge)
		return;
	is_last &= !is_spooled(exporter); /* a later process sends it then */
	backlog_tidy(exporter, is_last);
	trim_queue(exporter);
	queue_aim(&exporter->queue);
}

static int count_put(struct exporter *exporter, int err, size_t n_points)
{
	exporter->n_losses += err != 0;
	if (err)
		exporter_drop_no_memory(exporter, n_points);
	else if (!exporter->ops->merge)
		trim_queue(exporter);
	return err;
}

int exporter_enqueue(void *user, uint8_t *data, size_t size, size_t n_points)
{
	struct exporter *exporter = user;

	return count_put(exporter, queue_put(&exporter->queue, data, size, n_points), n_points);
}

int exporter_share(struct exporter *exporter, struct queue_item *of, size_t n_points)
{
	return count_put(exporter, of ? queue_share(&exporter->queue, of) : -ENOMEM, n_points);
}

int exporter_encode(struct exporter *exporter, const struct batch *batch)
{
	int err;

	exporter_remind(exporter);
	if (!exporter->has_window)
		queue_begin_window(&exporter->queue, batch->time_ns);
	exporter->has_window = false;
	err = exporter->ops->push(exporter, batch);
	exporter_tidy(exporter, batch->is_last);
	exporter_spool(exporter);
	return err;
}

void exporter_save(struct exporter *exporter, struct store *out)
{
	const struct queue *queue = &exporter->queue;
	struct queue_item *item;

	store_number(out, exporter->format);
	store_number(out, exporter->stats.delivered_ns);
	store_number(out, exporter->stats.failing_ns);
	store_text(out, exporter->stats.problem);
	for (enum points fate = POINTS_DELIVERED; fate < N_POINTS; fate++)
		store_number(out, exporter->stats.points[fate] - exporter->reported[fate]);
	store_number(out, exporter->position);
	store_number(out, exporter->n_doubtful);
	store_number(out, exporter->spool.transaction);
	store_number(out, exporter->spool.n_replaced);
	for (size_t i = 0; i < exporter->spool.n_replaced; i++)
		store_number(out, exporter->spool.replaced[i].place);
	TAILQ_FOREACH(item, &queue->items, link) {
		if (item->place)
			continue;
		item->mark = store_reserve(out, 1);
		store_bytes(out, &(uint8_t){ queue_mark(queue, item) }, 1);
		store_number(out, item->time_ns);
		store_number(out, item->n_points);
		store_number(out, item->size);
		store_bytes(out, item->data, item->size);
	}
}

void exporter_save_now(struct exporter *exporter)
{
	exporter_spool(exporter);
	if (exporter->context->save)
		exporter->context->save(exporter->context->save_user);
}

static void restore_item(struct exporter *exporter, struct stored *in, bool can_send)
{
	uint8_t *mark = (uint8_t *)stored_bytes(in, 1), *copy;
	/* What was given up in doubt still is: only who has it can say how much it counts. */
	bool is_sent = mark && (*mark == QUEUE_SENT || *mark == POINTS_IN_DOUBT);
	uint64_t time_ns = stored_number(in), n_points = stored_number(in),
		size = stored_number(in);
	const void *data = stored_bytes(in, size);
	struct queue_item *last;
	enum points fate;

	if (!data || !size)
		return;
	fate = *mark && *mark < N_POINTS ? *mark : POINTS_NOT_SENT;
	exporter_account(exporter, POINTS_PUSHED, n_points);
	if (*mark && !is_sent) { /* the process before has said so */
		exporter_account(exporter, fate, n_points);
		return;
	}
	if (!can_send) {
		exporter_drop(exporter, fate, n_points,
			      "what waited is lost, since settings that decide its format have changed");
		return;
	}
	copy = malloc(size);
	if (!copy) {
		exporter_drop_no_memory(exporter, n_points);
		return;
	}
	exporter->queue.time_ns = time_ns;
	if (exporter_enqueue(exporter, memcpy(copy, data, size), size, n_points))
		return;
	last = TAILQ_LAST(&exporter->queue.items, queue_items);
	if (!last || last->mark) /* there was no room for it */
		return;
	last->mark = mark;
	last->is_doubtful = is_sent && !exporter->queue.slot_ns; /* totals do not mind */
}

/* Of an exporter with this name. */
static const char *item_of(const char *name)
{
	const char *slash = strrchr(name, '/');

	for_each_signal(signal)
		if (slash && !strcmp(slash + 1, signal_words(signal)->name))
			return signal_words(signal)->item;
	return signal_words(SIGNAL_METRICS)->item;
}

void exporter_report_gone(const char *name, struct stored *in)
{
	const char *item = item_of(name);
	uint64_t n_waiting = 0, n, n_points;
	const uint8_t *mark;

	for (n = 0; n < 3; n++)
		(void)stored_number(in);
	(void)stored_text(in);
	for (n = POINTS_DELIVERED; n < N_POINTS + 3; n++)
		(void)stored_number(in);
	for (n = stored_number(in); n && !in->is_bad; n--)
		(void)stored_number(in);
	while (in->at < in->end && !in->is_bad) {
		mark = stored_bytes(in, 1);
		(void)stored_number(in);
		n_points = stored_number(in);
		(void)stored_bytes(in, stored_number(in));
		n_waiting += !in->is_bad && !*mark ? n_points : 0;
	}
	if (n_waiting)
		log_warning("exporter %s is not in use any more: %" PRIu64 " %s%s that waited %s lost",
			    name, n_waiting, item, plural(n_waiting), n_waiting == 1 ? "is" : "are");
}

void exporter_restore(struct exporter *exporter, struct stored *in, bool is_same)
{
	struct exporter_stats *stats = &exporter->stats;
	bool can_send = stored_number(in) == exporter->format;
	uint64_t delivered_ns = stored_number(in), failing_ns = stored_number(in), n;
	const char *problem = stored_text(in);

	for (enum points fate = POINTS_DELIVERED; fate < N_POINTS; fate++) {
		n = stored_number(in);
		exporter_account(exporter, POINTS_PUSHED, n);
		exporter_account(exporter, fate, n);
	}
	if (is_same && (failing_ns || !stats->is_failing)) {
		stats->is_failing = failing_ns != 0;
		stats->delivered_ns = delivered_ns;
		stats->failing_ns = failing_ns;
		snprintf(stats->problem, sizeof(stats->problem), "%s", problem);
	}
	exporter->position = stored_number(in);
	exporter->n_doubtful = stored_number(in);
	exporter_account(exporter, POINTS_PUSHED, exporter->n_doubtful);
	exporter->spool.transaction = stored_number(in);
	for (n = stored_number(in); n && !in->is_bad; n--)
		spool_replace(&exporter->spool, stored_number(in), 0);
	while (in->at < in->end && !in->is_bad)
		restore_item(exporter, in, can_send);
	exporter_tidy(exporter, false);
}
