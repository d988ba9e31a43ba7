/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared between BPF and user space: a hot threshold by rank.
 *
 * Once a second and target node, from a decaying histogram of latencies (slots
 * of tier/hist.h), two thresholds:
 *
 * hot_ms: where the histogram shows a hot population of its own. Pages of one
 * access rate spread their latencies evenly over short times: below T lie a
 * third as many as in [T, 4T), somewhat more when T nears their interval (a
 * third plus their share of all). Half as many again is no chance: most pages
 * below T are others than those above, if they are also the smaller part. Of
 * all such T the largest near the most telling one is taken. The threshold
 * rises at once and falls by a 32nd a second: pages are scanned in bursts, one
 * pass in seconds to a minute, and the last of a hot set are too few to stand
 * out.
 *
 * explore_ms: what is left when no population stands out: the hottest pages,
 * as many as the exploration budget takes, and at most the same part of all
 * pages as it is of the whole budget. That part is 2^-shift; the shift grows
 * when explored pages come back to the slow tier, and shrinks, slowly, while
 * they do not.
 *
 * The includer brings __u32, __u64 and bool.
 */
#ifndef TIER_RANK_H
#define TIER_RANK_H

#include <tier/hist.h>

#define TIER_RANK_INTERVAL_MS	1000U
#define TIER_RANK_DECAY_SHIFT	5	/* a 32nd a second: half-life 22 s */
#define TIER_RANK_MIN_PAGES	64	/* fewer pages show no population */
#define TIER_RANK_EXPLORE_START	6
#define TIER_RANK_EXPLORE_MAX	10
#define TIER_RANK_MIN_EXPLORED	32	/* fewer explored pages prove nothing */

struct tier_rank_found {	/* slots, while a threshold is worked out */
	__u32 apart;
	__u32 fits;
	__u32 explore;
	__u32 reserved;
	__u64 contrast;
};

struct tier_rank {
	__u64 pages[TIER_HIST_SLOTS];	/* decaying, by slot; sums stay below 2^30 */
	__u64 below[TIER_HIST_SLOTS];	/* scratch: pages in the slots before */
	__u64 explored_pages;		/* decaying: promoted by exploration */
	__u64 returned_pages;		/* decaying: of those, back on the slow tier */
	__u32 adjusted_ms;		/* time of the last adjustment, 0: none yet */
	__u32 hot_ms;
	__u32 explore_ms;
	__u32 explore_shift;
	__u32 patience_start_ms;
	__u32 reserved;
	struct tier_rank_found found;
};

/* Let the past fade by the seconds that have gone. */
static inline __attribute__((always_inline)) void tier_rank_decay(struct tier_rank *rank, __u32 seconds)
{
	__u32 halves = seconds > 1 ? seconds / 22 : 0;

	if (halves > 63)
		halves = 63;
	for (__u32 i = 0; i < TIER_HIST_SLOTS; i++) {
		__u64 pages = rank->pages[i] >> halves;

		/* rounded up, so that the last page fades too */
		rank->pages[i] = pages - ((pages + 31) >> TIER_RANK_DECAY_SHIFT);
	}
	rank->explored_pages -= rank->explored_pages >> 5;
	rank->returned_pages -= rank->returned_pages >> 5;
}

/*
 * How clearly the pages below slot i stand out, as a ratio in 256ths; 0: not
 * clearly. [T, 4T) are two octaves, eight slots.
 */
static inline __attribute__((always_inline)) __u64
tier_rank_contrast(const struct tier_rank *rank, __u32 i, __u64 sum)
{
	__u64 below = rank->below[i], next = rank->below[i + 8] - below;

	if (below < TIER_RANK_MIN_PAGES || below * 3 > sum ||
	    below * 2 * sum < next * (sum + below * 3))
		return 0;
	return below * 256 / (next + 1) + 1;
}

/*
 * Both thresholds from the histogram; budgets are pages a second. The slots
 * found live in memory: in registers the verifier would follow every
 * combination of their values through every round.
 */
