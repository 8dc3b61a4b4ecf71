/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For LD_PRELOAD: CLOCK_REALTIME is ahead by as many seconds as the file that $CLOCK_AHEAD names
 * says; as soon as somebody writes another number there, the clock has been set.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time)
{
	const char *path = getenv("CLOCK_AHEAD");
	long ahead = 0;
	FILE *file;

	if (syscall(SYS_clock_gettime, clock, time))
		return -1;
	if (clock != CLOCK_REALTIME || !path)
		return 0;
	file = fopen(path, "r");
	if (file && fscanf(file, "%ld", &ahead) == 1)
		time->tv_sec += ahead;
	if (file)
		fclose(file);
	return 0;
}
