// SPDX-License-Identifier: GPL-2.0
/* The modelled machine: accesses, hint faults, moves between the tiers. */
#include "sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(void)
{
	fprintf(stderr, "tiersim: out of memory\n");
	return -ENOMEM;
}

static int add_proc(struct ts_machine *m, enum tl_kind kind, uint32_t pages, double share)
{
	const struct ts_options *opt = m->opt;
	struct ts_proc *p = &m->proc[m->procs];
	struct tl_shape shape = {
		.kind = kind, .pages = pages, .hot_pages = opt->hot_pages,
		.unit_pages = opt->folio_pages, .hot_share = opt->hot_share,
		.theta = opt->theta, .scatter = opt->scatter,
		/* as tierload seeds its second process */
		.seed = opt->seed + m->procs * 0x100000000ull,
	};
	const char *wrong;

	p->tables = malloc(tl_dist_bytes(&shape));
	if (!p->tables)
		return no_memory();
	wrong = tl_dist_init(&p->dist, &shape, p->tables);
	if (wrong) {
		fprintf(stderr, "tiersim: %s: %s\n", opt->workload, wrong);
		return -EINVAL;
	}
	tl_cursor_init(&p->cursor, &p->dist, 0, 1);
	p->share = share;
	p->pages = pages;
	if (m->procs)
		p->first_page = m->proc[m->procs - 1].first_page + m->proc[m->procs - 1].pages;
	m->procs++;
	p->rank = malloc(pages * sizeof(*p->rank));
	p->weight = malloc(pages * sizeof(*p->weight));
	p->region = calloc(pages / (1u << (TIER_REGION_SHIFT - 12)) + 2, sizeof(*p->region));
	if (!p->rank || !p->weight || !p->region)
		return no_memory();
	ts_scan_init(p, opt);
	return 0;
}

/* Watermarks as the kernel spaces them: a quarter of min, at least 0.1 % of the node. */
static void set_watermarks(struct ts_machine *m)
{
	const struct ts_options *opt = m->opt;
	int64_t min = (int64_t)(opt->fast_pages * opt->min_wmark_percent / 100.0);
	int64_t step = min / 4 > opt->fast_pages / 1000 ? min / 4 : opt->fast_pages / 1000;

	m->low_wmark = min + step;
	m->high_wmark = min + 2 * step;
	m->promo_wmark = min + 3 * step;
	m->free_pages = (int64_t)opt->fast_pages - opt->used_pages;
	m->oracle_pages = m->free_pages > m->low_wmark ? m->free_pages - m->low_wmark : 0;
}

static void put_on_fast(struct ts_machine *m, uint32_t folio)
{
	uint32_t frames = m->opt->fast_pages / m->folio_pages;

	m->free_pages -= m->folio_pages;
	m->free_pfn[m->free_pfns++] = m->pfn[folio];
	m->pfn[folio] = m->next_fast_pfn++ % frames;
	m->state[folio] |= TS_FAST;
	ts_lru_add(&m->lru, folio);
}

static int init(struct ts_machine *m)
{
	const struct ts_options *opt = m->opt;
	uint32_t f;
	int err;

	set_watermarks(m);
	if (opt->two) {
		err = add_proc(m, TL_HOTCOLD, opt->pages / 2, 0.5);
		err = err ? err : add_proc(m, TL_STREAM, opt->pages / 2, 0.5);
	} else {
		err = add_proc(m, opt->kind, opt->pages, 1.0);
	}
	if (err)
		return err;
	m->folio_pages = opt->folio_pages;
	m->folios = opt->pages / opt->folio_pages;
	m->state = calloc(m->folios, 1);
	m->promoted = calloc(m->folios, 1);
	m->stamp_ms = calloc(m->folios, sizeof(*m->stamp_ms));
	m->pfn = malloc(m->folios * sizeof(*m->pfn));
	m->free_pfn = malloc(m->folios * sizeof(*m->free_pfn));
	if (!m->state || !m->promoted || !m->stamp_ms || !m->pfn || !m->free_pfn)
		return no_memory();
	/* Both nodes are filled in address order. */
	for (f = 0; f < m->folios; f++)
		m->pfn[f] = opt->fast_pages / opt->folio_pages + f;
	ts_mode2_init(&m->kernel, opt);
	err = ts_lru_init(&m->lru, m->folios, m->folio_pages);
	for (f = 0; !err && opt->place_fast && f < m->folios &&
	     m->free_pages > m->low_wmark + m->folio_pages; f++)
		put_on_fast(m, f);
	return err ? err : ts_measure_init(m);
}

