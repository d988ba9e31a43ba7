// SPDX-License-Identifier: GPL-2.0
/* What a run comes to: the same figures as tierload's, by the same definitions. */
#include "sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ranks fall in weight: the best placement takes from the front of each process. */
static void find_best(struct ts_machine *m)
{
	int64_t pages = m->free_pages - m->high_wmark - m->folio_pages;
	int i;

	for (; pages > 0; pages--) {
		struct ts_proc *best = NULL;

		for (i = 0; i < m->procs; i++) {
			struct ts_proc *p = &m->proc[i];

			if (p->best_ranks < p->pages && (!best ||
			    p->weight[p->best_ranks] > best->weight[best->best_ranks]))
				best = p;
		}
		if (!best)
			return;
		best->best_ranks++;
	}
}

int ts_measure_init(struct ts_machine *m)
{
	uint32_t rank;
	int i;

	m->sample = calloc((size_t)m->opt->seconds + 2, sizeof(*m->sample));
	if (!m->sample) {
		fprintf(stderr, "tiersim: out of memory\n");
		return -ENOMEM;
	}
	for (i = 0; i < m->procs; i++) {
		struct ts_proc *p = &m->proc[i];

		for (rank = 0; rank < p->pages; rank++)
			p->weight[rank] = p->share * tl_rank_weight(&p->dist, rank);
		p->hot_ranks = tl_hot_ranks(&p->dist, m->oracle_pages);
	}
	find_best(m);
	ts_measure_phase(m);
	return 0;
}

/* The hot set has moved: other pages have the ranks. */
void ts_measure_phase(struct ts_machine *m)
{
	uint32_t rank;
	int i;

	for (i = 0; i < m->procs; i++)
		for (rank = 0; rank < m->proc[i].pages; rank++)
			m->proc[i].rank[tl_page_of_rank(&m->proc[i].dist, rank, m->phase)] = rank;
}

void ts_measure_fault(struct ts_machine *m, uint32_t folio, uint32_t latency_ms)
{
	bool hot;

	ts_rank_of(m, folio, &hot);
	(hot ? &m->hot_hist : &m->cold_hist)->pages[tier_hist_slot(latency_ms)]++;
}

static void subtract(struct ts_counts *delta, const struct ts_counts *now,
		     const struct ts_counts *before)
{
	const uint64_t *a = (const uint64_t *)now, *b = (const uint64_t *)before;
	uint64_t *out = (uint64_t *)delta;
	size_t i;

	for (i = 0; i < sizeof(*now) / sizeof(*a); i++)
		out[i] = a[i] - b[i];
}

void ts_measure_sample(struct ts_machine *m)
{
	struct ts_sample *s = &m->sample[m->samples++];
	uint32_t hot = 0, hot_fast = 0, cold_fast = 0, page;
	int i;

	s->t_s = m->t_ms / 1000.0;
	s->phase = m->phase;
	for (i = 0; i < m->procs; i++) {
		struct ts_proc *p = &m->proc[i];

		hot += p->hot_ranks;
		for (page = 0; page < p->pages; page++) {
			if (!(m->state[(p->first_page + page) / m->folio_pages] & TS_FAST))
				continue;
			s->hit += p->weight[p->rank[page]];
			if (p->rank[page] < p->hot_ranks)
				hot_fast++;
			else
				cold_fast++;
		}
	}
	s->fast_pages = hot_fast + cold_fast;
	s->hot_fast = hot ? (double)hot_fast / hot : 0.0;
	s->cold_fast = m->opt->pages > hot ? (double)cold_fast / (m->opt->pages - hot) : 0.0;
	s->period_ms = m->proc[0].period_ms;
	if (m->decider->threshold_ms)
		s->threshold_ms = m->decider->threshold_ms(m->decider);
	subtract(&s->delta, &m->count, &m->last);
	m->last = m->count;
}

