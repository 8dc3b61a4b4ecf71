/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/flat/grace.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/duration.h"

/* No program runs for so long. */
#define REFUSED_NS (10 * NS_PER_S)

static uint64_t wanted; /* the last ticket */
static _Atomic uint64_t reached;
static atomic_bool is_running, is_refused;

static void *ask(void *goal)
{
	/* With one CPU the kernel answers at once, though a program may have been preempted. */
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2 || syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		is_refused = true;
	else
		reached = (uintptr_t)goal;
	is_running = false;
	return NULL;
}

/* One thread at a time; all that began before it are over after it. */
static void ask_kernel(void)
{
	pthread_t thread;

	if (is_running || is_refused)
		return;
	is_running = true;
	if (pthread_create(&thread, NULL, ask, (void *)(uintptr_t)wanted)) {
		is_refused = true;
		is_running = false;
	} else {
		pthread_detach(thread);
	}
}

struct grace grace_begin(uint64_t now_ns)
{
	struct grace grace = { ++wanted, now_ns };

	ask_kernel();
	return grace;
}

bool grace_is_over(const struct grace *grace, uint64_t now_ns)
{
	if (reached < grace->ticket)
		ask_kernel();
	return reached >= grace->ticket || (is_refused && now_ns >= grace->begin_ns + REFUSED_NS);
}
