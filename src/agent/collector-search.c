/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collector-search.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/auxv.h>

#include "build-config.h"
#include "collector/descriptor.h"
#include "util/array.h"
#include "util/parse.h"
#include "util/trust.h"
#include "view/question.h"

#define OWN_DIRECTORY SYSCONFDIR "/bpfpush/collectors"

static const char *const default_names[] = { "syscalls", "network", "fileio", "scheduler", "memory", "tcpstate", "usage" };

/*
 * A binary next to build.ninja has not been installed: its collectors are those of the same build.
 */
static char *find_tree(void)
{
	const char *called = (const char *)getauxval(AT_EXECFN) ?: "";
	/* Without /proc, as it was called. */
	_cleanup_(freep) char *exe = realpath("/proc/self/exe", NULL) ?: strdup(called);
	_cleanup_(freep) char *ninja = NULL;
	char *slash = exe ? strrchr(exe, '/') : NULL, *tree;
	int length = slash ? (int)(slash - exe) : 0;

	if (!slash || asprintf(&ninja, "%.*s/build.ninja", length, exe) < 0 || access(ninja, F_OK) ||
	    asprintf(&tree, "%.*s/bpf", length, exe) < 0)
		return NULL;
	return tree;
}

static int find_directories(struct collector_search *search, const struct config *config)
{
	const struct setting_list *own = &config->agent.collector_directories;

	search->directories = calloc(own->n_items + 2, sizeof(*search->directories));
	if (!search->directories)
		return -ENOMEM;
	for (size_t i = 0; i < own->n_items; i++)
		search->directories[search->n_directories++] = own->items[i];
	search->directories[search->n_directories++] = OWN_DIRECTORY;
	search->tree = find_tree();
	search->directories[search->n_directories++] = search->tree ? search->tree : COLLECTOR_DIR;
	return 0;
}

int collector_search_add(struct collector_search *search, const char *name, const char *path,
			 unsigned int line)
{
	struct wanted_collector wanted = { NULL, path ?: "bpfpush", line };

	if (array_find(search->wanted, search->n_wanted, name))
		return 0;
	wanted.name = strdup(name);
	if (wanted.name && !array_append(&search->wanted, &search->n_wanted, &wanted))
		return 0;
	free(wanted.name);
	return -ENOMEM;
}

static bool is_a(const struct config_section *section, const char *kind)
{
	return !strcmp(section->kind, kind);
}

bool collector_is_disabled(const struct config *config, const char *name)
{
	const struct config_section *section = config_find_section(config, "probe", name) ?:
					       config_find_section(config, "collector", name);

	return section && !section->is_enabled;
}

bool collector_is_default(const struct collector_search *search, const struct config *config,
			  const char *name)
{
	return !search->is_named && !config->agent.collectors.n_items &&
	       !config_find_section(config, "collector", name) &&
	       array_find(default_names, ARRAY_SIZE(default_names), name);
}

/* Like collector_search_add(), unless its section in config (NULL: none) says "enabled = no". */
static int add_enabled(struct collector_search *search, const struct config *config,
		       const char *name, const char *path, unsigned int line)
{
	return config && collector_is_disabled(config, name) ? 0 :
	       collector_search_add(search, name, path, line);
}

/*
 * The names of all NAME.conf in a directory, sorted, but those that config (NULL: none) disables.
 */
static int add_directory(struct collector_search *search, const char *directory,
			 const struct config *config)
{
	_cleanup_(freep) struct dirent **entries = NULL;
	int n = scandir(directory, &entries, config_is_file, alphasort), err = 0;

	for (int i = 0; i < n; i++) {
		*strrchr(entries[i]->d_name, '.') = '\0';
		if (!err)
			err = add_enabled(search, config, entries[i]->d_name, directory, 0);
		free(entries[i]);
	}
	return err;
}

const char *collector_search_find(const struct collector_search *search, const char *name)
{
	static const char *const suffixes[] = { ".conf", ".bpf.o" };
	char path[PATH_MAX];

	for (size_t i = 0; i < search->n_directories; i++)
		for (size_t j = 0; j < ARRAY_SIZE(suffixes); j++) {
			snprintf(path, sizeof(path), "%s/%s%s", search->directories[i], name, suffixes[j]);
			if (!access(path, F_OK))
				return search->directories[i];
		}
	return NULL;
}

