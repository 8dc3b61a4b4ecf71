/* SPDX-License-Identifier: Apache-2.0 */
/* Label types: what the numbers, texts and bytes of keys become. */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
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
		if (syscall_names[i] && !strncmp(syscall_names[i], name, length) && !syscall_names[i][length])
			return (int)i;
	return -1;
}

static int add_text(const struct member *member, const char *text)
{
	return attributes_add_text(member->attributes, member->label->attribute, text, strlen(text));
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

static int add_cgroup(const struct member *member)
{
	struct cgroup_unit unit;
	int r = cgroups_get(member->label->context->labels->cgroups, member->value, &unit), err;

	if (r < 0)
		return r;
	if (!unit.text)
		return LABEL_UNWANTED;
	err = attributes_add_text(member->attributes, unit.attribute, unit.text, strlen(unit.text));
	return err ? err : r;
}

static int add_cgroup_path(const struct member *member)
{
	const char *path;
	int r = cgroups_path(member->label->context->labels->cgroups, member->value, &path), err;

	err = r < 0 ? r : add_text(member, path);
	return err ? err : r;
}

static int add_process(const struct member *member)
{
	const struct label_names *names = &member->label->context->process_names;
	uint64_t created_ns = member->label->context->labels->boot_ns + label_process_start_ns(member->value);
	uint8_t *value = member->label->context->labels->value;
	const char *name = (const char *)value + names->text_offset_bytes;
	time_t seconds = (time_t)(created_ns / NS_PER_S);
	char text[40], *at = text;
	struct tm parts;
	int err;

	at += strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &parts));
	snprintf(at, sizeof(text) - (size_t)(at - text), ".%03" PRIu64 "Z", created_ns / NS_PER_MS % 1000);
	err = attributes_add_number(member->attributes, "process.pid", (int64_t)label_process_number(member->value));
	if (!err)
		err = attributes_add_text(member->attributes, "process.creation.time", text, strlen(text));
	if (err || names->fd < 0 || bpf_map_lookup_elem(names->fd, &member->value, value))
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

/* Negative, as functions of the kernel return it, or positive. */
static int add_errno(const struct member *member)
{
	int error = (int)label_number(member->label->field, member->value);
	unsigned int positive = error < 0 ? 0u - (unsigned int)error : (unsigned int)error;

	return add_name(member, strerrorname_np((int)positive), "%d", error);
}

/* What the machine calls a number; many keys have the same. */
static int add_named(const struct member *member)
{
	const struct label_type *type = member->label->type;
	uint32_t number = (uint32_t)member->value;
	size_t at = (number + (uintptr_t)type / sizeof(*type)) % LABEL_NAMES;
	struct label_name *name = &member->label->context->labels->names[at];
	int err;

	if (name->of != type || name->number != number)
		type->name_of(type, number, name->text);
	name->of = type;
	name->number = number;
	err = add_text(member, name->text);
	return err ? err : type->is_changing;
}

/* The list is megabytes long, so it is read only for an address that is not known, and once a collection. */
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

static int add_ksym(const struct member *member)
{
	const char *known = find_function(member->label->context->labels, member->value);
	int err = add_name(member, known, "0x%" PRIx64, member->value);

	return err ? err : 1;
}

/* The innermost first, one in a line. */
static int add_stack(const struct member *member)
{
	const uint8_t *at = member->raw, *end = at + member->label->field->size_bytes;
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	uint64_t address;
	int err;

	for (; at < end && (address = shape_load(at, sizeof(address))); at += sizeof(address)) {
		const char *known = find_function(member->label->context->labels, address);

		buf_printf(&text, text.size ? "\n" : "");
		if (known)
			buf_append_text(&text, known);
		else
			buf_printf(&text, "0x%" PRIx64, address);
	}
	err = buf_error(&text);
	if (!err && text.size)
		err = attributes_add_lines(member->attributes, member->label->attribute, text.data, text.size);
	return err ? err : 1;
}

/* An IPv4 address has one text, whatever socket it comes from. */
static int add_ip(const struct member *member)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };
	bool is_wide = member->label->field->size_bytes == 16;
	bool is_mapped = is_wide && !memcmp(member->raw, mapped, sizeof(mapped));
	const uint8_t *at = (const uint8_t *)member->raw + (is_mapped ? sizeof(mapped) : 0);
	char text[INET6_ADDRSTRLEN];

	if (!inet_ntop(is_wide && !is_mapped ? AF_INET6 : AF_INET, at, text, sizeof(text)))
		return -EINVAL;
	return add_text(member, text);
}

static int add_enum(const struct member *member)
{
	int64_t value = label_number(member->label->field, member->value);
	char text[128];
	const struct key_label *label = member->label;
	const char *known = shape_enum_name(label->context->btf, label->field->type_id, value, text, sizeof(text));

	return known && !strcmp(known, "none") ? 0 : add_name(member, known, "%" PRId64, value);
}

static int add_kernel_enum(const struct member *member)
{
	int64_t value = label_number(member->label->field, member->value);

	return add_name(member, label_rule_constant(member->label->rule, value), "%" PRId64, value);
}

static int add_string(const struct member *member)
{
	return attributes_add_text(member->attributes, member->label->attribute, member->raw,
				   strnlen(member->raw, member->label->field->size_bytes));
}

