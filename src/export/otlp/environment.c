/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTEL_EXPORTER_OTLP_* (OpenTelemetry specification, "OTLP Exporter Configuration"). Each variable
 * also exists as OTEL_EXPORTER_OTLP_METRICS_*, which takes precedence; of those for logs and
 * traces, only the endpoint is read. An empty variable counts as unset. An unknown value is ignored
 * with a warning. The file takes precedence over all of them.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "export/otlp/options.h"
#include "export/transport/url.h"
#include "util/cleanup.h"
#include "util/duration.h"
#include "util/log.h"
#include "util/parse.h"

#define LIST_BLANKS ", \t"

struct environment {
	struct otlp_options *options;
	const struct assignments *given;
	struct diag *diag;
	char name[64]; /* of the variable that gave the last value */
};

/*
 * A variable, the setting that it gives, and what its words mean there. Those without words are
 * files of TLS, whose text is taken.
 */
static const struct variable {
	const char *what, *key;
	struct {
		const char *word, *value;
	} words[3];
} variables[] = {
	{ "COMPRESSION", "compression", { { "gzip", "gzip" }, { "none", "none" } } },
	{ "TEMPORALITY_PREFERENCE", "temporality",
	  { { "cumulative", "cumulative" },
	    { "delta", "delta" },
	    /* Delta, but only for synchronous counters, and bpfpush has none. */
	    { "lowmemory", "cumulative" } } },
	{ "DEFAULT_HISTOGRAM_AGGREGATION", "histogram",
	  { { "explicit_bucket_histogram", "explicit" },
	    { "base2_exponential_bucket_histogram", "exponential" } } },
	{ "CERTIFICATE", "ca_file" },
	{ "CLIENT_CERTIFICATE", "certificate_file" },
	{ "CLIENT_KEY", "key_file" },
};

/* The value of a variable, or NULL where it is not set or the file has given key. */
static const char *get_variable(struct environment *environment, const char *what, const char *key)
{
	static const char *const prefixes[] = { "OTEL_EXPORTER_OTLP_METRICS_", "OTEL_EXPORTER_OTLP_" };
	const char *value;

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		snprintf(environment->name, sizeof(environment->name), "%s%s", prefixes[i], what);
		value = getenv(environment->name);
		if (value && value[0])
			return assignments_find(environment->given, key, NULL) ? NULL : value;
	}
	return NULL;
}

static int set_option(const struct environment *environment, const char *key, const char *value)
{
	const struct assignment assignment = { key, value, environment->name, 0 };

	return setting_table_set(&otlp_settings, environment->options, &assignment,
				 environment->diag);
}

static void warn_ignored(const struct environment *environment, const char *why)
{
	/* Not the value: it may be a secret in the wrong place. */
	log_warning("%s: %s; ignored", environment->name, why);
}

static int read_variable(struct environment *environment, const struct variable *variable)
{
	const char *text = get_variable(environment, variable->what, variable->key);

	if (!text)
		return 0;
	if (!variable->words[0].word)
		return set_option(environment, variable->key, text);
	for (size_t i = 0; i < ARRAY_SIZE(variable->words) && variable->words[i].word; i++)
		if (!strcasecmp(text, variable->words[i].word))
			return set_option(environment, variable->key, variable->words[i].value);
	warn_ignored(environment, "unknown value");
	return 0;
}

/*
 * The endpoint of all signals and, as they are, those of each. None of them where the file names
 * one: its headers may be for that receiver alone.
 */
static int read_endpoints(struct environment *environment)
{
	static const struct {
		const char *name, *key;
	} endpoints[] = {
		{ "OTEL_EXPORTER_OTLP_" "ENDPOINT", "endpoint" },
		{ "OTEL_EXPORTER_OTLP_METRICS_" "ENDPOINT", "metrics_endpoint" },
		{ "OTEL_EXPORTER_OTLP_LOGS_" "ENDPOINT", "logs_endpoint" },
		{ "OTEL_EXPORTER_OTLP_TRACES_" "ENDPOINT", "traces_endpoint" },
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(endpoints); i++)
		if (assignments_find(environment->given, endpoints[i].key, NULL))
			return 0;
	for (size_t i = 0; i < ARRAY_SIZE(endpoints) && !err; i++) {
		const char *url = getenv(endpoints[i].name);

		snprintf(environment->name, sizeof(environment->name), "%s", endpoints[i].name);
		if (url && url[0])
			err = set_option(environment, endpoints[i].key, url);
	}
	return err;
}

