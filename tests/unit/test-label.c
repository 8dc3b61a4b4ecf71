/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "btf-build.h"
#include "collector/label/label.h"

static const struct label_choice choice;

struct fixture {
	struct labels *labels;
	struct label_context context;
	struct attributes attributes;
};

static void setup(struct fixture *f)
{
	*f = (struct fixture){ .context.process_names.fd = -1 };
	assert_ok(labels_new(1700000000000000000, &choice, &f->labels));
	f->context.labels = f->labels;
	attributes_init(&f->attributes);
}

static void teardown(struct fixture *f)
{
	labels_free(f->labels);
}

static struct field integer(const char *type_name, uint32_t size_bytes)
{
	return (struct field){ .name = (char *)"member", .type_name = type_name, .size_bytes = size_bytes };
}

static int add(struct fixture *f, const struct field *field, const void *raw)
{
	const struct key_label label = { label_type_find(field), &f->context, field, (char *)"given.name" };

	assert_non_null(label.type);
	return label_add(&label, raw, &f->attributes);
}

static bool is_gone(const struct fixture *f, const struct field *field, uint64_t value)
{
	const struct key_label label = { label_type_find(field), &f->context, field, NULL };

	return label_is_gone(&label, &value);
}

/* The text or number that value becomes; "": no attribute. */
static const char *label_of(struct fixture *f, struct field field, uint64_t value)
{
	static char text[300];

	attributes_init(&f->attributes);
	assert_in_range(add(f, &field, &value), 0, 1);
	if (!f->attributes.n)
		return "";
	if (f->attributes.items[0].type == ATTRIBUTE_TEXT)
		return f->attributes.items[0].text;
	snprintf(text, sizeof(text), "%lld", (long long)f->attributes.items[0].number);
	return text;
}

static void integers_are_numbers_of_their_width_and_sign(void **state)
{
	struct field signed_byte = integer("", 1), byte = integer("", 1), wide = integer("my_id", 8);
	struct fixture f;

	setup(&f);
	signed_byte.is_signed = true;
	assert_string_equal(label_of(&f, byte, 0xffff), "255");
	assert_string_equal(label_of(&f, signed_byte, 0xff), "-1");
	assert_string_equal(label_of(&f, signed_byte, 0x7f), "127");
	assert_string_equal(label_of(&f, wide, INT64_MAX), "9223372036854775807");
	assert_string_equal(label_of(&f, wide, 1ull << 63), "9223372036854775808");
	assert_string_equal(label_of(&f, wide, UINT64_MAX), "18446744073709551615");
	wide.is_signed = true;
	assert_string_equal(label_of(&f, wide, UINT64_MAX), "-1");
	assert_string_equal(label_of(&f, byte, 0), "0");
	assert_string_equal(f.attributes.items[0].name, "given.name");
	teardown(&f);
}

static void errors_have_their_names_and_none_has_no_attribute(void **state)
{
	struct field field = integer("lbl_errno", 4);
	struct fixture f;

	setup(&f);
	assert_string_equal(label_of(&f, field, 2), "ENOENT");
	assert_string_equal(label_of(&f, field, 11), "EAGAIN");
	assert_string_equal(label_of(&f, field, 512), "512");
	assert_string_equal(label_of(&f, field, 0), "");
	assert_string_equal(label_type_find(&field)->default_name, "error.type");
	teardown(&f);
}

static void system_calls_have_names_in_both_abis(void **state)
{
	struct field field = integer("lbl_syscall", 4);
	struct fixture f;

	setup(&f);
	for (uint32_t i = 0; i < 400; i++)
		if (label_syscall_name(i))
			assert_int_equal(label_syscall_number(label_syscall_name(i), strlen(label_syscall_name(i))), i);
	assert_int_equal(label_syscall_number("opeat", 5), -1);
	assert_string_equal(label_of(&f, field, (uint32_t)label_syscall_number("openat", 6)), "openat");
	assert_string_equal(label_of(&f, field, 100000), "100000");
	assert_string_equal(label_of(&f, field, 0x80000000u + 100000), "compat_100000");
	assert_string_equal(label_of(&f, field, 0x7fffffff), "unknown");
	assert_string_equal(label_of(&f, field, 0xffffffff), "compat_unknown");
#ifdef __x86_64__
	assert_string_equal(label_of(&f, field, 0), "read");
	assert_string_equal(label_of(&f, field, 0x80000000u + 1), "compat_exit");
#endif
	teardown(&f);
}

