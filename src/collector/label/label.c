/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel side keeps numbers: ids, addresses, errnos. Here they become names, as late as possible: once a
 * row, when its series is made. So a look-up may cost a system call. What a number means now may not be
 * known yet (a function of a module that has just been loaded), and what it names may end. Keys of owners
 * that have ended are removed from the maps, so a type that can tell has is_gone().
 */
#include "collector/label/label.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <net/if.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collector/label/cgroup.h"
#include "collector/label/ksym.h"

struct labels {
	uint64_t boot_ns;
	struct cgroups *cgroups;
	struct ksyms *ksyms; /* read on first need; NULL before, and where they cannot be read */
	bool has_read_ksyms; /* since labels_begin() */
};

/* owner.h: start time in units of 2^20 ns after boot, above 22 bits of process id. */
#define PROCESS_ID_BITS	   22
#define PROCESS_START_BITS 20

static const char *const syscall_names[] = {
#include "syscall-names.h" /* made at build time from the C library's list */
};

static const char *const syscall_names_32[] = {
#include "syscall-names-32.h"
};

/* bpf/include/syscall.h */
#define SYSCALL_COMPAT	0x80000000u
#define SYSCALL_UNKNOWN 0x7fffffffu

const char *label_syscall_name(uint32_t number)
{
	return number < ARRAY_SIZE(syscall_names) ? syscall_names[number] : NULL;
}

int label_syscall_number(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(syscall_names); i++)
		if (syscall_names[i] && !strcmp(syscall_names[i], name))
			return (int)i;
	return -1;
}

int labels_new(uint64_t boot_ns, struct labels **ret_labels)
{
	_cleanup_(labels_freep) struct labels *labels = calloc(1, sizeof(*labels));
	int err;

	if (!labels)
		return -ENOMEM;
	labels->boot_ns = boot_ns;
	err = cgroups_new(NULL, &labels->cgroups);
	if (err)
		return err;
	*ret_labels = TAKE_PTR(labels);
	return 0;
}

void labels_set_boot(struct labels *labels, uint64_t boot_ns)
{
	labels->boot_ns = boot_ns;
}

struct labels *labels_free(struct labels *labels)
{
	if (!labels)
		return NULL;
	cgroups_free(labels->cgroups);
	ksyms_free(labels->ksyms);
	free(labels);
	return NULL;
}

int labels_prime(struct labels *labels)
{
	return cgroups_walk(labels->cgroups);
}

void labels_begin(struct labels *labels)
{
	cgroups_begin(labels->cgroups);
	labels->has_read_ksyms = false;
}

void labels_set_cgroup_names(struct labels *labels, const struct label_names *names)
{
	cgroups_set_names(labels->cgroups, names->fd, names->text_offset_bytes, names->text_bytes);
}

typedef int add_fn(const struct label_context *context, const struct field *field, const char *name,
		   const void *raw, struct attributes *attributes);

static int add_text(struct attributes *attributes, const char *name, const char *text)
{
	return attributes_add_text(attributes, name, text, strlen(text));
}

static int64_t number_of(const struct field *field, const void *raw)
{
	uint64_t value = shape_load(raw, field->size_bytes);
	unsigned int unused = 64 - 8 * field->size_bytes;

	return field->is_signed ? (int64_t)(value << unused) >> unused : (int64_t)value;
}

static int add_cgroup(const struct label_context *context, const struct field *field, const char *name,
		      const void *raw, struct attributes *attributes)
{
	uint64_t id = shape_load(raw, field->size_bytes);
	const struct cgroup *cgroup;
	int r, err;

	if (!id)
		return 0;
	r = cgroups_get(context->labels->cgroups, id, &cgroup);
	err = r < 0 ? r : add_text(attributes, cgroup->attribute, cgroup->value);
	return err ? err : r;
}

static pid_t process_number(uint64_t id)
{
	return (pid_t)(id & ((1u << PROCESS_ID_BITS) - 1));
}

static int add_process(const struct label_context *context, const struct field *field, const char *name,
		       const void *raw, struct attributes *attributes)
{
	uint64_t id = shape_load(raw, field->size_bytes), created_ns;
	const struct label_names *names = &context->process_names;
	uint8_t value[LABEL_NAMES_VALUE_BYTES_MAX];
	char text[40], *at = text;
	struct tm parts;
	time_t seconds;
	int err;

	if (!id)
		return 0;
	created_ns = context->labels->boot_ns + (id >> PROCESS_ID_BITS << PROCESS_START_BITS);
	seconds = (time_t)(created_ns / 1000000000);
	at += strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &parts));
	snprintf(at, sizeof(text) - (size_t)(at - text), ".%03" PRIu64 "Z", created_ns / 1000000 % 1000);
	err = attributes_add_number(attributes, "process.pid", (int64_t)process_number(id));
	if (!err)
		err = add_text(attributes, "process.creation.time", text);
	if (err || names->fd < 0 || bpf_map_lookup_elem(names->fd, &id, value))
		return err;
	return attributes_add_text(attributes, "process.executable.name", value + names->text_offset_bytes,
				   strnlen((const char *)value + names->text_offset_bytes, names->text_bytes));
}

