/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a spool holds when a process begins. Requests count if their transaction was ended by a
 * commit, or if a later one has begun, since that is only after the commit. Then the log is cut
 * after the last that counts, and goes on in a segment of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "export/spool/requests.h"
#include "export/spool/segment.h"
#include "util/array.h"

/* A segment that is larger than any request makes it is not one of ours. */
#define SEGMENT_BYTES_MAX (256 << 20)

/*
 * A record, or a gap between records: the next one says how many points it has, its own bytes maybe
 * what they met.
 */
struct found {
	uint64_t place;
	struct spool_head head;
	bool is_intact, is_replaced, is_unknown;
};

struct loading {
	struct spool *spool;
	uint32_t number; /* of the segment that is read */
	const uint8_t *bytes;
	size_t at; /* after the last record */
	uint64_t n_logged; /* points up to there, unless that is not known */
	bool is_known;
	struct found *items; /* all records, as they are in the log */
	size_t n_items, n_gaps; /* which are the last of them, and the first stands for all */
	struct replacing {
		uint64_t place, transaction;
	} *replacing;
	size_t n_replacing;
	/* Of the last transaction: what its commit says, or 0. */
	uint64_t transaction, first, end;
};

static int take_commit(struct loading *loading, const struct spool_head *head, uint64_t place,
		       const uint8_t *data)
{
	size_t n = head->size / sizeof(uint64_t);

	if (loading->end || !n) /* the second of the two says the same */
		return 0;
	loading->end = place;
	memcpy(&loading->first, data, sizeof(loading->first));
	for (size_t i = 1; i < n; i++) {
		struct replacing item = { .transaction = head->transaction };

		memcpy(&item.place, data + i * sizeof(item.place), sizeof(item.place));
		if (array_append(&loading->replacing, &loading->n_replacing, &item))
			return -ENOMEM;
	}
	return 0;
}

/* It is left alone, or it is missing. */
static void skip_segment(struct loading *loading, uint32_t number, int err)
{
	struct spool_found *found = &loading->spool->found;

	loading->is_known = false;
	if (found->n_unread++)
		return;
	found->unread = number;
	found->unread_error = err;
}

static int add_gap(struct loading *loading, size_t end)
{
	struct spool_head head = { .mark = SPOOL_REPLACED };
	struct found *item;

	if (end <= loading->at)
		return 0;
	item = array_add(&loading->items, &loading->n_items, sizeof(*item));
	if (!item)
		return -ENOMEM;
	if (end - loading->at >= sizeof(head)) /* else it has no mark */
		memcpy(&head, loading->bytes + loading->at, sizeof(head));
	*item = (struct found){ SPOOL_PLACE(loading->number, loading->at), {
		.kind = SPOOL_REQUEST, .mark = head.mark, .not_mark = head.not_mark,
		.format = loading->spool->format,
		.size = (uint32_t)(end - loading->at), .transaction = loading->transaction,
		.n_before = loading->n_logged }, false, false, false };
	loading->n_gaps++;
	spool_tail(loading->spool)->is_damaged = true;
	return 0;
}

/* The record after gaps, or after a segment that is missing. */
static void resolve_gaps(struct loading *loading, const struct spool_head *head)
{
	struct found *gaps = loading->n_items ?
			     &loading->items[loading->n_items - loading->n_gaps] : NULL;
	bool is_known = loading->is_known && head->n_before >= loading->n_logged;

	for (size_t i = 0; i < loading->n_gaps; i++) {
		gaps[i].head.transaction = head->transaction;
		gaps[i].head.n_before = head->n_before;
	}
	if (loading->n_gaps) {
		gaps->is_unknown = !is_known;
		gaps->head.n_points = is_known ? head->n_before - loading->n_logged : 0;
		gaps->head.n_before -= gaps->head.n_points;
	} else if (loading->is_known && head->n_before != loading->n_logged && loading->n_items) {
		struct segment *before = spool_segment(loading->spool, gaps[-1].place);

		before->is_to_go = true; /* so that this is said only once */
		skip_segment(loading, before->number + 1, -ENOENT);
	}
	loading->n_gaps = 0;
	loading->is_known = true;
	loading->n_logged = head->n_before + head->n_points;
}

/* At the end of the log is the second of two commits, or nobody knows what. */
static void resolve_last_gaps(struct loading *loading)
{
	struct found *gaps = loading->n_items ?
			     &loading->items[loading->n_items - loading->n_gaps] : NULL;

	if (loading->n_gaps)
		gaps->is_unknown = loading->n_gaps != 1 || loading->n_gaps == loading->n_items ||
				   gaps[-1].head.kind != SPOOL_COMMIT ||
				   gaps->head.size != spool_record_bytes(gaps[-1].head.size);
}

