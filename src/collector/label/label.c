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
#include "util/array.h"
#include "util/duration.h"
#include "util/hash.h"

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

int label_syscall_number(const char *name, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(syscall_names); i++)
		if (syscall_names[i] && !strncmp(syscall_names[i], name, length) && !syscall_names[i][length])
			return (int)i;
	return -1;
}

int labels_new(uint64_t boot_ns, const struct label_choice *choice, struct labels **ret_labels)
{
	_cleanup_(labels_freep) struct labels *labels = calloc(1, sizeof(*labels));
	int err;

	if (!labels)
		return -ENOMEM;
	labels->boot_ns = boot_ns;
	labels->choice = choice;
	labels->kallsyms = fopen("/proc/kallsyms", "re");
	err = cgroups_new(NULL, &choice->units, &labels->cgroups);
	if (err)
		return err;
	*ret_labels = TAKE_PTR(labels);
	return 0;
}

struct labels *labels_free(struct labels *labels)
{
	if (!labels)
		return NULL;
	cgroups_free(labels->cgroups);
	ksyms_free(labels->ksyms);
	fclosep(&labels->kallsyms);
	free(labels);
	return NULL;
}

void labels_begin(struct labels *labels, uint64_t previous_ns)
{
	labels->previous_ns = previous_ns;
	cgroups_begin(labels->cgroups);
	labels->has_read_ksyms = false;
	memset(labels->processes, 0, sizeof(labels->processes));
}

/* A member of one key, while it becomes attributes. */
struct member {
	const struct label_context *context;
	const struct field *field;
	const char *name; /* of the attribute */
	const void *raw;
	uint64_t value; /* FIELD_INTEGER, FIELD_ENUM: as it lies at raw; else 0 */
	struct attributes *attributes;
};

static int add_text(const struct member *member, const char *text)
{
	return attributes_add_text(member->attributes, member->name, text, strlen(text));
}

/* The name, or else what format makes of the number. */
static _printf_(3, 4) int add_name(const struct member *member, const char *name, const char *format, ...)
{
	char text[64];
	va_list arguments;

	if (name)
		return add_text(member, name);

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return add_text(member, text);
}

static int64_t number_of(const struct member *member)
{
	unsigned int unused = 64 - 8 * member->field->size_bytes;

	return member->field->is_signed ? (int64_t)(member->value << unused) >> unused : (int64_t)member->value;
}

static int add_cgroup(const struct member *member)
{
	struct cgroup_unit unit;
	int r = cgroups_get(member->context->labels->cgroups, member->value, &unit), err;

	if (r < 0)
		return r;
	if (!unit.text)
		return LABEL_UNWANTED;
	err = attributes_add_text(member->attributes, unit.attribute, unit.text, strlen(unit.text));
	return err ? err : r;
}

static pid_t process_number(uint64_t id)
{
	return (pid_t)(id & ((1u << PROCESS_ID_BITS) - 1));
}

/* After boot; up to 2^PROCESS_START_BITS ns before the process really began. */
static uint64_t process_start_ns(uint64_t id)
{
	return id >> PROCESS_ID_BITS << PROCESS_START_BITS;
}

static int add_process(const struct member *member)
{
	const struct label_names *names = &member->context->process_names;
	uint64_t created_ns = member->context->labels->boot_ns + process_start_ns(member->value);
	const char *name = (const char *)member->context->labels->value + names->text_offset_bytes;
	time_t seconds = (time_t)(created_ns / NS_PER_S);
	char text[40], *at = text;
	struct tm parts;
	int err;

	at += strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &parts));
	snprintf(at, sizeof(text) - (size_t)(at - text), ".%03" PRIu64 "Z", created_ns / NS_PER_MS % 1000);
	err = attributes_add_number(member->attributes, "process.pid", (int64_t)process_number(member->value));
	if (!err)
		err = attributes_add_text(member->attributes, "process.creation.time", text, strlen(text));
	if (err || names->fd < 0 || bpf_map_lookup_elem(names->fd, &member->value, member->context->labels->value))
		return err;
	return attributes_add_text(member->attributes, "process.executable.name", name, strnlen(name, names->text_bytes));
}

