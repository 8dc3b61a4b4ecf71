/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>

#include "alloc.h"
#include "config/config.h"
#include "tree.h"

/* Two exporters of our own, at the door that exporter.h is. */
struct post_options {
	char *url;
	uint64_t timeout_ns;
	char *endpoint;
	struct setting_list headers;
	char *key_file, *certificate_file;
};

static int check_url(const char *text, const char **ret_complaint)
{
	*ret_complaint = "a URL begins with http:// or https://";
	return strncmp(text, "http", 4) ? -EINVAL : 0;
}

static const struct setting_row post_table[] = {
	SETTING(struct post_options, endpoint, "endpoint", SETTING_TEXT, NULL),
	SETTING(struct post_options, url, "url", SETTING_TEXT, "http://localhost",
		.check = check_url),
	SETTING(struct post_options, timeout_ns, "timeout", SETTING_DURATION, "10s"),
	SETTING(struct post_options, headers, "header", SETTING_LIST, NULL),
	SETTING(struct post_options, key_file, "key_file", SETTING_TEXT, NULL),
	SETTING(struct post_options, certificate_file, "certificate_file", SETTING_TEXT, NULL),
};
static const struct setting_table post_settings = SETTING_TABLE(post_table, struct post_options);

static int post_environment(void *options, const struct assignments *given, struct diag *diag)
{
	if (assignments_find(given, "timeout", NULL) || !getenv("TEST_TIMEOUT"))
		return 0;
	return setting_table_set(&post_settings, options,
				 &(struct assignment){ "timeout", getenv("TEST_TIMEOUT"), "TEST_TIMEOUT", 0 }, diag);
}

static void post_check(const void *untyped, const struct assignments *given, struct diag *diag)
{
	const struct post_options *options = untyped;

	if (options->key_file && !options->certificate_file)
		assignments_complain(given, diag, "key_file", NULL, "a key without a certificate");
}

static const struct exporter_ops post_exporter = {
	.type = "otlp",
	.settings = &post_settings,
	.environment = post_environment,
	.check = post_check,
};
struct print_options {
	char *path;
};

static const struct setting_row print_table[] = {
	SETTING(struct print_options, path, "path", SETTING_TEXT, "-"),
};
static const struct setting_table print_settings = SETTING_TABLE(print_table, struct print_options);
static const struct exporter_ops print_exporter = { .type = "console", .settings = &print_settings };

const struct exporter_ops *const exporter_table[] = { &post_exporter, &print_exporter, NULL };

enum signals exporter_signals(const struct exporter_ops *ops, const void *options)
{
	return SIGNAL_METRICS;
}

const struct exporter_ops *exporter_find(const char *type)
{
	for (size_t i = 0; exporter_table[i]; i++)
		if (!strcmp(exporter_table[i]->type, type))
			return exporter_table[i];
	return NULL;
}

/* Everything that one test reads. */
struct fixture {
	struct tree tree;
	char roots[3][128];
	const char *root_list[4];
	struct diag diag;
	struct config *config;
};

static void fixture_init(struct fixture *fixture)
{
	static const char *const names[] = { "etc", "run", "lib" };

	memset(fixture, 0, sizeof(*fixture));
	tree_init(&fixture->tree);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(fixture->roots[i], sizeof(fixture->roots[i]), "%s/%s", fixture->tree.path, names[i]);
		fixture->root_list[i] = fixture->roots[i];
	}
}

static void fixture_done(struct fixture *fixture)
{
	fixture->config = config_free(fixture->config);
	diag_done(&fixture->diag);
	tree_done(&fixture->tree);
}

static void fixture_read(struct fixture *fixture, const char *const *environment)
{
	clearenv();
	for (; environment && *environment; environment++)
		assert_ok(putenv((char *)*environment));
	fixture->config = config_free(fixture->config);
	diag_done(&fixture->diag);
	assert_ok(config_read(NULL, fixture->root_list, &fixture->diag, &fixture->config));
	assert_non_null(fixture->config);
}

