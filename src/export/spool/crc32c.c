/* SPDX-License-Identifier: Apache-2.0 */
#include "export/spool/crc32c.h"

#define POLYNOMIAL 0x82f63b78u /* its bits reversed */

static uint32_t table[256];

static void make_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? POLYNOMIAL : 0);
	}
}

uint32_t crc32c(uint32_t crc, const void *data, size_t size)
{
	if (!table[1])
		make_table();
	crc = ~crc;
	for (const uint8_t *at = data, *end = at + size; at < end; at++)
		crc = table[(uint8_t)crc ^ *at] ^ crc >> 8;
	return ~crc;
}
