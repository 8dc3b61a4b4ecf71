/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * OpenTelemetry's resource: attributes that say where all these numbers come from (semantic
 * conventions 1.44, resource/). All are texts, sorted by name. A later text replaces an earlier
 * one.
 */

#include "metric/attribute.h"
#include "util/diag.h"

#define RESOURCE_ATTRIBUTES_MAX 128
#define RESOURCE_VARIABLE	"OTEL_RESOURCE_ATTRIBUTES"

struct resource {
	struct attribute items[RESOURCE_ATTRIBUTES_MAX]; /* names and texts are owned */
	unsigned int n;
};

/*
 * What is wrong with an attribute that a person wrote, in a file or in the environment; NULL:
 * nothing.
 */
const char *resource_complaint(const char *name, const char *text);
/* An empty text removes the attribute. -ENOMEM, -ENOSPC. */
int resource_set(struct resource *resource, const char *name, const char *text);
/*
 * Sets the attributes that need no configuration: service.name and .version, service.instance.id,
 * host.name, host.arch, os.type, os.name, os.version. os-release is taken from the
 * first of roots (ended by NULL) that has it. Attributes without a source are left out.
 *
 * service.instance.id is a hash of the machine's id (which is confidential: machine-id(5)) and the
 * host's name. If --config named a file, its path is hashed too, so agents with different files are
 * different instances. config_path: that file; NULL for the standard places. -ENOMEM.
 */
int resource_set_defaults(struct resource *resource, const char *const *roots,
			  const char *config_path);
/*
 * The value of RESOURCE_VARIABLE: "name=text,name=text", with "%2C" for "," and the like. Attributes
 * with a complaint are left out, with a warning. -EINVAL: it is malformed, and nothing of it is set
 * (OpenTelemetry specification, resource/sdk.md). -ENOMEM, -ENOSPC.
 */
int resource_set_list(struct resource *resource, const char *list, struct diag *warnings);
/* its text, or NULL */
const char *resource_find(const struct resource *resource, const char *name);
void resource_done(struct resource *resource);
