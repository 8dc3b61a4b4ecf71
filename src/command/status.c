/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "agent/status/socket.h"
#include "agent/unit.h"
#include "command/command.h"
#include "util/log.h"

#define PATIENCE_S	  10 /* for an answer that needs no work */
#define RELOAD_PATIENCE_S 60 /* while the service looks at all of its files */

/* A stream of the agent's answer, as in agent/status/page.h, or NULL. */
static FILE *open_answer(const char *name, time_t patience_s, struct sockaddr_un *ret_address)
{
	const struct timeval patience = { .tv_sec = patience_s };
	_cleanup_(closep) int fd = socket_connect(name, ret_address);
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
static const char *explain_absence(void)
{
	_cleanup_(freep) char *state = unit_state();

	if (state && (!strcmp(state, "activating") || !strcmp(state, "reloading") || !strcmp(state, "deactivating")))
		return "the service is just starting or stopping: ask again in some seconds";
	if (state && !strcmp(state, "active"))
		return "the service has no RuntimeDirectory=, or is just starting";
	return "the service is not running: systemctl status bpfpush says why";
}

/*
 * The answer's first character is '0' or '1'. remedy: if the socket is forbidden. ask_otherwise: if
 * there is none; it says whether it could; or NULL.
 */
static enum exit_code ask_service(const char *name, time_t patience_s, const char *remedy,
				  bool (*ask_otherwise)(void), FILE **ret_answer, bool *ret_is_well)
{
	struct sockaddr_un address;
	bool is_gone, is_otherwise;
	int digit = EOF, error;
	const char *why;

	*ret_answer = open_answer(name, patience_s, &address);
	if (*ret_answer) {
		errno = ECONNRESET; /* unless reading says otherwise */
		digit = getc(*ret_answer);
	}
	is_gone = errno == ENOENT || errno == ECONNREFUSED;
	is_otherwise = !*ret_answer && is_gone && ask_otherwise && ask_otherwise();
	*ret_is_well = digit == '0' || is_otherwise;
	if (digit == '0' || digit == '1' || is_otherwise)
		return EXIT_OK;
	error = errno;
	why = error == EAGAIN ? "the service does not answer" : strerror(error);
	if (is_gone || error == ECONNRESET)
		why = explain_absence();
	fprintf(stderr, "bpfpush %s: %s: %s%s\n", name, address.sun_path, why, error == EACCES ? remedy : "");
	return error == EACCES ? EXIT_RIGHTS : EXIT_NOT_RUNNING;
}

int command_status(const struct arguments *arguments)
{
	_cleanup_(fclosep) FILE *answer = NULL;
	bool is_json = false, is_well;
	enum exit_code code;
	int c;

	code = ask_service(SOCKET_STATUS, PATIENCE_S, "; run it as root or in the service's group", NULL, &answer, &is_well);
	if (code != EXIT_OK)
		return code;
	/*
	 * The answer is the service's, and an attacker who took that over shall not rule the
	 * terminal of root.
	 */
	for (int last = 0; (c = getc(answer)) != EOF; last = c) {
		bool is_control = (c < 0x20 && c != '\n') || c == 0x7f ||
				  (last == 0xc2 && c < 0xa0);

		if (!c)
			is_json = true;
		else if (is_json == arguments->is_json)
			putchar(is_control ? '?' : c);
	}
	return is_well ? EXIT_OK : EXIT_FAILING;
}

/* systemd names the service to a command of its unit: a service without sockets hears a signal. */
static bool send_signal(void)
{
	const char *pid = getenv("MAINPID");

	return pid && strtol(pid, NULL, 10) > 1 && !kill((pid_t)strtol(pid, NULL, 10), SIGHUP);
}

int command_reload(const struct arguments *arguments)
{
	_cleanup_(fclosep) FILE *answer = NULL;
	struct arguments quiet = *arguments;
	enum exit_code code;
	bool is_well = true;

	if (arguments->config_path || arguments->collector_directory) {
		fprintf(stderr, "bpfpush reload: the service reads its own files: remove --%s\n",
			arguments->config_path ? "config" : "collector-directory");
		return EXIT_USE;
	}
	/*
	 * The service knows its credentials itself; whether a command of its unit sees them depends
	 * on systemd.
	 */
	unsetenv("CREDENTIALS_DIRECTORY");
	unsetenv("NOTIFY_SOCKET");
	if (quiet.log_level < 0)
		quiet.log_level = LOG_LEVEL_WARNING;
	log_set_level((enum log_level)quiet.log_level);
	code = command_check(&quiet);
	(void)fflush(stdout);
	if (code == EXIT_OK)
		code = ask_service(SOCKET_RELOAD, RELOAD_PATIENCE_S, "; run it as root", send_signal,
				   &answer, &is_well);
	if (!is_well && code == EXIT_OK) {
		fprintf(stderr, "bpfpush reload: the service does not use the new configuration, and goes on as before; its log "
				"says why: journalctl --unit=bpfpush\n");
		return EXIT_SETTINGS;
	}
	return code;
}
