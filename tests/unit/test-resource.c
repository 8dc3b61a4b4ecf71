/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <sched.h>
#include <sys/utsname.h>
#include <systemd/sd-id128.h>
#include <unistd.h>

#include "alloc.h"
#include "build-config.h"
#include "config/resource.h"
#include "tree.h"

static void attributes_are_kept_in_order_of_names(void **state)
{
	_cleanup_(resource_done) struct resource resource = { 0 };

	assert_ok(resource_set(&resource, "m", "1"));
	assert_ok(resource_set(&resource, "a", "2"));
	assert_ok(resource_set(&resource, "z", "3"));
	assert_ok(resource_set(&resource, "m", "4"));
	assert_int_equal(resource.n, 3);
	assert_string_equal(resource.items[0].name, "a");
	assert_string_equal(resource.items[1].name, "m");
	assert_string_equal(resource.items[1].text, "4");
	assert_int_equal(resource.items[1].type, ATTRIBUTE_TEXT);
	assert_string_equal(resource.items[2].name, "z");
	assert_ok(resource_set(&resource, "a", ""));
	assert_ok(resource_set(&resource, "absent", ""));
	assert_int_equal(resource.n, 2);
	assert_null(resource_find(&resource, "a"));
	assert_string_equal(resource_find(&resource, "z"), "3");
}

static void their_number_is_bounded(void **state)
{
	_cleanup_(resource_done) struct resource resource = { 0 };
	char name[16];

	for (int i = 0; i < RESOURCE_ATTRIBUTES_MAX; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		assert_ok(resource_set(&resource, name, "x"));
	}
	assert_error(resource_set(&resource, "more", "x"), ENOSPC);
	assert_int_equal(resource.n, RESOURCE_ATTRIBUTES_MAX);
}

static void names_are_checked(void **state)
{
	static const char *const right[] = { "service.name", "k8s.cluster_name-1", "Team", "otel", "telemetry.sdk" };
	static const char *const wrong[] = { "", ".name", "1st", "-x", "a..b", "a.", "a b", "a/b", "\xc3\xa9t\xc3\xa9", "t\xc3\xa9",
					     "otel.scope", "telemetry.sdk.name" };

	for (size_t i = 0; i < ARRAY_SIZE(right); i++)
		assert_null(resource_complaint(right[i], "x"));
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_non_null(resource_complaint(wrong[i], "x"));
	assert_null(resource_complaint("team", ""));
	assert_non_null(resource_complaint("service.name", ""));
}

static void defaults_tell_of_this_machine(void **state)
{
	_cleanup_(resource_done) struct resource resource = { 0 };
	_cleanup_(tree_done) struct tree tree;
	struct utsname system;

	tree_init(&tree);
	const char *const roots[] = { tree_path(&tree, "etc"), tree_path(&tree, "lib"), NULL };

	tree_write(&tree, "lib/os-release", "PRETTY_NAME=\"x\"\nNAME=\"Debian GNU/Linux\"\nID=debian\nVERSION_ID='12'\n");
	assert_ok(uname(&system));
	assert_ok(resource_set_defaults(&resource, roots, NULL));
	assert_int_equal(resource.n, 7 + (resource_find(&resource, "service.instance.id") != NULL));
	assert_string_equal(resource_find(&resource, "service.name"), "bpfpush");
	assert_string_equal(resource_find(&resource, "service.version"), VERSION);
	assert_string_equal(resource_find(&resource, "host.name"), system.nodename);
	if (!strcmp(system.machine, "x86_64"))
		assert_string_equal(resource_find(&resource, "host.arch"), "amd64");
	assert_string_equal(resource_find(&resource, "os.type"), "linux");
	assert_string_equal(resource_find(&resource, "os.name"), "Debian GNU/Linux");
	assert_string_equal(resource_find(&resource, "os.version"), "12");
	assert_null(resource_find(&resource, "telemetry.sdk.name")); /* for SDKs */
}

