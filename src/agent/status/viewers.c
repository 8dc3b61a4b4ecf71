/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/viewers.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "agent/internal.h"
#include "agent/status/page.h"
#include "agent/status/socket.h"
#include "metric/copy.h"

struct viewers {
	struct agent *agent;
	struct listener listener;
	struct viewer {
		int fd; /* -1: there is none */
		sd_event_source *source;
		struct store store; /* what is sent; empty: it has been sent */
		size_t sent;
		unsigned int n_missed; /* collections, one after the other */
	} viewers[VIEWERS_MAX];
};

static void remove_viewer(struct viewer *viewer)
{
	viewer->source = sd_event_source_unref(viewer->source);
	stores_close(&viewer->store, 1);
	closep(&viewer->fd);
	*viewer = (struct viewer){ .fd = -1 };
}

static void send_more(struct viewer *viewer)
{
	struct store *store = &viewer->store;
	ssize_t n = send(viewer->fd, store->data + viewer->sent, store->size - viewer->sent,
			 MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN) {
		remove_viewer(viewer);
		return;
	}
	viewer->sent += n > 0 ? (size_t)n : 0;
	if (viewer->sent == store->size)
		store_reset(store);
	sd_event_source_set_io_events(viewer->source, store->size ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void write_message(const struct agent *agent, struct store *store)
{
	struct viewers_header header = { .magic = VIEWERS_MAGIC };
	_cleanup_(buf_done) struct buf problems = BUF_INIT;

	store_bytes(store, &header, sizeof(header));
	store_number(store, agent->options.interval_ns);
	store_number(store, agent->n_collections);
	page_append_problems(agent, "", "; ", &problems);
	store_text(store, buf_text(&problems));
	batch_write(&agent->batch, store);
	header.size = store->size;
	memcpy(store->data, &header, sizeof(header));
}

static void send_collection(const struct viewers *viewers, struct viewer *viewer)
{
	if (viewer->fd < 0)
		return;
	if (viewer->store.size) {
		if (++viewer->n_missed == VIEWERS_PATIENCE)
			remove_viewer(viewer);
		return;
	}
	viewer->sent = viewer->n_missed = 0;
	write_message(viewers->agent, &viewer->store);
	if (viewer->store.has_failed || viewer->store.size > VIEWERS_BYTES_MAX)
		remove_viewer(viewer);
	else
		send_more(viewer);
}

void viewers_tell(struct viewers *viewers)
{
	for (size_t i = 0; viewers && i < VIEWERS_MAX; i++)
		send_collection(viewers, &viewers->viewers[i]);
}

/* A viewer says nothing: what can be read is its end. */
static int on_viewer(sd_event_source *source, int fd, uint32_t events, void *user)
{
	if (events & ~(uint32_t)EPOLLOUT)
		remove_viewer(user);
	else
		send_more(user);
	return 0;
}

static int add_viewer(struct viewers *viewers, struct viewer *viewer, int fd)
{
	_cleanup_(closep) int memory = memfd_create("viewer", MFD_CLOEXEC);
	int r = memory < 0 ? -errno : stores_open(memory, &viewer->store, 1);

	viewer->fd = fd;
	return r ?:
	       sd_event_add_io(viewers->agent->event, &viewer->source, fd, EPOLLIN,
			       on_viewer, viewer);
}

/* It gets the last collection at once, if there is one. */
static int on_connect(sd_event_source *source, int fd, uint32_t events, void *user)
{
	int viewer = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct viewers *viewers = user;
	struct viewer *place = viewers->viewers;

	while (place < viewers->viewers + VIEWERS_MAX && place->fd >= 0)
		place++;
	if (viewer < 0 || place == viewers->viewers + VIEWERS_MAX) {
		closep(&viewer);
		return 0;
	}
	if (add_viewer(viewers, place, viewer) < 0)
		remove_viewer(place);
	else if (viewers->agent->n_collections)
		send_collection(viewers, place);
	return 0;
}

int viewers_new(struct agent *agent, struct viewers **ret_viewers)
{
	struct viewers *viewers = calloc(1, sizeof(*viewers));

	if (!viewers)
		return -ENOMEM;
	viewers->agent = agent;
	viewers->listener.fd = -1;
	for (size_t i = 0; i < VIEWERS_MAX; i++)
		viewers->viewers[i].fd = -1;
	listener_open(&viewers->listener, SOCKET_COLLECTIONS, 0660,
		      "\"bpfpush top\" cannot show the collections of this process", agent->event, on_connect, viewers);
	*ret_viewers = viewers;
	return 0;
}

void viewers_free(struct viewers *viewers)
{
	if (!viewers)
		return;
	for (size_t i = 0; i < VIEWERS_MAX; i++)
		remove_viewer(&viewers->viewers[i]);
	listener_close(&viewers->listener);
	free(viewers);
}
