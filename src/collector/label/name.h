/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Numbers and bytes to text. What has no name is its number. */

#include <stdio.h>

#include "collector/label/label.h"

name_fn name_device;	/* kernel dev_t: what the kernel calls the block device */
name_fn name_stat_device; /* the same for the number that stat(2) gives */
name_fn name_interface; /* an index in the agent's network namespace */
/*
 * From the list that the package pci.ids installs (lspci has the same); read for each number, from
 * the beginning. Hexadecimal numbers: 8086; vendor << 16 | device; 02; class << 8 | subclass.
 */
name_fn name_pci;
/*
 * The same in f: the line that begins with head, and if below is not "", the line that is below it
 * and begins with that. NULL: there is none. line: room for it.
 */
char *name_find_pci(FILE *f, const char *head, const char *below, char *line, size_t size);

/* For label types: what the bytes of a member become. */

/*
 * The name that the kernel has for a disk, up to its first NUL; a path of an NVMe disk is called as
 * that disk.
 */
void put_disk(struct member *member);
/* Two hexadecimal digits for each byte. */
void put_bytes(struct member *member);
/*
 * A domain name as DNS sends it (RFC 1035, 3.1), in lower case, since case does not tell names
 * apart; "." is the root. Bytes other than letters, digits, "-" and "_" become \DDD. If all of it
 * is not a name: as put_bytes().
 */
void put_domain(struct member *member);
