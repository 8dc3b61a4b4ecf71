/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where messages go is decided once, from what stderr is. Names and errors in a message may come
 * from hostile places, so each message is made one clean line before it goes anywhere. Only the
 * journal gets the fields and the MESSAGE_ID.
 */
#include "util/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "util/utf8.h"

#define IDENTIFIER "bpfpush"
#define FIELDS_MAX 12	 /* of one message, ours included */
#define TEXT_BYTES 16384 /* of one message */

static bool is_journal;
static enum log_level log_max_level = LOG_LEVEL_INFO;

const char *const log_level_names[] = { "error", "warning", "info", "debug", NULL };
static const char *const priorities[] = { "3", "4", "6", "7" }; /* of syslog(3) */

/* systemd.exec(5): JOURNAL_STREAM names the file that stdout or stderr was when we were started. */
static bool is_stderr_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat status;
	char end;

	return stream && sscanf(stream, "%llu:%llu%c", &device, &inode, &end) == 2 &&
	       fstat(STDERR_FILENO, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

void log_init(enum log_level level)
{
	log_set_level(level);
	is_journal = is_stderr_journal();
}

bool log_is_journal(void)
{
	return is_journal;
}

void log_set_level(enum log_level level)
{
	log_max_level = level;
}

/* False: no memory. */
static bool add_field(struct iovec *parts, int *n, const char *name, const char *value)
{
	char *text;
	int length = asprintf(&text, "%s=%s", name, value);

	if (length < 0)
		return false;
	parts[(*n)++] = (struct iovec){ text, (size_t)length };
	return true;
}

static int send_to_journal(enum log_level level, const char *id, const struct log_field *fields,
			   const char *message)
{
	struct iovec parts[FIELDS_MAX];
	int n = 0, r = -ENOMEM;
	bool is_whole;

	is_whole = add_field(parts, &n, "MESSAGE", message) && add_field(parts, &n, "PRIORITY", priorities[level]) &&
		   add_field(parts, &n, "SYSLOG_IDENTIFIER", IDENTIFIER) &&
		   (!id || add_field(parts, &n, "MESSAGE_ID", id));
	for (; is_whole && fields && fields->name && n < FIELDS_MAX; fields++)
		is_whole = add_field(parts, &n, fields->name, fields->value);
	if (is_whole)
		r = sd_journal_sendv(parts, n);
	while (n)
		free(parts[--n].iov_base);
	return r;
}

/*
 * In one call, so that lines of several writers do not mix. There is nowhere to report a failure. The
 * journal's stream takes the prefixes of sd-daemon(3).
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

void log_event(enum log_level level, const char *id, const struct log_field *fields, const char *format, ...)
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
	if (!is_journal || send_to_journal(level, id, fields, message) < 0)
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
