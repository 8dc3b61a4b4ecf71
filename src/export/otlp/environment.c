/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTEL_EXPORTER_OTLP_* (OpenTelemetry specification, "OTLP Exporter Configuration"): each also as
 * OTEL_EXPORTER_OTLP_METRICS_*, which is stronger; empty is as good as unset; what has no known value
 * is warned of and ignored. The file is stronger than all of them.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "export/otlp/encode.h"
#include "export/otlp/options.h"
#include "export/transport/url.h"
#include "util/buf.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/parse.h"

struct environment {
	struct otlp_options *options;
	bool (*is_set)(void *user, const char *key);
	void *user;
	struct diag *diag;
	const char *name; /* of the variable that gave the last value */
	char name_storage[64];
};

static const char *get(struct environment *environment, const char *what)
{
	static const char *const prefixes[] = { "OTEL_EXPORTER_OTLP_METRICS_", "OTEL_EXPORTER_OTLP_" };
	const char *value;

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		snprintf(environment->name_storage, sizeof(environment->name_storage), "%s%s", prefixes[i], what);
		environment->name = environment->name_storage;
		value = getenv(environment->name);
		if (value && value[0])
			return value;
	}
	return NULL;
}

static bool is_given(const struct environment *environment, const char *key)
{
	return environment->is_set(environment->user, key);
}

static void ignored(const struct environment *environment, const char *why)
{
	/* Not the value: it may be a secret in the wrong place. */
	log_warning("%s: %s; ignored", environment->name, why);
}

