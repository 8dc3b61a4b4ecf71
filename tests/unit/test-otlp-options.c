/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "export/otlp/encode.h"
#include "export/otlp/options.h"
#include "export/transport/http.h"
#include "logged.h"
#include "util/cleanup.h"

/* Options as a section gives them: "key=value" each, and the environment below. */
struct given {
	struct otlp_options options;
	struct diag diag;
	const char *const *words;
};

static void give(struct given *given, const char *const *words)
{
	struct assignment settings[8];
	struct assignments all = { settings, 0, "file", 3 };
	char keys[ARRAY_SIZE(settings)][64];

	*given = (struct given){ .words = words };
	assert_ok(setting_table_init(&otlp_settings, &given->options));
	for (; words[all.n]; all.n++) {
		const char *word = words[all.n], *equals = strchr(word, '=');

		assert_true(all.n < ARRAY_SIZE(settings));
		snprintf(keys[all.n], sizeof(keys[0]), "%.*s", (int)(equals - word), word);
		settings[all.n] = (struct assignment){ keys[all.n], equals + 1, "file", 7 + (unsigned int)all.n };
		assert_ok(setting_table_set(&otlp_settings, &given->options, &settings[all.n], &given->diag));
	}
	assert_ok(otlp_options_environment(&given->options, &all, &given->diag));
	otlp_options_check(&given->options, &all, &given->diag);
}

#define GIVE(given, ...) give(given, (const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

static void given_done(struct given *given)
{
	setting_table_done(&otlp_settings, &given->options);
	diag_done(&given->diag);
}

static void assert_signal_url(struct given *given, enum signals signal, const char *want)
{
	_cleanup_(freep) char *url = NULL;

	assert_ok(otlp_url(&given->options, signal, &url));
	assert_string_equal(url, want);
	assert_int_equal(given->diag.n_errors, 0);
	given_done(given);
}

static void assert_url(struct given *given, const char *want)
{
	assert_signal_url(given, SIGNAL_METRICS, want);
}

static int clear_environment(void **state)
{
	static const char *const names[] = { "ENDPOINT", "HEADERS", "COMPRESSION", "TIMEOUT", "CERTIFICATE", "PROTOCOL",
					     "CLIENT_KEY", "CLIENT_CERTIFICATE", "LOGS_ENDPOINT" };
	char name[80];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_%s", names[i]);
		unsetenv(name);
		snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_METRICS_%s", names[i]);
		unsetenv(name);
	}
	unsetenv("CREDENTIALS_DIRECTORY");
	unsetenv("NOTIFY_SOCKET");
	unsetenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE");
	unsetenv("OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION");
	return 0;
}

static void the_path_is_added_to_an_endpoint_once(void **state)
{
	struct given given;

	GIVE(&given);
	assert_url(&given, "http://localhost:4318/v1/metrics");
	GIVE(&given, "endpoint=https://host/base");
	assert_url(&given, "https://host/base/v1/metrics");
	GIVE(&given, "endpoint=https://host/base/");
	assert_url(&given, "https://host/base/v1/metrics");
	GIVE(&given, "endpoint=http://host:4318/v1/metrics");
	assert_url(&given, "http://host:4318/v1/metrics");
	GIVE(&given, "endpoint=http://host/api?token=1");
	assert_url(&given, "http://host/api/v1/metrics?token=1");
	GIVE(&given, "endpoint=http://host/v1/metrics/?a=/v1/metrics");
	assert_url(&given, "http://host/v1/metrics?a=/v1/metrics");
	GIVE(&given, "endpoint=http://host?a=b/");
	assert_url(&given, "http://host/v1/metrics?a=b/");
	GIVE(&given, "endpoint=http://host/a?b#c?d");
	assert_url(&given, "http://host/a/v1/metrics?b");
	GIVE(&given, "endpoint=http://host/#/v1/metrics");
	assert_url(&given, "http://host/v1/metrics");
	GIVE(&given, "metrics_endpoint=http://other/x?y=1#z");
	assert_url(&given, "http://other/x?y=1#z");
	GIVE(&given, "endpoint=http://host", "metrics_endpoint=http://other/api/v1/otlp/v1/metrics");
	assert_url(&given, "http://other/api/v1/otlp/v1/metrics");
	GIVE(&given, "metrics_endpoint=http://other/");
	assert_url(&given, "http://other/");
}