/* The mistakes, with the tree's path in front taken out. */
static void assert_mistakes(struct fixture *fixture, const char *want)
{
	_cleanup_(buf_done) struct buf seen = BUF_INIT;
	size_t length = strlen(fixture->tree.path) + 1;

	for (const char *at = buf_text(&fixture->diag.text); *at; at++) {
		if (!strncmp(at, fixture->tree.path, length - 1))
			at += length;
		buf_append_byte(&seen, (uint8_t)*at);
	}
	assert_string_equal(buf_text(&seen), want);
}

#define FIXTURE _cleanup_(fixture_done) struct fixture f; fixture_init(&f)
#define MAIN	"etc/bpfpush/bpfpush.conf"
#define DROP_IN(root, name) root "/bpfpush/bpfpush.conf.d/" name

static void without_a_file_there_are_defaults(void **state)
{
	FIXTURE;
	fixture_read(&f, NULL);
	assert_mistakes(&f, "");
	assert_int_equal(f.config->agent.interval_ns, 10000000000);
	assert_int_equal(f.config->agent.log_level, 2);
	assert_int_equal(f.config->agent.series_limit, 100000);
	assert_int_equal(f.config->agent.shutdown_timeout_ns, 10000000000);
	assert_int_equal(f.config->agent.collector_directories.n_items, 0);
	assert_int_equal(f.config->agent.collectors.n_items, 0);
	assert_true(f.config->agent.self_metrics);
	assert_int_equal(f.config->n_sections, 0);
	assert_int_equal(f.config->n_exporters, 0);
	assert_int_equal(f.config->n_files, 0);
	assert_string_equal(resource_find(&f.config->resource, "service.name"), "bpfpush");
}

static void agent_and_resource_are_read(void **state)
{
	const struct config_agent *agent;
	FIXTURE;

	tree_write(&f.tree, MAIN,
		   "[agent]\ninterval = 1m30s\nlog_level = debug\nseries_limit = 50\nshutdown_timeout = 3s\n"
		   "collector_directory = /a\ncollector_directory = /b, c\ncollectors = x, y\ncollectors = z\n"
		   "self_metrics = no\nx-note = anything\n"
		   "[resource]\nservice.name = web\ndeployment.environment.name = production\nhost.name =\n"
		   "[x-other thing]\nkey = 1\n");
	fixture_read(&f, NULL);
	assert_mistakes(&f, "");
	agent = &f.config->agent;
	assert_int_equal(agent->interval_ns, 90000000000);
	assert_int_equal(agent->log_level, 3);
	assert_int_equal(agent->series_limit, 50);
	assert_int_equal(agent->shutdown_timeout_ns, 3000000000);
	assert_int_equal(agent->collector_directories.n_items, 2);
	assert_string_equal(agent->collector_directories.items[1], "/b, c");
	assert_int_equal(agent->collectors.n_items, 3);
	assert_string_equal(agent->collectors.items[2], "z");
	assert_false(agent->self_metrics);
	assert_string_equal(resource_find(&f.config->resource, "service.name"), "web");
	assert_string_equal(resource_find(&f.config->resource, "deployment.environment.name"), "production");
	assert_null(resource_find(&f.config->resource, "host.name"));
	assert_null(resource_find(&f.config->resource, "host.id"));
}

