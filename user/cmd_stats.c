// SPDX-License-Identifier: GPL-2.0
/* tierctl stats: counters and rates, always with the check that they add up. */
#include <string.h>

#include "emit.h"

enum { INTERVAL, COUNT, BY };

static const char *const by_words[] = { "node", "reason", "policy", NULL };
enum { BY_NODE, BY_REASON, BY_POLICY, BY_ALL, BY_NR };

static const struct opt opts[] = {
	[INTERVAL] = { "interval", 'i', OPT_DURATION, "TIME",
		"go on: rates of every TIME (2, 500ms, 1min)", 100, 86400000, NULL },
	[COUNT] = { "count", 'n', OPT_NUMBER, "N", "stop after N intervals", 1, 1000000000, NULL },
	[BY] = { "by", 'b', OPT_CHOICE, "WHAT", "break down by this only", 0, 0, by_words },
	{ 0 },
};

static const struct out_col head_cols[] = {
	{ "/policy", "policy", 0 }, { "/in_force", "in force", 0 }, { 0 },
};

static const struct out_col node_cols[] = {
	{ "/node", "NODE", 0 }, { "/tier", "TIER", 0 },
	{ "/as_target/seen_faults", "FAULTS", OUT_NO_UNIT },
	{ "/as_target/promote_faults", "PROMOTE", OUT_NO_UNIT },
	{ "/as_target/reject_faults", "REJECT", OUT_NO_UNIT },
	{ "/as_target/kernel_faults", "KERNEL", OUT_NO_UNIT },
	{ "/threshold_ms", "HOT <", OUT_ZERO_DASH },
	{ "/latency_p50_ms", "P50", 0 }, { "/latency_p90_ms", "P90", 0 },
	{ "/latency_p99_ms", "P99", 0 },
	{ 0 },
};

static const struct out_col rate_cols[] = {
	{ "/node", "NODE", 0 }, { "/rate_limit_pages_per_s", "LIMIT PAGES/s", OUT_ZERO_DASH | OUT_NO_UNIT },
	{ "/candidates_pages", "CANDIDATE PAGES", OUT_NO_UNIT },
	{ "/as_target/promoted_pages", "PAGES PROMOTED TO", OUT_NO_UNIT },
	{ "/as_source/demoted_pages", "PAGES DEMOTED FROM", OUT_NO_UNIT },
	{ 0 },
};

static const struct out_col pair_cols[] = {
	{ "/source_node", "FROM", 0 }, { "/target_node", "TO", 0 }, { "/verdict", "VERDICT", 0 },
	{ "/reason", "REASON", 0 }, { "/faults", "FAULTS", OUT_NO_UNIT },
	{ "/pages", "PAGES", OUT_NO_UNIT }, { 0 },
};

static const struct out_col policy_cols[] = {
	{ "/policy", "POLICY", 0 }, { "/in_force", "IN FORCE", 0 }, { "/time_ns", "FOR", 0 },
	{ "/seen_faults", "FAULTS", OUT_NO_UNIT }, { "/promote_faults", "PROMOTE", OUT_NO_UNIT },
	{ "/reject_faults", "REJECT", OUT_NO_UNIT }, { "/kernel_faults", "KERNEL", OUT_NO_UNIT },
	{ "/promoted_pages", "UP", OUT_OPTIONAL | OUT_NO_UNIT },
	{ "/demoted_pages", "DOWN", OUT_OPTIONAL | OUT_NO_UNIT }, { 0 },
};

static const struct out_col observer_cols[] = {
	{ "/promoted_pages", "promoted", 0 }, { "/demoted_pages", "demoted", 0 },
	{ "/promote_ok", "promotions done", 0 }, { "/promote_refused", "refused early", 0 },
	{ "/promote_failed", "failed", 0 }, { "/scan_ptes", "PTEs scanned", 0 },
	{ "/scan_work_ns", "scan time", 0 }, { 0 },
};

static const struct out_col request_cols[] = {
	{ "/requested_pages", "requested", 0 }, { "/request_moved_pages", "moved", 0 },
	{ "/request_waiting_pages", "waiting", 0 },
	{ "/request_not_slow_pages", "promoted already", 0 },
	{ "/request_gone_pages", "gone", 0 }, { "/request_busy_pages", "busy", 0 },
	{ "/request_no_memory_pages", "no free page", 0 },
	{ "/request_shared_pages", "shared", 0 }, { "/request_not_allowed_pages", "not allowed", 0 },
	{ "/request_rate_pages", "daemon's limit", 0 }, { "/request_stale_pages", "too late", 0 },
	{ "/request_failed_pages", "failed", 0 },
	{ "/request_limited_pages", "not requested: policy's limit", 0 },
	{ "/request_dropped_pages", "not requested: queue full", 0 },
	{ "/nodemask_faults", "faults outside the nodemask", OUT_NO_UNIT },
	{ 0 },
};

