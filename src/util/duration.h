/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * Durations and times are uint64_t in nanoseconds everywhere; these convert them to and from other
 * units.
 */
#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)
#define NS_PER_HOUR (3600 * NS_PER_S)