/* ---- moving ---- */

void ts_demote(struct ts_machine *m, uint32_t folio)
{
	m->state[folio] &= ~TS_FAST;
	/* The newest free frame is taken first, as per-CPU lists do. */
	m->pfn[folio] = m->free_pfn[--m->free_pfns];
	m->free_pages += m->folio_pages;
	m->count.demotions += m->folio_pages;
}

static void promote(struct ts_machine *m, uint32_t folio)
{
	bool hot;

	if (m->free_pages <= m->high_wmark + m->folio_pages) {
		m->count.failed_promotions += m->folio_pages;
		ts_kswapd_wake(m);
		return;
	}
	put_on_fast(m, folio);
	m->count.promotions += m->folio_pages;
	ts_rank_of(m, folio, &hot);
	if (!hot)
		m->count.wasted_promotions += m->folio_pages;
	if (m->promoted[folio] < 2)
		m->promoted[folio]++;
	ts_scan_promoted(m, ts_proc_of(m, folio));
}

/* ---- faulting ---- */

/* The kernel's free-space rule: see TIER_FAULT_ROOM. */
static bool has_room(const struct ts_machine *m)
{
	int64_t enough = 1024 * TS_PAGES_PER_MIB;

	if (m->opt->fast_pages >> 4 > enough)
		enough = m->opt->fast_pages >> 4;
	return m->free_pages > m->promo_wmark + enough;
}

/* Everything that a policy might ask for is filled in: it sees at least what it needs. */
static int take_fault(struct ts_machine *m, const struct ts_proc *p, uint32_t folio)
{
	uint32_t now_ms = ts_now_ms(m), i;
	struct tier_fault *f;

	if (m->batch_nr == m->batch_max) {
		uint32_t max = m->batch_max ? 2 * m->batch_max : 1024;
		struct tier_replay_entry *batch = realloc(m->batch, max * sizeof(*batch));
		uint32_t *folios = realloc(m->batch_folio, max * sizeof(*folios));

		m->batch = batch ? batch : m->batch;
		m->batch_folio = folios ? folios : m->batch_folio;
		if (!batch || !folios)
			return no_memory();
		m->batch_max = max;
	}
	i = m->batch_nr++;
	m->batch_folio[i] = folio;
	memset(&m->batch[i], 0, sizeof(m->batch[i]));
	f = &m->batch[i].fault;
	f->now_ms = now_ms;
	f->latency_ms = (now_ms - m->stamp_ms[folio]) & (m->opt->stamp_wrap_ms - 1);
	f->nr_pages = m->folio_pages;
	f->flags = TIER_FAULT_ADDR | TIER_FAULT_ROOM_KNOWN | TIER_FAULT_SHARED_KNOWN |
		   TIER_FAULT_ALLOWED_KNOWN | TIER_FAULT_ALLOWED;
	if (has_room(m))
		f->flags |= TIER_FAULT_ROOM;
	f->src_nid = TS_SLOW_NID;
	f->dst_nid = TS_FAST_NID;
	f->pid = f->tgid = ts_pid(m, p);
	f->now_ns = (m->t_ms + 10000) * 1000000ull;
	f->pfn = (uint64_t)m->pfn[folio] * m->folio_pages;
	f->vm_start = TS_AREA_START;
	f->vm_end = f->vm_start + (uint64_t)p->pages * 4096;
	f->addr = f->vm_start + ((uint64_t)folio * m->folio_pages - p->first_page) * 4096;
	f->mm_id = ts_mm_id(m, p);
	f->vm_flags = TS_VM_FLAGS;
	m->count.hint_faults++;
	ts_measure_fault(m, folio, f->latency_ms);
	return 0;
}