static void collectors_and_exporters_are_read(void **state)
{
	const struct config_section *collector;
	const struct post_options *options;
	FIXTURE;

	tree_write(&f.tree, MAIN,
		   "[collector x]\nmin_ns = 5\nenabled = no\nx-note = 1\n[collector y]\n"
		   "[exporter one]\ntype = otlp\ntimeout = 2s\nheader = A: b\nheader = C: d\n"
		   "[exporter two]\ntype = console\n");
	fixture_read(&f, NULL);
	assert_mistakes(&f, "");
	collector = config_find_section(f.config, "collector", "x");
	assert_non_null(collector);
	assert_false(collector->is_enabled);
	assert_int_equal(collector->given.line, 1);
	assert_int_equal(collector->given.n, 1);
	assert_string_equal(collector->given.items[0].key, "min_ns");
	assert_string_equal(collector->given.items[0].value, "5");
	assert_int_equal(collector->given.items[0].line, 2);
	assert_string_equal(collector->given.items[0].path, tree_path(&f.tree, MAIN));
	assert_true(config_find_section(f.config, "collector", "y")->is_enabled);
	assert_null(config_find_section(f.config, "collector", "z"));

	assert_int_equal(f.config->n_exporters, 2);
	assert_string_equal(f.config->exporters[0].name, "one");
	assert_ptr_equal(f.config->exporters[0].ops, &post_exporter);
	options = f.config->exporters[0].options;
	assert_string_equal(options->url, "http://localhost");
	assert_int_equal(options->timeout_ns, 2000000000);
	assert_int_equal(options->headers.n_items, 2);
	assert_ptr_equal(f.config->exporters[1].ops, &print_exporter);
}

static void drop_ins_are_read_in_order_of_names(void **state)
{
	FIXTURE;

	tree_write(&f.tree, MAIN, "[agent]\ninterval = 1s\ncollectors = a\n[collector a]\np = 1\nq = 1\n"
				  "[exporter o]\ntype = console\n");
	tree_write(&f.tree, DROP_IN("lib", "10-x.conf"), "[agent]\ninterval = 2s\nseries_limit = 10\n");
	tree_write(&f.tree, DROP_IN("run", "20-x.conf"), "[agent]\ninterval = 3s\ncollectors = b\n[collector a]\np = 2\n");
	tree_write(&f.tree, DROP_IN("etc", "15-x.conf"), "[agent]\ninterval = 4s\n[exporter o]\ntype = otlp\nheader = a\n");
	tree_write(&f.tree, DROP_IN("etc", "30-x.conf"), "[exporter o]\nheader = b\n[collector a]\nenabled = no\n");
	tree_write(&f.tree, DROP_IN("etc", "ignored.conf~"), "nonsense\n");
	tree_write(&f.tree, DROP_IN("etc", ".hidden.conf"), "nonsense\n");
	tree_write(&f.tree, DROP_IN("etc", ".conf"), "nonsense\n");
	fixture_read(&f, NULL);
	assert_mistakes(&f, "");
	assert_int_equal(f.config->n_files, 5);
	assert_int_equal(f.config->agent.interval_ns, 3000000000);
	assert_int_equal(f.config->agent.series_limit, 10);
	assert_int_equal(f.config->agent.collectors.n_items, 2);
	assert_int_equal(f.config->n_sections, 2);
	assert_int_equal(f.config->sections[0].given.n, 3);
	assert_string_equal(f.config->sections[0].given.items[2].value, "2");
	assert_int_equal(f.config->sections[0].given.items[2].line, 5);
	assert_false(f.config->sections[0].is_enabled);
	assert_int_equal(f.config->n_exporters, 1);
	assert_ptr_equal(f.config->exporters[0].ops, &post_exporter);
	assert_int_equal(((struct post_options *)f.config->exporters[0].options)->headers.n_items, 2);

	/* An empty value begins a list anew. */
	tree_write(&f.tree, DROP_IN("etc", "40.conf"), "[agent]\ncollectors =\ncollectors = c\n");
	fixture_read(&f, NULL);
	assert_int_equal(f.config->agent.collectors.n_items, 1);
	assert_string_equal(f.config->agent.collectors.items[0], "c");
}

