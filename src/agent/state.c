/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/state.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/internal.h"
#include "collector/adopt/state.h"
#include "collector/label/cgroup.h"
#include "util/array.h"
#include "util/hash.h"
#include "util/kept.h"

#define MAGIC (UINT64_C(0x6270667075736800) + STORE_FORMAT)
/* Series of an object that counts from 0 again: something that feeds them may need time to come. */
#define HELD_NS (300 * NS_PER_S)

struct header {
	uint64_t magic;
	uint64_t sequence; /* the higher one is the newer; 0: not whole */
	uint64_t size;	   /* with the header */
	uint64_t names, names_bytes; /* which of the two stores, and what it held */
	uint64_t told_bytes; /* that follow */
};

/* Two copies of the state, and two with names. */
#define NAMES  2
#define STORES 4

struct state {
	struct store stores[STORES];
	unsigned int current; /* is the last copy, if sequence is not 0 */
	uint64_t sequence;
	struct series_names names;
	struct store_tail told; /* by the ring of cgroups, since the last copy */
	struct restored restored; /* whose series are held … */
	uint64_t held_until_ns;	  /* … so long, CLOCK_BOOTTIME */
	bool has_told; /* that it cannot be saved */
};

static struct header *header_of(const struct state *state, unsigned int which)
{
	return (struct header *)state->stores[which].data;
}

static int open_stores(struct kept *kept, struct store stores[STORES])
{
	_cleanup_(closep) int made = -1;
	int fd = kept_find(kept, "state"), err = 0;

	if (fd < 0) {
		fd = made = memfd_create("state", MFD_CLOEXEC);
		err = made < 0 ? -errno : kept_put(kept, "state", made);
	}
	return err ?: stores_open(fd, stores, STORES);
}

static bool is_whole(const struct state *state, unsigned int which)
{
	const struct header *header = header_of(state, which);

	return header->magic == MAGIC && header->sequence && header->names <= 1 &&
	       header->names_bytes <= STORE_BYTES && header->size >= sizeof(*header) &&
	       header->size <= STORE_BYTES && header->told_bytes <= STORE_BYTES - header->size;
}

static void use_copy(struct state *state, unsigned int which)
{
	struct header *header = header_of(state, which);
	struct store *store = &state->stores[which];

	state->current = which;
	state->sequence = header->sequence;
	store->size = header->size + header->told_bytes;
	state->told = (struct store_tail){ store, header->size, &header->told_bytes };
}

struct state *state_new(struct kept *kept)
{
	struct state *state = kept ? calloc(1, sizeof(*state)) : NULL;
	int err;

	if (!state)
		return NULL;
	err = open_stores(kept, state->stores);
	if (err) {
		log_warning("the state cannot be kept (%s): after a restart, all series would start again", strerror(-err));
		return state_free(state);
	}
	for (unsigned int i = 0; i < 2; i++)
		if (is_whole(state, i) && header_of(state, i)->sequence > state->sequence)
			use_copy(state, i);
	if (!state->sequence && (header_of(state, 0)->magic || header_of(state, 1)->magic))
		log_warning("the state of the process before is of another version, or damaged: all series start again");
	return state;
}

struct state *state_free(struct state *state)
{
	if (!state)
		return NULL;
	stores_close(state->stores, STORES);
	index_done(&state->names.texts);
	free(state->restored.series);
	free(state);
	return NULL;
}

void state_forget_series(struct state *state)
{
	if (!state)
		return;
	free(state->restored.series);
	state->restored = (struct restored){ 0 };
}

/*
 * Of the settings of a section, or of all sections of a kind (name NULL), or of the settings that
 * are called key.
 */
static uint64_t hash_sections(uint64_t hash, const struct config *config, const char *kind,
			      const char *name, const char *key)
{
	for (size_t i = 0; i < config->n_sections; i++) {
		const struct config_section *section = &config->sections[i];

		if (strcmp(section->kind, kind) || (name && strcmp(section->name, name)))
			continue;
		array_for_each (setting, section->given.items, section->given.n)
			if (!key || !strcmp(setting->key, key))
				hash = hash_text(hash_text(hash_text(hash, section->name),
							   setting->key),
						 setting->value);
	}
	return hash;
}

/* A hash of all that decides which names a key has. */
static uint64_t hash_names(const struct config *config)
{
	const struct label_choice *choice = &config->agent.names;
	const struct setting_list *lists[] = { &choice->units.include, &choice->units.exclude,
					       &choice->units.fold };
	uint64_t hash = hash_stable(HASH_STABLE_START, &choice->brief_processes,
				    sizeof(choice->brief_processes));

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		hash = hash_stable(hash, &i, sizeof(i));
		for (size_t j = 0; j < lists[i]->n_items; j++)
			hash = hash_text(hash, lists[i]->items[j]);
	}
	hash = hash_sections(hash, config, "collector", NULL, "drop_attributes");
	return hash_sections(hash, config, "metric", NULL, "drop_attributes");
}

static const char *section_of(const struct config *config, const struct exporter *exporter)
{
	array_for_each (section, config->exporters, config->n_exporters)
		if (section->options == exporter->options)
			return section->name;
	return exporter->name;
}

/* A hash of all that decides where it sends, and what. */
static uint64_t hash_exporter(const struct config *config, const struct exporter *exporter)
{
	uint64_t hash = hash_sections(hash_text(HASH_STABLE_START, exporter->ops->type), config,
				      "exporter", section_of(config, exporter), NULL);

	for (char *const *at = environ; at && *at; at++)
		if (!strncmp(*at, "OTEL_", 5))
			hash = hash_text(hash, *at);
	return hash;
}

