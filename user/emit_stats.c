// SPDX-License-Identifier: GPL-2.0
/* One reading of the counters as a document. */
#include <string.h>

#include "emit.h"

#include <tier/hist.h>

static const char *const module_names[] = {
#define TIER_STAT_MODULE(sym, name, unit, help) [TIER_EV_##sym] = name,
#include <tier/stats.def>
};

static const char *const move_names[] = {
#define TIER_STAT_MOVE(sym, name, unit, help) [TIER_MV_##sym] = name,
#include <tier/stats.def>
};

static const char *const scan_names[] = {
#define TIER_STAT_SCAN(sym, name, unit, help) [TIER_SC_##sym] = name,
#include <tier/stats.def>
};

static const char *const skip_names[] = {
#define TIER_STAT_SKIP(sym, name, unit, help) [TIER_SK_##sym] = name,
#include <tier/stats.def>
};

static const char *const request_names[] = {
#define TIER_STAT_REQUEST(sym, name, unit, help) [TIER_RQ_##sym] = name,
#include <tier/stats.def>
};

const char *verdict_name(enum tier_verdict verdict)
{
	static const char *const names[] = { "kernel", "promote", "reject" };

	return names[verdict];
}

const char *node_tier(const struct tier_stats *stats, unsigned int nid)
{
	return stats->top_nodes >> nid & 1 ? "fast" : "slow";
}

static void add_counts(struct totals *t, const struct tier_counts *c)
{
	for (unsigned int d = 0; d < TIER_NR_DECISIONS; d++) {
		t->faults[d] += c->faults[d];
		t->pages[d] += c->pages[d];
		t->verdict[tier_decision_verdict(d)] += c->faults[d];
		t->verdict_pages[tier_decision_verdict(d)] += c->pages[d];
		t->faults_counted += c->faults[d];
	}
}

static void add_pair(struct totals *t, const struct tier_stats *s, unsigned int src,
		     unsigned int dst)
{
	add_counts(t, &s->pairs[src * s->nr_nodes + dst]);
	for (unsigned int m = 0; s->observer && s->moves && m < TIER_NR_MV; m++)
		t->moves[m] += s->moves[src * s->nr_nodes + dst].count[m];
}

void stats_tenure_totals(const struct tier_tenure *tenure, struct totals *totals)
{
	*totals = (struct totals){ 0 };
	add_counts(totals, &tenure->counts);
	memcpy(totals->moves, tenure->moves, sizeof(totals->moves));
}

void stats_totals(const struct tier_stats *stats, struct totals *totals)
{
	*totals = (struct totals){ 0 };
	for (unsigned int src = 0; src < stats->nr_nodes; src++)
		for (unsigned int dst = 0; dst < stats->nr_nodes; dst++)
			add_pair(totals, stats, src, dst);
	totals->faults_seen_before = stats->module_before[TIER_EV_POLICY_CALLS] -
				     stats->module_base[TIER_EV_POLICY_CALLS];
	totals->faults_seen = stats->module[TIER_EV_POLICY_CALLS] -
			      stats->module_base[TIER_EV_POLICY_CALLS];
}

void stats_node_totals(const struct tier_stats *stats, unsigned int nid, bool target,
		       struct totals *totals)
{
	*totals = (struct totals){ 0 };
	for (unsigned int other = 0; other < stats->nr_nodes; other++)
		add_pair(totals, stats, target ? other : nid, target ? nid : other);
}

__s64 stats_missing(const struct totals *t)
{
	if (t->faults_counted < t->faults_seen_before)
		return t->faults_seen_before - t->faults_counted;
	if (t->faults_counted > t->faults_seen)
		return -(__s64)(t->faults_counted - t->faults_seen);
	return 0;
}

#define READINGS	4

