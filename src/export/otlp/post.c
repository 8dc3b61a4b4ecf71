/* SPDX-License-Identifier: Apache-2.0 */
#include "export/otlp/internal.h"

#include <string.h>

/* text: as the settings have it. */
static int add_header(struct otlp *otlp, const char *text)
{
	_cleanup_(freep) char *header = NULL;
	const char *complaint;
	const char *path = otlp_header_file(otlp->options, text);
	int err = path ? otlp_header_resolve(text, path, &header, &complaint) : 0;

	if (!err)
		return http_client_add_header(otlp->client, header ?: text);
	otlp->report.outcome = 0;
	exporter_fail(otlp->exporter, LOG_LEVEL_ERROR, NULL, "headers: %.*s: the file %s cannot be used: %s",
		      (int)strcspn(text, ":"), text, path, complaint);
	return err;
}

/*
 * Those of a request: the value of a header may be in a file and change. -errno: that of a file was
 * reported.
 */
static int set_headers(struct otlp *otlp)
{
	const struct setting_list *list = &otlp->options->headers;
	int err = http_client_reset_headers(otlp->client) ?:
		  http_client_add_header(otlp->client, "Content-Type: application/x-protobuf");

	if (!err && !otlp->options->is_uncompressed)
		err = http_client_add_header(otlp->client, "Content-Encoding: gzip");
	for (size_t i = 0; i < list->n_items && !err; i++)
		err = add_header(otlp, list->items[i]);
	return err;
}

int otlp_post(struct otlp *otlp, const uint8_t *data, size_t size, http_answer_fn *answered)
{
	struct exporter *exporter = otlp->exporter;
	int err = set_headers(otlp) ?: http_client_post(otlp->client, data, size, answered, otlp);

	if (err && !exporter->stats.is_failing)
		exporter_fail(exporter, LOG_LEVEL_ERROR, LOG_ID_EXPORT_FAILING, "the request cannot be made: %s",
			      strerror(-err));
	if (!err)
		exporter_asks(exporter, true);
	return err;
}
