/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask NAME CGROUP.PROCS FAILURES BLOCKS FILE: makes FAILURES calls that fail, and writes BLOCKS of 4 KiB to FILE, which
 * is new, and to the disk. Without a cgroup, "", it stays where it is. Prints {NAME: [failures, bytes for the disk]}.
 * The bytes are all of its life, since what a task did before it moved counts where it is when it is looked at.
 */
#include "workload.h"

enum { BLOCK = 4096 };

/* What the kernel says that this process made dirty. */
static long disk_bytes(void)
{
	char line[64];
	long bytes = -1;
	FILE *f = fopen("/proc/self/io", "r");

	workload_check(f);
	while (fgets(line, sizeof(line), f))
		(void)sscanf(line, "write_bytes: %ld", &bytes);
	fclose(f);
	return bytes;
}

int main(int argc, char **argv)
{
	static char block[BLOCK];
	long failures, blocks;
	int fd;

	workload_check(argc == 6);
	failures = strtol(argv[3], NULL, 10);
	blocks = strtol(argv[4], NULL, 10);
	if (*argv[2])
		workload_enter(workload_open_cgroup(argv[2]));
	fd = open(argv[5], O_WRONLY | O_CREAT | O_EXCL, 0600);
	workload_check(fd >= 0);
	for (long i = 0; i < failures; i++)
		workload_check(ftruncate(-1, i) < 0); /* nobody else calls it so */
	for (long i = 0; i < blocks; i++)
		workload_check(pwrite(fd, block, BLOCK, i * BLOCK) == BLOCK);
	workload_check(!fsync(fd));
	printf("{\"%s\": [%ld, %ld]}\n", argv[1], failures, disk_bytes());
	return 0;
}
