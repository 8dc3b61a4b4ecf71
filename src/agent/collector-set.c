/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collector-set.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "build-config.h"
#include "util/log.h"
#include "util/parse.h"

#define OWN_DIRECTORY  "/etc/bpfpush/collectors"
#define INFRASTRUCTURE "cgroup"
#define NAMES_MAX      256
#define DIRECTORIES_MAX 16 /* the two standard ones included */

static const char *const default_names[] = { "syscalls", "network", "fileio", "scheduler", "memory", "tcpstate" };

struct search {
	const char *directories[DIRECTORIES_MAX];
	size_t n_directories;
	char *names[NAMES_MAX];	     /* owned */
	const char *from[NAMES_MAX]; /* path and line of the section that asks for it, or NULL */
	unsigned int lines[NAMES_MAX];
	size_t n_names;
	bool is_full; /* there were more than NAMES_MAX */
	char tree[4096]; /* the build tree's bpf/, or "" */
};

static void search_done(struct search *search)
{
	for (size_t i = 0; i < search->n_names; i++)
		free(search->names[i]);
}

/* A binary that lies beside build.ninja has not been installed. */
static void find_tree(char *tree, size_t size)
{
	char exe[2048], *slash;
	ssize_t length = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	tree[0] = '\0';
	if (length <= 0)
		return;
	exe[length] = '\0';
	slash = strrchr(exe, '/');
	if (!slash)
		return;
	*slash = '\0';
	snprintf(tree, size, "%s/build.ninja", exe);
	if (access(tree, F_OK)) {
		tree[0] = '\0';
		return;
	}
	snprintf(tree, size, "%s/bpf", exe);
}

static void find_directories(struct search *search, const struct config *config)
{
	const struct setting_list *own = &config->agent.collector_directories;

	for (size_t i = 0; i < own->n_items && search->n_directories < ARRAY_SIZE(search->directories) - 2; i++)
		search->directories[search->n_directories++] = own->items[i];
	search->directories[search->n_directories++] = OWN_DIRECTORY;
	find_tree(search->tree, sizeof(search->tree));
	search->directories[search->n_directories++] = *search->tree ? search->tree : COLLECTOR_DIR;
}

static int add_name(struct search *search, const char *name, const char *path, unsigned int line)
{
	for (size_t i = 0; i < search->n_names; i++)
		if (!strcmp(search->names[i], name))
			return 0;
	if (search->n_names == NAMES_MAX) {
		search->is_full = true;
		return 0;
	}
	search->names[search->n_names] = strdup(name);
	if (!search->names[search->n_names])
		return -ENOMEM;
	search->from[search->n_names] = path;
	search->lines[search->n_names++] = line;
	return 0;
}

static int by_name(const struct dirent **left, const struct dirent **right)
{
	return strcmp((*left)->d_name, (*right)->d_name);
}

static bool is_disabled(const struct config *config, const char *name)
{
	const struct config_collector *section = config_find_collector(config, name);

	return section && !section->is_enabled;
}

