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
#include "collector/label/ksym.h"
#include "collector/label/name.h"
#include "label-rig.h"

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
	struct field ifindex = integer("lbl_ifindex", 4), dev = integer("lbl_dev", 4), stat_dev = integer("lbl_stat_dev", 4);
	struct fixture f;

	setup(&f);
	assert_string_equal(label_of(&f, ifindex, 1), "lo");
	assert_string_equal(label_of(&f, ifindex, 0x7ffffff0), "2147483632");
	assert_string_equal(label_of(&f, ifindex, 0), "");
	assert_string_equal(label_of(&f, dev, 4000u << 20 | 77), "4000:77");
	assert_string_equal(label_of(&f, dev, 0), "");
	assert_string_equal(label_of(&f, stat_dev, 1 << 20 | 250 << 8 | 7), "250:263");
	teardown(&f);
}

static const char *disk_called(struct fixture *f, const char *name)
{
	struct field field = { .type_name = "lbl_disk", .class = FIELD_BYTES, .size_bytes = 32, .bucket_bytes = 1 };
	char text[32] = "";

	memcpy(text, name, strlen(name));
	attributes_init(&f->attributes);
	assert_ok(add(f, &field, text));
	return f->attributes.n ? f->attributes.items[0].text : "";
}

static void a_path_is_called_as_its_disk(void **state)
{
	static const char *const names[][2] = {
		{ "nvme0c0n1", "nvme0n1" }, { "nvme12c345n67", "nvme12n67" }, { "nvme0n1", "nvme0n1" }, { "sda", "sda" },
		{ "dm-0", "dm-0" }, { "", "" }, { "nvme0c0n1p1", "nvme0c0n1p1" }, { "nvme0cn1", "nvme0cn1" }, { "nvme", "nvme" },
		{ "nvme0c0n", "nvme0c0n" }, { "nvme0c0n1 ", "nvme0c0n1 " }, { "cciss!c0d0", "cciss!c0d0" },
	};
	struct fixture f;

	setup(&f);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_string_equal(disk_called(&f, names[i][0]), names[i][1]);
	teardown(&f);
}

