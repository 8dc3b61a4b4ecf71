/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The names on a number. Built on the stack while a key is decoded, copied once into its series.
 *
 * Bytes from the kernel (process names, cgroup paths) are hostile. This module makes text valid
 * UTF-8: each bad byte and each control byte becomes U+FFFD. It cuts text at ATTRIBUTE_TEXT_BYTES.
 * What was changed ends in a hash of the whole ("…~0123abcd"), so that texts that look alike then
 * stay apart. Only what has several lines may be longer, and then holds newlines. Encoders can rely
 * on this; they only have to deal with what their own formats forbid.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

#define ATTRIBUTES_MAX	     16
#define ATTRIBUTE_TEXT_BYTES 256 /* of one value, at most */
#define ATTRIBUTE_LINES_BYTES 4096 /* of one that has several lines */

enum attribute_type { ATTRIBUTE_TEXT,
		      ATTRIBUTE_NUMBER,
		      ATTRIBUTE_FLAG,
		      /* only of events */
		      ATTRIBUTE_REAL,
		      ATTRIBUTE_TEXTS };

struct attribute {
	const char *name;
	enum attribute_type type;
	/* ATTRIBUTE_TEXT: NUL-terminated UTF-8; ATTRIBUTE_TEXTS: one after another */
	const char *text;
	int64_t number;	  /* ATTRIBUTE_NUMBER; ATTRIBUTE_FLAG: 0 or 1; ATTRIBUTE_TEXTS: how many */
	double real;	  /* ATTRIBUTE_REAL */
};

struct attributes {
	struct attribute items[ATTRIBUTES_MAX];
	unsigned int n;
	size_t used; /* bytes of storage */
	/* Of an event: any text may be as long as one of several lines, but a second may be cut. */
	bool is_of_event;
	/* All texts fit, however long, and a long one. */
	char storage[ATTRIBUTES_MAX * (ATTRIBUTE_TEXT_BYTES + 1) + ATTRIBUTE_LINES_BYTES -
		     ATTRIBUTE_TEXT_BYTES];
};

/*
 * The name as a constant, if it says what owner a number has; else NULL. A series has at most one
 * of them.
 */
const char *attribute_owner(const char *name);

void attributes_init(struct attributes *attributes);
/*
 * name is borrowed until the series is made. -ENOSPC: the attribute does not fit and is left out.
 */
int attributes_add_text(struct attributes *attributes, const char *name, const void *text,
			size_t size);
/*
 * Adds a text of up to ATTRIBUTE_LINES_BYTES with newlines. A second one may be cut to
 * ATTRIBUTE_TEXT_BYTES.
 */
int attributes_add_lines(struct attributes *attributes, const char *name, const void *text,
			 size_t size);
int attributes_add_number(struct attributes *attributes, const char *name, int64_t number);
int attributes_add_flag(struct attributes *attributes, const char *name, bool flag);
int attributes_add_real(struct attributes *attributes, const char *name, double real);
/*
 * Adds those of size bytes that end in NUL, up to the last that is not empty. If some do not fit,
 * the last is "…".
 */
int attributes_add_texts(struct attributes *attributes, const char *name, const char *texts,
			 size_t size);
/* Takes the one of that name out, if there is one. "unit": the one that says what owner it has. */
void attributes_drop(struct attributes *attributes, const char *name);
/* Sorts by name, so that a series is the same in whatever order its attributes were added. */
void attributes_sort(struct attributes *attributes);
/*
 * Its value as plain text: a number in decimal, for which there is room, a flag as true or false.
 * Not of an event: only the first of several texts.
 */
#define ATTRIBUTE_NUMBER_BYTES 32
const char *attribute_text(const struct attribute *attribute, char room[ATTRIBUTE_NUMBER_BYTES]);
/* Appends that; several texts with blanks between them. */
void attribute_append(struct buf *out, const struct attribute *attribute);
/* Appends "name":value. */
void attribute_append_json(struct buf *out, const struct attribute *attribute);