/* The names of NAME.conf in a directory, sorted; hidden files are an editor's. config: without what it disables. */
static int add_directory(struct search *search, const char *directory, const struct config *config)
{
	struct dirent **entries;
	int n = scandir(directory, &entries, NULL, by_name), err = 0;

	for (int i = 0; i < n; i++) {
		char *dot = strrchr(entries[i]->d_name, '.');

		if (dot && entries[i]->d_name[0] != '.' && !strcmp(dot, ".conf")) {
			*dot = '\0';
			if (!err && !(config && is_disabled(config, entries[i]->d_name)))
				err = add_name(search, entries[i]->d_name, NULL, 0);
		}
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	return err;
}

static int find_names(struct search *search, const struct config *config, const char *const *names)
{
	const struct setting_list *chosen = &config->agent.collectors;
	int err = 0;

	for (; names && *names && !err; names++)
		err = add_name(search, *names, NULL, 0);
	if (search->n_names || err)
		return err;
	for (size_t i = 0; i < chosen->n_items && !err; i++)
		if (!is_disabled(config, chosen->items[i]))
			err = add_name(search, chosen->items[i], NULL, 0);
	for (size_t i = 0; i < ARRAY_SIZE(default_names) && !chosen->n_items && !err; i++)
		if (!is_disabled(config, default_names[i]))
			err = add_name(search, default_names[i], NULL, 0);
	for (size_t i = 0; i < config->n_collectors && !err; i++)
		if (config->collectors[i].is_enabled)
			err = add_name(search, config->collectors[i].name, config->collectors[i].path,
				       config->collectors[i].line);
	/* All but the last directory, which is what was installed, are the user's own. */
	for (size_t i = 0; i + 1 < search->n_directories && !chosen->n_items && !err; i++)
		err = add_directory(search, search->directories[i], config);
	return err;
}

static bool is_in(const char *directory, const char *name, const char *suffix)
{
	_cleanup_(freep) char *path = NULL;

	return asprintf(&path, "%s/%s%s", directory, name, suffix) >= 0 && !access(path, F_OK);
}

/* Half a pair counts as found: opening it then says what is missing. */
static const char *find_pair(const struct search *search, const char *name)
{
	for (size_t i = 0; i < search->n_directories; i++)
		if (is_in(search->directories[i], name, ".conf") || is_in(search->directories[i], name, ".bpf.o"))
			return search->directories[i];
	return NULL;
}

static void complain_unknown(const struct search *search, const char *name, const char *path, unsigned int line,
			     struct diag *diag)
{
	struct search all = { 0 };
	const char *nearest;

	for (size_t i = 0; i < search->n_directories; i++)
		(void)add_directory(&all, search->directories[i], NULL);
	nearest = parse_nearest(name, (const char *const *)all.names, all.n_names);
	diag_add(diag, path ? path : "bpfpush", line, "there is no collector \"%s\" in %s%s%s; %s%s%s", name,
		 search->directories[0], search->n_directories > 1 ? ", " : "",
		 search->n_directories > 1 ? search->directories[1] : "",
		 nearest ? "did you mean \"" : "a collector is NAME.conf and NAME.bpf.o", nearest ? nearest : "",
		 nearest ? "\"?" : "");
	search_done(&all);
}

static bool is_plain_name(const char *name)
{
	return *name && *name != '.' && !strpbrk(name, "/ \t") && strlen(name) < 64;
}

/* One collector with what its section says, or none after complaints. */
static int open_one(struct collector_set *set, const struct config *config, const struct search *search, size_t at,
		    struct diag *diag)
{
	const struct config_collector *section = config_find_collector(config, search->names[at]);
	const char *directory = is_plain_name(search->names[at]) ? find_pair(search, search->names[at]) : NULL;
	_cleanup_(collector_freep) struct collector *collector = NULL;
	unsigned int n_before = diag->n_errors;
	struct collector **grown;
	int err;

	if (!is_plain_name(search->names[at]))
		diag_add(diag, search->from[at] ? search->from[at] : "bpfpush", search->lines[at],
			 "\"%s\" cannot be a collector's name; it has up to 63 characters without blanks and slashes",
			 search->names[at]);
	else if (!directory && strcmp(search->names[at], INFRASTRUCTURE))
		complain_unknown(search, search->names[at], search->from[at], search->lines[at], diag);
	if (!directory)
		return 0;
	err = collector_open(directory, search->names[at], set->labels, config->agent.series_limit, diag, &collector);
	if (err || !collector)
		return err;
	for (size_t i = 0; section && i < section->n_settings && !err; i++)
		err = collector_set(collector, section->settings[i].key, section->settings[i].value,
				    section->settings[i].path, section->settings[i].line, diag);
	collector_check(collector, diag);
	if (err || diag->n_errors > n_before)
		return err;
	grown = reallocarray(set->items, set->n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	set->items = grown;
	grown[set->n++] = TAKE_PTR(collector);
	return 0;
}

static void check_directories(const struct search *search, const struct config *config, struct diag *diag)
{
	const struct setting_list *own = &config->agent.collector_directories;
	struct stat status;

	if (search->is_full)
		diag_add(diag, "bpfpush", 0, "more than %d collectors are asked for; name fewer in [agent] collectors",
			 NAMES_MAX);
	if (own->n_items > DIRECTORIES_MAX - 2)
		diag_add(diag, "bpfpush", 0, "%zu collector directories are given, and %d are the most; put their pairs together",
			 own->n_items, DIRECTORIES_MAX - 2);
	for (size_t i = 0; i < own->n_items; i++)
		if (stat(own->items[i], &status))
			diag_add(diag, "bpfpush", 0, "collector directory %s: %s", own->items[i], strerror(errno));
		else if (!S_ISDIR(status.st_mode))
			diag_add(diag, "bpfpush", 0, "collector directory %s is no directory; give the one that holds the pairs",
				 own->items[i]);
}

/* A section for what does not exist is a slip of the pen, whether or not it would run now. */
static void check_sections(const struct search *search, const struct config *config, struct diag *diag)
{
	for (size_t i = 0; i < config->n_collectors; i++) {
		const struct config_collector *section = &config->collectors[i];
		bool is_asked = false;

		for (size_t j = 0; j < search->n_names; j++)
			is_asked |= !strcmp(search->names[j], section->name);
		if (!is_asked && !find_pair(search, section->name))
			complain_unknown(search, section->name, section->path, section->line, diag);
	}
}

int collector_set_open(const struct config *config, const char *const *names, uint64_t boot_ns, struct diag *diag,
		       struct collector_set *ret_set)
{
	_cleanup_(search_done) struct search search = { 0 };
	struct collector_set set = { 0 };
	size_t n_asked;
	int err;

	programs_quiet();
	find_directories(&search, config);
	err = labels_new(boot_ns, &set.labels);
	if (!err)
		err = find_names(&search, config, names);
	n_asked = search.n_names;
	if (!err && !is_disabled(config, INFRASTRUCTURE))
		err = add_name(&search, INFRASTRUCTURE, NULL, 0);
	for (size_t i = 0; i < search.n_names && !err; i++) {
		err = open_one(&set, config, &search, i, diag);
		if (i < n_asked)
			set.n_shown = set.n;
	}
	if (err) {
		collector_set_done(&set);
		return err;
	}
	check_sections(&search, config, diag);
	check_directories(&search, config, diag);
	*ret_set = set;
	return 0;
}

/* Hooks without any alternative that could be attached: the collector is partial, and says so. */
static void report_hooks(struct collector *collector)
{
	const struct programs *programs = collector_programs(collector);

	for (uint32_t i = 0; i < programs->n; i++) {
		const struct program *program = &programs->items[i];
		const struct log_field fields[] = {
			{ "BPFPUSH_COLLECTOR", collector_name(collector) },
			{ "BPFPUSH_PROGRAM", program->name },
			{ NULL, NULL },
		};

		if (program->state == PROGRAM_ATTACHED)
			log_debug("collector %s: %s attached as %s", collector_name(collector), program->hook, program->section);
		if (program->state != PROGRAM_REFUSED)
			continue;
		if (programs_is_hook_attached(programs, program->hook))
			log_debug("collector %s: %s (%s) cannot be used here (%s); another way is", collector_name(collector),
				  program->name, program->section, program->error);
		else
			log_event(LOG_LEVEL_WARNING, LOG_ID_PARTIAL, fields,
				  "collector %s is partial: %s (%s) was refused by the kernel: %s", collector_name(collector),
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
	log_error("collector %s cannot run: %s%s%s%s%s", collector_name(collector), strerror(-err), *line ? " (" : "",
		  line, *line ? ")" : "", remedy(err));
	return err;
}

/* Takes out what did not start. */
static void compact(struct collector_set *set, const bool *is_running)
{
	size_t kept = 0, n_shown = 0;

	for (size_t i = 0; i < set->n; i++) {
		if (!is_running[i]) {
			collector_free(set->items[i]);
			continue;
		}
		n_shown += i < set->n_shown;
		set->items[kept++] = set->items[i];
	}
	set->n = kept;
	set->n_shown = n_shown;
}

int collector_set_start(struct collector_set *set)
{
	bool is_running[NAMES_MAX] = { false };
	int first = 0, err;

	/* What names cgroups goes first: one that lives only while the others are being attached has a name then. */
	for (int others = 0; others < 2; others++) {
		for (size_t i = 0; i < set->n; i++) {
			if ((strcmp(collector_name(set->items[i]), INFRASTRUCTURE) == 0) == (others == 1))
				continue;
			err = start_one(set->items[i]);
			is_running[i] = !err;
			first = first ? first : err;
		}
		/* Behind that hook, if it is there: from here on each new cgroup is written down. */
		err = others ? 0 : labels_prime(set->labels);
		first = first ? first : err;
	}
	compact(set, is_running);
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
