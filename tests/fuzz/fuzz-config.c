/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input: the text of a file; behind a NUL, if there is one, the value of OTEL_RESOURCE_ATTRIBUTES, behind
 * a second one that of OTEL_METRICS_EXPORTER.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "config/config.h"
#include "config/probe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int is_true)
{
	if (!is_true)
		abort();
}

static void set_variable(const char *name, const char *value, size_t size)
{
	_cleanup_(freep) char *text = strndup(value, size);

	demand(text && !setenv(name, text, 1));
}

/* What is written for a probe without mistakes is a descriptor: its lines are those of the file. */
static void describe_probe(const struct config_section *section)
{
	_cleanup_(buf_done) struct buf written = BUF_INIT;
	struct descriptor_entries entries = { &written };
	_cleanup_(descriptor_freep) struct descriptor *descriptor = NULL;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;

	demand(probe_describe(section, &diag, &entries) == 0);
	if (diag.n_errors)
		return;
	demand(descriptor_read_entries(&entries, &diag, &descriptor) == 0);
	demand(descriptor->n_programs > 0 && descriptor->n_metrics > 0);
}

static void read_config(const char *path)
{
	static const char *const roots[] = { NULL };
	_cleanup_(config_freep) struct config *config = NULL;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;

	demand(config_read(path, roots, &diag, &config) == 0);
	if (!diag.n_errors)
		demand(diag.text.size == 0);
	demand(config->agent.interval_ns >= 1000000000);
	for (size_t i = 0; i < config->n_sections; i++)
		if (!strcmp(config->sections[i].kind, "probe"))
			describe_probe(&config->sections[i]);
	for (size_t i = 0; i < config->n_exporters; i++)
		demand(config->exporters[i].ops && config->exporters[i].options);
	for (unsigned int i = 1; i < config->resource.n; i++)
		demand(strcmp(config->resource.items[i - 1].name, config->resource.items[i].name) < 0);
	for (unsigned int i = 0; i < config->resource.n; i++)
		demand(!resource_complaint(config->resource.items[i].name, config->resource.items[i].text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	size_t file_size = strnlen(text, size);
	size_t first = file_size + (file_size < size), first_size = strnlen(text + first, size - first);
	size_t second = first + first_size + (first + first_size < size);
	_cleanup_(closep) int fd = memfd_create("fuzz", MFD_CLOEXEC);
	char path[64];

	demand(fd >= 0 && write(fd, data, file_size) == (ssize_t)file_size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	set_variable("OTEL_RESOURCE_ATTRIBUTES", text + first, first_size);
	set_variable("OTEL_METRICS_EXPORTER", text + second, strnlen(text + second, size - second));
	read_config(path);
	return 0;
}
