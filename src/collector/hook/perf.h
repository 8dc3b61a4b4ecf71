/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * perf_event programs run when an event of a CPU, or of the kernel, has happened a number of times
 * (period), or a number of times a second (frequency). Without either, each event of the kernel
 * that happens now and then runs the program; of what goes on all the time, 99 a second on each CPU
 * do.
 *
 *     perf_event/NAME     cycles, cache-misses, LLC-load-misses, page-faults …, as perf(1) names
 *                         them
 *     perf_event/rHEX     a number from the processor's manual
 *     perf_event/type=N,config=N[,frequency=N|,period=N]    those of struct perf_event_attr
 */

#include <stdbool.h>

struct bpf_object;
struct bpf_program;
struct perf_event_attr;
struct program;

/* False: no event has this name. */
bool perf_find(const char *name, struct perf_event_attr *attributes);
/*
 * What is wrong with an event, or with how often it is to run the program (NULL: not said): the end
 * of a message. NULL: nothing.
 */
const char *perf_complaint(const char *event, const char *frequency, const char *period);
/* False: the machine cannot count the event. It is tried, which takes no rights. */
bool perf_is_counted(const char *event);
/*
 * On each CPU that is online. Again, it attaches to CPUs that have come online since. 0, or the
 * -errno of a CPU: -ENOENT where the machine cannot count the event.
 */
int perf_attach(const struct bpf_object *object, struct program *program, struct bpf_program *bpf);