static int add_tgid(const struct label_context *context, const struct field *field, const char *name,
		    const void *raw, struct attributes *attributes)
{
	int64_t id = number_of(field, raw);

	return id ? attributes_add_number(attributes, name, id) : 0;
}

static int add_syscall(const struct label_context *context, const struct field *field, const char *name,
		       const void *raw, struct attributes *attributes)
{
	uint32_t number = (uint32_t)shape_load(raw, field->size_bytes);
	bool is_compat = number & SYSCALL_COMPAT;
	const char *known = label_syscall_name(number);
	char text[64];

	number &= ~SYSCALL_COMPAT;
	if (is_compat)
		known = number < ARRAY_SIZE(syscall_names_32) ? syscall_names_32[number] : NULL;
	if (number == SYSCALL_UNKNOWN)
		known = "unknown";
	if (known)
		snprintf(text, sizeof(text), "%s%s", is_compat ? "compat_" : "", known);
	else
		snprintf(text, sizeof(text), "%s%" PRIu32, is_compat ? "compat_" : "", number);
	return add_text(attributes, name, text);
}

static int add_errno(const struct label_context *context, const struct field *field, const char *name,
		     const void *raw, struct attributes *attributes)
{
	int number = (int)shape_load(raw, field->size_bytes);
	const char *known = strerrorname_np(number);
	char text[32];

	if (!number)
		return 0;
	snprintf(text, sizeof(text), "%d", number);
	return add_text(attributes, name, known ? known : text);
}

/* The name that the kernel gives block device major:minor: last part of /sys/dev/block/M:N's target. */
static int add_dev(const struct label_context *context, const struct field *field, const char *name,
		   const void *raw, struct attributes *attributes)
{
	uint32_t dev = (uint32_t)shape_load(raw, field->size_bytes);
	char path[64], target[PATH_MAX], *base;
	ssize_t size;

	if (!dev)
		return 0;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", dev >> 20, dev & 0xfffff);
	size = readlink(path, target, sizeof(target) - 1);
	if (size <= 0)
		return add_text(attributes, name, strrchr(path, '/') + 1);
	target[size] = '\0';
	base = strrchr(target, '/');
	return add_text(attributes, name, base ? base + 1 : target);
}

static int add_ifindex(const struct label_context *context, const struct field *field, const char *name,
		       const void *raw, struct attributes *attributes)
{
	uint32_t index = (uint32_t)shape_load(raw, field->size_bytes);
	char text[IF_NAMESIZE];

	if (!index)
		return 0;
	if (!if_indextoname(index, text))
		snprintf(text, sizeof(text), "%" PRIu32, index);
	return add_text(attributes, name, text);
}

/* The list is megabytes long, so it is read only for an address that is not known, and once a collection. */
static const char *find_function(struct labels *labels, uint64_t address)
{
	const char *known = labels->ksyms ? ksyms_find(labels->ksyms, address) : NULL;
	struct ksyms *fresh;

	if (known || !address || labels->has_read_ksyms)
		return known;
	labels->has_read_ksyms = true;
	if (ksyms_new("/proc/kallsyms", &fresh))
		return NULL;
	ksyms_free(labels->ksyms);
	labels->ksyms = fresh;
	return ksyms_find(fresh, address);
}

static int add_ksym(const struct label_context *context, const struct field *field, const char *name,
		    const void *raw, struct attributes *attributes)
{
	uint64_t address = shape_load(raw, field->size_bytes);
	const char *known = find_function(context->labels, address);
	char text[32];
	int err;

	if (!address)
		return 0;
	snprintf(text, sizeof(text), "0x%" PRIx64, address);
	err = add_text(attributes, name, known ? known : text);
	return err ? err : !known;
}

static int add_ip(const struct label_context *context, const struct field *field, const char *name,
		  const void *raw, struct attributes *attributes)
{
	char text[INET6_ADDRSTRLEN];

	if (!inet_ntop(field->size_bytes == 16 ? AF_INET6 : AF_INET, raw, text, sizeof(text)))
		return -EINVAL;
	return add_text(attributes, name, text);
}

static int add_enum(const struct label_context *context, const struct field *field, const char *name,
		    const void *raw, struct attributes *attributes)
{
	int64_t value = number_of(field, raw);
	char text[128];

	if (!shape_enum_name(context->btf, field->type_id, value, text, sizeof(text)))
		snprintf(text, sizeof(text), "%" PRId64, value);
	return strcmp(text, "none") ? add_text(attributes, name, text) : 0;
}

static int add_string(const struct label_context *context, const struct field *field, const char *name,
		      const void *raw, struct attributes *attributes)
{
	return attributes_add_text(attributes, name, raw, strnlen(raw, field->size_bytes));
}

