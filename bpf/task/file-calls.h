/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/* The system calls that read, write, open and flush files, by number. */
#include "syscall.h"

enum file_operation { FILE_NONE, FILE_READ, FILE_WRITE, FILE_OPEN, FILE_FSYNC };

/*
 * What a call does, by number: an operation, which argument is the descriptor, and whether it
 * copies from one descriptor to another.
 */
enum {
	CALL_OPERATION = 7,
	CALL_RETURNS_FD = 1 << 3, /* open: the descriptor is the result */
	CALL_COPIES = 1 << 4,	  /* from argument 1 to argument 0 ... */
	CALL_IN_0 = 1 << 5,	  /* ... or from argument 0 to argument 2 */
};

#define OPENS	   (FILE_OPEN | CALL_RETURNS_FD)
#define COPIES_0_2 (CALL_COPIES | CALL_IN_0)
#define COPIES_1_0 CALL_COPIES

#define FILE_CALL_BITS 8
/* what a call of 32-bit code with this number does */
#define COMPAT(call) ((call) << FILE_CALL_BITS)

static const u16 file_calls[SYSCALL_NUMBERS] = {
#if defined(__TARGET_ARCH_x86)
	[0] = FILE_READ, /* read */
	[1] = FILE_WRITE, /* write */
	[2] = OPENS, /* open */
	[17] = FILE_READ, /* pread64 */
	[18] = FILE_WRITE, /* pwrite64 */
	[19] = FILE_READ, /* readv */
	[20] = FILE_WRITE, /* writev */
	[40] = COPIES_1_0, /* sendfile */
	[74] = FILE_FSYNC, /* fsync */
	[75] = FILE_FSYNC, /* fdatasync */
	[85] = OPENS, /* creat */
	[257] = OPENS, /* openat */
	[275] = COPIES_0_2, /* splice */
	[277] = FILE_FSYNC, /* sync_file_range */
	[295] = FILE_READ | COMPAT(OPENS), /* preadv, compat_openat */
	[296] = FILE_WRITE, /* pwritev */
	[304] = OPENS, /* open_by_handle_at */
	[326] = COPIES_0_2, /* copy_file_range */
	[327] = FILE_READ, /* preadv2 */
	[328] = FILE_WRITE, /* pwritev2 */
	[437] = OPENS | COMPAT(OPENS), /* openat2 */
	[3] = COMPAT(FILE_READ), /* read */
	[4] = COMPAT(FILE_WRITE), /* write */
	[5] = COMPAT(OPENS), /* open */
	[8] = COMPAT(OPENS), /* creat */
	[118] = COMPAT(FILE_FSYNC), /* fsync */
	[145] = COMPAT(FILE_READ), /* readv */
	[146] = COMPAT(FILE_WRITE), /* writev */
	[148] = COMPAT(FILE_FSYNC), /* fdatasync */
	[180] = COMPAT(FILE_READ), /* pread64 */
	[181] = COMPAT(FILE_WRITE), /* pwrite64 */
	[187] = COMPAT(COPIES_1_0), /* sendfile */
	[239] = COMPAT(COPIES_1_0), /* sendfile64 */
	[313] = COMPAT(COPIES_0_2), /* splice */
	[314] = COMPAT(FILE_FSYNC), /* sync_file_range */
	[333] = COMPAT(FILE_READ), /* preadv */
	[334] = COMPAT(FILE_WRITE), /* pwritev */
	[342] = COMPAT(OPENS), /* open_by_handle_at */
	[377] = COMPAT(COPIES_0_2), /* copy_file_range */
	[378] = COMPAT(FILE_READ), /* preadv2 */
	[379] = COMPAT(FILE_WRITE), /* pwritev2 */
#elif defined(__TARGET_ARCH_arm64)
	[56] = OPENS, /* openat */
	[63] = FILE_READ, /* read */
	[64] = FILE_WRITE, /* write */
	[65] = FILE_READ, /* readv */
	[66] = FILE_WRITE, /* writev */
	[67] = FILE_READ, /* pread64 */
	[68] = FILE_WRITE, /* pwrite64 */
	[69] = FILE_READ, /* preadv */
	[70] = FILE_WRITE, /* pwritev */
	[71] = COPIES_1_0, /* sendfile */
	[76] = COPIES_0_2, /* splice */
	[82] = FILE_FSYNC, /* fsync */
	[83] = FILE_FSYNC, /* fdatasync */
	[84] = FILE_FSYNC, /* sync_file_range */
	[265] = OPENS, /* open_by_handle_at */
	[285] = COPIES_0_2, /* copy_file_range */
	[286] = FILE_READ, /* preadv2 */
	[287] = FILE_WRITE, /* pwritev2 */
	[437] = OPENS | COMPAT(OPENS), /* openat2 */
	[3] = COMPAT(FILE_READ), /* read */
	[4] = COMPAT(FILE_WRITE), /* write */
	[5] = COMPAT(OPENS), /* open */
	[8] = COMPAT(OPENS), /* creat */
	[118] = COMPAT(FILE_FSYNC), /* fsync */
	[145] = COMPAT(FILE_READ), /* readv */
	[146] = COMPAT(FILE_WRITE), /* writev */
	[148] = COMPAT(FILE_FSYNC), /* fdatasync */
	[180] = COMPAT(FILE_READ), /* pread64 */
	[181] = COMPAT(FILE_WRITE), /* pwrite64 */
	[187] = COMPAT(COPIES_1_0), /* sendfile */
	[239] = COMPAT(COPIES_1_0), /* sendfile64 */
	[322] = COMPAT(OPENS), /* openat */
	[340] = COMPAT(COPIES_0_2), /* splice */
	[341] = COMPAT(FILE_FSYNC), /* sync_file_range2 */
	[361] = COMPAT(FILE_READ), /* preadv */
	[362] = COMPAT(FILE_WRITE), /* pwritev */
	[371] = COMPAT(OPENS), /* open_by_handle_at */
	[391] = COMPAT(COPIES_0_2), /* copy_file_range */
	[392] = COMPAT(FILE_READ), /* preadv2 */
	[393] = COMPAT(FILE_WRITE), /* pwritev2 */
#endif
};

/*
 * What the calls of this number do, native and compat. Most do nothing with files, and that shows
 * here.
 */
static __always_inline u32 file_calls_of(u32 raw_number)
{
	return raw_number < SYSCALL_NUMBERS ? file_calls[raw_number] : 0;
}

/* Of these, what the call does; 0: nothing with files. */
static __always_inline u32 file_call(u32 both, bool is_compat)
{
	return is_compat ? both >> FILE_CALL_BITS : both & ((1 << FILE_CALL_BITS) - 1);
}

static __always_inline bool file_call_is_on_one_file(u32 call)
{
	return !(call & (CALL_RETURNS_FD | CALL_COPIES));
}
