/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be tried is tried, with programs of a few instructions that are loaded and let go. So a
 * kernel counts by what it can do, whatever its version says, and a missing right is that of the
 * system call itself.
 */
#include "collector/kernel/kernel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/rights.h"

#define FILES_NEEDED 256
#define OLDEST_MAJOR 5
#define OLDEST_MINOR 15

#define SET(register, value) \
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (register), .imm = (value) }
#define ADD(register, value) \
	{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = (register), .imm = (value) }
#define COPY(register, source) \
	{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = (register), .src_reg = (source) }
#define CALL(function)	       { .code = BPF_JMP | BPF_CALL, .imm = (function) }
#define END		       SET(BPF_REG_0, 0), { .code = BPF_JMP | BPF_EXIT }

static const struct bpf_insn nothing[] = { END };
/* The newest function that the shipped collectors cannot do without. */
static const struct bpf_insn task_registers[] = {
	CALL(BPF_FUNC_get_current_task_btf), COPY(BPF_REG_1, BPF_REG_0),
						  CALL(BPF_FUNC_task_pt_regs), END,
};
static const struct bpf_insn read_kernel[] = {
	COPY(BPF_REG_1, BPF_REG_10), ADD(BPF_REG_1, -8), SET(BPF_REG_2, 8), SET(BPF_REG_3, 0),
	CALL(BPF_FUNC_probe_read_kernel), END,
};

/* Its descriptor, or -errno. */
static int try_program(const struct bpf_insn *instructions, size_t n)
{
	int fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, NULL, "Dual BSD/GPL", instructions, n, NULL);

	return fd < 0 ? -errno : fd;
}

bool kernel_is_since(unsigned int major, unsigned int minor)
{
	unsigned int is_major, is_minor;
	struct utsname kernel;

	if (uname(&kernel) || sscanf(kernel.release, "%u.%u", &is_major, &is_minor) != 2)
		return false;
	return is_major > major || (is_major == major && is_minor >= minor);
}

bool kernel_traces_functions(void)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/sys/kernel/ftrace_enabled", "re");

	return !f || fgetc(f) != '0';
}

static void ask_proc(struct buf *why)
{
	if (access("/proc/self", F_OK))
		buf_append_text(why, "/proc is not mounted: mount it (mount -t proc proc /proc)");
}

static void ask_rights(struct buf *why)
{
	_cleanup_(closep) int fd = try_program(nothing, ARRAY_SIZE(nothing));
	uint64_t rights = rights_permitted();
	static const char *const missing[] = { "CAP_BPF and CAP_PERFMON are", "CAP_PERFMON is", "CAP_BPF is" };
	bool has_bpf = rights >> CAP_BPF & 1, has_perfmon = rights >> CAP_PERFMON & 1;

	if (fd != -EPERM && fd != -ENOSYS)
		return;
	if (has_bpf && has_perfmon)
		buf_append_text(why, "bpf() is refused although CAP_BPF and CAP_PERFMON are there: the system call filter "
				     "(seccomp) must allow it, and the user namespace must be that of the machine");
	else
		buf_printf(why, "%s missing: %s", missing[has_bpf + 2 * has_perfmon],
			   geteuid() ? "run as root, or with CAP_BPF and CAP_PERFMON" :
				       "a container has to be given both");
}

/* Maps, programs, links, per-CPU buffers, sockets. */
static void ask_files(struct buf *why)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= FILES_NEEDED)
		return;
	limit.rlim_cur = limit.rlim_max < FILES_NEEDED ? limit.rlim_max : FILES_NEEDED;
	if (setrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur < FILES_NEEDED)
		buf_printf(why, "only %llu files may be open, and bpfpush may need %d: raise the limit (ulimit -n, LimitNOFILE=)",
			   (unsigned long long)limit.rlim_max, FILES_NEEDED);
}

/* Some older kernels have been given what later ones brought; they are not refused. */
static void ask_version(struct buf *why)
{
	bool is_new = kernel_is_since(OLDEST_MAJOR, OLDEST_MINOR);
	_cleanup_(closep) int fd = is_new ? -1 :
				   try_program(task_registers, ARRAY_SIZE(task_registers));
	struct utsname kernel;

	if (!is_new && fd < 0 && !uname(&kernel))
		buf_printf(why, "this kernel (%s) is too old: bpfpush needs Linux %d.%d or later", kernel.release,
			   OLDEST_MAJOR, OLDEST_MINOR);
}

static bool is_btf(const char *path)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint16_t magic = 0;

	return fd >= 0 && read(fd, &magic, sizeof(magic)) == sizeof(magic) && magic == BTF_MAGIC;
}