static void addresses_are_in_network_byte_order(void **state)
{
	static const uint8_t v6[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 };
	struct field ipv4 = integer("lbl_ipv4", 4), ipv6 = integer("lbl_ipv6", 16);
	struct fixture f;

	setup(&f);
	assert_string_equal(label_of(&f, ipv4, 0x0100007f), "127.0.0.1");
	assert_string_equal(label_of(&f, ipv4, 0), "0.0.0.0");
	ipv6.class = FIELD_BYTES;
	attributes_init(&f.attributes);
	assert_ok(add(&f, &ipv6, v6));
	assert_string_equal(f.attributes.items[0].text, "2001:db8::1");
	teardown(&f);
}

static void interfaces_and_devices_have_the_kernels_names_or_their_numbers(void **state)
{
	struct field ifindex = integer("lbl_ifindex", 4), dev = integer("lbl_dev", 4);
	struct fixture f;

	setup(&f);
	assert_string_equal(label_of(&f, ifindex, 1), "lo");
	assert_string_equal(label_of(&f, ifindex, 0x7ffffff0), "2147483632");
	assert_string_equal(label_of(&f, ifindex, 0), "");
	assert_string_equal(label_of(&f, dev, 4000u << 20 | 77), "4000:77");
	assert_string_equal(label_of(&f, dev, 0), "");
	teardown(&f);
}

static void a_text_ends_at_its_first_nul_or_with_its_room(void **state)
{
	struct field field = { .type_name = "", .class = FIELD_TEXT, .size_bytes = 4 };
	struct fixture f;

	setup(&f);
	assert_ok(add(&f, &field, "ab\0d"));
	assert_ok(add(&f, &field, "abcdefg"));
	assert_string_equal(f.attributes.items[0].text, "ab");
	assert_string_equal(f.attributes.items[1].text, "abcd");
	teardown(&f);
}

static void constants_are_names_and_none_is_no_attribute(void **state)
{
	struct field field = { .type_name = "", .class = FIELD_ENUM, .size_bytes = 4 };
	struct btf_types t;
	struct fixture f;

	setup(&f);
	btf_types_init(&t);
	field.type_id = (uint32_t)btf_made(btf__add_enum(t.btf, "direction", 4));
	assert_ok(btf__add_enum_value(t.btf, "DIRECTION_NONE", 0));
	assert_ok(btf__add_enum_value(t.btf, "DIRECTION_READ", 1));
	f.context.btf = t.btf;
	assert_string_equal(label_of(&f, field, 1), "read");
	assert_string_equal(label_of(&f, field, 0), "");
	assert_string_equal(label_of(&f, field, 9), "9");
	btf_types_done(&t);
	teardown(&f);
}

static void a_process_is_its_number_and_when_it_began(void **state)
{
	struct field field = integer("lbl_process", 8);
	uint64_t begun = 1048576ull * 1000, id = begun >> 20 << 22 | 4242;
	struct fixture f;

	setup(&f);
	assert_string_equal(label_of(&f, field, id), "4242");
	assert_int_equal(f.attributes.n, 2);
	assert_string_equal(f.attributes.items[0].name, "process.pid");
	assert_string_equal(f.attributes.items[1].name, "process.creation.time");
	assert_string_equal(f.attributes.items[1].text, "2023-11-14T22:13:21.048Z");
	assert_string_equal(label_of(&f, field, 0), "");
	assert_string_equal(label_of(&f, field, UINT64_MAX), "4194303");
	assert_int_equal(label_type_find(&field)->n_own, 3);
	teardown(&f);
}

/* When this process began, as the kernel side notes it: in units of 2^20 ns. */
static uint64_t own_start(void)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/self/stat", "re");
	unsigned long long ticks;
	char line[1024], *at;

	assert_non_null(fgets(line, sizeof(line), f));
	at = strrchr(line, ')');
	for (int field = 2; field < 22; field++)
		at = strchr(at + 1, ' ');
	assert_int_equal(sscanf(at, "%llu", &ticks), 1);
	return (ticks * (1000000000 / (unsigned long long)sysconf(_SC_CLK_TCK)) >> 20) + 1;
}