static void read_timeout(struct environment *environment)
{
	const char *value = get_variable(environment, "TIMEOUT", "timeout");
	uint64_t timeout_ms;

	if (!value)
		return;
	if (parse_u64(value, &timeout_ms) < 0 || timeout_ms > UINT32_MAX)
		warn_ignored(environment, "not a number of milliseconds");
	else
		environment->options->http.timeout_ns = timeout_ms * NS_PER_MS;
}

/*
 * The next "key=value" of a list, or NULL. What comes after a comma and is not such a pair itself
 * belongs to the value before it, which should have it as %2C: half a secret is not sent.
 */
static char *take_item(char **rest)
{
	char *item = *rest ? *rest + strspn(*rest, LIST_BLANKS) : NULL, *end, *next;
	size_t size;

	if (!item || !*item)
		return NULL;
	end = item + strcspn(item, ",");
	while (*end) {
		next = end + strspn(end, LIST_BLANKS);
		size = strcspn(next, ",");
		if (!*next || memchr(next, '=', size))
			break;
		end = next + size;
	}
	*rest = *end ? end + 1 : NULL;
	*end = '\0';
	return item;
}

/* What is wrong with a pair, which may be secret, before it is a header; NULL: nothing. */
static const char *decode_pair(char **name, char **value)
{
	if (!*value)
		return "no \"=\", write KEY=VALUE";
	if (strchr(*value, ','))
		return "a comma in the value, write %2C";
	*name = parse_strip(*name);
	*value = parse_strip(*value);
	if (parse_percent(*name) < 0 || parse_percent(*value) < 0)
		return "a \"%\" without the two hexadecimal digits of a character, write %25";
	if (!otlp_header_is_name(*name))
		return "its key is not the name of a header";
	return **value ? NULL : "no value";
}

/* 0; -EINVAL with what is wrong, without the item's text; -ENOMEM */
static int add_header(struct environment *environment, char *item, const char **ret_complaint)
{
	char *name = strsep(&item, "=");
	_cleanup_(freep) char *header = NULL;

	*ret_complaint = decode_pair(&name, &item);
	if (*ret_complaint)
		return -EINVAL;
	if (asprintf(&header, "%s: %s", name, item) < 0)
		return -ENOMEM;
	return otlp_header_check(header, ret_complaint) ?: set_option(environment, "headers", header);
}

static int read_headers(struct environment *environment)
{
	const char *value = get_variable(environment, "HEADERS", "headers");
	_cleanup_(freep) char *list = value ? strdup(value) : NULL;
	char *rest = list, *item, why[128];
	const char *complaint;
	int err = value && !list ? -ENOMEM : 0;

	environment->options->are_headers_texts = value != NULL;
	for (unsigned int n = 1; err != -ENOMEM && (item = take_item(&rest)); n++) {
		err = add_header(environment, item, &complaint);
		if (err == -EINVAL) {
			snprintf(why, sizeof(why), "item %u: %s", n, complaint);
			warn_ignored(environment, why);
		}
	}
	return err == -EINVAL ? 0 : err;
}

int otlp_options_environment(void *options, const struct assignments *given, struct diag *diag)
{
	struct environment environment = { .options = options, .given = given, .diag = diag };
	const char *protocol = get_variable(&environment, "PROTOCOL", "");
	int err;

	if (protocol && strcasecmp(protocol, "http/protobuf"))
		warn_ignored(&environment, "bpfpush sends only http/protobuf");
	err = read_endpoints(&environment);
	read_timeout(&environment);
	for (size_t i = 0; i < ARRAY_SIZE(variables) && !err; i++)
		/* Files may be set for all programs of a machine: without TLS they are not used. */
		if (variables[i].words[0].word || otlp_is_encrypted(options))
			err = read_variable(&environment, &variables[i]);
	return err ? err : read_headers(&environment);
}
