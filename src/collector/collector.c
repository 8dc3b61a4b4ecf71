/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A collector is data: an object says what the kernel counts, a descriptor what the numbers mean. This file
 * joins the parts that understand them. Opening checks everything that can be checked without a right, so
 * that each mistake is reported with its line. Starting loads the object and attaches its programs. From then
 * on a reading is always the same: run the iterators, read the maps, give the growth to the series.
 *
 * The kernel's maps only grow. Keys are removed here, when nothing has counted on them for some readings and
 * their owner has ended.
 */
#include "collector/collector.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "collector/binding.h"
#include "collector/btf-check.h"
#include "metric/series.h"
#include "util/parse.h"

/* After how many readings keys are removed whose owner is gone. */
#define REMOVE_EVERY 6

/* Where processes are asked for: entries of owner.h's process_names, and how much larger tables get. */
#define PROCESS_NAMES  8192
#define PROCESS_FACTOR 8

/* Of a table, a CPU. */
#define SLOTS_MIN 16
#define SLOTS_MAX 1048576

static struct bpf_map *find_rodata(struct bpf_object *object)
{
	struct bpf_map *map;

	bpf_object__for_each_map (map, object) {
		const char *name = bpf_map__name(map), *dot = strrchr(name, '.');

		if (bpf_map__is_internal(map) && dot && !strcmp(dot, ".rodata"))
			return map;
	}
	return NULL;
}

static int init_settings(struct collector *collector)
{
	struct bpf_map *map = find_rodata(collector->object);
	size_t size = 0;
	const void *data = map ? bpf_map__initial_value(map, &size) : NULL;

	return settings_init(collector->btf, bpf_object__btf(collector->object), data, data ? size : 0,
			     &collector->settings);
}

static void complain_of_file(const char *path, int err, struct diag *diag)
{
	if (err == -ENOENT)
		diag_add(diag, path, 0, "is missing; a collector is a pair of NAME.conf and NAME.bpf.o");
	else
		diag_add(diag, path, 0, "cannot be read: %s", strerror(-err));
}

static int read_descriptor(struct collector *collector, struct diag *diag)
{
	_cleanup_(fclosep) FILE *f = fopen(collector->conf_path, "re");
	int err = f ? descriptor_parse(f, collector->conf_path, diag, &collector->descriptor) : -errno;

	if (err && err != -ENOMEM)
		complain_of_file(collector->conf_path, err, diag);
	return err == -ENOMEM ? err : 0;
}

/* libbpf's errno is not always enough: an object without BTF has that of a file that does not exist. */
static void complain_of_object(const char *path, int err, struct diag *diag)
{
	struct stat status;
	char text[128];

	if (stat(path, &status))
		complain_of_file(path, -errno, diag);
	else if (!S_ISREG(status.st_mode))
		diag_add(diag, path, 0, "is not a file");
	else if (err == -ENOENT)
		diag_add(diag, path, 0, "has no type information (BTF); compile it with clang -target bpf -g");
	else if (err == -EACCES || err == -EPERM)
		complain_of_file(path, err, diag);
	else
		diag_add(diag, path, 0, "is not a BPF object (%s); compile it with clang -target bpf -g",
			 libbpf_strerror(err, text, sizeof(text)) ? "damaged" : text);
}

/* An object without readable BTF is not damaged: opening it finds out what is wrong. */
static bool is_damaged(const char *path)
{
	struct btf *btf = btf__parse_elf(path, NULL);
	bool is_whole = !btf || btf_is_whole(btf);

	btf__free(btf);
	return !is_whole;
}

static int open_object(struct collector *collector, struct diag *diag)
{
	int err;

	if (is_damaged(collector->object_path)) {
		diag_add(diag, collector->object_path, 0, "is damaged: its type information (BTF) refers to types that do not exist; compile or install it again");
		return 0;
	}
	collector->object = bpf_object__open_file(collector->object_path, NULL);
	if (!collector->object) {
		if (errno == ENOMEM)
			return -ENOMEM;
		complain_of_object(collector->object_path, -errno, diag);
		return 0;
	}
	/* libbpf's copy: in the file itself the variables' offsets are still 0. */
	if (bpf_object__btf(collector->object)) {
		uint32_t size;
		const void *raw = btf__raw_data(bpf_object__btf(collector->object), &size);

		collector->btf = raw ? btf__new(raw, size) : NULL;
	}
	if (!collector->btf) {
		complain_of_object(collector->object_path, -ENOENT, diag);
		return 0;
	}
	err = init_settings(collector);
	return err ? err : programs_list(collector->object, &collector->programs);
}

