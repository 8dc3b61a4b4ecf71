/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libbpf loads an object whole or not at all, and a loaded object cannot be loaded again. So a
 * program that the kernel refuses costs a new try: it is marked, the next alternative of its hook
 * takes its place, the object is opened afresh. Each try marks at least one program, so there are
 * never more tries than programs. libbpf's own message tells which one was refused.
 */
#include "collector/programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>

#include "collector/hook/alternative.h"
#include "collector/hook/attach.h"
#include "collector/hook/file.h"
#include "collector/hook/perf.h"
#include "collector/hook/preempt.h"
#include "collector/hook/target.h"
#include "collector/kernel/kernel.h"
#include "util/array.h"
#include "util/buf.h"
#include "util/log.h"
#include "util/rights.h"

#define INTERRUPTED_MAX	   20
#define EMPTY_INSTRUCTIONS 2 /* return 0 */

static struct buf *messages; /* where libbpf's warnings go during programs_load() */

static _printf_(2, 0) int collect_message(enum libbpf_print_level level, const char *format,
					  va_list arguments)
{
	if (messages && level == LIBBPF_WARN && messages->size < 65536)
		buf_vprintf(messages, format, arguments);
	return 0;
}

void programs_listen(struct buf *words)
{
	messages = words;
}

void programs_quiet(void)
{
	static int event, packet, mark;

	libbpf_set_print(collect_message);
	event = event ?: libbpf_register_prog_handler("perf_event+", BPF_PROG_TYPE_PERF_EVENT, 0, NULL);
	mark = mark ?: libbpf_register_prog_handler("mark+", BPF_PROG_TYPE_KPROBE, 0, NULL);
	packet = packet ?: libbpf_register_prog_handler("xdp+", BPF_PROG_TYPE_XDP, BPF_XDP, NULL);
}

static int add_program(struct programs *programs, const struct bpf_program *bpf)
{
	struct program *program = array_add(&programs->items, &programs->n, sizeof(*program));
	const char *section = bpf_program__section_name(bpf);

	if (!program)
		return -ENOMEM;
	section += *section == '?'; /* libbpf would not load it by itself */
	/* a USDT whose arguments libbpf does not read (hook/mark.h) */
	if (!strcmp(section, "mark"))
		section = "usdt";
	*program = (struct program){ .fd = -1, .link_fd = -1, .past_link_fd = -1,
				     .is_iterator = !strncmp(section, "iter/", 5),
				     .is_empty = bpf_program__insn_cnt(bpf) <= EMPTY_INSTRUCTIONS };
	program->name = strdup(bpf_program__name(bpf));
	program->section = strdup(section);
	return program->name && program->section ? 0 : -ENOMEM;
}

bool program_is_over_map(const struct program *program)
{
	return !strcmp(program->section, "iter/bpf_map_elem") || !strcmp(program->section, "iter/bpf_sk_storage_map");
}

int programs_list(struct bpf_object *object, struct programs *programs)
{
	struct bpf_program *bpf;
	int err = 0;

	bpf_object__for_each_program (bpf, object) {
		/* A function that programs call; libbpf takes it for a program if it is alone. */
		if (!err && strcmp(bpf_program__section_name(bpf), ".text"))
			err = add_program(programs, bpf);
	}
	if (!err)
		alternatives_find(programs);
	return err;
}

const struct program *programs_find(const struct programs *programs, const char *hook,
				    enum program_state state)
{
	array_for_each (program, programs->items, programs->n)
		if (!strcmp(program->hook, hook) && program->state == state)
			return program;
	return NULL;
}

/* Is it the alternative to try now: no better one of its hook is still in the running? */
static bool is_chosen(const struct programs *programs, const struct program *program)
{
	if (program->state != PROGRAM_WAITING)
		return false;
	array_for_each (other, programs->items, programs->n) {
		if (other->state != PROGRAM_WAITING || strcmp(other->hook, program->hook) ||
		    !strcmp(other->variant, program->variant))
			continue;
		if (other->rank < program->rank ||
		    (other->rank == program->rank && other < program))
			return false;
	}
	return true;
}

/* Parts of a variant that have different sections are of no use without each other. */
static bool is_lost_with(const struct program *program, const struct program *refused)
{
	return !strcmp(program->variant, refused->variant) && program->type != refused->type &&
	       (program->state == PROGRAM_WAITING || program->state == PROGRAM_ATTACHED);
}