static void events_and_traces_have_endpoints_of_their_own(void **state)
{
#define LOGS "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"
#define TRACES "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	static const struct {
		const char *variable, *value, *word, *more;
		enum signals signal;
		const char *url;
	} cases[] = {
		{ LOGS, "", "endpoint=https://host/base/", NULL, SIGNAL_EVENTS, "https://host/base/v1/logs" },
		{ LOGS, "", "endpoint=http://host/v1/metrics?a=1", NULL, SIGNAL_EVENTS, "http://host/v1/logs?a=1" },
		{ LOGS, "", "endpoint=http://host/v1/metrics?a=1", NULL, SIGNAL_TRACES, "http://host/v1/traces?a=1" },
		{ LOGS, "", "endpoint=http://host", "logs_endpoint=http://x/y?z", SIGNAL_EVENTS, "http://x/y?z" },
		{ LOGS, "", "endpoint=http://host", "traces_endpoint=http://x/v1/traces", SIGNAL_TRACES, "http://x/v1/traces" },
		{ LOGS, "http://env/logs", NULL, NULL, SIGNAL_EVENTS, "http://env/logs" },
		{ LOGS, "http://env/logs", "endpoint=http://host", NULL, SIGNAL_EVENTS, "http://host/v1/logs" },
		{ LOGS, "http://env/logs", "logs_endpoint=http://file/x", NULL, SIGNAL_EVENTS, "http://file/x" },
		{ TRACES, "http://env/traces", NULL, NULL, SIGNAL_TRACES, "http://env/traces" },
		{ TRACES, "http://env/traces", "traces_endpoint=http://file/x", NULL, SIGNAL_TRACES, "http://file/x" },
	};
	struct given given;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		setenv(cases[i].variable, cases[i].value, 1);
		GIVE(&given, cases[i].word, cases[i].more);
		assert_signal_url(&given, cases[i].signal, cases[i].url);
		setenv(cases[i].variable, "", 1);
	}
	setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://env/metrics", 1);
	setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://env/all", 1);
	GIVE(&given);
	assert_signal_url(&given, SIGNAL_EVENTS, "http://env/all/v1/logs");
	GIVE(&given);
	assert_url(&given, "http://env/metrics");
}

static void signals_are_those_with_an_endpoint_or_those_that_are_named(void **state)
{
	static const struct {
		const char *word, *more;
		enum signals want;
	} cases[] = {
		{ NULL, NULL, SIGNAL_METRICS | SIGNAL_EVENTS | SIGNAL_TRACES },
		{ "metrics_endpoint=http://host/x", NULL, SIGNAL_METRICS },
		{ "metrics_endpoint=http://host/x", "traces_endpoint=http://host/y", SIGNAL_METRICS | SIGNAL_TRACES },
		{ "metrics_endpoint=http://host/x", "endpoint=http://host", SIGNAL_METRICS | SIGNAL_EVENTS | SIGNAL_TRACES },
		{ "signals=events", NULL, SIGNAL_EVENTS },
		{ "signals=traces", NULL, SIGNAL_TRACES },
		{ "signals=metrics, events", NULL, SIGNAL_METRICS | SIGNAL_EVENTS },
	};
	struct given given;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++, given_done(&given)) {
		GIVE(&given, cases[i].word, cases[i].more);
		assert_int_equal(otlp_signals(&given.options), cases[i].want);
	}
	GIVE(&given, "signals=logs");
	assert_int_equal(given.diag.n_errors, 1);
	assert_non_null(strstr(buf_text(&given.diag.text), "is not a signal; write metrics, events or traces, or several of them"));
	given_done(&given);
}

static void endpoints_of_the_environment_follow_the_specification(void **state)
{
	struct given given;

	setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://env/x", 1);
	GIVE(&given);
	assert_url(&given, "http://env/x/v1/metrics");
	setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://env/x/", 1);
	GIVE(&given);
	assert_url(&given, "http://env/x/v1/metrics");
	GIVE(&given, "endpoint=http://file");
	assert_url(&given, "http://file/v1/metrics");
	setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://signal/x", 1);
	GIVE(&given);
	assert_url(&given, "http://signal/x");
	setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "", 1);
	GIVE(&given);
	assert_url(&given, "http://env/x/v1/metrics");
	setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318", 1);
	GIVE(&given);
	assert_string_equal(buf_text(&given.diag.text),
			    "OTEL_EXPORTER_OTLP_ENDPOINT: endpoint: not a URL, write http://HOST:PORT or https://HOST\n");
	given_done(&given);
}

