/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Logging, for commands, the agent and exporters; everything else returns errors. Messages go to
 * the journal with fields if stderr is the journal's own stream ($JOURNAL_STREAM), else plainly to
 * stderr. State changes are logged; the caller counts repetitions.
 */

#include <stdbool.h>

#include "util/cleanup.h"

enum log_level { LOG_LEVEL_ERROR,
		 LOG_LEVEL_WARNING,
		 LOG_LEVEL_INFO,
		 LOG_LEVEL_DEBUG };
/* Their names, as a user writes them, ended by NULL. */
extern const char *const log_level_names[];

/* A journal field next to the message: {"BPFPUSH_COLLECTOR", "syscalls"}. Never a secret. */
struct log_field {
	const char *name;
	const char *value;
};

/*
 * Stable identities of the events that an operator may want to find or alarm on
 * (systemd/bpfpush.catalog).
 */
#define LOG_ID_STARTED		"3f2a64e6c3b54d0f9d7b2c1e8a90f411"
#define LOG_ID_STOPPED		"9c1d0e57aa0b4f6c8f52f8d0b4e9c312"
#define LOG_ID_CONFIG_REJECTED	"5b7e1f0a2c9d4f3e8a6b0d4c7e1f2a13"
#define LOG_ID_CANNOT_RUN	"2d8f6b0c4e7a4195b3c6d1f9a0e85b1b"
#define LOG_ID_PARTIAL		"7d3c9a1e5f8b4c2d9e0a1b6c8d7f3e14"
#define LOG_ID_EXPORT_FAILING	"a4e8c2d06b1f4a7e93d5c0b8f2e6a715"
#define LOG_ID_EXPORT_RECOVERED "c8f1b5d7e2a94c3f86d0e4a9b3c7f516"
#define LOG_ID_DATA_DROPPED	"e1a7d3f9b5c84e2a90c6f8d4b2e0a617"
#define LOG_ID_SPOOL		"5d9e2c7a41b84f06a8c3e0f7d1b69a24"
#define LOG_ID_TABLE_FULL	"b6d2f8e4a0c94d7e85f1a3c9e7b5d318"
#define LOG_ID_SERIES_LIMIT	"4c0e7a9d21f84b65b3d8e6f15a92c719"
#define LOG_ID_EVENTS_MISSED	"72c4e80d5b9f4a16a3d7f1e6c05b982d"
#define LOG_ID_OVERFLOW_OVER	"d93b5c1e7f0a42688e4d1a6f3b7c2e1a"

void log_init(enum log_level level); /* looks at stderr; before it, messages go to stderr plainly */
void log_set_level(enum log_level level);
bool log_is_journal(void); /* do messages go there, with their fields? */
/*
 * From now on, messages go to standard error without their fields: the socket of the journal, which
 * may be full of events, would be waited for.
 */
void log_avoid_journal_socket(void);
/*
 * One line, whatever the arguments hold: control characters and bad UTF-8 become '?', a newline at
 * the end goes; cut at 16 KiB. id and fields may be NULL; fields end with a NULL name, more than 8
 * are left out. Without a journal, id and fields are not shown. errno stays as it was.
 */
void log_event(enum log_level level, const char *id, const struct log_field *fields,
	       const char *format, ...)
	_printf_(4, 5);
/* Each line of text as a message of its own. */
void log_lines(enum log_level level, const char *text);

#define log_error(...)	 log_event(LOG_LEVEL_ERROR, NULL, NULL, __VA_ARGS__)
#define log_warning(...) log_event(LOG_LEVEL_WARNING, NULL, NULL, __VA_ARGS__)
#define log_info(...)	 log_event(LOG_LEVEL_INFO, NULL, NULL, __VA_ARGS__)
#define log_debug(...)	 log_event(LOG_LEVEL_DEBUG, NULL, NULL, __VA_ARGS__)
