/* SPDX-License-Identifier: Apache-2.0 */
/* The start of a set of collectors: sizes, what an earlier process has kept, rights, programs. */
#include "agent/collector-set.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <string.h>

#include "agent/collector-search.h"
#include "collector/adopt/adopt.h"
#include "collector/hook/check.h"
#include "collector/kernel/kernel.h"
#include "collector/label/cgroup.h"
#include "collector/start.h"
#include "util/array.h"
#include "util/kept.h"
#include "util/log.h"

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

static void note_missing(struct collector_set *set, const struct collector *collector,
			 const char *why)
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

	/*
	 * An older kernel that does not have what it counts is all right, unless the user wants to
	 * know it.
	 */
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

/*
 * Starts the collector that names cgroups, or all others, and takes out those that fail. The first
 * error, or 0.
 */
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
		if (set->units + more <= asked &&
		    collectors_size(set->items, set->n, set->units + more) <= most)
			set->units += more;
	set->budget->table_bytes = collectors_size(set->items, set->n, set->units);
	set->is_cut = set->units < asked;
	if (set->is_cut)
		log_event(set->is_brief ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO, NULL, NULL,
			  "the kernel's tables have room for %" PRIu64 " unit%s instead of %" PRIu64 ", because they may take half "
			  "of memory_limit = %" PRIu64 "MiB; to have room for all, set memory_limit = %" PRIu64 "MiB in [agent]",
			  set->units, plural(set->units), asked, set->budget->limit_bytes >> 20,
			  (wanted >> 19) + 1);
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
	/*
	 * What no collector can do without, and what they count less well without: each is said
	 * once.
	 */
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
