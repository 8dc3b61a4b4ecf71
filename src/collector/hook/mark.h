/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where a USDT is in its file, and what its arguments are there, from the notes that <sys/sdt.h>
 * leaves: for each place three addresses (of the place, of the section .stapsdt.base, of the
 * semaphore), the provider, the name, and operands as an assembler writes them, "SIZE@OPERAND":
 *     -4@$-5  8@%rax  4@-12(%rbp)  -4@(%rdi,%rsi,4)  -4@12+table(%rip)
 *     8@x0    -4@[sp, 28]  8@[x0, x1, lsl 3]
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MARK_ARGUMENTS	6
#define MARK_PLACES	256
#define MARK_TEXT_BYTES 512

/* As in bpf/probe/mark.h. */
struct mark_argument {
	int64_t number;
	uint16_t base, index;
	uint8_t shift, bytes; /* bytes: 0 if the operand has another form */
	bool is_signed, is_memory;
};

struct mark {
	uint64_t offset, semaphore; /* in the file; 0: it has no semaphore */
	unsigned int n_arguments;
	struct mark_argument arguments[MARK_ARGUMENTS];
	char operands[MARK_TEXT_BYTES]; /* as they are written, or the beginning of that */
};

/*
 * All places of PROVIDER:NAME in the file, to be freed. -ENOEXEC: the file is not a program or
 * library of 64 bits; -E2BIG: more places than MARK_PLACES; -errno of open(), -ENOMEM.
 */
int marks_find(const char *path, const char *name, struct mark **ret_marks, size_t *ret_n);
/* The operand of an argument: "-4@(%rdi,%rsi,4)". Its length; 0: there is none. */
size_t mark_operand(const struct mark *mark, unsigned int number, const char **ret_operand);
