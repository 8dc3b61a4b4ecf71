/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The [cgroups] sections: maps that are filled before programs are attached, and kept so. */

#include "collector/parts.h"

/* Mistakes go to .diag. -ENOMEM. */
int cgroup_maps_new(struct collector *collector);
/* After loading: fills the maps. 0. */
int cgroup_maps_fill(struct collector *collector, const struct bpf_object *bpf);
void cgroup_maps_free(struct collector *collector);
