/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The CRC of RFC 3720, appendix B.4 (Castagnoli). Continues crc, at first 0. */
uint32_t crc32c(uint32_t crc, const void *data, size_t size);
