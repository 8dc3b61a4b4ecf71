/* SPDX-License-Identifier: Apache-2.0 */
#include "input.h"

#include <stdlib.h>
#include <string.h>

uint8_t take(struct input *input)
{
	if (!input->size)
		return 0;
	input->size--;
	return *input->data++;
}

uint64_t take_bytes(struct input *input, unsigned int n)
{
	uint64_t number = 0;

	while (n--)
		number = number << 8 | take(input);
	return number;
}

uint64_t take_number(struct input *input)
{
	uint8_t kind = take(input);

	switch (kind & 7) {
	case 0:
		return kind >> 3;
	case 1:
		return take_bytes(input, 1);
	case 2:
		return take_bytes(input, 2);
	case 3:
		return take_bytes(input, 4);
	case 4:
		return take_bytes(input, 8);
	case 5:
		return UINT64_C(1) << (take(input) & 63);
	case 6:
		return 0 - take_bytes(input, 1);
	}
	return INT64_MAX - (kind >> 3);
}

#define PALETTE 64
#define LONG	240

const char *take_text(struct input *input, const char *const *palette, size_t n_palette)
{
	uint8_t n = take(input);
	size_t size = n < LONG ? (size_t)(n - PALETTE) : (size_t)(n - LONG + 1) * 40;
	char *text;

	if (n < PALETTE || input->n_texts == TEXTS_MAX)
		return palette[n % n_palette];
	text = calloc(1, size + 2);
	if (!text)
		abort();
	if (n >= LONG)
		memset(text, take(input), size++);
	for (size_t i = n < LONG ? 0 : size - 1; i < size; i++)
		text[i] = (char)take(input);
	for (size_t i = 0; i < size; i++)
		text[i] = text[i] ? text[i] : 1;
	return input->texts[input->n_texts++] = text;
}

void input_done(struct input *input)
{
	for (size_t i = 0; i < input->n_texts; i++)
		free(input->texts[i]);
}