static void stronger_places_mask_weaker_ones(void **state)
{
	FIXTURE;

	tree_write(&f.tree, "lib/bpfpush/bpfpush.conf", "[agent]\ninterval = 7s\n");
	fixture_read(&f, NULL);
	assert_int_equal(f.config->agent.interval_ns, 7000000000);
	tree_write(&f.tree, "run/bpfpush/bpfpush.conf", "[agent]\nseries_limit = 7\n");
	fixture_read(&f, NULL);
	assert_int_equal(f.config->agent.interval_ns, 10000000000);
	assert_int_equal(f.config->agent.series_limit, 7);
	tree_link(&f.tree, MAIN, "/dev/null");
	fixture_read(&f, NULL);
	assert_int_equal(f.config->agent.series_limit, 100000);

	tree_write(&f.tree, DROP_IN("lib", "a.conf"), "[agent]\ninterval = 2s\n");
	tree_write(&f.tree, DROP_IN("run", "a.conf"), "[agent]\ninterval = 3s\n");
	tree_write(&f.tree, DROP_IN("lib", "b.conf"), "[agent]\ninterval = 4s\n");
	tree_link(&f.tree, DROP_IN("etc", "b.conf"), "/dev/null");
	fixture_read(&f, NULL);
	assert_mistakes(&f, "");
	assert_int_equal(f.config->agent.interval_ns, 3000000000);
}

static void mistakes_of_all_files_are_told(void **state)
{
	FIXTURE;

	tree_write(&f.tree, MAIN,
		   "[agnet]\ninterval = 1\n[agent x]\ninterval = 1\n[agent]\nintervall = 5s\ninterval = 5\n"
		   "collector_directory = x\n[collector]\na = b\n[collector .x]\n");
	tree_write(&f.tree, DROP_IN("run", "a.conf"),
		   "[agent]\ninterval = 2s\ninterval = 3s\n[agent]\n[collector a]\nx = 1\nx = 2\n[resource]\nA..b = 1\n"
		   "service.name =\n[exporter e]\nurl = ftp://x\n[exporter f]\ntype = otpl\n[exporter g]\ntype = otlp\n"
		   "url = ftp://x\ntimeout = 1s\ntimeout = 2s\nkey_file = x\n[exporter h]\ntype = otlp\ntype = console\n"
		   "key_file = x\n");
	fixture_read(&f, NULL);
	assert_mistakes(&f,
		"etc/bpfpush/bpfpush.conf:1: unknown section \"agnet\": did you mean \"agent\"?\n"
		"etc/bpfpush/bpfpush.conf:3: [agent x]: there is only one: write [agent]\n"
		"etc/bpfpush/bpfpush.conf:6: unknown key \"intervall\": did you mean \"interval\"?\n"
		"etc/bpfpush/bpfpush.conf:7: interval: \"5\" needs a unit: write 5s (a duration is written like 10s, 500ms or 1m30s)\n"
		"etc/bpfpush/bpfpush.conf:8: collector_directory: a directory begins with \"/\"\n"
		"etc/bpfpush/bpfpush.conf:9: [collector] needs a name: write [collector NAME]\n"
		"etc/bpfpush/bpfpush.conf:11: [collector .x]: a name consists of A-Z a-z 0-9 _ . - and does not begin with . or -\n"
		"run/bpfpush/bpfpush.conf.d/a.conf:3: interval: already set on line 2\n"
		"run/bpfpush/bpfpush.conf.d/a.conf:4: [agent] already begins on line 1\n"
		"run/bpfpush/bpfpush.conf.d/a.conf:7: x: already set on line 6\n"
		"run/bpfpush/bpfpush.conf.d/a.conf:9: A..b: write a word before and after each dot of an attribute's name\n"
		"run/bpfpush/bpfpush.conf.d/a.conf:10: service.name: a service needs a name\n"
		"run/bpfpush/bpfpush.conf.d/a.conf:11: type is missing: there are otlp, console\n"
		"run/bpfpush/bpfpush.conf.d/a.conf:14: unknown type \"otpl\": did you mean \"otlp\"?\n"
		"run/bpfpush/bpfpush.conf.d/a.conf:17: url: a URL begins with http:// or https://\n"
		"run/bpfpush/bpfpush.conf.d/a.conf:19: timeout: already set on line 18\n"
		"run/bpfpush/bpfpush.conf.d/a.conf:23: type: already set on line 22\n"
		"run/bpfpush/bpfpush.conf.d/a.conf:24: key_file: a key without a certificate\n");
	assert_int_equal(f.diag.n_errors, 18);
	/* What is sound holds: a check can go on to the collectors. */
	assert_int_equal(f.config->agent.interval_ns, 2000000000);
	assert_int_equal(f.config->n_sections, 5);
	assert_int_equal(f.config->n_exporters, 2);
}