int stats_read(struct tierctl *t, struct tier_stats **stats)
{
	struct totals totals;

	for (int i = 1; ; i++) {
		if (tier_stats__read(t->ctx, stats))
			return failure_ctx(t);
		stats_totals(*stats, &totals);
		if (!stats_missing(&totals) || i == READINGS)
			return TIER_CLASS_OK;
		tier_stats__free(*stats);
		sleep_until(now_ns() + 5000000);
	}
}

void emit_quantile(struct out *out, const char *key, const struct tier_hist *hist,
		   unsigned int per_mille)
{
	__u32 slot = tier_hist_quantile(hist->pages, per_mille);

	if (slot >= TIER_HIST_SLOTS)
		out_str(out, key, NULL);
	else
		out_u64(out, key, tier_hist_high(slot));
}

void emit_hist(struct out *out, const char *key, const struct tier_hist *hist)
{
	out_begin_array(out, key);
	for (__u32 slot = 0; slot <= TIER_HIST_LAST; slot++) {
		if (!hist->pages[slot])
			continue;
		out_begin_object(out, NULL);
		out_u64(out, "from_ms", tier_hist_low(slot));
		out_u64(out, "to_ms", tier_hist_high(slot));
		out_u64(out, "pages", hist->pages[slot]);
		out_end(out);
	}
	out_end(out);
}

static void decisions(struct out *out, const char *key, const __u64 *values)
{
	out_begin_object(out, key);
	for (unsigned int d = 0; d < TIER_NR_DECISIONS; d++)
		if (tier_decision__name(d))
			out_u64(out, tier_decision__name(d), values[d]);
	out_end(out);
}

static void verdicts(struct out *out, const struct totals *t)
{
	out_u64(out, "promote_faults", t->verdict[TIER_VERDICT_PROMOTE]);
	out_u64(out, "reject_faults", t->verdict[TIER_VERDICT_REJECT]);
	out_u64(out, "kernel_faults", t->verdict[TIER_VERDICT_KERNEL]);
}

/* What a node and a policy are told by alike. */
static void faults_and_moves(struct out *out, const struct tier_stats *s, const struct totals *t)
{
	out_u64(out, "seen_faults", t->faults_counted);
	verdicts(out, t);
	decisions(out, "faults", t->faults);
	decisions(out, "pages", t->pages);
	for (unsigned int m = 0; s->observer && m < TIER_NR_MV; m++)
		out_u64(out, move_names[m], t->moves[m]);
}

/* All of a node's faults, as the target or as the source of the promotion. */
static void side(struct out *out, const struct tier_stats *s, unsigned int nid, bool target)
{
	struct totals t;

	stats_node_totals(s, nid, target, &t);
	out_begin_object(out, target ? "as_target" : "as_source");
	faults_and_moves(out, s, &t);
	out_end(out);
}

static void nodes(struct out *out, const struct tier_stats *s)
{
	out_begin_array(out, "nodes");
	for (unsigned int nid = 0; nid < s->nr_nodes; nid++) {
		if (!(s->nodes >> nid & 1))
			continue;
		out_begin_object(out, NULL);
		out_u64(out, "node", nid);
		out_str(out, "tier", node_tier(s, nid));
		side(out, s, nid, true);
		side(out, s, nid, false);
		out_u64(out, "threshold_ms", s->node[nid].threshold_ms);
		out_u64(out, "rate_limit_pages_per_s", s->node[nid].limit_pages_per_s);
		out_u64(out, "candidates_pages", s->node[nid].candidates_pages);
		emit_quantile(out, "latency_p50_ms", &s->hist[nid], 500);
		emit_quantile(out, "latency_p90_ms", &s->hist[nid], 900);
		emit_quantile(out, "latency_p99_ms", &s->hist[nid], 990);
		emit_hist(out, "latency_hist", &s->hist[nid]);
		out_end(out);
	}
	out_end(out);
}

