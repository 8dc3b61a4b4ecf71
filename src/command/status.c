/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "agent/status/socket.h"
#include "agent/unit.h"
#include "command/command.h"

#define PATIENCE_S 10

/* A stream of the agent's answer, as in agent/status/page.h, or NULL. */
static FILE *ask(struct sockaddr_un *ret_address)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	_cleanup_(closep) int fd = socket_connect(SOCKET_STATUS, ret_address);
	FILE *answer;

	errno = fd < 0 ? -fd : 0;
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		return NULL;
	answer = fdopen(fd, "r");
	if (answer)
		(void)TAKE_FD(fd);
	return answer;
}

/* Why nobody listens. */
static const char *absence(void)
{
	_cleanup_(freep) char *state = unit_state();

	if (state && (!strcmp(state, "activating") || !strcmp(state, "reloading") || !strcmp(state, "deactivating")))
		return "the service is just starting or stopping: ask again in some seconds";
	if (state && !strcmp(state, "active"))
		return "the service has no RuntimeDirectory=, or is just starting";
	return "the service is not running: systemctl status bpfpush says why";
}

int command_status(const struct arguments *arguments)
{
	struct sockaddr_un address;
	_cleanup_(fclosep) FILE *answer = NULL;
	bool is_json = false;
	int code = EOF, c;

	if (arguments->n_words) {
		fprintf(stderr, "bpfpush status: takes no words: remove \"%s\"\n", arguments->words[0]);
		return EXIT_USE;
	}
	answer = ask(&address);
	if (answer) {
		errno = ECONNRESET; /* unless reading says otherwise */
		code = getc(answer);
	}
	if (code == EOF) {
		bool is_gone = !answer && (errno == ENOENT || errno == ECONNREFUSED);
		const char *why = is_gone	  ? absence() :
				  errno == EAGAIN ? "the service does not answer" : strerror(errno);

		fprintf(stderr, "bpfpush status: %s: %s%s\n", address.sun_path, why,
			errno == EACCES ? "; run it as root or in the service's group" : "");
		return errno == EACCES ? EXIT_RIGHTS : EXIT_NOT_RUNNING;
	}
	/* The answer is the service's, and whoever took that over shall not rule the terminal of root. */
	for (int last = 0; (c = getc(answer)) != EOF; last = c) {
		bool is_control = (c < 0x20 && c != '\n') || c == 0x7f || (last == 0xc2 && c < 0xa0);

		if (!c)
			is_json = true;
		else if (is_json == arguments->is_json)
			putchar(is_control ? '?' : c);
	}
	return code == '0' ? EXIT_OK : EXIT_FAILING;
}