static void one_named_file_is_all_there_is(void **state)
{
	FIXTURE;
	struct config *config = NULL;

	tree_write(&f.tree, MAIN, "[agent]\ninterval = 2s\n");
	tree_write(&f.tree, DROP_IN("etc", "a.conf"), "[agent]\ninterval = 3s\n");
	assert_error(config_read(tree_path(&f.tree, "my.conf"), f.root_list, &f.diag, &config), ENOENT);
	assert_null(config);
	assert_mistakes(&f, "my.conf: cannot be read: No such file or directory\n");

	diag_done(&f.diag);
	tree_write(&f.tree, "my.conf", "[agent]\nseries_limit = 5\n");
	assert_ok(config_read(tree_path(&f.tree, "my.conf"), f.root_list, &f.diag, &f.config));
	assert_mistakes(&f, "");
	assert_int_equal(f.config->agent.interval_ns, 10000000000);
	assert_int_equal(f.config->agent.series_limit, 5);
}

static void what_is_no_file_is_told(void **state)
{
	FIXTURE;

	tree_write(&f.tree, DROP_IN("etc", "a.conf/x"), "");
	tree_link(&f.tree, DROP_IN("etc", "b.conf"), "nowhere");
	assert_ok(mkfifo(tree_path(&f.tree, DROP_IN("etc", "c.conf")), 0600));
	tree_link(&f.tree, DROP_IN("etc", "d.conf"), "/dev/zero");
	tree_write(&f.tree, DROP_IN("etc", "e.conf"), "[agent]\ninterval = 2s\n");
	tree_write(&f.tree, "run/bpfpush/bpfpush.conf.d", "");
	fixture_read(&f, NULL);
	assert_mistakes(&f,
		"run/bpfpush/bpfpush.conf.d: cannot be read: Not a directory\n"
		"etc/bpfpush/bpfpush.conf.d/a.conf: cannot be read: Is a directory\n"
		"etc/bpfpush/bpfpush.conf.d/b.conf: cannot be read: No such file or directory\n"
		"etc/bpfpush/bpfpush.conf.d/c.conf: cannot be read: it is a device or a pipe, not a file\n"
		"etc/bpfpush/bpfpush.conf.d/d.conf: cannot be read: it is a device or a pipe, not a file\n");
	assert_int_equal(f.config->agent.interval_ns, 2000000000);
}

/* Root may read everything. */
static void become(uid_t user)
{
	if (getuid() == 0)
		assert_ok(seteuid(user));
}

static void what_may_not_be_read_is_told(void **state)
{
	if (getuid() == 0 && (seteuid(65534) || seteuid(0))) {
		print_message("needs the right to become another user (CAP_SETUID)\n");
		skip();
	}
	FIXTURE;
	tree_write(&f.tree, MAIN, "[agent]\ninterval = 2s\n");
	assert_ok(chmod(tree_path(&f.tree, "."), 0755));
	assert_ok(chmod(tree_path(&f.tree, MAIN), 0));
	become(65534);
	fixture_read(&f, NULL);
	become(0);
	assert_mistakes(&f, "etc/bpfpush/bpfpush.conf: cannot be read: Permission denied\n");
	assert_ok(chmod(tree_path(&f.tree, "etc/bpfpush"), 0));
	become(65534);
	fixture_read(&f, NULL);
	become(0);
	assert_mistakes(&f, "etc/bpfpush/bpfpush.conf.d: cannot be read: Permission denied\n"
			    "etc/bpfpush/bpfpush.conf: cannot be read: Permission denied\n");
	assert_ok(chmod(tree_path(&f.tree, "etc/bpfpush"), 0755));
	fixture_done(&f);
}

