/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel side keeps numbers: ids, addresses, errnos. Here they become names, as late as
 * possible: once a row, when its series is made. So a look-up may cost a system call. What a number
 * means now may not be known yet (a function of a module that has just been loaded), and what it
 * names may end. Keys of owners that have ended are removed from the maps, so a type that can tell
 * has is_gone().
 */
#include "collector/label/label.h"

#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/label/cgroup.h"
#include "collector/label/ksym.h"
#include "collector/label/rule.h"
#include "util/duration.h"
#include "util/hash.h"
#include "util/kept.h"

#define KEPT_SYMBOLS  "kallsyms"
#define FIRST_SYMBOLS 64 /* lines of /proc/kallsyms that tell whether it shows addresses */

int labels_new(uint64_t boot_ns, const struct label_choice *choice, struct labels **ret_labels)
{
	_cleanup_(labels_freep) struct labels *labels = calloc(1, sizeof(*labels));
	int err;

	if (!labels)
		return -ENOMEM;
	labels->boot_ns = boot_ns;
	labels->choice = choice;
	labels->kallsyms = fopen("/proc/kallsyms", "re");
	labels->modules = fopen("/proc/modules", "re");
	err = cgroups_new(NULL, &choice->units, &labels->cgroups);
	if (err)
		return err;
	*ret_labels = TAKE_PTR(labels);
	return 0;
}

static void forget_kernel_types(struct labels *labels)
{
	btf__free(labels->kernel_types);
	labels->kernel_types = NULL;
	labels->has_kernel_types = false;
}

const struct btf *labels_kernel_types(struct labels *labels)
{
	if (!labels->has_kernel_types)
		labels->kernel_types = labels->choice->kernel_types ?
				       btf__parse(labels->choice->kernel_types, NULL) :
								      btf__load_vmlinux_btf();
	labels->has_kernel_types = true;
	return labels->kernel_types;
}

void labels_free(struct labels *labels)
{
	if (!labels)
		return;
	forget_kernel_types(labels);
	cgroups_free(labels->cgroups);
	ksyms_free(labels->ksyms);
	fclosep(&labels->kallsyms);
	fclosep(&labels->modules);
	free(labels);
}

/*
 * To those without the right, all are 0. The first are 0 to everybody: they are those of a CPU's
 * own memory.
 */
static bool has_addresses(FILE *kallsyms)
{
	unsigned long long address = 0;
	char line[1024];

	if (kallsyms)
		rewind(kallsyms);
	for (int i = 0;
	     i < FIRST_SYMBOLS && !address && kallsyms && fgets(line, sizeof(line), kallsyms); i++)
		(void)sscanf(line, "%llx", &address);
	return address;
}

/* The file shows what whoever opened it may see. */
static void take_over(struct labels *labels, int kept_fd)
{
	int fd = kept_fd < 0 ? -1 : fcntl(kept_fd, F_DUPFD_CLOEXEC, 0);
	FILE *kallsyms = fd < 0 ? NULL : fdopen(fd, "re");

	if (!kallsyms) {
		closep(&fd);
		return;
	}
	fclosep(&labels->kallsyms);
	labels->kallsyms = kallsyms;
}

const char *labels_find_symbols(struct labels *labels, struct kept *kept)
{
	_cleanup_(fclosep) FILE *f = NULL;

	if (!has_addresses(labels->kallsyms) && kept)
		take_over(labels, kept_find(kept, KEPT_SYMBOLS));
	else if (kept)
		(void)kept_put(kept, KEPT_SYMBOLS, fileno(labels->kallsyms));
	if (has_addresses(labels->kallsyms))
		return "";
	f = fopen("/proc/sys/kernel/kptr_restrict", "re");
	return f && fgetc(f) == '2' ? "functions of the kernel are called \"unknown\": kernel.kptr_restrict is 2, which hides them "
				"from everybody; set it to 1" : LABEL_NO_SYMBOLS;
}

/* Only their names and addresses: how often they are used changes all the time. */
bool label_modules_changed(struct labels *labels)
{
	uint64_t before = labels->modules_hash, hash = HASH_STABLE_START;
	char line[4096], name[64], address[32];

	if (labels->modules)
		rewind(labels->modules);
	while (labels->modules && fgets(line, sizeof(line), labels->modules))
		if (sscanf(line, "%63s %*s %*s %*s %*s %31s", name, address) == 2)
			hash = hash_text(hash_text(hash, name), address);
	labels->modules_hash = hash;
	return hash != before;
}