static void words_and_times_of_the_environment_are_read_or_ignored(void **state)
{
	struct given given;

	setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "None", 1);
	setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1500", 1);
	setenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "DELTA", 1);
	setenv("OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION", "base2_exponential_bucket_histogram", 1);
	GIVE(&given);
	assert_true(given.options.is_uncompressed);
	assert_int_equal(given.options.http.timeout_ns, 1500000000);
	assert_int_equal(given.options.encoding.temporality, OTLP_DELTA);
	assert_int_equal(given.options.encoding.histogram, OTLP_EXPONENTIAL);
	given_done(&given);

	GIVE(&given, "compression=gzip", "timeout=3s", "temporality=cumulative", "histogram=explicit");
	assert_false(given.options.is_uncompressed);
	assert_int_equal(given.options.http.timeout_ns, 3000000000);
	assert_int_equal(given.options.encoding.temporality, OTLP_CUMULATIVE);
	assert_int_equal(given.options.encoding.histogram, OTLP_EXPLICIT);
	given_done(&given);

	setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd", 1);
	setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "10s", 1);
	setenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "lowmemory", 1);
	GIVE(&given);
	assert_false(given.options.is_uncompressed);
	assert_int_equal(given.options.http.timeout_ns, 10000000000);
	assert_int_equal(given.options.encoding.temporality, OTLP_CUMULATIVE);
	assert_int_equal(given.diag.n_errors, 0);
	given_done(&given);
}

static void tls_files_of_the_environment_are_for_https(void **state)
{
	struct given given;

	setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "/dev/null", 1);
	GIVE(&given);
	assert_null(given.options.http.tls.ca_file);
	assert_int_equal(given.diag.n_errors, 0);
	given_done(&given);
	GIVE(&given, "endpoint=https://host");
	assert_string_equal(given.options.http.tls.ca_file, "/dev/null");
	given_done(&given);
}

#define PEM  "test.pem" /* main() goes to a directory of this test's own */
#define BOTH "made-both.pem"

static int run_script(const char *script)
{
	char *const arguments[] = { (char *)"sh", (char *)"-c", (char *)script, NULL };
	int status = -1;
	pid_t child;

	if (!posix_spawnp(&child, arguments[0], NULL, NULL, arguments, environ))
		waitpid(child, &status, 0);
	return status;
}

/* made-NAME.pem and .key, and BOTH with a certificate and its key. */
static int make_files(void)
{
	static const char make[] =
		"make() { openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=test -days 2 -out $1 -keyout $2; }\n"
		"exec 2>made-log; set -e\n"
		"make made-a.pem made-a.key; make made-b.pem made-b.key; make " BOTH " " BOTH "\n"
		"openssl pkcs8 -topk8 -in made-a.key -passout pass:x -out made-new.key\n"
		"openssl ec -in made-a.key -aes128 -passout pass:x -out made-old.key\n"
		"sed s/^[^-]/-/ made-a.pem >made-damaged.pem";

	return run_script(make);
}

static void write_file(const char *path, const char *content, mode_t mode)
{
	_cleanup_(fclosep) FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(content, f) >= 0);
	assert_int_equal(fchmod(fileno(f), mode), 0);
}

static void what_does_not_go_together_is_refused(void **state)
{
	static const struct {
		const char *word, *complaint;
	} cases[] = {
		{ "endpoint=host:4318", "file:7: endpoint: not a URL, write http://HOST:PORT or https://HOST\n" },
		{ "endpoint=http://host/v1/traces",
		  "file:7: endpoint: this path is not for metrics; write /v1/metrics, or use logs_endpoint or traces_endpoint\n" },
		{ "metrics_endpoint=http://host/a/v1/logs/?b",
		  "file:7: metrics_endpoint: this path is not for metrics; write /v1/metrics, or use logs_endpoint or traces_endpoint\n" },
		{ "ca_file=" PEM, "file:7: ca_file: the endpoint is http://, which does not use it; write https://\n" },
		{ "owner_attribute=Owner", "file:7: owner_attribute: not a lower-case dotted name, write one like owner\n" },
		{ "owner_attribute=a b", "file:7: owner_attribute: not a lower-case dotted name, write one like owner\n" },
		{ "retry_max=500ms", "file:7: retry_max: shorter than retry_initial; write at least as long a time\n" },
		{ "headers=A: file:/nonexistent", "file:7: headers: /nonexistent: No such file or directory\n" },
		{ "headers=A", "file:7: headers: not a header, write \"Name: value\"\n" },
		{ "headers=: x", "file:7: headers: not a header, write \"Name: value\"\n" },
		{ "headers=content-LENGTH: 5", "file:7: headers: bpfpush sets this header itself\n" },
		{ "headers=A: b\rc", "file:7: headers: a control character in the header\n" },
	};

	assert_int_equal(link(BOTH, PEM), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct given given;

		GIVE(&given, cases[i].word);
		assert_string_equal(buf_text(&given.diag.text), cases[i].complaint);
		given_done(&given);
	}
	unlink(PEM);
}

