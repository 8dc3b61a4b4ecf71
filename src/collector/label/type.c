/* SPDX-License-Identifier: Apache-2.0 */
/* Label types: what the numbers, texts and bytes of keys become. */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "collector/label/cgroup.h"
#include "collector/label/ksym.h"
#include "collector/label/label.h"
#include "collector/label/name.h"
#include "collector/label/rule.h"
#include "util/array.h"
#include "util/duration.h"

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
		if (syscall_names[i] && !strncmp(syscall_names[i], name, length) &&
		    !syscall_names[i][length])
			return (int)i;
	return -1;
}

/* Its name, or else what format makes of it. */
#define put(member, name, ...) \
	((name) ? buf_append_text(&(member)->text, name) : buf_printf(&(member)->text, __VA_ARGS__))

static int add_cgroup(const struct member *member)
{
	struct cgroup_unit unit = { 0 };
	int r = cgroups_get(member->label->context->labels->cgroups, member->value, &unit), err;

	if (r < 0)
		return r;
	/* What does not add up counts only for one cgroup of a unit. */
	if (member->label->type->is_of_top && unit.place != CGROUP_TOP)
		return LABEL_UNWANTED | (unit.place == CGROUP_UNKNOWN);
	if (!unit.text)
		return LABEL_UNWANTED;
	err = attributes_add_text(member->attributes, unit.attribute, unit.text, strlen(unit.text));
	return err ? err : r;
}

static void put_cgroup_path(struct member *member)
{
	struct cgroup_unit unit = { 0 };
	int r = cgroups_get(member->label->context->labels->cgroups, member->value, &unit);

	member->r = r < 0 ? r : !unit.path;
	put(member, unit.path, "unknown");
}

static int add_process(const struct member *member)
{
	const struct label_names *names = &member->label->context->process_names;
	uint64_t created_ns = member->label->context->labels->boot_ns +
			      label_process_start_ns(member->value);
	uint8_t *value = member->label->context->labels->value;
	const char *name = (const char *)value + names->text_offset_bytes;
	time_t seconds = (time_t)(created_ns / NS_PER_S);
	char text[40], *at = text;
	struct tm parts;
	int err;

	at += strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &parts));
	snprintf(at, sizeof(text) - (size_t)(at - text), ".%03" PRIu64 "Z",
		 created_ns / NS_PER_MS % 1000);
	err = attributes_add_number(member->attributes, "process.pid",
				    (int64_t)label_process_number(member->value)) ?:
	      attributes_add_text(member->attributes, "process.creation.time", text, strlen(text));
	if (err || names->fd < 0 || bpf_map_lookup_elem(names->fd, &member->value, value))
		return err;
	return attributes_add_text(member->attributes, "process.executable.name", name, strnlen(name, names->text_bytes));
}

static void put_syscall(struct member *member)
{
	uint32_t number = (uint32_t)member->value & ~SYSCALL_COMPAT;
	bool is_compat = member->value & SYSCALL_COMPAT;
	const char *known = label_syscall_name(number);

	if (is_compat)
		known = number < ARRAY_SIZE(syscall_names_32) ? syscall_names_32[number] : NULL;
	buf_append_text(&member->text, is_compat ? "compat_" : "");
	put(member, number == SYSCALL_UNKNOWN ? "unknown" : known, "%" PRIu32, number);
}

/* Negative, as functions of the kernel return it, or positive. */
static void put_errno(struct member *member)
{
	int error = (int)member->number;
	unsigned int positive = error < 0 ? 0u - (unsigned int)error : (unsigned int)error;

	put(member, strerrorname_np((int)positive), "%d", error);
}

static void put_signal(struct member *member)
{
	/* The C library knows it by another name. */
	const char *known = member->value == SIGIO ? "IO" : sigabbrev_np((int)member->value);

	buf_append_text(&member->text, known ? "SIG" : "");
	put(member, known, "%" PRIu64, member->value);
}

/* What the machine calls a number; many keys have the same. */
static void put_named(struct member *member)
{
	const struct label_type *type = member->label->type;
	uint32_t number = (uint32_t)member->value;
	size_t at = (number + (uintptr_t)type / sizeof(*type)) % LABEL_NAMES;
	struct label_name *name = &member->label->context->labels->names[at];

	if (name->of != type || name->number != number)
		type->name_of(type, number, name->text);
	name->of = type;
	name->number = number;
	buf_append_text(&member->text, name->text);
}

/*
 * The list is megabytes long, so it is read only for an address that is not known, and once a
 * collection.
 */
static const char *find_function(struct labels *labels, uint64_t address)
{
	const char *known = labels->ksyms ? ksyms_find(labels->ksyms, address) : NULL;
	struct ksyms *fresh;

	if (known || labels->has_read_ksyms)
		return known;
	labels->has_read_ksyms = true;
	(void)label_modules_changed(labels);
	if (ksyms_new(labels->kallsyms, &fresh))
		return NULL;
	ksyms_free(labels->ksyms);
	labels->ksyms = fresh;
	return ksyms_find(fresh, address);
}