static const char *instance(struct resource *resource, const char *config_path)
{
	assert_ok(resource_set_defaults(resource, (const char *const[]){ NULL }, config_path));
	return resource_find(resource, "service.instance.id");
}

static void an_instance_is_a_machine_with_a_configuration(void **state)
{
	_cleanup_(resource_done) struct resource service = { 0 }, again = { 0 }, clone = { 0 };
	_cleanup_(resource_done) struct resource first = { 0 }, second = { 0 }, same = { 0 };
	_cleanup_(tree_done) struct tree tree;
	char machine[SD_ID128_STRING_MAX];
	const char *expected;
	sd_id128_t id;

	if (sd_id128_get_machine(&id) < 0)
		skip(); /* this machine has no /etc/machine-id */
	sd_id128_to_string(id, machine);
	tree_init(&tree);
	tree_write(&tree, "one.conf", "");
	tree_write(&tree, "two.conf", "");
	expected = instance(&service, NULL);
	assert_string_equal(instance(&again, NULL), expected);
	assert_string_not_equal(instance(&first, tree_path(&tree, "one.conf")), expected);
	assert_string_not_equal(instance(&second, tree_path(&tree, "two.conf")),
				resource_find(&first, "service.instance.id"));
	assert_string_equal(instance(&same, tree_path(&tree, "./one.conf")),
			    resource_find(&first, "service.instance.id"));
	for (unsigned int i = 0; i < service.n; i++)
		assert_null(strstr(service.items[i].text, machine));
	/* A clone has the machine's id and another name. */
	if (!unshare(CLONE_NEWUTS) && !sethostname("clone", 5))
		assert_string_not_equal(instance(&clone, NULL), expected);
}

static void what_is_not_known_is_left_out(void **state)
{
	_cleanup_(resource_done) struct resource resource = { 0 };

	assert_ok(resource_set_defaults(&resource, (const char *const[]){ NULL }, NULL));
	assert_null(resource_find(&resource, "os.name"));
}

static void a_release_file_may_quote(void **state)
{
	_cleanup_(resource_done) struct resource resource = { 0 };
	_cleanup_(tree_done) struct tree tree;

	tree_init(&tree);
	const char *const roots[] = { tree_path(&tree, "etc"), NULL };

	tree_write(&tree, "etc/os-release", "VERSION_ID=3.1\\ beta\nNAME=\"An \\\"OS\\\"\x01\"x\n");
	assert_ok(resource_set_defaults(&resource, roots, NULL));
	assert_string_equal(resource_find(&resource, "os.name"), "An \"OS\"?");
	assert_string_equal(resource_find(&resource, "os.version"), "3.1 beta");
}

