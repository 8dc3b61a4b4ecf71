/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Why the kernel did not take a program or an object, for people. */

/* strerror() that also knows the errors that the kernel has for itself. err: -errno. */
const char *refusal_error(int err);

/*
 * One line, to be freed; NULL: no memory. what: "load" or "attach". err: -errno of it. section: of the program,
 * "tp_btf/sys_exit". log: what libbpf said of the load, or "".
 */
char *refusal_text(const char *what, int err, const char *section, const char *log);
