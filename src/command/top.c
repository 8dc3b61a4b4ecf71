/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "command/ask.h"
#include "command/setup.h"
#include "top/screen.h"
#include "top/top.h"
#include "util/duration.h"
#include "util/log.h"
#include "util/parse.h"

#define INTERVAL_NS (2 * NS_PER_S) /* for a person who watches */

/* One agent, from its start to its end. Sets *ret_again if another one is wanted, which counts processes. */
static enum exit_code run(const struct arguments *arguments, struct top *top, uint64_t interval_ns, bool *ret_again)
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
	r = top_run(top, agent);
	if (r == TOP_UNWRITABLE)
		log_error("standard output cannot be written: %s", strerror(errno));
	if (r < 0)
		log_error("stopped by an error: %s", strerror(-r));
	*ret_again = r == TOP_PROCESSES;
	return r == TOP_UNWRITABLE ? EXIT_OUTPUT : r < 0 ? EXIT_INTERNAL : EXIT_OK;
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
		.fd = STDOUT_FILENO,
	};
	bool is_again = true;
	enum exit_code code = EXIT_OK;

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
	while (is_again) {
		is_again = false;
		code = run(&mine, top, options.interval_ns, &is_again);
		mine.is_per_process = true;
	}
	return code;
}