static int fill(struct collector *collector, const char *directory, const char *name)
{
	collector->name = strdup(name);
	collector->directory = strdup(directory);
	if (asprintf(&collector->conf_path, "%s/%s.conf", directory, name) < 0)
		collector->conf_path = NULL;
	if (asprintf(&collector->object_path, "%s/%s.bpf.o", directory, name) < 0)
		collector->object_path = NULL;
	return collector->name && collector->directory && collector->conf_path && collector->object_path ? 0 : -ENOMEM;
}

int collector_open(const char *directory, const char *name, struct labels *labels, size_t series_limit,
		   struct diag *diag, struct collector **ret_collector)
{
	_cleanup_(collector_freep) struct collector *collector = calloc(1, sizeof(*collector));
	unsigned int n_before = diag->n_errors;
	int err;

	if (!collector)
		return -ENOMEM;
	collector->labels = labels;
	collector->series_limit = series_limit;
	collector->context = (struct label_context){ .labels = labels, .process_names.fd = -1 };
	err = fill(collector, directory, name);
	if (!err)
		err = read_descriptor(collector, diag);
	if (!err)
		err = open_object(collector, diag);
	if (!err && collector->descriptor && collector->btf)
		err = bindings_make(collector, diag) ?: bindings_check(collector, diag);
	if (err)
		return err;
	collector->context.btf = collector->btf;
	*ret_collector = diag->n_errors == n_before ? TAKE_PTR(collector) : NULL;
	return 0;
}

struct collector *collector_free(struct collector *collector)
{
	if (!collector)
		return NULL;
	bindings_done(collector);
	programs_done(&collector->programs);
	for (size_t i = 0; i < collector->n_metrics; i++) {
		metric_done_series(collector->metrics[i]);
		free(collector->metrics[i]);
	}
	free(collector->metrics);
	settings_done(&collector->settings);
	bpf_object__close(collector->object);
	btf__free(collector->btf);
	descriptor_free(collector->descriptor);
	free(collector->name);
	free(collector->directory);
	free(collector->conf_path);
	free(collector->object_path);
	free(collector);
	return NULL;
}

int collector_set(struct collector *collector, const char *key, const char *value, const char *path,
		  unsigned int line, struct diag *diag)
{
	struct setting *setting = setting_find(&collector->settings, key);
	const char *complaint = NULL, *names[64] = { "enabled" }; /* which the configuration handles itself */
	size_t n = 1;
	int err;

	if (!setting) {
		for (size_t i = 0; i < collector->settings.n && n < ARRAY_SIZE(names); i++)
			names[n++] = collector->settings.items[i].name;
		diag_add_unknown(diag, path, line, "setting", key, names, n);
		return 0;
	}
	err = setting_set(&collector->settings, setting, value, path, line, &complaint);
	if (err == -EINVAL)
		diag_add(diag, path, line, "%s = %s: %s", key, value, complaint);
	return err == -EINVAL ? 0 : err;
}

/* The setting for a table's slots per CPU; NULL: there is none. */
static const struct setting *table_size(const struct collector *collector, const char *map)
{
	char name[256];

	snprintf(name, sizeof(name), "%s_slots", map);
	return setting_find(&collector->settings, name);
}

static uint64_t table_slots(const struct collector *collector, const char *map)
{
	const struct setting *setting = table_size(collector, map);

	return setting ? setting_number(&collector->settings, setting) : 0;
}

static bool is_per_process(const struct collector *collector)
{
	const struct setting *setting = setting_find(&collector->settings, "per_process");

	return setting && !setting_is_zero(&collector->settings, setting);
}

