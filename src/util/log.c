/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where messages go is decided once, from what stderr is. Names and errors in a message may come
 * from hostile places, so each message is made one clean line before it goes anywhere. Only the
 * journal gets the fields and the MESSAGE_ID. It looks at a sender for the name of its unit, in
 * vain if the process has ended before; of its stream it always knows the unit. So what has neither
 * field nor MESSAGE_ID goes there.
 */
#include "util/log.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "util/utf8.h"

#define FIELDS_MAX 12	 /* of one message, ours included */
#define TEXT_BYTES 16384 /* of one message */

static bool is_journal, is_socket_avoided;
static enum log_level log_max_level = LOG_LEVEL_INFO;

const char *const log_level_names[] = { "error", "warning", "info", "debug", NULL };
static const char *const priorities[] = { "3", "4", "6", "7" }; /* of syslog(3) */

/* systemd.exec(5): JOURNAL_STREAM names the file that stdout or stderr was when we were started. */
void log_init(enum log_level level)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat status;
	char end;

	log_set_level(level);
	is_journal = stream && sscanf(stream, "%llu:%llu%c", &device, &inode, &end) == 2 &&
		     !fstat(STDERR_FILENO, &status) && status.st_dev == device &&
		     status.st_ino == inode;
}

bool log_is_journal(void)
{
	return is_journal;
}

void log_avoid_journal_socket(void)
{
	is_socket_avoided = true;
}

void log_set_level(enum log_level level)
{
	log_max_level = level;
}

static int send_to_journal(enum log_level level, const char *id, const struct log_field *fields,
			   const char *message)
{
	const struct log_field own[] = {
		{ "MESSAGE", message },
		{ "PRIORITY", priorities[level] },
		{ "SYSLOG_IDENTIFIER", "bpfpush" },
		{ id ? "MESSAGE_ID" : NULL, id },
		{ NULL, NULL },
	};
	const struct log_field *const lists[] = { own, fields };
	struct iovec parts[FIELDS_MAX];
	int n = 0, r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (const struct log_field *at = lists[i];
		     at && at->name && n < FIELDS_MAX && r >= 0; at++) {
			char *text;

			r = asprintf(&text, "%s=%s", at->name, at->value);
			if (r >= 0)
				parts[n++] = (struct iovec){ text, (size_t)r };
		}
	r = r < 0 ? -ENOMEM : sd_journal_sendv(parts, n);
	while (n)
		free(parts[--n].iov_base);
	return r;
}

/*
 * In one call, so that lines of several writers do not mix. There is nowhere to report a failure.
 * The journal's stream takes the prefixes of sd-daemon(3).
 */
static void write_to_stderr(enum log_level level, const char *message)
{
	char prefix[] = "<0>";
	struct iovec parts[3] = {
		{ prefix, is_journal ? 3 : 0 },
		{ (char *)message, strlen(message) },
		{ (char *)"\n", 1 },
	};

	prefix[1] = *priorities[level];
	while (writev(STDERR_FILENO, parts, ARRAY_SIZE(parts)) < 0 && errno == EINTR)
		;
}

void log_event(enum log_level level, const char *id, const struct log_field *fields,
	       const char *format, ...)
{
	int errno_kept = errno;
	char message[TEXT_BYTES];
	va_list arguments;

	if (level > log_max_level)
		return;
	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	for (size_t length = strlen(message); length && message[length - 1] == '\n'; length--)
		message[length - 1] = '\0';
	utf8_clean(message);
	if (!is_journal || is_socket_avoided || (!id && !fields) ||
	    send_to_journal(level, id, fields, message) < 0)
		write_to_stderr(level, message);
	errno = errno_kept;
}

void log_lines(enum log_level level, const char *text)
{
	while (*text) {
		size_t length = strcspn(text, "\n");

		log_event(level, NULL, NULL, "%.*s", (int)length, text);
		text += length + (text[length] == '\n');
	}
}