static int take_record(void *user, const struct spool_head *head, uint64_t offset,
		       const uint8_t *data)
{
	struct loading *loading = user;
	uint64_t place = SPOOL_PLACE(loading->number, offset);
	const struct found item = { place, *head, data, false, false };
	int err = add_gap(loading, offset);

	if (err)
		return err;
	resolve_gaps(loading, head);
	loading->at = offset + spool_record_bytes(head->size);
	if (head->transaction != loading->transaction) {
		loading->transaction = head->transaction;
		loading->first = loading->end = 0;
	}
	if (array_append(&loading->items, &loading->n_items, &item))
		return -ENOMEM;
	spool_tail(loading->spool)->is_damaged |= !data;
	return head->kind == SPOOL_COMMIT && data ? take_commit(loading, head, place, data) : 0;
}

static int read_segment(struct loading *loading, uint32_t number, bool is_last)
{
	_cleanup_(closep) int fd = segment_open(loading->spool->directory, number, O_RDWR);
	_cleanup_(freep) uint8_t *bytes = NULL;
	struct segment *segment;
	struct stat status;
	size_t end = 0, size;
	ssize_t n;
	int err = fd < 0 ? fd : 0;

	if (!err && fstat(fd, &status))
		err = -errno;
	else if (!err && status.st_size > SEGMENT_BYTES_MAX)
		err = -EFBIG;
	if (!err && !status.st_size)
		return segment_remove(loading->spool->directory, number, false);
	bytes = err ? NULL : malloc((size_t)status.st_size);
	n = bytes ? pread(fd, bytes, (size_t)status.st_size, 0) : 0;
	if (err || n < 0) {
		skip_segment(loading, number, err ?: -errno);
		return 0;
	}
	segment = bytes ?
		  array_add(&loading->spool->segments, &loading->spool->n_segments,
			    sizeof(*segment)) : NULL;
	if (!segment)
		return -ENOMEM;
	*segment = (struct segment){ .number = number, .size = (uint64_t)status.st_size };
	loading->number = number;
	loading->bytes = bytes;
	loading->at = 0;
	size = (size_t)n;
	err = records_find(bytes, size, take_record, loading, &end);
	if (!err && is_last && n == status.st_size && end < size) {
		err = ftruncate(fd, (off_t)end) ? -errno : 0;
		segment->size = size = end;
	}
	return err ?: add_gap(loading, size);
}

static int compare_replacing(const void *left, const void *right)
{
	const struct replacing *a = left, *b = right;

	return (a->place > b->place) - (a->place < b->place);
}

/* What a commit that counts has replaced, or a state that was saved after it. */
static int find_replaced(struct loading *loading)
{
	struct spool *spool = loading->spool;
	size_t at = 0, n = 0;

	for (size_t i = 0; i < spool->n_replaced; i++) {
		const struct replacing item = { spool->replaced[i].place, 0 };

		if (array_append(&loading->replacing, &loading->n_replacing, &item))
			return -ENOMEM;
	}
	for (size_t i = 0; i < loading->n_replacing; i++)
		if (loading->replacing[i].transaction <= spool->transaction)
			loading->replacing[n++] = loading->replacing[i];
	if (n)
		qsort(loading->replacing, n, sizeof(*loading->replacing), compare_replacing);
	for (size_t i = 0; i < loading->n_items; i++) {
		while (at < n && loading->replacing[at].place < loading->items[i].place)
			at++;
		loading->items[i].is_replaced = at < n &&
						loading->replacing[at].place ==
						loading->items[i].place;
	}
	return 0;
}

/* Later transactions are not to come back when their numbers are used again. */
static int cut_log(struct loading *loading)
{
	struct spool *spool = loading->spool;
	size_t n = loading->n_items;
	struct segment *segment;
	_cleanup_(closep) int fd = -1;

	while (n && loading->items[n - 1].head.transaction > spool->transaction)
		n--;
	if (n == loading->n_items)
		return 0;
	segment = spool_segment(spool, loading->items[n].place);
	segment->size = SPOOL_OFFSET(loading->items[n].place);
	fd = segment_open(spool->directory, segment->number, O_WRONLY);
	if (fd < 0 || ftruncate(fd, (off_t)segment->size))
		return -errno;
	for (size_t i = (size_t)(segment - spool->segments) + 1; i < spool->n_segments; i++)
		(void)segment_remove(spool->directory, spool->segments[i].number, false);
	spool->n_segments = (size_t)(segment - spool->segments) + 1;
	loading->n_items = n;
	return 0;
}

/*
 * Does it wait? What cannot be read or used is lost; what has ended since the state was saved is in
 * no count yet.
 */
