/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What an interpreter runs: of "python3.11 -u /srv/app.py --port=80", the name "app.py". */

#include <stddef.h>
#include <sys/types.h>

/*
 * Finds the script in a command line as /proc/PID/cmdline has it: size bytes, each word ended by a
 * NUL. executable: what the process is called. Returns the name without its directory, borrowed
 * from words, or NULL: it is not a known interpreter, or it runs no file.
 */
const char *script_find(const char *executable, const char *words, size_t size);
/* Finds the script of a process, in buffer. Also NULL if it has ended or hides its command line. */
const char *script_of(const char *executable, pid_t pid, char *buffer, size_t size);
