// SPDX-License-Identifier: GPL-2.0
/* doctor: the policy in force, its limits, and whether promotions succeed. */
#include <string.h>

#include "doctor.h"

#include <tier/hist.h>

#define KERNEL_LIMIT	"/proc/sys/kernel/numa_balancing_promote_rate_limit_MBps"

/* Fewer promotions than this say nothing about their success. */
#define ENOUGH		100

static bool follows_kernel(const struct doctor *d)
{
	return !doctor_loaded(d) || !strcmp(d->status->policy, "kernel");
}

static void check_state(struct doctor *d)
{
	const struct tier_exit_record *e = &d->status->exit;
	struct finding *f;

	d->checks += 2;
	if (d->status->state == TIER_STATE_STALE) {
		f = doctor_add(d, "stale_pins", SEV_PROBLEM);
		SAY(f->finding, "pins or saved state are left of a policy that is not in force");
		SAY(f->evidence, "/sys/fs/bpf/tier has pins, but there is no live link");
		SAY(f->consequence, "load refuses, and knobs may still be as an earlier load set them");
		SAY(f->remedy, "tierctl clean");
		f->fix_clean = true;
	}
	if (d->status->state == TIER_STATE_EJECTED) {
		f = doctor_add(d, "ejected", SEV_EJECTED);
		SAY(f->finding, "the module took policy %s out of force", e->policy);
		SAY(f->evidence, "%s: %s", e->kind, e->message);
		SAY(f->consequence, "the kernel's own algorithm decides");
		SAY(f->remedy, "mend the policy, then tierctl swap; or tierctl unload");
	}
}

static void check_rate_zero(struct doctor *d)
{
	struct finding *f;
	__u64 limit;

	d->checks++;
	if (!follows_kernel(d) || sys_read_u64(&limit, KERNEL_LIMIT) || limit)
		return;
	f = doctor_add(d, "rate_limit_zero", SEV_PROBLEM);
	SAY(f->finding, "the kernel's promotion rate limit is 0");
	SAY(f->evidence, "kernel.numa_balancing_promote_rate_limit_MBps = 0");
	SAY(f->consequence, "the kernel's algorithm promotes nothing");
	SAY(f->remedy, "sysctl -w kernel.numa_balancing_promote_rate_limit_MBps=65536");
	SAY(f->fix_path, KERNEL_LIMIT);
	SAY(f->fix_value, "65536");
}

/* What a policy has a default for that is not 0 promotes nothing at 0. */
static void check_param_zero(struct doctor *d)
{
	static const struct {
		const char *param, *id, *finding, *consequence;
	} checks[] = {
		{ "hot_threshold_ms", "threshold_zero", "the hot threshold is 0 ms",
		  "no page is hot: nothing is promoted" },
		{ "rate_limit_mbps", "rate_limit_zero", "the policy's promotion rate limit is 0",
		  "nothing is promoted" },
	};

	for (unsigned int i = 0; i < d->status->nr_params; i++)
		for (size_t c = 0; c < sizeof(checks) / sizeof(checks[0]); c++) {
			const struct tier_param_value *p = &d->status->params[i];
			struct finding *f;

			if (strcmp(p->info.name, checks[c].param))
				continue;
			d->checks++;
			if (p->value || !p->info.def)
				continue;
			f = doctor_add(d, checks[c].id, SEV_PROBLEM);
			SAY(f->finding, "%s", checks[c].finding);
			SAY(f->evidence, "parameter %s of policy %s", p->info.name,
			    d->status->policy);
			SAY(f->consequence, "%s", checks[c].consequence);
			SAY(f->remedy, "tierctl set %s=%llu", p->info.name, p->info.def);
		}
}

/* Nothing seen so far would pass the threshold: then nothing will. */
static void check_threshold_low(struct doctor *d, unsigned int nid)
{
	const __u64 *pages = d->stats->hist[nid].pages;
	__u32 threshold_ms = d->stats->node[nid].threshold_ms;
	__u32 fastest = tier_hist_quantile(pages, 10);
	struct finding *f;

	d->checks++;
	if (!threshold_ms || tier_hist_total(pages) < 1000 || tier_hist_low(fastest) < threshold_ms)
		return;
	f = doctor_add(d, "threshold_low", SEV_WARNING);
	SAY(f->finding, "the hot threshold lies below what node %u sees", nid);
	SAY(f->evidence, "threshold %u ms; 99 %% of the pages fault later than %llu ms after their scan",
	    threshold_ms, tier_hist_low(fastest));
	SAY(f->consequence, "next to nothing is promoted");
	SAY(f->remedy, "tierctl hist, then tierctl set hot_threshold_ms=... between the humps");
}