static int falling(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x > y ? -1 : x < y;
}

static int oracle_hit(const struct ts_machine *m, double *hit)
{
	double *weight = malloc(m->opt->pages * sizeof(*weight));
	uint32_t i;
	int p;

	if (!weight) {
		fprintf(stderr, "tiersim: out of memory\n");
		return -ENOMEM;
	}
	for (p = 0; p < m->procs; p++)
		memcpy(weight + m->proc[p].first_page, m->proc[p].weight,
		       m->proc[p].pages * sizeof(*weight));
	qsort(weight, m->opt->pages, sizeof(*weight), falling);
	for (*hit = 0.0, i = 0; i < m->opt->pages && i < m->oracle_pages; i++)
		*hit += weight[i];
	free(weight);
	if (*hit > 1.0)
		*hit = 1.0;
	return 0;
}

static double mean_hit(const struct ts_machine *m, uint32_t from, uint32_t to)
{
	double sum = 0.0;
	uint32_t i;

	for (i = from; i < to; i++)
		sum += m->sample[i].hit;
	return to > from ? sum / (to - from) : 0.0;
}

/*
 * Seconds to 90 % of the final hit ratio, mean over the moves of the hot set
 * after the start; over the start when nothing moves; -1 when not reached.
 */
static double mean_t90(const struct ts_machine *m)
{
	double sum = 0.0, first = -1.0;
	uint32_t start, end, at, moves = 0;

	for (start = 0; start < m->samples; start = end) {
		uint32_t origin = start ? start - 1 : 0;
		double goal;

		for (end = start + 1; end < m->samples; end++)
			if (m->sample[end].phase != m->sample[start].phase)
				break;
		/* a piece too short to judge */
		if (start && m->sample[end - 1].t_s - m->sample[origin].t_s < m->opt->move_s / 2)
			continue;
		goal = 0.9 * mean_hit(m, end - (end - start + 2) / 3, end);
		for (at = start; at < end && m->sample[at].hit < goal; at++)
			;
		if (!start)
			first = at < end ? m->sample[at].t_s : -1.0;
		else if (at == end)
			return -1.0;
		else
			sum += m->sample[at].t_s - m->sample[origin].t_s;
		moves += start > 0;
	}
	return moves ? sum / moves : first;
}

static uint32_t median_ms(const struct tier_hist *h)
{
	uint32_t slot = tier_hist_quantile(h->pages, 500);

	return slot == TIER_HIST_SLOTS ? 0 : (uint32_t)tier_hist_low(slot);
}

int ts_measure_finish(struct ts_machine *m)
{
	const struct ts_options *opt = m->opt;
	struct ts_totals *t = &m->total;
	uint32_t n = m->samples, f;
	double third = (n + 2) / 3;
	int err = oracle_hit(m, &t->oracle_hit);

	if (err)
		return err;
	t->count = m->count;
	t->hit_mean = mean_hit(m, 1, n);
	t->hit_final = mean_hit(m, n - (uint32_t)third, n);
	t->hot_final = m->sample[n - 1].hot_fast;
	t->cold_final = m->sample[n - 1].cold_fast;
	t->t90_s = mean_t90(m);
	for (f = 0; f < m->folios; f++)
		if (m->promoted[f] == 2)
			t->ping_pong_pages += m->folio_pages;
	t->hot_median_ms = median_ms(&m->hot_hist);
	t->cold_median_ms = median_ms(&m->cold_hist);
	t->histogram_valid = t->cold_median_ms && t->hot_median_ms * 10 <= t->cold_median_ms;
	t->access_ns = t->hit_mean * opt->fast_ns + (1.0 - t->hit_mean) * opt->slow_ns;
	if (t->count.accesses)
		t->access_ns += (opt->fault_ns * t->count.hint_faults + opt->migrate_ns *
				 (t->count.promotions + t->count.demotions)) / t->count.accesses;
	return 0;
}
