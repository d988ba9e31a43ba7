// SPDX-License-Identifier: GPL-2.0
/* tierctl hist: scan-to-fault latency per node, drawn in text. */
#include <string.h>

#include "emit.h"

#include <tier/hist.h>

enum { NODE, FULL };

static const struct opt opts[] = {
	[NODE] = { "node", 0, OPT_NUMBER, "N", "this target node only", 0, TIER_MAX_NODES - 1, NULL },
	[FULL] = { "full", 'f', OPT_FLAG, NULL, "one line per slot instead of one per doubling",
		0, 0, NULL },
	{ 0 },
};

#define BAR	28

static const struct out_col bar_cols[] = {
	{ "/from_ms", "FROM", 0 }, { "/to_ms", "TO", 0 }, { "/pages", "PAGES", OUT_NO_UNIT },
	{ "/share_ratio", "SHARE", 0 }, { "/cumulative_ratio", "SUM", 0 }, { "/mark", "", OUT_EMPTY },
	{ "/bar", "", OUT_EMPTY }, { 0 },
};

static const struct out_col head_cols[] = {
	{ "/node", "target node", 0 }, { "/pages", "pages", OUT_NO_UNIT },
	{ "/threshold_ms", "hot below", OUT_ZERO_DASH },
	{ "/latency_p50_ms", "half within", 0 }, { "/latency_p90_ms", "90 % within", 0 },
	{ "/latency_p99_ms", "99 % within", 0 }, { 0 },
};

static const struct out_view views[] = {
	{ OUT_VIEW_LINES, "", NULL, head_cols, NULL, false },
	{ OUT_VIEW_TABLE, "/latency_hist", "Scan-to-fault latency (> holds the threshold)", bar_cols,
	  "no fault seen yet", false },
	{ 0 },
};

static const struct out_col scan_cols[] = {
	{ "/scan_works", "scanner runs", 0 }, { "/scan_work_mean_ns", "mean time of a run", 0 },
	{ "/scan_work_p50_ns", "half within", 0 }, { "/scan_work_p99_ns", "99 % within", 0 },
	{ "/scan_ptes", "PTEs marked", 0 }, { "/scan_ptes_per_run", "PTEs marked per run", 0 }, { 0 },
};

static const struct out_col run_cols[] = {
	{ "/from_ns", "FROM", 0 }, { "/to_ns", "TO", 0 }, { "/runs", "RUNS", OUT_NO_UNIT },
	{ "/share_ratio", "SHARE", 0 }, { "/cumulative_ratio", "SUM", 0 },
	{ "/bar", "", OUT_EMPTY }, { 0 },
};

static const struct out_view scan_views[] = {
	{ OUT_VIEW_LINES, "/scan", "Cost of scanning", scan_cols, NULL, false },
	{ OUT_VIEW_TABLE, "/scan/work_hist", "Time of a scanner run", run_cols, "no run seen yet",
	  false },
	{ 0 },
};

static __u64 slots(const __u64 *counts, __u32 first, __u32 nr)
{
	__u64 sum = 0;

	for (__u32 i = first; i < first + nr; i++)
		sum += counts[i];
	return sum;
}

/* Bars of one node: @step slots to a line. */
static void emit_bars(struct out *out, const struct tier_hist *h, __u32 threshold_ms, __u32 step)
{
	__u64 total = tier_hist_total(h->pages), largest = 1, sum = 0;
	__u32 first = TIER_HIST_SLOTS, last = 0;

	for (__u32 s = 0; s <= TIER_HIST_LAST; s += step) {
		__u64 pages = slots(h->pages, s, step);

		if (!pages)
			continue;
		first = first == TIER_HIST_SLOTS ? s : first;
		last = s;
		largest = pages > largest ? pages : largest;
	}
	out_begin_array(out, "latency_hist");
	for (__u32 s = first; s <= last; s += step) {
		__u64 low = tier_hist_low(s), high = tier_hist_high(s + step - 1);
		__u64 pages = slots(h->pages, s, step);
		char bar[BAR + 1] = "";

		sum += pages;
		memset(bar, '#', (pages * BAR + largest - 1) / largest);
		out_begin_object(out, NULL);
		out_u64(out, "from_ms", low);
		out_u64(out, "to_ms", high);
		out_u64(out, "pages", pages);
		out_double(out, "share_ratio", (double)pages / total);
		out_double(out, "cumulative_ratio", (double)sum / total);
		out_str(out, "mark", threshold_ms && threshold_ms >= low && threshold_ms <= high ? ">" : "");
		out_str(out, "bar", bar);
		out_end(out);
	}
	out_end(out);
}

static void emit_node(struct out *out, const struct tier_stats *s, unsigned int nid, __u32 step)
{
	const struct tier_hist *h = &s->hist[nid];

	out_u64(out, "node", nid);
	out_u64(out, "pages", tier_hist_total(h->pages));
	out_u64(out, "threshold_ms", s->node[nid].threshold_ms);
	emit_quantile(out, "latency_p50_ms", h, 500);
	emit_quantile(out, "latency_p90_ms", h, 900);
	emit_quantile(out, "latency_p99_ms", h, 990);
	emit_bars(out, h, s->node[nid].threshold_ms, step);
}

