/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A [probe] section between probe.c, which understands it, and probe-text.c, which writes its
 * descriptor.
 */

#include "collector/hook/mark.h"
#include "util/setting-table.h"

#define HAS_ARGUMENTS 1u
#define HAS_RESULT    2u /* it is where a function returns */
#define HAS_FIELDS    4u
#define IS_FUNCTION   8u /* which is entered, and returns */
#define IS_SAMPLED    16u

struct hook_kind {
	const char *name;
	const char *form; /* of what follows the name */
	unsigned int n_parts, can;
	/*
	 * Of the object: at the entry of a function, at its return, and the alternatives to these;
	 * or one alone.
	 */
	const char *programs[4];
	const char *remedy; /* for a value that it does not have */
};

struct probe_measure {
	const char *name, *map;
	const char *unit;   /* NULL: it depends on the hook */
	const char *suffix; /* of the metric's name */
	bool has_value;	    /* which follows its name */
};

struct probe_type {
	const char *name;
	/* that shows it, as in "as = LABEL" of a descriptor; NULL: it is a number or a text */
	const char *label;
	/* of a register that it takes; what it points to is found by all of them */
	unsigned int bytes;
	unsigned int is;
	/* how many bytes a field of it may have, or'ed; 0: fields have such a type already */
	unsigned int fields;
};

/* .is */
#define IS_SIGNED  1u
#define IS_TEXT	   2u /* that it points to */
#define IS_WIDE	   4u /* 16 bytes, or what points to them */
#define IS_ERROR   8u /* all but errors become 0 */
#define IS_SWAPPED 16u /* in network byte order */
/* by the event, or by an enum of the kernel; a field has a sign of its own */
#define IS_NAMED   32u

/* An argument, a result or a field. */
struct probe_value {
	const char *name; /* without its type; first, for array_find() */
	const char *from; /* the object's enum probe_from in lower case; NULL: there is none */
	unsigned int offset, bytes, is_signed;
	const char *text; /* its enum probe_text; NULL: it is another value */
	bool is_array;	  /* a field of several numbers */
	bool is_placed;	  /* one that holds where its bytes are, other than a text */
	const struct probe_type *type; /* NULL: none is written */
	const char *constants; /* IS_NAMED: of the kernel's enum; NULL: of the event */
};

#define EVENT_FIELDS 64

struct event_fields {
	struct probe_value items[EVENT_FIELDS];
	char declarations[EVENT_FIELDS][128]; /* hold the names */
	size_t n; /* 0: this kernel has no such event, or we may not know */
	/*
	 * how the kernel prints them, which names some numbers; NULL: it does not say; to be freed
	 */
	char *print;
};

struct probe {
	/* As the section has them. */
	char *hook, *measure, *name, *unit, *description, *period, *frequency;
	struct setting_list by, common; /* common: what every collector has */
	struct setting_list show; /* of an event; the same words as in by */
	char *only;
	struct assignments all;
	/* Understood. */
	const char *section; /* its name */
	char called[128];    /* the same in names of metrics and attributes */
	const struct hook_kind *kind;
	const char *target; /* of the hook, after its kind */
	const struct probe_measure *what;
	char word[128]; /* the name of what is measured */
	struct probe_value measured;
	int n_arguments; /* that the hook has, if it has some */
	/* an operand of a USDT of an unknown form, in one of its places; or "" */
	char unreadable[MARK_ARGUMENTS][48];
	unsigned int n_numbers; /* that it counts by */
	bool has_text, has_address; /* and by them */
	bool is_event;
	bool is_paired;	 /* what is known where the function is entered counts where it returns */
	/* only a classic tracepoint has fields, and those of system calls are only classic */
	bool is_classic;
	struct event_fields fields;
	struct buf *out;
	struct diag *diag;
};

#define complain(probe, key, ...) \
	assignments_complain(&(probe)->all, (probe)->diag, key, NULL, __VA_ARGS__)
#define complain_of_word(probe, key, what, word, items, n)                                         \
	({                                                                                         \
		struct assignment place_ = assignments_place(&(probe)->all, key, NULL);            \
		diag_add_unknown((probe)->diag, place_.path, place_.line, what, word, items, n);   \
	})

/* Does it have this property of a type? */
static inline bool probe_value_is(const struct probe_value *value, unsigned int is)
{
	return value->type && value->type->is & is;
}

/*
 * "s32", "enum=NAME"; NULL: the whole register. It is cut. False: there is none, which is reported.
 * probe-type.c
 */
bool probe_type_read(struct probe *probe, const char *key, char *type, struct probe_value *value);
/*
 * Makes of a name and a type a field of the event. A field that is missing or has another type is
 * reported.
 */
void probe_take_field(struct probe *probe, const char *key, struct probe_value *value);

/* "ret:s32 < 0", "latency>10ms", "errno = ENOENT". probe-only.c */
struct probe_condition {
	char value[128], bound[64];
	const struct probe_operator *operator;
};

/* Does "only" compare the latency? */
bool probe_is_timed(const struct probe *probe);
/* Takes "only" apart, after the measure. False: its value is not to be looked for. */
bool probe_condition_read(struct probe *probe, struct probe_condition *ret_condition);
/* value: what its value means. */
void probe_condition_write(struct probe *probe, const struct probe_condition *condition,
			   const struct probe_value *value);

/* What follows is written to probe->out, as struct descriptor_entries has it. probe-text.c */

void probe_write_param(struct probe *probe, const char *name, const char *value);
/* A member of the key is an attribute of that name. */
void probe_write_label(struct probe *probe, const char *member, const char *first,
		       const char *last);
void probe_write_value(struct probe *probe, const char *slot, const struct probe_value *value);
/* After probe_write_label(): how its type shows it. */
void probe_write_type(struct probe *probe, const struct probe_value *value);
/* All else, once the values are known. */
void probe_write(struct probe *probe);

/* Which arguments a USDT has, and which of them can be read in each of its places. probe-file.c */
void probe_look_at_marks(struct probe *probe);
/* Is its file the C library? probe-file.c */
bool probe_is_of_libc(const struct probe *probe);

/*
 * The fields of a classic tracepoint's record, CATEGORY:NAME, as tracefs describes them.
 * event-format.c
 */
void event_fields_read(const char *event, struct event_fields *ret_fields);
/*
 * Keys "value" of a [label], NUMBER=NAME, for the names that the kernel prints for a field. False:
 * it prints none.
 */
bool event_names_write(const struct event_fields *fields, const char *field, struct buf *out);
