// SPDX-License-Identifier: GPL-2.0
/*
 * The watching side of tierload: placement weighted by the known access
 * probabilities, counters, and what a run comes to.
 */
#include "tierload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct place_sum {
	double hit;
	uint64_t hot, hot_fast, cold, cold_fast;
};

static bool on(uint8_t node, uint64_t mask)
{
	return node < TL_MAX_NODES && (mask >> node & 1);
}

static void sum_place(const struct tl_run *run, int w, uint32_t phase, struct place_sum *sum)
{
	const struct tl_worker *worker = &run->worker[w];
	uint32_t rank;

	for (rank = 0; rank < worker->dist.shape.pages; rank++) {
		uint32_t page = tl_page_of_rank(&worker->dist, rank, phase);
		bool fast = on(run->node[w][page], run->nodes->fast);

		if (fast)
			sum->hit += run->weight[w][rank];
		if (rank < run->hot_ranks[w]) {
			sum->hot++;
			sum->hot_fast += fast;
		} else {
			sum->cold++;
			sum->cold_fast += fast;
		}
	}
}

/*
 * Ask for the placement and compare with the last one. A page that went both
 * ways between two looks is not seen: the counts are lower bounds, the totals
 * of /proc/vmstat are exact.
 */
static int look(struct tl_run *run, int w, uint32_t phase, bool first)
{
	struct tl_worker *worker = &run->worker[w];
	uint32_t pages = worker->dist.shape.pages, rank;
	uint8_t *node = run->node[w], *old = malloc(pages);
	int err;

	if (!old) {
		fprintf(stderr, "tierload: out of memory\n");
		return -ENOMEM;
	}
	memcpy(old, node, pages);
	err = worker->address ? tl_query_pages(worker->pid, worker->address, pages, node) :
				tl_query_nodes(worker->pid, worker->area, pages, node);
	for (rank = 0; !err && rank < pages; rank++) {
		uint32_t page = tl_page_of_rank(&worker->dist, rank, phase);

		/* On its way: it is still where it was, as far as we know. */
		if (node[page] == TL_NODE_NONE)
			node[page] = old[page];
		if (first)
			continue;
		if (on(old[page], run->nodes->slow) && on(node[page], run->nodes->fast)) {
			run->total.seen_promotions++;
			run->total.wasted_promotions += rank >= run->hot_ranks[w];
			if (run->promoted[w][page] < 2 && ++run->promoted[w][page] == 2)
				run->total.ping_pong_pages++;
		} else if (on(old[page], run->nodes->fast) && on(node[page], run->nodes->slow)) {
			run->total.seen_demotions++;
		}
	}
	free(old);
	return err;
}

static void counters_since(struct tl_counters *delta, const struct tl_counters *now,
			   const struct tl_counters *before)
{
	int i;

	for (i = 0; i < TL_VM_COUNT; i++)
		delta->vm[i] = now->vm[i] - before->vm[i];
	delta->user_s = now->user_s - before->user_s;
	delta->system_s = now->system_s - before->system_s;
	delta->machine_system_s = now->machine_system_s - before->machine_system_s;
}

static void add_threads(const struct tl_run *run, uint64_t *accesses, uint64_t *batches,
			uint64_t *late, uint64_t *dropped_ns, uint64_t *rounds)
{
	unsigned int t;
	int w;

	*accesses = *batches = *late = *dropped_ns = 0;
	*rounds = UINT64_MAX;
	for (w = 0; w < run->workers; w++) {
		for (t = 0; t < run->opt->threads; t++) {
			const struct tl_thread_slot *slot = &run->ctl->slot[w][t];

			*accesses += slot->accesses;
			*batches += slot->batches;
			*late += slot->late_batches;
			*dropped_ns += slot->dropped_ns;
			if (slot->rounds < *rounds)
				*rounds = slot->rounds;
		}
	}
}