static void assert_complaint(const char *const *words, const char *key, const char *file, const char *complaint)
{
	unsigned int line = 7;
	struct given given;
	char expected[256] = "";

	for (const char *const *word = words; strncmp(*word, key, strlen(key)); word++)
		line++;
	if (complaint)
		snprintf(expected, sizeof(expected), "file:%u: %s: %s%s\n", line, key, file, complaint);
	give(&given, words);
	assert_string_equal(buf_text(&given.diag.text), expected);
	given_done(&given);
}

/* What check says of a file, as each of the keys that name one of TLS. */
static void assert_tls_complaint(const char *file, const char *complaint)
{
	char own[128];

	for (int i = 0; i < 3; i++) {
		static const char *const keys[] = { "ca_file", "certificate_file", "key_file" };
		const char *const words[] = { "endpoint=https://host", own, i == 2 ? "certificate_file=" PEM : NULL,
					      NULL };

		snprintf(own, sizeof(own), "%s=%s", keys[i], file);
		assert_complaint(words, keys[i], file, complaint);
	}
}

#define NO_CERTIFICATE ": has no certificate in PEM form, which begins with a line \"-----BEGIN CERTIFICATE-----\""
#define NO_KEY	       ": has no key in PEM form, which begins with a line \"-----BEGIN PRIVATE KEY-----\""

static void files_of_tls_must_be_pem(void **state)
{
	static const char path[] = "test.file";

	assert_int_equal(link(BOTH, PEM), 0);
	assert_tls_complaint(PEM, NULL);
	unlink(path);
	assert_tls_complaint(path, ": No such file or directory");
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_tls_complaint(path, ": is a pipe, which can be read only once");
	unlink(path);
	assert_tls_complaint("/tmp", ": is a directory");
	assert_tls_complaint("/dev/null", ": is not a regular file");
	unlink(PEM);
}

/* Those that are given: from line 7 on. */
static void give_files(struct given *given, const char *const files[3])
{
	static const char *const keys[] = { "ca_file", "certificate_file", "key_file" };
	const char *list[ARRAY_SIZE(keys) + 2] = { NULL };
	char words[ARRAY_SIZE(keys)][64];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (!files[i])
			continue;
		snprintf(words[i], sizeof(words[i]), "%s=%s", keys[i], files[i]);
		list[n++] = words[i];
	}
	list[n] = "endpoint=https://host";
	give(given, list);
}

#define PHRASE	"needs a passphrase, which nobody can enter; remove it with \"openssl pkey\"\n"
#define NOT_KEY "is not the key of certificate_file, or one of the two is damaged: "

