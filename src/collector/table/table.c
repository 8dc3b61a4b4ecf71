/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words tell in one pass which places are in use. Then column after column is added up: the
 * processor reads each of them forwards, and none of their pages or lines without a key is touched.
 */
#include "collector/table/table.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* As in bpf/include/table.h. */
enum table_state { TABLE_FREE, TABLE_LIVE, TABLE_REMOVED, TABLE_RETIRED = 5, TABLE_RESERVED = 7 };
#define TABLE_STATE   7u
#define TABLE_IS_USED 3u /* of a state: only LIVE and RETIRED have these bits so */
#define TABLE_SPILLED 8u

#define CHUNK 1024

static uint8_t *value_at(const struct table *table, uint32_t column, uint32_t place)
{
	return table->values + ((size_t)column * table->capacity + place) * table->stride_bytes;
}

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t round_to_pages(size_t bytes)
{
	return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

/* Puts bytes of a map, which begin at base, from first on at their place in the reserved room. */
static int map_pages(int fd, size_t base, void *reserved, size_t first, size_t bytes)
{
	size_t from = first / page_bytes() * page_bytes(), to = round_to_pages(first + bytes);
	void *memory = mmap((uint8_t *)reserved + from, to - from, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_FIXED, fd, (off_t)(base + from));

	return memory == MAP_FAILED ? -errno : 0;
}

static uint32_t *mask_of(const struct table *table)
{
	return (uint32_t *)(table->data + table->mask_offset_bytes);
}

/* Maps what has come into use since the last time. */
static int map_places(struct table *table)
{
	uint32_t mask = __atomic_load_n(mask_of(table), __ATOMIC_ACQUIRE);
	uint32_t n = mask < table->capacity && !table->is_past ? mask + 1 : table->capacity;
	size_t column = table->capacity * table->stride_bytes;
	int err;

	if (n <= table->n_places)
		return 0;
	err = map_pages(table->words_fd, table->base * sizeof(*table->words), table->words, 0,
			n * sizeof(*table->words));
	if (!err && n == table->capacity)
		err = map_pages(table->values_fd, 0, table->values, 0, table->columns * column);
	for (uint32_t i = 0; n < table->capacity && i < table->columns && !err; i++)
		err = map_pages(table->values_fd, 0, table->values, i * column,
				n * table->stride_bytes);
	if (!err)
		table->n_places = n;
	return err;
}

struct table table_from_parts(const struct table_parts *parts)
{
	return (struct table){ .words_fd = bpf_map__fd(parts->words),
			      .keys_fd = bpf_map__fd(parts->keys),
			      .values_fd = bpf_map__fd(parts->values),
			      .data_fd = bpf_map__fd(parts->data),
			      .mask_offset_bytes = parts->mask_offset_bytes,
			      .base = *parts->base,
			      .capacity = *parts->capacity,
			      .columns = parts->columns ? *parts->columns : 1,
			      .key_bytes = bpf_map__value_size(parts->keys),
			      .value_bytes = bpf_map__value_size(parts->values) };
}

/*
 * Addresses without memory for all that may come, so that a table that grows stays where it is. The
 * first write to a page gives it memory.
 */
static int reserve_addresses(struct table *table)
{
	size_t words_bytes = round_to_pages(table->capacity * sizeof(*table->words));
	size_t values_bytes =
		round_to_pages((size_t)table->columns * table->capacity * table->stride_bytes);
	size_t rows_bytes = round_to_pages(table->capacity * sizeof(*table->place_rows));
	uint8_t *memory = mmap(NULL, words_bytes + values_bytes + rows_bytes, PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return -errno;
	table->words = (uint64_t *)memory;
	table->values = memory + words_bytes;
	table->place_rows = (uint32_t *)(table->values + values_bytes);
	table->end = (uint8_t *)table->place_rows + rows_bytes;
	return mprotect(table->place_rows, rows_bytes, PROT_READ | PROT_WRITE) ? -errno : 0;
}

int table_open(struct table *table, uint32_t n_cells)
{
	void *data = mmap(NULL, page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, table->data_fd,
			  (off_t)(table->mask_offset_bytes / page_bytes() * page_bytes()));
	int err;

	if (data == MAP_FAILED)
		return -errno;
	table->mask_offset_bytes %= (uint32_t)page_bytes();
	table->data = data;
	table->stride_bytes = ((size_t)table->value_bytes + 7) / 8 * 8;
	table->n_places = table->n_live = 0;
	table->cells = malloc((n_cells + 1) * sizeof(*table->cells));
	err = table->cells ? reserve_addresses(table) : -ENOMEM;
	err = err ?: map_places(table);
	/* Makes place 0 nobody's. If it was, the table has been in use. */
	if (err || !(__atomic_fetch_or(&table->words[0], TABLE_RESERVED,
				       __ATOMIC_SEQ_CST) & TABLE_STATE))
		return err;
	table_put_spilled(table);
	for (uint32_t place = 1; place < table->n_places; place++)
		if (table_is_out(table, place))
			__atomic_fetch_xor(&table->words[place], TABLE_RESERVED ^ TABLE_RETIRED,
					   __ATOMIC_SEQ_CST);
	return 0;
}

void table_close(struct table *table)
{
	if (table->data)
		munmap(table->data, page_bytes());
	if (table->words)
		munmap(table->words, (size_t)(table->end - (uint8_t *)table->words));
	free(table->cells);
	table->data = table->values = NULL;
	table->place_rows = NULL;
	table->words = table->cells = NULL;
}

/* Which of n places hold a key. Without a branch, because no processor could predict it. */
static uint32_t find_used(const uint64_t *words, uint32_t n, uint16_t *ret_used)
{
	uint32_t n_used = 0;

	for (uint32_t i = 0; i < n; i++) {
		ret_used[n_used] = (uint16_t)i;
		n_used += (__atomic_load_n(&words[i], __ATOMIC_ACQUIRE) & TABLE_IS_USED) ==
			  TABLE_LIVE;
	}
	return n_used;
}

/* A histogram that counts something has a sum, or counts zeros. */
static bool is_empty(const struct reader_run *sum, const struct reader_run *buckets,
		     const uint8_t *value)
{
	return !shape_load(value + sum->offset_bytes, sum->size_bytes) &&
	       !shape_load(value + buckets->offset_bytes, buckets->size_bytes);
}

/* The same number of n places; kept apart from the rows, which lie far from each other. */
static void add_numbers(const struct table *table, const struct reader_run *run, uint32_t first,
			const uint16_t *used, uint32_t n, uint64_t *const *cells)
{
	size_t stride = table->stride_bytes;
	uint64_t sums[CHUNK];

	memset(sums, 0, n * sizeof(*sums));
	for (uint32_t column = 0; column < table->columns; column++) {
		const uint8_t *from = value_at(table, column, first) + run->offset_bytes;

		for (uint32_t i = 0; i < n; i++)
			sums[i] += ((const struct unaligned_u64 *)(from + used[i] * stride))->value;
	}
	for (uint32_t i = 0; i < n; i++)
		cells[i][run->first_cell] += sums[i];
}

/*
 * What n places hold in all columns, of which used counts from the first one on, to the cells of
 * their rows.
 */
static void add_values(const struct table *table, uint32_t first, const uint16_t *used, uint32_t n,
		       uint64_t *const *cells)
{
	for (size_t i = 0; i < table->n_runs; i++) {
		const struct reader_run *run = &table->runs[i];

		if (run->kind == RUN_U64 && run->count == 1) {
			add_numbers(table, run, first, used, n, cells);
			continue;
		}
		for (uint32_t j = 0; j < n; j++)
			for (uint32_t column = 0; column < table->columns; column++) {
				const uint8_t *value = value_at(table, column, first + used[j]);

				if (run->count == 1 || !i || !is_empty(run - 1, run, value))
					run_add(run, value, cells[j]);
			}
	}
}

/* The rows of n places. A key is read once, when its place is new, so keys are not kept mapped. */
static int find_rows(struct table *table, struct rows *rows, uint32_t first,
		     const uint16_t *used, uint32_t n)
{
	size_t from = (size_t)first * table->key_bytes, skipped = from % page_bytes();
	size_t bytes = skipped + (used[n - 1] + 1u) * (size_t)table->key_bytes;
	uint32_t *place_rows = table->place_rows + first;
	uint8_t *keys = NULL;
	int err = 0;

	for (uint32_t i = 0; i < n && !err; i++) {
		if (place_rows[used[i]])
			continue;
		if (!keys)
			keys = mmap(NULL, bytes, PROT_READ, MAP_SHARED, table->keys_fd,
				    (off_t)(from - skipped));
		if (keys == MAP_FAILED)
			return -errno;
		err = rows_touch(rows, keys + skipped + used[i] * (size_t)table->key_bytes,
				 &place_rows[used[i]]);
	}
	if (keys)
		munmap(keys, bytes);
	return err;
}

static int add_places(struct table *table, struct rows *rows, uint32_t first,
		      const uint16_t *used, uint32_t n)
{
	uint32_t *place_rows = table->place_rows + first;
	int err = find_rows(table, rows, first, used, n);
	uint64_t *cells[CHUNK];

	if (err)
		return err;
	for (uint32_t i = 0; i < n; i++)
		cells[i] = rows_touch_row(rows, place_rows[used[i]]);
	add_values(table, first, used, n, cells);
	return 0;
}

/* What all columns of a place hold, to the cells of a row. */
static void add_place(const struct table *table, uint32_t place, uint64_t *cells)
{
	add_values(table, place, &(uint16_t){ 0 }, 1, &cells);
}

int table_read(struct table *table, struct rows *rows)
{
	uint16_t used[CHUNK];
	int err = map_places(table);

	if (err)
		return err;
	table->n_live = 0;
	/* for all keys that found no place */
	add_place(table, 0, rows_touch_row(rows, ROWS_OVERFLOW));
	for (uint32_t first = 0; first < table->n_places && !err; first += CHUNK) {
		uint32_t rest = table->n_places - first;
		uint32_t n = find_used(table->words + first, rest < CHUNK ? rest : CHUNK, used);

		table->n_live += n;
		if (n)
			err = add_places(table, rows, first, used, n);
	}
	return err;
}

void table_renumber(struct table *table, const uint32_t *numbers)
{
	for (uint32_t i = 0; i < table->n_places; i++)
		if (table->place_rows[i])
			table->place_rows[i] = numbers[table->place_rows[i]];
}

bool table_take_spilled(struct table *table)
{
	return __atomic_fetch_and(&table->words[0], ~(uint64_t)TABLE_SPILLED,
				  __ATOMIC_SEQ_CST) & TABLE_SPILLED;
}

void table_put_spilled(struct table *table)
{
	__atomic_fetch_or(&table->words[0], TABLE_SPILLED, __ATOMIC_SEQ_CST);
}

/* The end of a place: it is not found, its last numbers leave its row, it is vacant. */

void table_retire(struct table *table, uint32_t place)
{
	uint64_t word = table->words[place];

	/* Only the agent changes the word of a live place. */
	if ((word & TABLE_STATE) == TABLE_LIVE)
		__atomic_store_n(&table->words[place], word ^ TABLE_LIVE ^ TABLE_RETIRED,
				 __ATOMIC_SEQ_CST);
}

bool table_is_retired(const struct table *table, uint32_t place)
{
	return (__atomic_load_n(&table->words[place], __ATOMIC_ACQUIRE) & TABLE_STATE) ==
	       TABLE_RETIRED;
}

/* Nobody's, as place 0. */
bool table_is_out(const struct table *table, uint32_t place)
{
	return (__atomic_load_n(&table->words[place], __ATOMIC_ACQUIRE) & TABLE_STATE) ==
	       TABLE_RESERVED;
}

void table_leave(struct rows *rows, uint32_t row, const uint64_t *cells)
{
	uint64_t *previous = rows_previous(rows, row);

	for (uint32_t i = 0; i < rows->n_cells; i++)
		previous[i] -= cells[i];
	if (rows_at(rows, row)->stay == ROWS_GO)
		rows_at(rows, row)->stay = ROWS_ONCE;
}

void table_take_out(struct table *table, struct rows *rows, uint32_t place)
{
	memset(table->cells, 0, rows->n_cells * sizeof(*table->cells));
	add_place(table, place, table->cells);
	table_leave(rows, table->place_rows[place], table->cells);
	table->place_rows[place] = 0;
	__atomic_fetch_or(&table->words[place], TABLE_RESERVED, __ATOMIC_SEQ_CST);
}

void table_clear(struct table *table, uint32_t place)
{
	for (uint32_t column = 0; column < table->columns; column++)
		memset(value_at(table, column, place), 0, table->stride_bytes);
	__atomic_store_n(&table->words[place], (uint64_t)TABLE_REMOVED, __ATOMIC_SEQ_CST);
}

void table_save(const struct table *table, struct store *out)
{
	for (uint32_t place = 1; place < table->n_places; place++)
		if (table_is_out(table, place))
			store_number(out, place);
	store_number(out, 0);
}

int table_restore(struct table *table, struct stored *in)
{
	for (uint64_t place; (place = stored_number(in));)
		if (place < table->n_places && table_is_retired(table, (uint32_t)place))
			table_clear(table, (uint32_t)place);
	return in->is_bad ? -EINVAL : 0;
}