static void only_owners_end(void **state)
{
	struct field process = integer("lbl_process", 8), cgroup = integer("lbl_cgroup", 8), plain = integer("", 8);
	uint64_t self = own_start() << 22 | (uint64_t)getpid(), none = 0x3fffff;
	struct fixture f;

	setup(&f);
	assert_false(is_gone(&f, &process, 0));
	assert_false(is_gone(&f, &process, self));
	assert_true(is_gone(&f, &process, none));
	assert_false(is_gone(&f, &cgroup, 0));
	assert_false(is_gone(&f, &plain, none));
	teardown(&f);
}

static void a_process_whose_id_is_in_use_again_is_gone(void **state)
{
	struct field process = integer("lbl_process", 8);
	uint64_t start = own_start(), self = (uint64_t)getpid();
	struct fixture f;

	setup(&f);
	assert_false(is_gone(&f, &process, start << 22 | self));
	assert_true(is_gone(&f, &process, (start - 30) << 22 | self)); /* three ticks before */
	assert_true(is_gone(&f, &process, (start + 30) << 22 | self));
	teardown(&f);
}

/* hidepid=2: /proc shows no process of another user. */
static void a_hidden_process_is_not_gone(void **state)
{
	struct field process = integer("lbl_process", 8);
	int status;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	pid = fork();
	if (!pid) {
		struct fixture f;

		setup(&f);
		if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("proc", "/proc", "proc", 0, "hidepid=2") || setgroups(0, NULL) ||
		    setgid(65534) || setuid(65534))
			_exit(77);
		_exit(access("/proc/1", F_OK) == 0 || is_gone(&f, &process, 1) ||
		      !is_gone(&f, &process, 0x3fffff));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_kernel_address_without_a_name_may_have_one_later(void **state)
{
	struct field field = integer("lbl_ksym", 8);
	uint64_t address = UINT64_MAX - 255, nobody = 0;
	struct fixture f;

	setup(&f);
	assert_int_equal(add(&f, &field, &address), 1);
	assert_string_equal(f.attributes.items[0].text, "0xffffffffffffff00");
	assert_int_equal(add(&f, &field, &nobody), 0);
	assert_int_equal(f.attributes.n, 1);
	teardown(&f);
}

static void a_cgroup_that_nobody_knows_is_unknown_and_no_cgroup_is_none(void **state)
{
	struct field field = integer("lbl_cgroup", 8);
	struct fixture f;

	setup(&f);
	assert_string_equal(label_of(&f, field, 1ull << 60), "unknown");
	assert_string_equal(f.attributes.items[0].name, "process.linux.cgroup");
	assert_string_equal(label_of(&f, field, 0), "");
	teardown(&f);
}

static void types_of_a_wrong_size_or_name_are_not_known(void **state)
{
	struct field narrow = integer("lbl_cgroup", 4), strange = integer("lbl_strange", 4), bytes = integer("", 16);

	assert_null(label_type_find(&narrow));
	assert_null(label_type_find(&strange));
	bytes.class = FIELD_BYTES;
	assert_null(label_type_find(&bytes));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers_are_numbers_of_their_width_and_sign),
		cmocka_unit_test(errors_have_their_names_and_none_has_no_attribute),
		cmocka_unit_test(system_calls_have_names_in_both_abis),
		cmocka_unit_test(addresses_are_in_network_byte_order),
		cmocka_unit_test(interfaces_and_devices_have_the_kernels_names_or_their_numbers),
		cmocka_unit_test(a_text_ends_at_its_first_nul_or_with_its_room),
		cmocka_unit_test(constants_are_names_and_none_is_no_attribute),
		cmocka_unit_test(a_process_is_its_number_and_when_it_began),
		cmocka_unit_test(only_owners_end),
		cmocka_unit_test(a_process_whose_id_is_in_use_again_is_gone),
		cmocka_unit_test(a_hidden_process_is_not_gone),
		cmocka_unit_test(a_kernel_address_without_a_name_may_have_one_later),
		cmocka_unit_test(a_cgroup_that_nobody_knows_is_unknown_and_no_cgroup_is_none),
		cmocka_unit_test(types_of_a_wrong_size_or_name_are_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
