/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Memory of a process whose start needs much and whose life needs little: megabytes of the kernel's types
 * are read and thrown away once for each BPF object, and libraries run code that never runs again.
 */

/* From now on freed memory is kept for the next one who asks, instead of being faulted in anew each time. */
void memory_begin_start(void);
/* Gives back what the start has left: free memory, and pages of programs and libraries until they are used again. */
void memory_end_start(void);
