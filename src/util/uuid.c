/* SPDX-License-Identifier: Apache-2.0 */
#include "util/uuid.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define BLOCK_BYTES  64
#define DIGEST_WORDS 5
#define UUID_BYTES   16

static uint32_t rotate(uint32_t word, int bits)
{
	return word << bits | word >> (32 - bits);
}

/* FIPS 180-4, 6.1.2 */
static void sha1_block(uint32_t digest[DIGEST_WORDS], const uint8_t block[BLOCK_BYTES])
{
	uint32_t schedule[80], a = digest[0], b = digest[1], c = digest[2], d = digest[3], e = digest[4];

	for (int i = 0; i < 16; i++)
		schedule[i] = (uint32_t)block[i * 4] << 24 | (uint32_t)block[i * 4 + 1] << 16 |
			      (uint32_t)block[i * 4 + 2] << 8 | block[i * 4 + 3];
	for (int i = 16; i < 80; i++)
		schedule[i] = rotate(schedule[i - 3] ^ schedule[i - 8] ^ schedule[i - 14] ^ schedule[i - 16], 1);
	for (int i = 0; i < 80; i++) {
		uint32_t mixed = i < 20 ? (b & c) | (~b & d) : i >= 40 && i < 60 ? (b & c) | (b & d) | (c & d)
										 : b ^ c ^ d;
		static const uint32_t constants[] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6 };
		uint32_t next = rotate(a, 5) + mixed + e + constants[i / 20] + schedule[i];

		e = d;
		d = c;
		c = rotate(b, 30);
		b = a;
		a = next;
	}
	digest[0] += a;
	digest[1] += b;
	digest[2] += c;
	digest[3] += d;
	digest[4] += e;
}

struct sha1 {
	uint32_t digest[DIGEST_WORDS];
	uint8_t block[BLOCK_BYTES];
	uint64_t size; /* bytes so far */
};

static void sha1_add(struct sha1 *sha1, const void *data, size_t size)
{
	const uint8_t *byte = data;

	for (size_t i = 0; i < size; i++) {
		sha1->block[sha1->size++ % BLOCK_BYTES] = byte[i];
		if (sha1->size % BLOCK_BYTES == 0)
			sha1_block(sha1->digest, sha1->block);
	}
}

static void sha1_end(struct sha1 *sha1)
{
	uint64_t size_bits = sha1->size * 8;
	uint8_t length[8];

	sha1_add(sha1, "\x80", 1);
	while (sha1->size % BLOCK_BYTES != BLOCK_BYTES - sizeof(length))
		sha1_add(sha1, "", 1);
	for (int i = 0; i < 8; i++)
		length[i] = (uint8_t)(size_bits >> (56 - 8 * i));
	sha1_add(sha1, length, sizeof(length));
}

static int read_uuid(const char *text, uint8_t ret_uuid[UUID_BYTES])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t uuid[UUID_BYTES] = { 0 };

	for (int i = 0, n = 0; i < UUID_TEXT_BYTES - 1; i++) {
		const char *digit;

		if (i == 8 || i == 13 || i == 18 || i == 23) {
			if (text[i] != '-')
				return -EINVAL;
			continue;
		}
		digit = text[i] ? strchr(digits, text[i]) : NULL;
		if (!digit)
			return -EINVAL;
		uuid[n / 2] = (uint8_t)(uuid[n / 2] << 4 | (digit - digits));
		n++;
	}
	if (text[UUID_TEXT_BYTES - 1])
		return -EINVAL;
	memcpy(ret_uuid, uuid, sizeof(uuid));
	return 0;
}

int uuid_from_name(const char *space, const char *name, char ret_text[UUID_TEXT_BYTES])
{
	struct sha1 sha1 = { .digest = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 } };
	uint8_t uuid[UUID_BYTES];
	int r;

	r = read_uuid(space, uuid);
	if (r < 0)
		return r;
	sha1_add(&sha1, uuid, sizeof(uuid));
	sha1_add(&sha1, name, strlen(name));
	sha1_end(&sha1);
	/* The version in the top bits of the third group, the variant in those of the fourth. */
	sha1.digest[1] = (sha1.digest[1] & 0xffff0fff) | 0x5000;
	sha1.digest[2] = (sha1.digest[2] & 0x3fffffff) | 0x80000000;
	snprintf(ret_text, UUID_TEXT_BYTES, "%08x-%04x-%04x-%04x-%04x%08x", sha1.digest[0],
		 sha1.digest[1] >> 16, sha1.digest[1] & 0xffff, sha1.digest[2] >> 16,
		 sha1.digest[2] & 0xffff, sha1.digest[3]);
	return 0;
}