/* A key for each process instead of each cgroup needs room; sizes that somebody has set stay. */
static void scale_tables(struct collector *collector)
{
	for (size_t i = 0; i < collector->n_bindings && is_per_process(collector); i++) {
		const struct setting *setting = table_size(collector, collector->bindings[i].map);

		if (setting)
			setting_scale(&collector->settings, setting, PROCESS_FACTOR, SLOTS_MAX);
	}
}

static bool is_mmapable_array(const struct bpf_map *map)
{
	return bpf_map__type(map) == BPF_MAP_TYPE_ARRAY && bpf_map__map_flags(map) & BPF_F_MMAPABLE &&
	       !bpf_map__is_internal(map);
}

static bool is_table_size(uint64_t slots)
{
	return slots >= SLOTS_MIN && slots <= SLOTS_MAX && !(slots & (slots - 1));
}

void collector_check(struct collector *collector, struct diag *diag)
{
	struct bpf_map *map;

	bpf_object__for_each_map (map, collector->object) {
		const char *name = bpf_map__name(map);
		const struct binding *binding = binding_find(collector, name);
		const struct setting *size = table_size(collector, name);
		uint64_t slots = table_slots(collector, name);

		if (!size && binding && binding->source.is_table)
			diag_add(diag, collector->conf_path, binding->line,
				 "the object has no variable \"%s_slots\" with the size of table \"%s\"; define it with TABLE of "
				 "<bpfpush/table.h>",
				 name, name);
		else if (size && is_mmapable_array(map) && !is_table_size(slots))
			diag_add(diag, size->path ? size->path : collector->conf_path, size->line,
				 "%s_slots = %" PRIu64 " must be a power of two between %d and %d", name, slots, SLOTS_MIN,
				 SLOTS_MAX);
	}
}

/* The file may have been replaced since it was checked (a package upgrade): what is laid over it must fit. */
static bool is_same_object(const struct collector *collector, const struct bpf_object *object)
{
	uint32_t checked_size, size = 0;
	const void *checked = btf__raw_data(collector->btf, &checked_size);
	const void *raw = bpf_object__btf(object) ? btf__raw_data(bpf_object__btf(object), &size) : NULL;

	return checked && raw && size == checked_size && !memcmp(checked, raw, size);
}

/* A freshly opened object with settings and table sizes set: programs_load() asks for it at each try. */
static int prepare(void *user, struct bpf_object **ret_object)
{
	struct collector *collector = user;
	LIBBPF_OPTS(bpf_object_open_opts, options);
	struct bpf_object *object;
	struct bpf_map *map;
	int err = 0;

	/*
	 * libbpf before 1.3 looks for a type that the kernel lacks in the modules' BTF, which needs CAP_SYS_ADMIN;
	 * being told where the kernel's BTF is, it does not.
	 */
	if (libbpf_major_version() == 1 && libbpf_minor_version() < 3 && geteuid() != 0)
		options.btf_custom_path = "/sys/kernel/btf/vmlinux";
	object = bpf_object__open_file(collector->object_path, &options);
	if (!object)
		return -errno;
	if (!is_same_object(collector, object))
		err = -ESTALE;
	else if (collector->settings.size_bytes)
		err = bpf_map__set_initial_value(find_rodata(object), collector->settings.data,
						 collector->settings.size_bytes);
	bpf_object__for_each_map (map, object) {
		uint64_t entries = table_slots(collector, bpf_map__name(map)) * (uint64_t)libbpf_num_possible_cpus();

		if (!err && entries && is_mmapable_array(map))
			err = entries > UINT32_MAX ? -E2BIG : bpf_map__set_max_entries(map, (uint32_t)entries);
	}
	map = bpf_object__find_map_by_name(object, "process_names");
	if (!err && map && is_per_process(collector))
		err = bpf_map__set_max_entries(map, PROCESS_NAMES);
	if (err) {
		bpf_object__close(object);
		return err;
	}
	*ret_object = object;
	return 0;
}

