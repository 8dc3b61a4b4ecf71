/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libbpf loads an object whole or not at all, and a loaded object cannot be loaded again. So a program
 * that the kernel refuses costs a new try: it is marked, the next alternative of its hook takes its
 * place, the object is opened afresh. Each try marks at least one program, so there are never more tries
 * than programs. libbpf's own message tells which one was refused.
 */
#include "collector/program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/alternative.h"
#include "util/array.h"
#include "util/buf.h"

static struct buf *messages; /* where libbpf's warnings go during programs_load() */

static _printf_(2, 0) int collect(enum libbpf_print_level level, const char *format, va_list arguments)
{
	if (messages && level == LIBBPF_WARN && messages->size < 65536)
		buf_vprintf(messages, format, arguments);
	return 0;
}

void programs_quiet(void)
{
	libbpf_set_print(collect);
}

static int add(struct programs *programs, const struct bpf_program *bpf)
{
	struct program *program = array_add(&programs->items, &programs->n, sizeof(*program));
	const char *section = bpf_program__section_name(bpf);

	if (!program)
		return -ENOMEM;
	section += *section == '?'; /* libbpf would not load it by itself */
	*program = (struct program){ .fd = -1, .is_iterator = !strncmp(section, "iter/", 5) };
	program->name = strdup(bpf_program__name(bpf));
	program->section = strdup(section);
	return program->name && program->section ? 0 : -ENOMEM;
}

bool program_is_over_map(const struct program *program)
{
	return !strcmp(program->section, "iter/bpf_map_elem") || !strcmp(program->section, "iter/bpf_sk_storage_map");
}

int programs_list(struct bpf_object *object, struct programs *ret_programs)
{
	struct programs programs = { 0 };
	struct bpf_program *bpf;
	int err = 0;

	bpf_object__for_each_program (bpf, object) {
		err = add(&programs, bpf);
		if (err)
			break;
	}
	if (!err)
		err = alternatives_find(&programs);
	if (err) {
		programs_done(&programs);
		return err;
	}
	*ret_programs = programs;
	return 0;
}

bool programs_is_hook_attached(const struct programs *programs, const char *hook)
{
	for (uint32_t i = 0; i < programs->n; i++)
		if (!strcmp(programs->items[i].hook, hook) && programs->items[i].state == PROGRAM_ATTACHED)
			return true;
	return false;
}

/* Is it the alternative to try now: no better one of its hook is still in the running? */
static bool is_chosen(const struct programs *programs, const struct program *program)
{
	if (program->state != PROGRAM_WAITING)
		return false;
	for (uint32_t i = 0; i < programs->n; i++) {
		const struct program *other = &programs->items[i];

		if (other->state != PROGRAM_WAITING || strcmp(other->hook, program->hook) ||
		    !strcmp(other->variant, program->variant))
			continue;
		if (other->rank < program->rank || (other->rank == program->rank && other < program))
			return false;
	}
	return true;
}

/*
 * What the verifier objected to: the last line of its log before "processed N insns". Empty where it said
 * nothing.
 */
static void verifier_words(const char *text, char *words, size_t size)
{
	const char *end = NULL, *start;

	for (const char *at = text; (at = strstr(at, "\nprocessed ")); at++)
		end = at;
	words[0] = '\0';
	if (!end)
		return;
	for (start = end; start > text && start[-1] != '\n'; start--)
		;
	snprintf(words, size, ": %.*s", (int)(end - start), start);
}

/* What an error means for this kind of hook, or "". */
static const char *meaning(const struct program *program, int err)
{
	const char *section = program->section;

	if (err == -ESRCH && !strncmp(section, "tp_btf/", 7))
		return " (this kernel has no tracepoint of that name)";
	if (err == -ENOENT && (!strncmp(section, "uprobe", 6) || !strncmp(section, "uretprobe", 9)))
		return " (the library or the symbol is missing)";
	if (err == -ENOENT && (!strncmp(section, "tp/", 3) || !strncmp(section, "tracepoint/", 11)))
		return access("/sys/kernel/tracing/events", F_OK) ? " (mount tracefs at /sys/kernel/tracing)" :
								    " (this kernel has no tracepoint of that name)";
	return "";
}

