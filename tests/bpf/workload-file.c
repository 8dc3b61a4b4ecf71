/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file CGROUP.PROCS DIRECTORY: reads, writes, opens and flushes known numbers of regular files in
 * DIRECTORY in every way there is, and does the same to pipes, sockets, devices and the kernel's own
 * files, which are not to be counted.
 */
#include "workload.h"

#include <pthread.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { FILE_BYTES = 1 << 20, CHILDREN = 200, THREADS = 4 };

static struct {
	long read, read_bytes, read_EBADF, read_EFAULT;
	long write, write_bytes, write_EBADF, write_EFAULT;
	long open, open_ENOENT, open_EACCES, open_EEXIST, open_EINVAL;
	long fsync;
} done;

static char buffer[65536];
static char name[4096];
static const char *directory;

static char *path(const char *file)
{
	snprintf(name, sizeof(name), "%s/%s", directory, file);
	return name;
}

static void did_read(long bytes, long expected)
{
	workload_check(bytes == expected);
	done.read++;
	done.read_bytes += bytes;
}

static void did_write(long bytes, long expected)
{
	workload_check(bytes == expected);
	done.write++;
	done.write_bytes += bytes;
}

static int did_open(int fd)
{
	workload_check(fd >= 0);
	done.open++;
	return fd;
}

static void write_all_ways(int fd)
{
	struct iovec parts[3] = { { buffer, 100 }, { buffer, 1000 }, { buffer, 10 } };

	for (int i = 0; i < 300; i++)
		did_write(write(fd, buffer, 700 + i), 700 + i);
	for (int i = 0; i < 200; i++)
		did_write(writev(fd, parts, 3), 1110);
	for (int i = 0; i < 250; i++)
		did_write(pwrite(fd, buffer, 4096, i * 512), 4096);
	for (int i = 0; i < 150; i++)
		did_write(pwritev(fd, parts, 2, i), 1100);
	for (int i = 0; i < 50; i++)
		did_write(pwritev2(fd, parts, 1, i, 0), 100);
}

static void read_all_ways(int fd)
{
	struct iovec parts[3] = { { buffer, 100 }, { buffer, 1000 }, { buffer, 10 } };

	workload_check(!ftruncate(fd, FILE_BYTES) && !lseek(fd, 0, SEEK_SET));
	for (int i = 0; i < 300; i++)
		did_read(read(fd, buffer, 333), 333);
	for (int i = 0; i < 200; i++)
		did_read(readv(fd, parts, 3), 1110);
	for (int i = 0; i < 250; i++)
		did_read(pread(fd, buffer, 65536, i * 100), 65536);
	for (int i = 0; i < 150; i++)
		did_read(preadv(fd, parts, 2, i), 1100);
	for (int i = 0; i < 50; i++)
		did_read(preadv2(fd, parts, 1, i, 0), 100);
	did_read(pread(fd, buffer, 1000, FILE_BYTES - 10), 10); /* less than asked for */
	for (int i = 0; i < 20; i++)
		did_read(pread(fd, buffer, 1000, FILE_BYTES), 0); /* at the end */
}

static void drain(int fd, long bytes)
{
	for (long got; bytes > 0; bytes -= got)
		workload_check((got = read(fd, buffer, sizeof(buffer))) > 0);
}

