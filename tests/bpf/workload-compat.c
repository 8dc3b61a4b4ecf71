/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload-compat: a program of 32-bit code on a 64-bit kernel, without a C library. Makes calls and uses a file.
 */

enum { /* of i386; <asm/unistd_32.h> may not be installed */
	CALL_READ = 3,
	CALL_WRITE = 4,
	CALL_OPEN = 5,
	CALL_UNLINK = 10,
	CALL_LSEEK = 19,
	CALL_GETPRIORITY = 96,
	CALL_FSYNC = 118,
	CALL_GETPGID = 132,
	CALL_EXIT_GROUP = 252,
};

#define GETPGID	    500
#define GETPRIORITY 300
#define WRITE	    200
#define READ	    100
#define WRITE_BYTES 33
#define READ_BYTES  11

#define TEXT_OF(number) #number
#define TEXT(number)	TEXT_OF(number)

static const char expected[] = "{\"getpgid\": " TEXT(GETPGID) ", \"getpriority\": " TEXT(GETPRIORITY) ", \"write\": " TEXT(WRITE)
	", \"read\": " TEXT(READ) ", \"write_size\": " TEXT(WRITE_BYTES) ", \"read_size\": " TEXT(READ_BYTES) "}\n";
static const char path[] = "/var/tmp/bpfpush-compat", absent[] = "/var/tmp/bpfpush-compat/absent";

enum { NO_PROCESS = 0x3ffffff, READ_WRITE_CREATE = 0102, STDOUT = 1, ESRCH = 3 };

static int call(int number, int a, int b, int c)
{
	int result;

	asm volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
	return result;
}

static void check(int is_right)
{
	if (!is_right)
		call(CALL_EXIT_GROUP, 1, 0, 0);
}

static void use_file(void)
{
	char buffer[WRITE_BYTES] = "";
	int fd = call(CALL_OPEN, (int)path, READ_WRITE_CREATE, 0600);

	check(fd >= 0);
	for (int i = 0; i < WRITE; i++)
		check(call(CALL_WRITE, fd, (int)buffer, WRITE_BYTES) == WRITE_BYTES);
	check(!call(CALL_LSEEK, fd, 0, 0));
	for (int i = 0; i < READ; i++)
		check(call(CALL_READ, fd, (int)buffer, READ_BYTES) == READ_BYTES);
	check(!call(CALL_FSYNC, fd, 0, 0));
	check(call(CALL_OPEN, (int)absent, 0, 0) < 0);
	check(!call(CALL_UNLINK, (int)path, 0, 0));
}

void _start(void);

void _start(void)
{
	for (int i = 0; i < GETPGID; i++)
		check(call(CALL_GETPGID, NO_PROCESS, 0, 0) == -ESRCH);
	for (int i = 0; i < GETPRIORITY; i++)
		check(call(CALL_GETPRIORITY, 0, 0, 0) > 0);
	use_file();
	check(call(CALL_WRITE, STDOUT, (int)expected, sizeof(expected) - 1) > 0); /* a pipe, not a file */
	call(CALL_EXIT_GROUP, 0, 0, 0);
}
