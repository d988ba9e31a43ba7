/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared between BPF and user space: the success gate.
 *
 * When the target node is full and reclaim has given up, every promotion fails,
 * after its cost was paid. The observer counts per target node how promotions
 * end. If nearly all of an interval's fail, the gate closes: one candidate in 64
 * goes on as a probe, the others stay; when the probes succeed, it opens.
 * Without the observer nothing is known and the gate stays open. The includer
 * brings __u32, __u64 and bool.
 */
#ifndef TIER_GATE_H
#define TIER_GATE_H

#include <tier/abi.h>

#define TIER_GATE_INTERVAL_MS	2000U
#define TIER_GATE_STALE_MS	10000U	/* too few outcomes in so long: begin anew */
#define TIER_GATE_MIN_OUTCOMES	64	/* fewer do not close it */
#define TIER_GATE_MIN_PROBES	4	/* fewer do not open it */
#define TIER_GATE_PROBE_MASK	63U

/* Judge the outcomes since the interval began. */
static inline __attribute__((always_inline)) void
tier_gate_judge(struct tier_node *node, __u32 now_ms, __u32 elapsed_ms)
{
	__u64 ok = node->moved_ok - node->gate_ok;
	__u64 failed = node->moved_failed - node->gate_failed;

	if (node->gate_closed) {
		if (ok + failed < TIER_GATE_MIN_PROBES)
			return;
		node->gate_closed = ok < failed;
	} else if (ok + failed >= TIER_GATE_MIN_OUTCOMES) {
		/* fewer than one in 16 succeeded */
		node->gate_closed = ok * 15 < failed;
		if (node->gate_closed)
			node->gate_closings++;
	} else if (elapsed_ms <= TIER_GATE_STALE_MS) {
		return;
	}
	node->gate_ok += ok;
	node->gate_failed += failed;
	node->gate_start_ms = now_ms;
}

/* May this candidate be promoted? */
static inline __attribute__((always_inline)) bool
tier_gate_admit(struct tier_node *node, __u32 now_ms)
{
	__u32 elapsed = now_ms - node->gate_start_ms;

	if (elapsed > TIER_GATE_INTERVAL_MS)
		/* two CPUs at once judge the same counts twice: the second finds too few */
		tier_gate_judge(node, now_ms, elapsed);
	return !node->gate_closed ||
	       !(__sync_fetch_and_add(&node->gate_asked, 1ULL) & TIER_GATE_PROBE_MASK);
}

#endif /* TIER_GATE_H */