static inline __attribute__((always_inline)) void
tier_rank_pick(struct tier_rank *rank, __u64 budget, __u32 shift)
{
	volatile struct tier_rank_found *found = &rank->found;
	__u64 sum = 0, mass = budget << TIER_RANK_DECAY_SHIFT;
	__u64 explore_mass = mass >> (shift & 31);
	__u32 apart, fits, hot_ms, fall_ms = rank->hot_ms - rank->hot_ms / 32;

	for (__u32 i = 0; i < TIER_HIST_SLOTS; i++) {
		rank->below[i] = sum;
		sum += rank->pages[i];
	}
	if (sum >> (shift & 31) < explore_mass)
		explore_mass = sum >> (shift & 31);
	found->apart = found->fits = found->explore = found->contrast = 0;
	for (__u32 i = 4; i < TIER_HIST_SLOTS - 8; i++) {
		__u64 contrast = tier_rank_contrast(rank, i, sum);

		if (contrast > found->contrast)
			found->contrast = contrast;
		/* one slot more than fits: the rate limit cuts what is too much */
		if (rank->below[i - 1] <= mass)
			found->fits = i;
		/* without any page there is nothing to rank and to open for */
		if (rank->below[i - 1] <= explore_mass && sum)
			found->explore = i;
	}
	for (__u32 i = 4; i < TIER_HIST_SLOTS - 8; i++) {
		__u64 contrast = tier_rank_contrast(rank, i, sum);

		if (contrast && contrast * 4 >= found->contrast * 3)
			found->apart = i;
	}
	apart = found->apart;
	fits = found->fits;
	hot_ms = tier_hist_low((apart < fits ? apart : fits) & (TIER_HIST_SLOTS - 1));
	/* but what exceeds the budget is cut at once */
	if (apart < fits && hot_ms < fall_ms && fall_ms >= 8)
		hot_ms = fall_ms;
	rank->hot_ms = hot_ms;
	rank->explore_ms = tier_hist_low(found->explore & (TIER_HIST_SLOTS - 1));
}

/* Widen or narrow exploration by how many of its pages came back. */
static inline __attribute__((always_inline)) void
tier_rank_explore(struct tier_rank *rank, __u32 now_ms, __u32 patience_ms)
{
	__u32 shift = rank->explore_shift;

	if (rank->explored_pages >= TIER_RANK_MIN_EXPLORED &&
	    rank->returned_pages * 4 > rank->explored_pages) {
		if (shift < TIER_RANK_EXPLORE_MAX)
			shift++;
		/* judged: the next verdict needs new evidence */
		rank->explored_pages /= 2;
		rank->returned_pages /= 4;
		rank->patience_start_ms = now_ms;
	} else if (now_ms - rank->patience_start_ms > patience_ms) {
		if (shift && rank->returned_pages * 10 <= rank->explored_pages)
			shift--;
		rank->patience_start_ms = now_ms;
	}
	rank->explore_shift = shift;
}

/* True once per interval, for one CPU, which then adjusts. */
static inline __attribute__((always_inline)) bool
tier_rank_due(struct tier_rank *rank, __u32 now_ms)
{
	__u32 last = *(volatile __u32 *)&rank->adjusted_ms;

	if (last && now_ms - last <= TIER_RANK_INTERVAL_MS)
		return false;
	return __sync_val_compare_and_swap(&rank->adjusted_ms, last, now_ms ? now_ms : 1) == last;
}

static inline __attribute__((always_inline)) void
tier_rank_adjust(struct tier_rank *rank, __u32 now_ms, __u32 seconds, __u64 budget,
		 __u32 patience_ms)
{
	if (!rank->patience_start_ms) {
		rank->patience_start_ms = now_ms ? now_ms : 1;
		rank->explore_shift = TIER_RANK_EXPLORE_START;
	}
	tier_rank_explore(rank, now_ms, patience_ms);
	tier_rank_pick(rank, budget, rank->explore_shift);
	tier_rank_decay(rank, seconds);
}

#endif /* TIER_RANK_H */
