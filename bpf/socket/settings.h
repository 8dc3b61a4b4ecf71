/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * The settings of the collectors that share this object. NAME_on says which of them are on. The
 * verifier knows their values, so it removes the code of those that are off.
 */
#include "label.h"
#include "preempt.h"

const volatile bool network_on = false;
const volatile bool tcpstate_on = false;
const volatile bool tcppeer_on = false;

const volatile bool network_per_process = false;
const volatile bool tcpstate_per_process = false;
const volatile bool tcppeer_per_process = false;

#define OWNER_PER_PROCESS (network_per_process || tcpstate_per_process || tcppeer_per_process)
