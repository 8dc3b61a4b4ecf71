/* SPDX-License-Identifier: Apache-2.0 */
#include "export/lines/line-name.h"

#include <inttypes.h>
#include <string.h>

#define DIGITS_BYTES 10 /* "_x" and eight of them */
#define ATTEMPTS 100  /* of names that differ in eight digits: never needed */
#define SWEEP_AT 4096 /* claims that are kept however few series there are */

static bool ends_in(const struct buf *path, const char *suffix)
{
	size_t size = strlen(suffix);

	return path->size > size && !memcmp(path->data + path->size - size, suffix, size);
}

struct candidate {
	struct buf path, tags, room;
	uint64_t identity;
};

/* The same for the same tags in another order, which receivers take for the same name. */
static uint64_t hash_tags(const struct dialect *dialect, const struct buf *tags)
{
	uint64_t hash = 0;

	for (size_t at = tags->size ? strlen(dialect->tag_first) : 0, size; at < tags->size; at += size + 1) {
		const uint8_t *tag = tags->data + at, *next = memchr(tag, dialect->tag_next, tags->size - at);

		size = next ? (size_t)(next - tag) : tags->size - at;
		hash += claims_hash(tag, size);
	}
	return hash;
}

#define LINE	  'l' /* the name of one line */
#define HISTOGRAM 'h' /* that of which the names of a histogram's lines are made */

/* A name as claims know it: what it is, its path up to size with a suffix, and its tags. */
static uint64_t key(const struct line_names *names, struct candidate *new, char what, size_t size, const char *suffix)
{
	uint64_t tags = hash_tags(names->naming->dialect, &new->tags);

	new->room.size = 0; /* an error stays, for make() to see */
	buf_append_byte(&new->room, (uint8_t)what);
	buf_append(&new->room, new->path.data, size);
	buf_append_text(&new->room, suffix);
	buf_append_byte(&new->room, '\0');
	buf_append(&new->room, &tags, sizeof(tags));
	return claims_hash(new->room.data, new->room.size);
}

static const char *const stem_suffixes[] = { ".count", ".sum" };

/* Where the path ends in what may be a bucket of a histogram, the size of the histogram's own; else 0. */
static size_t stem_of_bucket(const struct buf *path)
{
	static const char middle[] = ".bucket.";
	const uint8_t *found = memmem(path->data, path->size, middle, strlen(middle)), *end = path->data + path->size;

	for (const uint8_t *at = found; at; at = memmem(at + 1, (size_t)(end - at - 1), middle, strlen(middle)))
		found = at;
	if (!found || found == path->data)
		return 0;
	for (const uint8_t *at = found + strlen(middle); at < end; at++)
		if (!memchr("0123456789_e-inf", *at, 16))
			return 0;
	return (size_t)(found - path->data);
}

/* By somebody else? */
static bool is_claimed(const struct line_names *names, struct candidate *new, char what, size_t size,
		       const char *suffix)
{
	return claims_is_taken(&names->claims, key(names, new, what, size, suffix), new->identity);
}

/* Is it the name of a line that some histogram has? */
static bool is_line_of_histogram(const struct line_names *names, struct candidate *new)
{
	struct buf path = new->path;
	size_t stem;

	if (!ends_in(&path, names->histogram_ending))
		return false;
	path.size -= strlen(names->histogram_ending);
	for (size_t i = 0; i < ARRAY_SIZE(stem_suffixes); i++)
		if (ends_in(&path, stem_suffixes[i]) &&
		    is_claimed(names, new, HISTOGRAM, path.size - strlen(stem_suffixes[i]), ""))
			return true;
	stem = names->naming->dialect->tag_first ? 0 : stem_of_bucket(&path);
	return stem && is_claimed(names, new, HISTOGRAM, stem, "");
}

/* Has some line a name that one of this histogram's lines would have? */
static bool has_line_taken(const struct line_names *names, struct candidate *new, const struct line_bounds *bounds)
{
	char suffix[NAME_SUFFIX_BYTES + 1];

	for (size_t i = 0; i < ARRAY_SIZE(stem_suffixes); i++) {
		snprintf(suffix, sizeof(suffix), "%s%s", stem_suffixes[i], names->histogram_ending);
		if (is_claimed(names, new, LINE, new->path.size, suffix))
			return true;
	}
	for (uint32_t i = 0; i < bounds->n && !names->naming->dialect->tag_first; i++) {
		snprintf(suffix, sizeof(suffix), ".bucket.%.*s%s", LINE_BOUND_BYTES, bounds->level[i], names->histogram_ending);
		if (is_claimed(names, new, LINE, new->path.size, suffix))
			return true;
	}
	return false;
}