/* log: what libbpf said of the load. */
static void refuse_program(struct programs *programs, struct program *refused, int err,
			   const char *what, const char *log)
{
	char what_of_other[64];

	snprintf(what_of_other, sizeof(what_of_other), "%s (of the program that it belongs to)", what);
	array_for_each (program, programs->items, programs->n) {
		if (program != refused && !is_lost_with(program, refused))
			continue;
		hook_detach(program);
		program->state = PROGRAM_REFUSED;
		program->err = err;
		free(program->error);
		program->error = refusal_text(program == refused ? what : what_of_other, err,
					      refused->section, log);
	}
}

/* The program that libbpf complained of last: "prog 'NAME': …". */
static struct program *find_culprit(const struct programs *programs, const char *text)
{
	struct program *culprit = NULL;

	for (const char *at = text; (at = strstr(at, "prog '")); at++) {
		array_for_each (program, programs->items, programs->n) {
			size_t length = strlen(program->name);

			if (!strncmp(at + 6, program->name, length) && at[6 + length] == '\'')
				culprit = program;
		}
	}
	return culprit;
}

static void detach_all(struct programs *programs)
{
	array_for_each (program, programs->items, programs->n) {
		hook_detach(program);
		if (program->state == PROGRAM_ATTACHED)
			program->state = PROGRAM_WAITING;
	}
}

static bool has_alternative(const struct programs *programs, const struct program *program)
{
	array_for_each (other, programs->items, programs->n)
		if (other->state == PROGRAM_WAITING && !strcmp(other->hook, program->hook) &&
		    strcmp(other->variant, program->variant))
			return true;
	return false;
}

/*
 * Iterators go last: their first run sets the baseline of what the hooks then count on. 1: a
 * program was refused that has an alternative, so another try is worth while.
 */
static int attach_all(struct programs *programs, struct bpf_object *object)
{
	bool is_worth = false;

	for (int iterators = 0; iterators < 2; iterators++) {
		array_for_each (program, programs->items, programs->n) {
			struct bpf_program *bpf = bpf_object__find_program_by_name(object,
										   program->name);
			int err;

			if (program->is_iterator != (iterators == 1) ||
			    program->state != PROGRAM_WAITING || !bpf_program__autoload(bpf))
				continue;
			buf_reset(messages);
			err = hook_attach(object, program, bpf);
			if (!err) {
				program->fd = bpf_program__fd(bpf);
				program->state = PROGRAM_ATTACHED;
				continue;
			}
			refuse_program(programs, program, err, "attach", buf_text(messages));
			is_worth |= has_alternative(programs, program);
		}
	}
	return is_worth;
}

/* Chooses among alternatives. What is refused here costs no load. */
static void choose_alternatives(struct programs *programs, struct bpf_object *object)
{
	struct bpf_program *bpf;
	bool is_done = false;

	bpf_object__for_each_program (bpf, object)
		bpf_program__set_autoload(bpf, false);
	while (!is_done) {
		is_done = true;
		array_for_each (program, programs->items, programs->n) {
			bool is_wanted = is_chosen(programs, program);
			int err;

			bpf = bpf_object__find_program_by_name(object, program->name);
			err = is_wanted && !bpf_program__autoload(bpf) ? hook_try(program, bpf) : 0;
			bpf_program__set_autoload(bpf, is_wanted && !err);
			if (!err)
				continue;
			refuse_program(programs, program, err,
				       bpf_program__type(bpf) == BPF_PROG_TYPE_TRACING ? "load" : "attach",
				       "");
			is_done = false;
		}
	}
}

/*
 * Before 1.3, libbpf loads nothing where a type or function is not the kernel's own: it wants to
 * look in the modules, whose list needs CAP_SYS_ADMIN. It tries so only once for an object, and any
 * name makes it try.
 */
static void skip_modules(const struct bpf_object *bpf)
{
	bool gives_up = libbpf_major_version() == 1 && libbpf_minor_version() < 3;
	struct bpf_program *program = bpf_object__next_program(bpf, NULL);

	if (gives_up && program && !(rights_permitted() >> CAP_SYS_ADMIN & 1))
		(void)bpf_program__set_attach_target(program, 0, "a name that no function has");
}

