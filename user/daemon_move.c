// SPDX-License-Identifier: GPL-2.0
/*
 * Moving what policies requested, with move_pages(2), in batches per process.
 *
 * The call takes a process's pages to one node, keeps to its cpuset, and leaves
 * pages alone that other processes map too. Each page is looked at again before:
 * its own fault may have promoted it meanwhile. No page is pressed onto a full
 * node: unlike a hint fault the call would reclaim memory there to make room.
 */
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon.h"

#define BATCH_PAGES	8192
#define BATCH_ROOM	(BATCH_PAGES + 512)	/* a request has at most a page table's worth */
#define STALE_NS	5000000000ULL
#define SECOND_NS	1000000000ULL
/* Per batch; each call makes every CPU drain its page lists. */
#define MAX_CALLS	64

struct page {
	__u64 addr;
	__u32 tgid;
	__s32 dst_nid;
	__u32 nr_pages;
	bool stale;
};

struct bucket {
	__u64 tokens_pages;
	__u64 filled_ns;
};

struct mover {
	struct tier_requests *requests;
	__u64 limit_pages_per_s;	/* 0: none */
	__u64 top_nodes;
	__u64 page_size;
	struct bucket bucket[TIER_MAX_NODES];
	struct mover_totals totals;
	unsigned int calls;
	unsigned int nr;
	struct page pages[BATCH_ROOM];
	/* one group at work */
	void *addr[BATCH_ROOM];
	int node[BATCH_ROOM], status[BATCH_ROOM];
	unsigned int index[BATCH_ROOM];
	enum tier_stat_request outcome[BATCH_ROOM];
};

struct mover *mover__new(__u64 limit_pages_per_s)
{
	struct mover *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->limit_pages_per_s = limit_pages_per_s;
	m->page_size = sysconf(_SC_PAGESIZE);
	return m;
}

void mover__free(struct mover *m)
{
	free(m);
}

void mover__use(struct mover *m, struct tier_requests *requests)
{
	m->requests = requests;
}

void mover__set_top_nodes(struct mover *m, __u64 top_nodes)
{
	m->top_nodes = top_nodes;
}

void mover__totals(const struct mover *m, struct mover_totals *totals)
{
	*totals = m->totals;
}

void mover__add(struct mover *m, const struct tier_request *r)
{
	bool stale = now_ns() - r->time_ns > STALE_NS, folio = r->kind == TIER_REQUEST_NODEMASK;

	for (__u64 addr = r->start; addr < r->end; addr += m->page_size) {
		/* The kit never asks for more; a policy without it might. */
		if (m->nr == BATCH_ROOM)
			mover__flush(m);
		m->pages[m->nr++] = (struct page){
			.addr = addr, .tgid = r->tgid, .dst_nid = r->dst_nid, .stale = stale,
			.nr_pages = folio ? r->nr_pages : 1,
		};
		if (folio)
			break;
	}
	if (m->nr >= BATCH_PAGES)
		mover__flush(m);
}

static int by_target(const void *a, const void *b)
{
	const struct page *x = a, *y = b;

	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	if (x->dst_nid != y->dst_nid)
		return x->dst_nid < y->dst_nid ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Value of a line "name N" of a node's vmstat, 0 if there is none. */
static __u64 node_vmstat(int nid, const char *name)
{
	char path[80], key[64];
	unsigned long long value = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/vmstat", nid);
	file = fopen(path, "re");
	while (file && fscanf(file, "%63s %llu", key, &value) == 2) {
		if (!strcmp(key, name)) {
			fclose(file);
			return value;
		}
	}
	if (file)
		fclose(file);
	return 0;
}

/* Sum of the zones' high watermarks: below them the kernel, too, would not promote. */
static __u64 high_watermark_pages(int nid)
{
	unsigned long long sum = 0, value;
	FILE *file = fopen("/proc/zoneinfo", "re");
	char line[256];
	int node = -1;

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Node %d, zone", &node) == 1)
			continue;
		if (node == nid && sscanf(line, " high %llu", &value) == 1)
			sum += value;
	}
	if (file)
		fclose(file);
	return sum;
}

static __u64 room_pages(int nid)
{
	__u64 free_pages = node_vmstat(nid, "nr_free_pages"), high = high_watermark_pages(nid);

	return free_pages > high ? free_pages - high : 0;
}

/* A second's worth at most: a pause is not made up for by a burst. */
static bool take_tokens(struct mover *m, int nid, __u32 nr_pages)
{
	struct bucket *b = &m->bucket[nid];
	__u64 now = now_ns(), passed = now - b->filled_ns;

	if (!m->limit_pages_per_s)
		return true;
	if (passed > SECOND_NS)
		passed = SECOND_NS;
	if (passed * m->limit_pages_per_s >= SECOND_NS) {
		b->tokens_pages += passed * m->limit_pages_per_s / SECOND_NS;
		b->filled_ns = now;
	}
	if (b->tokens_pages > m->limit_pages_per_s)
		b->tokens_pages = m->limit_pages_per_s;
	if (b->tokens_pages < nr_pages)
		return false;
	b->tokens_pages -= nr_pages;
	return true;
}

static long move_pages(struct mover *m, __u32 tgid, unsigned int first, unsigned int nr,
		       const int *nodes)
{
	long ret = syscall(SYS_move_pages, (pid_t)tgid, (unsigned long)nr, m->addr + first, nodes,
			   m->status + first, nodes ? MPOL_MF_MOVE : 0);

	return ret < 0 ? -errno : ret;
}

