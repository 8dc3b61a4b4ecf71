/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent as a service: a collection each interval, and what the service manager wants to know of
 * it.
 */
#include "agent/agent.h"
#include "agent/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <linux/capability.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/status/status.h"
#include "agent/status/viewers.h"
#include "collector/kernel/kernel.h"
#include "util/array.h"
#include "util/kept.h"
#include "util/phase.h"
#include "util/rights.h"

/*
 * Without a receiver, the first collection is soon after the start, so that a person who watches
 * sees life.
 */
#define FIRST_COLLECTION_NS NS_PER_S

static const int signals[] = { SIGTERM, SIGINT, SIGHUP };

void agent_block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

int agent_catch_signals(struct agent *agent, sd_event_signal_handler_t on_signal, void *user)
{
	int err = 0;

	agent_block_signals();
	/* A filter ends when its reader has gone; a service goes on. */
	signal(SIGPIPE, agent->options.is_filter ? SIG_DFL : SIG_IGN);
	/* A file at its limit is an error that is counted, not the end. */
	signal(SIGXFSZ, SIG_IGN);
	for (size_t i = 0; i < ARRAY_SIZE(signals) && err >= 0; i++)
		err = sd_event_add_signal(agent->event, NULL, signals[i], on_signal, user);
	return err < 0 ? err : 0;
}

/*
 * The start needs pages of the program and its libraries that are not used later: the kernel gets
 * those that it can read from the file again, if they are needed; pages that a debugger or a uprobe
 * has changed stay. Of data it then reads the pages that are asked for, without those around them.
 * A kernel that cannot do this (before 5.4, or for a file of another user) leaves the pages.
 */
static int page_out(struct dl_phdr_info *object, size_t size, void *unused)
{
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);

	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];
		uintptr_t at = object->dlpi_addr + part->p_vaddr, before = at % page_bytes;
		void *start = (void *)(at - before);

		if (part->p_type != PT_LOAD || part->p_flags & PF_W)
			continue;
		if (!(part->p_flags & PF_X))
			(void)madvise(start, before + part->p_memsz, MADV_RANDOM);
		(void)madvise(start, before + part->p_memsz, MADV_PAGEOUT);
	}
	return 0;
}

/* What many series took is free, but not the kernel's again, when many of them have gone. */
static void return_memory_of_series(struct agent *agent)
{
	uint64_t bytes = agent->options.set->budget->series_bytes;

	if (bytes > agent->most_bytes)
		agent->most_bytes = bytes;
	if (bytes >= agent->most_bytes - agent->most_bytes / 8)
		return;
	malloc_trim(0);
	agent->most_bytes = bytes;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *user)
{
	struct agent *agent = user;
	uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);

	/*
	 * The start needs much memory, most of it once: until names are known and a connection is
	 * made.
	 */
	if (agent->n_collections++ == 1) {
		malloc_trim(0);
		dl_iterate_phdr(page_out, NULL);
		if (agent->options.kept && kept_is_cut(agent->options.kept))
			log_warning("a restart will not be able to go on with all that is counted now: the service manager "
				    "has no room for it; raise FileDescriptorStoreMax= of the unit");
	}
	if (agent->n_collections == agent->options.count) { /* the last one is made at the end */
		agent->is_stopping = true;
		return 0;
	}
	agent_collect(agent);
	return_memory_of_series(agent);
	/* From start to start; collections missed in a sleep or a stall are not made up for. */
	do
		agent->next_ns += agent->options.interval_ns;
	while (agent->next_ns <= now_ns);
	sd_event_source_set_time(source, agent->next_ns / 1000);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

