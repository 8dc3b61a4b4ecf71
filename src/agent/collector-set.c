/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A collector is opened and checked with everything the configuration says about it before any is
 * started, so that all mistakes are reported at once and nothing is attached after one. "cgroup",
 * the collector that names short-lived cgroups, is added to whatever is asked for, started first
 * and shown last.
 */
#include "agent/collector-set.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "agent/collector-search.h"
#include "collector/label/cgroup.h"
#include "config/probe.h"
#include "metric/bounds.h"
#include "util/array.h"
#include "util/log.h"
#include "util/parse.h"

/* Where memory_limit is not set: a part of the machine's memory, within bounds. */
#define MEMORY_SHARE 48
#define MEMORY_MIN   (8ull << 20)
#define MEMORY_MAX   (192ull << 20)

/* section: [collector] or [probe], which is written as a descriptor; NULL: none. */
static int open_with(const struct collector_set *set, const struct config_section *section,
		     const char *directory,
		     const char *name, struct diag *diag, struct collector **ret_collector)
{
	_cleanup_(buf_done) struct buf written = BUF_INIT;
	struct descriptor_entries entries = { &written };
	bool is_probe = section && !strcmp(section->kind, "probe");
	struct collector_options options = { set->labels,	     set->budget,
					     set->items, set->n, is_probe ? &entries : NULL,
					     set->is_strict || (is_probe && !section->given.line) };
	unsigned int n_before = diag->n_errors;
	int err = is_probe ? probe_describe(section, diag, &entries) : 0;

	if (err || diag->n_errors > n_before)
		return err;
	err = collector_open(directory, name, &options, diag, ret_collector);
	for (size_t i = 0; section && i < section->given.n && !err && *ret_collector; i++)
		if (!is_probe || probe_is_common(section->given.items[i].key))
			err = collector_set(*ret_collector, &section->given.items[i], diag);
	return err;
}

/* The collector is added to set unless there are mistakes. */
static int open_one(struct collector_set *set, const struct config *config,
		    const struct collector_search *search,
		    const struct wanted_collector *wanted, struct diag *diag)
{
	const struct config_section *probe = config_find_section(config, "probe", wanted->name);
	const struct config_section *section = probe ?:
					       config_find_section(config, "collector", wanted->name);
	/* The object of probes is installed. */
	const char *directory = probe ? search->directories[search->n_directories - 1] :
					collector_search_find(search, wanted->name);
	_cleanup_(collector_freep) struct collector *collector = NULL;
	unsigned int n_before = diag->n_errors;
	int err;

	if (!parse_is_name(wanted->name) || strlen(wanted->name) > COLLECTOR_NAME_BYTES) {
		diag_add(diag, wanted->path, wanted->line,
			 "\"%s\" cannot be a collector's name: use at most %d characters (A-Z a-z 0-9 _ . -) and begin "
			 "with a letter, a digit or _", wanted->name, COLLECTOR_NAME_BYTES);
		return 0;
	}
	if (!directory) {
		if (strcmp(wanted->name, INFRASTRUCTURE))
			collector_search_report(search, wanted, diag);
		return 0;
	}
	err = open_with(set, section, directory, wanted->name, diag, &collector);
	if (err || !collector || diag->n_errors > n_before)
		return err;
	collector->is_default = collector_is_default(search, config, wanted->name);
	err = array_append(&set->items, &set->n, &collector);
	if (!err)
		(void)TAKE_PTR(collector);
	return err;
}

/* The part of the machine's memory that is the limit where none is set. */
static uint64_t memory_share(void)
{
	struct sysinfo info = { .mem_unit = 1 };
	uint64_t share;

	(void)sysinfo(&info);
	share = (uint64_t)info.totalram * info.mem_unit / MEMORY_SHARE;
	share = share < MEMORY_MAX ? share : MEMORY_MAX;
	return share > MEMORY_MIN ? share : MEMORY_MIN;
}

/*
 * A section [metric NAME] is about the metric of each collector that has it; those that are off
 * ignore it. is_all: no other collector has a metric that is to be set. Else only what is near to a
 * known one is a mistake.
 */
