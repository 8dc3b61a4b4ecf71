/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A section [event MAP] or [span MAP]: each record of the map is an event or a span. Its members
 * become attributes as those of a key do, and a val_ns becomes a number of seconds. Those whose
 * type has a part say when it was, and where it belongs in a trace.
 */

#include "collector/binding/binding.h"
#include "collector/binding/trace.h"
#include "metric/event.h"

struct bpf_object;

struct event_source {
	const struct descriptor_event *described;
	struct event_kind kind;
	struct trace_source trace;
	int losses_fd;		  /* of the map MAP_losses of event.h; -1: there is none */
	/*
	 * of the map MAP_unwanted: cgroups whose events programs leave out, since nobody wants
	 * them; -1: there is none
	 */
	int unwanted_fd;
	const struct key_label *owner; /* a cgroup; NULL: there is none */
	bool is_owner_final; /* of the event at hand: its name will not change */
	struct event_losses past; /* what that map had at the start, from a process before */
	struct event event;	  /* room for one */
};

/*
 * The binding is of that section; it has its labels. Mistakes go to .diag of the collector.
 * -ENOMEM.
 */
int event_bind(struct binding *binding, const struct descriptor_event *described);
void event_unbind(struct binding *binding);
/* After the object was loaded. */
void event_open(struct binding *binding, const struct bpf_object *object);
/* Are those of some owners not wanted? */
bool event_is_chosen(const struct label_choice *choice);
/* Since the start. */
struct event_losses event_losses(const struct binding *binding);
/* The sink of the collector, if any, has got all that there is. */
void events_end(const struct collector *collector);
/* Passes a record on to the sink of the collector. user: the binding. */
void event_take(void *user, const void *record);