/* Outcome when the call as a whole was refused. */
static enum tier_stat_request refused(long err)
{
	switch (-err) {
	case ESRCH:
		return TIER_RQ_GONE;
	case EPERM:
	case EACCES:	/* the node is not in the process's cpuset */
	case ENODEV:
		return TIER_RQ_NOT_ALLOWED;
	case ENOMEM:
		return TIER_RQ_NO_MEMORY;
	}
	return TIER_RQ_FAILED;
}

static enum tier_stat_request page_outcome(int status, int dst_nid)
{
	switch (status) {
	case -ENOENT:
	case -EFAULT:
		return TIER_RQ_GONE;
	case -EBUSY:
	case -EAGAIN:
		return TIER_RQ_BUSY;
	case -EACCES:
		return TIER_RQ_SHARED;
	case -ENOMEM:
		return TIER_RQ_NO_MEMORY;
	}
	return status == dst_nid ? TIER_RQ_MOVED : TIER_RQ_FAILED;
}

/*
 * Pages [first, first + nr) of the selection, all of one process and for one node.
 * The kernel gives up at the first page that it cannot move: halve, so that one
 * page in use does not hold back the others, and see in the end where they are.
 */
static void move_range(struct mover *m, __u32 tgid, unsigned int first, unsigned int nr)
{
	int dst_nid = m->node[first];
	long ret = move_pages(m, tgid, first, nr, m->node + first);
	enum tier_stat_request left;

	m->calls++;
	if (ret > 0 && nr > 1 && m->calls < MAX_CALLS) {
		move_range(m, tgid, first, nr / 2);
		move_range(m, tgid, first + nr / 2, nr - nr / 2);
		return;
	}
	left = ret > 0 ? TIER_RQ_BUSY : ret < 0 ? refused(ret) : TIER_NR_RQ;
	/* Partly done: the status says nothing of the rest. */
	if (ret && move_pages(m, tgid, first, nr, NULL))
		for (unsigned int i = first; i < first + nr; i++)
			m->status[i] = -ESRCH;
	for (unsigned int i = first; i < first + nr; i++)
		m->outcome[m->index[i]] = m->status[i] == dst_nid || !ret ?
					  page_outcome(m->status[i], dst_nid) : left;
}

/* Which of the pages [first, first + nr) of the batch are to be moved: how many. */
static unsigned int select_pages(struct mover *m, unsigned int first, unsigned int nr)
{
	const struct page *page = m->pages + first;
	__u64 room = room_pages(page->dst_nid);
	unsigned int selected = 0;

	for (unsigned int i = 0; i < nr; i++) {
		int status = m->status[i];
		enum tier_stat_request *outcome = &m->outcome[i];

		*outcome = TIER_NR_RQ;
		if (page[i].stale)
			*outcome = TIER_RQ_STALE;
		else if (i && page[i].addr == page[i - 1].addr)
			continue;	/* twice in one batch: see settle() */
		else if (status < 0)
			*outcome = page_outcome(status, -1);
		else if (m->top_nodes >> (status & 63) & 1)
			*outcome = TIER_RQ_NOT_SLOW;
		else if (room < page[i].nr_pages)
			*outcome = TIER_RQ_NO_MEMORY;
		else if (!take_tokens(m, page[i].dst_nid, page[i].nr_pages))
			*outcome = TIER_RQ_RATE;
		if (*outcome != TIER_NR_RQ)
			continue;
		room -= page[i].nr_pages;
		m->index[selected++] = i;
	}
	/* Addresses are ascending, so none is overwritten before it was read. */
	for (unsigned int s = 0; s < selected; s++) {
		m->addr[s] = m->addr[m->index[s]];
		m->node[s] = page->dst_nid;
	}
	return selected;
}

static void settle(struct mover *m, unsigned int first, unsigned int nr)
{
	const struct page *page = m->pages + first;

	for (unsigned int i = 0; i < nr; i++) {
		/* The second request for a page found it where the first one took it. */
		if (m->outcome[i] == TIER_NR_RQ)
			m->outcome[i] = i && m->outcome[i - 1] != TIER_RQ_MOVED ?
					m->outcome[i - 1] : TIER_RQ_NOT_SLOW;
		if (m->requests)
			tier_requests__count(m->requests, m->outcome[i], page[i].nr_pages);
		m->totals.pages += page[i].nr_pages;
		if (m->outcome[i] == TIER_RQ_MOVED)
			m->totals.moved_pages += page[i].nr_pages;
	}
}

/* All pages of one process that go to one node. */
static void move_group(struct mover *m, unsigned int first, unsigned int nr)
{
	const struct page *page = m->pages + first;
	unsigned int selected;
	long err;

	for (unsigned int i = 0; i < nr; i++)
		m->addr[i] = (void *)page[i].addr;
	err = (unsigned int)page->dst_nid < TIER_MAX_NODES ?
	      move_pages(m, page->tgid, 0, nr, NULL) : -ENODEV;
	if (err) {
		for (unsigned int i = 0; i < nr; i++)
			m->outcome[i] = refused(err);
	} else {
		selected = select_pages(m, first, nr);
		if (selected)
			move_range(m, page->tgid, 0, selected);
	}
	settle(m, first, nr);
}

void mover__flush(struct mover *m)
{
	unsigned int first = 0, end;

	m->calls = 0;
	qsort(m->pages, m->nr, sizeof(*m->pages), by_target);
	for (; first < m->nr; first = end) {
		for (end = first + 1; end < m->nr; end++)
			if (m->pages[end].tgid != m->pages[first].tgid ||
			    m->pages[end].dst_nid != m->pages[first].dst_nid)
				break;
		move_group(m, first, end - first);
	}
	if (m->nr && m->requests)
		tier_requests__publish(m->requests);
	m->nr = 0;
}