static void certificates_and_keys_belong_together(void **state)
{
	static const struct {
		const char *ca, *certificate, *key, *complaint; /* complaint: how it begins */
	} cases[] = {
		{ "made-a.pem", "made-a.pem", "made-a.key", "" },
		{ BOTH, BOTH, NULL, "" },
		{ BOTH, BOTH, BOTH, "" },
		{ "made-b.pem", "made-b.pem", "made-b.key", "" },
		{ NULL, "made-a.pem", "made-b.key", "file:8: key_file: made-b.key: " NOT_KEY },
		{ NULL, BOTH, "made-b.key", "file:8: key_file: made-b.key: " NOT_KEY },
		{ NULL, "made-damaged.pem", "made-a.key", "file:8: key_file: made-a.key: " NOT_KEY },
		{ NULL, "made-a.pem", "made-damaged.key", "file:8: key_file: made-damaged.key: No such file or directory\n" },
		{ NULL, "made-a.pem", "made-new.key", "file:8: key_file: made-new.key: " PHRASE },
		{ NULL, "made-a.pem", "made-old.key", "file:8: key_file: made-old.key: " PHRASE },
		{ NULL, "made-a.pem", NULL, "file:7: certificate_file: made-a.pem: is damaged, or does not also hold its key; "
					    "name that with key_file: " },
		{ NULL, "made-a.pem", "made-a.pem", "file:8: key_file: made-a.pem" NO_KEY "\n" },
		{ NULL, "made-a.key", NULL, "file:7: certificate_file: made-a.key" NO_CERTIFICATE "\n" },
		{ "made-damaged.pem", NULL, NULL, "file:7: ca_file: made-damaged.pem: has no certificate that can be used: " },
		{ "made-a.key", NULL, NULL, "file:7: ca_file: made-a.key" NO_CERTIFICATE "\n" },
		{ "made-empty", NULL, NULL, "file:7: ca_file: made-empty" NO_CERTIFICATE "\n" },
		{ "made-garbage", NULL, NULL, "file:7: ca_file: made-garbage" NO_CERTIFICATE "\n" },
	};

	write_file("made-empty", "", 0600);
	write_file("made-garbage", "secret -----BEGIN CERTIFICATE-----\n", 0600);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct given given;
		const char *text;

		give_files(&given, (const char *const[]){ cases[i].ca, cases[i].certificate, cases[i].key });
		text = buf_text(&given.diag.text);
		if (strncmp(text, cases[i].complaint, strlen(cases[i].complaint)) || !*cases[i].complaint != !*text ||
		    given.diag.n_errors > 1)
			fail_msg("case %zu: %s", i, text);
		given_done(&given);
	}
}

/* A user who may not read them cannot know; one with the rights of the service can. */
static void files_that_cannot_be_read_are_not_tried(void **state)
{
	bool is_root = !geteuid();
	struct given given;

	write_file("made-closed", "-----BEGIN CERTIFICATE-----\n", 0);
	assert_false(is_root && seteuid(65534));
	GIVE(&given, "endpoint=https://host", "ca_file=made-closed", "certificate_file=made-closed", "key_file=made-closed");
	assert_false(is_root && seteuid(0));
	assert_string_equal(buf_text(&given.diag.text), !is_root ? "" :
							"file:8: ca_file: made-closed: Permission denied\n"
							"file:9: certificate_file: made-closed: Permission denied\n"
							"file:10: key_file: made-closed: Permission denied\n");
	given_done(&given);
}

/* On a terminal of its own, OpenSSL would write its question there, and wait. */
static void nobody_is_asked_for_a_passphrase(void **state)
{
	static const char *const keys[] = { "made-new.key", "made-old.key" };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		struct tls_files files = { .certificate_file = "made-a.pem", .key_file = keys[i] };
		char seen[256], problem[TLS_PROBLEM_BYTES];
		int terminal, status;
		pid_t child = forkpty(&terminal, NULL, NULL, NULL);
		ssize_t size;

		assert_true(child >= 0);
		if (!child)
			_exit(tls_check_files(&files, problem) == -EKEYREJECTED ? 0 : 1);
		size = read(terminal, seen, sizeof(seen));
		if (size > 0)
			kill(child, SIGKILL);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(size <= 0);
		assert_int_equal(status, 0);
		close(terminal);
	}
}

static void a_file_that_holds_no_header_is_a_mistake(void **state)
{
	static const char path[] = "test.file", word[] = "headers=A: file:test.file";
	static const char *const words[] = { word, NULL };
	static const struct {
		const char *content, *complaint;
	} cases[] = {
		{ "secret\n", NULL },
		{ "secret\r\n\n", NULL },
		{ "secret\nmore", ": has more than one line" },
		{ "", ": is empty" },
		{ "\nsecret", ": has an empty first line" },
		{ "secret\x01", ": holds a control character" },
	};
	_cleanup_(fclosep) FILE *f = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		write_file(path, cases[i].content, 0600);
		assert_complaint(words, "headers", path, cases[i].complaint);
	}
	f = fopen(path, "we");
	assert_int_equal(fwrite("a\0b", 1, 3, f), 3);
	assert_int_equal(fflush(f), 0);
	assert_complaint(words, "headers", path, ": holds a control character");
	rewind(f);
	for (int i = 0; i < 8192; i++)
		fputc('a', f);
	assert_int_equal(fflush(f), 0);
	assert_complaint(words, "headers", path, ": has a first line that is too long");
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_complaint(words, "headers", path, ": is a pipe, which can be read only once");
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_complaint(words, "headers", path, ": is a directory");
	rmdir(path);
}

