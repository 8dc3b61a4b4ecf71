/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What every collector needs of this machine. It is asked before anything is loaded, so that what
 * is missing is said once, in one sentence with the remedy, and not by the verifier for each
 * program.
 */

#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"

/*
 * 0, or with the sentence in why: -EPERM (rights are missing), -EOPNOTSUPP (nothing could run
 * here). has_types: from elsewhere than the kernel.
 */
int kernel_check(bool has_types, struct buf *why);
/*
 * 0, or -ENOENT, or -EACCES if it is there, but its address is not told, or if that is not known.
 */
int kernel_find_symbol(const char *name, uint64_t *ret_address);
#define KERNEL_PLACES 64
/*
 * How many functions of that name there are; 0: none, or it is not known. addresses: of the first
 * of them, 0 where they are not told.
 */
size_t kernel_find_functions(const char *name, unsigned long addresses[static KERNEL_PLACES]);
/*
 * What a compiler has made of the function, as NAME.isra.0, NAME.constprop.0 or NAME.part.0, if
 * anything.
 */
bool kernel_find_part(const char *name, char *text, size_t size);
/* The list of symbols is megabytes, so it is to be let go after a start. */
void kernel_forget_symbols(void);
/* May this thread read maps, with the capabilities that it has now? */
bool kernel_can_read(void);
/* Is this Linux of that version or a later one? For what cannot be tried. */
bool kernel_is_since(unsigned int major, unsigned int minor);

/*
 * Does the kernel run programs at functions (KERNEL_FUNCTIONS)? If the sysctl kernel.ftrace_enabled
 * is 0, it attaches them, and does not run them.
 */
bool kernel_traces_functions(void);

/*
 * Why the kernel did not take a program or an object, for people: refusal.c.
 */

#define KERNEL_FUNCTIONS  " kprobe kretprobe kprobe.multi kretprobe.multi fentry fexit "
#define NO_TRACED_FUNCTIONS "the sysctl kernel.ftrace_enabled is 0, so the kernel runs no program at functions: set it to 1"
#define SEVERAL_FUNCTIONS "not all can be counted: name a tracepoint, or a function that calls it"
#define KERNEL_PROBES	  " kprobe kretprobe kprobe.multi kretprobe.multi "
/* is there, if the kernel has them */
#define HAS_KERNEL_PROBES "/sys/bus/event_source/devices/kprobe"
#define NO_KERNEL_PROBES  "this kernel has no kprobes (CONFIG_KPROBE_EVENTS); use a tracepoint"

#define NO_EVENT_COUNTER  "this machine cannot count that; a virtual machine often has no PMU"
#define NO_PROGRAMS_THERE "this kernel lets nobody attach to functions; use a tracepoint"

/* strerror() that also knows the errors that the kernel has for itself. err: -errno. */
const char *refusal_error(int err);

/*
 * What a process with these capabilities, a set of bits, lacks to attach such a program; NULL:
 * nothing known.
 */
const char *refusal_lack(const char *section, uint64_t rights);

/*
 * Of what libbpf said, the line that names the cause, without its end; empty where it said nothing.
 */
void refusal_cause(const char *log, char *words, size_t size);

/*
 * One line, to be freed; NULL: no memory. what: "load" or "attach". err: -errno of it. section: of
 * the program, "tp_btf/sys_exit". log: what libbpf said of it, or "".
 */
char *refusal_text(const char *what, int err, const char *section, const char *log);
