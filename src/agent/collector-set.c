/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A collector is opened and checked with everything the configuration says about it before any is
 * started, so that all mistakes are reported at once and nothing is attached after one. "cgroup",
 * the pair that names short-lived cgroups, is added to whatever is asked for, started first and
 * shown last.
 */
#include "agent/collector-set.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "agent/collector-search.h"
#include "util/array.h"
#include "util/log.h"
#include "util/parse.h"
#include "util/utf8.h"

#define INFRASTRUCTURE "cgroup"

static void report_bad_name(const struct wanted_collector *wanted, struct diag *diag)
{
	_cleanup_(freep) char *name = strdup(wanted->name);

	if (name)
		utf8_clean(name);
	diag_add(diag, wanted->path, wanted->line,
		 "\"%s\" cannot be a collector's name: use at most %d characters (A-Z a-z 0-9 _ . -) and begin with a letter, "
		 "a digit or _",
		 name ? name : "", COLLECTOR_NAME_BYTES);
}

/* The collector is added to set unless there are mistakes. */
static int open_one(struct collector_set *set, const struct config *config, const struct collector_search *search,
		    const struct wanted_collector *wanted, struct diag *diag)
{
	const struct config_section *section = config_find_section(config, "collector", wanted->name);
	const char *directory = collector_search_find(search, wanted->name);
	_cleanup_(collector_freep) struct collector *collector = NULL;
	unsigned int n_before = diag->n_errors;
	struct collector **item;
	int err;

	if (!parse_is_name(wanted->name) || strlen(wanted->name) > COLLECTOR_NAME_BYTES) {
		report_bad_name(wanted, diag);
		return 0;
	}
	if (!directory) {
		if (strcmp(wanted->name, INFRASTRUCTURE))
			collector_search_report(search, wanted, diag);
		return 0;
	}
	err = collector_open(directory, wanted->name, set->labels, config->agent.series_limit, diag, &collector);
	if (err || !collector)
		return err;
	for (size_t i = 0; section && i < section->n_settings && !err; i++)
		err = collector_set(collector, section->settings[i].key, section->settings[i].value,
				    section->settings[i].path, section->settings[i].line, diag);
	collector_check(collector, diag);
	if (err || diag->n_errors > n_before)
		return err;
	item = array_add(&set->items, &set->n, sizeof(*item));
	if (!item)
		return -ENOMEM;
	*item = TAKE_PTR(collector);
	return 0;
}

int collector_set_open(const struct config *config, const char *const *names, uint64_t boot_ns, struct diag *diag,
		       struct collector_set *ret_set)
{
	_cleanup_(collector_search_done) struct collector_search search = { 0 };
	struct collector_set set = { 0 };
	size_t n_asked;
	int err;

	programs_quiet();
	err = collector_search(config, names, diag, &search);
	if (!err)
		err = labels_new(boot_ns, &set.labels);
	n_asked = search.n_wanted;
	if (!err && !collector_is_disabled(config, INFRASTRUCTURE))
		err = collector_search_add(&search, INFRASTRUCTURE, NULL, 0);
	for (size_t i = 0; i < search.n_wanted && !err; i++) {
		err = open_one(&set, config, &search, &search.wanted[i], diag);
		if (i < n_asked)
			set.n_shown = set.n;
	}
	if (err) {
		collector_set_done(&set);
		return err;
	}
	*ret_set = set;
	return 0;
}

/* A collector is partial where no alternative of a hook could be attached. */
static void report_hooks(struct collector *collector)
{
	const struct programs *programs = &collector->programs;

	for (uint32_t i = 0; i < programs->n; i++) {
		const struct program *program = &programs->items[i];
		const struct log_field fields[] = {
			{ "BPFPUSH_COLLECTOR", collector->name },
			{ "BPFPUSH_PROGRAM", program->name },
			{ NULL, NULL },
		};

		if (program->state == PROGRAM_ATTACHED)
			log_debug("collector %s: %s attached as %s", collector->name, program->hook, program->section);
		if (program->state != PROGRAM_REFUSED)
			continue;
		if (programs_is_hook_attached(programs, program->hook))
			log_debug("collector %s: the kernel refused %s (%s): %s; an alternative is used",
				  collector->name, program->name, program->section, program->error);
		else
			log_event(LOG_LEVEL_WARNING, LOG_ID_PARTIAL, fields,
				  "collector %s is partial: the kernel refused %s (%s): %s", collector->name,
				  program->name, program->section, program->error ? program->error : "out of memory");
	}
}

static const char *remedy(int err)
{
	switch (err) {
	case -EPERM:
	case -EACCES:
		if (!geteuid())
			return "";
		return "; run as root, or with CAP_BPF and CAP_PERFMON";
	case -ENOMEM:
		return "; give the service more memory (MemoryMax=), or the tables fewer slots";
	default:
		return "";
	}
}

/* The last line of what libbpf said, which names the cause. */
static void last_line(struct buf *why, char *line, size_t size)
{
	const char *text = buf_text(why), *end = text + strlen(text), *start;

	while (end > text && end[-1] == '\n')
		end--;
	for (start = end; start > text && start[-1] != '\n'; start--)
		;
	snprintf(line, size, "%.*s", (int)(end - start), start);
}

static int start_one(struct collector *collector)
{
	_cleanup_(buf_done) struct buf why = BUF_INIT;
	int err = collector_start(collector, &why);
	char line[256];

	if (!err) {
		report_hooks(collector);
		collector_share(collector);
		return 0;
	}
	last_line(&why, line, sizeof(line));
	log_error("collector %s cannot run: %s%s%s%s%s", collector->name, strerror(-err), *line ? " (" : "",
		  line, *line ? ")" : "", remedy(err));
	return err;
}

/*
 * Starts the pair that names cgroups, or all others, and takes out those that fail. The first error,
 * if any.
 */
static int start_some(struct collector_set *set, bool is_infrastructure)
{
	size_t n = 0, n_shown = 0;
	int first = 0;

	for (size_t i = 0; i < set->n; i++) {
		struct collector *collector = set->items[i];
		int err = 0;

		if (!strcmp(collector->name, INFRASTRUCTURE) == is_infrastructure)
			err = start_one(collector);
		if (err) {
			collector_free(collector);
			first = first ? first : err;
			continue;
		}
		n_shown += i < set->n_shown;
		set->items[n++] = collector;
	}
	set->n = n;
	set->n_shown = n_shown;
	return first;
}

/*
 * libbpf reads the kernel's types, 5 MiB, again for each object. Memory that stays with the process
 * meanwhile need not be cleared and mapped again by the kernel each time.
 */
static void keep_freed_memory(bool is_kept)
{
	mallopt(M_MMAP_THRESHOLD, is_kept ? 32 << 20 : 128 << 10);
	mallopt(M_TRIM_THRESHOLD, is_kept ? 64 << 20 : 128 << 10);
}

int collector_set_start(struct collector_set *set)
{
	int first, err;

	keep_freed_memory(true);
	/*
	 * From here on, even a cgroup that lives only while the others are attached gets its name.
	 */
	first = start_some(set, true);
	err = labels_prime(set->labels);
	first = first ? first : err;
	err = start_some(set, false);
	first = first ? first : err;
	keep_freed_memory(false);
	if (set->n_shown)
		return 0;
	return first ? first : -ENOENT;
}

void collector_set_done(struct collector_set *set)
{
	for (size_t i = 0; i < set->n; i++)
		collector_free(set->items[i]);
	free(set->items);
	labels_free(set->labels);
	*set = (struct collector_set){ 0 };
}