static int add_syscall(const struct member *member)
{
	uint32_t number = (uint32_t)member->value & ~SYSCALL_COMPAT;
	bool is_compat = member->value & SYSCALL_COMPAT;
	const char *known = label_syscall_name(number), *prefix = is_compat ? "compat_" : "";

	if (is_compat)
		known = number < ARRAY_SIZE(syscall_names_32) ? syscall_names_32[number] : NULL;
	if (number == SYSCALL_UNKNOWN)
		known = "unknown";
	return known ? add_name(member, NULL, "%s%s", prefix, known) : add_name(member, NULL, "%s%" PRIu32, prefix, number);
}

static int add_errno(const struct member *member)
{
	return add_name(member, strerrorname_np((int)member->value), "%d", (int)member->value);
}

/* The name that the kernel gives block device major:minor: last part of /sys/dev/block/M:N's target. */
static int add_dev(const struct member *member)
{
	uint32_t dev = (uint32_t)member->value;
	char path[64], target[PATH_MAX];
	ssize_t size;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", dev >> 20, dev & 0xfffff);
	size = readlink(path, target, sizeof(target) - 1);
	if (size <= 0)
		return add_text(member, basename(path));
	target[size] = '\0';
	return add_text(member, basename(target));
}

static int add_ifindex(const struct member *member)
{
	uint32_t index = (uint32_t)member->value;
	char name[IF_NAMESIZE];

	return add_name(member, if_indextoname(index, name), "%" PRIu32, index);
}

/* The list is megabytes long, so it is read only for an address that is not known, and once a collection. */
static const char *find_function(struct labels *labels, uint64_t address)
{
	const char *known = labels->ksyms ? ksyms_find(labels->ksyms, address) : NULL;
	struct ksyms *fresh;

	if (known || labels->has_read_ksyms)
		return known;
	labels->has_read_ksyms = true;
	if (ksyms_new(labels->kallsyms, &fresh))
		return NULL;
	ksyms_free(labels->ksyms);
	labels->ksyms = fresh;
	return ksyms_find(fresh, address);
}

static int add_ksym(const struct member *member)
{
	const char *known = find_function(member->context->labels, member->value);
	int err = add_name(member, known, "0x%" PRIx64, member->value);

	return err ? err : !known;
}

static int add_ip(const struct member *member)
{
	char text[INET6_ADDRSTRLEN];

	if (!inet_ntop(member->field->size_bytes == 16 ? AF_INET6 : AF_INET, member->raw, text, sizeof(text)))
		return -EINVAL;
	return add_text(member, text);
}

static int add_enum(const struct member *member)
{
	int64_t value = number_of(member);
	char text[128];
	const char *known = shape_enum_name(member->context->btf, member->field->type_id, value, text, sizeof(text));

	return known && !strcmp(known, "none") ? 0 : add_name(member, known, "%" PRId64, value);
}

static int add_string(const struct member *member)
{
	return attributes_add_text(member->attributes, member->name, member->raw,
				   strnlen(member->raw, member->field->size_bytes));
}

