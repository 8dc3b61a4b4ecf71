/* SPDX-License-Identifier: Apache-2.0 */
#include "config/resource.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/utsname.h>
#include <systemd/sd-id128.h>

#include "build-config.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/hash.h"
#include "util/parse.h"
#include "util/utf8.h"

/* bpfpush, to the machine: what service.instance.id is made of besides the machine's id. */
#define APPLICATION_ID SD_ID128_MAKE(1b, ad, 52, 9b, 55, d9, 4c, 9a, 8f, 48, da, df, b2, 11, 8d, 9b)

/* In the words of the conventions. */
#if defined(__x86_64__)
#define ARCH "amd64"
#else
#define ARCH "arm64"
#endif

const char *resource_complaint(const char *name, const char *text)
{
	if (!isalpha((unsigned char)name[0]))
		return "an attribute's name begins with a letter";
	if (!parse_is_name(name))
		return "an attribute's name has only letters, digits and _ . -";
	if (strstr(name, "..") || name[strlen(name) - 1] == '.')
		return "write a word before and after each dot of an attribute's name";
	if (!strncmp(name, "otel.", 5) || !strncmp(name, "telemetry.sdk.", 14))
		return "bpfpush sets otel.* itself, and telemetry.sdk.* is for SDKs";
	if (!strcmp(name, "service.name") && !*text)
		return "a service needs a name";
	return NULL;
}

const char *resource_find(const struct resource *resource, const char *name)
{
	const struct attribute *item = array_find(resource->items, resource->n, name);

	return item ? item->text : NULL;
}

static void take_out(struct resource *resource, struct attribute *item)
{
	free((char *)item->name);
	free((char *)item->text);
	resource->n--;
	memmove(item, item + 1, (size_t)(resource->items + resource->n - item) * sizeof(*item));
}

int resource_set(struct resource *resource, const char *name, const char *text)
{
	_cleanup_(freep) char *own_name = strdup(name), *own_text = strdup(text);
	struct attribute *item = resource->items, *end = item + resource->n;

	if (!own_name || !own_text)
		return -ENOMEM;
	while (item < end && strcmp(item->name, name) < 0)
		item++;
	if (item < end && !strcmp(item->name, name))
		take_out(resource, item);
	if (!*text)
		return 0;
	if (resource->n == RESOURCE_ATTRIBUTES_MAX)
		return -ENOSPC;
	utf8_clean(own_text);
	end = resource->items + resource->n++;
	memmove(item + 1, item, (size_t)(end - item) * sizeof(*item));
	*item = (struct attribute){ .name = TAKE_PTR(own_name), .type = ATTRIBUTE_TEXT,
				    .text = TAKE_PTR(own_text) };
	return 0;
}

/*
 * No id: a first boot, or a container without one. Clones of a machine have its id, but names of
 * their own.
 */
static int set_instance(struct resource *resource, const char *host, const char *config_path)
{
	_cleanup_(freep) char *path = config_path ? realpath(config_path, NULL) : NULL;
	sd_id128_t application = APPLICATION_ID, id;
	char text[SD_ID128_UUID_STRING_MAX];

	application.qwords[0] ^= hash_stable(HASH_STABLE_START, host, strlen(host));
	if (path)
		application.qwords[1] ^= hash_stable(HASH_STABLE_START, path, strlen(path));
	if (sd_id128_get_machine_app_specific(application, &id) < 0)
		return 0;
	return resource_set(resource, "service.instance.id", sd_id128_to_uuid_string(id, text));
}

/* os-release(5): KEY=value, perhaps in quotes with backslashes; at text, in place. */
static void unquote_value(char *text)
{
	char quote = *text == '"' || *text == '\'' ? *text : '\0', *to = text;

	for (char *from = text + !!quote; *from && *from != '\n' && (!quote || *from != quote);
	     from++) {
		if (*from == '\\' && quote != '\'' && from[1])
			from++;
		*to++ = *from;
	}
	*to = '\0';
}

static int set_os(struct resource *resource, const char *const *roots)
{
	static const struct {
		const char *key, *name;
	} wanted[] = { { "NAME=", "os.name" }, { "VERSION_ID=", "os.version" } };
	_cleanup_(fclosep) FILE *f = NULL;
	char line[1024];
	int r = 0;

	for (; *roots && !f; roots++) {
		snprintf(line, sizeof(line), "%s/os-release", *roots);
		f = fopen(line, "re");
	}
	while (f && r >= 0 && fgets(line, sizeof(line), f))
		for (size_t i = 0; i < ARRAY_SIZE(wanted) && r >= 0; i++) {
			size_t length = strlen(wanted[i].key);

			if (strncmp(line, wanted[i].key, length))
				continue;
			unquote_value(line + length);
			r = resource_set(resource, wanted[i].name, line + length);
		}
	return r;
}

int resource_set_defaults(struct resource *resource, const char *const *roots,
			  const char *config_path)
{
	struct utsname system = { 0 };
	int r = 0;

	uname(&system);
	const char *const defaults[][2] = {
		{ "service.name", "bpfpush" },
		{ "service.version", VERSION },
		{ "host.name", system.nodename },
		{ "host.arch", ARCH },
		{ "os.type", "linux" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(defaults) && r >= 0; i++)
		r = resource_set(resource, defaults[i][0], defaults[i][1]);
	r = r ?: set_instance(resource, system.nodename, config_path);
	return r ?: set_os(resource, roots);
}

/* Only valid UTF-8 without control characters comes through. */
static bool decode_item(char *text)
{
	return !parse_percent(text) && utf8_is_printable(text, SIZE_MAX);
}

static int set_listed(struct resource *resource, const char *name, const char *text,
		      struct diag *warnings)
{
	const char *complaint = resource_complaint(name, text);

	if (!complaint)
		return resource_set(resource, name, text);
	diag_add(warnings, RESOURCE_VARIABLE, 0, "%s: %s: ignored", name, complaint);
	return 0;
}

int resource_set_list(struct resource *resource, const char *list, struct diag *warnings)
{
	int r = 0;

	/* One pass checks, the other sets. */
	for (int pass = 0; pass < 2 && r >= 0; pass++) {
		_cleanup_(freep) char *text = strdup(list);
		char *rest = text, *item;

		if (!text)
			return -ENOMEM;
		while (r >= 0 && (item = strsep(&rest, ","))) {
			char *name = parse_strip(strsep(&item, "="));

			/* A comma at the end, or nothing at all. */
			if (!item && !*name)
				continue;
			if (!item || strchr(item, '='))
				return -EINVAL;
			item = parse_strip(item);
			if (!decode_item(name) || !decode_item(item) || !*name)
				return -EINVAL;
			if (pass)
				r = set_listed(resource, name, item, warnings);
		}
	}
	return r;
}

void resource_done(struct resource *resource)
{
	while (resource->n)
		take_out(resource, resource->items + resource->n - 1);
}
