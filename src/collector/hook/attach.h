/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How a loaded program comes to its hook. */

struct bpf_link;
struct bpf_object;
struct bpf_program;
struct program;

/* 0 or -errno. */
int hook_attach(const struct bpf_object *object, const struct program *program, struct bpf_link **ret_link);

/*
 * Before its object is loaded: would the kernel attach it? Tried are classic tracepoints, because they need more rights
 * than others, and what is found by its name in the kernel's types (tp_btf, fentry, fexit, iterators). 0 or -errno.
 */
int hook_try(const struct program *program, struct bpf_program *bpf);
