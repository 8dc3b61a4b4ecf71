/* SPDX-License-Identifier: Apache-2.0 */
#include "export/otlp/options.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "util/cleanup.h"
#include "util/credential.h"
#include "util/duration.h"
#include "util/log.h"
#include "util/rights.h"

#define HEADER_BYTES 8192 /* the longest value from a file, with its NUL */
#define SIGNAL_PATH  "/v1/metrics"

static const char *const compressions[] = { "gzip", "none", NULL };
static const char *const temporalities[] = { "cumulative", "delta", NULL };
static const char *const histograms[] = { "explicit", "exponential", NULL };

#define ROW(...) SETTING(struct otlp_options, __VA_ARGS__)

static const struct setting_row rows[] = {
	ROW(endpoint, "endpoint", SETTING_TEXT, "http://localhost:4318", .check = url_check),
	ROW(metrics_endpoint, "metrics_endpoint", SETTING_TEXT, NULL, .check = url_check),
	ROW(headers, "headers", SETTING_LIST, NULL, .check = otlp_header_check),
	ROW(is_uncompressed, "compression", SETTING_CHOICE, "gzip", .choices = compressions),
	ROW(http.ca_file, "ca_file", SETTING_TEXT, NULL),
	ROW(http.certificate_file, "certificate_file", SETTING_TEXT, NULL),
	ROW(http.key_file, "key_file", SETTING_TEXT, NULL),
	ROW(http.timeout_ns, "timeout", SETTING_DURATION, "10s", .minimum = NS_PER_MS, .takes_zero = true),
	ROW(encoding.temporality, "temporality", SETTING_CHOICE, "cumulative", .choices = temporalities),
	ROW(encoding.histogram, "histogram", SETTING_CHOICE, "explicit", .choices = histograms),
	ROW(encoding.has_zero_points, "zero_point", SETTING_BOOL, "yes"),
	ROW(encoding.limit_bytes, "max_request_size", SETTING_SIZE, "4MiB", .minimum = 4096,
	    .maximum = 64 << 20),
	ROW(http.limit_response_bytes, "max_response_size", SETTING_SIZE, "4MiB", .minimum = 1024,
	    .maximum = 64 << 20),
	ROW(queue_bytes, "queue_size", SETTING_SIZE, "16MiB", .minimum = 4096),
	ROW(queue_requests, "queue_requests", SETTING_U64, "1000", .minimum = 1),
	ROW(retry.initial_ns, "retry_initial", SETTING_DURATION, "1s", .minimum = NS_PER_MS),
	ROW(retry.max_ns, "retry_max", SETTING_DURATION, "30s", .minimum = NS_PER_MS),
	ROW(retry_give_up_ns, "retry_give_up", SETTING_DURATION, "0"),
};
const struct setting_table otlp_settings = SETTING_TABLE(rows, struct otlp_options);

const char *otlp_base(const struct otlp_options *options)
{
	return options->metrics_endpoint ? options->metrics_endpoint : options->endpoint;
}

int otlp_url(const struct otlp_options *options, char **ret_url)
{
	const char *base = otlp_base(options);
	size_t size = strlen(base), path_size = strlen(SIGNAL_PATH);
	char *url;

	if (!options->metrics_endpoint) {
		while (size && base[size - 1] == '/')
			size--;
		if (size >= path_size && !strncmp(base + size - path_size, SIGNAL_PATH, path_size))
			size -= path_size;
	}
	if (asprintf(&url, "%.*s%s", (int)size, base, options->metrics_endpoint ? "" : SIGNAL_PATH) < 0)
		return -ENOMEM;
	*ret_url = url;
	return 0;
}

const char *otlp_header_file(const char *text)
{
	const char *value = strchr(text, ':');

	if (!value)
		return NULL;
	value += 1 + strspn(value + 1, " \t");
	return strncmp(value, "file:", 5) ? NULL : value + 5;
}

/* A value that ends neither its line nor the text. */
static bool is_value(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 ? *text != '\t' : *text == 0x7f)
			return false;
	return true;
}

int otlp_header_check(const char *text, const char **ret_complaint)
{
	/* These say what is sent, which is not for a configuration to say. */
	static const char *const ours[] = { "content-type", "content-encoding", "content-length",
					    "transfer-encoding", "expect" };
	size_t size = 0;

	while (text[size] && (isalnum((unsigned char)text[size]) || strchr("!#$%&'*+-.^_`|~", text[size])))
		size++;
	*ret_complaint = NULL;
	if (!size || text[size] != ':')
		*ret_complaint = "not a header, write \"Name: value\"";
	else if (!is_value(text + size))
		*ret_complaint = "a control character in the header";
	for (size_t i = 0; !*ret_complaint && i < ARRAY_SIZE(ours); i++)
		if (strlen(ours[i]) == size && !strncasecmp(text, ours[i], size))
			*ret_complaint = "bpfpush sets this header itself";
	return *ret_complaint ? -EINVAL : 0;
}