static void files_are_bounded_in_number_and_size(void **state)
{
	_cleanup_(freep) char *text = malloc((1 << 20) + 1);
	char name[64];
	FIXTURE;

	for (int i = 0; i < CONFIG_FILES_MAX + 3; i++) {
		snprintf(name, sizeof(name), DROP_IN("etc", "%03d.conf"), i);
		tree_write(&f.tree, name, "[agent]\ncollectors = a\n");
	}
	memset(text, '\n', (1 << 20) + 1);
	tree_write_bytes(&f.tree, DROP_IN("etc", "000.conf"), text, (1 << 20) + 1);
	fixture_read(&f, NULL);
	assert_mistakes(&f,
		"etc/bpfpush/bpfpush.conf.d/000.conf: is larger than 1 MiB, which is too large for a configuration file\n"
		"etc/bpfpush/bpfpush.conf.d/064.conf: more than 64 files: this one and those after it are not read\n");
	assert_int_equal(f.config->agent.collectors.n_items, 63);
}

static void standard_variables_rank_below_the_files(void **state)
{
	static const char *const environment[] = {
		"OTEL_METRIC_EXPORT_INTERVAL=5000", "OTEL_LOG_LEVEL=WARN",
		"OTEL_SERVICE_NAME=from-env", "OTEL_RESOURCE_ATTRIBUTES=service.name=x,team=a,host.name=b",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://h:4318", "TEST_TIMEOUT=7s", NULL,
	};
	FIXTURE;

	fixture_read(&f, environment);
	assert_mistakes(&f, "");
	assert_string_equal(buf_text(&f.config->warnings.text), "");
	assert_int_equal(f.config->agent.interval_ns, 5000000000);
	assert_int_equal(f.config->agent.log_level, 1);
	assert_string_equal(resource_find(&f.config->resource, "service.name"), "from-env");
	assert_string_equal(resource_find(&f.config->resource, "team"), "a");
	assert_string_equal(resource_find(&f.config->resource, "host.name"), "b");
	assert_int_equal(f.config->n_exporters, 1);
	assert_string_equal(f.config->exporters[0].name, "otlp");
	assert_string_equal(f.config->exporters[0].path, "OTEL_EXPORTER_OTLP_ENDPOINT");
	assert_int_equal(((struct post_options *)f.config->exporters[0].options)->timeout_ns, 7000000000);

	tree_write(&f.tree, MAIN, "[agent]\ninterval = 20s\nlog_level = error\n[resource]\nservice.name = file\nteam =\n"
				  "[exporter p]\ntype = console\n[exporter q]\ntype = otlp\ntimeout = 3s\n");
	fixture_read(&f, environment);
	assert_int_equal(f.config->agent.interval_ns, 20000000000);
	assert_int_equal(f.config->agent.log_level, 0);
	assert_string_equal(resource_find(&f.config->resource, "service.name"), "file");
	assert_null(resource_find(&f.config->resource, "team"));
	assert_int_equal(f.config->n_exporters, 2);
	assert_int_equal(((struct post_options *)f.config->exporters[1].options)->timeout_ns, 3000000000);
}