static void check_counters(struct doctor *d)
{
	static const struct {
		enum tier_stat_module counter;
		const char *id, *finding, *consequence, *remedy;
	} checks[] = {
		{ TIER_EV_UNDECIDED, "undecided", "faults reached no policy",
		  "the kernel's algorithm decided them", "tierctl dump, and report it" },
		{ TIER_EV_BAD_VERDICTS, "bad_verdicts", "the policy returned decisions that do not exist",
		  "the kernel's algorithm decided these faults; too many in a row eject the policy",
		  "mend the policy" },
		{ TIER_EV_CAPPED, "capped", "the module's hard cap refused promotions",
		  "hot pages stay slow",
		  "raise /sys/module/tier_policy/parameters/promote_cap_pages_per_s (0: no cap)" },
	};

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		__u64 n = d->stats->module[checks[i].counter] - d->earlier->module[checks[i].counter];
		__u64 total = d->stats->module[checks[i].counter] -
			      d->stats->module_base[checks[i].counter];
		struct finding *f;

		d->checks++;
		/* A cap may have been hit long ago; the others must never happen. */
		if (!total || (checks[i].counter == TIER_EV_CAPPED && !n))
			continue;
		f = doctor_add(d, checks[i].id, SEV_WARNING);
		SAY(f->finding, "%s", checks[i].finding);
		SAY(f->evidence, "module counter: %llu since load, %llu in the last %.1f s", total, n,
		    d->window_s);
		SAY(f->consequence, "%s", checks[i].consequence);
		SAY(f->remedy, "%s", checks[i].remedy);
	}
}

static void check_sum(struct doctor *d, const struct totals *totals)
{
	struct finding *f;

	d->checks++;
	if (!stats_missing(totals))
		return;
	f = doctor_add(d, "not_accounted", SEV_WARNING);
	SAY(f->finding, "the counters do not add up");
	SAY(f->evidence, "%llu faults handed to the policy, %llu counted under a verdict",
	    totals->faults_seen, totals->faults_counted);
	SAY(f->consequence, "the numbers of stats are not to be trusted");
	SAY(f->remedy, "tierctl dump, and report it");
}

/* Hot pages that the policy itself keeps where they are, nearly all of them. */
static void check_held_back(struct doctor *d, const struct totals *now, const struct totals *then)
{
	static const struct {
		enum tier_decision reason;
		const char *id, *finding, *consequence, *remedy;
	} checks[] = {
		{ TIER_REJECT_RATE, "rate_limit_low", "the rate limit holds back nearly all hot pages",
		  "the hot set arrives on the fast nodes slowly or never",
		  "tierctl get shows the limit; tierctl set rate_limit_mbps=..." },
		{ TIER_REJECT_FULL, "gate_closed",
		  "promotions keep failing: the success gate holds back nearly all hot pages",
		  "hot pages stay on the slow nodes",
		  "make room on the fast nodes: tierctl topo shows free memory and watermarks, "
		  "numastat -m what fills them" },
		{ TIER_REJECT_THRASH, "brake_closed", "the thrash brake holds back nearly all candidates",
		  "what is on the fast nodes stays; more is hot than fits there",
		  "nothing, if that is so; else tierctl set thrash_limit_percent=..." },
		{ TIER_REJECT_NODEMASK, "nodemask_closed",
		  "memory policies or cpusets keep nearly all hot pages from the fast nodes",
		  "these pages stay on the slow nodes",
		  "tierctl doctor --full names the processes; numactl or the cpuset's mems let them" },
	};
	__u64 promoted = now->verdict[TIER_VERDICT_PROMOTE] - then->verdict[TIER_VERDICT_PROMOTE];

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		__u64 held = now->faults[checks[i].reason] - then->faults[checks[i].reason];
		struct finding *f;

		d->checks++;
		if (held < ENOUGH || held < 9 * promoted)
			continue;
		f = doctor_add(d, checks[i].id, SEV_WARNING);
		SAY(f->finding, "%s", checks[i].finding);
		SAY(f->evidence, "in %.1f s: %llu faults refused as \"%s\", %llu promoted", d->window_s,
		    held, tier_decision__name(checks[i].reason), promoted);
		SAY(f->consequence, "%s", checks[i].consequence);
		SAY(f->remedy, "%s", checks[i].remedy);
	}
}