/* One try. 0: done; 1: try again; -errno. */
static int try_load(struct programs *programs, const struct programs_loader *loader,
		    struct bpf_object **ret_object)
{
	struct bpf_object *object;
	struct program *culprit;
	int err = loader->open(loader->user, &object);
	if (err)
		return err;
	choose_alternatives(programs, object);
	skip_modules(object);
	/*
	 * What has been said so far is dealt with, and a verifier's log would leave no room for the
	 * next one.
	 */
	buf_reset(messages);
	err = bpf_object__load(object);
	if (err) {
		bpf_object__close(object);
		/*
		 * A signal came while the kernel checked a program, more often than libbpf tries
		 * again.
		 */
		if (err == -EAGAIN && programs->n_interrupted++ < INTERRUPTED_MAX)
			return 1;
		culprit = find_culprit(programs, buf_text(messages));
		if (!culprit || culprit->state != PROGRAM_WAITING)
			return err;
		refuse_program(programs, culprit, err, "load", buf_text(messages));
		return 1;
	}
	err = loader->loaded ? loader->loaded(loader->user, object) : 0;
	err = err ?: attach_all(programs, object);
	if (err) {
		detach_all(programs);
		bpf_object__close(object);
		return err;
	}
	*ret_object = object;
	return 0;
}

int programs_load(struct programs *programs, const struct programs_loader *loader, struct buf *why,
		  struct bpf_object **ret_object)
{
	int err;

	alternatives_rank(programs, hook_is_preemptible);
	messages = why;
	do
		err = try_load(programs, loader, ret_object);
	while (err > 0);
	messages = NULL;
	return err;
}

bool programs_are_at_functions(const struct programs *programs)
{
	array_for_each (program, programs->items, programs->n)
		if (program->state == PROGRAM_ATTACHED &&
		    section_is(program->section, KERNEL_FUNCTIONS))
			return true;
	return false;
}

bool programs_renew(struct programs *programs, const struct bpf_object *object)
{
	bool has_any = false;

	array_for_each (program, programs->items, programs->n) {
		bool is_everywhere = hook_is_everywhere(program);
		uint64_t file = object && program->file ? file_identity(program->section) : 0;
		int err = program->err;

		has_any |= is_everywhere;
		if (is_everywhere && object)
			err = perf_attach(object, program,
					  bpf_object__find_program_by_name(object, program->name));
		if (err && err != program->err)
			log_warning("program %s (%s) does not run on a CPU that has come online: %s; restart bpfpush",
				    program->name, program->section, refusal_error(err));
		program->err = err;
		if (file && file != program->file && program->state == PROGRAM_ATTACHED)
			log_warning("program %s (%s) does not run in the file that is there now, only in the one before: reload bpfpush",
				    program->name, program->section);
		program->file = file ?: program->file;
	}
	return has_any;
}

static int run_iterator(int link_fd)
{
	_cleanup_(closep) int fd = bpf_iter_create(link_fd);
	char unused[256];
	ssize_t size;

	if (fd < 0)
		return fd;
	/*
	 * Our iterators write nothing: each read is the kernel's walk, EAGAIN means that it paused.
	 */
	do
		size = read(fd, unused, sizeof(unused));
	while (size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR)));
	return size < 0 ? -errno : 0;
}

int programs_iterate(struct programs *programs, bool is_start)
{
	bool has_skips = programs->n_skipped != programs->n_seeded;
	int err = 0;

	programs->n_seeded = programs->n_skipped;
	array_for_each (program, programs->items, programs->n) {
		bool is_due = program->is_iterator &&
			      (is_start || (program->is_seed ? has_skips : !program->is_once));
		int past, r;

		if (!is_due || program->state != PROGRAM_ATTACHED)
			continue;
		past = program->past_link_fd < 0 ? 0 : run_iterator(program->past_link_fd);
		program->past_link_fd = -1;
		r = run_iterator(program->link_fd);
		past = past ?: r;
		err = err ?: past;
	}
	return err;
}

void programs_done(struct programs *programs)
{
	detach_all(programs);
	array_for_each (program, programs->items, programs->n) {
		free(program->name);
		free(program->section);
		free(program->error);
		free(program->backup);
	}
	free(programs->items);
	*programs = (struct programs){ 0 };
}