/*
 * One, or those of a stack, the innermost first, one in a line. Addresses of the kernel stay on the
 * machine.
 */
static void put_functions(struct member *member)
{
	const uint8_t *at = member->raw, *end = at + member->label->field->size_bytes;
	uint64_t address;

	for (; at < end && (address = shape_load(at, sizeof(address))); at += sizeof(address)) {
		buf_append_text(&member->text, member->text.size ? "\n" : "");
		put(member, find_function(member->label->context->labels, address), "unknown");
	}
	member->is_absent = !member->text.size;
}

/* An IPv4 address has one text, whatever socket it comes from. */
static void put_ip(struct member *member)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };
	bool is_wide = member->label->field->size_bytes == 16;
	bool is_mapped = is_wide && !memcmp(member->raw, mapped, sizeof(mapped));
	const uint8_t *at = (const uint8_t *)member->raw + (is_mapped ? sizeof(mapped) : 0);
	char text[INET6_ADDRSTRLEN];

	buf_append_text(&member->text,
			inet_ntop(is_wide && !is_mapped ? AF_INET6 : AF_INET, at, text,
				  sizeof(text)));
}

static void put_enum(struct member *member)
{
	const struct btf *btf = member->label->context->btf;
	uint32_t type_id = member->label->field->type_id;
	char text[128];
	const char *known = shape_enum_name(btf, type_id, member->number, text, sizeof(text));

	put(member, known, "%" PRId64, member->number);
	member->is_absent = known && !strcmp(known, "none");
}

static void put_kernel_enum(struct member *member)
{
	put(member, label_rule_constant(member->label->rule, member->number), "%" PRId64,
	    member->number);
}

static void put_string(struct member *member)
{
	buf_append(&member->text, member->raw,
		   strnlen(member->raw, member->label->field->size_bytes));
	/* What an event does not know is left out; a key stays what it is. */
	member->is_absent = member->attributes->is_of_event && !member->text.size;
}

static void put_hex(struct member *member)
{
	buf_printf(&member->text, "0x%" PRIx64, member->value);
}

static void put_bool(struct member *member)
{
	buf_append_text(&member->text, member->value ? "true" : "false");
}

static void put_integer(struct member *member)
{
	buf_printf(&member->text, member->label->field->is_signed ? "%" PRId64 : "%" PRIu64,
		   member->number);
}

static int add_seconds(const struct member *member)
{
	return attributes_add_real(member->attributes, member->label->attribute,
				   (double)member->value / (double)NS_PER_S);
}

static int add_words(const struct member *member)
{
	return attributes_add_texts(member->attributes, member->label->attribute,
				    member->raw, member->label->field->size_bytes);
}

static bool cgroup_is_gone(struct labels *labels, uint64_t id)
{
	return cgroups_is_gone(labels->cgroups, id);
}

#define CLASS(name) (1u << FIELD_##name)
#define NUMBER (CLASS(INTEGER) | CLASS(ENUM))
#define ARRAY  (CLASS(BYTES) | CLASS(TEXT))

