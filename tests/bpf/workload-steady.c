/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steady FILE: calls that no other program makes, a few every millisecond, until SIGTERM. FILE is mapped: it holds how
 * many of each there were, as two numbers of 64 bits, whoever ends whenever. A second start goes on from there.
 */
#include "workload.h"

#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

enum { TIMER_GETOVERRUN, IOPRIO_GET, N_COUNTS };

static volatile sig_atomic_t is_over;

static void end(int number)
{
	is_over = 1;
}

int main(int argc, char **argv)
{
	volatile uint64_t *counts;
	int fd;

	workload_check(argc == 2);
	fd = open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	workload_check(fd >= 0 && !ftruncate(fd, N_COUNTS * sizeof(*counts)));
	counts = mmap(NULL, N_COUNTS * sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	workload_check(counts != MAP_FAILED && signal(SIGTERM, end) != SIG_ERR);
	for (unsigned int i = 0; !is_over; i++) {
		for (unsigned int j = 0; j <= i % 3; j++) {
			syscall(SYS_timer_getoverrun, -1);
			counts[TIMER_GETOVERRUN]++;
		}
		syscall(SYS_ioprio_get, 1, 0);
		counts[IOPRIO_GET]++;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return 0;
}