static void refuse(struct program *program, int err, const char *what, const char *words)
{
	program->state = PROGRAM_REFUSED;
	program->err = err;
	free(program->error);
	if (asprintf(&program->error, "%s: %s%s%s", what, strerror(-err), meaning(program, err), words) < 0)
		program->error = NULL;
}

/* The program that libbpf complained of last: "prog 'NAME': …". */
static struct program *find_culprit(const struct programs *programs, const char *text)
{
	struct program *culprit = NULL;

	for (const char *at = text; (at = strstr(at, "prog '")); at++) {
		for (uint32_t i = 0; i < programs->n; i++) {
			size_t length = strlen(programs->items[i].name);

			if (!strncmp(at + 6, programs->items[i].name, length) && at[6 + length] == '\'')
				culprit = &programs->items[i];
		}
	}
	return culprit;
}

static int attach(struct bpf_object *object, struct program *program)
{
	struct bpf_program *bpf = bpf_object__find_program_by_name(object, program->name);

	if (!bpf)
		return -ENOENT;
	if (program->map) {
		struct bpf_map *map = bpf_object__find_map_by_name(object, program->map);
		union bpf_iter_link_info info = { .map.map_fd = map ? (uint32_t)bpf_map__fd(map) : 0 };
		LIBBPF_OPTS(bpf_iter_attach_opts, options, .link_info = &info, .link_info_len = sizeof(info));

		program->link = bpf_program__attach_iter(bpf, &options);
	} else {
		program->link = bpf_program__attach(bpf);
	}
	if (!program->link)
		return -errno;
	program->fd = bpf_program__fd(bpf);
	return 0;
}

static void detach(struct programs *programs)
{
	for (uint32_t i = 0; i < programs->n; i++) {
		struct program *program = &programs->items[i];

		bpf_link__destroy(program->link);
		program->link = NULL;
		program->fd = -1;
		if (program->state == PROGRAM_ATTACHED)
			program->state = PROGRAM_WAITING;
	}
}

static bool has_alternative(const struct programs *programs, const struct program *program)
{
	for (uint32_t i = 0; i < programs->n; i++)
		if (programs->items[i].state == PROGRAM_WAITING && !strcmp(programs->items[i].hook, program->hook) &&
		    strcmp(programs->items[i].variant, program->variant))
			return true;
	return false;
}

/*
 * Iterators go last: their first run sets the baseline of what the hooks then count on. 1: a program was
 * refused that has an alternative, so another try is worth while.
 */
static int attach_all(struct programs *programs, struct bpf_object *object)
{
	bool is_worth = false;

	for (int iterators = 0; iterators < 2; iterators++) {
		for (uint32_t i = 0; i < programs->n; i++) {
			struct program *program = &programs->items[i];
			int err;

			if (program->is_iterator != (iterators == 1) || program->state != PROGRAM_WAITING ||
			    !bpf_program__autoload(bpf_object__find_program_by_name(object, program->name)))
				continue;
			err = attach(object, program);
			if (!err) {
				program->state = PROGRAM_ATTACHED;
				continue;
			}
			refuse(program, err, "attach", "");
			is_worth |= has_alternative(programs, program);
		}
	}
	return is_worth;
}

/* One try. 0: done; 1: try again; -errno. */
static int try_load(struct programs *programs, const struct programs_loader *loader, struct bpf_object **ret_object)
{
	struct bpf_object *object;
	struct program *culprit;
	char words[256];
	int err;

	/* Messages of an earlier try are dealt with, and a verifier's log would leave no room for the next one. */
	buf_reset(messages);
	err = loader->open(loader->user, &object);
	if (err)
		return err;
	for (uint32_t i = 0; i < programs->n; i++) {
		struct bpf_program *bpf = bpf_object__find_program_by_name(object, programs->items[i].name);

		bpf_program__set_autoload(bpf, is_chosen(programs, &programs->items[i]));
	}
	err = bpf_object__load(object);
	if (err) {
		culprit = find_culprit(programs, buf_text(messages));
		verifier_words(buf_text(messages), words, sizeof(words));
		bpf_object__close(object);
		if (!culprit || culprit->state != PROGRAM_WAITING)
			return err;
		refuse(culprit, err, "load", words);
		return 1;
	}
	err = loader->loaded ? loader->loaded(loader->user, object) : 0;
	if (!err)
		err = attach_all(programs, object);
	if (err) {
		detach(programs);
		bpf_object__close(object);
		return err;
	}
	*ret_object = object;
	return 0;
}

