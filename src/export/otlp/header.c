/* SPDX-License-Identifier: Apache-2.0 */
/* A header, as a setting or a variable gives it, or a file that a setting names. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "export/otlp/options.h"
#include "util/cleanup.h"
#include "util/credential.h"

const char *otlp_header_file(const struct otlp_options *options, const char *text)
{
	const char *value = strchr(text, ':');

	if (!value || options->are_headers_texts)
		return NULL;
	value += 1 + strspn(value + 1, " \t");
	return strncmp(value, "file:", 5) ? NULL : value + 5;
}

bool otlp_header_is_value(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 ? *text != '\t' : *text == 0x7f)
			return false;
	return true;
}

/* RFC 9110, 5.6.2: a token. */
static size_t name_bytes(const char *text)
{
	size_t size = 0;

	while (text[size] && (isalnum((unsigned char)text[size]) || strchr("!#$%&'*+-.^_`|~", text[size])))
		size++;
	return size;
}

bool otlp_header_is_name(const char *text)
{
	return *text && !text[name_bytes(text)];
}

int otlp_header_check(const char *text, const char **ret_complaint)
{
	/* These say what is sent, which is not for a configuration to say. */
	static const char *const ours[] = { "content-type", "content-encoding", "content-length",
					    "transfer-encoding", "expect" };
	size_t size = name_bytes(text);

	*ret_complaint = NULL;
	if (!size || text[size] != ':')
		*ret_complaint = "not a header, write \"Name: value\"";
	else if (!otlp_header_is_value(text + size))
		*ret_complaint = "a control character in the header";
	for (size_t i = 0; !*ret_complaint && i < ARRAY_SIZE(ours); i++)
		if (strlen(ours[i]) == size && !strncasecmp(text, ours[i], size))
			*ret_complaint = "bpfpush sets this header itself";
	return *ret_complaint ? -EINVAL : 0;
}

int otlp_file_open(const char *path, FILE **ret_file, const char **ret_complaint)
{
	_cleanup_(freep) char *found = credential_path(path);
	_cleanup_(closep) int fd = found ?
				   open(found, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
	struct stat st;
	int err = fd < 0 || fstat(fd, &st) ? -errno : 0;

	if (!err && !S_ISREG(st.st_mode)) {
		*ret_complaint = S_ISDIR(st.st_mode) ? "is a directory" : "is not a regular file";
		if (S_ISFIFO(st.st_mode))
			*ret_complaint = "is a pipe, which can be read only once";
		return -EBADMSG;
	}
	*ret_file = err ? NULL : fdopen(fd, "r");
	if (*ret_file) {
		(void)TAKE_FD(fd);
		return 0;
	}
	err = err ?: -errno;
	*ret_complaint = strerror(-err);
	return err;
}

int otlp_header_read(const char *path, char value[OTLP_HEADER_BYTES], const char **ret_complaint)
{
	_cleanup_(fclosep) FILE *file = NULL;
	int err = otlp_file_open(path, &file, ret_complaint);
	bool has_nul, has_more;
	size_t size, length;

	if (err)
		return err;
	setbuf(file, NULL); /* the secret is in no other place */
	size = fread(value, 1, OTLP_HEADER_BYTES - 1, file);
	value[size] = '\0';
	length = strcspn(value, "\r\n");
	has_nul = strlen(value) < size;
	has_more = length + strspn(value + length, "\r\n") < size;
	value[length] = '\0';
	if (ferror(file))
		*ret_complaint = "cannot be read";
	else if (!size)
		*ret_complaint = "is empty";
	else if (length == OTLP_HEADER_BYTES - 1)
		*ret_complaint = "has a first line that is too long";
	else if (has_nul || !otlp_header_is_value(value))
		*ret_complaint = "holds a control character";
	else if (!length)
		*ret_complaint = "has an empty first line";
	else if (has_more)
		*ret_complaint = "has more than one line";
	else
		return 0;
	return -EBADMSG;
}

int otlp_header_resolve(const char *text, const char *path, char **ret_header,
			const char **ret_complaint)
{
	char value[OTLP_HEADER_BYTES], *header;
	int err = otlp_header_read(path, value, ret_complaint);

	if (!err && asprintf(&header, "%.*s: %s", (int)strcspn(text, ":"), text, value) < 0) {
		*ret_complaint = strerror(ENOMEM);
		err = -ENOMEM;
	}
	explicit_bzero(value, sizeof(value));
	if (!err)
		*ret_header = header;
	return err;
}
