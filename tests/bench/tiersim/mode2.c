// SPDX-License-Identifier: GPL-2.0
/*
 * Deciders without BPF: the opponent and the best there is.
 *
 * mode2 is mainline's memory tiering mode: free-space bypass, hot threshold
 * with its 60 s steps, rate limit per second. Candidates count before the
 * limit is tested. oracle knows each page's rank and promotes, at their first
 * fault, the pages of the best placement that fits above the high watermark.
 */
#include "sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ts_mode2_init(struct ts_mode2 *s, const struct ts_options *opt)
{
	memset(s, 0, sizeof(*s));
	s->hot_threshold_ms = opt->hot_threshold_ms;
	s->interval_ms = opt->scan_max_ms;
	s->limit_pages_per_s = opt->rate_limit_mbps * TS_PAGES_PER_MIB;
}

static void adjust(struct ts_mode2 *s, uint32_t now_ms)
{
	uint32_t unit = s->hot_threshold_ms * 2 / 16;
	uint32_t max = s->hot_threshold_ms * 2;
	uint32_t th = s->threshold_ms ? s->threshold_ms : s->hot_threshold_ms;
	uint64_t expected = s->limit_pages_per_s * s->interval_ms / 1000;
	uint64_t seen = s->candidates - s->adjust_candidates;

	if (now_ms - s->adjust_start_ms <= s->interval_ms)
		return;
	s->adjust_start_ms = now_ms;
	if (seen > expected * 11 / 10)
		th = th > 2 * unit ? th - unit : unit;
	else if (seen < expected * 9 / 10)
		th = th + unit < max ? th + unit : max;
	s->adjust_candidates = s->candidates;
	s->threshold_ms = th;
}

static bool over_limit(struct ts_mode2 *s, uint32_t now_ms, uint32_t nr_pages)
{
	s->candidates += nr_pages;
	if (now_ms - s->window_start_ms > 1000) {
		s->window_start_ms = now_ms;
		s->window_candidates = s->candidates;
	}
	return s->candidates - s->window_candidates >= s->limit_pages_per_s;
}

enum tier_decision ts_mode2_decide(struct ts_mode2 *s, const struct tier_fault *f)
{
	uint32_t th;

	if (f->flags & TIER_FAULT_ROOM) {
		s->threshold_ms = 0;
		return TIER_PROMOTE_ROOM;
	}
	adjust(s, f->now_ms);
	th = s->threshold_ms ? s->threshold_ms : s->hot_threshold_ms;
	if (f->latency_ms >= th)
		return TIER_REJECT_COLD;
	return over_limit(s, f->now_ms, f->nr_pages) ? TIER_REJECT_RATE : TIER_PROMOTE_HOT;
}

struct builtin {
	struct ts_decider base;
	struct ts_mode2 mode2;
};

static int decide_mode2(struct ts_decider *d, struct ts_machine *m,
			struct tier_replay_entry *entry, const uint32_t *folio, uint32_t nr)
{
	struct builtin *b = (struct builtin *)d;
	uint32_t i;

	for (i = 0; i < nr; i++)
		entry[i].decision = ts_mode2_decide(&b->mode2, &entry[i].fault);
	return 0;
}

static uint32_t threshold_mode2(struct ts_decider *d)
{
	struct builtin *b = (struct builtin *)d;

	return b->mode2.threshold_ms ? b->mode2.threshold_ms : b->mode2.hot_threshold_ms;
}

static int decide_oracle(struct ts_decider *d, struct ts_machine *m,
			 struct tier_replay_entry *entry, const uint32_t *folio, uint32_t nr)
{
	uint32_t i;
	bool hot;

	for (i = 0; i < nr; i++)
		entry[i].decision = ts_rank_of(m, folio[i], &hot) <
			ts_proc_of(m, folio[i])->best_ranks ? TIER_PROMOTE_HOT : TIER_REJECT_COLD;
	return 0;
}

static void close_builtin(struct ts_decider *d)
{
	free(d);
}

struct ts_decider *ts_builtin_open(const char *name, const struct ts_options *opt)
{
	bool mode2 = !strcmp(name, "mode2");
	struct builtin *b;

	if (!mode2 && strcmp(name, "oracle"))
		return NULL;
	b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	snprintf(b->base.label, sizeof(b->base.label), "%s", name);
	b->base.decide = mode2 ? decide_mode2 : decide_oracle;
	b->base.threshold_ms = mode2 ? threshold_mode2 : NULL;
	b->base.close = close_builtin;
	ts_mode2_init(&b->mode2, opt);
	return &b->base;
}

void ts_decider_close(struct ts_decider *d)
{
	if (d)
		d->close(d);
}
