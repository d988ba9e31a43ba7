// SPDX-License-Identifier: GPL-2.0
/*
 * kswapd of the fast node: demotion by the multi-generational LRU's rules, for
 * one kind of pages (anonymous, one process' tables walked at each aging).
 */
#include "sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE (-1)
#define BATCH_PAGES 64
#define BATCH_LOOKS 4096
#define DEF_PRIORITY 12

static unsigned int at(uint64_t seq)
{
	return seq % TS_MAX_NR_GENS;
}

int ts_lru_init(struct ts_lru *lru, uint32_t folios, uint32_t folio_pages)
{
	int g;

	memset(lru, 0, sizeof(*lru));
	lru->folio_pages = folio_pages;
	lru->gen = calloc(folios, 1);
	lru->next = malloc(folios * sizeof(*lru->next));
	lru->prev = malloc(folios * sizeof(*lru->prev));
	for (g = 0; g < TS_MAX_NR_GENS; g++)
		lru->head[g] = lru->tail[g] = NONE;
	lru->max_seq = TS_MIN_NR_GENS + 1;
	if (lru->gen && lru->next && lru->prev)
		return 0;
	fprintf(stderr, "tiersim: out of memory\n");
	return -ENOMEM;
}

void ts_lru_free(struct ts_lru *lru)
{
	free(lru->gen);
	free(lru->next);
	free(lru->prev);
}

static void list_add_head(struct ts_lru *lru, unsigned int g, int32_t f)
{
	lru->prev[f] = NONE;
	lru->next[f] = lru->head[g];
	if (lru->head[g] == NONE)
		lru->tail[g] = f;
	else
		lru->prev[lru->head[g]] = f;
	lru->head[g] = f;
}

static void list_add_tail(struct ts_lru *lru, unsigned int g, int32_t f)
{
	lru->next[f] = NONE;
	lru->prev[f] = lru->tail[g];
	if (lru->tail[g] == NONE)
		lru->head[g] = f;
	else
		lru->next[lru->tail[g]] = f;
	lru->tail[g] = f;
}

static int32_t list_take_tail(struct ts_lru *lru, unsigned int g)
{
	int32_t f = lru->tail[g];

	lru->tail[g] = lru->prev[f];
	if (lru->tail[g] == NONE)
		lru->head[g] = NONE;
	else
		lru->next[lru->tail[g]] = NONE;
	return f;
}

static void set_gen(struct ts_lru *lru, uint32_t f, unsigned int g)
{
	lru->nr[lru->gen[f]]--;
	lru->nr[g]++;
	lru->gen[f] = g;
}

/* A promoted page was just used: youngest generation. */
void ts_lru_add(struct ts_lru *lru, uint32_t folio)
{
	unsigned int g = at(lru->max_seq);

	lru->gen[folio] = g;
	lru->nr[g]++;
	list_add_head(lru, g, folio);
}

static void drop_empty_gens(struct ts_lru *lru)
{
	while (lru->min_seq + TS_MIN_NR_GENS <= lru->max_seq && lru->head[at(lru->min_seq)] == NONE)
		lru->min_seq++;
}

/* All generations are taken: what is left in the oldest joins the next. */
static void merge_oldest(struct ts_lru *lru)
{
	unsigned int old = at(lru->min_seq), next = at(lru->min_seq + 1);

	while (lru->tail[old] != NONE) {
		int32_t f = list_take_tail(lru, old);

		if (lru->gen[f] == old)
			set_gen(lru, f, next);
		list_add_tail(lru, lru->gen[f], f);
	}
	lru->min_seq++;
}

/* What was accessed since the last walk moves to the youngest generation; a new one opens. */
static void age(struct ts_machine *m)
{
	struct ts_lru *lru = &m->lru;
	unsigned int young = at(lru->max_seq);
	uint32_t f;

	for (f = 0; f < m->folios; f++) {
		if ((m->state[f] & (TS_FAST | TS_YOUNG)) != (TS_FAST | TS_YOUNG))
			continue;
		m->state[f] &= ~TS_YOUNG;
		set_gen(lru, f, young);
	}
	if (lru->max_seq - lru->min_seq + 1 == TS_MAX_NR_GENS)
		merge_oldest(lru);
	lru->max_seq++;
	drop_empty_gens(lru);
}