static bool is_waiting(const struct loading *loading, const struct found *item,
		       uint64_t points[N_POINTS])
{
	const struct spool_head *head = &item->head;
	struct spool *spool = loading->spool;
	struct spool_found *found = &spool->found;
	bool is_void = head->transaction == loading->transaction && loading->end &&
		       item->is_intact &&
		       (item->place < loading->first || item->place > loading->end);
	bool is_whole = (head->mark ^ head->not_mark) == UINT8_MAX;

	if (is_void || item->is_replaced || head->kind != SPOOL_REQUEST ||
	    (is_whole && head->mark == SPOOL_REPLACED))
		return false;
	points[POINTS_PUSHED] += head->n_points;
	/* Of what was given up in doubt, only its data can say how much it counts. */
	if (is_whole && head->mark && head->mark < N_POINTS && head->mark != POINTS_IN_DOUBT) {
		points[head->mark] += head->n_points;
		return false;
	}
	found->n_damaged += !item->is_intact || !is_whole;
	spool_segment(spool, item->place)->is_damaged |= !item->is_intact || !is_whole;
	found->n_unknown += item->is_unknown;
	if (item->is_intact && head->format == spool->format)
		return true;
	points[POINTS_NOT_SENT] += head->n_points;
	*(item->is_intact ? &found->n_foreign : &found->n_lost) += head->n_points;
	return false;
}

static int compare_times(const void *left, const void *right)
{
	const struct found *a = left, *b = right;

	if (a->head.time_ns != b->head.time_ns)
		return a->head.time_ns > b->head.time_ns ? 1 : -1;
	return (a->place > b->place) - (a->place < b->place);
}

static void fill_queue(struct loading *loading, struct queue *queue, uint64_t points[N_POINTS])
{
	struct spool *spool = loading->spool;
	size_t n = 0;

	for (size_t i = 0; i < loading->n_items; i++)
		if (is_waiting(loading, &loading->items[i], points))
			loading->items[n++] = loading->items[i];
		else if (loading->items[i].head.mark != SPOOL_REPLACED)
			spool_mark(spool, loading->items[i].place, SPOOL_REPLACED);
	if (n)
		qsort(loading->items, n, sizeof(*loading->items), compare_times);
	for (size_t i = 0; i < n; i++) {
		const struct spool_head *head = &loading->items[i].head;
		struct queue_item item = { .place = loading->items[i].place, .size = head->size,
					   .n_points = head->n_points, .time_ns = head->time_ns,
					   .is_doubtful = head->mark };

		if ((head->mark ^ head->not_mark) != UINT8_MAX) /* it is whole from now on */
			spool_mark(spool, item.place, head->mark ? QUEUE_SENT : 0);
		if (queue_put_spooled(queue, &item))
			spool->found.n_unkept += head->n_points;
		spool_segment(spool, item.place)->live_bytes += spool_record_bytes(head->size);
	}
}

static int load_segments(struct loading *loading, const uint32_t *numbers, size_t n)
{
	struct spool *spool = loading->spool;
	uint32_t last_number = n ? numbers[n - 1] : 0;
	uint64_t last;
	int err = 0;

	loading->is_known = n && numbers[0] == 1;
	for (size_t i = 0; i < n && !err; i++)
		err = read_segment(loading, numbers[i], i + 1 == n);
	if (err)
		return err;
	resolve_last_gaps(loading);
	last = loading->end || !loading->transaction ? loading->transaction :
	       loading->transaction - 1;
	if (spool->transaction == UINT64_MAX)
		spool->transaction = last;
	err = find_replaced(loading) ?: cut_log(loading);
	if (!err && loading->n_items) {
		const struct spool_head *head = &loading->items[loading->n_items - 1].head;

		spool->n_logged = head->n_before + head->n_points;
	}
	return err ?: spool_begin_segment(spool, last_number + 1);
}

static int read_all(struct loading *loading)
{
	_cleanup_(freep) uint32_t *numbers = NULL;
	int directory = loading->spool->directory, err = directory < 0 ? directory : 0;
	size_t n;

	if (!err && faccessat(directory, ".", W_OK, 0))
		err = -errno;
	err = err ?: segments_list(directory, &numbers, &n);
	return err ?: load_segments(loading, numbers, n);
}

int spool_open(struct spool *spool, struct queue *queue, uint64_t ret_points[N_POINTS])
{
	struct loading loading = { .spool = spool };
	const struct spool before = *spool;
	int err;

	memset(ret_points, 0, N_POINTS * sizeof(*ret_points));
	spool->found = (struct spool_found){ 0 };
	spool->n_logged = 0;
	spool->directory = segment_directory(spool->path, spool->name);
	err = read_all(&loading);
	if (!err) {
		fill_queue(&loading, queue, ret_points);
		spool->n_damaged += spool->found.n_damaged + spool->found.n_unread;
		spool->n_replaced = 0;
		array_shrink(&spool->replaced, before.n_replaced, 0, sizeof(*spool->replaced));
	} else {
		closep(&spool->directory);
		closep(&spool->tail);
		free(spool->segments);
		*spool = before;
	}
	free(loading.items);
	free(loading.replacing);
	return err;
}
