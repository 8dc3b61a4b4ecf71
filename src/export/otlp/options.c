/* SPDX-License-Identifier: Apache-2.0 */
#include "export/otlp/options.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "export/transport/proxy.h"
#include "export/transport/url.h"
#include "util/cleanup.h"
#include "util/credential.h"
#include "util/duration.h"
#include "util/log.h"
#include "util/rights.h"

#define DEFAULT_ENDPOINT "http://localhost:4318"

static const char *const compressions[] = { "gzip", "none", NULL };
static const char *const temporalities[] = { "cumulative", "delta", NULL };
static const char *const doubts[] = { "repeat", "skip", NULL };
static const char *const histograms[] = { "explicit", "exponential", NULL };

/*
 * How much of a URL comes before its query, without the slashes at its end, and without path if it
 * ends so.
 */
static size_t base_bytes(const char *url, const char *path)
{
	size_t size = strcspn(url, "?#"), path_size = strlen(path);

	while (size && url[size - 1] == '/')
		size--;
	if (size >= path_size && !strncmp(url + size - path_size, path, path_size))
		size -= path_size;
	return size;
}

/* By signal_index(). */
static const struct signal_place {
	const char *path;
	size_t offset; /* of its whole URL */
	const char *complaint; /* of a URL with the path of another signal */
} places[SIGNALS] = {
	{ "/v1/metrics", offsetof(struct otlp_options, metrics_endpoint),
	  "this path is not for metrics; write /v1/metrics, or use logs_endpoint or traces_endpoint" },
	{ "/v1/logs", offsetof(struct otlp_options, logs_endpoint),
	  "this path is not for logs; write /v1/logs" },
	{ "/v1/traces", offsetof(struct otlp_options, traces_endpoint),
	  "this path is not for traces; write /v1/traces" },
};

static const struct signal_place *place_of(enum signals signal)
{
	return &places[signal_index(signal)];
}

static int check_url_of(const char *url, enum signals signal, const char **ret_complaint)
{
	const struct signal_place *own = place_of(signal);

	array_for_each (other, places, SIGNALS)
		if (other != own && base_bytes(url, other->path) < base_bytes(url, "")) {
			*ret_complaint = own->complaint;
			return -EINVAL;
		}
	return url_check(url, ret_complaint);
}

static int check_endpoint(const char *url, const char **ret_complaint)
{
	return check_url_of(url, SIGNAL_METRICS, ret_complaint);
}

static int check_logs_endpoint(const char *url, const char **ret_complaint)
{
	return check_url_of(url, SIGNAL_EVENTS, ret_complaint);
}

static int check_traces_endpoint(const char *url, const char **ret_complaint)
{
	return check_url_of(url, SIGNAL_TRACES, ret_complaint);
}

static enum signals find_signal(const char *word)
{
	for_each_signal(signal)
		if (!strcmp(word, signal_words(signal)->name))
			return signal;
	return 0;
}

static int check_signal(const char *word, const char **ret_complaint)
{
	*ret_complaint = "is not a signal; write metrics, events or traces, or several of them";
	return find_signal(word) ? 0 : -EINVAL;
}

static int check_attribute(const char *name, const char **ret_complaint)
{
	size_t size = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.");

	*ret_complaint = "not a lower-case dotted name, write one like owner";
	return !islower((unsigned char)*name) || name[size] ? -EINVAL : 0;
}

#define ROW(...) SETTING(struct otlp_options, __VA_ARGS__)