static int add_bytes(const struct member *member)
{
	const struct field *field = member->label->field;
	_cleanup_(buf_done) struct buf text = BUF_INIT;

	if (field->class == FIELD_INTEGER || field->class == FIELD_ENUM)
		return add_name(member, NULL, "0x%" PRIx64, member->value);
	member->label->type->text_of(member->raw, field->size_bytes, &text);
	return buf_error(&text) ?:
		       attributes_add_text(member->attributes, member->label->attribute, text.data, text.size);
}

static int add_bool(const struct member *member)
{
	return attributes_add_flag(member->attributes, member->label->attribute, member->value);
}

static int add_integer(const struct member *member)
{
	int64_t number = label_number(member->label->field, member->value);

	/* An attribute's number is an int64_t (OTLP): larger ones are text. */
	if (member->label->field->is_signed || number >= 0)
		return attributes_add_number(member->attributes, member->label->attribute, number);
	return add_name(member, NULL, "%" PRIu64, (uint64_t)number);
}

static bool cgroup_is_gone(struct labels *labels, uint64_t id)
{
	return cgroups_is_gone(labels->cgroups, id);
}

#define CLASS(name) (1u << FIELD_##name)
#define NUMBER (CLASS(INTEGER) | CLASS(ENUM))
#define ARRAY  (CLASS(BYTES) | CLASS(TEXT))

static const struct label_type label_table[] = {
	{ "cgroup", NUMBER, 8, 0, true, "systemd.unit.name", add_cgroup, .is_gone = cgroup_is_gone, .n_own = 1,
	  .own = { "systemd.unit.name", "container.id", "process.linux.cgroup" }, .instead = "cgroup-path" },
	{ "cgroup-path", NUMBER, 0, 0, true, NULL, add_cgroup_path, .is_gone = cgroup_is_gone },
	{ "process", NUMBER, 8, 0, true, "process.pid", add_process, .is_gone = label_process_is_gone, .n_own = 3,
	  .own = { "process.pid", "process.creation.time", "process.executable.name" }, .instead = "integer" },
	{ "tgid", NUMBER, 4, 0, true, "process.pid", add_integer },
	{ "syscall", NUMBER, 0, 0, false, "bpfpush.syscall.name", add_syscall },
	{ "errno", NUMBER, 0, 0, true, "error.type", add_errno },
	{ "dev", NUMBER, 4, 0, true, "system.device", add_named, .name_of = name_device, .is_changing = true },
	{ "stat-dev", NUMBER, 4, 0, true, "system.device", add_named, .name_of = name_stat_device, .is_changing = true },
	{ "ifindex", NUMBER, 0, 0, true, "network.interface.name", add_named, .name_of = name_interface, .is_changing = true },
	{ "ksym", NUMBER, 8, 0, true, "code.function.name", add_ksym },
	{ "ksym", CLASS(BYTES), 0, 8, false, "code.stacktrace", add_stack },
	{ "ipv4", NUMBER | ARRAY, 4, 0, false, NULL, add_ip },
	{ "ipv6", ARRAY, 16, 0, false, NULL, add_ip },
	{ "hex", NUMBER | ARRAY, 0, 0, false, NULL, add_bytes, .text_of = name_bytes },
	{ "dname", ARRAY, 0, 1, false, NULL, add_bytes, .text_of = name_domain },
	{ "pci-vendor", NUMBER, 0, 0, false, NULL, add_named, .name_of = name_pci, .pci = "", .digits = 4 },
	{ "pci-device", NUMBER, 0, 0, false, NULL, add_named, .name_of = name_pci, .pci = "", .digits = 4, .below = 4 },
	{ "pci-class", NUMBER, 0, 0, false, NULL, add_named, .name_of = name_pci, .pci = "C ", .digits = 2 },
	{ "pci-subclass", NUMBER, 0, 0, false, NULL, add_named, .name_of = name_pci, .pci = "C ", .digits = 2, .below = 2 },
	{ "bool", NUMBER, 0, 0, false, NULL, add_bool },
	{ "text", ARRAY, 0, 1, false, NULL, add_string },
	{ "integer", NUMBER, 0, 0, false, NULL, add_integer },
	{ "enum", CLASS(ENUM), 0, 0, false, NULL, add_enum },
	{ LABEL_KERNEL_ENUM, NUMBER, 0, 0, false, NULL, add_kernel_enum },
	{ "none", NUMBER | ARRAY, 0, 0, false, NULL, NULL },
};

static bool is_fit(const struct label_type *type, const struct field *field)
{
	return type->classes & 1u << field->class && (!type->size_bytes || type->size_bytes == field->size_bytes) &&
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

void label_type_names(const struct field *field, struct buf *out)
{
	array_for_each (type, label_table, ARRAY_SIZE(label_table))
		if (is_fit(type, field))
			buf_printf(out, "%s%s", out->size ? ", " : "", type->name);
}

const struct label_type *label_type_find(const struct field *field)
{
	static const char *const words[] = { [FIELD_INTEGER] = "integer", [FIELD_ENUM] = "enum", [FIELD_TEXT] = "text",
					     [FIELD_BYTES] = "?", [FIELD_HISTOGRAM] = "?" };
	const char *word = field->is_bool ? "bool" : words[field->class];

	return label_type_named(strncmp(field->type_name, "lbl_", 4) ? word : field->type_name + 4, field);
}
