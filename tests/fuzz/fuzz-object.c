/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input: the bytes of a .BTF section. They are put into a sound object in place of its own, which then is
 * opened and checked beside a descriptor that fits the sound one. Not the object's bytes: libbpf itself may fall
 * over an ELF file that is damaged otherwise, so that nothing would be found but that.
 */
#include <bpf/btf.h>
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collector/collector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct label_choice choice;
static char directory[] = "/tmp/bpfpush-fuzz-XXXXXX";

static void demand(int is_true)
{
	if (!is_true)
		abort();
}

static void write_file(const char *name, const void *data, size_t size)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	f = fopen(path, "w");
	demand(f && fwrite(data, 1, size, f) == size);
}

static void read_sound(struct buf *object)
{
	_cleanup_(fclosep) FILE *f = fopen(SOUND_OBJECT, "r");
	char block[4096];
	size_t n;

	demand(f != NULL);
	while ((n = fread(block, 1, sizeof(block), f)))
		buf_append(object, block, n);
	demand(object->size > sizeof(Elf64_Ehdr));
}

static void remove_directory(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/x.conf", directory);
	remove(path);
	snprintf(path, sizeof(path), "%s/x.bpf.o", directory);
	remove(path);
	remove(directory);
}

/* With the section where this file ends. */
static void append_section(const uint8_t *btf, size_t size)
{
	struct buf object = BUF_INIT;
	Elf64_Shdr *sections;
	Elf64_Ehdr *header;
	const char *names;

	read_sound(&object);
	header = (Elf64_Ehdr *)object.data;
	sections = (Elf64_Shdr *)(object.data + header->e_shoff);
	names = (const char *)object.data + sections[header->e_shstrndx].sh_offset;
	for (unsigned int i = 0; i < header->e_shnum; i++)
		if (!strcmp(names + sections[i].sh_name, ".BTF")) {
			sections[i].sh_offset = object.size;
			sections[i].sh_size = size;
		}
	buf_append(&object, btf, size);
	write_file("x.bpf.o", object.data, object.size);
	buf_done(&object);
}

static void begin(void)
{
	static const char descriptor[] = "[collector]\ndescription = Fuzzed\n"
					 "[param limit]\ndefault = 3\n"
					 "[metric calls.count]\nname = a\nunit = 1\ndescription = A\n"
					 "[metric calls.time]\nname = b\nunit = s\ndescription = B\n"
					 "[metric sizes]\nname = c\nunit = By\ndescription = C\n"
					 "[label calls.number]\nname = n\n"
					 "[program enter]\nwhen = limit\n";

	demand(mkdtemp(directory) != NULL);
	demand(atexit(remove_directory) == 0);
	write_file("x.conf", descriptor, strlen(descriptor));
	programs_quiet();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(collector_freep) struct collector *collector = NULL;
	_cleanup_(diag_done) struct diag diag = DIAG_INIT;
	static struct labels *labels;
	struct collector_options options = { 0 };
	struct btf *btf = size ? btf__new(data, (uint32_t)size) : NULL;

	if (!btf)
		return 0;
	btf__free(btf);
	if (!labels) {
		begin();
		demand(labels_new(0, &choice, &labels) == 0);
	}
	append_section(data, size);
	options.labels = labels;
	demand(collector_open(directory, "x", &options, &diag, &collector) == 0);
	demand(!collector == !!diag.n_errors);
	if (!collector)
		return 0;
	demand(collector_set(collector, &(struct assignment){ "limit", "5", "fuzz", 1, 0 }, &diag) == 0);
	return 0;
}
