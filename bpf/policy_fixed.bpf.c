// SPDX-License-Identifier: GPL-2.0
/*
 * fixed: promote pages that fault soon after their scan, within a rate limit.
 *
 * Idea. The scan makes a page PROT_NONE at a moment that has nothing to do with
 * the workload. The time from there to the next access is then, on average,
 * half the page's access interval: short latency, hot page. A page whose
 * latency is strictly below hot_threshold_ms is promoted, all others stay.
 *
 * Terms. A candidate is a page that passed the threshold. The rate limit works
 * per target node in windows of one second: once the candidates counted since
 * the window began reach the limit, further ones are refused until the next
 * window. A large folio counts all its pages.
 *
 * Source. Hot page selection, 2022 (mm, Huang Ying), first and second patch:
 * threshold and limit as there, but the threshold stays where it is put.
 * Rule of thumb for the limit: 10 % of the slow tier's bandwidth.
 *
 * Where it does badly. Milliseconds are not a rank: the right threshold depends
 * on the machine's load and on the scan rate. Set too low it promotes nothing,
 * too high it is mru; when the workload slows down, everything looks cold. Read
 * the latency histogram (tierctl stats) under the policy "kernel" and put the
 * threshold between its two humps.
 */
#include <tier/policy.bpf.h>

TIER_PARAM(__u32, hot_threshold_ms, 1000, 0, 4294967295, "ms",
	   "promote a page that faults sooner than this after its scan; 0 promotes nothing");
TIER_PARAM(__u32, rate_limit_mbps, 0, 0, 4294967295, "MiB/s",
	   "promotion limit per target node, or a share of the slow tier's bandwidth (5%); 0 is no limit");

static __always_inline __u64 limit_pages_per_s(void)
{
	return tier_mbps_to_pages(rate_limit_mbps, tier_page_shift);
}

static enum tier_decision decide(const struct tier_fault *f)
{
	__u32 threshold_ms = hot_threshold_ms;

	if (f->latency_ms >= threshold_ms) {
		if (tier_now_and_then(f))
			tier_publish(f, threshold_ms, limit_pages_per_s());
		return TIER_REJECT_COLD;
	}
	tier_publish(f, threshold_ms, limit_pages_per_s());
	if (!tier_rate_take(f, limit_pages_per_s()))
		return TIER_REJECT_RATE;
	return TIER_PROMOTE_HOT;
}

TIER_POLICY(fixed, decide);
