/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared between BPF and user space: mainline's automatic hot threshold.
 *
 * Once per interval and target node: the candidates of the interval are held
 * against what the rate limit would have let through; more than 110 % of it
 * lowers the threshold by a sixteenth of its range, less than 90 % raises it.
 * The range is one step to twice the reference. The includer brings __u32,
 * __u64 and bool.
 */
#ifndef TIER_MAINLINE_H
#define TIER_MAINLINE_H

#include <tier/abi.h>

#define TIER_MAINLINE_STEPS	16

/* The threshold after an interval with so many candidates; 0 means unset. */
static inline __attribute__((always_inline)) __u32
tier_mainline_step(__u32 threshold_ms, __u32 reference_ms, __u64 candidates, __u64 expected)
{
	__u32 step_ms = reference_ms * 2 / TIER_MAINLINE_STEPS;

	if (!threshold_ms)
		threshold_ms = reference_ms;
	if (candidates > expected * 11 / 10) {
		threshold_ms = threshold_ms > 2 * step_ms ? threshold_ms - step_ms : step_ms;
	} else if (candidates < expected * 9 / 10) {
		threshold_ms += step_ms;
		if (threshold_ms > reference_ms * 2)
			threshold_ms = reference_ms * 2;
	}
	return threshold_ms;
}

/*
 * The node's threshold at now_ms, moved on if its interval is over. A new
 * reference starts afresh, as does a node that was reset (adjusted_ms 0).
 */
static inline __attribute__((always_inline)) __u32
tier_mainline_threshold(struct tier_node *node, __u32 now_ms, __u64 limit_pages_per_s,
			__u32 reference_ms, __u32 interval_ms)
{
	__u32 start = node->adjust_start_ms, threshold_ms;

	if (node->reference_ms != reference_ms) {
		node->reference_ms = reference_ms;
		node->adjusted_ms = 0;
	}
	if (!start) {	/* first fault ever: the interval begins here */
		node->adjust_start_ms = now_ms ? now_ms : 1;
		node->adjust_candidates_pages = node->candidates_pages;
	} else if (now_ms - start > interval_ms &&
	    __sync_val_compare_and_swap(&node->adjust_start_ms, start, now_ms) == start) {
		__u64 candidates = node->candidates_pages;

		node->adjusted_ms = tier_mainline_step(node->adjusted_ms, reference_ms,
						       candidates - node->adjust_candidates_pages,
						       limit_pages_per_s * interval_ms / 1000);
		node->adjust_candidates_pages = candidates;
	}
	/* read once: another CPU may reset it in between */
	threshold_ms = *(volatile __u32 *)&node->adjusted_ms;
	return threshold_ms ? threshold_ms : reference_ms;
}

#endif /* TIER_MAINLINE_H */
