/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The object for probes that report events, each of which may have a text and an address. */
#define PROBE_EVENTS
#define PROBE_TEXT_BYTES 256
#include "probe.bpf.c"
