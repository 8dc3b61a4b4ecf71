/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "agent/status/socket.h"
#include "command/ask.h"
#include "command/setup.h"
#include "top/screen.h"
#include "top/top.h"
#include "util/duration.h"
#include "util/log.h"
#include "util/parse.h"

#define INTERVAL_NS (2 * NS_PER_S) /* for a person who watches */

/*
 * r: of top_run() or top_watch(). Sets *ret_wish if an agent is to be run then: TOP_PROCESSES or
 * TOP_ALONE.
 */
static enum exit_code report_end(int r, int *ret_wish)
{
	static const char *const of_service[] = {
		[EPROTO] = "what the service sends cannot be read; is it of another version?",
		[EBUSY] = "too many others watch the service",
		[ECONNRESET] = "the service has ended",
	};
	const char *words = r < 0 && -r < (int)ARRAY_SIZE(of_service) ? of_service[-r] : NULL;

	*ret_wish = r == TOP_PROCESSES || r == TOP_ALONE ? r : 0;
	if (r < 0) {
		log_error("stopped: %s", words ?: strerror(-r));
		return words ? EXIT_UNAVAILABLE : EXIT_INTERNAL;
	}
	if (r == TOP_UNWRITABLE)
		log_error("standard output cannot be written: %s", strerror(errno));
	return r == TOP_UNWRITABLE ? EXIT_OUTPUT : EXIT_OK;
}

/* One agent, from its start to its end. */
static enum exit_code run_agent(const struct arguments *arguments, struct top *top,
				uint64_t interval_ns, int *ret_wish)
{
	_cleanup_(setup_done) struct setup setup = { 0 };
	_cleanup_(agent_freep) struct agent *agent = NULL;
	struct agent_options options = {
		.set = &setup.set,
		.interval_ns = interval_ns,
		.is_filter = true,
		.view = top_view,
		.view_user = top,
	};
	enum exit_code code = setup_open(arguments, arguments->words, &setup);
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	int r;

	*ret_wish = 0;
	if (code != EXIT_OK || setup_replace_exporters(&setup, NULL, arguments) ||
	    top_ask(top, &setup.question, &diag))
		return code == EXIT_OK ? EXIT_INTERNAL : code;
	log_lines(LOG_LEVEL_ERROR, buf_text(&diag.text));
	if (diag.n_errors)
		return EXIT_USE;
	options.config = setup.config;
	/* That it has started is to be seen. */
	if (arguments->log_level < 0)
		log_set_level(LOG_LEVEL_WARNING);
	r = agent_new(&options, &agent);
	if (r)
		return setup_exit_code(&setup, r);
	return report_end(top_run(top, agent), ret_wish);
}

/* The service's collections are shown, unless something is asked for that they may not have. */
static bool needs_own_agent(const struct arguments *arguments)
{
	return arguments->config_path || arguments->collector_directory || arguments->n_words ||
	       arguments->probes.n_items || arguments->settings.n_items ||
	       arguments->duration_calls ||
	       arguments->interval_ns || arguments->duration_ns || arguments->is_per_process ||
	       ask_is_of_processes(arguments);
}

static enum exit_code watch_service(const struct arguments *arguments, struct top *top,
				    int *ret_wish)
{
	_cleanup_(question_done) struct question question = { 0 };
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	struct sockaddr_un address;
	int fd = -ENOENT, r;

	if (!needs_own_agent(arguments))
		fd = socket_connect(SOCKET_COLLECTIONS, &address);
	*ret_wish = fd < 0 && (fd != -EACCES || !geteuid()) ? TOP_ALONE : 0;
	if (fd < 0 && !*ret_wish)
		log_error("%s: %s; run it as root or in the service's group", address.sun_path, strerror(-fd));
	if (fd < 0)
		return *ret_wish ? EXIT_OK : EXIT_RIGHTS;
	r = question_init(&question, &arguments->by, &arguments->where, &diag) ?:
	    top_ask(top, &question, &diag);
	log_lines(LOG_LEVEL_ERROR, buf_text(&diag.text));
	if (r || diag.n_errors) {
		closep(&fd);
		return r ? EXIT_INTERNAL : EXIT_USE;
	}
	r = top_watch(top, fd);
	if (*top_note(top))
		log_warning("%s", top_note(top));
	return report_end(r, ret_wish);
}

int command_top(const struct arguments *arguments)
{
	_cleanup_(top_freep) struct top *top = NULL;
	struct arguments mine = *arguments;
	struct winsize size = { 0 };
	struct top_options options = {
		.by = &arguments->by,
		.where = &arguments->where,
		.sort = arguments->sort,
		.interval_ns = arguments->interval_ns ?: INTERVAL_NS,
		.duration_ns = arguments->duration_ns,
		.count = arguments->count,
		.is_heatmap = arguments->is_heatmap,
		.can_count = !geteuid(),
		.fd = STDOUT_FILENO,
	};
	enum exit_code code;
	int wish;

	options.is_per_process = arguments->is_per_process || ask_is_of_processes(arguments);
	(void)(arguments->limit && parse_u64(arguments->limit, &options.limit));
	if (arguments->is_heatmap && !screen_is_possible()) {
		fprintf(stderr, "bpfpush top: --heatmap needs a terminal; bpfpush once --heatmap prints one\n");
		return EXIT_USE;
	}
	if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !screen_is_possible())
		log_warning("TERM=%s: no screen is known for this type of terminal, so plain tables follow",
			    getenv("TERM") ?: "");
	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	options.width = size.ws_col;
	agent_block_signals();
	top = top_new(&options);
	if (!top)
		return EXIT_INTERNAL;
	code = watch_service(arguments, top, &wish);
	while (wish) {
		mine.is_per_process |= wish == TOP_PROCESSES;
		code = run_agent(&mine, top, options.interval_ns, &wish);
	}
	if (code == EXIT_RIGHTS && needs_own_agent(&mine))
		log_error("without these rights, top can only show what a running service counts: leave out the options "
			  "that change what is counted");
	return code;
}
