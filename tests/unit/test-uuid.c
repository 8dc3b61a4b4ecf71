/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>

#include "util/uuid.h"

static const char dns[] = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"; /* RFC 9562, 6.6 */

static void names_give_known_uuids(void **state)
{
	static const char *const known[][2] = {
		/* RFC 9562, A.4; the others were computed with Python's uuid.uuid5(). */
		{ "www.example.com", "2ed6657d-e927-568b-95e1-2665a8aea6a2" },
		{ "python.org", "886313e1-3b8a-5372-9b90-0c9aee199e5d" },
		{ "", "4ebd0208-8328-5d69-8c44-ec50939c0967" },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "fa465dc7-82d5-5c3b-a5bb-9b8f3132a2b7" },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "5824f981-4282-59d4-9716-acb6d741350e" },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "39f39c20-db47-5131-8879-62f8f67f9014" },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "660c273c-8a00-5941-b6f4-8d0afed88966" },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "7280cc42-274a-5c4a-91fc-ae23f853eeb7" },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "56596f37-716c-57a9-a735-2561f8608390" },
	};
	char text[UUID_TEXT_BYTES];

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		assert_ok(uuid_from_name(dns, known[i][0], text));
		assert_string_equal(text, known[i][1]);
	}
}

static void a_bad_namespace_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"6ba7b810-9dad-11d1-80b4-00c04fd430c",
		"6ba7b810-9dad-11d1-80b4-00c04fd430c88",
		"6ba7b8109dad-11d1-80b4-00c04fd430c8-",
		"6ba7b810-9dad-11d1-80b4-00c04fd430cg",
		"6BA7B810-9DAD-11D1-80B4-00C04FD430C8",
	};
	char text[UUID_TEXT_BYTES] = "as before";

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_error(uuid_from_name(bad[i], "x", text), EINVAL);
	assert_string_equal(text, "as before");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_give_known_uuids),
		cmocka_unit_test(a_bad_namespace_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