bool otlp_header_is_secret(const char *text)
{
	static const char *const words[] = { "auth", "key", "token", "secret", "password", "cookie", "credential" };
	char name[128];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, ":"), text);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcasestr(name, words[i]))
			return true;
	return otlp_header_file(text) != NULL;
}

/* Opens a regular file. -errno and why not. */
static int open_file(const char *path, FILE **ret_file, const char **ret_complaint)
{
	_cleanup_(freep) char *found = credential_path(path);
	_cleanup_(closep) int fd = found ? open(found, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
	FILE *file = NULL;
	struct stat st;
	int err;

	if (fd >= 0 && !fstat(fd, &st)) {
		if (!S_ISREG(st.st_mode)) {
			*ret_complaint = S_ISDIR(st.st_mode)  ? "is a directory" :
					 S_ISFIFO(st.st_mode) ? "is a pipe, which can be read only once" :
								"is not a regular file";
			return -EBADMSG;
		}
		file = fdopen(fd, "r");
	}
	if (!file) {
		err = -errno;
		*ret_complaint = strerror(-err);
		return err;
	}
	(void)TAKE_FD(fd);
	*ret_file = file;
	return 0;
}

/* The one line of a header's file. -errno and why it cannot be used. */
static int read_value(const char *path, char value[HEADER_BYTES], const char **ret_complaint)
{
	_cleanup_(fclosep) FILE *file = NULL;
	int err = open_file(path, &file, ret_complaint);
	bool has_nul, has_more;
	size_t size, length;

	if (err)
		return err;
	setbuf(file, NULL); /* the secret is in no other place */
	size = fread(value, 1, HEADER_BYTES - 1, file);
	value[size] = '\0';
	length = strcspn(value, "\r\n");
	has_nul = strlen(value) < size;
	has_more = length + strspn(value + length, "\r\n") < size;
	value[length] = '\0';
	if (ferror(file))
		*ret_complaint = "cannot be read";
	else if (!size)
		*ret_complaint = "is empty";
	else if (length == HEADER_BYTES - 1)
		*ret_complaint = "has a first line that is too long";
	else if (has_nul || !is_value(value))
		*ret_complaint = "holds a control character";
	else if (!length)
		*ret_complaint = "has an empty first line";
	else if (has_more)
		*ret_complaint = "has more than one line";
	else
		return 0;
	return -EBADMSG;
}

int otlp_header_resolve(const char *text, char **ret_header, const char **ret_complaint)
{
	char value[HEADER_BYTES], *header;
	int err = read_value(otlp_header_file(text), value, ret_complaint);

	if (!err && asprintf(&header, "%.*s: %s", (int)strcspn(text, ":"), text, value) < 0) {
		*ret_complaint = strerror(ENOMEM);
		err = -ENOMEM;
	}
	explicit_bzero(value, sizeof(value));
	if (!err)
		*ret_header = header;
	return err;
}

static int check_pem(const char *path, const char **ret_complaint)
{
	static const char begin[] = "-----BEGIN";
	_cleanup_(fclosep) FILE *file = NULL;
	int err = open_file(path, &file, ret_complaint);
	char line[256];

	if (err)
		return err;
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, begin, sizeof(begin) - 1))
			return 0;
	*ret_complaint = "is not a PEM file: it has no line that begins with \"-----BEGIN\"";
	return -EBADMSG;
}

/* Says what is wrong with a file, unless only who checks it cannot know. text: the setting that names it. */
static void report_file(const char *key, const char *text, const char *file, int err, const char *complaint,
			const struct assignments *given, struct diag *diag)
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

void otlp_options_check(const void *untyped, const struct assignments *given, struct diag *diag)
{
	const struct otlp_options *options = untyped;
	const struct http_options *http = &options->http;
	const struct {
		const char *key, *file;
	} files[] = {
		{ "ca_file", http->ca_file },
		{ "certificate_file", http->certificate_file },
		{ "key_file", http->key_file },
	};
	const char *complaint = NULL;
	char value[HEADER_BYTES];
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		if (!files[i].file)
			continue;
		err = check_pem(files[i].file, &complaint);
		report_file(files[i].key, NULL, files[i].file, err, complaint, given, diag);
		if (!url_is_encrypted(otlp_base(options)))
			assignments_complain(given, diag, files[i].key, NULL,
					     "the endpoint is http://, which does not use it; write https://");
	}
	if (http->key_file && !http->certificate_file)
		assignments_complain(given, diag, "key_file", NULL, "a key without a certificate; give certificate_file too");
	if (options->retry.max_ns < options->retry.initial_ns)
		assignments_complain(given, diag, "retry_max", NULL, "shorter than retry_initial; write at least as long a time");
	for (size_t i = 0; i < options->headers.n_items; i++) {
		const char *header = options->headers.items[i], *file = otlp_header_file(header);

		err = file ? read_value(file, value, &complaint) : 0;
		report_file("headers", header, file, err, complaint, given, diag);
	}
	explicit_bzero(value, sizeof(value));
}
