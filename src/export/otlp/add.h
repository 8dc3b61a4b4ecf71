/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "export/otlp/body.h"

/*
 * Adds the numbers of an older point of the same series to *numbers, as they are on the wire:
 * *ret_sum is for free(), and *numbers are in it. 1: they cannot be added, because their buckets
 * differ. -EBADMSG, -ENOMEM. Pure.
 */
int otlp_add(unsigned int data_field, struct bytes older, struct bytes *numbers, uint8_t **ret_sum);