/* One entry per (source, target, reason) that was ever seen: a flat list. */
static void pairs(struct out *out, const struct tier_stats *s)
{
	out_begin_array(out, "pairs");
	for (unsigned int i = 0; i < s->nr_nodes * s->nr_nodes; i++)
		for (unsigned int d = 0; d < TIER_NR_DECISIONS; d++) {
			if (!s->pairs[i].faults[d])
				continue;
			out_begin_object(out, NULL);
			out_u64(out, "source_node", i / s->nr_nodes);
			out_u64(out, "target_node", i % s->nr_nodes);
			out_str(out, "verdict", verdict_name(tier_decision_verdict(d)));
			out_str(out, "reason", tier_decision__name(d) ?: "unknown");
			out_u64(out, "faults", s->pairs[i].faults[d]);
			out_u64(out, "pages", s->pairs[i].pages[d]);
			out_end(out);
		}
	out_end(out);
}

static void tenures(struct out *out, const struct tier_stats *s)
{
	out_begin_array(out, "policies");
	for (__u32 i = 0; i < s->nr_tenures; i++) {
		const struct tier_tenure *tenure = &s->tenures[i];
		struct totals t;

		stats_tenure_totals(tenure, &t);
		out_begin_object(out, NULL);
		out_str(out, "policy", tenure->policy);
		out_bool(out, "in_force", tenure->in_force && !s->ejected);
		out_u64(out, "times", tenure->times);
		out_u64(out, "time_ns", tenure->time_ns);
		faults_and_moves(out, s, &t);
		out_end(out);
	}
	out_end(out);
}

static void observer(struct out *out, const struct tier_stats *s, const struct totals *t)
{
	out_begin_object(out, "observer");
	for (unsigned int m = 0; m < TIER_NR_MV; m++)
		out_u64(out, move_names[m], t->moves[m]);
	for (unsigned int c = 0; c < TIER_NR_SC; c++)
		out_u64(out, scan_names[c], s->scans.count[c]);
	for (unsigned int c = 0; c < TIER_NR_SK; c++)
		out_u64(out, skip_names[c], s->scans.skip[c]);
	out_end(out);
}

/* What was requested of the daemon, and what it has not got to yet. */
static void requests(struct out *out, const struct tier_stats *s)
{
	__u64 left = s->request.count[TIER_RQ_PAGES];

	out_begin_object(out, "requests");
	for (unsigned int c = 0; c < TIER_NR_RQ; c++)
		out_u64(out, request_names[c], s->request.count[c]);
	for (unsigned int c = TIER_RQ_MOVED; c <= TIER_RQ_FAILED; c++)
		left = left > s->request.count[c] ? left - s->request.count[c] : 0;
	out_u64(out, "request_waiting_pages", left);
	out_end(out);
}

void emit_module(struct out *out, const char *key, const __u64 *module, const __u64 *base)
{
	out_begin_object(out, key);
	for (unsigned int c = 0; c < TIER_NR_EV; c++)
		out_u64(out, module_names[c], module[c] - (base ? base[c] : 0));
	out_end(out);
}

void emit_stats(struct out *out, const struct tier_stats *s)
{
	struct totals t;

	stats_totals(s, &t);
	out_str(out, "policy", s->policy);
	out_bool(out, "in_force", !s->ejected);
	out_u64(out, "time_ns", s->time_ns);
	nodes(out, s);
	pairs(out, s);
	tenures(out, s);
	out_begin_object(out, "totals");
	verdicts(out, &t);
	decisions(out, "faults", t.faults);
	decisions(out, "pages", t.pages);
	out_end(out);
	emit_module(out, "module", s->module, s->module_base);
	if (s->observer)
		observer(out, s, &t);
	else
		out_str(out, "observer", NULL);
	if (s->requesting)
		requests(out, s);
	else
		out_str(out, "requests", NULL);
	out_u64(out, "faults_counted", t.faults_counted);
	out_u64(out, "faults_seen_before", t.faults_seen_before);
	out_u64(out, "faults_seen", t.faults_seen);
	out_s64(out, "faults_missing", stats_missing(&t));
	out_bool(out, "accounted", !stats_missing(&t));
}
