/* SPDX-License-Identifier: Apache-2.0 */
#include "export/otlp/headers.h"

#include <string.h>

#include "util/cleanup.h"

static int add_header(struct http_client *client, const char *text, struct otlp_report *report)
{
	_cleanup_(freep) char *header = NULL;
	const char *complaint;
	const char *path = otlp_header_file(text);
	int err = path ? otlp_header_resolve(text, &header, &complaint) : 0;

	if (!err)
		return http_client_add_header(client, header ?: text);
	report->outcome = 0;
	exporter_fail(report->exporter, LOG_LEVEL_ERROR, NULL, "headers: %.*s: the file %s cannot be used: %s",
		      (int)strcspn(text, ":"), text, path, complaint);
	return err;
}

int otlp_set_headers(struct http_client *client, const struct otlp_options *options, struct otlp_report *report)
{
	const struct setting_list *list = &options->headers;
	int err = http_client_reset_headers(client);

	if (!err)
		err = http_client_add_header(client, "Content-Type: application/x-protobuf");
	if (!err && !options->is_uncompressed)
		err = http_client_add_header(client, "Content-Encoding: gzip");
	for (size_t i = 0; i < list->n_items && !err; i++)
		err = add_header(client, list->items[i], report);
	return err;
}
