/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/kernel/kernel.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collector/hook/target.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/rights.h"
#include "util/utf8.h"

#define ENOTSUPP_OF_KERNEL 524 /* linux/errno.h; the C library has no words for it */

/*
 * What the verifier objected to: the last line of its log before "processed N insns". Empty where
 * it said nothing.
 */
static void verifier_words(const char *text, char *words, size_t size)
{
	const char *end = NULL, *start;

	for (const char *at = text; (at = strstr(at, "\nprocessed ")); at++)
		end = at;
	words[0] = '\0';
	if (!end)
		return;
	for (start = end; start > text && start[-1] != '\n'; start--)
		;
	snprintf(words, size, ": %.*s", (int)(end - start), start);
}

void refusal_cause(const char *log, char *words, size_t size)
{
	const char *line = log, *next;

	/* The last line only sums up. */
	while ((next = strchr(line, '\n')) && next[1] && strncmp(next + 1, "libbpf: failed to load object", 29))
		line = next + 1;
	line += strncmp(line, "libbpf: ", 8) ? 0 : 8;
	snprintf(words, size, "%.*s", (int)strcspn(line, "\n"), line);
}

#define PERF_SECTIONS " tp tracepoint kprobe kretprobe uprobe uretprobe usdt perf_event "

/*
 * Rights that some programs need, and a drop-in that gives them to the service (command/allow.c).
 */
#define NO_SYS_ADMIN "CAP_SYS_ADMIN is missing; \"sudo bpfpush allow perf-events\" gives it to the service"
#define NO_NET_ADMIN "CAP_NET_ADMIN is missing; \"sudo bpfpush allow xdp\" gives it to the service"

/* What an error means; the first row that fits. */
static const struct meaning {
	int err;	      /* 0: any */
	const char *what;     /* NULL: both */
	const char *types;    /* of sections, each between blanks */
	const char *missing;  /* only if this does not exist; NULL: in any case */
	const char *text;
	unsigned int capability; /* only if the process does not have it; 0: in any case */
	bool is_silent; /* only if libbpf said nothing */
} meanings[] = {
	{ -ECANCELED, NULL, KERNEL_FUNCTIONS, NULL, NO_TRACED_FUNCTIONS },
	{ -ESRCH, NULL, " tp_btf ", NULL, "this kernel has no tracepoint of that name" },
	{ -ESRCH, NULL, " iter ", NULL, "this kernel has no walk of that name" },
	{ -ESRCH, NULL, " fentry fexit ", NULL, "this kernel has no function of that name" },
	{ -EPERM, "load", " fentry fexit ", NULL, NO_PROGRAMS_THERE },
	{ -ENOTSUPP_OF_KERNEL, "attach", " uprobe uretprobe usdt ", NULL,
	  "the kernel cannot stop a program at this instruction; name another function" },
	{ -E2BIG, "attach", " usdt ", NULL, "the mark is in more than 256 places, or the file has changed meanwhile; reload" },
	{ -ENOENT, NULL, " uprobe uretprobe usdt ", NULL, "the file does not exist, or has no such function or mark", 0, true },
	{ -ESRCH, NULL, " usdt ", NULL, "the object must include <bpf/usdt.bpf.h>", 0, true },
	{ -ENOENT, "attach", " perf_event ", NULL, NO_EVENT_COUNTER },
	{ -EOPNOTSUPP, "attach", " perf_event ", NULL, NO_EVENT_COUNTER },
	{ -ENODEV, "attach", " xdp ", NULL, "this machine has no such interface; ip link lists them" },
	{ -EBUSY, "attach", " xdp ", NULL, "the interface has a program already" },
	{ -EOPNOTSUPP, "attach", " xdp ", NULL, "the driver cannot do it; write mode = generic" },
	{ -EPERM, NULL, " xdp ", NULL, NO_NET_ADMIN, CAP_NET_ADMIN },
	{ -ENOENT, "attach", " raw_tp raw_tracepoint ", NULL, "this kernel has no tracepoint of that name" },
	{ -ENOENT, NULL, " tp tracepoint ", "/sys/kernel/tracing/events", "mount tracefs at /sys/kernel/tracing, and look there for the tracepoint's name" },
	{ -ENOENT, NULL, " tp tracepoint ", NULL, "this kernel has no tracepoint of that name" },
	{ -EOPNOTSUPP, NULL, " iter ", NULL, "from Linux 7.0 on, the kernel can stop in this walk" },
	{ -EACCES, "attach", PERF_SECTIONS, NULL, NO_SYS_ADMIN, CAP_SYS_ADMIN },
	{ -EPERM, "attach", PERF_SECTIONS, NULL, NO_SYS_ADMIN, CAP_SYS_ADMIN },
	{ 0, "attach", KERNEL_PROBES, HAS_KERNEL_PROBES, NO_KERNEL_PROBES },
	{ -EADDRNOTAVAIL, "attach", KERNEL_PROBES, NULL, "the kernel has several functions of this name, and " SEVERAL_FUNCTIONS },
	{ -ESRCH, "attach", KERNEL_PROBES, NULL, "this kernel has no function of that name, or nobody can trace it" },
	{ -ENOENT, "attach", KERNEL_PROBES, NULL, "this kernel has no function of that name" },
	{ -EINVAL, "attach", " kprobe kretprobe ", NULL,
	  "nobody can probe this function: it is notrace, or in /sys/kernel/debug/kprobes/blacklist; name one that calls it, "
	  "or that it calls" },
};

static const char *explain_error(const char *what, const char *section, int err, const char *log)
{
	array_for_each (row, meanings, ARRAY_SIZE(meanings)) {
		if ((row->err && row->err != err) || !section_is(section, row->types) ||
		    (row->is_silent && *log) ||
		    (row->capability && rights_permitted() >> row->capability & 1))
			continue;
		if ((!row->what || !strncmp(what, row->what, strlen(row->what))) &&
		    (!row->missing || access(row->missing, F_OK)))
			return row->text;
	}
	return NULL;
}

const char *refusal_lack(const char *section, uint64_t rights)
{
	array_for_each (row, meanings, ARRAY_SIZE(meanings))
		if (row->capability && section_is(section, row->types) &&
		    !(rights >> row->capability & 1))
			return row->text;
	return NULL;
}

const char *refusal_error(int err)
{
	static char text[128];

	if (-err >= __LIBBPF_ERRNO__START)
		return libbpf_strerror(err, text, sizeof(text)) ? "unknown error of libbpf" : text;
	return strerror(err == -ENOTSUPP_OF_KERNEL ? EOPNOTSUPP : -err);
}

char *refusal_text(const char *what, int err, const char *section, const char *log)
{
	const char *known = explain_error(what, section, err, log);
	char words[256], *text;
	int n;

	verifier_words(log, words, sizeof(words));
	if (!strcmp(what, "attach") && *log && !known) {
		memcpy(words, ": ", 2);
		refusal_cause(log, words + 2, sizeof(words) - 2);
	}
	if (known)
		n = asprintf(&text, "%s: %s (%s)%s", what, refusal_error(err), known, words);
	else
		n = asprintf(&text, "%s: %s%s", what, refusal_error(err), words);
	if (n < 0)
		return NULL;
	utf8_clean(text);
	return text;
}
