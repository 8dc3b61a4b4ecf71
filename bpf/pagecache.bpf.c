/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The page cache by owner, in pages: how many were looked for, how many were missing, added and
 * made dirty.
 *
 * A read looks for the pages that it returns, a page fault for one. What the kernel adds to the
 * cache meanwhile, also by reading ahead, was missing. The tracepoint where a folio is added does
 * not say what for, so a task that is in a read or in a fault is marked. A fault may happen in a
 * read, so there is a mark for each.
 *
 * A folio is one page or several. A page's tracepoint, on older kernels, gives the folio that
 * begins with it.
 */
#include "function.h"
#include "owner.h"
#include "table.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define FAULT_NOPAGE 0x100 /* VM_FAULT_NOPAGE: the page was there, and is mapped now */
#define FAULT_LOCKED 0x200 /* VM_FAULT_LOCKED: the page is there now */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct page {
	unsigned int compound_nr; /* in the second page of a folio; until 5.19 */
};

struct folio {
	unsigned int _nr_pages; /* 6.15 */
};

struct folio___6_1 {
	unsigned int _folio_nr_pages; /* 6.0 */
};

struct kiocb {
	s64 ki_pos;
};

struct bpf_ringbuf {
	unsigned long consumer_pos; /* each is in a page of its own */
	unsigned long producer_pos;
};

#pragma clang attribute pop

enum pageflags {
	PG_head,
};

#define PAGE_BYTES                                                                                 \
	(bpf_core_field_offset(struct bpf_ringbuf, producer_pos) -                                 \
	 bpf_core_field_offset(struct bpf_ringbuf, consumer_pos))

/* Why pages are looked for. */
enum cache_cause { CACHE_NONE, CACHE_READ, CACHE_FAULT, CACHE_CAUSES };

struct lookup_key {
	struct owner owner;
	enum cache_cause cause;
	u32 unused;
};

struct lookup_value {
	u64 accesses;
	u64 misses;
};

struct page_value {
	u64 added;
	u64 dirtied;
};

TABLE(lookups, struct lookup_key, struct lookup_value, 2);
TABLE(pages, struct owner, struct page_value, 1);

struct cache_marks {
	u8 is_in[CACHE_CAUSES];
};

STORAGE(cache_marks, TASK, 0, struct cache_marks);

static __always_inline u64 folio_pages(const void *folio)
{
	const struct page *second = folio + bpf_core_type_size(struct page);
	unsigned long flags = 0;

	bpf_probe_read_kernel(&flags, sizeof(flags), folio);
	if (!(flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1))
		return 1;
	if (bpf_core_field_exists(struct folio, _nr_pages))
		return BPF_CORE_READ((const struct folio *)folio, _nr_pages);
	if (bpf_core_field_exists(struct folio___6_1, _folio_nr_pages))
		return BPF_CORE_READ((const struct folio___6_1 *)folio, _folio_nr_pages);
	return bpf_core_field_exists(second->compound_nr) ? BPF_CORE_READ(second, compound_nr) : 1;
}

static __noinline int lookup_count(enum cache_cause cause, u64 accesses, u64 misses)
{
	struct lookup_key key = { .cause = cause };
	struct lookup_value *value;

	owner_of_task_seldom(&key.owner, bpf_get_current_task_btf());
	value = lookups_at(&key);
	if (value && accesses)
		table_add(&value->accesses, accesses);
	if (value && misses)
		table_add(&value->misses, misses);
	return 0;
}

static __always_inline int page_count(u64 added, u64 dirtied)
{
	struct page_value *value;
	struct owner owner;

	owner_of_task_seldom(&owner, bpf_get_current_task_btf());
	value = pages_at(&owner);
	if (value && added)
		table_add(&value->added, added);
	if (value && dirtied)
		table_add(&value->dirtied, dirtied);
	return 0;
}

static __always_inline int mark(enum cache_cause cause, bool is_in)
{
	struct cache_marks *marks = bpf_task_storage_get(&cache_marks,
							 bpf_get_current_task_btf(), NULL,
							 is_in ? BPF_LOCAL_STORAGE_GET_F_CREATE :
							 0);

	if (marks)
		marks->is_in[cause] = is_in;
	return 0;
}

static __always_inline int folio_add(const void *folio)
{
	struct cache_marks *marks = bpf_task_storage_get(&cache_marks,
							 bpf_get_current_task_btf(), NULL, 0);
	u64 pages = folio_pages(folio);

	if (marks && marks->is_in[CACHE_FAULT])
		lookup_count(CACHE_FAULT, 0, pages);
	else if (marks && marks->is_in[CACHE_READ])
		lookup_count(CACHE_READ, 0, pages);
	return page_count(pages, 0);
}

SEC("tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(page_add__btf, void *folio)
{
	return folio_add(folio);
}

AT_TRACEPOINT(page_add, mm_filemap_add_to_page_cache)
{
	return folio_add((void *)function_argument_2(ctx));
}

/* Interrupts are off there, so nothing preempts it. */
SEC("tp_btf/writeback_dirty_folio")
int BPF_PROG(page_dirty__btf, void *folio)
{
	return page_count(0, folio_pages(folio));
}

/*
 * Until 5.15. The tracepoint of that time, writeback_dirty_page, would not be an alternative to the
 * other one.
 */
SEC("fentry/__set_page_dirty")
int BPF_PROG(page_dirty__fentry, void *page)
{
	return page_count(0, folio_pages(page));
}

SEC("fentry/filemap_read")
int read_begin(void *ctx)
{
	return mark(CACHE_READ, true);
}

/* read: how many bytes, in all; already: how many before this call. */
SEC("fexit/filemap_read")
int BPF_PROG(read_end, struct kiocb *io, void *to, s64 already, s64 read)
{
	u64 end = BPF_CORE_READ(io, ki_pos);

	mark(CACHE_READ, false);
	if (read > already)
		lookup_count(CACHE_READ,
			     (end - 1) / PAGE_BYTES - (end - (read - already)) / PAGE_BYTES + 1, 0);
	return 0;
}

SEC("fentry/filemap_fault")
int fault_begin(void *ctx)
{
	return mark(CACHE_FAULT, true);
}

/* If it has to be tried again, that is another call. */
SEC("fexit/filemap_fault")
int BPF_PROG(fault_end, void *fault, u32 result)
{
	mark(CACHE_FAULT, false);
	return result & FAULT_LOCKED ? lookup_count(CACHE_FAULT, 1, 0) : 0;
}

/* The kernel calls it first, and the other only if the page was not there. */
SEC("fexit/filemap_map_pages")
int BPF_PROG(fault_around, void *fault, u64 from, u64 to, u32 result)
{
	return result & FAULT_NOPAGE ? lookup_count(CACHE_FAULT, 1, 0) : 0;
}
