/* SPDX-License-Identifier: Apache-2.0 */
#include "export/transport/tls.h"

#include <curl/curl.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/credential.h"

_Static_assert(TLS_PROBLEM_BYTES >= CURL_ERROR_SIZE, "libcurl writes as many");

/* libcurl copies the path, and reads the file whenever it connects. */
static void set_file(CURL *easy, CURLoption option, const char *file)
{
	_cleanup_(freep) char *path = file ? credential_path(file) : NULL;

	curl_easy_setopt(easy, option, path);
}

void tls_set_files(void *easy, const struct tls_files *files)
{
	set_file(easy, CURLOPT_SSLCERT, files->certificate_file);
	set_file(easy, CURLOPT_SSLKEY, files->key_file);
	/* else OpenSSL asks at the terminal for what the key needs */
	curl_easy_setopt(easy, CURLOPT_KEYPASSWD, "");
	if (files->ca_file)
		set_file(easy, CURLOPT_CAINFO, files->ca_file);
}

bool tls_start(void)
{
	unsetenv("SSLKEYLOGFILE"); /* libcurl would write the keys of connections there */
	return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

/*
 * libcurl reads the files when it begins to speak TLS: here to a socket of ours, which answers with
 * its end. A pair of sockets will not do, because libcurl 7.88 connects what is connected.
 */
static CURLcode speak_tls(CURLM *multi, CURL *easy)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t size = offsetof(struct sockaddr_un, sun_path); /* the kernel chooses a name */
	_cleanup_(closep) int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
						0), peer = -1;
	const CURLMsg *message;
	int n = 0;

	if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) ||
	    listen(listener, 1))
		return CURLE_OK;
	size = sizeof(address) - 1;
	if (getsockname(listener, (struct sockaddr *)&address, &size))
		return CURLE_OK;
	curl_easy_setopt(easy, CURLOPT_ABSTRACT_UNIX_SOCKET, address.sun_path + 1);
	curl_multi_add_handle(multi, easy);
	while (!curl_multi_perform(multi, &n) && n &&
	       !curl_multi_poll(multi, NULL, 0, peer < 0 ? 1 : 1000, NULL)) {
		if (peer < 0)
			peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		shutdown(peer, SHUT_WR);
	}
	message = curl_multi_info_read(multi, &n);
	curl_multi_remove_handle(multi, easy);
	return message ? message->data.result : CURLE_OK;
}

int tls_check_files(const struct tls_files *files, char problem[TLS_PROBLEM_BYTES])
{
	CURLM *multi = tls_start() ? curl_multi_init() : NULL;
	CURL *easy = multi ? curl_easy_init() : NULL;
	CURLcode code = CURLE_OK;

	problem[0] = '\0';
	if (easy) {
		curl_easy_setopt(easy, CURLOPT_URL, "https://localhost/");
		curl_easy_setopt(easy, CURLOPT_PROXY, "");
		curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
		/* if another program connects to the listener */
		curl_easy_setopt(easy, CURLOPT_TIMEOUT, 10L);
		curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, problem);
		curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
		curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, (long)(files->ca_file != NULL));
		tls_set_files(easy, files);
		code = speak_tls(multi, easy);
	}
	curl_easy_cleanup(easy);
	curl_multi_cleanup(multi);
	if (code == CURLE_SSL_CACERT_BADFILE)
		return -EBADMSG;
	return code == CURLE_SSL_CERTPROBLEM ? -EKEYREJECTED : 0;
}
