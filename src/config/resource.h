/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The resource of OpenTelemetry: attributes that say whose numbers these are, once for all of them
 * (semantic conventions 1.44, resource/). All are texts. What is set later replaces; the order by
 * name.
 */

#include "metric/attribute.h"

#define RESOURCE_ATTRIBUTES_MAX 128

struct resource {
	struct attribute items[RESOURCE_ATTRIBUTES_MAX]; /* names and texts are owned */
	unsigned int n;
};

/* The complaint about an attribute name that a person wrote (parse_is_name() holds), or NULL. */
const char *resource_name_complaint(const char *name);
/* An empty text takes the attribute out. -ENOMEM, -ENOSPC. */
int resource_set(struct resource *resource, const char *name, const char *text);
/*
 * Sets the attributes that need no configuration: service.name and .version, service.instance.id,
 * host.name, host.arch, os.type, os.name, os.version, telemetry.sdk.*. os-release lies in the first
 * of roots that has it (ended by NULL); what is not found is left out.
 *
 * service.instance.id is a hash of the machine's id (which is confidential: machine-id(5)) and,
 * where one configuration file was named, of its path: so agents with different files are different
 * instances. config_path: that file; NULL for the standard places. -ENOMEM.
 */
int resource_set_defaults(struct resource *resource, const char *const *roots, const char *config_path);
/*
 * The value of OTEL_RESOURCE_ATTRIBUTES: "name=text,name=text", with "%2C" for "," and the like.
 * -EINVAL: it is malformed, and then nothing of it is set (OpenTelemetry specification,
 * resource/sdk.md). -ENOMEM, -ENOSPC.
 */
int resource_set_list(struct resource *resource, const char *list);
const char *resource_find(const struct resource *resource, const char *name); /* its text, or NULL */
void resource_done(struct resource *resource);
