/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collector-hooks.h"

#include "collector/collector.h"
#include "util/array.h"
#include "util/log.h"

bool collector_hooks_report(const struct collector *collector)
{
	const struct programs *programs = &collector->object->programs;
	bool is_complete = true;

	array_for_each (program, programs->items, programs->n) {
		const struct log_field fields[] = {
			{ "BPFPUSH_COLLECTOR", collector->name },
			{ "BPFPUSH_PROGRAM", program->name },
			{ NULL, NULL },
		};
		bool is_attached;

		if (!collector_uses(collector, program))
			continue;
		if (program->state == PROGRAM_ATTACHED)
			log_debug("collector %s: %s attached as %s%s%s", collector->name, program->hook, program->section,
				  program_choice(program) ? ": " : "", program_choice(program) ?: "");
		if (program->state != PROGRAM_REFUSED)
			continue;
		is_attached = programs_find(programs, program->hook, PROGRAM_ATTACHED);
		is_complete &= is_attached;
		if (is_attached || programs_find(programs, program->hook, PROGRAM_REFUSED) != program)
			log_debug("collector %s: the kernel refused %s (%s): %s%s", collector->name, program->name,
				  program->section, program->error ?: "out of memory",
				  is_attached ? "; an alternative is used" : "");
		else
			log_event(LOG_LEVEL_WARNING, LOG_ID_PARTIAL, fields,
				  "collector %s is partial: the kernel refused %s (%s): %s", collector->name,
				  program->name, program->section, program->error ?: "out of memory");
	}
	return is_complete;
}
