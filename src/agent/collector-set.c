/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A collector is opened and checked with everything the configuration says about it before any is
 * started, so that all mistakes are reported at once and nothing is attached after one. "cgroup",
 * the collector that names short-lived cgroups, is added to whatever is asked for, started first and
 * shown last.
 */
#include "agent/collector-set.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "agent/collector-search.h"
#include "collector/adopt/adopt.h"
#include "collector/start.h"
#include "collector/hook/check.h"
#include "collector/kernel/kernel.h"
#include "collector/label/cgroup.h"
#include "config/probe.h"
#include "util/array.h"
#include "util/kept.h"
#include "util/log.h"
#include "util/parse.h"

/* Where memory_limit is not set: a part of the machine's memory, within bounds. */
#define MEMORY_SHARE 48
#define MEMORY_MIN   (8ull << 20)
#define MEMORY_MAX   (192ull << 20)

/* section: [collector] or [probe], which is written as a descriptor; NULL: none. */
static int open_with(const struct collector_set *set, const struct config_section *section, const char *directory,
		     const char *name, struct diag *diag, struct collector **ret_collector)
{
	_cleanup_(buf_done) struct buf written = BUF_INIT;
	struct descriptor_entries entries = { &written };
	bool is_probe = section && !strcmp(section->kind, "probe");
	struct collector_options options = { set->labels,	     set->budget,   set->items, set->n,
					     is_probe ? &entries : NULL,
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
static int open_one(struct collector_set *set, const struct config *config, const struct collector_search *search,
		    const struct wanted_collector *wanted, struct diag *diag)
{
	const struct config_section *probe = config_find_section(config, "probe", wanted->name);
	const struct config_section *section = probe ?: config_find_section(config, "collector", wanted->name);
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
 * A section [metric NAME] is about the metric of each collector that has it; those that are off ignore it.
 * is_all: no other collector has a metric that is to be set. Else only what is near to a known one is a mistake.
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

		for (size_t j = 0; j < collector->n_metrics && n < ARRAY_SIZE(names); j++)
			names[n++] = collector->metrics[j]->name;
		if (!collector_find_metric(collector, section->name))
			continue;
		is_known = true;
		for (size_t j = 0; j < section->given.n && !err; j++)
			err = collector_set_metric(collector, section->name, &section->given.items[j], diag);
	}
	if (!is_known && (is_all || parse_nearest(section->name, names, n)) &&
	    !collector_search_has_metric(search, section->name))
		diag_add_unknown(diag, section->given.path, section->given.line, "metric", section->name, names, n);
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
	return names && n && variable_find(&names->variables, yes.key) ? collector_set(names, &yes, diag) : 0;
}

int collector_set_open(const struct config *config, const char *const *names, uint64_t boot_ns, struct diag *diag,
		       struct collector_set *ret_set)
{
	_cleanup_(collector_search_done) struct collector_search search = { 0 };
	struct collector_set set = { 0 };
	unsigned int n_before = diag->n_errors;
	bool is_all;
	size_t n_asked;
	int err;

	programs_quiet();
	err = collector_search(config, names, diag, &search) ?: labels_new(boot_ns, &config->agent.names, &set.labels);
	set.budget = calloc(1, sizeof(*set.budget));
	if (!set.budget)
		err = -ENOMEM;
	else
		*set.budget = (struct budget){ .limit_series = config->agent.series_limit,
					       .limit_bytes = config->agent.memory_limit_bytes ?: memory_share() };
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
	/* Where collectors are missing, named on the command line or wrong, other metrics may be theirs. */
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

static const char *remedy_for(int err)
{
	if (err == -ENOMEM)
		return "; give the service more memory (MemoryMax=), or set units in [agent] to a smaller number";
	if (err == -EMFILE)
		return "; let bpfpush open more files (LimitNOFILE=, ulimit -n)";
	return "";
}

/* A probe is nothing without its hook, and libbpf accepts more, or says less. */
static bool has_hook(const struct collector *collector)
{
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;

	if (collector->is_probe && !collector->object->is_tried) {
		programs_choose(collector->object, true);
		hooks_look(collector, UINT64_MAX, &diag);
	}
	log_lines(LOG_LEVEL_ERROR, buf_text(&diag.text));
	return !diag.n_errors;
}

static void note_missing(struct collector_set *set, const struct collector *collector, const char *why)
{
	const char *how = collector->is_probe && !collector->descriptor->programs->line ? "" : " (strict = yes)";

	if (collector->is_strict) /* as a probe of the command line is */
		buf_printf(&set->lacking, "%s%s %s%s", set->lacking.size ? ", " : "",
			   collector_kind(collector), collector->name, how);
	buf_printf(&set->missing, "%s%s (%s)", set->missing.size ? ", " : "", collector->name, why);
}

static int start_one(struct collector_set *set, struct collector *collector)
{
	_cleanup_(buf_done) struct buf why = BUF_INIT;
	int err = has_hook(collector) ? collector_start(collector, &why) : -EOPNOTSUPP;

	/* An older kernel that does not have what it counts is all right, unless the user wants to know it. */
	if (err == -ESRCH && collector->is_default) {
		log_info("collector %s is left out: %s", collector->name, buf_text(&why));
		return err;
	}
	if (why.size)
		log_error("%s %s cannot run: %s%s", collector_kind(collector), collector->name,
			  buf_text(&why), remedy_for(err));
	if (!err && !collector_report_hooks(collector) && collector->is_strict)
		err = -EOPNOTSUPP;
	if (err) {
		note_missing(set, collector, why.size ? buf_text(&why) : "the log says why");
		return err;
	}
	err = collector_share(collector);
	if (err)
		log_warning("collector %s: its names of cgroups cannot be read: %s", collector->name, strerror(-err));
	return 0;
}

/* Starts the collector that names cgroups, or all others, and takes out those that fail. The first error, or 0. */
static int start_some(struct collector_set *set, bool is_infrastructure)
{
	size_t n = 0, n_shown = 0;
	int first = 0;

	for (size_t i = 0; i < set->n; i++) {
		struct collector *collector = set->items[i];
		bool is_meant = !strcmp(collector->name, INFRASTRUCTURE) == is_infrastructure;
		int err = is_meant ? start_one(set, collector) : 0;

		if (err) {
			if (set->refused)
				set->refused[set->n_refused++] = collector;
			else
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

/* Tables may take half of the memory; the rest is for series. As many units as fit, or one. */
static void size_tables(struct collector_set *set)
{
	uint64_t asked = set->units, most = set->budget->limit_bytes / 2;
	uint64_t wanted = collectors_size(set->items, set->n, asked);

	set->units = 1;
	for (uint64_t more = 1 << 16; more; more /= 2) /* [agent] units has a maximum */
		if (set->units + more <= asked && collectors_size(set->items, set->n, set->units + more) <= most)
			set->units += more;
	set->budget->table_bytes = collectors_size(set->items, set->n, set->units);
	set->is_cut = set->units < asked;
	if (set->is_cut)
		log_event(set->is_brief ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO, NULL, NULL,
			  "the kernel's tables have room for %" PRIu64 " unit%s instead of %" PRIu64 ", because they may take half "
			  "of memory_limit = %" PRIu64 "MiB; to have room for all, set memory_limit = %" PRIu64 "MiB in [agent]",
			  set->units, plural(set->units), asked, set->budget->limit_bytes >> 20, (wanted >> 19) + 1);
	log_debug("the kernel's tables take %" PRIu64 " KiB, for %" PRIu64 " units", set->budget->table_bytes >> 10, set->units);
}

/* The i-th collector's object, if it is the first of those that share it. */
static struct object *object_at(const struct collector_set *set, size_t i)
{
	struct object *object = set->items[i]->object;

	return object->collectors[0] == set->items[i] ? object : NULL;
}

/* Returns how many objects have to be loaded. */
static size_t adopt_objects(const struct collector_set *set, struct kept *kept)
{
	size_t n = 0, n_adopted = 0;

	for (size_t i = 0; i < set->n; i++) {
		struct object *object = object_at(set, i);
		int err = object && kept ? object_adopt(object, kept) : 1;

		n += object != NULL;
		n_adopted += !err;
		if (err < 0)
			log_info("%s: %s", object->path, err == -ESTALE ?
				 "the file, its settings or its sizes have changed, so it is loaded again" :
				 "what was kept of it is not whole (FileDescriptorStoreMax= too small, or a start cut short), so counting begins again");
	}
	if (n_adopted)
		log_info("%zu of %zu objects have gone on counting since they were loaded by an earlier process", n_adopted, n);
	return n - n_adopted;
}

static void keep_objects(const struct collector_set *set, struct kept *kept)
{
	int err = 0;

	for (size_t i = 0; i < set->n; i++)
		if (object_at(set, i))
			err = object_keep(object_at(set, i), kept) ?: err;
	err = err ?: kept_error(kept);
	if (err)
		log_warning("a restart will not be able to go on with all that is counted now: %s%s", strerror(-err), remedy_for(err));
}

int collector_set_start(struct collector_set *set, struct kept *kept)
{
	_cleanup_(buf_done) struct buf why = BUF_INIT;
	const char *complaint = cgroups_complaint(set->labels->cgroups);
	int first, err;

	size_tables(set);
	/* What no collector can do without, and what they count less well without: each is said once. */
	err = adopt_objects(set, kept) ? kernel_check(set->labels->choice->kernel_types, &why) : 0;
	if (err) {
		log_event(LOG_LEVEL_ERROR, LOG_ID_CANNOT_RUN, NULL, "not started: %s", buf_text(&why));
		set->is_refused = true;
		return err;
	}
	if (*complaint)
		log_warning("%s", complaint);
	collectors_find_symbols(set->items, set->n, kept);
	keep_freed_memory(true);
	/* From here on, even a cgroup that lives while the others are attached gets its name. */
	first = start_some(set, true);
	err = cgroups_walk(set->labels->cgroups);
	first = first ? first : err;
	err = start_some(set, false);
	first = first ? first : err;
	hooks_forget();
	keep_freed_memory(false);
	set->is_refused = set->lacking.size;
	if (set->is_refused) {
		log_event(LOG_LEVEL_ERROR, LOG_ID_CANNOT_RUN, NULL, "not started: hooks are missing for %s", buf_text(&set->lacking));
		return first;
	}
	if (kept)
		keep_objects(set, kept);
	if (set->n_shown)
		return 0;
	return first ? first : -ENOENT;
}

bool collector_set_is_kept(struct collector_set *set, struct kept *kept)
{
	bool is_kept = true;

	size_tables(set);
	for (size_t i = 0; i < set->n; i++)
		is_kept &= !object_at(set, i) || object_is_kept(object_at(set, i), kept);
	return is_kept;
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