static void a_list_is_taken_whole_or_not_at_all(void **state)
{
	static const struct {
		const char *list;
		int error;
		const char *a, *b;
	} cases[] = {
		{ "a=1,b=2", 0, "1", "2" },
		{ " a = 1 , b=2, ", 0, "1", "2" },
		{ "", 0, "old", NULL },
		{ ",,a=1", 0, "1", NULL },
		{ "a=", 0, NULL, NULL },
		{ "a=x%2Cy%3dz%20%25,b=Gr%C3%BCn", 0, "x,y=z %", "Gr\xc3\xbcn" },
		{ "%61=1", 0, "1", NULL },
		{ "a=1,b=2,a=3", 0, "3", "2" },
		{ "a=1,b", EINVAL, "old", NULL },
		{ "a=1,=2", EINVAL, "old", NULL },
		{ "a=1=2", EINVAL, "old", NULL },
		{ "a=%", EINVAL, "old", NULL },
		{ "a=%4", EINVAL, "old", NULL },
		{ "a=%4g", EINVAL, "old", NULL },
		{ "a=%00", EINVAL, "old", NULL },
		{ "a=1,b=%FF", EINVAL, "old", NULL },
		{ "a=1,b=%0a", EINVAL, "old", NULL },
		{ "a=1,b=\xff", EINVAL, "old", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(resource_done) struct resource resource = { 0 };
		_cleanup_(diag_done) struct diag warnings = DIAG_INIT;
		const char *a, *b;
		int r;

		assert_ok(resource_set(&resource, "a", "old"));
		r = resource_set_list(&resource, cases[i].list, &warnings);
		assert_int_equal(warnings.n_errors, 0);
		a = resource_find(&resource, "a");
		b = resource_find(&resource, "b");
		if (r != -cases[i].error || strcmp(a ?: "", cases[i].a ?: "") || strcmp(b ?: "", cases[i].b ?: ""))
			fail_msg("\"%s\": %d, %s, %s", cases[i].list, r, a, b);
	}
}

static void of_a_list_what_a_file_may_not_set_is_left_out(void **state)
{
	static const char list[] = "telemetry.sdk.name=foo,a=1,otel.scope=1,a b=2,1a=3,.a=4,a%20c=5,service.name=,b=2";
	_cleanup_(resource_done) struct resource resource = { 0 };
	_cleanup_(diag_done) struct diag warnings = DIAG_INIT;

	assert_ok(resource_set(&resource, "service.name", "s"));
	assert_ok(resource_set_list(&resource, list, &warnings));
	assert_int_equal(resource.n, 3);
	assert_string_equal(resource_find(&resource, "a"), "1");
	assert_string_equal(resource_find(&resource, "b"), "2");
	assert_string_equal(resource_find(&resource, "service.name"), "s");
	assert_string_equal(buf_text(&warnings.text),
		"OTEL_RESOURCE_ATTRIBUTES: telemetry.sdk.name: bpfpush sets otel.* itself, and telemetry.sdk.* is for SDKs: ignored\n"
		"OTEL_RESOURCE_ATTRIBUTES: otel.scope: bpfpush sets otel.* itself, and telemetry.sdk.* is for SDKs: ignored\n"
		"OTEL_RESOURCE_ATTRIBUTES: a b: an attribute's name has only letters, digits and _ . -: ignored\n"
		"OTEL_RESOURCE_ATTRIBUTES: 1a: an attribute's name begins with a letter: ignored\n"
		"OTEL_RESOURCE_ATTRIBUTES: .a: an attribute's name begins with a letter: ignored\n"
		"OTEL_RESOURCE_ATTRIBUTES: a c: an attribute's name has only letters, digits and _ . -: ignored\n"
		"OTEL_RESOURCE_ATTRIBUTES: service.name: a service needs a name: ignored\n");
}

static int fill(struct resource *resource, const char *const *roots)
{
	int r = resource_set_defaults(resource, roots, NULL);

	return r < 0 ? r : resource_set_list(resource, "a=1,host.name=x", NULL);
}

static void no_memory_is_told_and_nothing_leaks(void **state)
{
	_cleanup_(tree_done) struct tree tree;
	struct resource resource = { 0 };

	tree_init(&tree);
	const char *const roots[] = { tree_path(&tree, "etc"), NULL };

	tree_write(&tree, "etc/os-release", "NAME=x\n");
	assert_survives_failing_allocations(fill(&resource, roots), resource_done(&resource));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attributes_are_kept_in_order_of_names),
		cmocka_unit_test(their_number_is_bounded),
		cmocka_unit_test(names_are_checked),
		cmocka_unit_test(defaults_tell_of_this_machine),
		cmocka_unit_test(an_instance_is_a_machine_with_a_configuration),
		cmocka_unit_test(what_is_not_known_is_left_out),
		cmocka_unit_test(a_release_file_may_quote),
		cmocka_unit_test(a_list_is_taken_whole_or_not_at_all),
		cmocka_unit_test(of_a_list_what_a_file_may_not_set_is_left_out),
		cmocka_unit_test(no_memory_is_told_and_nothing_leaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
