/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/*
 * From Linux 7.0 on, a program at a tracepoint (tp_btf, raw_tp) can be preempted. Until it runs
 * again, the kernel skips it for all events of other tasks on that CPU. Classic tracepoints and
 * kprobes are not preempted.
 *
 * Can programs at the tracepoint of this section (tp_btf, raw_tp) be preempted on this kernel? Asks
 * the kernel once, by a program that looks. If the kernel does not tell, its version decides. With
 * the environment variable BPFPUSH_PRETEND_PREEMPTIBLE, for tests, the answer is yes for every
 * tracepoint.
 */
bool hook_is_preemptible(const char *section);
