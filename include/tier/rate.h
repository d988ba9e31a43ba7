/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared between BPF and user space: the promotion rate limit's arithmetic.
 *
 * A node counts its candidates (pages that passed the threshold) for ever; the
 * limit compares them with the count at the start of the current one-second
 * window. Candidates count before the limit is tested, so a refused page uses
 * up the window as a promoted one does: that is the mainline rule. The
 * includer brings __u32, __u64 and bool.
 */
#ifndef TIER_RATE_H
#define TIER_RATE_H

#include <tier/abi.h>

#define TIER_RATE_WINDOW_MS	1000U

/* MiB per second to pages per second; page_shift is log2 of the page size, at most 20. */
static inline __attribute__((always_inline)) __u64
tier_mbps_to_pages(__u64 mbps, __u32 page_shift)
{
	return mbps << ((20 - page_shift) & 63);
}

/*
 * Count nr_pages as candidates of the node and say whether they are within
 * limit_pages_per_s (0: no limit). A window ends when more than a second has
 * passed; the CPU that wins the exchange opens the next one, the others go on
 * with what they read.
 */
static inline __attribute__((always_inline)) bool
tier_rate_admit(struct tier_node *node, __u32 now_ms, __u32 nr_pages, __u64 limit_pages_per_s)
{
	__u64 candidates = __sync_fetch_and_add(&node->candidates_pages, (__u64)nr_pages) + nr_pages;
	__u32 start = node->window_start_ms;

	if (!limit_pages_per_s)
		return true;
	if (now_ms - start > TIER_RATE_WINDOW_MS &&
	    __sync_val_compare_and_swap(&node->window_start_ms, start, now_ms) == start)
		node->window_candidates_pages = candidates;
	return candidates - node->window_candidates_pages < limit_pages_per_s;
}

#endif /* TIER_RATE_H */
