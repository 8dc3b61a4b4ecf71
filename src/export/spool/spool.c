/* SPDX-License-Identifier: Apache-2.0 */
#include "export/spool/spool.h"

#include <errno.h>
#include <fcntl.h>

#include "export/spool/segment.h"
#include "util/cleanup.h"
#include "util/array.h"

struct segment *spool_segment(struct spool *spool, uint64_t place)
{
	for (size_t i = 0; i < spool->n_segments; i++)
		if (spool->segments[i].number == SPOOL_SEGMENT(place))
			return &spool->segments[i];
	return NULL;
}

int spool_begin_segment(struct spool *spool, uint32_t number)
{
	struct segment *segment = array_add(&spool->segments, &spool->n_segments, sizeof(*segment));
	int fd = segment ? segment_open(spool->directory, number, O_RDWR | O_CREAT | O_EXCL) :
		 -ENOMEM;

	if (fd < 0) {
		spool->n_segments -= segment != NULL;
		return fd;
	}
	segment->number = number;
	closep(&spool->tail);
	spool->tail = fd;
	return 0;
}

void spool_mark(struct spool *spool, uint64_t place, uint8_t mark)
{
	struct segment *segment = spool_segment(spool, place);
	_cleanup_(closep) int fd = -1;
	bool is_tail = segment == spool_tail(spool);

	if (!segment)
		return;
	if (!is_tail)
		fd = segment_open(spool->directory, segment->number, O_WRONLY);
	(void)record_mark(is_tail ? spool->tail : fd, SPOOL_OFFSET(place), mark);
}

void spool_replace(struct spool *spool, uint64_t place, size_t size)
{
	const struct replaced item = { place, size };

	if (array_append(&spool->replaced, &spool->n_replaced, &item))
		spool_mark(spool, place, SPOOL_REPLACED);
}

uint64_t spool_bytes(const struct spool *spool)
{
	uint64_t bytes = 0;

	array_for_each (segment, spool->segments, spool->n_segments)
		bytes += segment->size;
	return bytes;
}

int spool_read(struct spool *spool, uint64_t place, size_t size, uint8_t **ret_data)
{
	struct segment *segment = spool_segment(spool, place);
	bool is_tail = segment == spool_tail(spool);
	_cleanup_(closep) int fd = is_tail ? -1 :
				   segment_open(spool->directory, SPOOL_SEGMENT(place), O_RDONLY);
	int from = is_tail ? spool->tail : fd;
	int err = from < 0 ? from : record_read(from, SPOOL_OFFSET(place), size, ret_data);

	if (err == -EBADMSG && segment) {
		segment->is_damaged = true;
		spool->n_damaged++;
	}
	return err;
}

void spool_leave(struct spool *spool)
{
	spool_close(spool);
	spool->segments = NULL;
	spool->replaced = NULL;
	spool->n_segments = spool->n_replaced = spool->n_committed = 0;
	spool->directory = spool->tail = -1;
	spool->transaction = UINT64_MAX;
}

void spool_close(struct spool *spool)
{
	closep(&spool->tail);
	closep(&spool->directory);
	free(spool->segments);
	free(spool->replaced);
}