/* The tick's faults are decided together, in order, and then put in force in order. */
static int decide_tick(struct ts_machine *m)
{
	uint32_t i, decision;
	int err;

	if (!m->batch_nr)
		return 0;
	err = m->decider->decide(m->decider, m, m->batch, m->batch_folio, m->batch_nr);
	if (err)
		return err;
	for (i = 0; i < m->batch_nr; i++) {
		decision = m->batch[i].decision;
		if (decision >= TIER_NR_DECISIONS)
			decision = TIER_KERNEL;
		m->total.decisions[decision]++;
		if (decision == TIER_KERNEL)
			decision = ts_mode2_decide(&m->kernel, &m->batch[i].fault);
		if (tier_decision_is_candidate(decision))
			m->count.candidates += m->folio_pages;
		if (tier_decision_verdict(decision) == TIER_VERDICT_PROMOTE)
			promote(m, m->batch_folio[i]);
	}
	m->batch_nr = 0;
	return 0;
}

static int access_pages(struct ts_machine *m, struct ts_proc *p, uint32_t nr)
{
	uint32_t shift = m->folio_pages == 1 ? 0 : 9;
	int err;

	while (nr--) {
		uint32_t rank = tl_next_rank(&p->dist, &p->cursor);
		uint32_t page = p->first_page + tl_page_of_rank(&p->dist, rank, m->phase);
		uint32_t folio = page >> shift;
		uint8_t state = m->state[folio];

		if (state & TS_PROTNONE) {
			err = take_fault(m, p, folio);
			if (err)
				return err;
		}
		m->state[folio] = (state & ~TS_PROTNONE) | TS_YOUNG;
	}
	return 0;
}

static int tick(struct ts_machine *m)
{
	const struct ts_options *opt = m->opt;
	uint32_t nr;
	int i, err;

	if (opt->kind == TL_MOVING) {
		uint32_t phase = (uint32_t)((m->t_ms - TS_TICK_MS) / (opt->move_s * 1000.0));

		if (phase != m->phase) {
			m->phase = phase;
			ts_measure_phase(m);
		}
	}
	for (i = 0; i < m->procs; i++) {
		err = ts_scan_tick(m, &m->proc[i]);
		if (err)
			return err;
	}
	for (i = 0; i < m->procs; i++) {
		struct ts_proc *p = &m->proc[i];

		p->owed += opt->rate * p->share * TS_TICK_MS / 1000.0;
		nr = (uint32_t)p->owed;
		p->owed -= nr;
		m->count.accesses += nr;
		err = access_pages(m, p, nr);
		if (err)
			return err;
	}
	err = decide_tick(m);
	ts_kswapd_tick(m);
	return err;
}

int ts_run(struct ts_machine *m, const struct ts_options *opt, struct ts_decider *decider)
{
	uint64_t end_ms = (uint64_t)(opt->seconds * 1000.0);
	int err;

	memset(m, 0, sizeof(*m));
	m->opt = opt;
	m->decider = decider;
	err = init(m);
	if (err)
		return err;
	ts_measure_sample(m);
	for (m->t_ms = TS_TICK_MS; m->t_ms <= end_ms; m->t_ms += TS_TICK_MS) {
		err = tick(m);
		if (err)
			return err;
		if (m->t_ms % 1000 == 0)
			ts_measure_sample(m);
	}
	return ts_measure_finish(m);
}

void ts_machine_free(struct ts_machine *m)
{
	int i;

	for (i = 0; i < m->procs; i++) {
		free(m->proc[i].tables);
		free(m->proc[i].rank);
		free(m->proc[i].weight);
		free(m->proc[i].region);
	}
	ts_lru_free(&m->lru);
	free(m->state);
	free(m->promoted);
	free(m->stamp_ms);
	free(m->pfn);
	free(m->free_pfn);
	free(m->batch);
	free(m->batch_folio);
	free(m->sample);
	memset(m, 0, sizeof(*m));
}
