/* SPDX-License-Identifier: Apache-2.0 */
#include "util/credential.h"

#include <string.h>

#include "util/cleanup.h"

#define VARIABLE "CREDENTIALS_DIRECTORY"

const char *credential_name(const char *path)
{
	static const char *const beginnings[] = { "%d/", "${" VARIABLE "}/" };

	for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++)
		if (!strncmp(path, beginnings[i], strlen(beginnings[i])))
			return path + strlen(beginnings[i]);
	return NULL;
}

char *credential_path(const char *path)
{
	const char *name = credential_name(path);
	const char *directory = getenv(VARIABLE) ?: "/run/credentials/bpfpush.service";
	char *found;

	if (!name)
		return strdup(path);
	return asprintf(&found, "%s/%s", directory, name) < 0 ? NULL : found;
}

bool credential_is_due(void)
{
	return getenv(VARIABLE) || getenv("NOTIFY_SOCKET");
}