static const struct setting_row rows[] = {
	ROW(endpoint, "endpoint", SETTING_TEXT, DEFAULT_ENDPOINT, .check = check_endpoint),
	ROW(metrics_endpoint, "metrics_endpoint", SETTING_TEXT, NULL, .check = check_endpoint),
	ROW(logs_endpoint, "logs_endpoint", SETTING_TEXT, NULL, .check = check_logs_endpoint),
	ROW(traces_endpoint, "traces_endpoint", SETTING_TEXT, NULL, .check = check_traces_endpoint),
	ROW(signals, "signals", SETTING_WORDS, NULL, .check = check_signal),
	ROW(headers, "headers", SETTING_LIST, NULL, .check = otlp_header_check),
	ROW(is_uncompressed, "compression", SETTING_CHOICE, "gzip", .choices = compressions),
	ROW(http.tls.ca_file, "ca_file", SETTING_TEXT, NULL),
	ROW(http.tls.certificate_file, "certificate_file", SETTING_TEXT, NULL),
	ROW(http.tls.key_file, "key_file", SETTING_TEXT, NULL),
	ROW(http.proxy, "proxy", SETTING_TEXT, NULL, .check = proxy_check),
	ROW(http.timeout_ns, "timeout", SETTING_DURATION, "10s", .minimum = NS_PER_MS, .takes_zero = true),
	ROW(encoding.temporality, "temporality", SETTING_CHOICE, "cumulative", .choices = temporalities),
	ROW(encoding.histogram, "histogram", SETTING_CHOICE, "explicit", .choices = histograms),
	ROW(encoding.has_zero_points, "zero_point", SETTING_BOOL, "yes"),
	ROW(encoding.owner_attribute, "owner_attribute", SETTING_TEXT, NULL, .check = check_attribute),
	ROW(encoding.limit_bytes, "max_request_size", SETTING_SIZE, "4MiB", .minimum = 4096,
	    .maximum = 64 << 20),
	ROW(encoding.limit_points, "max_request_points", SETTING_U64, "0"),
	ROW(http.limit_response_bytes, "max_response_size", SETTING_SIZE, "4MiB", .minimum = 1024,
	    .maximum = 64 << 20),
	ROW(queue_requests, "queue_requests", SETTING_U64, "1000", .minimum = 1),
	ROW(backlog_ns, "backlog", SETTING_DURATION, "0", .minimum = NS_PER_S, .takes_zero = true),
	ROW(spool_bytes, "spool", SETTING_SIZE, "0", .minimum = 1 << 20, .maximum = UINT64_C(4095) << 20,
	    .takes_zero = true),
	ROW(spool_age_ns, "spool_age", SETTING_DURATION, "1h", .minimum = NS_PER_S),
	ROW(when_in_doubt, "when_in_doubt", SETTING_CHOICE, "repeat", .choices = doubts),
	ROW(retry.initial_ns, "retry_initial", SETTING_DURATION, "1s", .minimum = NS_PER_MS),
	ROW(retry.max_ns, "retry_max", SETTING_DURATION, "30s", .minimum = NS_PER_MS),
	ROW(retry_give_up_ns, "retry_give_up", SETTING_DURATION, "0"),
};
const struct setting_table otlp_settings = SETTING_TABLE(rows, struct otlp_options);

bool otlp_options_encode_alike(const struct otlp_options *a, const struct otlp_options *b)
{
	const char *attribute = a->encoding.owner_attribute ?: "";

	return a->is_uncompressed == b->is_uncompressed &&
	       a->encoding.temporality == b->encoding.temporality &&
	       a->encoding.histogram == b->encoding.histogram &&
	       a->encoding.limit_bytes == b->encoding.limit_bytes &&
	       a->encoding.limit_points == b->encoding.limit_points &&
	       a->encoding.has_zero_points == b->encoding.has_zero_points &&
	       !strcmp(attribute, b->encoding.owner_attribute ?: "");
}

/* NULL: there is none of this signal alone. */
static const char *whole_url(const struct otlp_options *options, enum signals signal)
{
	return *(char *const *)((const char *)options + place_of(signal)->offset);
}

static const char *base_of(const struct otlp_options *options, enum signals signal)
{
	return whole_url(options, signal) ?: options->endpoint;
}

bool otlp_is_encrypted(const struct otlp_options *options)
{
	enum signals wanted = otlp_signals(options);

	for_each_signal(signal)
		if (wanted & signal && url_is_encrypted(base_of(options, signal)))
			return true;
	return false;
}