void doctor_check_policy(struct doctor *d)
{
	struct totals now, then;

	if (!d->status)
		return;
	check_state(d);
	check_rate_zero(d);
	check_param_zero(d);
	if (!d->stats || !d->earlier)
		return;
	stats_totals(d->stats, &now);
	stats_totals(d->earlier, &then);
	for (unsigned int nid = 0; nid < d->stats->nr_nodes; nid++)
		if (d->stats->top_nodes >> nid & 1)
			check_threshold_low(d, nid);
	check_counters(d);
	check_sum(d, &now);
	check_held_back(d, &now, &then);
}

/*
 * Promotions wanted against promotions done. Three witnesses, the best first: the
 * observer (each attempt and its outcome), then the kernel's candidates against
 * its successes in the window, then the same since boot.
 */
void doctor_check_success(struct doctor *d)
{
	__u64 wanted = d->vm_candidate[1] - d->vm_candidate[0];
	__u64 done = d->vm_success[1] - d->vm_success[0];
	const char *sure = "likely: not every candidate is meant to be promoted at once";
	const char *what = "pages";
	struct totals now = { 0 }, then = { 0 };
	struct finding *f;

	d->checks++;
	if (d->stats && d->earlier && d->stats->observer) {
		stats_totals(d->stats, &now);
		stats_totals(d->earlier, &then);
		wanted = now.verdict_pages[TIER_VERDICT_PROMOTE] -
			 then.verdict_pages[TIER_VERDICT_PROMOTE];
		done = now.moves[TIER_MV_PROMOTED] - then.moves[TIER_MV_PROMOTED];
		sure = "certain: each attempt was watched";
		/* Left to the kernel: its attempts tell what it wanted, one for each fault. */
		if (!wanted) {
			done = now.moves[TIER_MV_PROMOTE_OK] - then.moves[TIER_MV_PROMOTE_OK];
			wanted = done +
				 now.moves[TIER_MV_PROMOTE_REFUSED] + now.moves[TIER_MV_PROMOTE_FAILED] -
				 then.moves[TIER_MV_PROMOTE_REFUSED] - then.moves[TIER_MV_PROMOTE_FAILED];
			what = "faults";
		}
	}
	if (wanted >= ENOUGH && done * 10 < wanted) {
		f = doctor_add(d, "promotions_fail", SEV_PROBLEM);
		SAY(f->finding, "promotions do not succeed");
		SAY(f->evidence, "in %.1f s: %llu %s to be promoted, %llu promoted (%s)", d->window_s,
		    wanted, what, done, sure);
		SAY(f->consequence, "hot pages stay on the slow nodes, and each attempt costs time");
		SAY(f->remedy, "make room on the fast nodes: tierctl topo shows free memory and "
		    "watermarks, numastat -m what fills them");
		return;
	}
	if (d->vm_candidate[1] >= 100 * ENOUGH && d->vm_success[1] * 20 < d->vm_candidate[1]) {
		f = doctor_add(d, "promotions_failed", SEV_NOTE);
		SAY(f->finding, "since boot few of the promotion candidates were promoted");
		SAY(f->evidence, "/proc/vmstat: pgpromote_candidate %llu, pgpromote_success %llu "
		    "(not now: %llu candidates in %.1f s)", d->vm_candidate[1], d->vm_success[1],
		    d->vm_candidate[1] - d->vm_candidate[0], d->window_s);
		SAY(f->consequence, "unsure: a rate limit does the same as failing promotions");
		SAY(f->remedy, "run tierctl doctor while the workload runs");
	}
}
