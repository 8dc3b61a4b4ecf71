/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A label is a member of a key; attributes are what it becomes. A label type is a row in
 * label_table[] (type.c), found once by the name of the member's typedef or by what the descriptor
 * says. Enums, texts and plain integers need none. Types with state (cgroups, kernel symbols) keep
 * it in struct labels, one for the whole agent.
 */

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "collector/label/unit.h"
#include "collector/shape.h"
#include "metric/attribute.h"
#include "metric/delta.h"

#define LABEL_NAMES_VALUE_BYTES_MAX 4096
#define LABEL_NAMES 64
#define NAME_TEXT_BYTES 128

/* What the configuration says about names. */
struct label_choice {
	struct unit_choice units;
	uint64_t brief_processes; /* label_is_brief(): how many of a table have their own series */
	/* events are wanted of some units only */
	bool is_selective;
	/* a file with the types of the running kernel; NULL: the kernel's own */
	char *kernel_types;
};

struct kept;

/* The right that it takes. */
#define LABEL_NO_SYMBOLS                                                            \
	"functions of the kernel are called \"unknown\": CAP_SYSLOG is missing; "       \
	"\"sudo bpfpush allow symbols\" gives it to the service"

struct labels {
	/* Unix time of boot, for process.creation.time; set again after the clock was set back */
	uint64_t boot_ns;
	/*
	 * Unix time at which each of these clocks was 0, for the times of events. The agent sets
	 * them before it reads records: clocks are adjusted, and one stops while the machine
	 * sleeps.
	 */
	uint64_t boottime_zero_ns, monotonic_zero_ns;
	const struct label_choice *choice; /* borrowed */
	struct cgroups *cgroups;

	/* kept by label.c and type.c */
	struct btf *kernel_types; /* of labels_kernel_types(); NULL where there are none */
	bool has_kernel_types;	  /* asked for since labels_begin() */
	FILE *kallsyms;	     /* opened while we had the right to see addresses; or NULL */
	FILE *modules;	     /* the same; NULL where there are none */
	struct ksyms *ksyms; /* read on first need; NULL before, and where they cannot be read */
	uint64_t modules_hash; /* of those that were there when they were read */
	uint64_t previous_ns; /* CLOCK_BOOTTIME of the previous collection */
	bool has_read_ksyms; /* since labels_begin() */
	uint8_t value[LABEL_NAMES_VALUE_BYTES_MAX]; /* room for one look-up */
	/* What numbers are called, found since labels_begin(). */
	struct label_name {
		const struct label_type *of; /* NULL: free */
		uint32_t number;
		char text[NAME_TEXT_BYTES];
	} names[LABEL_NAMES];
	/*
	 * What was found since labels_begin(): many keys of many maps ask for the same processes.
	 */
	struct {
		uint64_t id;
		bool is_gone;
	} processes[1024];
};

/* -ENOMEM. */
int labels_new(uint64_t boot_ns, const struct label_choice *choice, struct labels **ret_labels);
void labels_free(struct labels *labels);
/*
 * Once before each collection: cgroups and kernel functions that were unknown may be looked up
 * again. previous_ns: CLOCK_BOOTTIME of the collection before, or of the start.
 */
void labels_begin(struct labels *labels, uint64_t previous_ns);
/*
 * Before the start, if functions of the kernel are to be named. "": they can be. Otherwise why not,
 * and what to do: they are called "unknown", as an address would tell where the kernel is. What one
 * process had the right to read is kept for later ones; kept may be NULL.
 */
const char *labels_find_symbols(struct labels *labels, struct kept *kept);
/*
 * The types of the running kernel, which are megabytes: only until labels_begin(). NULL: there are
 * none.
 */
const struct btf *labels_kernel_types(struct labels *labels);
/* A hash map of the kernel side from a number (u64) to a text in its value. */
struct label_names {
	int fd; /* borrowed; -1: none */
	uint32_t text_offset_bytes, text_bytes; /* within the value */
};

struct label_context {
	struct labels *labels;
	const struct btf *btf;		  /* of the object */
	/* of the same object: lbl_process -> name of the executable */
	struct label_names process_names;
};

struct member;

struct label_type;
/* The name of a number; what has no name is its number. name.h has them. */
typedef void name_fn(const struct label_type *type, uint32_t number,
		     char ret_text[NAME_TEXT_BYTES]);

/* Of an event: what a member says in place of an attribute. */
enum label_role { LABEL_ATTRIBUTE,
		  LABEL_TIME,
		  LABEL_MONOTONIC_TIME,
		  LABEL_DURATION,
		  LABEL_TRACE_ID,
		  LABEL_SPAN_ID,
		  LABEL_PARENT_SPAN_ID };