struct descriptor *collector_search_describe(const struct wanted_collector *collector)
{
	_cleanup_(diag_done) struct diag ignored = DIAG_INIT;
	struct descriptor *descriptor = NULL;
	_cleanup_(freep) char *path = NULL;
	_cleanup_(fclosep) FILE *f = NULL;

	if (asprintf(&path, "%s/%s.conf", collector->path, collector->name) < 0)
		path = NULL;
	f = path ? fopen(path, "re") : NULL;
	if (f)
		(void)descriptor_parse(f, path, &ignored, &descriptor);
	return descriptor;
}

int collector_search_all(const struct collector_search *search, struct collector_search *all)
{
	int err = 0;

	for (size_t i = 0; i < search->n_directories && !err; i++)
		err = add_directory(all, search->directories[i], NULL);
	return err;
}

/* Calls visit with each metric of each collector of the directories, until it does not return 0. */
static int visit_metrics(const struct collector_search *search, void *user,
			 int (*visit)(void *user, const char *collector, const char *metric))
{
	_cleanup_(collector_search_done) struct collector_search all = { 0 };
	int r = collector_search_all(search, &all);

	array_for_each (collector, all.wanted, all.n_wanted) {
		_cleanup_(descriptor_freep) struct descriptor *descriptor =
			collector_search_describe(collector);

		for (size_t i = 0; descriptor && i < descriptor->n_metrics && !r; i++)
			if (descriptor->metrics[i].name)
				r = visit(user, collector->name, descriptor->metrics[i].name);
	}
	return r;
}

struct word {
	struct collector_search *search;
	const char *text;
	bool is_metric;
};

static int add_if_named(void *user, const char *collector, const char *metric)
{
	struct word *word = user;

	if (!question_is_named(word->text, metric))
		return 0;
	word->is_metric = true;
	return collector_search_add(word->search, collector, NULL, 0);
}

/* A word of the command line. What is not found is reported when it is opened. */
static int add_word(struct collector_search *search, const char *word)
{
	struct word metric = { search, word, false };
	int err = collector_search_find(search, word) ? 0 :
		  visit_metrics(search, &metric, add_if_named);

	return err || metric.is_metric ? err : collector_search_add(search, word, NULL, 0);
}

static int find_names(struct collector_search *search, const struct config *config,
		      const char *const *names)
{
	const struct setting_list *list = &config->agent.collectors;
	const char *const *chosen = list->n_items ? (const char *const *)list->items :
				    default_names;
	size_t n_chosen = list->n_items ? list->n_items : ARRAY_SIZE(default_names);
	int err = 0;

	for (; names && *names && !err; names++)
		err = config_find_section(config, "probe", *names) ?
		      collector_search_add(search, *names, NULL, 0) :
								     add_word(search, *names);
	array_for_each (section, config->sections, config->n_sections)
		if (is_a(section, "probe") && !section->given.line && !err)
			err = collector_search_add(search, section->name, NULL, 0);
	search->is_named = search->n_wanted;
	if (search->is_named || err)
		return err;
	for (size_t i = 0; i < n_chosen && !err; i++) {
		unsigned int line = 0;
		const char *path = config_find_place(config, "collectors", chosen[i], &line);

		err = add_enabled(search, config, chosen[i], path, line);
	}
	array_for_each (section, config->sections, config->n_sections)
		if ((is_a(section, "collector") || is_a(section, "probe")) && !err)
			err = add_enabled(search, config, section->name, section->given.path,
					  section->given.line);
	/* All directories but the last, the installed one, are the user's own. */
	for (size_t i = 0; i + 1 < search->n_directories && !list->n_items && !err; i++)
		err = add_directory(search, search->directories[i], config);
	return err;
}

static int is_equal(void *metric, const char *collector, const char *name)
{
	return !strcmp(metric, name);
}

bool collector_search_has_metric(const struct collector_search *search, const char *metric)
{
	return visit_metrics(search, (void *)metric, is_equal) == 1;
}

/* Each end of the name that may be written instead. */
static int add_ends(void *list, const char *collector, const char *metric)
{
	int err = 0;

	for (const char *end = metric; end && !err; end = strchr(end, '.'), end += end != NULL)
		err = setting_list_add(list, end);
	return err;
}