static int take(struct tl_run *run, double t_s, bool first)
{
	uint32_t phase = run->ctl->phase;
	uint64_t accesses, batches, late, dropped_ns, rounds;
	struct place_sum sum = { 0 };
	struct tl_sample *s = &run->sample[run->samples];
	struct tl_counters now;
	pid_t pids[TL_MAX_WORKERS];
	int w, err;

	add_threads(run, &accesses, &batches, &late, &dropped_ns, &rounds);
	for (w = 0; w < run->workers; w++)
		pids[w] = run->worker[w].pid;
	err = tl_read_counters(&now, pids, run->workers, first);
	for (w = 0; !err && w < run->workers; w++) {
		err = look(run, w, phase, first);
		sum_place(run, w, phase, &sum);
	}
	if (err)
		return err;
	if (first)
		run->first = run->last = now;
	memset(s, 0, sizeof(*s));
	s->t_s = t_s;
	s->phase = phase;
	s->hit = sum.hit;
	s->hot_fast = sum.hot ? (double)sum.hot_fast / sum.hot : 0.0;
	s->cold_fast = sum.cold ? (double)sum.cold_fast / sum.cold : 0.0;
	s->fast_pages = sum.hot_fast + sum.cold_fast;
	s->accesses = accesses - run->last_accesses;
	if (batches > run->last_batches)
		s->slip = (double)(late - run->last_late) / (batches - run->last_batches);
	counters_since(&s->delta, &now, &run->last);
	run->last = now;
	run->last_accesses = accesses;
	run->last_batches = batches;
	run->last_late = late;
	run->samples++;
	return 0;
}

static double weight_of(const struct tl_worker *worker, uint32_t rank)
{
	return worker->page_weight ? worker->page_weight[rank] : tl_rank_weight(&worker->dist, rank);
}

int tl_measure_init(struct tl_run *run, double t_s)
{
	uint32_t pages, rank;
	int w;

	run->samples_max = (uint32_t)(run->opt->seconds * 1000.0 / run->opt->report_ms) + 16;
	run->sample = calloc(run->samples_max, sizeof(*run->sample));
	run->move = calloc(run->samples_max, sizeof(*run->move));
	for (w = 0; w < run->workers; w++) {
		pages = run->worker[w].dist.shape.pages;
		run->node[w] = malloc(pages);
		run->promoted[w] = calloc(pages, 1);
		run->weight[w] = malloc(pages * sizeof(*run->weight[w]));
		if (!run->node[w] || !run->promoted[w] || !run->weight[w])
			break;
		memset(run->node[w], TL_NODE_NONE, pages);
		for (rank = 0; rank < pages; rank++)
			run->weight[w][rank] = run->worker[w].share * weight_of(&run->worker[w], rank);
		run->hot_ranks[w] = run->opt->touch ? pages :
			run->worker[w].page_weight ?
			(run->fast_capacity_pages < pages ? run->fast_capacity_pages : pages) :
			tl_hot_ranks(&run->worker[w].dist, run->fast_capacity_pages);
		run->total.huge_start_bytes += tl_huge_bytes(run->worker[w].pid);
	}
	if (w < run->workers || !run->sample || !run->move) {
		fprintf(stderr, "tierload: out of memory\n");
		return -ENOMEM;
	}
	return take(run, t_s, true);
}

int tl_measure(struct tl_run *run, double t_s)
{
	if (run->samples == run->samples_max) {
		fprintf(stderr, "tierload: more reports than planned for; use a larger --report-ms\n");
		return -ENOSPC;
	}
	return take(run, t_s, false);
}

static int falling(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x > y ? -1 : x < y;
}

/* The best placement there is: the most probable pages fill the fast memory. */
static int oracle(struct tl_run *run)
{
	uint32_t n = 0, pages, i = 0;
	double *weight, sum = 0.0;
	int w;

	for (w = 0; w < run->workers; w++)
		n += run->worker[w].dist.shape.pages;
	weight = malloc(n * sizeof(*weight));
	if (!weight) {
		fprintf(stderr, "tierload: out of memory\n");
		return -ENOMEM;
	}
	for (w = 0; w < run->workers; w++, i += pages) {
		pages = run->worker[w].dist.shape.pages;
		memcpy(weight + i, run->weight[w], pages * sizeof(*weight));
	}
	qsort(weight, n, sizeof(*weight), falling);
	for (i = 0; i < n && i < run->fast_capacity_pages; i++)
		sum += weight[i];
	free(weight);
	run->total.oracle_hit = sum < 1.0 ? sum : 1.0;
	return 0;
}

