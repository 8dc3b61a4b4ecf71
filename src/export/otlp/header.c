/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a header, as a setting or a variable gives it. */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "export/otlp/options.h"
#include "util/cleanup.h"

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