/* Programs that wait for a setting that is off are off; iterators over a map learn which. */
static void choose_programs(struct collector *collector)
{
	for (size_t i = 0; i < collector->descriptor->n_programs; i++) {
		const struct descriptor_program *described = &collector->descriptor->programs[i];
		const struct setting *setting =
			described->when ? setting_find(&collector->settings, described->when) : NULL;

		for (uint32_t j = 0; j < collector->programs.n; j++) {
			struct program *program = &collector->programs.items[j];

			if (strcmp(program->name, described->name) && strcmp(program->hook, described->name))
				continue;
			program->map = described->map;
			if (setting && setting_is_zero(&collector->settings, setting))
				program->state = PROGRAM_OFF;
		}
	}
}

/*
 * The place of a text in the values of a map from numbers to names: one of the agent's own headers has it. A
 * user's object may have another map of that name, which is not used.
 */
static bool find_names(const struct collector *collector, const char *name, const char *member,
		       struct label_names *ret_names)
{
	struct bpf_map *map = bpf_object__find_map_by_name(collector->object, name);
	const struct field *field;
	struct shape shape;

	if (!map || bpf_map__key_size(map) != sizeof(uint64_t) ||
	    (bpf_map__type(map) != BPF_MAP_TYPE_HASH && bpf_map__type(map) != BPF_MAP_TYPE_LRU_HASH) ||
	    shape_from_btf(collector->btf, bpf_map__btf_value_type_id(map), &shape, NULL))
		return false;
	field = shape_find(&shape, member);
	if (field && field->class == FIELD_TEXT && shape.size_bytes <= LABEL_NAMES_VALUE_BYTES_MAX)
		*ret_names = (struct label_names){ bpf_map__fd(map), shape.size_bytes, field->offset_bytes,
						   field->size_bytes };
	else
		field = NULL;
	shape_done(&shape);
	return field != NULL;
}

static int loaded(void *user, const struct bpf_object *object)
{
	return bindings_open(user, object);
}

int collector_start(struct collector *collector, struct buf *why)
{
	const struct programs_loader loader = { prepare, loaded, collector };
	struct bpf_object *object;
	int err;

	choose_programs(collector);
	scale_tables(collector);
	err = programs_load(&collector->programs, &loader, why, &object);
	if (err)
		return err;
	bpf_object__close(collector->object);
	collector->object = object;
	collector->is_started = true;
	(void)find_names(collector, "process_names", "name", &collector->context.process_names);
	/* The iterators' first run sets the baseline: what was before is not counted. */
	err = programs_iterate(&collector->programs);
	return err ? err : bindings_take_baseline(collector);
}

void collector_share(struct collector *collector)
{
	struct label_names names;

	if (find_names(collector, "cgroup_names", "path", &names))
		labels_set_cgroup_names(collector->labels, &names);
}

int collector_read(struct collector *collector, uint64_t previous_ns)
{
	int err = programs_iterate(&collector->programs), r;

	for (size_t i = 0; i < collector->n_bindings; i++) {
		r = binding_read(&collector->bindings[i]);
		err = err ? err : r;
	}
	for (size_t i = 0; i < collector->n_metrics; i++)
		series_begin(collector->metrics[i]);
	for (size_t i = 0; i < collector->n_bindings; i++) {
		struct binding *binding = &collector->bindings[i];

		/* Rows that a broken reading did not reach are not gone. */
		r = binding->is_broken ? 0 : delta_compute(&binding->delta, binding->rows, previous_ns);
		err = err ? err : r;
	}
	for (size_t i = 0; i < collector->n_metrics; i++)
		series_end(collector->metrics[i]);
	if (++collector->n_readings % REMOVE_EVERY == 0)
		for (size_t i = 0; i < collector->n_bindings; i++)
			binding_remove_gone(&collector->bindings[i]);
	programs_stats(&collector->programs);
	return err;
}

void collector_restart(struct collector *collector)
{
	for (size_t i = 0; i < collector->n_bindings; i++)
		delta_release(&collector->bindings[i].delta, collector->bindings[i].rows);
	for (size_t i = 0; i < collector->n_metrics; i++)
		metric_done_series(collector->metrics[i]);
}