static void save_exporters(const struct agent *agent, struct store *out)
{
	store_number(out, agent->n_exporters);
	for (size_t i = 0; i < agent->n_exporters; i++) {
		size_t begin;

		store_text(out, agent->exporters[i]->name);
		store_number(out, hash_exporter(agent->options.config, agent->exporters[i]));
		begin = store_begin(out);
		exporter_save(agent->exporters[i], out);
		store_end(out, begin);
	}
}

static void save_all(struct state *state, const struct agent *agent, struct store *out)
{
	const struct collector_set *set = agent->options.set;

	store_number(out, agent->batch.time_ns);
	store_number(out, agent->boottime_ns);
	store_number(out, set->labels->boot_ns);
	save_exporters(agent, out);
	store_number(out, hash_names(agent->options.config));
	metrics_save(agent->batch.metrics, agent->batch.n_metrics, &state->names, out);
	cgroups_save(set->labels->cgroups, out);
	collectors_save(set->items, set->n, out);
}

/*
 * Without memory, rather leave no state than one that does not know which places were cleared
 * since.
 */
static void give_up(struct state *state)
{
	for (unsigned int i = 0; i < 2; i++)
		__atomic_store_n(&header_of(state, i)->sequence, 0, __ATOMIC_SEQ_CST);
	state->told.store = NULL;
	state->names.n = 0;
	if (!state->has_told)
		log_warning("no memory to save the state: after a restart, all series would start again");
	state->has_told = true;
}

/* To be written next: the last copy does not need them. */
static struct store *other_names(struct state *state)
{
	return &state->stores[NAMES + !header_of(state, state->current)->names];
}

void state_save(struct state *state, struct agent *agent)
{
	unsigned int next = state ? !state->current : 0;
	struct store *out, *names;
	struct header *header;

	if (!state)
		return;
	if (agent->boottime_ns >= state->held_until_ns)
		restored_release(&state->restored, NULL, NULL);
	out = &state->stores[next];
	header = header_of(state, next);
	__atomic_store_n(&header->sequence, 0, __ATOMIC_SEQ_CST);
	store_reset(out);
	out->size = sizeof(*header);
	if (names_are_stale(&state->names))
		names_begin(&state->names, other_names(state));
	save_all(state, agent, out);
	names = state->names.store;
	if (out->has_failed || names->has_failed) {
		give_up(state);
		return;
	}
	*header = (struct header){ .magic = MAGIC, .size = out->size, .names_bytes = names->size,
				   .names = (uint64_t)(names - &state->stores[NAMES]) };
	__atomic_store_n(&header->sequence, ++state->sequence, __ATOMIC_SEQ_CST);
	use_copy(state, next);
	store_reset(other_names(state));
}

static struct exporter *find_exporter(const struct agent *agent, const char *name)
{
	for (size_t i = 0; i < agent->n_exporters; i++)
		if (!strcmp(agent->exporters[i]->name, name))
			return agent->exporters[i];
	return NULL;
}

static void restore_exporters(struct agent *agent, struct stored *in)
{
	uint64_t n = stored_number(in);

	for (uint64_t i = 0; i < n && !in->is_bad; i++) {
		const char *name = stored_text(in);
		uint64_t hash = stored_number(in);
		struct stored saved = stored_block(in);
		struct exporter *exporter = find_exporter(agent, name);

		if (exporter)
			exporter_restore(exporter, &saved,
					 hash == hash_exporter(agent->options.config, exporter));
		else if (!in->is_bad)
			exporter_report_gone(name, &saved);
	}
}

/*
 * Does something go on that is not there yet? What an adopted object feeds is known at once; a
 * gauge has no total.
 */
static bool is_held(void *user, const struct series *series)
{
	const struct collector_set *set = user;
	const struct collector *collector = collector_named(set->items, set->n,
							    series->metric->scope);

	return series->metric->kind != METRIC_GAUGE &&
	       !(collector && collector->object->is_adopted);
}

static int restore_all(struct state *state, struct agent *agent, struct stored *in)
{
	const struct collector_set *set = agent->options.set;
	const struct header *header = header_of(state, state->current);
	const uint8_t *names = state->stores[NAMES + header->names].data;
	struct restored *restored = &state->restored;
	int err;

	restore_exporters(agent, in);
	restored->names = (struct stored){ names, names + header->names_bytes, false };
	restored->has_other_names = stored_number(in) != hash_names(agent->options.config);
	err = metrics_restore(agent->batch.metrics, agent->batch.n_metrics, in, restored);
	err = err ?: cgroups_restore(set->labels->cgroups, in, restored->has_other_names);
	err = err ?: collectors_restore(set->items, set->n, agent->options.kept, in, restored);
	return !err && in->is_bad ? -EINVAL : err;
}

void state_restore(struct state *state, struct agent *agent)
{
	uint64_t now_ns = clock_ns(CLOCK_BOOTTIME), time_ns, boottime_ns, boot_ns;
	struct stored in;
	const uint8_t *data;
	int err;

	if (state)
		cgroups_record(agent->options.set->labels->cgroups, &state->told);
	if (!state || !state->sequence)
		return;
	data = state->stores[state->current].data;
	in = (struct stored){ data + sizeof(struct header), data + state->told.begin, false };
	time_ns = stored_number(&in);
	boottime_ns = stored_number(&in);
	boot_ns = stored_number(&in);
	if (boottime_ns > now_ns)
		return;
	agent->batch.time_ns = state->restored.time_ns = time_ns;
	agent->boottime_ns = boottime_ns;
	agent->options.set->labels->boot_ns = boot_ns;
	err = restore_all(state, agent, &in);
	if (err)
		log_warning("the state of the process before cannot be read to its end (%s): some series start again",
			    strerror(-err));
	restored_release(&state->restored, is_held, agent->options.set);
	state->held_until_ns = now_ns + HELD_NS;
}