struct label_type {
	const char *name;    /* as in "as = NAME" and in the typedef lbl_NAME, with "_" for "-" */
	uint8_t classes;     /* that it fits: 1 << FIELD_… */
	uint8_t size_bytes;  /* 0: any */
	uint8_t element_bytes; /* of an array; 0: any */
	bool is_optional;    /* a key of 0 makes no attribute, and its owner never ends */
	const char *default_name; /* of the attribute; NULL: it has none of its own */
	/* At most one of the two is set; a type without either makes no attribute. */
	void (*put)(struct member *member); /* the attribute's text, or what is_absent says */
	/* attributes that are more than a text */
	int (*add)(const struct member *member);
	/* of the attribute, where the descriptor says nothing of its text */
	enum attribute_type kind;
	name_fn *name_of;	 /* for numbers that only have names */
	/* for name_pci: what a line begins with, the digits of its number and of the one below */
	const char *pci;
	uint8_t digits, below; /* below 0: there is none */
	bool is_changing; /* the same number may get another name */
	bool has_lines;	  /* the text has */
	bool is_function; /* of the kernel, see labels_find_symbols() */
	bool is_of_event; /* only of events; records are counted without it */
	enum label_role role; /* then it makes no attribute */
	bool is_of_top;	  /* only the topmost cgroup of a unit counts */
	bool (*is_gone)(struct labels *labels, uint64_t value);
	/* attributes that it names itself, so that no [label] can; 0: it makes one */
	unsigned int n_own;
	const char *own[4]; /* those that it may make, ended by NULL … */
	const char *instead; /* … and the type that makes one in place of them */
};

#define LABEL_KERNEL_ENUM "kernel-enum"

/* By the field's own type. NULL: such a member cannot become an attribute. */
const struct label_type *label_type_find(const struct field *field);
/* word: "NAME" or "NAME …". NULL: there is none, or none that fits the field. */
const struct label_type *label_type_named(const char *word, const struct field *field);
/* Appends the names of those that fit. is_record: those of events, too. */
void label_type_names(const struct field *field, bool is_record, struct buf *out);

/* A member of the keys of a map, and the attribute that it becomes. */
struct key_label {
	const struct label_type *type; /* NULL: it only fills a gap, as without an attribute */
	const struct label_context *context;
	const struct field *field;
	char *attribute; /* what the descriptor calls it, or the default */
	struct label_rule *rule; /* what the descriptor makes of the name; NULL: nothing */
};

/* A member of one key, while it becomes attributes. */
struct member {
	const struct key_label *label;
	const void *raw;
	uint64_t value; /* FIELD_INTEGER, FIELD_ENUM: as it lies at raw; else 0 */
	int64_t number; /* the same with its sign */
	struct attributes *attributes;
	struct buf text;
	bool is_absent; /* the attribute is left out */
	int r;	/* 1: a later collection may know another name; -errno */
};

/* owner.h: start time in units of 2^20 ns after boot, above 22 bits of process id. */
#define PROCESS_ID_BITS	   22
#define PROCESS_START_BITS 20

/*
 * Have modules come or gone since the last call? Functions of others may be at their addresses now.
 */
bool label_modules_changed(struct labels *labels);
bool label_is_number(const struct field *field);
/*
 * Of a lbl_process: its number, when it began after boot (or up to a millisecond later), and
 * whether it has ended.
 */
static inline pid_t label_process_number(uint64_t id)
{
	return (pid_t)(id & ((1u << PROCESS_ID_BITS) - 1));
}

static inline uint64_t label_process_start_ns(uint64_t id)
{
	return id >> PROCESS_ID_BITS << PROCESS_START_BITS;
}

bool label_process_is_gone(struct labels *labels, uint64_t id);

#define LABEL_UNWANTED DELTA_UNWANTED

/*
 * Adds the attributes of the member of one key: none, one, or several (a process). 1: a later
 * collection may know another name. LABEL_UNWANTED: the configuration or the descriptor excludes
 * what has this key; with 1: as it is called now. -errno of attributes_add_*().
 */
int label_add(const struct key_label *label, const void *key, struct attributes *attributes);

/*
 * Is the thing that the member names gone for good, so that its key may be removed? False for
 * things that do not end, and as long as that is unknown.
 */
bool label_is_gone(const struct key_label *label, const void *key);

/*
 * If the member is a process that began after the previous collection, and has ended: its id. Else
 * 0.
 */
uint64_t label_brief(const struct key_label *label, const void *key);

/* System calls of the ABI that this was built for. NULL, -1: unknown. */
const char *label_syscall_name(uint32_t number);
int label_syscall_number(const char *name, size_t length);

DEFINE_CLEANUP(struct labels *, labels_free);