/* *total: pages that may be scanned. */
static bool should_age(const struct ts_lru *lru, uint64_t *total)
{
	uint64_t young = lru->nr[at(lru->max_seq)] * lru->folio_pages, old, seq;

	*total = 0;
	if (lru->min_seq + TS_MIN_NR_GENS > lru->max_seq)
		return true;
	for (seq = lru->min_seq; seq <= lru->max_seq; seq++)
		*total += lru->nr[at(seq)] * lru->folio_pages;
	if (lru->min_seq + TS_MIN_NR_GENS < lru->max_seq)
		return false;
	old = lru->nr[at(lru->min_seq)] * lru->folio_pages;
	return young * TS_MIN_NR_GENS > *total || old * (TS_MIN_NR_GENS + 2) < *total;
}

/* One batch from the oldest generation; returns the pages looked at. */
static uint64_t evict(struct ts_machine *m)
{
	struct ts_lru *lru = &m->lru;
	uint32_t looks = 0, taken = 0;
	unsigned int g;

	drop_empty_gens(lru);
	g = at(lru->min_seq);
	if (lru->min_seq + TS_MIN_NR_GENS > lru->max_seq)
		return 0;
	while (lru->tail[g] != NONE && looks < BATCH_LOOKS && taken < BATCH_PAGES) {
		int32_t f = list_take_tail(lru, g);

		looks++;
		if (lru->gen[f] != g) {		/* the walk has seen it used */
			list_add_head(lru, lru->gen[f], f);
			continue;
		}
		taken += m->folio_pages;
		if (m->state[f] & TS_YOUNG) {	/* used since: the reverse map tells */
			m->state[f] &= ~TS_YOUNG;
			set_gen(lru, f, at(lru->max_seq));
			list_add_head(lru, lru->gen[f], f);
			continue;
		}
		lru->nr[g]--;
		ts_demote(m, f);
		m->kswapd.budget -= m->folio_pages;
	}
	drop_empty_gens(lru);
	return (uint64_t)looks * m->folio_pages;
}

void ts_kswapd_wake(struct ts_machine *m)
{
	struct ts_kswapd *k = &m->kswapd;

	if (k->awake || m->free_pages > m->promo_wmark)
		return;
	k->awake = true;
	k->priority = DEF_PRIORITY;
	k->scanned = 0;
	k->budget = 0;
}

/* One step at this priority; false: nothing more to do at it. */
static bool shrink(struct ts_machine *m)
{
	struct ts_kswapd *k = &m->kswapd;
	uint64_t total, looked;
	bool aging = should_age(&m->lru, &total);

	if (aging && k->priority < DEF_PRIORITY) {
		age(m);
		k->budget = 0;	/* walking the page tables takes about this tick */
		return false;
	}
	total >>= k->priority;
	if (!total)
		return false;
	looked = evict(m);
	k->scanned += looked;
	return looked && k->scanned < total;
}

/* A node in tiering mode is balanced at its promotion watermark, above high. */
void ts_kswapd_tick(struct ts_machine *m)
{
	struct ts_kswapd *k = &m->kswapd;
	double per_tick = m->opt->kswapd_pages_per_s * TS_TICK_MS / 1000.0;
	int rounds = 0;

	if (!k->awake)
		return;
	k->budget = k->budget < 0 ? k->budget + per_tick : per_tick;
	while (m->free_pages <= m->promo_wmark && k->budget > 0) {
		if (shrink(m))
			continue;
		k->scanned = 0;
		if (--k->priority < 1) {
			k->priority = DEF_PRIORITY;
			/* two rounds without an end: all pages are in use, go on next tick */
			if (++rounds == 2)
				return;
		}
	}
	if (m->free_pages > m->promo_wmark)
		k->awake = false;
}
