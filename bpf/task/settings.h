/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * The settings of the collectors that share this object. NAME_on says which of them are on. The
 * verifier knows their values, so it removes the code of those that are off.
 */
#include "label.h"

const volatile bool syscalls_on = false;
const volatile bool fileio_on = false;
const volatile bool scheduler_on = false;
const volatile bool memory_on = false;

const volatile bool syscalls_per_process = false;
const volatile bool fileio_per_process = false;
const volatile bool scheduler_per_process = false;
const volatile bool memory_per_process = false;

const volatile prm_syscalls syscalls_duration;
const volatile bool fileio_duration = false;

#define OWNER_PER_PROCESS                                                                          \
	(syscalls_per_process || fileio_per_process || scheduler_per_process || memory_per_process)
