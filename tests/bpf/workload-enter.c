/* SPDX-License-Identifier: Apache-2.0 */
/* enter CGROUP.PROCS COMMAND...: becomes COMMAND inside that cgroup. */
#include "workload.h"

int main(int argc, char **argv)
{
	workload_check(argc >= 3);
	workload_enter(workload_open_cgroup(argv[1]));
	execvp(argv[2], argv + 2);
	fprintf(stderr, "%s: %s\n", argv[2], strerror(errno));
	return 127;
}
