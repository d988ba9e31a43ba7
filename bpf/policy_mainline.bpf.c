// SPDX-License-Identifier: GPL-2.0
/*
 * mainline: what the kernel itself does in memory tiering mode, as a policy.
 *
 * Idea. A control group that can be looked into. Every rule of the kernel's
 * mode 2, in its order: (1) a target node with plenty of free memory takes
 * every faulting page and forgets its adjusted threshold, for the workload has
 * changed; (2) once per interval the threshold moves so that the candidates
 * match the rate limit; (3) a page whose latency is not below the threshold is
 * cold; (4) the rest are candidates, counted before the limit is tested.
 *
 * Terms. Reference: hot_threshold_ms, where the adjusted threshold starts and
 * around which it moves, from an eighth of it to twice it. Candidate: page that
 * passed the threshold. Limit: per target node, in windows of a second.
 *
 * Source. kernel/sched/fair.c since 6.1: hot page selection, rate limit and
 * automatic threshold, 2022 (mm, Huang Ying).
 *
 * Where it does badly. The default limit (65536 MiB/s) is never reached, so the
 * threshold climbs to twice the reference and stays there: everything touched
 * within two seconds of its scan goes up, again and again. With a low limit it
 * takes minutes to settle, a sixteenth per interval.
 *
 * Where it differs from the kernel. The kernel's candidate counter is summed
 * from per-CPU parts with a delay, ours is exact; so the faults at the end of a
 * used-up window may be decided otherwise. Our threshold and windows are our
 * own and start when the policy is first loaded.
 */
#include <tier/policy.bpf.h>
#include <tier/mainline.h>

TIER_PARAM(__u32, hot_threshold_ms, 1000, 0, 1000000000, "ms",
	   "reference of the automatic threshold (kernel: hot_threshold_ms)");
TIER_PARAM(__u32, rate_limit_mbps, 65536, 0, 4294967295, "MiB/s",
	   "promotion limit per target node; 0 promotes nothing, as in the kernel");
TIER_PARAM(__u32, adjust_interval_ms, 60000, 100, 600000, "ms",
	   "how often the threshold moves (kernel: scan_period_max_ms)");

static enum tier_decision decide(const struct tier_fault *f)
{
	__u64 limit_pages_per_s = tier_mbps_to_pages(rate_limit_mbps, tier_page_shift);
	struct tier_node *node = tier_node(f);
	__u32 threshold_ms;

	if (!node)
		return TIER_KERNEL;
	if (f->flags & TIER_FAULT_ROOM) {
		if (node->adjusted_ms)
			node->adjusted_ms = 0;
		tier_publish(f, hot_threshold_ms, limit_pages_per_s);
		return TIER_PROMOTE_ROOM;
	}
	threshold_ms = tier_mainline_threshold(node, f->now_ms, limit_pages_per_s,
					       hot_threshold_ms, adjust_interval_ms);
	tier_publish(f, threshold_ms, limit_pages_per_s);
	if (f->latency_ms >= threshold_ms)
		return TIER_REJECT_COLD;
	if (!tier_rate_take(f, limit_pages_per_s) || !limit_pages_per_s)
		return TIER_REJECT_RATE;
	return TIER_PROMOTE_HOT;
}

TIER_POLICY(mainline, decide, .flags = TIER_NEED_ROOM);
