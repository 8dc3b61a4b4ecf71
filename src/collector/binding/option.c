/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/binding/option.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/parse.h"

const struct field *option_find_enum(const struct binding *binding)
{
	const struct field *found = NULL;

	array_for_each (label, binding->labels, binding->key.n_fields) {
		if (!label->attribute)
			continue;
		if (found || label->field->class != FIELD_ENUM)
			return NULL;
		found = label->field;
	}
	return found;
}

void options_set(struct binding *binding, uint32_t max_entries)
{
	const char *expire = binding->first->expire;
	enum reader_traits traits = reader_traits(binding->reader.type);
	struct key_label *label = &binding->labels[0];

	if (binding->first->cpu && traits & READER_PERCPU)
		binding->reader.cpu_bytes = sizeof(uint32_t);
	if (expire)
		(void)parse_duration_ns(expire, &binding->expire_ns);
	binding->reader.is_mortal = expire != NULL;
	if (!binding->reader.cpu_bytes || !(traits & READER_ARRAY) || max_entries > 1 ||
	    *label->field->name)
		return;
	/* The key is always 0, and tells nothing. */
	free(label->attribute);
	label->attribute = NULL;
	label->type = NULL;
}

int option_bind_record(struct binding *binding)
{
	const struct descriptor_metric *first = binding->first;
	const struct btf *btf = binding->collector->object->btf;
	int id = btf__find_by_name_kind(btf, first->record, BTF_KIND_STRUCT), err;
	struct field *count = calloc(1, sizeof(*count));

	if (id < 0)
		id = btf__find_by_name(btf, first->record);
	if (!count)
		return -ENOMEM;
	*count = (struct field){ .name = strdup(""), .type_name = "",
				 .size_bytes = sizeof(uint64_t) };
	binding->value = (struct shape){ count, 1, sizeof(uint64_t) };
	if (!count->name)
		return -ENOMEM;
	err = id < 0 ? -ENOENT : shape_from_btf(btf, (uint32_t)id, &binding->key, NULL);
	if (err && err != -ENOMEM)
		complain(binding->collector, first->line,
			 "record = %s: %s", first->record, err == -ENOENT ?
			 "the object has no type of that name; make a global variable of the structure, so that the compiler keeps it" :
			 "it cannot be read; use integers, enums, arrays of them and structures of those");
	binding->reader.key_bytes = binding->key.size_bytes;
	binding->reader.value_bytes = binding->value.size_bytes;
	return err == -ENOMEM ? err : 0;
}

/* What is true of a section. */
enum {
	PERCPU = 1,
	FIXED = 2,
	GAUGE = 4, /* not a tally */
	TALLY = 8,
	SIGNED = 16,
	SPLIT = 32,
	ONE_ENUM = 64,
	FLAT = 128,
	RECORD = 256,
	HISTOGRAM = 512,
	BOUNDS = 1024,	/* of buckets that are given … */
	UNBOUND = 2048, /* … or may be */
	TIME = 4096,
	KNOWN = 8192, /* a histogram of hist.h */
};

#define KEY(key) #key, offsetof(struct descriptor_metric, key)

static const struct option {
	const char *key;
	size_t offset;
	bool is_of_map; /* all sections of a map agree */
	uint16_t needs, forbids;
	const char *rule;
} options[] = {
	{ KEY(when), true },
	{ KEY(cpu), true, PERCPU, 0, "per-CPU hash maps and arrays" },
	{ KEY(cpus), false, PERCPU | GAUGE, SIGNED | SPLIT,
	  "unsigned gauges in per-CPU hash maps and arrays, without \"cpu\"" },
	{ KEY(expire), true, 0, FIXED | SPLIT, "hash maps, flat tables and records, without \"cpu\"" },
	{ KEY(bucket), true, BOUNDS, FLAT | GAUGE | TALLY | RECORD | HISTOGRAM,
	  "numbers that grow, with \"buckets\", in hash maps and arrays that are not flat tables" },
	{ KEY(buckets), false, UNBOUND, 0,
	  "structures with \"sum\" and \"bucket\" that are not of hist.h, and for sections with \"bucket\"" },
	{ KEY(range), false, KNOWN, 0, "histograms of hist.h" },
	{ KEY(multiply), false, 0, TIME, "numbers other than nanoseconds (val_ns), which are shown as seconds" },
	{ KEY(zero), false, ONE_ENUM, SPLIT, "maps whose key is one enum, without \"cpu\"" },
	{ KEY(since), false, 0, GAUGE | TALLY | RECORD, "sums and histograms, without \"record\"" },
	{ KEY(kind), false, 0, RECORD | HISTOGRAM, "single numbers in maps without \"record\"" },
	{ KEY(record), true },
};

static const char *text_of(const struct option *option, const struct descriptor_metric *described)
{
	return *(const char *const *)((const char *)described + option->offset);
}

static int find_facts(const struct binding *binding, const struct descriptor_metric *described,
		      const struct field *field)
{
	enum reader_traits traits = reader_traits(binding->reader.type);
	bool is_histogram = field->class == FIELD_HISTOGRAM;
	bool is_tally = !strcmp(field->type_name, "val_tally");
	const struct {
		int fact;
		bool is_true;
	} facts[] = {
		{ PERCPU, traits & READER_PERCPU },
		{ FIXED, traits & READER_ARRAY },
		{ GAUGE, described->kind && !is_tally },
		{ TALLY, is_tally },
		{ SIGNED, field->is_signed },
		{ SPLIT, described->cpu },
		{ RECORD, described->record },
		{ ONE_ENUM, option_find_enum(binding) },
		{ FLAT, binding->reader.is_table },
		{ HISTOGRAM, is_histogram },
		{ BOUNDS, described->buckets },
		{ TIME, !strcmp(field->type_name, "val_ns") },
		{ KNOWN, field->is_known },
		{ UNBOUND, described->bucket || (is_histogram && !field->is_known) },
	};
	int all = 0;

	array_for_each (fact, facts, ARRAY_SIZE(facts))
		all |= fact->is_true ? fact->fact : 0;
	return all;
}

void options_check(const struct binding *binding, const struct descriptor_metric *described,
		   const struct field *field)
{
	int facts = find_facts(binding, described, field);

	array_for_each (option, options, ARRAY_SIZE(options)) {
		const char *text = text_of(option, described),
			*first = text_of(option, binding->first) ?: "";

		if (option->is_of_map && strcmp(text ?: "", first))
			complain(binding->collector, described->line,
				 "\"%s\" differs from that on line %u; it must be the same for all of map \"%s\"",
				 option->key, binding->first->line, binding->map);
		else if (text &&
			 ((facts & option->needs) != option->needs || facts & option->forbids))
			complain(binding->collector, described->line, "\"%s\" is only for %s; remove it from [metric %s%s%s]",
				 option->key, option->rule, binding->map,
				 *described->member ? "." : "", described->member);
	}
}