static void a_credential_is_found_in_its_directory(void **state)
{
	static const char *const texts[] = { "Api-Key: file:%d/test.file", "Api-Key: file:${CREDENTIALS_DIRECTORY}/test.file" };
	_cleanup_(freep) char *here = getcwd(NULL, 0);
	const struct otlp_options options = { 0 };

	write_file("test.file", "secret", 0600);
	assert_int_equal(link(BOTH, PEM), 0);
	assert_int_equal(setenv("CREDENTIALS_DIRECTORY", here, true), 0);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_(freep) char *header = NULL;
		const char *complaint;

		assert_ok(otlp_header_resolve(texts[i], otlp_header_file(&options, texts[i]), &header, &complaint));
		assert_string_equal(header, "Api-Key: secret");
	}
	assert_tls_complaint("%d/" PEM, NULL);
	/* Only the beginning of a path stands for the directory. */
	assert_tls_complaint("./%d/" PEM, ": No such file or directory");
	unlink("test.file");
	unlink(PEM);
}

#define EDIT ": the service has no such credential; \"systemctl edit bpfpush\" and write LoadCredential=no-such:PATH below [Service]"

static void a_missing_credential_is_a_mistake_only_for_the_service(void **state)
{
	static const char *const ca[] = { "endpoint=https://host", "ca_file=%d/no-such", NULL };
	static const char *const header[] = { "headers=A: file:${CREDENTIALS_DIRECTORY}/no-such", NULL };
	static const char *const variables[] = { "CREDENTIALS_DIRECTORY", "NOTIFY_SOCKET" };

	log_catch();
	assert_complaint(ca, "ca_file", "%d/no-such", NULL);
	assert_string_equal(log_caught(), "<6>file:8: ca_file: %d/no-such: not checked, because systemd gives this file only to the service; "
					  "if the service does not have it, \"systemctl edit bpfpush\" and write "
					  "LoadCredential=no-such:PATH below [Service]\n");
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		assert_int_equal(setenv(variables[i], "/nonexistent", true), 0);
		assert_complaint(ca, "ca_file", "%d/no-such", EDIT);
		assert_complaint(header, "headers", "${CREDENTIALS_DIRECTORY}/no-such", EDIT);
		unsetenv(variables[i]);
	}
}

static void the_table_is_whole(void **state)
{
	const struct setting_row *rows = otlp_settings.rows;

	for (size_t i = 0; i < otlp_settings.n_rows; i++)
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(rows[i].key, rows[j].key);
}

#define TEST(function) cmocka_unit_test_setup(function, clear_environment)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_path_is_added_to_an_endpoint_once),
		TEST(endpoints_of_the_environment_follow_the_specification),
		TEST(events_and_traces_have_endpoints_of_their_own),
		TEST(signals_are_those_with_an_endpoint_or_those_that_are_named),
		TEST(words_and_times_of_the_environment_are_read_or_ignored),
		TEST(tls_files_of_the_environment_are_for_https),
		TEST(what_does_not_go_together_is_refused),
		TEST(files_of_tls_must_be_pem),
		TEST(certificates_and_keys_belong_together),
		TEST(files_that_cannot_be_read_are_not_tried),
		TEST(nobody_is_asked_for_a_passphrase),
		TEST(a_file_that_holds_no_header_is_a_mistake),
		TEST(a_credential_is_found_in_its_directory),
		TEST(a_missing_credential_is_a_mistake_only_for_the_service),
		TEST(the_table_is_whole),
	};

	char directory[] = "/tmp/test-otlp-options-XXXXXX";
	int n_failed;

	if (!mkdtemp(directory) || chdir(directory) < 0)
		return 1;
	if (make_files()) {
		printf("skipped: openssl is missing\n");
		n_failed = 77;
	} else {
		n_failed = cmocka_run_group_tests(tests, NULL, NULL);
	}
	run_script("rm -f made-*");
	(void)rmdir(directory);
	return n_failed;
}