static void unknown_values_of_variables_are_ignored_with_a_warning(void **state)
{
	static const char *const environment[] = {
		"OTEL_METRIC_EXPORT_INTERVAL=soon", "OTEL_LOG_LEVEL=loud", "OTEL_RESOURCE_ATTRIBUTES=a=1,b",
		"OTEL_METRICS_EXPORTER=prometheus,console", "OTEL_CONFIG_FILE=/x", "OTEL_SERVICE_NAME=", NULL,
	};
	FIXTURE;

	fixture_read(&f, environment);
	assert_mistakes(&f, "");
	assert_string_equal(buf_text(&f.config->warnings.text),
		"OTEL_CONFIG_FILE: is ignored: bpfpush has its own configuration files\n"
		"OTEL_METRIC_EXPORT_INTERVAL: \"soon\" is not a number of milliseconds: ignored\n"
		"OTEL_LOG_LEVEL: \"loud\" is not debug, info, warn or error: ignored\n"
		"OTEL_RESOURCE_ATTRIBUTES: is not name=value,name=value with %2C and %3D for \",\" and \"=\" in values: ignored\n"
		"OTEL_METRICS_EXPORTER: unknown exporter \"prometheus\": ignored\n");
	assert_int_equal(f.config->agent.interval_ns, 10000000000);
	assert_string_equal(resource_find(&f.config->resource, "service.name"), "bpfpush");
	assert_int_equal(f.config->n_exporters, 1);
	assert_string_equal(f.config->exporters[0].name, "console");

	static const char *const too_often[] = { "OTEL_METRIC_EXPORT_INTERVAL=10", "TEST_TIMEOUT=soon",
						 "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://x", NULL };
	fixture_read(&f, too_often);
	assert_string_equal(buf_text(&f.config->warnings.text),
		"OTEL_METRIC_EXPORT_INTERVAL: interval: \"10ms\" is too small: the minimum is 1s\n"
		"TEST_TIMEOUT: timeout: \"soon\" is not a duration: write it like 10s, 500ms or 1m30s\n");
	assert_int_equal(f.config->n_exporters, 1);
}

static void exporters_can_be_switched_off(void **state)
{
	static const char *const disabled[] = { "OTEL_SDK_DISABLED=True", "OTEL_EXPORTER_OTLP_ENDPOINT=http://h", NULL };
	static const char *const none[] = { "OTEL_METRICS_EXPORTER=none", "OTEL_EXPORTER_OTLP_ENDPOINT=http://h", NULL };
	static const char *const not_disabled[] = { "OTEL_SDK_DISABLED=1", NULL };
	FIXTURE;

	fixture_read(&f, NULL);
	assert_false(f.config->is_export_off);
	fixture_read(&f, none);
	assert_int_equal(f.config->n_exporters, 0);
	assert_true(f.config->is_export_off);
	tree_write(&f.tree, MAIN, "[exporter a]\ntype = console\n[exporter b]\ntype = otlp\nenabled = no\n"
				  "[exporter c]\ntype = otlp\nenabled = no\ntimeout = x\n");
	fixture_read(&f, not_disabled);
	assert_int_equal(f.config->n_exporters, 1);
	assert_string_equal(f.config->exporters[0].name, "a");
	assert_mistakes(&f, "etc/bpfpush/bpfpush.conf:9: timeout: \"x\" is not a duration: write it like 10s, 500ms or 1m30s\n");
	assert_false(f.config->is_export_off);
	fixture_read(&f, disabled);
	assert_int_equal(f.config->n_exporters, 0);
	assert_true(f.config->is_export_off);
	assert_string_equal(buf_text(&f.config->warnings.text), "OTEL_SDK_DISABLED: is true: nothing is exported\n");
	tree_write(&f.tree, MAIN, "[exporter a]\ntype = console\nenabled = no\n");
	fixture_read(&f, NULL);
	assert_int_equal(f.config->n_exporters, 0);
	assert_true(f.config->is_export_off);
}