static void a_text_ends_at_its_first_nul_or_with_its_room(void **state)
{
	struct field field = { .type_name = "", .class = FIELD_TEXT, .size_bytes = 4, .bucket_bytes = 1 };
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
	assert_string_equal(f.attributes.items[0].text, "unknown");
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

static struct field bytes(uint32_t size_bytes, uint32_t element_bytes)
{
	return (struct field){ .name = (char *)"member", .type_name = "", .class = FIELD_BYTES,
			       .size_bytes = size_bytes, .bucket_bytes = element_bytes };
}

static void the_descriptor_says_what_a_number_or_an_array_is(void **state)
{
	static const uint8_t mapped[16] = { [10] = 0xff, 0xff, 192, 0, 2, 1 }, v4[4] = { 192, 0, 2, 1 };
	struct field word = integer("u32", 4), wide = integer("", 8), octets = bytes(4, 1), address = bytes(16, 1);
	struct field narrow = integer("", 2);
	uint64_t number = 2, zero = 0, minus_two = 0xfffe, local = 0x0100007f;
	struct fixture f;

	setup(&f);
	assert_string_equal(text_as(&f, "errno", &word, &number, NULL), "ENOENT");
	narrow.is_signed = true;
	assert_string_equal(text_as(&f, "errno", &narrow, &minus_two, NULL), "ENOENT");
	assert_string_equal(text_as(&f, "signal", &word, &number, NULL), "SIGINT");
	assert_string_equal(text_as(&f, "signal", &word, &(int){ 29 }, NULL), "SIGIO");
	assert_string_equal(text_as(&f, "signal", &word, &(int){ 40 }, NULL), "40");
	assert_string_equal(text_as(&f, "integer", &word, &number, NULL), "2");
	assert_string_equal(text_as(&f, "hex", &word, &number, NULL), "0x2");
	assert_string_equal(text_as(&f, "bool", &word, &number, NULL), "true");
	assert_int_equal(f.attributes.items[0].type, ATTRIBUTE_FLAG);
	assert_string_equal(text_as(&f, "bool", &word, &zero, NULL), "false");
	assert_string_equal(text_as(&f, "ipv4", &octets, v4, NULL), "192.0.2.1");
	assert_string_equal(text_as(&f, "ipv4", &wide, &local, NULL), "127.0.0.1");
	assert_string_equal(text_as(&f, "ipv6", &address, mapped, NULL), "192.0.2.1");
	assert_string_equal(text_as(&f, "hex", &octets, v4, NULL), "c0000201");
	assert_string_equal(text_as(&f, "text", &octets, "ab\0d", NULL), "ab");
	assert_null(label_type_named("cgroup", &word));
	assert_null(label_type_named("errn", &word));
	assert_null(label_type_named("errnos", &word));
	assert_ptr_equal(label_type_named("cgroup_path", &wide), label_type_named("cgroup-path", &wide));
	assert_null(label_type_named("none", &word)->add);
	teardown(&f);
}

static void types_of_arrays_are_those_of_their_elements(void **state)
{
	struct field hex = bytes(4, 1), truth = integer("", 1);
	struct fixture f;

	setup(&f);
	hex.type_name = "lbl_hex";
	truth.is_bool = true;
	assert_string_equal(text_as(&f, NULL, &hex, "\x01\xab\0\0", NULL), "01ab0000");
	assert_string_equal(text_as(&f, NULL, &truth, "\x01", NULL), "true");
	teardown(&f);
}

static void domain_names_are_read_as_dns_sends_them(void **state)
{
	static const struct {
		const char *wire;
		uint32_t size;
		const char *text;
	} names[] = {
		{ "\3www\7Example\3COM\0....", 21, "www.example.com" },
		{ "\0....", 5, "." },
		{ "\1.\4a b\\\0", 8, "\\046.a\\032b\\092" },
		{ "\3a-_\1\xe9\0", 7, "a-_.\\233" },
		{ "\3abc", 4, "03616263" },		/* no end */
		{ "\4abc\0", 5, "0461626300" },		/* it would end after the last byte */
		{ "\xc0\x0c\0", 3, "c00c00" },		/* a reference to elsewhere in the message */
		{ "\1a", 2, "0161" },
	};
	struct fixture f;

	setup(&f);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct field field = bytes(names[i].size, 1);

		assert_string_equal(text_as(&f, "dname", &field, names[i].wire, NULL), names[i].text);
	}
	teardown(&f);
}

static const char *pci(const char *head, const char *below)
{
	static const char list[] = "# comment\n\n0001  First\n\t00ff  Its device\n\t\t0001 00ff  Its subsystem\n"
				   "00ff  Second\n\t0002  Another\nC 02  Network controller\n\t00  Ethernet controller\n";
	static char line[64];
	FILE *f = fmemopen((void *)list, sizeof(list) - 1, "r");
	const char *name = name_find_pci(f, head, below, line, sizeof(line));

	(void)fclose(f);
	return name;
}

static void pci_devices_are_found_below_their_vendors(void **state)
{
	struct field field = integer("", 4);
	uint64_t strange = 0xfffffff1;
	struct fixture f;

	assert_string_equal(pci("0001 ", ""), "First");
	assert_string_equal(pci("00ff ", ""), "Second");
	assert_string_equal(pci("0001 ", "00ff "), "Its device");
	assert_null(pci("0001 ", "0001 "));
	assert_null(pci("0001 ", "0002 "));
	assert_null(pci("0002 ", ""));
	assert_string_equal(pci("C 02 ", ""), "Network controller");
	assert_string_equal(pci("C 02 ", "00 "), "Ethernet controller");
	setup(&f);
	assert_string_equal(text_as(&f, "pci-device", &field, &strange, NULL), "0xfffffff1");
	strange = 0xfe;
	assert_string_equal(text_as(&f, "pci-class", &field, &strange, NULL), "0xfe");
	teardown(&f);
}

static void a_stack_has_a_function_in_each_line(void **state)
{
	const uint64_t frames[4] = { 0xffffffff81000010, 0xffffffff81000120, 5, 0 }, none[4] = { 0 };
	static const char symbols[] = "ffffffff81000000 T inner\nffffffff81000100 t outer\nffffffff81000200 T end\n";
	struct field field = bytes(sizeof(frames), 8);
	struct fixture f;

	setup(&f);
	fclosep(&f.labels->kallsyms);
	f.labels->kallsyms = fmemopen((void *)symbols, sizeof(symbols) - 1, "r");
	assert_string_equal(text_as(&f, "ksym", &field, frames, NULL), "inner\nouter\nunknown");
	assert_string_equal(label_type_named("ksym", &field)->default_name, "code.stacktrace");
	assert_string_equal(text_as(&f, "ksym", &field, none, NULL), "");
	teardown(&f);
}

