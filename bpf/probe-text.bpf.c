/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The object for probes that count by a text, which makes each key and each call longer. */
#define PROBE_TEXT_BYTES 64
#include "probe.bpf.c"
