/* SPDX-License-Identifier: Apache-2.0 */
/*
 * busy FILE CGROUP.PROCS: calls and page faults without a pause, until it is killed. FILE is mapped: it holds how many
 * calls there were, as a number of 64 bits. The kernel knows the faults.
 */
#include "workload.h"

#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static void *map(int fd, size_t size)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	workload_check(memory != MAP_FAILED);
	return memory;
}

int main(int argc, char **argv)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	volatile uint64_t *calls;
	volatile char *page;
	int fd;

	workload_check(argc == 3);
	fd = open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	workload_check(fd >= 0 && !ftruncate(fd, sizeof(*calls)));
	calls = map(fd, sizeof(*calls));
	page = map(-1, page_bytes);
	workload_enter(workload_open_cgroup(argv[2]));
	for (;;) {
		for (int i = 0; i < 10; i++) {
			syscall(SYS_getsid, 0);
			++*calls;
		}
		workload_check(!madvise((char *)page, page_bytes, MADV_DONTNEED));
		*page = 1;
	}
}