static int set_text(char **text, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

static int read_endpoint(struct environment *environment)
{
	struct otlp_options *options = environment->options;
	const char *value = get(environment, "ENDPOINT"), *complaint;
	size_t size;
	char *url;

	if (!value || is_given(environment, "endpoint") || is_given(environment, "metrics_endpoint"))
		return 0;
	if (url_check(value, &complaint) < 0) {
		diag_add(environment->diag, environment->name, 0, "%s", complaint);
		return 0;
	}
	if (strstr(environment->name, "_METRICS_"))
		return set_text(&options->metrics_endpoint, value);
	size = strlen(value);
	if (asprintf(&url, "%s%sv1/metrics", value, value[size - 1] == '/' ? "" : "/") < 0)
		return -ENOMEM;
	free(options->metrics_endpoint);
	options->metrics_endpoint = url;
	return 0;
}

struct word {
	const char *text;
	int value;
};

static void read_word(struct environment *environment, const char *what, const char *key, int *ret_value,
		      const struct word *words, size_t n_words)
{
	const char *value = get(environment, what);

	if (!value || is_given(environment, key))
		return;
	for (size_t i = 0; i < n_words; i++) {
		if (strcasecmp(value, words[i].text))
			continue;
		*ret_value = words[i].value;
		return;
	}
	ignored(environment, "unknown value");
}

static void read_words(struct environment *environment)
{
	static const struct word compressions[] = { { "gzip", 0 }, { "none", 1 } };
	static const struct word temporalities[] = {
		{ "cumulative", OTLP_CUMULATIVE },
		{ "delta", OTLP_DELTA },
		/* It means delta for synchronous counters only; all of ours are read when they are collected. */
		{ "lowmemory", OTLP_CUMULATIVE },
	};
	static const struct word histograms[] = {
		{ "explicit_bucket_histogram", OTLP_EXPLICIT },
		{ "base2_exponential_bucket_histogram", OTLP_EXPONENTIAL },
	};
	struct otlp_options *options = environment->options;
	const char *protocol;

	read_word(environment, "COMPRESSION", "compression", &options->is_uncompressed, compressions,
		  ARRAY_SIZE(compressions));
	read_word(environment, "TEMPORALITY_PREFERENCE", "temporality", &options->temporality, temporalities,
		  ARRAY_SIZE(temporalities));
	read_word(environment, "DEFAULT_HISTOGRAM_AGGREGATION", "histogram", &options->histogram, histograms,
		  ARRAY_SIZE(histograms));
	protocol = get(environment, "PROTOCOL");
	if (protocol && strcasecmp(protocol, "http/protobuf"))
		ignored(environment, "only http/protobuf is spoken");
}

static void read_timeout(struct environment *environment)
{
	const char *value = get(environment, "TIMEOUT");
	uint64_t timeout_ms;

	if (!value || is_given(environment, "timeout"))
		return;
	if (parse_u64(value, &timeout_ms) < 0 || timeout_ms > UINT32_MAX)
		ignored(environment, "not a number of milliseconds");
	else
		environment->options->timeout_ns = timeout_ms * 1000000;
}

/* Files of TLS, where there is TLS: set for all programs of a machine, they do no harm to a plain endpoint. */
static int read_files(struct environment *environment)
{
	struct otlp_options *options = environment->options;
	const char *url = options->metrics_endpoint ? options->metrics_endpoint : options->endpoint;
	const struct {
		const char *what, *key;
		char **text;
	} files[] = {
		{ "CERTIFICATE", "ca_file", &options->ca_file },
		{ "CLIENT_CERTIFICATE", "certificate_file", &options->certificate_file },
		{ "CLIENT_KEY", "key_file", &options->key_file },
	};

	if (!url || strncasecmp(url, "https://", 8))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		const char *value = get(environment, files[i].what);

		if (value && !is_given(environment, files[i].key) && set_text(files[i].text, value) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Appends text, percent-decoded and without white space at its ends. -EINVAL. */
static int append_decoded(struct buf *out, const char *text, size_t size)
{
	while (size && isspace((unsigned char)text[0]))
		text++, size--;
	while (size && isspace((unsigned char)text[size - 1]))
		size--;
	for (size_t i = 0; i < size; i++) {
		char digits[3] = { 0 };

		if (text[i] != '%') {
			buf_append_byte(out, (uint8_t)text[i]);
			continue;
		}
		if (size - i < 3 || !isxdigit((unsigned char)text[i + 1]) || !isxdigit((unsigned char)text[i + 2]))
			return -EINVAL;
		memcpy(digits, text + i + 1, 2);
		buf_append_byte(out, (uint8_t)strtoul(digits, NULL, 16));
		i += 2;
	}
	return 0;
}

/* "key=value" of a list as a header. -EINVAL, -ENOMEM. */
static int add_header(struct setting_list *list, const char *item, size_t size)
{
	const char *equals = memchr(item, '=', size), *complaint;
	_cleanup_(buf_done) struct buf header = BUF_INIT;
	char **items;

	if (!equals || append_decoded(&header, item, (size_t)(equals - item)) < 0)
		return -EINVAL;
	buf_append_text(&header, ": ");
	if (append_decoded(&header, equals + 1, size - (size_t)(equals + 1 - item)) < 0)
		return -EINVAL;
	if (strlen(buf_text(&header)) != header.size || otlp_header_check(buf_text(&header), &complaint) < 0)
		return -EINVAL;
	items = reallocarray(list->items, list->n_items + 1, sizeof(*items));
	if (!items)
		return -ENOMEM;
	list->items = items;
	items[list->n_items] = strdup(buf_text(&header));
	if (!items[list->n_items])
		return -ENOMEM;
	list->n_items++;
	return 0;
}

static int read_headers(struct environment *environment)
{
	const char *value = get(environment, "HEADERS");

	if (!value || is_given(environment, "headers"))
		return 0;
	while (*value) {
		size_t size = strcspn(value, ",");
		int err = strspn(value, " \t") < size ? add_header(&environment->options->headers, value, size) : 0;

		if (err == -ENOMEM)
			return err;
		if (err < 0)
			ignored(environment, "an item is not KEY=VALUE, percent-encoded");
		value += size + (value[size] == ',');
	}
	return 0;
}

int otlp_options_environment(void *options, bool (*is_set)(void *user, const char *key), void *user,
			     struct diag *diag)
{
	struct environment environment = { .options = options, .is_set = is_set, .user = user, .diag = diag };
	int err = read_endpoint(&environment);

	read_words(&environment);
	read_timeout(&environment);
	if (!err)
		err = read_files(&environment);
	if (!err)
		err = read_headers(&environment);
	return err;
}
