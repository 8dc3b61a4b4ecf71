/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "export/otlp/answer.h"
#include "export/otlp/options.h"

/*
 * Those of a request. To be set for each one, since the value of a header may be in a file and change. -errno: it
 * cannot be sent; if that is because of a file, it was reported.
 */
int otlp_set_headers(struct http_client *client, const struct otlp_options *options, struct otlp_report *report);