static const struct label_type label_table[] = {
	{ "cgroup", NUMBER, 8, 0, true, "systemd.unit.name", .add = add_cgroup, .is_gone = cgroup_is_gone, .n_own = 1,
	  .own = { "systemd.unit.name", "container.id", "process.linux.cgroup" }, .instead = "cgroup-path" },
	{ "cgroup-path", NUMBER, 0, 0, true, NULL, put_cgroup_path, .is_gone = cgroup_is_gone },
	{ "cgroup-top", NUMBER, 8, 0, true, "systemd.unit.name", .add = add_cgroup, .is_gone = cgroup_is_gone, .n_own = 1,
	  .own = { "systemd.unit.name", "container.id", "process.linux.cgroup" }, .instead = "cgroup-path", .is_of_top = true },
	{ "process", NUMBER, 8, 0, true, "process.pid", .add = add_process,
	  .is_gone = label_process_is_gone, .n_own = 3,
	  .own = { "process.pid", "process.creation.time", "process.executable.name" }, .instead = "integer" },
	{ "tgid", NUMBER, 4, 0, true, "process.pid", put_integer, .kind = ATTRIBUTE_NUMBER },
	{ "syscall", NUMBER, 0, 0, false, "bpfpush.syscall.name", put_syscall },
	{ "errno", NUMBER, 0, 0, true, "error.type", put_errno },
	{ "signal", NUMBER, 0, 0, true, NULL, put_signal },
	{ "dev", NUMBER, 0, 0, true, "system.device", put_named, .name_of = name_device, .is_changing = true },
	{ "stat-dev", NUMBER, 4, 0, true, "system.device", put_named, .name_of = name_stat_device, .is_changing = true },
	{ "disk", ARRAY, 0, 1, false, "system.device", put_disk },
	{ "ifindex", NUMBER, 0, 0, true, "network.interface.name", put_named, .name_of = name_interface, .is_changing = true },
	{ "ksym", NUMBER, 8, 0, true, "code.function.name", put_functions, .is_changing = true, .is_function = true },
	{ "ksym", CLASS(BYTES), 0, 8, false, "code.stacktrace", put_functions, .is_changing = true, .has_lines = true,
	  .is_function = true },
	{ "ipv4", NUMBER | ARRAY, 4, 0, false, NULL, put_ip },
	/* its low half, which comes first in memory */
	{ "ipv4", NUMBER, 8, 0, false, NULL, put_ip },
	{ "ipv6", ARRAY, 16, 0, false, NULL, put_ip },
	{ "hex", NUMBER, 0, 0, false, NULL, put_hex },
	{ "hex", ARRAY, 0, 0, false, NULL, put_bytes },
	{ "dname", ARRAY, 0, 1, false, NULL, put_domain },
	{ "pci-vendor", NUMBER, 0, 0, false, NULL, put_named, .name_of = name_pci, .pci = "", .digits = 4 },
	{ "pci-device", NUMBER, 0, 0, false, NULL, put_named, .name_of = name_pci, .pci = "", .digits = 4,
	  .below = 4 },
	{ "pci-class", NUMBER, 0, 0, false, NULL, put_named, .name_of = name_pci, .pci = "C ", .digits = 2 },
	{ "pci-subclass", NUMBER, 0, 0, false, NULL, put_named, .name_of = name_pci, .pci = "C ", .digits = 2,
	  .below = 2 },
	{ "bool", NUMBER, 0, 0, false, NULL, put_bool, .kind = ATTRIBUTE_FLAG },
	{ "text", ARRAY, 0, 1, false, NULL, put_string },
	{ "integer", NUMBER, 0, 0, false, NULL, put_integer, .kind = ATTRIBUTE_NUMBER },
	{ "enum", CLASS(ENUM), 0, 0, false, NULL, put_enum },
	{ LABEL_KERNEL_ENUM, NUMBER, 0, 0, false, NULL, put_kernel_enum },
	{ "seconds", NUMBER, 8, 0, false, NULL, .add = add_seconds, .is_of_event = true },
	{ "words", ARRAY, 0, 1, false, NULL, .add = add_words, .is_of_event = true },
	{ "time", NUMBER, 8, .is_of_event = true, .role = LABEL_TIME },
	{ "monotonic-time", NUMBER, 8, .is_of_event = true, .role = LABEL_MONOTONIC_TIME },
	{ "duration", NUMBER, 8, .is_of_event = true, .role = LABEL_DURATION },
	/* two numbers, or one array */
	{ "trace-id", NUMBER, 8, .is_of_event = true, .role = LABEL_TRACE_ID },
	{ "trace-id", ARRAY, 16, .is_of_event = true, .role = LABEL_TRACE_ID },
	{ "span-id", NUMBER | ARRAY, 8, .is_of_event = true, .role = LABEL_SPAN_ID },
	{ "parent-span-id", NUMBER | ARRAY, 8, .is_of_event = true, .role = LABEL_PARENT_SPAN_ID },
	{ "none", NUMBER | ARRAY },
};

static bool is_fit(const struct label_type *type, const struct field *field)
{
	return type->classes & 1u << field->class &&
	       (!type->size_bytes || type->size_bytes == field->size_bytes) &&
	       (!type->element_bytes || type->element_bytes == field->bucket_bytes);
}

/* "cgroup-path", "cgroup_path" and "cgroup-path of something" are one. */
static bool is_called(const struct label_type *type, const char *word)
{
	size_t i = 0;

	while (word[i] && (word[i] == type->name[i] || (word[i] == '_' && type->name[i] == '-')))
		i++;
	return !type->name[i] && (!word[i] || word[i] == ' ');
}

const struct label_type *label_type_named(const char *word, const struct field *field)
{
	array_for_each (type, label_table, ARRAY_SIZE(label_table))
		if (is_called(type, word) && is_fit(type, field))
			return type;
	return NULL;
}

void label_type_names(const struct field *field, bool is_record, struct buf *out)
{
	array_for_each (type, label_table, ARRAY_SIZE(label_table))
		if (is_fit(type, field) && (is_record || !type->is_of_event))
			buf_printf(out, "%s%s", out->size ? ", " : "", type->name);
}

const struct label_type *label_type_find(const struct field *field)
{
	static const char *const words[] = { [FIELD_INTEGER] = "integer", [FIELD_ENUM] = "enum",
					     [FIELD_TEXT] = "text",
					     [FIELD_BYTES] = "?", [FIELD_HISTOGRAM] = "?" };
	const char *word = field->is_bool ? "bool" : words[field->class];

	return label_type_named(strncmp(field->type_name, "lbl_", 4) ? word : field->type_name + 4,
				field);
}