static void ask_types(struct buf *why)
{
	if (access("/sys/kernel", F_OK) || access("/sys/devices", F_OK))
		buf_append_text(why, "/sys is not mounted: mount it (mount -t sysfs sysfs /sys)");
	else if (access("/sys/kernel/btf/vmlinux", R_OK))
		buf_append_text(why, "this kernel has no type information (/sys/kernel/btf/vmlinux): use one built with "
				     "CONFIG_DEBUG_INFO_BTF, like the kernels of Debian, Fedora and RHEL");
	else if (!is_btf("/sys/kernel/btf/vmlinux"))
		buf_append_text(why, "/sys/kernel/btf/vmlinux is not the kernel's own: something else is mounted there; unmount it");
}

static void ask_compiler(struct buf *why)
{
	_cleanup_(closep) int fd = try_program(nothing, ARRAY_SIZE(nothing));
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);

	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &size) && !info.jited_prog_len)
		buf_append_text(why, "the kernel's compiler for BPF programs (JIT) is off: run sysctl "
				     "net.core.bpf_jit_enable=1");
}

static void ask_lockdown(struct buf *why)
{
	_cleanup_(closep) int fd = try_program(read_kernel, ARRAY_SIZE(read_kernel));

	if (fd == -EINVAL)
		buf_append_text(why, "this kernel is locked down, so programs may not read its memory: start it without "
				     "lockdown=confidentiality; lockdown=integrity does no harm");
}

int kernel_check(bool has_types, struct buf *why)
{
	static const struct {
		void (*ask)(struct buf *why); /* says what is missing */
		int err;
	} needs[] = {
		{ ask_proc, -EOPNOTSUPP },  { ask_files, -EOPNOTSUPP },
		{ ask_rights, -EPERM },	    { ask_version, -EOPNOTSUPP },
		{ ask_types, -EOPNOTSUPP }, { ask_compiler, -EOPNOTSUPP },
		      { ask_lockdown, -EOPNOTSUPP },
	};

	for (size_t i = 0; i < ARRAY_SIZE(needs); i++) {
		if (!has_types || needs[i].ask != ask_types)
			needs[i].ask(why);
		if (why->size)
			return needs[i].err;
	}
	return 0;
}

static char *symbols; /* /proc/kallsyms, for which the kernel takes a tenth of a second */

void kernel_forget_symbols(void)
{
	free(symbols);
	symbols = NULL;
}

static bool read_symbols(void)
{
	_cleanup_(fclosep) FILE *f = symbols ? NULL : fopen("/proc/kallsyms", "re");
	size_t size = 0;

	if (!symbols && f && getdelim(&symbols, &size, '\0', f) < 0)
		kernel_forget_symbols(); /* it may have room, and nothing in it */
	return symbols;
}

/*
 * Where the name of a function begins that begins so. A line is "ADDRESS TYPE NAME", and may go on
 * with "\t[MODULE]".
 */
static const char *next_function(const char *at, const char *name)
{
	while (at && (at = strstr(at, name)) &&
	       (at - symbols < 3 || at[-1] != ' ' || !strchr("tTwW", at[-2])))
		at++;
	return at;
}

static uint64_t address_at(const char *at)
{
	while (at > symbols && at[-1] != '\n')
		at--;
	return strtoull(at, NULL, 16);
}

size_t kernel_find_functions(const char *name, unsigned long addresses[static KERNEL_PLACES])
{
	size_t length = strlen(name), n = 0;

	for (const char *at = *name && read_symbols() ? symbols : NULL;
	     (at = next_function(at, name)); at += length) {
		if (!strchr("\n\t", at[length]))
			continue;
		if (n < KERNEL_PLACES)
			addresses[n] = (unsigned long)address_at(at);
		n++;
	}
	return n;
}

bool kernel_find_part(const char *name, char *text, size_t size)
{
	const char *at;

	snprintf(text, size, "%s.", name);
	at = *name && read_symbols() ? next_function(symbols, text) : NULL;
	if (at)
		snprintf(text, size, "%.*s", (int)strcspn(at, "\t\n"), at);
	return at;
}

int kernel_find_symbol(const char *name, uint64_t *ret_address)
{
	char text[512 + 4];
	const char *at;

	if (!read_symbols())
		return -EACCES;
	snprintf(text, sizeof(text), " %.512s\n", name);
	at = strstr(symbols, text);
	text[strlen(text) - 1] = '\t'; /* the name of a module follows */
	at = at ?: strstr(symbols, text);
	if (!at)
		return -ENOENT;
	*ret_address = address_at(at);
	return *ret_address ? 0 : -EACCES;
}

bool kernel_can_read(void)
{
	uint64_t key;

	/* Before 5.19 a missing right is an error before a missing map. */
	return bpf_map_get_next_key(-1, NULL, &key) && errno != EPERM;
}
