/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "top/script.h"
#include "util/cleanup.h"

#define WORDS(text) text, sizeof(text)

static void an_interpreter_is_known_by_what_it_runs(void **state)
{
	static const struct {
		const char *executable, *words;
		size_t size;
		const char *script;
	} cases[] = {
		{ "python3.11", WORDS("python3.11\0/srv/app.py\0--port=80"), "app.py" },
		{ "python3", WORDS("/usr/bin/python3\0-u\0-W\0ignore\0app.py"), "app.py" },
		{ "python3", WORDS("python3\0-m\0http.server\0-b\0x"), "http.server" },
		{ "python3", WORDS("python3\0-Im\0http.server"), "http.server" },
		{ "python3", WORDS("python3\0-c\0import os"), NULL },
		{ "python3", WORDS("python3\0-Ic\0import os"), NULL },
		{ "python3", WORDS("python3"), NULL },
		{ "python3", WORDS("python3\0-m"), NULL },
		{ "python3", WORDS("python3\0-W"), NULL },
		{ "python3", WORDS("python3\0"), NULL },
		{ "pythonic", WORDS("pythonic\0app.py"), NULL },
		{ "bash", WORDS("/bin/bash\0-e\0/etc/run.sh"), "run.sh" },
		{ "bash", WORDS("-bash"), NULL },
		{ "bash", WORDS("bash\0-lc\0rm x"), NULL },
		{ "dash", WORDS("sh\0/etc/cron.daily/apt"), "apt" },
		{ "sh", WORDS("sh\0-o\0pipefail\0a/b"), "b" },
		{ "shadow", WORDS("shadow\0x"), NULL },
		{ "perl", WORDS("perl\0-ne\0print"), NULL },
		{ "perl5.36.0", WORDS("perl\0-w\0-I\0lib\0bin/x.pl"), "x.pl" },
		{ "ruby3.1", WORDS("ruby\0-rset\0app.rb"), "app.rb" },
		{ "node", WORDS("node\0--max-old-space-size=100\0-r\0x\0/srv/server.js"), "server.js" },
		{ "node_exporter", WORDS("node_exporter\0x"), NULL },
		{ "java", WORDS("java\0-Xmx512m\0-Xcomp\0-Da.b=c\0-cp\0/x:/y\0-jar\0/opt/app.jar"), "app.jar" },
		{ "java", WORDS("java\0-cp\0/x:/y\0org.example.Main\0-v"), "org.example.Main" },
		{ "php8.2", WORDS("php\0-d\0x=1\0-f\0/srv/x.php"), "x.php" },
		{ "php-fpm8.2", WORDS("php-fpm: pool www"), NULL },
		{ "python3", WORDS("python3\0/srv/"), "/srv/" },
		{ "", WORDS("\0"), NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *found = script_find(cases[i].executable, cases[i].words, cases[i].size);

		if (!found || !cases[i].script)
			assert_ptr_equal(found, cases[i].script);
		else
			assert_string_equal(found, cases[i].script);
	}
}

static void what_cannot_be_read_has_no_name(void **state)
{
	char buffer[100];

	/* This process is no interpreter, whatever it is called; and there is no process 0. */
	assert_null(script_of("test", getpid(), buffer, sizeof(buffer)));
	assert_null(script_of("python3", 0, buffer, sizeof(buffer)));
	assert_null(script_of("python3", -1, buffer, sizeof(buffer)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_interpreter_is_known_by_what_it_runs),
		cmocka_unit_test(what_cannot_be_read_has_no_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
