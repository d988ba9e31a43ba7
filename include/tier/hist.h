/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared between BPF and user space: the latency histogram's arithmetic.
 *
 * Slots are exact below 4 ms, then four to an octave: a slot is at most a
 * quarter wider than its lower bound, all of 32 bits fit in 124 slots. The
 * includer brings __u32 and __u64.
 */
#ifndef TIER_HIST_H
#define TIER_HIST_H

#include <tier/abi.h>

#define TIER_HIST_LAST	123U	/* slot of 2^32 - 1 ms */

/* Keeps compilers from turning a cheap branch into arithmetic on both outcomes. */
#define TIER_HIST_BRANCH(value)	__asm__ volatile("" : "+r"(value))

/*
 * Slot of a latency. The value is halved into [4, 8) by a binary search over
 * its magnitude: no loop, no count-leading-zeroes (BPF has none).
 */
static inline __attribute__((always_inline)) __u32 tier_hist_slot(__u32 ms)
{
	__u32 slot = 0;

	if (ms >= 4U << 16) {
		ms >>= 16;
		TIER_HIST_BRANCH(ms);
		slot += 64;
	}
	if (ms >= 4U << 8) {
		ms >>= 8;
		TIER_HIST_BRANCH(ms);
		slot += 32;
	}
	if (ms >= 4U << 4) {
		ms >>= 4;
		TIER_HIST_BRANCH(ms);
		slot += 16;
	}
	if (ms >= 4U << 2) {
		ms >>= 2;
		TIER_HIST_BRANCH(ms);
		slot += 8;
	}
	if (ms >= 4U << 1) {
		ms >>= 1;
		TIER_HIST_BRANCH(ms);
		slot += 4;
	}
	return slot + ms;
}

/* Smallest latency of a slot, in ms; 2^32 for the slot after the last. */
static inline __attribute__((always_inline)) __u64 tier_hist_low(__u32 slot)
{
	if (slot < 4)
		return slot;
	return (__u64)(4 + (slot & 3)) << ((slot >> 2) - 1);
}

/* A slot's largest latency, in ms. */
static inline __attribute__((always_inline)) __u64 tier_hist_high(__u32 slot)
{
	return tier_hist_low(slot + 1) - 1;
}

static inline __u64 tier_hist_total(const __u64 *pages)
{
	__u64 total = 0;

	for (__u32 i = 0; i <= TIER_HIST_LAST; i++)
		total += pages[i];
	return total;
}

/*
 * The slot that holds the page of rank ceil(per_mille/1000 * total), so that
 * at least this share of the pages lies in it or below. TIER_HIST_SLOTS when
 * the histogram is empty. Sums stay exact up to 2^54 pages.
 */
static inline __u32 tier_hist_quantile(const __u64 *pages, __u32 per_mille)
{
	__u64 total = tier_hist_total(pages), rank, sum = 0;

	if (!total)
		return TIER_HIST_SLOTS;
	if (per_mille > 1000)
		per_mille = 1000;
	rank = (total * per_mille + 999) / 1000;
	if (!rank)
		rank = 1;
	for (__u32 i = 0; i <= TIER_HIST_LAST; i++) {
		sum += pages[i];
		if (sum >= rank)
			return i;
	}
	return TIER_HIST_LAST;
}

#endif /* TIER_HIST_H */
