/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How a loaded program comes to its hook, and whether the kernel preempts programs there. */

#include <stdbool.h>
#include <stdint.h>

struct bpf_link;
struct bpf_object;
struct bpf_program;
struct program;

/* Most programs have one. */
struct hook_link {
	struct bpf_link *link;
	int fd; /* of a perf event, which is the link's; or, without a link of libbpf's, of the link itself; or 0, -1 */
	uint64_t time_ns; /* of a perf event, when it was looked at last */
};

/* Fills the links of a program of a loaded object, and link_fd. 0 or -errno. */
int hook_attach(const struct bpf_object *object, struct program *program, struct bpf_program *bpf);
/* Ends its links; those of a program that is kept stay on. */
void hook_detach(struct program *program);

/* Is it on each CPU, also those that come online later? */
bool hook_is_everywhere(const struct program *program);

/*
 * Before its object is loaded: would the kernel attach it? Tried are classic tracepoints, because they need more rights
 * than others, and what is found by its name in the kernel's types (tp_btf, fentry, fexit, iterators). 0 or -errno.
 */
int hook_try(const struct program *program, struct bpf_program *bpf);

/*
 * From Linux 7.0 on, a program at a tracepoint (tp_btf, raw_tp) can be preempted. Until it runs again, the
 * kernel skips it for all events of other tasks on that CPU. Classic tracepoints and kprobes are not preempted.
 *
 * Can programs at the tracepoint of this section (tp_btf, raw_tp) be preempted on this kernel? Asks the kernel
 * once, by a program that looks. If the kernel does not tell, its version decides.
 * With the environment variable BPFPUSH_PRETEND_PREEMPTIBLE, for tests, the answer is yes for every tracepoint.
 */
bool hook_is_preemptible(const char *section);
