/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The files that TLS needs, as libcurl takes them. */

#include <stdbool.h>

/* Paths; NULL: not given. Borrowed during the call. */
struct tls_files {
	const char *ca_file;	      /* PEM; NULL: the system's */
	const char *certificate_file; /* PEM, of the client */
	const char *key_file;	      /* PEM */
};

/*
 * Whether TLS can use them, found out without a network. -EBADMSG: not the certificates in ca_file;
 * -EKEYREJECTED: not certificate_file with its key, which is in it if there is no key_file. Then
 * problem says why. What this libcurl cannot find out is right.
 */
#define TLS_PROBLEM_BYTES 256
int tls_check_files(const struct tls_files *files, char problem[TLS_PROBLEM_BYTES]);

/* For http.c: starts libcurl, as often as one likes. false: it will not start. */
bool tls_start(void);
/* For http.c: easy, a CURL, reads the files whenever it connects. */
void tls_set_files(void *easy, const struct tls_files *files);