static int add_integer(const struct member *member)
{
	int64_t number = number_of(member);

	/* An attribute's number is an int64_t (OTLP): larger ones are text. */
	if (member->field->is_signed || number >= 0)
		return attributes_add_number(member->attributes, member->name, number);
	return add_name(member, NULL, "%" PRIu64, (uint64_t)number);
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
static bool is_process_gone(uint64_t id)
{
	uint64_t ticks, tick_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t first_ns = process_start_ns(id), last_ns = first_ns + (1u << PROCESS_START_BITS) - 1;

	if (process_start_ticks(process_number(id), &ticks))
		return kill(process_number(id), 0) && errno == ESRCH;
	return ticks < first_ns / tick_ns || ticks > last_ns / tick_ns;
}

static bool cgroup_is_gone(struct labels *labels, uint64_t id)
{
	return cgroups_is_gone(labels->cgroups, id);
}

static bool process_is_gone(struct labels *labels, uint64_t id)
{
	size_t at = hash_bytes(&id, sizeof(id)) % ARRAY_SIZE(labels->processes);

	if (labels->processes[at].id != id) {
		labels->processes[at].id = id;
		labels->processes[at].is_gone = is_process_gone(id);
	}
	return labels->processes[at].is_gone;
}

static const struct label_type label_table[] = {
	{ "lbl_cgroup", FIELD_INTEGER, 8, "systemd.unit.name", add_cgroup, true, cgroup_is_gone, 1,
	  { "systemd.unit.name", "container.id", "process.linux.cgroup" } },
	{ "lbl_process", FIELD_INTEGER, 8, "process.pid", add_process, true, process_is_gone, 3,
	  { "process.pid", "process.creation.time", "process.executable.name" } },
	{ "lbl_tgid", FIELD_INTEGER, 4, "process.pid", add_integer, true, NULL, 0 },
	{ "lbl_syscall", FIELD_INTEGER, 0, "bpfpush.syscall.name", add_syscall, false, NULL, 0 },
	{ "lbl_errno", FIELD_INTEGER, 0, "error.type", add_errno, true, NULL, 0 },
	{ "lbl_dev", FIELD_INTEGER, 4, "system.device", add_dev, true, NULL, 0 },
	{ "lbl_ifindex", FIELD_INTEGER, 4, "network.interface.name", add_ifindex, true, NULL, 0 },
	{ "lbl_ksym", FIELD_INTEGER, 8, "code.function.name", add_ksym, true, NULL, 0 },
	{ "lbl_ipv4", FIELD_INTEGER, 4, NULL, add_ip, false, NULL, 0 },
	{ "lbl_ipv6", FIELD_BYTES, 16, NULL, add_ip, false, NULL, 0 },
	{ NULL, FIELD_ENUM, 0, NULL, add_enum, false, NULL, 0 },
	{ NULL, FIELD_TEXT, 0, NULL, add_string, false, NULL, 0 },
	{ NULL, FIELD_INTEGER, 0, NULL, add_integer, false, NULL, 0 },
};

const struct label_type *label_type_find(const struct field *field)
{
	array_for_each (row, label_table, ARRAY_SIZE(label_table)) {
		if (row->class != field->class || (row->size_bytes && row->size_bytes != field->size_bytes))
			continue;
		if (row->name ? !strcmp(row->name, field->type_name) : strncmp(field->type_name, "lbl_", 4) != 0)
			return row;
	}
	return NULL;
}

static uint64_t load(const struct field *field, const void *raw)
{
	return field->class == FIELD_INTEGER || field->class == FIELD_ENUM ? shape_load(raw, field->size_bytes) : 0;
}

int label_add(const struct key_label *label, const void *key, struct attributes *attributes)
{
	const void *raw = (const uint8_t *)key + label->field->offset_bytes;
	struct member member = { label->context,	   label->field, label->attribute, raw,
				 load(label->field, raw), attributes };

	return !label->attribute || (label->type->is_optional && !member.value) ? 0 : label->type->add(&member);
}

/* What the member names, if such things end; 0: it does not. */
static uint64_t mortal(const struct key_label *label, const void *key)
{
	const struct field *field = label->field;

	return label->type && label->type->is_gone ? load(field, (const uint8_t *)key + field->offset_bytes) : 0;
}

bool label_is_gone(const struct key_label *label, const void *key)
{
	uint64_t value = mortal(label, key);

	return value && label->type->is_gone(label->context->labels, value);
}

uint64_t label_brief(const struct key_label *label, const void *key)
{
	uint64_t id = mortal(label, key);
	bool is_brief = id && label->type->is_gone == process_is_gone &&
			process_start_ns(id) >= label->context->labels->previous_ns &&
			process_is_gone(label->context->labels, id);

	return is_brief ? id : 0;
}
