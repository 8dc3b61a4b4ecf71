/* SPDX-License-Identifier: Apache-2.0 */
/* calls N: makes a call N times that no other program makes. Linked statically: containers have no libraries. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int n_arguments, char **arguments)
{
	for (long n = n_arguments > 1 ? strtol(arguments[1], NULL, 10) : 0; n > 0; n--)
		syscall(SYS_sched_rr_get_interval, -1, NULL);
	return 0;
}
