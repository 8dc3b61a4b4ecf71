/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/*
 * True on kernels (7.0 and later) that may preempt a program at an ordinary tracepoint; bpfpush
 * sets it before it loads the object. While a preempted run of a program waits on a CPU, the kernel
 * skips that program there. It never skips one whose every run has interrupts or softirqs off, such
 * as sched_switch: nothing preempts it.
 */
const volatile bool hooks_preemptible = false;
