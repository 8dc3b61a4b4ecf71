/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How a loaded program comes to its hook. */

#include <stdbool.h>

struct bpf_object;
struct bpf_program;
struct program;

/* Fills the links of a program of a loaded object, and link_fd. 0 or -errno. */
int hook_attach(const struct bpf_object *object, struct program *program, struct bpf_program *bpf);
/* Ends its links; those of a program that is kept stay on. */
void hook_detach(struct program *program);

/* Is it on each CPU, also those that come online later? */
bool hook_is_everywhere(const struct program *program);

/*
 * Before its object is loaded: would the kernel attach it? Tried are classic tracepoints, because
 * they need more rights than others, and what is found by its name in the kernel's types (tp_btf,
 * fentry, fexit, iterators). 0 or -errno.
 */
int hook_try(const struct program *program, struct bpf_program *bpf);