static const struct out_col sum_cols[] = {
	{ "/accounted", "accounted", 0 }, { "/faults_seen", "faults seen", OUT_NO_UNIT },
	{ "/faults_counted", "faults counted", OUT_NO_UNIT },
	{ "/faults_missing", "difference", OUT_NO_UNIT }, { 0 },
};

#define HEAD	{ OUT_VIEW_LINES, "", NULL, head_cols, NULL, false }
#define NODES	{ OUT_VIEW_TABLE, "/nodes", "By target node (latency: scan to fault)", node_cols, \
		  NULL, false }
#define RATES	{ OUT_VIEW_TABLE, "/nodes", "Promotion by node", rate_cols, NULL, false }
#define PAIRS	{ OUT_VIEW_TABLE, "/pairs", "By nodes, verdict and reason", pair_cols, \
		  "no fault decided yet", false }
#define TENURES	{ OUT_VIEW_TABLE, "/policies", "By policy (UP, DOWN: pages migrated meanwhile)", \
		  policy_cols, NULL, false }
#define SEEN	{ OUT_VIEW_LINES, "/observer", "Migrations and scans", observer_cols, NULL, false }
#define ASKED	{ OUT_VIEW_LINES, "/requests", "Pages requested of the daemon", request_cols, NULL, false }
#define SUM	{ OUT_VIEW_LINES, "", "Every fault under one verdict?", sum_cols, NULL, false }

static const struct out_view views[][8] = {
	[BY_NODE] = { HEAD, NODES, RATES, SUM },
	[BY_REASON] = { HEAD, PAIRS, SUM },
	[BY_POLICY] = { HEAD, TENURES, SUM },
	[BY_ALL] = { HEAD, NODES, RATES, PAIRS, SEEN, ASKED, SUM },
};

static const struct out_col line_cols[] = {
	{ "/faults_per_s", " FAULTS/s", OUT_NO_UNIT },
	{ "/promote_faults_per_s", "PROMOTE/s", OUT_NO_UNIT },
	{ "/reject_faults_per_s", "REJECT/s", OUT_NO_UNIT },
	{ "/kernel_faults_per_s", "KERNEL/s", OUT_NO_UNIT },
	{ "/promoted_pages_per_s", "PAGES UP/s", OUT_NO_UNIT },
	{ "/demoted_pages_per_s", "DOWN/s", OUT_NO_UNIT },
	{ "/failed_faults_per_s", "FAILED/s", OUT_NO_UNIT },
	{ "/accounted", "SUM OK", 0 }, { 0 },
};

static const struct out_col node_line_cols[] = {
	{ "/node", "NODE", 0 },
	{ "/faults_per_s", " FAULTS/s", OUT_NO_UNIT },
	{ "/promote_faults_per_s", "PROMOTE/s", OUT_NO_UNIT },
	{ "/reject_faults_per_s", "REJECT/s", OUT_NO_UNIT },
	{ "/kernel_faults_per_s", "KERNEL/s", OUT_NO_UNIT },
	{ "/promoted_pages_per_s", "PAGES UP/s", OUT_NO_UNIT },
	{ "/failed_faults_per_s", "FAILED/s", OUT_NO_UNIT }, { 0 },
};

static const struct out_col reason_line_cols[] = {
	{ "/verdict", "VERDICT", 0 }, { "/reason", "REASON      ", 0 },
	{ "/faults_per_s", " FAULTS/s", OUT_NO_UNIT },
	{ "/pages_per_s", "  PAGES/s", OUT_NO_UNIT }, { 0 },
};

static const struct out_col policy_line_cols[] = {
	{ "/policy", "POLICY      ", 0 },
	{ "/faults_per_s", " FAULTS/s", OUT_NO_UNIT },
	{ "/promote_faults_per_s", "PROMOTE/s", OUT_NO_UNIT },
	{ "/reject_faults_per_s", "REJECT/s", OUT_NO_UNIT },
	{ "/kernel_faults_per_s", "KERNEL/s", OUT_NO_UNIT },
	{ "/promoted_pages_per_s", "PAGES UP/s", OUT_NO_UNIT },
	{ "/failed_faults_per_s", "FAILED/s", OUT_NO_UNIT }, { 0 },
};

