/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared between BPF and user space: the thrash brake.
 *
 * A candidate that we promoted a short while ago was demoted since: it returns.
 * When the share of returning pages among the candidates exceeds the limit,
 * fast memory is too small for what passes the threshold, and every promotion
 * only pushes another hot page down. Then half as many candidates are admitted;
 * half of that in the next interval if it does not help. Below half the limit
 * the brake is let go, one step per interval. The includer brings __u32, __u64
 * and bool.
 */
#ifndef TIER_BRAKE_H
#define TIER_BRAKE_H

#define TIER_BRAKE_INTERVAL_MS	2000U
#define TIER_BRAKE_IDLE_MS	10000U	/* so long without enough candidates: let go */
#define TIER_BRAKE_MIN_PAGES	64	/* fewer candidates prove nothing */
#define TIER_BRAKE_MAX_LEVEL	6	/* one of 64 admitted */

struct tier_brake {
	__u64 candidates_pages;		/* in this interval */
	__u64 returned_pages;		/* of those */
	__u64 asked;			/* candidates ever: every 2^level-th is admitted */
	__u64 total_returned_pages;	/* ever */
	__u32 start_ms;			/* of this interval */
	__u32 level;
	__u32 share_percent;		/* of the last interval */
	__u32 reserved;
};

/* End an interval: one step on, off, or none. */
static inline __attribute__((always_inline)) void
tier_brake_step(struct tier_brake *brake, __u32 elapsed_ms, __u32 limit_percent)
{
	__u64 candidates = brake->candidates_pages, returned = brake->returned_pages;
	__u32 level = brake->level;

	if (candidates < TIER_BRAKE_MIN_PAGES && elapsed_ms <= TIER_BRAKE_IDLE_MS)
		return;
	if (candidates < TIER_BRAKE_MIN_PAGES || returned * 200 <= candidates * limit_percent)
		level -= !!level;
	else if (returned * 100 > candidates * limit_percent)
		level += level < TIER_BRAKE_MAX_LEVEL;
	brake->level = level;
	brake->share_percent = candidates ? returned * 100 / candidates : 0;
	brake->candidates_pages = 0;
	brake->returned_pages = 0;
	brake->start_ms += elapsed_ms;
}

/* Count a candidate; may it go up? */
static inline __attribute__((always_inline)) bool
tier_brake_admit(struct tier_brake *brake, __u32 now_ms, __u32 nr_pages, bool returned,
		 __u32 limit_percent)
{
	__u32 start = brake->start_ms, elapsed = now_ms - start;
	__u64 asked = __sync_fetch_and_add(&brake->asked, 1ULL);

	if (!start)
		brake->start_ms = now_ms ? now_ms : 1;
	else if (elapsed > TIER_BRAKE_INTERVAL_MS)
		/* two CPUs at once may take two steps: the next interval mends it */
		tier_brake_step(brake, elapsed, limit_percent);
	__sync_fetch_and_add(&brake->candidates_pages, (__u64)nr_pages);
	if (returned) {
		__sync_fetch_and_add(&brake->returned_pages, (__u64)nr_pages);
		__sync_fetch_and_add(&brake->total_returned_pages, (__u64)nr_pages);
	}
	return !(asked & ((1U << (brake->level & 31)) - 1));
}

#endif /* TIER_BRAKE_H */