/* Mean hit ratio of the samples in [from, to). */
static double mean_hit(const struct tl_run *run, uint32_t from, uint32_t to)
{
	double sum = 0.0;
	uint32_t i;

	for (i = from; i < to; i++)
		sum += run->sample[i].hit;
	return to > from ? sum / (to - from) : 0.0;
}

/* Seconds from sample @start until the hit ratio is at @goal, or -1. */
static double time_to(const struct tl_run *run, uint32_t start, uint32_t from, uint32_t to,
		      double goal)
{
	for (; from < to; from++)
		if (run->sample[from].hit >= goal)
			return run->sample[from].t_s - run->sample[start].t_s;
	return -1.0;
}

/* Cut the samples at the moves of the hot set; a piece too short to judge is left out. */
static void find_moves(struct tl_run *run)
{
	uint32_t start, end;

	for (start = 0; start < run->samples; start = end) {
		struct tl_move *m = &run->move[run->moves];
		/* The look before a move saw it last under the old phase: time starts there. */
		uint32_t origin = start ? start - 1 : 0;

		for (end = start + 1; end < run->samples; end++)
			if (run->sample[end].phase != run->sample[start].phase)
				break;
		if (run->opt->kind == TL_MOVING &&
		    run->sample[end - 1].t_s - run->sample[origin].t_s < run->opt->move_s / 2)
			continue;
		m->t_s = run->sample[origin].t_s;
		m->final_hit = mean_hit(run, end - (end - start + 2) / 3, end);
		m->t90_s = time_to(run, origin, start, end, 0.9 * m->final_hit);
		run->moves++;
	}
}

/* Over the moves after the start; over the start itself when nothing moved. */
static double mean_t90(const struct tl_run *run)
{
	uint32_t from = run->moves > 1 ? 1 : 0, n = 0, i;
	double sum = 0.0;

	for (i = from; i < run->moves; i++, n++) {
		if (run->move[i].t90_s < 0.0)
			return -1.0;
		sum += run->move[i].t90_s;
	}
	return n ? sum / n : -1.0;
}

int tl_measure_finish(struct tl_run *run)
{
	const struct tl_options *opt = run->opt;
	struct tl_totals *t = &run->total;
	uint64_t batches, late;
	uint32_t n = run->samples;
	pid_t pids[TL_MAX_WORKERS];
	struct tl_counters now;
	int w, err;

	for (w = 0; w < run->workers; w++) {
		pids[w] = run->worker[w].pid;
		t->huge_end_bytes += tl_huge_bytes(pids[w]);
	}
	err = tl_read_counters(&now, pids, run->workers, true);
	if (!err)
		err = oracle(run);
	if (err)
		return err;
	counters_since(&t->delta, &now, &run->first);
	add_threads(run, &t->accesses, &batches, &late, &t->dropped_ns, &t->rounds);
	t->slip = batches ? (double)late / batches : 0.0;
	t->seconds = run->sample[n - 1].t_s;
	/* Sample 0 is the state before the first access. */
	t->hit_mean = n > 1 ? mean_hit(run, 1, n) : run->sample[0].hit;
	t->hit_final = mean_hit(run, n - (n + 2) / 3, n);
	find_moves(run);
	t->t90_s = mean_t90(run);
	t->t90_oracle_s = time_to(run, 0, 0, n, 0.9 * t->oracle_hit);
	t->memory_ns = t->hit_mean * opt->fast_ns + (1.0 - t->hit_mean) * opt->slow_ns;
	t->access_ns = t->memory_ns;
	if (t->accesses)
		t->access_ns += (opt->fault_ns * t->delta.vm[TL_VM_HINT_FAULTS] +
				 opt->migrate_ns * (t->delta.vm[TL_VM_PROMOTED] +
						    t->delta.vm[TL_VM_DEMOTED])) / t->accesses;
	return 0;
}

void tl_measure_free(struct tl_run *run)
{
	int w;

	for (w = 0; w < run->workers; w++) {
		free(run->node[w]);
		free(run->promoted[w]);
		free(run->weight[w]);
	}
	free(run->sample);
	free(run->move);
}