/* From a file into a socket, a pipe and another file, and back. */
static void copy_all_ways(int fd, int copy)
{
	int pipes[2], sockets[2];
	off_t offset;
	loff_t at, to;

	workload_check(!pipe(pipes) && !socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	for (int i = 0; i < 40; i++) {
		offset = i * 1000;
		did_read(sendfile(sockets[0], fd, &offset, 3000), 3000);
		drain(sockets[1], 3000);
	}
	for (int i = 0; i < 30; i++) {
		offset = 0;
		did_read(sendfile(copy, fd, &offset, 5000), 5000);
		did_write(5000, 5000);
	}
	for (int i = 0; i < 20; i++) {
		at = i * 4096;
		did_read(splice(fd, &at, pipes[1], NULL, 4096, 0), 4096);
		to = i * 4096;
		did_write(splice(pipes[0], NULL, copy, &to, 4096, 0), 4096);
	}
	for (int i = 0; i < 10; i++) {
		at = i * 100, to = i * 200;
		did_read(copy_file_range(fd, &at, copy, &to, 777, 0), 777);
		did_write(777, 777);
	}
	for (int i = 0; i < 2; i++)
		close(pipes[i]), close(sockets[i]);
}

/* None of this is to be counted. */
static void use_what_is_no_file(void)
{
	int pipes[2], sockets[2];
	int zero = open("/dev/zero", O_RDWR), null = open("/dev/null", O_WRONLY);
	int status = open("/proc/self/stat", O_RDONLY), version = open("/sys/kernel/notes", O_RDONLY);
	int folder = open(directory, O_RDONLY | O_DIRECTORY);

	workload_check(!pipe(pipes) && !socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	workload_check(zero >= 0 && null >= 0 && status >= 0 && version >= 0 && folder >= 0);
	for (int i = 0; i < 200; i++) {
		workload_check(write(pipes[1], buffer, 500) == 500);
		workload_check(read(pipes[0], buffer, 500) == 500);
		workload_check(write(sockets[0], buffer, 500) == 500);
		workload_check(recv(sockets[1], buffer, 500, 0) == 500);
		workload_check(read(zero, buffer, 500) == 500 && write(null, buffer, 500) == 500);
		workload_check(sendfile(sockets[0], zero, NULL, 500) <= 500);
		workload_check(pread(status, buffer, 50, 0) == 50 && pread(version, buffer, 8, 0) == 8);
		workload_check(read(folder, buffer, 8) < 0 && errno == EISDIR);
		workload_check(read(9999, buffer, 8) < 0 && errno == EBADF);
		while (recv(sockets[1], buffer, 500, MSG_DONTWAIT) > 0)
			;
	}
	close(zero), close(null), close(status), close(version), close(folder);
	for (int i = 0; i < 2; i++)
		close(pipes[i]), close(sockets[i]);
}

static void open_all_ways(void)
{
	struct {
		unsigned long flags, mode, resolve;
	} how = { O_RDONLY, 0, 0 };

	for (int i = 0; i < 60; i++)
		close(did_open(syscall(SYS_openat, AT_FDCWD, path("data"), O_RDONLY)));
	for (int i = 0; i < 50; i++)
		close(did_open(syscall(SYS_openat2, AT_FDCWD, path("data"), &how, sizeof(how))));
#ifdef SYS_open
	for (int i = 0; i < 40; i++)
		close(did_open(syscall(SYS_open, path("data"), O_RDONLY)));
	for (int i = 0; i < 30; i++)
		close(did_open(syscall(SYS_creat, path("empty"), 0600)));
#endif
	for (int i = 0; i < 25; i++, done.open_ENOENT++)
		workload_check(open(path("missing"), O_RDONLY) < 0 && errno == ENOENT);
	for (int i = 0; i < 15; i++, done.open_EEXIST++)
		workload_check(open(path("data"), O_CREAT | O_EXCL, 0600) < 0 && errno == EEXIST);
}

/* Root may open anything, so this is done as somebody else. */
static void open_without_right(void)
{
	pid_t pid;
	int status;

	workload_check(!chmod(path("secret"), 0));
	workload_check((pid = fork()) >= 0);
	if (!pid) {
		workload_check(!syscall(SYS_setresuid, 65534, 65534, 65534));
		for (int i = 0; i < 35; i++)
			workload_check(open(path("secret"), O_RDONLY) < 0 && errno == EACCES);
		_exit(0);
	}
	workload_check(waitpid(pid, &status, 0) == pid && !status);
	done.open_EACCES += 35;
}

static void fail_on_files(int readable, int writable)
{
	char *volatile nowhere = (char *)8;

	for (int i = 0; i < 12; i++, done.read_EFAULT++)
		workload_check(pread(readable, nowhere, 10, 0) < 0 && errno == EFAULT);
	for (int i = 0; i < 13; i++, done.read_EBADF++)
		workload_check(read(writable, buffer, 10) < 0 && errno == EBADF);
	for (int i = 0; i < 14; i++, done.write_EBADF++)
		workload_check(write(readable, buffer, 10) < 0 && errno == EBADF);
	for (int i = 0; i < 11; i++, done.write_EFAULT++)
		workload_check(pwrite(writable, nowhere, 10, 0) < 0 && errno == EFAULT);
}

static void flush_all_ways(int fd)
{
	for (int i = 0; i < 3; i++) {
		workload_check(!fsync(fd) && !fdatasync(fd));
		workload_check(!sync_file_range(fd, 0, 4096, SYNC_FILE_RANGE_WRITE));
		done.fsync += 3;
	}
}

/* They end at once, and so long before anybody looks. */
static void use_in_children(int fd)
{
	for (int i = 0; i < CHILDREN; i++) {
		int status;
		pid_t pid = fork();

		workload_check(pid >= 0);
		if (!pid) {
			workload_check(pread(fd, buffer, 4000, 0) == 4000);
			workload_check(pwrite(fd, buffer, 300, 0) == 300);
			_exit(0);
		}
		workload_check(waitpid(pid, &status, 0) == pid && !status);
	}
	done.read += CHILDREN, done.read_bytes += CHILDREN * 4000;
	done.write += CHILDREN, done.write_bytes += CHILDREN * 300;
}

static void *use_in_thread(void *fd)
{
	static __thread char mine[500];

	for (int i = 0; i < 100; i++)
		workload_check(pread(*(int *)fd, mine, 500, 0) == 500);
	return NULL;
}

static void use_in_threads(int fd)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		workload_check(!pthread_create(&threads[i], NULL, use_in_thread, &fd));
	for (int i = 0; i < THREADS; i++)
		workload_check(!pthread_join(threads[i], NULL));
	done.read += THREADS * 100, done.read_bytes += THREADS * 100 * 500;
}

/* Past the page cache, so that bytes come from the device now; a file system may refuse. */
static void use_device(int fd)
{
	static char aligned[1 << 16] __attribute__((aligned(4096)));
	int direct = open(path("data"), O_RDONLY | O_DIRECT);

	workload_check(!fsync(fd));
	done.fsync++;
	if (direct < 0) {
		workload_check(errno == EINVAL);
		done.open_EINVAL++;
		return;
	}
	done.open++;
	for (int i = 0; i < 16; i++)
		did_read(pread(direct, aligned, sizeof(aligned), (off_t)i << 16), sizeof(aligned));
	close(direct);
}

/* The kernel's account of a dead process and of the children that it waited for. Its end may read a page, too. */
static void print_disk(pid_t dead)
{
	char text[1024], *at;
	unsigned long read_bytes, write_bytes;
	ssize_t got;
	int io;

	snprintf(text, sizeof(text), "/proc/%d/io", (int)dead);
	io = open(text, O_RDONLY | O_CLOEXEC);
	got = read(io, text, sizeof(text) - 1);
	workload_check(got > 0);
	text[got] = 0;
	workload_check((at = strstr(text, "\nread_bytes: ")) != NULL);
	read_bytes = strtoul(at + 13, NULL, 10);
	workload_check((at = strstr(text, "\nwrite_bytes: ")) != NULL);
	write_bytes = strtoul(at + 14, NULL, 10);
	printf("{\"disk_read_bytes\": %lu, \"disk_write_bytes\": %lu}\n", read_bytes, write_bytes);
}

static void work(const char *cgroup)
{
	int procs, fd, copy, readable, writable;

	procs = workload_open_cgroup(cgroup);
	fd = open(path("data"), O_RDWR | O_CREAT, 0600);
	copy = open(path("copy"), O_RDWR | O_CREAT, 0600);
	readable = open(path("data"), O_RDONLY);
	writable = open(path("empty"), O_WRONLY | O_CREAT, 0600);
	close(open(path("secret"), O_WRONLY | O_CREAT, 0600));
	workload_check(fd >= 0 && copy >= 0 && readable >= 0 && writable >= 0);
	workload_enter(procs);
	write_all_ways(fd);
	read_all_ways(fd);
	copy_all_ways(fd, copy);
	use_what_is_no_file();
	open_all_ways();
	open_without_right();
	fail_on_files(readable, writable);
	flush_all_ways(fd);
	use_in_children(fd);
	use_in_threads(fd);
	use_device(fd);
	/* The last close may change a block of the file system, which counts as written. */
	workload_check(!close(fd) && !close(copy) && !close(readable) && !close(writable));
	printf("{\"read\": %ld, \"read_bytes\": %ld, \"read_EBADF\": %ld, \"read_EFAULT\": %ld, "
	       "\"write\": %ld, \"write_bytes\": %ld, \"write_EBADF\": %ld, \"write_EFAULT\": %ld, "
	       "\"open\": %ld, \"open_ENOENT\": %ld, \"open_EACCES\": %ld, \"open_EEXIST\": %ld, "
	       "\"open_EINVAL\": %ld, \"fsync\": %ld}\n",
	       done.read, done.read_bytes, done.read_EBADF, done.read_EFAULT, done.write,
	       done.write_bytes, done.write_EBADF, done.write_EFAULT, done.open, done.open_ENOENT,
	       done.open_EACCES, done.open_EEXIST,
	       done.open_EINVAL, done.fsync);
}

int main(int argc, char **argv)
{
	siginfo_t end;
	pid_t child;

	workload_check(argc == 3);
	directory = argv[2];
	child = fork();
	workload_check(child >= 0);
	if (!child) {
		work(argv[1]);
		return 0;
	}
	workload_check(!waitid(P_PID, (id_t)child, &end, WEXITED | WNOWAIT));
	workload_check(end.si_code == CLD_EXITED && !end.si_status);
	print_disk(child);
	return 0;
}