static int set_metric(const struct collector_set *set, const struct config_section *section,
		      const struct collector_search *search, bool is_all, struct diag *diag)
{
	const char *names[256];
	bool is_known = false;
	size_t n = 0;
	int err = 0;

	for (size_t i = 0; i < set->n; i++) {
		struct collector *collector = set->items[i];
		struct metric *metric = collector_find_metric(collector, section->name);

		for (size_t j = 0; j < collector->n_metrics && n < ARRAY_SIZE(names); j++)
			names[n++] = collector->metrics[j]->name;
		if (!metric)
			continue;
		is_known = true;
		for (size_t j = 0; j < section->given.n && !err; j++)
			err = collector_set_metric(collector, section->name,
						   &section->given.items[j], diag);
		metric->is_disabled = !section->is_enabled;
		bounds_limit_explicit(metric);
	}
	if (!is_known && (is_all || parse_nearest(section->name, names, n)) &&
	    !collector_search_has_metric(search, section->name))
		diag_add_unknown(diag, section->given.path, section->given.line, "metric",
				 section->name, names, n);
	return err;
}

/* Programs that count for chosen cgroups need each of them at once. */
static int set_at_once(const struct collector_set *set, struct diag *diag)
{
	const struct assignment yes = { .key = "at_once", .value = "yes" };
	struct collector *names = collector_named(set->items, set->n, INFRASTRUCTURE);
	size_t n = 0;

	for (size_t i = 0; i < set->n; i++)
		n += set->items[i]->descriptor->n_cgroups;
	return names && n && variable_find(&names->variables, yes.key) ?
	       collector_set(names, &yes, diag) : 0;
}

int collector_set_open(const struct config *config, const char *const *names, uint64_t boot_ns,
		       struct diag *diag, struct collector_set *ret_set)
{
	_cleanup_(collector_search_done) struct collector_search search = { 0 };
	struct collector_set set = { 0 };
	unsigned int n_before = diag->n_errors;
	bool is_all;
	size_t n_asked;
	int err;

	programs_quiet();
	err = collector_search(config, names, diag, &search) ?:
	      labels_new(boot_ns, &config->agent.names, &set.labels);
	set.budget = calloc(1, sizeof(*set.budget));
	if (!set.budget)
		err = -ENOMEM;
	else
		*set.budget = (struct budget){ .limit_series = config->agent.series_limit,
					       .limit_bytes = config->agent.memory_limit_bytes ?:
							      memory_share() };
	set.units = config->agent.units;
	set.is_strict = config->agent.is_strict;
	n_asked = search.n_wanted;
	if (!err && !collector_is_disabled(config, INFRASTRUCTURE))
		err = collector_search_add(&search, INFRASTRUCTURE, NULL, 0);
	for (size_t i = 0; i < search.n_wanted && !err; i++) {
		err = open_one(&set, config, &search, &search.wanted[i], diag);
		if (i < n_asked)
			set.n_shown = set.n;
	}
	err = err ?: set_at_once(&set, diag);
	/*
	 * Where collectors are missing, named on the command line or wrong, other metrics may be
	 * theirs.
	 */
	is_all = !search.is_named && diag->n_errors == n_before;
	for (size_t i = 0; i < config->n_sections && !err; i++)
		if (!strcmp(config->sections[i].kind, "metric"))
			err = set_metric(&set, &config->sections[i], &search, is_all, diag);
	if (err) {
		collector_set_done(&set);
		return err;
	}
	*ret_set = set;
	return 0;
}

enum signals collector_signals(const struct collector *collector)
{
	enum signals signals = collector->n_metrics ? SIGNAL_METRICS : 0;
	const struct event_kind *kind;

	for (size_t i = 0; (kind = collector_event(collector, i, NULL)); i++)
		signals |= event_signal(kind);
	return signals;
}

enum signals collector_set_signals(const struct collector_set *set)
{
	enum signals signals = SIGNAL_METRICS; /* the agent's own */

	for (size_t i = 0; i < set->n_shown; i++)
		signals |= collector_signals(set->items[i]);
	return signals;
}

void collector_set_done(struct collector_set *set)
{
	for (size_t i = 0; i < set->n; i++)
		collector_free(set->items[i]);
	for (size_t i = 0; i < set->n_refused; i++)
		collector_free(set->refused[i]);
	free(set->items);
	free(set->refused);
	buf_done(&set->missing);
	buf_done(&set->lacking);
	labels_free(set->labels);
	free(set->budget);
	*set = (struct collector_set){ 0 };
}
