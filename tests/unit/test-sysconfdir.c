/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A build with another sysconfdir: the modules that use it are compiled again, with elsewhere/build-config.h.
 * SYSCONFDIR is a directory below the build directory.
 */
#include "test.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/collector-search.h"
#include "build-config.h"

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void the_configuration_is_read_from_sysconfdir(void **state)
{
	_cleanup_(config_freep) struct config *config = NULL;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;

	write_text(SYSCONFDIR "/bpfpush/bpfpush.conf", "[agent]\ninterval = 17s\n");
	assert_ok(config_read(NULL, NULL, &diag, &config));
	assert_string_equal(buf_text(&diag.text), "");
	assert_int_equal(config->agent.interval_ns, 17000000000);
}

static void own_collectors_are_found_in_sysconfdir(void **state)
{
	_cleanup_(collector_search_done) struct collector_search search = { 0 };
	_cleanup_(config_freep) struct config *config = NULL;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;

	write_text(SYSCONFDIR "/bpfpush/collectors/mine.conf", "");
	assert_ok(config_read("/dev/null", NULL, &diag, &config));
	assert_ok(collector_search(config, NULL, &diag, &search));
	assert_string_equal(search.wanted[search.n_wanted - 1].name, "mine");
	assert_string_equal(collector_search_find(&search, "mine"), SYSCONFDIR "/bpfpush/collectors");
}

static int make_directories(void **state)
{
	mkdir(SYSCONFDIR, 0755);
	mkdir(SYSCONFDIR "/bpfpush", 0755);
	mkdir(SYSCONFDIR "/bpfpush/collectors", 0755);
	return access(SYSCONFDIR "/bpfpush/collectors", W_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_configuration_is_read_from_sysconfdir),
		cmocka_unit_test(own_collectors_are_found_in_sysconfdir),
	};

	return cmocka_run_group_tests(tests, make_directories, NULL);
}
