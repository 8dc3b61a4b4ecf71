/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "collector/parts.h"

/*
 * What the object's collectors say of its programs; with is_start also which they want now:
 * PROGRAM_WAITING, or PROGRAM_OFF.
 */
void programs_choose(struct object *object, bool is_start);
/* For programs_loader: opens the bytes of the object (user) again, settings and sizes set. */
int object_open_again(void *user, struct bpf_object **ret_bpf);
/* The same: its collectors use the maps of the loaded one. */
int object_bind(void *user, const struct bpf_object *bpf);
/* Loads and attaches it. -errno, with libbpf's words in .why. */
int object_start(struct object *object);
/*
 * 0: an attached program uses a map that the collector exports, or none was refused. Else -errno of
 * the first refusal, with a sentence in why.
 */
int collector_check_counting(const struct collector *collector, struct buf *why);