static void exporters_that_send_the_same_twice_are_warned_of(void **state)
{
	FIXTURE;
	_cleanup_(buf_done) struct buf want = BUF_INIT;

	tree_write(&f.tree, MAIN, "[exporter a]\ntype = otlp\nendpoint = x\n[exporter b]\ntype = otlp\nendpoint = y\n"
				  "[exporter c]\ntype = otlp\nendpoint = x\nheader = Tenant: c\n"
				  "[exporter d]\ntype = otlp\nendpoint = x\nenabled = no\n"
				  "[exporter e]\ntype = console\n[exporter f]\ntype = console\n");
	fixture_read(&f, NULL);
	assert_mistakes(&f, "");
	assert_string_equal(buf_text(&f.config->warnings.text), "");
	tree_write(&f.tree, DROP_IN("run", "a.conf"), "[exporter b]\nendpoint = x\n");
	fixture_read(&f, NULL);
	buf_printf(&want, "%s:1: exporters a and b push to the same endpoint: it gets every number twice\n",
		   tree_path(&f.tree, DROP_IN("run", "a.conf")));
	assert_string_equal(buf_text(&f.config->warnings.text), buf_text(&want));
	/* A URL that is refused is not the default one. */
	tree_write(&f.tree, DROP_IN("run", "a.conf"), "[exporter s]\ntype = otlp\n[exporter t]\ntype = otlp\nurl = gopher\n");
	fixture_read(&f, NULL);
	assert_int_equal(f.diag.n_errors, 1);
	assert_string_equal(buf_text(&f.config->warnings.text), "");
	tree_write(&f.tree, DROP_IN("run", "a.conf"), "[exporter b]\nendpoint = x\n");
	/* Once for each, and not for each pair. */
	tree_write(&f.tree, DROP_IN("run", "b.conf"), "[exporter g]\ntype = otlp\nendpoint = x\n");
	fixture_read(&f, NULL);
	buf_printf(&want, "%s:1: exporters a and g push to the same endpoint: it gets every number twice\n",
		   tree_path(&f.tree, DROP_IN("run", "b.conf")));
	assert_string_equal(buf_text(&f.config->warnings.text), buf_text(&want));
}

static void exporters_that_append_to_one_file_are_warned_of(void **state)
{
	FIXTURE;
	_cleanup_(buf_done) struct buf want = BUF_INIT;

	tree_write(&f.tree, MAIN, "[exporter a]\ntype = console\npath = /tmp/x\n[exporter b]\ntype = console\npath = /tmp/y\n"
				  "[exporter c]\ntype = console\npath = /tmp/x\n[exporter d]\ntype = console\n"
				  "[exporter e]\ntype = console\npath = -\n");
	fixture_read(&f, NULL);
	assert_mistakes(&f, "");
	buf_printf(&want, "%s:7: exporters a and c append to the same file, /tmp/x: give each its own path\n",
		   tree_path(&f.tree, MAIN));
	assert_string_equal(buf_text(&f.config->warnings.text), buf_text(&want));
}

static void no_memory_is_told_and_nothing_leaks(void **state)
{
	FIXTURE;

	assert_ok(setenv("OTEL_RESOURCE_ATTRIBUTES", "a=1,b", true) || setenv("OTEL_LOG_LEVEL", "x", true));
	tree_write(&f.tree, MAIN, "[agent]\ncollectors = a, b\nintervall = 1\n[resource]\na = b\n"
				  "[collector a]\nx = 1\n[exporter o]\ntype = otlp\nheader = A: b\nurl = http://x\n"
				  "[exporter p]\ntype = otlp\n[exporter q]\n");
	tree_write(&f.tree, DROP_IN("run", "a.conf"), "[exporter p]\nenabled = no\n[collector b]\n");
	assert_survives_failing_allocations(config_read(NULL, f.root_list, &f.diag, &f.config), {
		f.config = config_free(f.config);
		diag_done(&f.diag);
	});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_file_there_are_defaults),
		cmocka_unit_test(agent_and_resource_are_read),
		cmocka_unit_test(collectors_and_exporters_are_read),
		cmocka_unit_test(drop_ins_are_read_in_order_of_names),
		cmocka_unit_test(stronger_places_mask_weaker_ones),
		cmocka_unit_test(mistakes_of_all_files_are_told),
		cmocka_unit_test(one_named_file_is_all_there_is),
		cmocka_unit_test(what_is_no_file_is_told),
		cmocka_unit_test(what_may_not_be_read_is_told),
		cmocka_unit_test(files_are_bounded_in_number_and_size),
		cmocka_unit_test(standard_variables_rank_below_the_files),
		cmocka_unit_test(unknown_values_of_variables_are_ignored_with_a_warning),
		cmocka_unit_test(exporters_can_be_switched_off),
		cmocka_unit_test(exporters_that_send_the_same_twice_are_warned_of),
		cmocka_unit_test(exporters_that_append_to_one_file_are_warned_of),
		cmocka_unit_test(no_memory_is_told_and_nothing_leaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