static void emit_quantile_ns(struct out *out, const char *key, const struct tier_scan_hist *h,
			     __u32 per_mille)
{
	__u32 slot = tier_hist_quantile(h->runs, per_mille);

	if (slot >= TIER_HIST_SLOTS)
		out_str(out, key, NULL);
	else
		out_u64(out, key, tier_hist_high(slot) * 1000ULL + 999);
}

/* One line per doubling of the time, as long as there are any. */
static void emit_runs(struct out *out, const struct tier_scan_hist *h, __u32 step)
{
	__u64 total = tier_hist_total(h->runs), largest = 1, sum = 0, runs;

	for (__u32 s = 0; s <= TIER_HIST_LAST; s += step) {
		runs = slots(h->runs, s, step);
		largest = runs > largest ? runs : largest;
	}
	out_begin_array(out, "work_hist");
	for (__u32 s = 0; s <= TIER_HIST_LAST && sum < total; s += step) {
		char bar[BAR + 1] = "";

		runs = slots(h->runs, s, step);
		sum += runs;
		if (!sum)
			continue;
		memset(bar, '#', (runs * BAR + largest - 1) / largest);
		out_begin_object(out, NULL);
		out_u64(out, "from_ns", tier_hist_low(s) * 1000ULL);
		out_u64(out, "to_ns", tier_hist_high(s + step - 1) * 1000ULL + 999);
		out_u64(out, "runs", runs);
		out_double(out, "share_ratio", (double)runs / total);
		out_double(out, "cumulative_ratio", (double)sum / total);
		out_str(out, "bar", bar);
		out_end(out);
	}
	out_end(out);
}

static void emit_scan(struct out *out, const struct tier_stats *stats, __u32 step)
{
	const struct tier_scans *scans = &stats->scans;
	__u64 runs = scans->count[TIER_SC_WORKS];

	out_begin_object(out, "scan");
	out_u64(out, "scan_works", runs);
	out_u64(out, "scan_ptes", scans->count[TIER_SC_PTES]);
	out_double(out, "scan_work_mean_ns", runs ? (double)scans->count[TIER_SC_WORK_NS] / runs : 0);
	out_double(out, "scan_ptes_per_run", runs ? (double)scans->count[TIER_SC_PTES] / runs : 0);
	emit_quantile_ns(out, "scan_work_p50_ns", &stats->scan_hist, 500);
	emit_quantile_ns(out, "scan_work_p99_ns", &stats->scan_hist, 990);
	emit_runs(out, &stats->scan_hist, step);
	out_end(out);
}

/* Text: one document per node; JSON: one document with all of them. */
static int print(struct tierctl *t, const struct tier_stats *s, __u64 nodes, __u32 step)
{
	int code = TIER_CLASS_OK;
	bool first = true;

	if (t->json)
		out_begin_array(t->out, "nodes");
	for (unsigned int nid = 0; nid < s->nr_nodes && !code; nid++) {
		if (!(nodes >> nid & 1))
			continue;
		if (t->json) {
			out_begin_object(t->out, NULL);
			emit_node(t->out, s, nid, step);
			out_end(t->out);
			continue;
		}
		if (!first)
			putchar('\n');
		first = false;
		emit_node(t->out, s, nid, step);
		code = show(t, views);
	}
	if (t->json)
		out_end(t->out);
	else if (s->observer && !first)
		putchar('\n');
	if (s->observer)
		emit_scan(t->out, s, step);
	return code ? code : show(t, scan_views);
}

static int run(struct tierctl *t, const struct args *args)
{
	__u32 step = args->opt[FULL].given ? 1 : 4;	/* four slots to an octave */
	struct tier_stats *s;
	__u64 nodes = 0;
	int code;

	code = stats_read(t, &s);
	if (code)
		return code;
	for (unsigned int nid = 0; nid < s->nr_nodes; nid++)
		if (tier_hist_total(s->hist[nid].pages))
			nodes |= 1ULL << nid;
	if (!nodes)	/* nothing seen: show the nodes that could be targets */
		nodes = s->top_nodes;
	if (args->opt[NODE].given)
		nodes = 1ULL << args->opt[NODE].number;
	if (!(nodes & s->nodes))
		code = failure(t, TIER_CLASS_USAGE, "'tierctl topo' lists the nodes.",
			       "there is no node %llu", (unsigned long long)args->opt[NODE].number);
	else
		code = print(t, s, nodes & s->nodes, step);
	tier_stats__free(s);
	return code;
}

const struct command cmd_hist = {
	.name = "hist",
	.group = "Look",
	.summary = "histograms of scan-to-fault latency, with the threshold, and of scan cost",
	.doc = "Draws, per target node, how long after its scan a page was touched: pages on the fast "
	"side are hot. The line that holds the threshold in force is marked. Two humps with the "
	"threshold between them are a workload that a threshold can sort; one broad hump is not.\n\n"
	"Then what scanning costs, with a histogram of the time that a run of the scanner takes: it "
	"is the process's own time.",
	.examples = "  tierctl hist\n  tierctl hist --node 0 --full\n",
	.opts = opts,
	.readers = "node full",
	.run = run,
};
