/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/object.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <libelf.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/table/layout.h"
#include "util/trust.h"
#include "util/utf8.h"

#define OBJECT_BYTES_MAX (16 << 20)

/*
 * The file is read once: what is checked is what is loaded, whatever happens to the file meanwhile.
 */
static int read_bytes(struct object *object, const char *needed_by, struct diag *diag)
{
	_cleanup_(buf_done) struct buf file = { .limit_bytes = OBJECT_BYTES_MAX };
	_cleanup_(fclosep) FILE *f = NULL;
	int err = trust_open(object->path, false, diag, &f);
	uint8_t *room;
	size_t size;

	while (!err && (room = buf_reserve(&file, 65536)) && (size = fread(room, 1, 65536, f)))
		file.size += size;
	if (buf_error(&file) == -EFBIG)
		diag_add(diag, object->path, 0, "is larger than %d MiB, which is too large for an object",
			 OBJECT_BYTES_MAX >> 20);
	else if (buf_error(&file))
		return buf_error(&file);
	else if (err || ferror(f))
		diag_add(diag, object->path, 0, "cannot be read: %s; %s needs it", strerror(err ? -err : errno), needed_by);
	else if (file.size) {
		object->n_bytes = file.size;
		object->bytes = TAKE_PTR(file.data);
	}
	return 0;
}

/*
 * Programs may not do anything but watch: not by a function that they call, nor by what they say of
 * a packet, …
 */
static void check_code(const struct object *object, const char *section, const Elf_Data *code,
		       struct diag *diag)
{
	static const char *const refused[] = {
		[BPF_FUNC_probe_write_user] = "bpf_probe_write_user", [BPF_FUNC_override_return] = "bpf_override_return",
		[BPF_FUNC_send_signal] = "bpf_send_signal", [BPF_FUNC_send_signal_thread] = "bpf_send_signal_thread",
		[BPF_FUNC_setsockopt] = "bpf_setsockopt", [BPF_FUNC_redirect] = "bpf_redirect",
		[BPF_FUNC_redirect_map] = "bpf_redirect_map", [BPF_FUNC_xdp_adjust_head] = "bpf_xdp_adjust_head",
		[BPF_FUNC_xdp_adjust_tail] = "bpf_xdp_adjust_tail", [BPF_FUNC_xdp_store_bytes] = "bpf_xdp_store_bytes",
	};
	bool is_packet = !strncmp(section + (*section == '?'), "xdp", 3);
	struct bpf_insn now, before = { 0 };

	for (size_t at = 0; at + sizeof(now) <= code->d_size; at += sizeof(now), before = now) {
		memcpy(&now, (const char *)code->d_buf + at, sizeof(now));
		if (now.code == (BPF_JMP | BPF_CALL) && !now.src_reg &&
		    (uint32_t)now.imm < ARRAY_SIZE(refused) && refused[now.imm])
			diag_add(diag, object->path, 0, "section \"%s\" calls %s, which does more than watch: remove the call",
				 section, refused[now.imm]);
		/* What a program computes is not known before it runs. */
		if (is_packet && now.code == (BPF_JMP | BPF_EXIT) && !before.dst_reg &&
		    before.imm != XDP_PASS &&
		    (before.code == (BPF_ALU | BPF_MOV) || before.code == (BPF_ALU64 | BPF_MOV)))
			diag_add(diag, object->path, 0, "section \"%s\" returns %d, but only XDP_PASS leaves the packet alone: "
				 "return that", section, before.imm);
	}
}

/*
 * Looks at the sections before libbpf does, which believes what it finds. The type information is
 * that of the last section .BTF, as for libbpf. NULL: errno is as libbpf's is.
 */
static struct btf *read_sections(const struct object *object, struct diag *diag)
{
	Elf *elf = elf_version(EV_CURRENT) ? elf_memory((char *)object->bytes, object->n_bytes) :
		   NULL;
	const Elf_Data *types = NULL;
	Elf_Scn *section = NULL;
	struct btf *btf;
	size_t names;
	bool is_elf = !elf_getshdrstrndx(elf, &names) && elf_nextscn(elf, NULL);

	while (is_elf && (section = elf_nextscn(elf, section))) {
		const Elf64_Shdr *head = elf64_getshdr(section);
		const char *name = head && head->sh_type == SHT_PROGBITS ?
				   elf_strptr(elf, names, head->sh_name) : NULL;
		const Elf_Data *data = name ? elf_rawdata(section, NULL) : NULL;

		if (data && !strcmp(name, ".BTF"))
			types = data;
		if (data && head->sh_flags & SHF_EXECINSTR)
			check_code(object, name, data, diag);
	}
	errno = is_elf ? ENOENT : LIBBPF_ERRNO__FORMAT;
	btf = types ? btf__new(types->d_buf, (uint32_t)types->d_size) : NULL;
	elf_end(elf);
	return btf;
}

