/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

struct collector;

/*
 * Logs how the hooks of a started collector are attached, and where no alternative of a hook could be, a line for the
 * hook: the collector is partial then. Is it complete?
 */
bool collector_hooks_report(const struct collector *collector);
