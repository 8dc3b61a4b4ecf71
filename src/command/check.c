/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>

#include "agent/connect.h"
#include "collector/adopt/adopt.h"
#include "collector/start.h"
#include "collector/hook/check.h"
#include "collector/label/cgroup.h"
#include "collector/label/label.h"
#include "command/setup.h"
#include "agent/unit.h"
#include "util/log.h"
#include "util/rights.h"

static void print_exporters(const struct config *config)
{
	if (config->n_exporters) {
		printf("%zu exporter%s", config->n_exporters, plural(config->n_exporters));
		for (size_t i = 0; i < config->n_exporters; i++)
			printf("%s%s", i ? ", " : ": ", config->exporters[i].name);
	} else if (config->is_export_off) {
		printf("exporting is switched off");
	} else {
		printf("no exporter configured: the service pushes OTLP to http://localhost:4318");
	}
	printf("\n");
}

/* What the service pushes to where nothing is configured is tried, too. */
static enum exit_code connect_all(struct setup *setup)
{
	const struct arguments none = { 0 };
	const struct config *config = setup->config;
	int r;

	if (!config->n_exporters && !config->is_export_off &&
	    setup_replace_exporters(setup, "otlp", &none))
		return EXIT_INTERNAL;
	r = agent_connect(config, collector_set_signals(&setup->set), stdout);
	if (r >= 0)
		return r ? EXIT_FAILING : EXIT_OK;
	fprintf(stderr, "bpfpush check: %s\n", strerror(-r));
	return EXIT_INTERNAL;
}

/*
 * What is checked may come from anywhere, so it must not take the machine. A slow machine gets as
 * much more time as it took to come this far, and many collectors get more of both than few. A
 * guest counts as its own time what its host takes from it, so even the smallest check has some
 * seconds.
 */
#define STARTS	     100
#define LEAST_S	     5
#define MEMORY_BYTES (UINT64_C(200) << 20)
#define OWN_FILES    64 /* of the service, besides those of objects */
#define PARTS	     32 /* probes and the like that need no more than that */

static _unused_ void on_limit(int number)
{
	static const char message[] = "bpfpush check: gave up after too much CPU time: a collector, or the configuration, has far more parts than any use needs\n";

	(void)!write(STDERR_FILENO, message, sizeof(message) - 1);
	_exit(EXIT_SETTINGS);
}

/* config: NULL, if it is not known yet. */
static void set_limits(const struct arguments *arguments, const struct config *config)
{
#ifndef __SANITIZE_ADDRESS__ /* which needs more of both */
	size_t n_parts = arguments->n_words +
			 (config ? config->n_sections + config->agent.collectors.n_items : 0);
	rlim_t times = 1 + n_parts / PARTS;
	time_t limit_s = (clock() * STARTS / CLOCKS_PER_SEC + LEAST_S) * (time_t)times;
	const struct itimerval timer = { .it_value.tv_sec = limit_s };
	struct rlimit memory = { RLIM_INFINITY, RLIM_INFINITY };

	signal(SIGPROF, on_limit);
	setitimer(ITIMER_PROF, &timer, NULL);
	getrlimit(RLIMIT_DATA, &memory);
	memory.rlim_cur = MEMORY_BYTES * times;
	setrlimit(RLIMIT_DATA, &memory);
#endif
}

/*
 * The service's user perhaps cannot use what root can. In the unit's sandbox, root is that user or
 * cannot become it.
 */
static enum exit_code check_as_user(const struct arguments *arguments, const struct config *config)
{
	struct stat status;
	/* The service's user owns what it saves. Before the first start, it is the package's. */
	const struct passwd *user = stat("/var/lib/bpfpush", &status) ? getpwnam("bpfpush") : getpwuid(status.st_uid);
	_cleanup_(setup_done) struct setup setup = { 0 };
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;

	if (!user || !user->pw_uid || initgroups(user->pw_name, user->pw_gid))
		return EXIT_OK;
	log_set_level(LOG_LEVEL_ERROR); /* the rest was said */
	/* Root goes on in the saved ids. */
	if (!setresgid(user->pw_gid, user->pw_gid, 0) &&
	    !setresuid(user->pw_uid, user->pw_uid, 0) &&
	    !config_read(NULL, NULL, &diag, &setup.config))
		(void)collector_set_open(setup.config, (const char *const *)arguments->words, 0,
					 &diag, &setup.set);
	if (setresuid(0, 0, 0) || setresgid(0, 0, 0)) {
		log_error("cannot be root again: %s", strerror(errno));
		return EXIT_INTERNAL;
	}
	setup_set_log_level(arguments, config);
	if (!diag.n_errors)
		return EXIT_OK;
	log_error("the user %s, as which the service runs, cannot use all of it:", user->pw_name);
	log_lines(LOG_LEVEL_ERROR, buf_text(&diag.text));
	return EXIT_SETTINGS;
}

