/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is logged between log_catch() and log_caught(). */

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "util/log.h"

static int log_pipe[2], log_kept;

static inline void log_catch(void)
{
	assert_int_equal(pipe2(log_pipe, O_CLOEXEC | O_NONBLOCK), 0);
	log_kept = dup(STDERR_FILENO);
	dup2(log_pipe[1], STDERR_FILENO);
	log_init(LOG_LEVEL_INFO);
}

static inline const char *log_caught(void)
{
	static char text[4096];
	ssize_t n;

	dup2(log_kept, STDERR_FILENO);
	n = read(log_pipe[0], text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	close(log_kept);
	close(log_pipe[0]);
	close(log_pipe[1]);
	return text;
}