int otlp_url(const struct otlp_options *options, enum signals signal, char **ret_url)
{
	const char *base = base_of(options, signal), *query = base + strcspn(base, "?#");
	char *url;

	/* The endpoint may end in the path of metrics. */
	if (base != options->endpoint)
		url = strdup(base);
	else if (asprintf(&url, "%.*s%s%.*s", (int)base_bytes(base, places[0].path), base,
			  place_of(signal)->path,
			  (int)strcspn(query, "#"), query) < 0)
		url = NULL;
	if (!url)
		return -ENOMEM;
	*ret_url = url;
	return 0;
}

enum signals otlp_signals(const void *untyped)
{
	const struct otlp_options *options = untyped;
	const struct setting_list *list = &options->signals;
	enum signals signals = 0;
	bool has_base;

	for (size_t i = 0; i < list->n_items; i++)
		signals |= find_signal(list->items[i]);
	if (signals)
		return signals;
	/* The URL of metrics alone says nothing of others. */
	has_base = !options->metrics_endpoint || strcmp(options->endpoint, DEFAULT_ENDPOINT);
	for_each_signal(signal)
		if (has_base || whole_url(options, signal))
			signals |= signal;
	return signals;
}

/* Does a header look secret, because of its name or because its value is in a file? */
static bool is_secret(const struct otlp_options *options, const char *text)
{
	static const char *const words[] = { "auth", "key", "token", "secret", "password", "cookie", "credential" };
	char name[128];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, ":"), text);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcasestr(name, words[i]))
			return true;
	return otlp_header_file(options, text) != NULL;
}

static int check_pem(const char *path, bool is_key, const char **ret_complaint)
{
	_cleanup_(fclosep) FILE *file = NULL;
	int err = otlp_file_open(path, &file, ret_complaint);
	bool is_found = false, is_encrypted = false;
	char line[256];

	if (err)
		return err;
	while (fgets(line, sizeof(line), file)) {
		is_found |= !strncmp(line, "-----BEGIN ", 11) &&
			    strstr(line, is_key ? "PRIVATE KEY-----" : "CERTIFICATE-----");
		is_encrypted |= is_key && strstr(line, "ENCRYPTED");
	}
	if (is_found && !is_encrypted)
		return 0;
	*ret_complaint = is_key ? "has no key in PEM form, which begins with a line \"-----BEGIN PRIVATE KEY-----\"" :
				  "has no certificate in PEM form, which begins with a line \"-----BEGIN CERTIFICATE-----\"";
	if (is_encrypted)
		*ret_complaint = "needs a passphrase, which nobody can enter; remove it with \"openssl pkey\"";
	return -EBADMSG;
}

/*
 * Says what is wrong with a file, unless only who checks it cannot know. text: the setting that
 * names it.
 */
static void report_file(const char *key, const char *text, const char *file, int err,
			const char *complaint, const struct assignments *given, struct diag *diag)
{
	bool is_out_of_reach = err == -ENOENT || err == -EACCES;
	const char *credential = is_out_of_reach ? credential_name(file) : NULL;
	struct assignment at = assignments_place(given, key, text);

	if (credential && credential_is_due())
		diag_add(diag, at.path, at.line,
			 "%s: %s: the service has no such credential%s; \"systemctl edit bpfpush\" and write LoadCredential=%s:PATH below [Service]",
			 key, file, err == -EACCES ? ", or systemd hides it" : "", credential);
	else if (credential)
		log_info("%s:%u: %s: %s: not checked, because systemd gives this file only to the service; if the service does not have it, \"systemctl edit bpfpush\" and write LoadCredential=%s:PATH below [Service]",
			 at.path, at.line, key, file, credential);
	else if (err && err != -ENOMEM && (err != -EACCES || rights_judge()))
		diag_add(diag, at.path, at.line, "%s: %s: %s", key, file, complaint);
}

