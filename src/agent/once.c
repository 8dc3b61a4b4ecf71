/* SPDX-License-Identifier: Apache-2.0 */
/* Counting for a while, or while a command runs. */
#include "agent/agent.h"
#include "agent/internal.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "agent/scope.h"

/* How long the command may take to end after SIGTERM. */
#define COMMAND_END_NS (2 * NS_PER_S)
/* A command that has been waited for may still be switched away from. */
#define SETTLE_US	      20000

struct command {
	struct agent *agent;
	uint64_t end_us; /* CLOCK_BOOTTIME, when counting ends; 0: not known */
	bool stop;
	bool is_unread; /* what was printed */
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

/*
 * As execvp(3) finds it, but without trying each place, which would count as what the command does.
 */
static const char *find_program(const char *name, char *path, size_t size)
{
	const char *at = getenv("PATH") ?: "/bin:/usr/bin";

	if (strchr(name, '/'))
		return name;
	for (size_t length; at; at = at[length] ? at + length + 1 : NULL) {
		length = strcspn(at, ":");
		snprintf(path, size, "%.*s/%s", (int)length, length ? at : ".", name);
		if (!access(path, X_OK))
			return path;
	}
	return name;
}

/* 0, -errno, or the status that a shell has for a command that cannot be run, which is logged. */
static int spawn_command(struct agent *agent, char *const *arguments, struct command *command)
{
	const struct scope *scope = agent->options.scope;
	char path[PATH_MAX];
	const char *program = find_program(arguments[0], path, sizeof(path));
	volatile int err = 0;
	sigset_t none;

	sigemptyset(&none);
	/*
	 * The child has our memory, and we wait, until it has become the command, or has said why
	 * it cannot.
	 */
	command->pid = vfork();
	if (command->pid < 0)
		return -errno;
	if (!command->pid) {
		sigprocmask(SIG_SETMASK, &none, NULL);
		signal(SIGPIPE, SIG_DFL);
		err = scope ? -scope_enter(scope) : 0;
		if (!err) {
			execvp(program, arguments);
			err = errno;
		}
		_exit(EXIT_FAILURE);
	}
	if (err) {
		waitpid(command->pid, NULL, 0);
		log_error("cannot run %s: %s", arguments[0], err == ENOENT && !access(arguments[0], F_OK) ?
			  "its interpreter does not exist" : strerror(err));
		return err == ENOENT ? 127 : 126;
	}
	err = sd_event_add_child(agent->event, NULL, command->pid, WEXITED, on_child, command);
	return err < 0 ? err : 0;
}

/*
 * A terminal gives SIGINT and SIGHUP to the command too; SIGTERM comes to us alone, so we pass it
 * on.
 */
static int on_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *user)
{
	struct command *command = user;

	command->stop = true;
	if (info->ssi_signo == SIGTERM && command->pid > 0 && !command->has_ended)
		kill(command->pid, SIGTERM);
	return 0;
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *user)
{
	*(bool *)user = true;
	return 0;
}

void agent_hold_pipe(bool is_held)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	sigprocmask(is_held ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

/* The write to a reader that is gone sent the signal, which is held. */
static bool is_unread(void)
{
	sigset_t waiting;

	return !sigpending(&waiting) && sigismember(&waiting, SIGPIPE) == 1;
}

/* The last collection, at the end, has what comes after the last whole interval but one. */
static int on_interval(sd_event_source *source, uint64_t usec, void *user)
{
	struct command *command = user;
	uint64_t interval_us = command->agent->options.interval_ns / NS_PER_US;

	agent_collect(command->agent);
	command->is_unread = is_unread();
	sd_event_source_set_time(source, usec + interval_us);
	if (command->end_us && usec + interval_us + interval_us / 2 > command->end_us)
		return 0;
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int add_interval(struct command *command, uint64_t duration_ns)
{
	struct agent *agent = command->agent;
	uint64_t interval_ns = agent->options.interval_ns;

	if (!interval_ns || (duration_ns && interval_ns + interval_ns / 2 > duration_ns))
		return 0;
	command->end_us = duration_ns ? (clock_ns(CLOCK_BOOTTIME) + duration_ns) / NS_PER_US : 0;
	return sd_event_add_time_relative(agent->event, NULL, CLOCK_BOOTTIME,
					  interval_ns / NS_PER_US, 1000, on_interval, command);
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
	if (sd_event_add_time_relative(agent->event, &deadline, CLOCK_BOOTTIME,
				       COMMAND_END_NS / 1000, 0, on_deadline, &is_late) >= 0)
		while (!command->has_ended && !is_late &&
		       sd_event_run(agent->event, UINT64_MAX) >= 0)
			;
	if (!command->has_ended)
		kill(command->pid, SIGKILL);
	sd_event_source_unref(deadline);
	/* It ended because we said so. */
	command->status = 0;
}

int agent_once(struct agent *agent, uint64_t duration_ns, char *const *arguments, int *ret_status)
{
	struct command command = { .agent = agent };
	int err = agent_catch_signals(agent, on_signal, &command);

	if (!err && arguments)
		err = spawn_command(agent, arguments, &command);
	if (err > 0)
		return err;
	if (!err && duration_ns)
		err = sd_event_add_time_relative(agent->event, NULL, CLOCK_BOOTTIME,
						 duration_ns / 1000, 1000,
						 on_deadline, &command.stop);
	if (err >= 0)
		err = add_interval(&command, duration_ns);
	while (err >= 0 && !command.has_ended && !command.is_unread &&
	       (!command.stop || (arguments && !duration_ns)))
		err = sd_event_run(agent->event, UINT64_MAX);
	if (err < 0)
		log_error("stopped by an error: %s", strerror(-err));
	if (command.has_ended)
		usleep(SETTLE_US);
	agent_finish(agent, &command.stop);
	if (command.pid > 0 && !command.has_ended)
		end_command(agent, &command);
	agent_hold_pipe(false);
	*ret_status = command.status;
	if (err >= 0 && agent->is_read_failing)
		err = -EBADF; /* numbers are missing, and the log says which */
	/* An output can fail without points, too. */
	for (size_t i = 0; i < agent->n_exporters && err >= 0; i++)
		err = agent->exporters[i]->stats.is_failing ||
		      agent->exporters[i]->stats.points[POINTS_NOT_SENT] ? -EIO : 0;
	return err < 0 ? err : 0;
}
