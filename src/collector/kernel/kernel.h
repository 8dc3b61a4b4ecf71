/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What every collector needs of this machine. It is asked before anything is loaded, so that what is missing is
 * said once, in one sentence with the remedy, and not by the verifier for each program.
 */

#include <stdbool.h>

#include "util/buf.h"

/* 0, or with the sentence in why: -EPERM (rights are missing), -EOPNOTSUPP (nothing could run here). */
int kernel_check(struct buf *why);
/* May this thread read maps, with the capabilities that it has now? */
bool kernel_can_read(void);
/* Is this Linux of that version or a later one? For what cannot be tried. */
bool kernel_is_since(unsigned int major, unsigned int minor);

/*
 * Why the kernel did not take a program or an object, for people: refusal.c.
 */

/* strerror() that also knows the errors that the kernel has for itself. err: -errno. */
const char *refusal_error(int err);

/*
 * One line, to be freed; NULL: no memory. what: "load" or "attach". err: -errno of it. section: of the program,
 * "tp_btf/sys_exit". log: what libbpf said of the load, or "".
 */
char *refusal_text(const char *what, int err, const char *section, const char *log);