static int add_integer(const struct label_context *context, const struct field *field, const char *name,
		       const void *raw, struct attributes *attributes)
{
	int64_t number = number_of(field, raw);
	char text[32];

	/* An attribute's number is an int64_t (OTLP): larger ones are text. */
	if (field->is_signed || number >= 0)
		return attributes_add_number(attributes, name, number);
	snprintf(text, sizeof(text), "%" PRIu64, (uint64_t)number);
	return add_text(attributes, name, text);
}

static bool cgroup_is_gone(const struct label_context *context, const void *raw, uint32_t size)
{
	uint64_t id = shape_load(raw, size);

	return id && cgroups_is_gone(context->labels->cgroups, id); /* 0: nobody, who does not end */
}

/* When the process that has this id now began, in clock ticks after boot (proc(5), stat, field 22). */
static int process_start_ticks(pid_t pid, uint64_t *ret_ticks)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[32], line[1024], *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	at = f && fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL; /* field 2 may hold blanks */
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at && sscanf(at, " %" SCNu64, ret_ticks) == 1 ? 0 : -ENOENT;
}

/*
 * No process of that id, or one that started at another time. /proc may hide others' processes (hidepid=), but
 * not from kill(), which sends nothing here.
 */
static bool process_is_gone(const struct label_context *context, const void *raw, uint32_t size)
{
	uint64_t id = shape_load(raw, size), ticks, tick_ns = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t first_ns = id >> PROCESS_ID_BITS << PROCESS_START_BITS;
	uint64_t last_ns = first_ns + (1u << PROCESS_START_BITS) - 1;

	if (!id)
		return false;
	if (process_start_ticks(process_number(id), &ticks))
		return kill(process_number(id), 0) && errno == ESRCH;
	return ticks < first_ns / tick_ns || ticks > last_ns / tick_ns;
}

static const struct label_type {
	const char *name; /* of the typedef; NULL: any, by class */
	enum field_class class;
	uint32_t size_bytes; /* 0: any of the class */
	const char *default_name;
	add_fn *add;
	bool (*is_gone)(const struct label_context *context, const void *raw, uint32_t size);
	unsigned int n_own; /* attributes that it names itself; 0: it makes one, called as the descriptor says */
} label_table[] = {
	{ "lbl_cgroup", FIELD_INTEGER, 8, "systemd.unit.name", add_cgroup, cgroup_is_gone, 1 },
	{ "lbl_process", FIELD_INTEGER, 8, "process.pid", add_process, process_is_gone, 3 },
	{ "lbl_tgid", FIELD_INTEGER, 4, "process.pid", add_tgid, NULL, 0 },
	{ "lbl_syscall", FIELD_INTEGER, 0, "bpfpush.syscall.name", add_syscall, NULL, 0 },
	{ "lbl_errno", FIELD_INTEGER, 0, "error.type", add_errno, NULL, 0 },
	{ "lbl_dev", FIELD_INTEGER, 4, "system.device", add_dev, NULL, 0 },
	{ "lbl_ifindex", FIELD_INTEGER, 4, "network.interface.name", add_ifindex, NULL, 0 },
	{ "lbl_ksym", FIELD_INTEGER, 8, "code.function.name", add_ksym, NULL, 0 },
	{ "lbl_ipv4", FIELD_INTEGER, 4, NULL, add_ip, NULL, 0 },
	{ "lbl_ipv6", FIELD_BYTES, 16, NULL, add_ip, NULL, 0 },
	{ NULL, FIELD_ENUM, 0, NULL, add_enum, NULL, 0 },
	{ NULL, FIELD_TEXT, 0, NULL, add_string, NULL, 0 },
	{ NULL, FIELD_INTEGER, 0, NULL, add_integer, NULL, 0 },
};

const struct label_type *label_type_find(const struct field *field)
{
	for (size_t i = 0; i < ARRAY_SIZE(label_table); i++) {
		const struct label_type *row = &label_table[i];

		if (row->class != field->class || (row->size_bytes && row->size_bytes != field->size_bytes))
			continue;
		if (row->name ? !strcmp(row->name, field->type_name) : strncmp(field->type_name, "lbl_", 4) != 0)
			return row;
	}
	return NULL;
}

const char *label_type_default_name(const struct label_type *type)
{
	return type->default_name;
}

unsigned int label_type_n_attributes(const struct label_type *type)
{
	return type->n_own ? type->n_own : 1;
}

bool label_type_names_itself(const struct label_type *type)
{
	return type->n_own != 0;
}

int label_add(const struct label_type *type, const struct label_context *context, const struct field *field,
	      const char *name, const void *raw, struct attributes *attributes)
{
	return type->add(context, field, name, raw, attributes);
}

bool label_is_gone(const struct label_type *type, const struct label_context *context, const struct field *field,
		   const void *raw)
{
	return type->is_gone && type->is_gone(context, raw, field->size_bytes);
}