/* The claim of a name that nobody else has; 0 where somebody has. */
static uint64_t try_claim(const struct line_names *names, struct candidate *new, const struct line_bounds *bounds)
{
	uint64_t claim = key(names, new, bounds ? HISTOGRAM : LINE, new->path.size, "");

	if (claims_is_taken(&names->claims, claim, new->identity) ||
	    (bounds ? has_line_taken(names, new, bounds) : is_line_of_histogram(names, new)))
		return 0;
	return claim;
}

/* Adds what tells it from the series that has the name; a suffix of the path stays behind it. */
static void tell_apart(const struct line_names *names, struct candidate *new, const char *path_suffix, uint32_t digits)
{
	char text[16];

	if (names->naming->dialect->tag_first) {
		snprintf(text, sizeof(text), "%08" PRIx32, digits);
		name_append_tag(names->naming, 0, NAME_TAG_SERIES, text, &new->tags);
		return;
	}
	if (ends_in(&new->path, path_suffix))
		new->path.size -= strlen(path_suffix);
	/* The "x" is in no bound: it cannot be taken for a bucket's again. */
	buf_printf(&new->path, "_x%08" PRIx32 "%s", digits, path_suffix);
}

static struct line_name *make(struct line_names *names, struct series *series, struct candidate *new, uint64_t claim,
			      uint32_t n_base)
{
	size_t text_at = sizeof(struct line_name) + n_base * sizeof(uint64_t);
	struct series_cache *cache;
	struct line_name *name;
	char *text;

	if (buf_error(&new->path) || buf_error(&new->tags) || buf_error(&new->room) ||
	    claims_add(&names->claims, claim, new->identity) < 0)
		return NULL;
	cache = series_cache_new(series, names, NULL, text_at + new->path.size + new->tags.size);
	if (!cache)
		return NULL;
	text = (char *)cache->data + text_at;
	memcpy(text, new->path.data, new->path.size);
	if (new->tags.size)
		memcpy(text + new->path.size, new->tags.data, new->tags.size);
	name = (struct line_name *)cache->data;
	*name = (struct line_name){ .claim = claim,
				    .identity = new->identity,
				    .path_size = (uint16_t)new->path.size,
				    .tags_size = (uint16_t)new->tags.size,
				    .text = text,
				    .n_base = n_base };
	return name;
}

/* The name that series would have, and those that tell it apart, until one is free. 0: none, or no memory. */
static uint64_t find_free(struct line_names *names, const struct series *series, const struct line_kind *kind,
			  struct candidate *new)
{
	/* What tells apart, and what goes behind the path, must fit as well. */
	size_t spare_bytes = DIGITS_BYTES + (kind->bounds ? NAME_SUFFIX_BYTES : strlen(kind->path_suffix));
	size_t path_size, tags_size;
	uint64_t claim;

	name_append_path(names->naming, series, kind->metric_suffix, spare_bytes, &new->path);
	if (!ends_in(&new->path, kind->path_suffix))
		buf_append_text(&new->path, kind->path_suffix);
	name_append_tags(names->naming, series, &new->tags);
	if (buf_error(&new->path) || buf_error(&new->tags))
		return 0;
	path_size = new->path.size;
	tags_size = new->tags.size;
	claim = try_claim(names, new, kind->bounds);
	if (!claim)
		names->n_collisions++;
	for (uint32_t i = 0; !claim && i < ATTEMPTS; i++) {
		new->path.size = path_size;
		new->tags.size = tags_size;
		tell_apart(names, new, kind->path_suffix, (uint32_t)(new->identity >> 32) + i);
		if (buf_error(&new->path) || buf_error(&new->tags))
			return 0;
		claim = try_claim(names, new, kind->bounds);
	}
	return claim;
}

struct line_name *line_name_get(struct line_names *names, struct series *series, const struct line_kind *kind)
{
	struct series_cache *cache = series_cache(series, names);
	struct candidate new = { 0 };
	struct line_name *name;
	uint64_t claim;

	if (cache)
		return (struct line_name *)cache->data;
	new.identity = name_identity(series);
	claim = find_free(names, series, kind, &new);
	name = claim ? make(names, series, &new, claim, kind->n_base) : NULL;
	buf_done(&new.path);
	buf_done(&new.tags);
	buf_done(&new.room);
	return name;
}

void line_names_sweep(struct line_names *names, const struct batch *batch)
{
	struct metric *metric;
	size_t n_series = 0;

	batch_for_each_metric(metric, batch)
		n_series += metric->n_series;
	if (names->claims.n < SWEEP_AT || names->claims.n < 2 * n_series)
		return;
	claims_reset(&names->claims);
	batch_for_each_metric(metric, batch) {
		for (size_t i = 0; i < metric->n_series; i++) {
			const struct series_cache *cache = series_cache(metric->series[i], names);
			const struct line_name *name = cache ? (const struct line_name *)cache->data : NULL;

			if (name) /* there is room: there were more */
				(void)claims_add(&names->claims, name->claim, name->identity);
		}
	}
}

void line_names_done(struct line_names *names)
{
	claims_done(&names->claims);
}
