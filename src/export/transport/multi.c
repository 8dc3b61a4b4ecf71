/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl says what it waits for through two callbacks: its sockets become I/O sources of sd-event,
 * its one timeout becomes a timer. When one fires, curl_multi_socket_action() goes on, and we ask
 * for finished transfers. libcurl may not be called from its own callbacks, so the end is told
 * after libcurl has returned, when the easy handle has left the multi handle, and the user is free
 * to begin again.
 */
#include "export/transport/multi.h"

#include <curl/curl.h>
#include <errno.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>

#include "util/duration.h"

static void go_on(struct multi *multi, curl_socket_t fd, int action);

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *user)
{
	int events = revents & EPOLLIN ? CURL_CSELECT_IN : 0;

	if (revents & EPOLLOUT)
		events |= CURL_CSELECT_OUT;
	if (revents & (EPOLLERR | EPOLLHUP))
		events |= CURL_CSELECT_ERR;
	go_on(user, fd, events);
	return 0;
}

static void on_timeout(void *user)
{
	go_on(user, CURL_SOCKET_TIMEOUT, 0);
}

static int socket_changed(CURL *easy, curl_socket_t fd, int what, void *user, void *socket_user)
{
	static const uint32_t events[] = {
		[CURL_POLL_IN] = EPOLLIN, [CURL_POLL_OUT] = EPOLLOUT,
					   [CURL_POLL_INOUT] = EPOLLIN | EPOLLOUT
	};
	struct multi *multi = user;
	sd_event_source *source = socket_user;

	if (what == CURL_POLL_REMOVE) {
		sd_event_source_disable_unref(source);
		curl_multi_assign(multi->handle, fd, NULL);
		return 0;
	}
	if (source)
		return sd_event_source_set_io_events(source, events[what]) < 0 ? -1 : 0;
	if (sd_event_add_io(multi->timeout.event, &source, fd, events[what], on_io, multi) < 0)
		return -1;
	curl_multi_assign(multi->handle, fd, source);
	return 0;
}

static int timeout_changed(CURLM *handle, long timeout_ms, void *user)
{
	struct multi *multi = user;

	/* libcurl has cut it to whole ms: called too early, it finds that it is not time yet. */
	timeout_ms += timeout_ms > 0;
	if (timeout_ms >= 0)
		return timer_arm(&multi->timeout, (uint64_t)timeout_ms * NS_PER_MS) < 0 ? -1 : 0;
	timer_disarm(&multi->timeout);
	return 0;
}

static void go_on(struct multi *multi, curl_socket_t fd, int action)
{
	const CURLMsg *message;
	CURLcode code;
	int n;

	curl_multi_socket_action(multi->handle, fd, action, &n);
	message = curl_multi_info_read(multi->handle, &n);
	if (!message)
		return;
	code = message->data.result; /* there is only one transfer, and only its end is a message */
	multi_stop(multi);
	multi->ended(multi->user, (int)code);
}

int multi_init(struct multi *multi, struct sd_event *event, multi_fn *ended, void *user)
{
	*multi = (struct multi){ .handle = curl_multi_init(), .ended = ended, .user = user,
				 .timeout = { event, on_timeout, multi, NULL } };
	if (!multi->handle)
		return -ENOMEM;
	curl_multi_setopt(multi->handle, CURLMOPT_SOCKETFUNCTION, socket_changed);
	curl_multi_setopt(multi->handle, CURLMOPT_SOCKETDATA, multi);
	curl_multi_setopt(multi->handle, CURLMOPT_TIMERFUNCTION, timeout_changed);
	curl_multi_setopt(multi->handle, CURLMOPT_TIMERDATA, multi);
	curl_multi_setopt(multi->handle, CURLMOPT_MAXCONNECTS, 1L);
	return 0;
}

int multi_begin(struct multi *multi, void *easy)
{
	if (curl_multi_add_handle(multi->handle, easy) != CURLM_OK)
		return -ENOMEM;
	multi->easy = easy;
	return 0;
}

void multi_stop(struct multi *multi)
{
	if (multi->easy)
		curl_multi_remove_handle(multi->handle, multi->easy);
	multi->easy = NULL;
}

void multi_done(struct multi *multi)
{
	multi_stop(multi);
	/* closes what it keeps, which takes the I/O sources away */
	curl_multi_cleanup(multi->handle);
	timer_done(&multi->timeout);
}
