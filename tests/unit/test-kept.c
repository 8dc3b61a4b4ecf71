/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/kept.h"

#define MANAGER "/tmp/bpfpush-test-kept-%d"

/* A file whose only content is text. */
static int file_with(const char *text)
{
	int fd = memfd_create("kept", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, text, strlen(text), 0), strlen(text));
	return fd;
}

static bool is_same_file(int left, int right)
{
	struct stat l, r;

	return !fstat(left, &l) && !fstat(right, &r) && l.st_ino == r.st_ino && l.st_dev == r.st_dev;
}

static int manager_fd;

static int be_manager(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), MANAGER, getpid());
	setenv("NOTIFY_SOCKET", address.sun_path, true);
	manager_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return bind(manager_fd, (struct sockaddr *)&address, sizeof(address));
}

static int be_none(void **state)
{
	unlink(getenv("NOTIFY_SOCKET"));
	unsetenv("NOTIFY_SOCKET");
	close(manager_fd);
	return 0;
}

/* The next message must be text. Returns the descriptor that came with it, or -1. */
static int expect_message(const char *text)
{
	char got[512] = { 0 }, control[CMSG_SPACE(sizeof(int))];
	struct iovec part = { got, sizeof(got) - 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *header;
	int fd = -1;

	assert_true(recvmsg(manager_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) > 0);
	assert_string_equal(got, text);
	header = CMSG_FIRSTHDR(&message);
	if (header)
		memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

static void the_manager_gets_what_is_kept(void **state)
{
	_cleanup_(closep) int first = file_with("1"), second = file_with("2"), got = -1, again = -1;
	_cleanup_(kept_freep) struct kept *kept = NULL;

	assert_int_equal(kept_new(&kept), 0);
	assert_int_equal(kept_put(kept, "a.1", first), 0);
	assert_true(is_same_file(kept_find(kept, "a.1"), first));
	got = expect_message("FDSTORE=1\nFDPOLL=0\nFDNAME=a.1\n");
	assert_true(is_same_file(got, first));

	assert_int_equal(kept_put(kept, "a.1", second), 0);
	assert_true(is_same_file(kept_find(kept, "a.1"), second));
	assert_int_equal(expect_message("FDSTOREREMOVE=1\nFDNAME=a.1\n"), -1);
	again = expect_message("FDSTORE=1\nFDPOLL=0\nFDNAME=a.1\n");
	assert_true(is_same_file(again, second));

	kept_drop(kept, NULL);
	assert_true(kept_has(kept, "a."));
	kept_drop(kept, "b.");
	assert_true(kept_has(kept, "a."));
	kept_drop(kept, "a.");
	assert_false(kept_has(kept, ""));
	assert_int_equal(kept_find(kept, "a.1"), -1);
	assert_int_equal(expect_message("FDSTOREREMOVE=1\nFDNAME=a.1\n"), -1);
	assert_int_equal(recv(manager_fd, &(char){ 0 }, 1, MSG_DONTWAIT), -1);
}

static void a_manager_without_room_is_noticed(void **state)
{
	_cleanup_(kept_freep) struct kept *kept = NULL;
	int got;

	assert_int_equal(kept_new(&kept), 0);
	assert_false(kept_is_cut(kept));
	kept_probe(kept);
	assert_false(kept_is_cut(kept));
	assert_int_equal(expect_message("FDSTOREREMOVE=1\nFDNAME=probe\n"), -1);
	got = expect_message("FDSTORE=1\nFDPOLL=0\nFDNAME=probe\n");
	assert_true(got >= 0);
	assert_false(kept_is_cut(kept));
	close(got);
	assert_true(kept_is_cut(kept));
}

static void a_manager_that_does_not_read_is_not_waited_for_twice(void **state)
{
	_cleanup_(closep) int file = file_with("");
	_cleanup_(kept_freep) struct kept *kept = NULL;

	assert_int_equal(kept_new(&kept), 0);
	for (int i = 0; i < 100000 && !kept_error(kept); i++)
		assert_int_equal(kept_put(kept, "a", file), 0);
	assert_int_equal(kept_error(kept), -EAGAIN);
	for (int i = 0; i < 100000; i++)
		assert_int_equal(kept_put(kept, "b", file), 0);
	assert_true(kept_find(kept, "b") >= 0);
}

/* In a process of its own, which has nothing else at these numbers. */
static bool takes_over(void)
{
	_cleanup_(kept_freep) struct kept *kept = NULL;
	char pid[16];

	if (dup2(file_with("1"), 43) < 0 || dup2(file_with("2"), 44) < 0 || dup2(43, 3) < 0 || dup2(44, 4) < 0 ||
	    dup2(44, 5) < 0)
		return false;
	snprintf(pid, sizeof(pid), "%d", getpid());
	setenv("LISTEN_PID", pid, true);
	setenv("LISTEN_FDS", "3", true);
	setenv("LISTEN_FDNAMES", "x:y:unused", true);
	if (kept_new(&kept) || kept_find(kept, "x") != 3 || kept_find(kept, "y") != 4 || kept_find(kept, "z") != -1 ||
	    kept_look(kept, "unused") != 5 || kept_look(kept, "z") != -1 ||
	    fcntl(3, F_GETFD) != FD_CLOEXEC || getenv("LISTEN_FDS") || getenv("LISTEN_PID") || getenv("LISTEN_FDNAMES"))
		return false;
	kept_drop(kept, NULL);
	return fcntl(5, F_GETFD) == -1 && fcntl(4, F_GETFD) == FD_CLOEXEC && is_same_file(3, 43);
}

static void it_takes_over_what_the_process_was_given(void **state)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(!takes_over());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void what_is_meant_for_another_process_is_not_taken(void **state)
{
	_cleanup_(kept_freep) struct kept *kept = NULL;

	setenv("LISTEN_PID", "1", true);
	setenv("LISTEN_FDS", "1", true);
	assert_int_equal(kept_new(&kept), 0);
	assert_false(kept_has(kept, ""));
	assert_null(getenv("LISTEN_FDS"));
}

/* The numbers of what is kept and of where it has to go overlap. */
static void exec_shell(int output)
{
	char *const argv[] = { "sh", "-c", "exec 2>/dev/null; echo $LISTEN_FDS $LISTEN_FDNAMES; [ $LISTEN_PID = $$ ] && cat <&4 && cat <&3; cat <&5",
			       NULL };
	struct kept *kept;

	dup2(output, 1);
	close(3);
	close(4);
	close(5);
	if (!kept_new(&kept) && !kept_put(kept, "a.one", file_with("1")) && !kept_put(kept, "a.two", file_with("2")))
		kept_exec(kept, argv);
}

static void a_program_that_is_executed_gets_it_and_nothing_else(void **state)
{
	int ends[2], status;
	char got[64] = { 0 };
	pid_t child;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	child = fork();
	if (!child) {
		exec_shell(ends[1]);
		_exit(3);
	}
	close(ends[1]);
	for (size_t n = 0; n < sizeof(got) - 1;) {
		ssize_t r = read(ends[0], got + n, sizeof(got) - 1 - n);

		if (r <= 0)
			break;
		n += (size_t)r;
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_string_equal(got, "2 a.one:a.two\n21");
	close(ends[0]);
}

static void without_the_program_it_says_so(void **state)
{
	pid_t child = fork();
	int status;

	if (!child) {
		struct kept *kept;

		_exit(kept_new(&kept) || kept_exec(kept, (char *const[]){ "/nonexistent", NULL }) != -ENOENT);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

#define MANY 1000

static const char *long_name(int i)
{
	static char name[256];

	snprintf(name, sizeof(name), "%0200d", i);
	return name;
}

/* In the program that is executed. */
static int find_many(void)
{
	_cleanup_(kept_freep) struct kept *kept = NULL;
	int n = 0;

	if (kept_new(&kept) || getenv("BPFPUSH_FDNAMES") || fcntl(3 + MANY, F_GETFD) >= 0)
		return 1;
	for (int i = 0; i < MANY; i++) {
		char byte = 0;
		int fd = kept_look(kept, long_name(i));

		n += fd >= 0 && pread(fd, &byte, 1, 0) == 1 && byte == (char)('0' + i % 10);
	}
	return n != MANY;
}

/* Together their names are longer than a string of an exec can be. */
static void any_number_goes_on(void **state)
{
	static const struct rlimit more = { 4 * MANY, 4 * MANY };
	char *const argv[] = { "/proc/self/exe", "find-many", NULL };
	struct kept *kept = NULL;
	pid_t child = fork();
	int status;

	if (!child) {
		bool is_ready = !setrlimit(RLIMIT_NOFILE, &more) && !kept_new(&kept);

		for (int i = 0; i < MANY && is_ready; i++)
			is_ready = !kept_put(kept, long_name(i), file_with((char[]){ (char)('0' + i % 10), 0 }));
		if (is_ready)
			kept_exec(kept, argv);
		_exit(2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* In a process of its own, as above. */
static bool goes_on(void)
{
	char *const argv[] = { "/nowhere/bpfpush", NULL };
	_cleanup_(kept_freep) struct kept *kept = NULL;

	if (dup2(file_with("1"), 43) < 0 || dup3(43, 3, O_CLOEXEC) < 0 || dup3(43, 4, O_CLOEXEC) < 0)
		return false;
	if (kept_new(&kept) || kept_put(kept, "a", file_with("2")) || kept_put(kept, "b", file_with("3")) || close(4) ||
	    kept_exec(kept, argv) != -ENOENT || getenv("LISTEN_FDS") || getenv("LISTEN_FDNAMES"))
		return false;
	return is_same_file(3, 43) && fcntl(3, F_GETFD) == FD_CLOEXEC && fcntl(4, F_GETFD) == -1 &&
	       kept_find(kept, "a") > 5 && kept_find(kept, "b") > 5 && !is_same_file(kept_find(kept, "a"), 43);
}

static void a_failed_exec_leaves_all_as_it_was(void **state)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(!goes_on());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_manager_gets_what_is_kept, be_manager, be_none),
		cmocka_unit_test_setup_teardown(a_manager_without_room_is_noticed, be_manager, be_none),
		cmocka_unit_test_setup_teardown(a_manager_that_does_not_read_is_not_waited_for_twice, be_manager,
						be_none),
		cmocka_unit_test(it_takes_over_what_the_process_was_given),
		cmocka_unit_test(what_is_meant_for_another_process_is_not_taken),
		cmocka_unit_test(a_program_that_is_executed_gets_it_and_nothing_else),
		cmocka_unit_test(any_number_goes_on),
		cmocka_unit_test(a_failed_exec_leaves_all_as_it_was),
		cmocka_unit_test(without_the_program_it_says_so),
	};

	if (argc > 1)
		return find_many();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
