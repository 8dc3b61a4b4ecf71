/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/binding/meaning.h"

#include <string.h>

#include "util/array.h"
#include "util/duration.h"

/*
 * The bounds of a section become raw numbers of its metric. What the grammar has complained of is
 * passed over.
 */
static void read_buckets(const struct collector *collector,
			 const struct descriptor_metric *described,
			 const struct field *field, struct meaning *meaning)
{
	struct buckets *buckets = &meaning->buckets;
	uint32_t n_buckets = field->class == FIELD_HISTOGRAM ? field->n_buckets : 0;
	const char *complaint = buckets_parse(described->buckets, n_buckets, buckets);
	bool is_too_large = false;

	array_for_each (bound, buckets->bounds, buckets->n)
		is_too_large |= __builtin_mul_overflow(bound->upper, meaning->factor,
						       &bound->upper);
	if (is_too_large)
		complaint = "has bounds that are too large to be multiplied; make them or \"multiply\" smaller";
	if (complaint && !buckets_check(described->buckets))
		complain(collector, described->line, "buckets \"%s\" %s", described->buckets, complaint);
	if (!buckets->n)
		return;
	meaning->metric.kind = METRIC_HISTOGRAM;
	meaning->metric.layout = (struct histogram_layout){ .n_buckets = buckets->n + 1,
							    .has_no_sum = !n_buckets &&
									  !buckets->has_sum,
							    .bounds = buckets->bounds };
}

/* The bounds of a structure of hist.h move along, from one power of two to another. */
static void read_multiply(const struct collector *collector,
			  const struct descriptor_metric *described,
			  const struct field *field, struct meaning *meaning)
{
	uint64_t *factor = &meaning->factor, *divisor = &meaning->metric.divisor;

	/* The grammar has read it already. */
	(void)multiply_parse(described->multiply, factor, divisor);
	if (!field->is_known)
		return;
	if ((*factor & (*factor - 1)) || (*divisor & (*divisor - 1)))
		complain(collector, described->line, "multiply \"%s\" would move the buckets of \"%s\" off the powers of "
			 "two that they are; write one, such as 1024 or 0.5", described->multiply, field->name);
	meaning->metric.layout.offset += __builtin_ctzll(*factor) - __builtin_ctzll(*divisor);
}

void meaning_read(const struct collector *collector, const struct descriptor_metric *described,
			 const struct field *field, struct meaning *meaning)
{
	bool is_time = !strcmp(field->type_name, "val_ns");
	const char *complaint;

	*meaning = (struct meaning){
		.metric = { .scope = collector->name,
			    .name = described->name,
			    .unit = described->unit,
			    .description = described->description ?: "",
			    .kind = described->kind ? METRIC_GAUGE : METRIC_SUM,
			    .is_updown = described->kind && *described->kind == 'u',
			    .divisor = is_time ? NS_PER_S : 1 },
		.factor = 1,
	};
	if (field->class == FIELD_HISTOGRAM) {
		meaning->metric.kind = METRIC_HISTOGRAM;
		/*
		 * bpf/include/hist.h: bucket[1] is (2^-30, 2^-29] s of a time, (2^-1, 2^0] of a
		 * value.
		 */
		meaning->metric.layout = (struct histogram_layout){ 0, is_time ? -30 : -1,
								    field->n_buckets };
	}
	if (described->multiply && !is_time)
		read_multiply(collector, described, field, meaning);
	complaint = field->is_known ?
		    range_parse(described->range, described->unit, &meaning->metric.layout) : NULL;
	if (complaint)
		complain(collector, described->line, "range \"%s\" %s", described->range, complaint);
	if (described->buckets && !field->is_known)
		read_buckets(collector, described, field, meaning);
}