/* Below a table; the line of all faults has a column for it. */
static const struct out_col line_sum_cols[] = {
	{ "/accounted", "SUM OK", 0 }, { 0 },
};

#define LINE_SUM { OUT_VIEW_LINES, "/interval", NULL, line_sum_cols, NULL, false }
#define LINE_VIEWS(header) { \
	[BY_NODE] = { { OUT_VIEW_TABLE, "/interval/nodes", "", node_line_cols, NULL, false }, \
		      LINE_SUM }, \
	[BY_REASON] = { { OUT_VIEW_TABLE, "/interval/reasons", "", reason_line_cols, \
			  "no faults", false }, LINE_SUM }, \
	[BY_POLICY] = { { OUT_VIEW_TABLE, "/interval/policies", "", policy_line_cols, NULL, \
			  false }, LINE_SUM }, \
	[BY_ALL] = { { OUT_VIEW_TABLE, "/interval", NULL, line_cols, NULL, !(header) } }, \
}

/* Header on every 20th line, as vmstat does, so that it stays on the screen. */
#define HEADER_EVERY	20
static const struct out_view line_views[2][BY_NR][3] = { LINE_VIEWS(false), LINE_VIEWS(true) };

static void emit_rates(struct out *out, const struct totals *now, const struct totals *last,
		       double seconds)
{
	__u64 failed = now->moves[TIER_MV_PROMOTE_REFUSED] + now->moves[TIER_MV_PROMOTE_FAILED] -
		       last->moves[TIER_MV_PROMOTE_REFUSED] - last->moves[TIER_MV_PROMOTE_FAILED];

#define RATE(key, field) out_double(out, key, (now->field - last->field) / seconds)
	RATE("faults_per_s", faults_counted);
	RATE("promote_faults_per_s", verdict[TIER_VERDICT_PROMOTE]);
	RATE("reject_faults_per_s", verdict[TIER_VERDICT_REJECT]);
	RATE("kernel_faults_per_s", verdict[TIER_VERDICT_KERNEL]);
	RATE("promoted_pages_per_s", moves[TIER_MV_PROMOTED]);
	RATE("demoted_pages_per_s", moves[TIER_MV_DEMOTED]);
#undef RATE
	out_double(out, "failed_faults_per_s", failed / seconds);
}

/* Who was in force in the interval: one policy, or with a swap in it two. */
static void emit_tenure_rates(struct out *out, const struct tier_stats *now,
			      const struct tier_stats *last, double seconds)
{
	struct totals a, b;

	out_begin_array(out, "policies");
	for (__u32 i = 0; i < now->nr_tenures; i++) {
		const struct tier_tenure *tenure = &now->tenures[i];
		bool was_in_force = false;

		b = (struct totals){ 0 };
		stats_tenure_totals(tenure, &a);
		for (__u32 j = 0; j < last->nr_tenures; j++)
			if (!strcmp(last->tenures[j].policy, tenure->policy)) {
				stats_tenure_totals(&last->tenures[j], &b);
				was_in_force = last->tenures[j].in_force;
			}
		if (!tenure->in_force && !was_in_force && a.faults_counted == b.faults_counted)
			continue;
		out_begin_object(out, NULL);
		out_str(out, "policy", tenure->policy);
		emit_rates(out, &a, &b, seconds);
		out_end(out);
	}
	out_end(out);
}

static void emit_interval(struct out *out, const struct tier_stats *now,
			  const struct tier_stats *last)
{
	double seconds = (now->time_ns - last->time_ns) / 1e9;
	struct totals a, b;

	stats_totals(now, &a);
	stats_totals(last, &b);
	out_begin_object(out, "interval");
	out_double(out, "time_s", seconds);
	emit_rates(out, &a, &b, seconds);
	out_bool(out, "accounted", !stats_missing(&a));
	out_begin_array(out, "nodes");
	for (unsigned int nid = 0; nid < now->nr_nodes; nid++) {
		if (!(now->nodes >> nid & 1))
			continue;
		stats_node_totals(now, nid, true, &a);
		stats_node_totals(last, nid, true, &b);
		out_begin_object(out, NULL);
		out_u64(out, "node", nid);
		emit_rates(out, &a, &b, seconds);
		out_end(out);
	}
	out_end(out);
	emit_tenure_rates(out, now, last, seconds);
	stats_totals(now, &a);
	stats_totals(last, &b);
	out_begin_array(out, "reasons");
	for (unsigned int d = 0; d < TIER_NR_DECISIONS; d++) {
		if (a.faults[d] == b.faults[d])
			continue;
		out_begin_object(out, NULL);
		out_str(out, "verdict", verdict_name(tier_decision_verdict(d)));
		out_str(out, "reason", tier_decision__name(d) ?: "unknown");
		out_double(out, "faults_per_s", (a.faults[d] - b.faults[d]) / seconds);
		out_double(out, "pages_per_s", (a.pages[d] - b.pages[d]) / seconds);
		out_end(out);
	}
	out_end(out);
	out_end(out);
}