void labels_begin(struct labels *labels, uint64_t previous_ns)
{
	labels->previous_ns = previous_ns;
	cgroups_begin(labels->cgroups);
	forget_kernel_types(labels);
	if (labels->ksyms && label_modules_changed(labels))
		labels->ksyms = ksyms_free(labels->ksyms);
	labels->has_read_ksyms = false;
	memset(labels->names, 0, sizeof(labels->names));
	memset(labels->processes, 0, sizeof(labels->processes));
}

/*
 * When the process that has this id now began, in clock ticks after boot (proc(5), stat, field 22).
 */
static int process_start_ticks(pid_t pid, uint64_t *ret_ticks)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[32], line[1024], *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	/* field 2 may hold blanks */
	at = f && fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at && sscanf(at, " %" SCNu64, ret_ticks) == 1 ? 0 : -ENOENT;
}

/*
 * No process of that id, or one that started at another time. /proc may hide others' processes
 * (hidepid=), but not from kill(), which sends nothing here.
 */
static bool is_process_gone(uint64_t id)
{
	uint64_t ticks, tick_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t first_ns = label_process_start_ns(id),
		last_ns = first_ns + (1u << PROCESS_START_BITS) - 1;

	if (process_start_ticks(label_process_number(id), &ticks))
		return kill(label_process_number(id), 0) && errno == ESRCH;
	return ticks < first_ns / tick_ns || ticks > last_ns / tick_ns;
}

bool label_process_is_gone(struct labels *labels, uint64_t id)
{
	size_t at = hash_bytes(&id, sizeof(id)) % ARRAY_SIZE(labels->processes);

	if (labels->processes[at].id != id) {
		labels->processes[at].id = id;
		labels->processes[at].is_gone = is_process_gone(id);
	}
	return labels->processes[at].is_gone;
}

bool label_is_number(const struct field *field)
{
	return field->class == FIELD_INTEGER || field->class == FIELD_ENUM;
}

static uint64_t load_number(const struct field *field, const void *raw)
{
	return label_is_number(field) ? shape_load(raw, field->size_bytes) : 0;
}

/* The text, as the descriptor wants it. */
static int add_text(struct member *member)
{
	const struct key_label *label = member->label;
	const char *text;
	int err;

	label->type->put(member);
	buf_append_byte(&member->text, '\0');
	err = buf_error(&member->text);
	if (err || member->r < 0 || member->is_absent)
		return err ?: member->r;
	text = label_rule_apply(label->rule, (char *)member->text.data);
	if (!text)
		return LABEL_UNWANTED | member->r;
	if (label->type->has_lines)
		err = attributes_add_lines(member->attributes, label->attribute, text,
					   strlen(text));
	else
		err = attributes_add_text(member->attributes, label->attribute, text, strlen(text));
	return err ?: member->r;
}

int label_add(const struct key_label *label, const void *key, struct attributes *attributes)
{
	const void *raw = (const uint8_t *)key + label->field->offset_bytes;
	uint64_t value = load_number(label->field, raw);
	struct member member = { label, raw, value, (int64_t)value, attributes };
	const char *text = NULL;
	int r;

	if (!label->attribute)
		return 0;
	if (label_is_number(label->field)) {
		member.number = shape_number(label->field, value);
		text = label_rule_value(label->rule, member.number);
	}
	if (text)
		return attributes_add_text(attributes, label->attribute, text, strlen(text));
	if (label->type->is_optional && !value)
		return 0;
	if (label->type->add)
		return label->type->add(&member);
	if (!label->rule && label->type->kind == ATTRIBUTE_FLAG)
		return attributes_add_flag(attributes, label->attribute, value);
	/* An attribute's number is an int64_t (OTLP): larger ones are text. */
	if (!label->rule && label->type->kind && (label->field->is_signed || member.number >= 0))
		return attributes_add_number(attributes, label->attribute, member.number);
	member.r = label->type->is_changing;
	r = add_text(&member);
	buf_done(&member.text);
	return r;
}

/* What the member names, if such things end; 0: it does not. */
static uint64_t load_mortal(const struct key_label *label, const void *key)
{
	const struct field *field = label->field;

	return label->type && label->type->is_gone ?
	       load_number(field, (const uint8_t *)key + field->offset_bytes) : 0;
}

bool label_is_gone(const struct key_label *label, const void *key)
{
	uint64_t value = load_mortal(label, key);

	return value && label->type->is_gone(label->context->labels, value);
}

uint64_t label_brief(const struct key_label *label, const void *key)
{
	uint64_t id = load_mortal(label, key);
	bool is_brief = id && label->type->is_gone == label_process_is_gone &&
			label_process_start_ns(id) >= label->context->labels->previous_ns &&
			label_process_is_gone(label->context->labels, id);

	return is_brief ? id : 0;
}
