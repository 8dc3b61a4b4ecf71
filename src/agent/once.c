/* SPDX-License-Identifier: Apache-2.0 */
/* Counting for a while, or while a command runs. */
#include "agent/internal.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

/* How long the command may take to end after SIGTERM. */
#define COMMAND_END_NS (2 * NS_PER_S)
/* A command that has been waited for may still be switched away from. */
#define SETTLE_US	      20000

struct command {
	bool stop; /* the first member: what agent_on_stop() sets */
	bool has_ended;
	pid_t pid;
	int status; /* as a shell shows it */
};

static int on_child(sd_event_source *source, const siginfo_t *info, void *user)
{
	struct command *command = user;

	command->has_ended = true;
	command->status = info->si_code == CLD_EXITED ? info->si_status : 128 + info->si_status;
	return 0;
}

static int spawn(struct agent *agent, char *const *arguments, struct command *command)
{
	sigset_t none;
	int err;

	command->pid = fork();
	if (command->pid < 0)
		return -errno;
	if (!command->pid) {
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		signal(SIGPIPE, SIG_DFL);
		execvp(arguments[0], arguments);
		err = errno;
		log_error("cannot run %s: %s", arguments[0], strerror(err));
		_exit(err == ENOENT ? 127 : 126);
	}
	err = sd_event_add_child(agent->event, NULL, command->pid, WEXITED, on_child, command);
	return err < 0 ? err : 0;
}

/*
 * A terminal gives SIGINT and SIGHUP to the command too; SIGTERM comes to us alone, so we pass it
 * on.
 */
static int on_terminate(sd_event_source *source, const struct signalfd_siginfo *info, void *user)
{
	struct command *command = user;

	command->stop = true;
	if (command->pid > 0 && !command->has_ended)
		kill(command->pid, SIGTERM);
	return 0;
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *user)
{
	*(bool *)user = true;
	return 0;
}

/*
 * Counting ends before the command does: it is asked to end, woken if it was stopped, and at last
 * killed.
 */
static void end_command(struct agent *agent, struct command *command)
{
	sd_event_source *deadline = NULL;
	bool is_late = false;

	kill(command->pid, SIGTERM);
	kill(command->pid, SIGCONT);
	if (sd_event_add_time_relative(agent->event, &deadline, CLOCK_BOOTTIME, COMMAND_END_NS / 1000, 0,
				       on_deadline, &is_late) >= 0)
		while (!command->has_ended && !is_late && sd_event_run(agent->event, UINT64_MAX) >= 0)
			;
	if (!command->has_ended)
		kill(command->pid, SIGKILL);
	sd_event_source_unref(deadline);
	/* It ended because we said so. */
	command->status = 0;
}

int agent_once(struct agent *agent, uint64_t duration_ns, char *const *arguments, int *ret_status)
{
	struct command command = { 0 };
	int err = agent_catch_signals(agent, on_terminate, &command, agent_on_stop, &command);

	if (!err && arguments)
		err = spawn(agent, arguments, &command);
	if (!err && duration_ns)
		err = sd_event_add_time_relative(agent->event, NULL, CLOCK_BOOTTIME, duration_ns / 1000, 1000,
						 on_deadline, &command.stop);
	while (err >= 0 && !command.has_ended && (!command.stop || (arguments && !duration_ns)))
		err = sd_event_run(agent->event, UINT64_MAX);
	if (err < 0)
		log_error("stopped by an error: %s", strerror(-err));
	if (command.has_ended)
		usleep(SETTLE_US);
	agent_finish(agent, &command.stop);
	if (command.pid > 0 && !command.has_ended)
		end_command(agent, &command);
	*ret_status = command.status;
	if (err >= 0 && agent->is_read_failing)
		err = -EBADF; /* numbers are missing, and the log says which */
	for (size_t i = 0; i < agent->n_exporters && err >= 0; i++)
		err = agent->exporters[i]->stats.points[POINTS_NOT_SENT] ? -EIO : 0;
	return err < 0 ? err : 0;
}