static void check_tls(const struct otlp_options *options, const struct assignments *given,
		      struct diag *diag)
{
	const struct tls_files *tls = &options->http.tls;
	struct tls_files sound = { 0 };
	const struct {
		const char *key, *file, **sound;
	} files[] = {
		{ "ca_file", tls->ca_file, &sound.ca_file },
		{ "certificate_file", tls->certificate_file, &sound.certificate_file },
		{ "key_file", tls->key_file, &sound.key_file },
	}, *pair = &files[tls->key_file ? 2 : 1];
	const char *complaint = NULL;
	char problem[TLS_PROBLEM_BYTES];
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		if (!files[i].file)
			continue;
		err = check_pem(files[i].file, i == 2, &complaint);
		*files[i].sound = err ? NULL : files[i].file;
		report_file(files[i].key, NULL, files[i].file, err, complaint, given, diag);
		if (!otlp_is_encrypted(options))
			assignments_complain(given, diag, files[i].key, NULL,
					     "the endpoint is http://, which does not use it; write https://");
	}
	if (tls->key_file && !sound.key_file)
		sound.certificate_file = NULL;
	err = sound.ca_file || sound.certificate_file ? tls_check_files(&sound, problem) : 0;
	if (err == -EBADMSG)
		assignments_complain(given, diag, "ca_file", NULL, "%s: has no certificate that can be used: %s",
				     tls->ca_file, problem);
	else if (err)
		assignments_complain(given, diag, pair->key, NULL, "%s: %s: %s", pair->file, tls->key_file ?
				     "is not the key of certificate_file, or one of the two is damaged" :
				     "is damaged, or does not also hold its key; name that with key_file", problem);
}

void otlp_options_check(const void *untyped, const struct assignments *given, struct diag *diag)
{
	const struct otlp_options *options = untyped;
	const struct tls_files *tls = &options->http.tls;
	const char *complaint = NULL;
	char value[OTLP_HEADER_BYTES];
	int err;

	check_tls(options, given, diag);
	if (tls->key_file && !tls->certificate_file)
		assignments_complain(given, diag, "key_file", NULL, "a key without a certificate; give certificate_file too");
	if (options->retry.max_ns < options->retry.initial_ns)
		assignments_complain(given, diag, "retry_max", NULL, "shorter than retry_initial; write at least as long a time");
	for (size_t i = 0; i < options->headers.n_items; i++) {
		const char *header = options->headers.items[i];
		const char *file = otlp_header_file(options, header);

		err = file ? otlp_header_read(file, value, &complaint) : 0;
		report_file("headers", header, file, err, complaint, given, diag);
	}
	explicit_bzero(value, sizeof(value));
}

/* path: NULL without a file, or if systemd hands it over. */
static void warn_of_readers(const struct exporter *exporter, const char *path)
{
	struct stat status;

	if (path && !stat(path, &status) && S_ISREG(status.st_mode) && status.st_mode & S_IROTH)
		exporter_log(exporter, LOG_LEVEL_WARNING, NULL, "all users can read the secret in %s: run chmod o-r %s",
			     path, path);
}

void otlp_options_warn(const struct otlp_options *options, const struct exporter *exporter,
		       const char *url)
{
	const struct setting_list *headers = &options->headers;
	struct url_place place = url_place(url);
	const char *what = place.has_password ? "password in the URL" : NULL, *name = "";

	for (size_t i = headers->n_items; i--;) {
		if (!is_secret(options, headers->items[i]))
			continue;
		what = "header ";
		name = headers->items[i];
	}
	if (what && !url_is_encrypted(url) && !place.is_local)
		exporter_log(exporter, LOG_LEVEL_WARNING, NULL,
			     "the %s%.*s is sent unencrypted over the network: use https://", what,
			     (int)strcspn(name, ":"), name);
	warn_of_readers(exporter, options->http.tls.key_file);
	for (size_t i = 0; i < headers->n_items; i++)
		warn_of_readers(exporter, otlp_header_file(options, headers->items[i]));
}
