/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * [probe NAME]: a collector without an object of its own. Its section becomes the entries of a
 * descriptor over bpf/probe.bpf.o, so whatever happens to a probe is what happens to a collector.
 *
 *     hook         kprobe:FUNCTION            kretprobe:FUNCTION
 *                  uprobe:BINARY:FUNCTION     uretprobe:BINARY:FUNCTION
 *                  usdt:BINARY:PROVIDER:NAME  tracepoint:CATEGORY:NAME
 *                  rawtp:NAME                 perf:EVENT
 *     measure      count | latency | sum VALUE | histogram VALUE
 *     by           unit, process, comm, cpu, errno, and values; a VALUE is arg0 … arg5, ret, or the
 *                  name of a field of a tracepoint, perhaps with its type: arg1:s32, arg0:text,
 *                  daddr:ipv4 (probe-type.c)
 *     name, unit, description                  of the metric
 *     period, frequency                        of a perf event
 */

#include "collector/descriptor.h"
#include "config/config.h"

/* A key that every collector has, too. */
bool probe_is_common(const char *key);
/* Mistakes go to diag; with any, the entries are not whole. -ENOMEM. */
int probe_describe(const struct config_section *section, struct diag *diag,
		   struct descriptor_entries *ret_entries);