/* … and not by their type. */
static void check_types(const struct object *object, struct diag *diag)
{
	struct bpf_program *bpf;

	bpf_object__for_each_program (bpf, object->bpf) {
		enum bpf_prog_type type = bpf_program__type(bpf);
		enum bpf_attach_type attach = bpf_program__expected_attach_type(bpf);
		const char *name = bpf_program__name(bpf),
			*section = bpf_program__section_name(bpf);

		if (!utf8_is_printable(name, PROGRAM_NAME_BYTES) ||
		    !utf8_is_printable(section, PROGRAM_NAME_BYTES))
			diag_add(diag, object->path, 0, "program \"%s\" in section \"%s\": these names cannot be printed", name,
				 section);
		if (type == BPF_PROG_TYPE_KPROBE || type == BPF_PROG_TYPE_TRACEPOINT ||
		    type == BPF_PROG_TYPE_RAW_TRACEPOINT || type == BPF_PROG_TYPE_PERF_EVENT ||
		    type == BPF_PROG_TYPE_XDP || !strcmp(section, ".text") ||
		    (type == BPF_PROG_TYPE_TRACING &&
		     (attach == BPF_TRACE_RAW_TP || attach == BPF_TRACE_FENTRY ||
						       attach == BPF_TRACE_FEXIT ||
		      attach == BPF_TRACE_ITER)))
			continue;
		diag_add(diag, object->path, 0,
			 "program \"%s\" is in section \"%s\", and only programs that watch may run: use tp_btf, raw_tp, tp, "
			 "fentry, fexit, kprobe, kretprobe, uprobe, uretprobe, usdt, iter, perf_event or xdp",
			 name, section);
	}
}

struct bpf_object *object_open_bytes(const struct object *object)
{
	const char *name = strrchr(object->path, '/') + 1;
	char short_name[16]; /* the kernel's limit */
	struct bpf_object_open_opts options;

	memset(&options, 0, sizeof(options)); /* with its padding, which libbpf looks at */
	options.sz = sizeof(options);
	options.object_name = short_name;
	options.btf_custom_path = object->kernel_types;
	/* As libbpf names an object after its file. */
	snprintf(short_name, sizeof(short_name), "%.*s", (int)strcspn(name, "."), name);
	return bpf_object__open_mem(object->bytes, object->n_bytes, &options);
}

/* words: libbpf's. */
static void complain_of_bytes(const char *path, int err, const char *words, struct diag *diag)
{
	const char *name = strstr(words, "for extern '");
	char text[128];

	if (name)
		diag_add(diag, path, 0, "calls or reads \"%.*s\", which no kernel has: a program has no C library, so write it "
			 "yourself, or as a loop of loads and stores that the compiler does not replace",
			 (int)strcspn(name + 12, "'"), name + 12);
	else if (err == ENOENT)
		diag_add(diag, path, 0, "has no type information (BTF); compile it with clang -target bpf -g");
	else
		diag_add(diag, path, 0, "is not a BPF object (%s); compile it with clang -target bpf -g",
			 libbpf_strerror(err, text, sizeof(text)) ? "damaged" : text);
}

int object_open(const char *path, const char *needed_by, struct diag *diag,
		struct object **ret_object)
{
	_cleanup_(object_freep) struct object *object = calloc(1, sizeof(*object));
	_cleanup_(buf_done) struct buf words = BUF_INIT;
	unsigned int n_before = diag->n_errors;
	struct bpf_map *map;
	const void *data;
	size_t size = 0;
	int err;

	if (!object)
		return -ENOMEM;
	*ret_object = NULL;
	object->path = strdup(path);
	if (!object->path)
		return -ENOMEM;
	err = read_bytes(object, needed_by, diag);
	if (err || diag->n_errors > n_before)
		return err;
	object->btf = read_sections(object, diag);
	/* libbpf itself believes whatever it finds. */
	if (object->btf && !btf_is_whole(object->btf)) {
		diag_add(diag, path, 0, "is damaged: its type information (BTF) refers to types that do not exist, or to names that cannot be printed; "
				     "compile or install it again");
		return 0;
	}
	programs_listen(&words);
	object->bpf = object->btf ? object_open_bytes(object) : NULL;
	err = errno;
	programs_listen(NULL);
	if (!object->bpf) {
		if (err == ENOMEM)
			return -ENOMEM;
		complain_of_bytes(path, err, buf_text(&words), diag);
		return 0;
	}
	check_types(object, diag);
	map = bpf_object__find_map_by_name(object->bpf, VARIABLES_SECTION);
	data = map ? bpf_map__initial_value(map, &size) : NULL;
	err = variables_init(object->btf, bpf_object__btf(object->bpf), data, data ? size : 0,
			     &object->variables);
	err = err ?: programs_list(object->bpf, &object->programs);
	if (!err)
		*ret_object = TAKE_PTR(object);
	return err;
}

void object_free(struct object *object)
{
	if (!object)
		return;
	programs_done(&object->programs);
	variables_done(&object->variables);
	bpf_object__close(object->bpf);
	btf__free(object->btf);
	buf_done(&object->why);
	free(object->collectors);
	free(object->bytes);
	free(object->path);
	free(object);
}

/* A user's object may have another map of that name, which is not used. */
void object_find_names(const struct object *object, struct label_names *names)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object->bpf, "process_names");
	_cleanup_(shape_done) struct shape shape = { 0 };
	const struct field *field;

	if (!map || bpf_map__key_size(map) != sizeof(uint64_t) ||
	    (bpf_map__type(map) != BPF_MAP_TYPE_HASH &&
	     bpf_map__type(map) != BPF_MAP_TYPE_LRU_HASH) ||
	    shape_from_btf(object->btf, bpf_map__btf_value_type_id(map), &shape, NULL))
		return;
	field = shape_find(&shape, "name");
	if (field && field->class == FIELD_TEXT && shape.size_bytes <= LABEL_NAMES_VALUE_BYTES_MAX)
		*names = (struct label_names){ bpf_map__fd(map), field->offset_bytes,
					       field->size_bytes };
}