/* Where the kernel took not one program: the errno and the words of the first refusal. */
static int nothing_attached(const struct programs *programs, struct buf *why)
{
	const struct program *first = NULL;

	for (uint32_t i = 0; i < programs->n; i++) {
		if (programs->items[i].state == PROGRAM_ATTACHED)
			return 0;
		if (programs->items[i].state == PROGRAM_REFUSED && !first)
			first = &programs->items[i];
	}
	if (!first)
		return 0;
	buf_printf(why, "%s (%s): %s\n", first->name, first->section, first->error ? first->error : "out of memory");
	return first->err;
}

int programs_load(struct programs *programs, const struct programs_loader *loader, struct buf *why,
		  struct bpf_object **ret_object)
{
	struct bpf_object *object = NULL;
	int err;

	messages = why;
	do
		err = try_load(programs, loader, &object);
	while (err > 0);
	messages = NULL;
	if (!err)
		err = nothing_attached(programs, why);
	if (err) {
		bpf_object__close(object);
		return err;
	}
	*ret_object = object;
	return 0;
}

static int iterate(const struct program *program)
{
	_cleanup_(closep) int fd = bpf_iter_create(bpf_link__fd(program->link));
	char unused[256];
	ssize_t size;

	if (fd < 0)
		return fd;
	/* Our iterators write nothing: each read is the kernel's walk, EAGAIN means that it paused. */
	do
		size = read(fd, unused, sizeof(unused));
	while (size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR)));
	return size < 0 ? -errno : 0;
}

int programs_iterate(const struct programs *programs)
{
	int err = 0;

	for (uint32_t i = 0; i < programs->n; i++) {
		const struct program *program = &programs->items[i];
		int r = program->is_iterator && program->state == PROGRAM_ATTACHED ? iterate(program) : 0;

		if (r && !err)
			err = r;
	}
	return err;
}

/* -errno, or 1: the program uses the map. */
static int uses_map(const struct program *program, uint32_t map_id)
{
	uint32_t ids[64] = { 0 }, size = sizeof(struct bpf_prog_info); /* the kernel's limit is 64 maps */
	struct bpf_prog_info info = { .nr_map_ids = ARRAY_SIZE(ids), .map_ids = (uintptr_t)ids };
	int err = bpf_obj_get_info_by_fd(program->fd, &info, &size);

	for (uint32_t i = 0; !err && i < ARRAY_SIZE(ids); i++)
		if (ids[i] == map_id)
			return 1;
	return err;
}

bool programs_is_map_of_iterators(const struct programs *programs, int map_fd)
{
	struct bpf_map_info info = { 0 };
	uint32_t size = sizeof(info);
	bool is_used = false;

	if (bpf_obj_get_info_by_fd(map_fd, &info, &size))
		return false;
	for (uint32_t i = 0; i < programs->n; i++) {
		const struct program *program = &programs->items[i];

		if (program->state != PROGRAM_ATTACHED || !uses_map(program, info.id))
			continue;
		if (!program->is_iterator)
			return false;
		is_used = true;
	}
	return is_used;
}

int programs_enable_stats(void)
{
	return bpf_enable_stats(BPF_STATS_RUN_TIME);
}

void programs_stats(struct programs *programs)
{
	for (uint32_t i = 0; i < programs->n; i++) {
		struct program *program = &programs->items[i];
		struct bpf_prog_info info = { 0 };
		uint32_t size = sizeof(info);

		if (program->fd < 0 || bpf_obj_get_info_by_fd(program->fd, &info, &size))
			continue;
		program->runs = info.run_cnt;
		program->run_time_ns = info.run_time_ns;
		program->missed = info.recursion_misses;
	}
}

void programs_done(struct programs *programs)
{
	detach(programs);
	for (uint32_t i = 0; i < programs->n; i++) {
		free(programs->items[i].name);
		free(programs->items[i].hook);
		free(programs->items[i].variant);
		free(programs->items[i].section);
		free(programs->items[i].error);
	}
	free(programs->items);
	*programs = (struct programs){ 0 };
}
