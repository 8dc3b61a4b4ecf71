/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The bytes of a fuzzer as numbers and texts, one after the other; zeros where they end. */

#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

#define TEXTS_MAX 1024

struct input {
	const uint8_t *data;
	size_t size;
	char *texts[TEXTS_MAX]; /* that live as long */
	size_t n_texts;
};

uint8_t take(struct input *input);
uint64_t take_bytes(struct input *input, unsigned int n);
/* All sizes of numbers are as likely, and those at the edges. */
uint64_t take_number(struct input *input);
/*
 * A text of any bytes but NUL: for a first byte below 64 one of the palette, from 240 on a long one, many times one
 * byte with another after them.
 */
const char *take_text(struct input *input, const char *const *palette, size_t n_palette);
#define TAKE_TEXT(input, palette) take_text((input), (palette), ARRAY_SIZE(palette))
void input_done(struct input *input);