/* Reset, or unloaded and loaded anew: the counters began again in between. */
static bool began_anew(const struct tier_stats *now, const struct tier_stats *last)
{
	struct totals a, b;

	stats_totals(now, &a);
	stats_totals(last, &b);
	return a.faults_counted < b.faults_counted || a.moves[TIER_MV_PROMOTED] <
	       b.moves[TIER_MV_PROMOTED] || a.moves[TIER_MV_DEMOTED] < b.moves[TIER_MV_DEMOTED];
}

static int follow(struct tierctl *t, const struct args *args, unsigned int by,
		  struct tier_stats *last)
{
	__u64 step_ns = args->opt[INTERVAL].number * 1000000, deadline_ns = now_ns();
	__u64 count = args->opt[COUNT].given ? args->opt[COUNT].number : 0;
	int code = TIER_CLASS_OK;

	bool ejected = false;

	stop_on_signals();
	out__set_stream(t->out, true);
	for (__u64 i = 0; !code && (!count || i < count); i++) {
		struct tier_stats *now;

		/* Held up for longer than a step: do not catch up in a burst. */
		if (now_ns() > deadline_ns + step_ns)
			deadline_ns = now_ns();
		deadline_ns += step_ns;
		if (!sleep_until(deadline_ns))
			break;
		code = stats_read(t, &now);
		if (code)
			break;
		if (began_anew(now, last)) {	/* no rate can be told */
			tier_stats__free(last);
			last = now;
			continue;
		}
		if (now->ejected && !ejected)
			note(t, "the module ejected policy %s: the kernel's own algorithm decides",
			     now->policy);
		ejected = now->ejected;
		emit_stats(t->out, now);
		emit_interval(t->out, now, last);
		code = show(t, line_views[i % HEADER_EVERY == 0][by]);
		tier_stats__free(last);
		last = now;
	}
	tier_stats__free(last);
	return code;
}

static int run(struct tierctl *t, const struct args *args)
{
	unsigned int by = args->opt[BY].given ? args->opt[BY].number : BY_ALL;
	struct tier_stats *stats;
	int code;

	if (args->opt[COUNT].given && !args->opt[INTERVAL].given)
		return failure(t, TIER_CLASS_USAGE, "Add --interval TIME.",
			    "--count needs --interval");
	code = stats_read(t, &stats);
	if (code)
		return code;
	if (args->opt[INTERVAL].given)
		return follow(t, args, by, stats);
	emit_stats(t->out, stats);
	code = show(t, views[by]);
	tier_stats__free(stats);
	return code;
}

const struct command cmd_stats = {
	.name = "stats",
	.group = "Look",
	.summary = "counters by node, verdict and reason; with -i: rates",
	.doc = "Shows what was decided since 'load', by target node and by verdict and reason, the "
	"scan-to-fault latency at which half, 90 % and 99 % of the pages lie or below, the threshold "
	"and rate limit in force, and what was migrated. Counters go on over a swap; --by policy says what was counted while "
	"which policy was in force (of the faults in the moment of a swap some go to its neighbour, and "
	"pages are demoted and promotions end a little after who caused them).\n\n"
	"Every reading ends with the check that each fault that the module handed to the policy is "
	"counted under one verdict (faults that come while the counters are read are allowed for). "
	"With --interval one line per interval follows, with --by a table; as JSON one object per line "
	"with totals and, under \"interval\", rates.",
	.examples =
	"  tierctl stats\n"
	"  tierctl stats -i 1 --by reason\n"
	"  tierctl stats -i 1 --count 60 --json > minute.jsonl\n",
	.opts = opts,
	.readers = "interval count by",
	.run = run,
};