void agent_set_interval(struct agent *agent, uint64_t interval_ns)
{
	agent->options.interval_ns = interval_ns;
	agent->next_ns = agent->boottime_ns + interval_ns;
	sd_event_source_set_time(agent->timer, agent->next_ns / NS_PER_US);
	sd_event_source_set_enabled(agent->timer, interval_ns ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

/* True: it is right, and the agent ends its work with the old one. */
static bool check_configuration(struct agent *agent)
{
	agent->reload = agent->options.reload(agent->options.user);
	agent->is_reload_refused = !agent->reload;
	status_changed(agent->status);
	return agent->reload;
}

/* SIGHUP ends a run in a terminal: the terminal has gone. */
static int on_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *user)
{
	struct agent *agent = user;

	if (info->ssi_signo != SIGHUP || !agent->options.reload)
		agent->is_stopping = true;
	else if (!agent->batch.is_last)
		/* else it ends, and what comes next reads the configuration anyway */
		check_configuration(agent);
	return 0;
}

/*
 * All is attached, and to read what was counted takes no capability, except on kernels before 5.19,
 * and to attach to CPUs that come online. Threads that look up names have given up theirs.
 */
static void drop_rights(const struct collector_set *set)
{
	uint64_t rights = rights_permitted(), kept = 0;
	int err;

	if (!rights)
		return;
	err = rights_set(rights, 0);
	if (!err && !kernel_can_read())
		kept = rights & 1ull << CAP_BPF;
	for (size_t i = 0; i < set->n; i++)
		if (programs_renew(&set->items[i]->object->programs, NULL))
			kept |= rights & 1ull << CAP_PERFMON;
	if (!err)
		err = rights_set(kept, kept);
	if (err)
		log_warning("capabilities cannot be given up: %s", strerror(-err));
	else if (kept & 1ull << CAP_BPF)
		log_info("this kernel lets only CAP_BPF read maps: it is kept, and others are given up");
}

/* Ends with a last collection. A SIGTERM during a reload makes it a stop. */
static void finish_counting(struct agent *agent)
{
	char phase[64] = "STOPPING=1";

	if (agent->reload == RELOAD_EXEC)
		log_info("reloading the configuration");
	if (agent->reload == RELOAD_EXEC)
		snprintf(phase, sizeof(phase), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_ns(CLOCK_MONOTONIC) / NS_PER_US);
	agent->batch.is_last = true;
	status_say(agent->status, phase);
	sd_event_source_set_enabled(agent->timer, SD_EVENT_OFF);
	agent_finish(agent, &agent->is_stopping);
	if (agent->reload != RELOAD_EXEC || !agent->is_stopping)
		return;
	agent->reload = RELOAD_NONE;
	finish_counting(agent);
}

/*
 * The files may have changed while the last collection was sent. If they are wrong now, a new
 * process would end at once, so this one goes on after all.
 */
static bool is_still_right(struct agent *agent)
{
	if (check_configuration(agent))
		return true;
	agent->batch.is_last = agent->is_stopping = false;
	agent_listen(agent, true);
	agent_set_interval(agent, agent->options.interval_ns);
	status_say(agent->status, "READY=1");
	return false;
}

/*
 * Receivers tell agents apart by service.instance.id. Two that run with the same one on one machine
 * mix up their series, so each holds an abstract socket with this name, which the kernel frees when
 * the process ends. It is never used to send anything. Returns the socket, or -1.
 */
static int claim_instance(const struct agent *agent)
{
	const char *id = resource_find(&agent->options.config->resource, "service.instance.id");
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	_cleanup_(closep) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t size = offsetof(struct sockaddr_un, sun_path) + 1;

	if (!id || strlen(id) > 64)
		return -1;
	size += (socklen_t)snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "bpfpush/%s", id);
	if (!bind(fd, (struct sockaddr *)&name, size))
		return TAKE_FD(fd);
	if (errno == EADDRINUSE)
		log_warning("another bpfpush with service.instance.id %s runs on this machine, and receivers mix up the "
			    "series of both; stop one, or set service.instance.id in [resource]",
			    id);
	return -1;
}

/* How long until the first collection; all later ones keep its moment in the interval. */
static uint64_t first_delay_ns(const struct agent *agent)
{
	uint64_t interval_ns = agent->options.interval_ns;
	const char *id = resource_find(&agent->options.config->resource, "service.instance.id");
	bool has_receiver = false;

	for (size_t i = 0; i < agent->n_exporters; i++)
		has_receiver |= agent->exporters[i]->ops->probe != NULL;
	if (!has_receiver || agent->options.is_filter || !id)
		return interval_ns < FIRST_COLLECTION_NS ? interval_ns : FIRST_COLLECTION_NS;
	return phase_delay_ns(id, interval_ns, clock_ns(CLOCK_REALTIME));
}

int agent_run(struct agent *agent)
{
	int err = agent_catch_signals(agent, on_signal, agent);

	agent->collected_ns = clock_ns(CLOCK_MONOTONIC);
	agent->next_ns = clock_ns(CLOCK_BOOTTIME) + first_delay_ns(agent);
	if (!err)
		err = sd_event_add_time(agent->event, &agent->timer, CLOCK_BOOTTIME,
					agent->next_ns / 1000, 1000, on_timer, agent);
	err = err < 0 ? err : status_new(agent, check_configuration, &agent->status);
	if (!err && !agent->options.is_filter)
		err = viewers_new(agent, &agent->viewers);
	if (err)
		return err;
	if (agent->n_exporters && !agent->options.is_filter)
		agent->instance_fd = claim_instance(agent);
	if (!agent->options.is_filter) /* a person may ask for what takes rights */
		drop_rights(agent->options.set);
	log_event(LOG_LEVEL_INFO, LOG_ID_STARTED, NULL, "started: %zu collector%s, a collection every %g s",
		  agent->options.set->n_shown, plural(agent->options.set->n_shown),
		  (double)agent->options.interval_ns / 1e9);
	status_say(agent->status, "READY=1");
	malloc_trim(0);
	do {
		while (!agent->is_stopping && !agent->reload && err >= 0)
			err = sd_event_run(agent->event, UINT64_MAX);
		finish_counting(agent);
	} while (agent->reload == RELOAD_EXEC && !is_still_right(agent));
	if (agent->reload != RELOAD_EXEC)
		log_event(LOG_LEVEL_INFO, LOG_ID_STOPPED, NULL, "stopped");
	return err < 0 ? err : agent->reload == RELOAD_EXEC;
}
