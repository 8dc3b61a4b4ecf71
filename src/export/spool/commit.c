/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "export/spool/requests.h"
#include "export/spool/segment.h"
#include "util/array.h"

/* A segment takes no more records when it is larger than this, or than a part of the spool. */
#define SEGMENT_BYTES ((uint64_t)1 << 20)
#define SEGMENTS_MIN  8
#define COMMITS	      2
/* That are in memory for a compaction. */
#define COMPACTED_BYTES (2 * SEGMENT_BYTES)

static int append_record(struct spool *spool, struct spool_head *head, const void *data,
			 uint64_t *ret_place)
{
	struct segment *tail = spool_tail(spool);
	int err;

	if (tail->size >= SEGMENT_BYTES || tail->size >= spool->limit_bytes / SEGMENTS_MIN) {
		err = spool_begin_segment(spool, tail->number + 1);
		if (err)
			return err;
		tail = spool_tail(spool);
	}
	head->format = spool->format;
	head->transaction = spool->transaction + 1;
	head->n_before = spool->n_logged;
	err = record_write(spool->tail, tail->size, head, data);
	if (err)
		return err;
	*ret_place = SPOOL_PLACE(tail->number, tail->size);
	tail->size += spool_record_bytes(head->size);
	spool->n_logged += head->n_points;
	return 0;
}

static int append_commit(struct spool *spool, uint64_t first)
{
	size_t n = spool->n_replaced + 1;
	uint64_t *places = calloc(n, sizeof(*places)), place;
	struct spool_head head = { .kind = SPOOL_COMMIT, .size = (uint32_t)(n * sizeof(*places)) };
	int err = places ? 0 : -ENOMEM;

	for (size_t i = 1; i < n && !err; i++)
		places[i] = spool->replaced[i - 1].place;
	for (int i = 0; i < COMMITS && !err; i++) {
		places[0] = first;
		err = append_record(spool, &head, places, &place);
	}
	free(places);
	return err;
}

/* The state was saved since the last commit: it does not need what that replaced. */
static void drop_replaced(struct spool *spool)
{
	size_t n = spool->n_committed, n_before = spool->n_replaced;

	for (size_t i = 0; i < n; i++) {
		struct segment *segment = spool_segment(spool, spool->replaced[i].place);

		spool_mark(spool, spool->replaced[i].place, SPOOL_REPLACED);
		if (segment)
			segment->live_bytes -= spool_record_bytes(spool->replaced[i].size);
	}
	spool->n_committed = 0;
	if (!n)
		return;
	spool->n_replaced -= n;
	memmove(spool->replaced, spool->replaced + n, spool->n_replaced * sizeof(*spool->replaced));
	array_shrink(&spool->replaced, n_before, spool->n_replaced, sizeof(*spool->replaced));
}

static void remove_segments(struct spool *spool, size_t from, size_t n)
{
	struct segment *segments = spool->segments + from;

	for (size_t i = 0; i < n; i++)
		(void)segment_remove(spool->directory, segments[i].number, segments[i].is_damaged);
	spool->n_segments -= n;
	memmove(segments, segments + n, (spool->n_segments - from) * sizeof(*segments));
}

/*
 * Those at the front in which nothing waits. What a commit in them replaced was before it, and has
 * gone as well.
 */
static void remove_dead(struct spool *spool)
{
	size_t n = 0;

	while (n + 1 < spool->n_segments && !spool->segments[n].live_bytes)
		n++;
	remove_segments(spool, 0, n);
}

/*
 * What waits in segments at the front is to be written again, so that they can go: too much, or up
 * to a damaged one.
 */
static void compact_segments(struct spool *spool, struct queue *queue)
{
	uint64_t bytes = spool_bytes(spool),
		excess = bytes > spool->limit_bytes ? bytes - spool->limit_bytes : 0;
	uint64_t live_bytes = 0;
	struct queue_item *item;
	size_t n_to_go = 0;

	for (size_t i = 0; i + 1 < spool->n_segments; i++)
		n_to_go = spool->segments[i].is_damaged || spool->segments[i].is_to_go ?
			  i + 1 : n_to_go;
	for (size_t i = 0; i + 1 < spool->n_segments && (excess || i < n_to_go); i++) {
		const struct segment *segment = &spool->segments[i];
		uint64_t dead_bytes = segment->size - segment->live_bytes;

		if (live_bytes >= COMPACTED_BYTES || spool->error)
			break;
		live_bytes += segment->live_bytes;
		excess -= dead_bytes < excess ? dead_bytes : excess;
		TAILQ_FOREACH(item, &queue->items, link)
			if (SPOOL_SEGMENT(item->place) == segment->number && !item->is_damaged &&
			    !queue_load(queue, item))
				queue_unspool(queue, item);
	}
}

static void roll_back(struct spool *spool, size_t n_segments, uint64_t size)
{
	struct segment *tail;
	int fd;

	remove_segments(spool, n_segments, spool->n_segments - n_segments);
	tail = spool_tail(spool);
	fd = segment_open(spool->directory, tail->number, O_RDWR);
	closep(&spool->tail);
	spool->tail = fd; /* without it, the next commit finds the spool gone */
	if (fd >= 0)
		(void)ftruncate(fd, (off_t)size);
	tail->size = size;
}

static int write_requests(struct spool *spool, struct queue *queue)
{
	const struct segment *tail = spool_tail(spool);
	uint64_t first = SPOOL_PLACE(tail->number, tail->size);
	struct queue_item *item;
	int err = 0;

	TAILQ_FOREACH(item, &queue->items, link) {
		struct spool_head head = { .kind = SPOOL_REQUEST, .size = (uint32_t)item->size,
					   .time_ns = item->time_ns, .n_points = item->n_points,
					   .mark = queue_mark(queue, item) };

		if (!err && !item->place)
			err = append_record(spool, &head, item->data, &item->next_place);
	}
	return err ?: append_commit(spool, first);
}

int spool_commit(struct spool *spool, struct queue *queue)
{
	size_t n_segments;
	struct queue_item *item;
	struct stat status;
	uint64_t size, n_logged = spool->n_logged;
	int err;

	if (fstat(spool->tail, &status) || !status.st_nlink)
		return -ESTALE;
	drop_replaced(spool);
	remove_dead(spool);
	compact_segments(spool, queue);
	if (queue->spooled_bytes == queue->size_bytes && !spool->n_replaced)
		return 0;
	n_segments = spool->n_segments;
	size = spool_tail(spool)->size;
	err = write_requests(spool, queue);
	if (err) {
		roll_back(spool, n_segments, size);
		spool->n_logged = n_logged;
	}
	/* if not by the commit, then in the state that is saved next */
	spool->n_committed = spool->n_replaced;
	if (err)
		return err;
	spool->transaction++;
	TAILQ_FOREACH(item, &queue->items, link) {
		if (item->place)
			continue;
		queue_spool(queue, item);
		spool_segment(spool, item->place)->live_bytes += spool_record_bytes(item->size);
	}
	return 0;
}
