/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes back over a connection: the status line, headers, Retry-After and the body, as libcurl and then the
 * exporter read them. A socket pair is the connection. The input is all that the other side says.
 */
#include <curl/curl.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "export/otlp/answer.h"
#include "export/transport/retry-after.h"
#include "util/cleanup.h"

#define BODY_BYTES 1024
#define N_POINTS   10

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *said;
static size_t said_bytes;
static unsigned int n_answers;
static int other_end = -1;

static void demand(bool is_true)
{
	if (!is_true)
		abort();
}

/* Instead of that of libc: whatever libcurl connects to is this process, which has said all that it has to say. */
int connect(int fd, const struct sockaddr *address, socklen_t size)
{
	int ends[2];

	demand(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends));
	demand(dup3(ends[0], fd, O_CLOEXEC) == fd && !close(ends[0]));
	if (other_end >= 0)
		close(other_end);
	other_end = ends[1];
	demand(write(other_end, said, said_bytes) == (ssize_t)said_bytes && !shutdown(other_end, SHUT_WR));
	return 0;
}

static void on_answer(void *user, const struct http_answer *http)
{
	struct otlp_answer answer;

	n_answers++;
	demand(!http->status || (http->status >= 200 && http->status <= 999));
	demand(http->content_type && http->body_size <= BODY_BYTES && (http->body || !http->body_size));
	demand(http->retry_after_ns <= RETRY_AFTER_MAX_NS && http->retry_after_ns % NS_PER_S == 0);
	demand(http->failure == HTTP_UNREACHED || http->failure == HTTP_UNANSWERED || http->status);
	demand(http->failure == HTTP_OK || *http->problem);

	otlp_answer_read(http, N_POINTS, &answer);
	demand(answer.n_rejected <= N_POINTS && answer.retry_after_ns <= http->retry_after_ns);
	demand(answer.verdict != OTLP_ACCEPTED || (http->status >= 200 && http->status < 300));
	demand(http->status || answer.verdict != OTLP_REFUSED);
	sd_event_exit(user, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct http_options options = { .url = "http://127.0.0.1/v1/metrics", .user_agent = "fuzz",
						     .lifetime_s = 60, .limit_response_bytes = BODY_BYTES };
	struct http_client *client = NULL;
	sd_event *event = NULL;

	said = data;
	said_bytes = size;
	n_answers = 0;
	demand(sd_event_new(&event) >= 0 && !http_client_new(event, &options, &client));
	demand(!http_client_reset_headers(client));
	demand(!http_client_post(client, (const uint8_t *)"x", 1, on_answer, event));
	demand(sd_event_loop(event) >= 0 && n_answers == 1);
	http_client_free(client);
	sd_event_unref(event);
	return 0;
}