static void write_again(FILE *f, const char *text)
{
	assert_ok(ftruncate(fileno(f), 0));
	assert_int_equal(pwrite(fileno(f), text, strlen(text), 0), strlen(text));
}

static void an_address_in_a_module_may_belong_to_another_one_later(void **state)
{
	struct field field = integer("lbl_ksym", 8);
	uint64_t address = 0xffffffffc0000010;
	struct fixture f;

	setup(&f);
	fclosep(&f.labels->kallsyms);
	fclosep(&f.labels->modules);
	f.labels->kallsyms = tmpfile();
	f.labels->modules = tmpfile();
	write_again(f.labels->kallsyms, "ffffffffc0000000 t first\t[one]\n");
	write_again(f.labels->modules, "one 4096 0 - Live 0xffffffffc0000000\n");
	assert_int_equal(add(&f, &field, &address), 1);
	assert_string_equal(f.attributes.items[0].text, "first");
	write_again(f.labels->kallsyms, "ffffffffc0000000 t second\t[two]\n");
	labels_begin(f.labels, 0);
	assert_string_equal(text_as(&f, NULL, &field, &address, NULL), "first"); /* the list is not read for nothing */
	write_again(f.labels->modules, "one 4096 1 - Live 0xffffffffc0000000\n");
	labels_begin(f.labels, 0);
	assert_string_equal(text_as(&f, NULL, &field, &address, NULL), "first"); /* nor because it is used more */
	write_again(f.labels->modules, "two 4096 0 - Live 0xffffffffc0000000\n");
	labels_begin(f.labels, 0);
	assert_string_equal(text_as(&f, NULL, &field, &address, NULL), "second");
	teardown(&f);
}

static void interfaces_and_devices_may_get_other_names(void **state)
{
	struct field ifindex = integer("lbl_ifindex", 4), dev = integer("lbl_dev", 4);
	uint32_t lo = 1, unknown = 4000u << 20 | 77;
	struct fixture f;

	setup(&f);
	assert_int_equal(add(&f, &ifindex, &lo), 1);
	assert_int_equal(add(&f, &dev, &unknown), 1);
	teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers_are_numbers_of_their_width_and_sign),
		cmocka_unit_test(errors_have_their_names_and_none_has_no_attribute),
		cmocka_unit_test(system_calls_have_names_in_both_abis),
		cmocka_unit_test(addresses_are_in_network_byte_order),
		cmocka_unit_test(interfaces_and_devices_have_the_kernels_names_or_their_numbers),
		cmocka_unit_test(a_path_is_called_as_its_disk),
		cmocka_unit_test(a_text_ends_at_its_first_nul_or_with_its_room),
		cmocka_unit_test(constants_are_names_and_none_is_no_attribute),
		cmocka_unit_test(a_process_is_its_number_and_when_it_began),
		cmocka_unit_test(only_owners_end),
		cmocka_unit_test(a_process_whose_id_is_in_use_again_is_gone),
		cmocka_unit_test(a_hidden_process_is_not_gone),
		cmocka_unit_test(a_kernel_address_without_a_name_may_have_one_later),
		cmocka_unit_test(a_cgroup_that_nobody_knows_is_unknown_and_no_cgroup_is_none),
		cmocka_unit_test(types_of_a_wrong_size_or_name_are_not_known),
		cmocka_unit_test(the_descriptor_says_what_a_number_or_an_array_is),
		cmocka_unit_test(types_of_arrays_are_those_of_their_elements),
		cmocka_unit_test(domain_names_are_read_as_dns_sends_them),
		cmocka_unit_test(pci_devices_are_found_below_their_vendors),
		cmocka_unit_test(a_stack_has_a_function_in_each_line),
		cmocka_unit_test(an_address_in_a_module_may_belong_to_another_one_later),
		cmocka_unit_test(interfaces_and_devices_may_get_other_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