/* The shortest of the names that begin with word. NULL: none does. */
static const char *shortest_after(const char *word, const void *names, size_t n, size_t item_bytes)
{
	const char *found = NULL;

	for (size_t i = 0; i < n; i++) {
		const char *name = array_name(names, i, item_bytes);

		if (!strncmp(name, word, strlen(word)) && (!found || strlen(name) < strlen(found)))
			found = name;
	}
	return found;
}

void collector_search_report(const struct collector_search *search,
			     const struct wanted_collector *wanted, struct diag *diag)
{
	/* In a file, metrics mean nothing. */
	const char *neither = wanted->line ? "" : ", and no metric ends with it";
	const char *nearest;
	_cleanup_(collector_search_done) struct collector_search all = { 0 };
	_cleanup_(setting_list_clear) struct setting_list metrics = { 0 };
	_cleanup_(buf_done) struct buf directories = BUF_INIT;

	(void)collector_search_all(search, &all);
	if (!wanted->line)
		(void)visit_metrics(search, &metrics, add_ends);
	for (size_t i = 0; i < search->n_directories; i++)
		buf_printf(&directories, "%s%s", i ? ", " : "", search->directories[i]);
	nearest = parse_nearest(wanted->name, all.wanted, all.n_wanted) ?:
		  parse_nearest(wanted->name, metrics.items, metrics.n_items);
	if (!nearest)
		nearest = shortest_after(wanted->name, all.wanted, all.n_wanted,
					 sizeof(*all.wanted));
	if (!nearest)
		nearest = shortest_after(wanted->name, metrics.items, metrics.n_items,
					 sizeof(*metrics.items));
	if (nearest)
		diag_add(diag, wanted->path, wanted->line, "collector \"%s\" is not in %s%s; did you mean \"%s\"?",
			 wanted->name, buf_text(&directories), neither, nearest);
	else
		diag_add(diag, wanted->path, wanted->line, "collector \"%s\" is not in %s%s; %s", wanted->name,
			 buf_text(&directories), neither, wanted->line ?
			 "a collector is a descriptor, NAME.conf, and an object, usually NAME.bpf.o" :
			 "\"bpfpush list --available\" shows all collectors");
}

/* Those of the configuration come first, and must be there. */
static void check_directories(const struct collector_search *search, const struct config *config,
			      struct diag *diag)
{
	for (size_t i = 0; i < search->n_directories; i++) {
		const char *directory = search->directories[i], *path;
		int err = trust_check_directory(directory, diag);
		unsigned int line = 0;

		if (!err || i >= config->agent.collector_directories.n_items)
			continue;
		path = config_find_place(config, "collector_directory", directory, &line) ?: "bpfpush";
		diag_add(diag, path, line, "collector directory %s cannot be used: %s", directory,
			 err == -ENOTDIR ? "it is not a directory; name the one that holds the .conf and .bpf.o files" :
					   strerror(-err));
	}
}

/*
 * A section for a collector that does not exist is a slip of the pen, whether or not it would run
 * now.
 */
static void check_sections(const struct collector_search *search, const struct config *config,
			   struct diag *diag)
{
	array_for_each (section, config->sections, config->n_sections) {
		const struct assignments *given = &section->given;
		const struct wanted_collector asked = { (char *)section->name, given->path,
							given->line };

		if (is_a(section, "probe") &&
		    (collector_search_find(search, section->name) ||
		     config_find_section(config, "collector", section->name)))
			diag_add(diag, asked.path, asked.line,
				 "[probe %s] has the name of a collector; give the probe another one, and all its settings in its own section",
				 section->name);
		else if (is_a(section, "collector") &&
			 !array_find(search->wanted, search->n_wanted, section->name) &&
		    !collector_search_find(search, section->name))
			collector_search_report(search, &asked, diag);
	}
}

int collector_search(const struct config *config, const char *const *names, struct diag *diag,
		     struct collector_search *ret_search)
{
	_cleanup_(collector_search_done) struct collector_search search = { 0 };
	int err = find_directories(&search, config) ?: find_names(&search, config, names);

	if (err)
		return err;
	check_sections(&search, config, diag);
	check_directories(&search, config, diag);
	*ret_search = search;
	search = (struct collector_search){ 0 };
	return 0;
}

void collector_search_done(struct collector_search *search)
{
	for (size_t i = 0; i < search->n_wanted; i++)
		free(search->wanted[i].name);
	free(search->wanted);
	free(search->directories);
	free(search->tree);
	*search = (struct collector_search){ 0 };
}