/*
 * With which the service starts: in its unit, one's own; outside of it, systemd knows them. If not,
 * all.
 */
static uint64_t service_rights(const struct arguments *arguments)
{
	uint64_t rights;

	if (arguments->config_path || arguments->collector_directory)
		return UINT64_MAX;
	if (geteuid() && rights_judge())
		return rights_permitted();
	return unit_rights(&rights) ? UINT64_MAX : rights;
}

/*
 * What the machine lacks now it may have later, or another one has: a warning, unless a collector
 * is strict, or a probe, which is nothing without its hook. A warning, too, is what the service may
 * not attach.
 */
static enum exit_code check_hooks(const struct collector_set *set, uint64_t rights,
				  bool *ret_is_whole)
{
	enum exit_code code = EXIT_OK;

	for (size_t i = 0; i < set->n; i++) {
		_cleanup_(diag_done) struct diag diag = DIAG_INIT;
		bool is_mistake = set->items[i]->is_strict || set->items[i]->is_probe;

		programs_choose(set->items[i]->object, true);
		hooks_look(set->items[i], UINT64_MAX, &diag);
		if (diag.n_errors && is_mistake)
			code = EXIT_SETTINGS;
		is_mistake &= diag.n_errors > 0;
		if (!diag.n_errors)
			hooks_look(set->items[i], rights, &diag);
		*ret_is_whole &= !diag.n_errors;
		if (collector_names_functions(set->items[i]) && !(rights & 1ull << CAP_SYSLOG))
			diag_add(&diag, set->items[i]->conf_path, 0, LABEL_NO_SYMBOLS);
		log_lines(is_mistake ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING, buf_text(&diag.text));
	}
	return code;
}

/* Each probe has an object of its own. */
static void check_file_limits(const struct collector_set *set)
{
	uint64_t may_open, may_keep, n = 0, n_objects = 0;

	for (size_t i = 0; i < set->n; i++)
		if (set->items[i]->object->collectors[0] == set->items[i]) {
			n += object_count_kept(set->items[i]->object);
			n_objects++;
		}
	if (!n || unit_limits(&may_open, &may_keep))
		return;
	if (2 * n + OWN_FILES > may_open)
		log_warning("the service may open %" PRIu64 " descriptors and needs about %" PRIu64 ": they suffice for some %" PRIu64
			    " objects and probes of %" PRIu64 "; raise LimitNOFILE= of the unit", may_open, 2 * n + OWN_FILES,
			    may_open * n_objects / (2 * n), n_objects);
	if (n > may_keep)
		log_warning("systemd keeps %" PRIu64 " descriptors over a restart and about %" PRIu64 " are needed, so counting will "
			    "begin again at each: they suffice for some %" PRIu64 " objects and probes of %" PRIu64
			    "; raise FileDescriptorStoreMax= of the unit", may_keep, n, may_keep * n_objects / n, n_objects);
}

int command_check(const struct arguments *arguments)
{
	_cleanup_(setup_done) struct setup setup = { 0 };
	bool is_service = !geteuid() && !arguments->config_path && !arguments->collector_directory;
	struct arguments limited = *arguments;
	bool is_whole = true;
	enum exit_code code;
	const char *hidden;

	set_limits(arguments, NULL);
	limited.on_config = set_limits;
	code = setup_open(&limited, arguments->words, &setup);
	if (code == EXIT_OK)
		code = check_hooks(&setup.set, service_rights(arguments), &is_whole);
	setitimer(ITIMER_PROF, &(struct itimerval){ 0 }, NULL); /* receivers may take their time */
	if (code == EXIT_INTERNAL)
		fprintf(stderr, "bpfpush check: needs far more memory than any use does: a collector, or the configuration, has too many parts\n");
	/* At a reload, the service judges by itself. */
	if (code == EXIT_OK && is_service && arguments->name == COMMAND_CHECK)
		code = check_as_user(arguments, setup.config);
	if (code != EXIT_OK)
		return code;
	if (is_service)
		check_file_limits(&setup.set);
	hidden = cgroups_complaint(setup.set.labels->cgroups);
	if (*hidden)
		log_warning("%s", hidden);
	printf("OK%s: %zu collector%s (", is_whole ? "" : ", but not all of it will count here", setup.set.n_shown, plural(setup.set.n_shown));
	for (size_t i = 0; i < setup.set.n_shown; i++)
		printf("%s%s", i ? ", " : "", setup.set.items[i]->name);
	printf("), ");
	print_exporters(setup.config);
	return arguments->is_connect ? connect_all(&setup) : EXIT_OK;
}
