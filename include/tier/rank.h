/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared between BPF and user space: what policy rank works out once a second
 * and target node, and the few steps that a fault takes. The policy's head says
 * what it is for; here is how it is computed.
 *
 * Faults are counted by latency (slots of tier/hist.h) and fold into decaying
 * sums: a slow one (half-life 22 s) and a fast one (2.4 s). Only seconds with
 * faults count, so that a pause between two scans forgets nothing.
 *
 * warm: the hottest quarter of the slow sum.
 *
 * room: as many of the hottest as make up this second's share of it, but of all
 * faults no more than a quarter, and three eighths times the part of the node that is
 * free. While a node is empty, a hot page left out costs more than a cold one let in.
 * Once pages are demoted, a quarter as many as go up, each that goes up pushes another one
 * down, and which of the two is hotter is not known before one of them comes back: then
 * the share is an eighth, and it uses up eight times as much of the room; as long as no heat
 * is known to last it is a 32nd. So it is in the first second, of whose demotions nobody
 * knows. A promotion that fails meanwhile only came too early; without demotion it says
 * that the node is full.
 * For 45 s after a change (a surge that hot pages followed) the refill is added to the share.
 * Where little is promoted little is demoted, and always what has not been used for longest: what
 * was ever hot stays above, and what becomes hot next lies below more often than not.
 *
 * hot: the end of a population of its own at the short end of the fast sum.
 * Pages of one access rate spread their latencies evenly over short times: below
 * T lie a third as many as in [T, 4T), somewhat more when T nears their interval
 * (a third plus their share of all). Half as many again is no chance: most pages
 * below T are others than those above, if they are also the smaller part and if
 * they lie towards zero, as accesses at random do; those of a sweep over a range
 * that was scanned at one moment lie in a band. The slow sum must show a fifth more, too, but
 * for some seconds after a surge. Of all such T the largest near the most telling one is taken.
 *
 * proven: pages that were warm, and at their next fault are warm again, compared
 * with what chance makes of it: with one access rate for all, being below T once
 * tells nothing of the next time. What exceeds chance by a sixteenth and by more
 * than its own scatter is heat that lasts; by half and three times its scatter, beyond
 * doubt. T is where most of it lies below, or less: as many go up as exceed chance, or
 * four times as many if the refill pays for them.
 *
 * surge: faults of pages that had waited, as cold ones do: four times as many as a usual
 * window has, and 16, and more of them than any window had lately; half of that maximum
 * is forgotten in 22 s. It lasts a quarter of a second. A scan makes a burst too, but of pages
 * that fault soon after it. So does a program that was held up: what a silence before it held
 * up does not count, and if nothing hot follows a surge, the next one takes twice as much.
 *
 * The includer brings __u32, __u64, __s32, __s64 and bool.
 */
#ifndef TIER_RANK_H
#define TIER_RANK_H

#include <tier/hist.h>

#define TIER_RANK_INTERVAL_MS	1000U
#define TIER_RANK_UNIT_SHIFT	6	/* sums are in 64ths: small ones would round away */
#define TIER_RANK_SLOW_SHIFT	5	/* lose a 32nd a second */
#define TIER_RANK_FAST_SHIFT	2	/* lose a quarter a second */
#define TIER_RANK_LEARN_FAULTS	1024	/* then the first interval ends */
#define TIER_RANK_MIN_FAULTS	64	/* fewer faults show no population */
#define TIER_RANK_MIN_RETURNS	8	/* fewer returning pages do not show a full node */
#define TIER_RANK_FIRST_SLOT	17	/* 40 ms: at shorter times the tick shows, 4 or 10 ms */
#define TIER_RANK_SCORES	64	/* slots kept in marks; longer latencies are never warm */
#define TIER_RANK_FILL_S	20	/* room is used up by a 20th a second: the hottest first */
#define TIER_RANK_SWAP_PACE	8	/* so much slower if each pushes another one down */
#define TIER_RANK_BLIND_PACE	32	/* the same where no heat is known to last */
#define TIER_RANK_PROVEN_TIMES	4	/* of the proven go up: those beyond chance, times this */
#define TIER_RANK_FIND_S	27	/* of the slow sum, a minute: proven pages get the savings, too */
#define TIER_RANK_SAVE_S	4	/* a share that is not used is saved up so long */
#define TIER_RANK_PROBE_MIN	5	/* growth of room: a 2^-5 part of the node a second */
#define TIER_RANK_PROBE_MAX	12
#define TIER_RANK_BACKOFF_MAX	8
#define TIER_RANK_SAMPLE_SHIFT	2	/* where none goes up, one page in 2^n is looked at */
#define TIER_RANK_SAMPLE	(1U << TIER_RANK_SAMPLE_SHIFT)
#define TIER_RANK_LOOK_SLOTS	12	/* at first so far beyond the warm: falls 4 of them in 8 s */
#define TIER_RANK_WINDOW_MS	16U
#define TIER_RANK_SURGE_MS	256U
#define TIER_RANK_SURGE_TIMES	4	/* the usual pace */
#define TIER_RANK_FOLLOW_MS	4000U	/* so long after its start hot pages go up without a limit */
#define TIER_RANK_STIR_MS	45000U	/* so long after a change the refill goes up as into room */
#define TIER_RANK_NO_SURGE	0x80000000U	/* in place of a number of faults */
#define TIER_RANK_VAIN_MAX	4	/* then the next surge has to be 2^5 times as strong */
#define TIER_RANK_SETTLE_S	10	/* so long no surge is looked for: every rise is one */

#define TIER_RANK_INLINE static inline __attribute__((always_inline))
/* A step verified by itself, once, whatever ways lead to it. */
#ifdef __bpf__
#define TIER_RANK_STEP	__attribute__((noinline))
#else
#define TIER_RANK_STEP	static inline
#endif

struct tier_rank {
	/* what a fault looks at: a cache line where it is refused, and the budgets */
	__u32 window_ms;		/* start of this window of faults */
	__u32 window_faults;
	__u32 window_waited;		/* of those the ones of pages that had waited, cold ones */
	__u32 surge_faults;		/* so many of these in a window begin a surge */
	__u32 cold_ms;			/* from here on a fault is cold: tier_rank_set_cold() */
	__u32 look_ms;			/* from here on none goes up: few are looked at */
	__u32 learned;			/* there are thresholds */
	__u32 surging;
	__u32 room_ms;			/* below: may go up while there is room */
	__u32 hot_ms;
	__u32 hot_open;			/* seconds that hot pages still go up at first sight */
	__u32 proven_slot;		/* both latencies below: proven */
	__u32 look_slot;		/* of look_ms */
	__u32 warm_ms;
	__s64 budget_pages;		/* that may yet go up; below 0 after a large folio */
	__s64 room_pages;		/* the same for this second's share of the room */
	__s64 second_pages;		/* of the budget, in this second, for hot and proven ones */
	__s64 hot_kept_pages;		/* what hot pages leave of the budget */
	__s64 proven_kept_pages;	/* the same of proven ones */
	/* counted since the last adjustment */
	__u64 now[TIER_HIST_SLOTS];
	__u64 now_marked[TIER_RANK_SCORES];
	__u64 now_again[TIER_RANK_SCORES];
	__u64 now_extra;
	__u64 now_promoted;
	__u64 now_returned;
	__u64 now_failed;
	__u64 now_thrash;
	__u64 now_demoted;
	/* decaying sums */
	__u64 fast[TIER_HIST_SLOTS];
	__u64 slow[TIER_HIST_SLOTS];
	__u64 marked[TIER_RANK_SCORES];	/* faults of known pages, by their last latency */
	__u64 again[TIER_RANK_SCORES];	/* of those the warm, by the longer of both */
	__u64 extra;			/* pages of the faults in slow, less the faults */
	__u64 promoted;			/* fast: pages */
	__u64 returned;			/* fast: pages that went up and fault again below */
	__u64 returned_slow;
	__u64 failed;			/* fast: pages that were to go up and did not */
	__u64 demoted;			/* fast: pages that left the node for a slower tier */
	__u64 thrash;			/* slow: of those the hot */
	__u64 seconds;			/* slow: the time that the sums stand for */
	/* state of the controllers */
	__u32 adjusted_ms;		/* time of the last adjustment, 0: none yet */
	__u32 first_faults;		/* before the first adjustment */
	__u64 demoted_before;		/* the observer's count at the last adjustment */
	__u64 credit;			/* pages that the node is thought to have room for */
	__s64 room_given;		/* room_pages at the last adjustment */
	__u64 apart;			/* hot faults a second beyond those of one population */
	__u32 probe_shift;		/* credit grows by a 2^-n part of the node a second */
	__u32 probe_start_ms;
	__u32 backoff_shift;
	__u32 backoff_start_ms;
	__u32 surge_ms;			/* start of the last surge */
	__u32 window_peak;		/* decaying maximum of window_waited */
	__u32 lasting;			/* some heat lasts, beyond doubt */
	__u32 surge_open;		/* nothing hot has been seen yet since the last surge */
	__u32 surge_vain;		/* so many in a row that nothing hot followed */
	__u32 window_usual;		/* faults of a window at the pace of the fast sum */
	__u32 window_held;		/* faults that a silence held up, part of surge_faults */
	__u32 look_last;		/* look_slot lately, which falls slowly, in half slots */
	__u32 changed_ms;		/* start of the last surge that hot pages followed */
	__u32 reserved;
	/* scratch: in registers the verifier would follow every value through every round */
	__u64 below[TIER_HIST_SLOTS];	/* sum over the slots before */
	__u64 best;
	__u64 apart_slow[2];		/* a bit per slot: tier_rank_apart_slow() */
	__u32 apart_slot;
	__u32 warm_slot;
	__u32 room_slot;
	__u32 again_slot;
};

/* What is left of a fault that is worth a closer look. */
struct tier_rank_page {
	__u64 hash;			/* of the page's identity */
	__u32 now_ms;
	__u32 latency_ms;
	__u32 nr_pages;
	__u32 nid;
	__u32 frame;			/* tier_rank_frame() */
	__u32 reserved;
};

/* ---- a mark: what is remembered of a page ---- */

/*
 * 12 bits of hash, 3 of the page frame, 1: it went up, 6: latency slot, 10: time in
 * steps of 4096 ms.
 */
TIER_RANK_INLINE __u32 tier_rank_mark(__u64 hash, __u32 frame, bool up, __u32 slot, __u32 now_ms)
{
	if (slot >= TIER_RANK_SCORES)
		slot = TIER_RANK_SCORES - 1;
	return (__u32)(hash >> 52) << 20 | frame << 17 | (__u32)up << 16 | slot << 10 |
	       (now_ms >> 12 & 0x3ff);
}

/* Three bits that differ when a page went up and came back: it got another frame. */
TIER_RANK_INLINE __u32 tier_rank_frame(__u64 pfn)
{
	return pfn * 0x9e3779b97f4a7c15ULL >> 61;
}

TIER_RANK_INLINE bool tier_rank_mark_moved(__u32 mark, __u32 frame)
{
	return (mark >> 17 & 7) != frame;
}

/* Is it this page's, and no older than max_age_ms (below an hour)? */
TIER_RANK_INLINE bool tier_rank_mark_is(__u32 mark, __u64 hash, __u32 now_ms, __u32 max_age_ms)
{
	return mark && mark >> 20 == hash >> 52 &&
	       (((now_ms >> 12) - mark) & 0x3ff) <= max_age_ms >> 12;
}

TIER_RANK_INLINE bool tier_rank_mark_up(__u32 mark)
{
	return mark >> 16 & 1;
}

TIER_RANK_INLINE __u32 tier_rank_mark_slot(__u32 mark)
{
	return mark >> 10 & (TIER_RANK_SCORES - 1);
}

/* ---- steps of a fault ---- */

/*
 * True once per interval, for one CPU, which then adjusts. The first fault starts the clock;
 * the first interval is shorter if there are faults enough to learn from.
 */
TIER_RANK_INLINE bool tier_rank_due(struct tier_rank *rank, __u32 now_ms)
{
	__u32 last = *(volatile __u32 *)&rank->adjusted_ms;

	if (last && now_ms - last <= TIER_RANK_INTERVAL_MS &&
	    (rank->learned || rank->first_faults < TIER_RANK_LEARN_FAULTS))
		return false;
	return __sync_val_compare_and_swap(&rank->adjusted_ms, last, now_ms ? now_ms : 1) == last &&
	       last;
}

/* Take pages from a budget unless only the reserve is left; a large folio may overdraw it. */
TIER_RANK_INLINE bool tier_rank_spend(__s64 *budget, __u32 nr_pages, __s64 reserve)
{
	if (*(volatile __s64 *)budget <= reserve)
		return false;
	__sync_fetch_and_sub(budget, (__s64)nr_pages);
	return true;
}

/* The same of the budget for what is no emergency: it must not all go in one second. */
TIER_RANK_INLINE bool tier_rank_spend_evenly(struct tier_rank *rank, __u32 nr_pages, __s64 reserve)
{
	if (*(volatile __s64 *)&rank->second_pages <= 0 ||
	    !tier_rank_spend(&rank->budget_pages, nr_pages, reserve))
		return false;
	__sync_fetch_and_sub(&rank->second_pages, (__s64)nr_pages);
	return true;
}

/* Is this one of the base pages that are looked at where none goes up? */
TIER_RANK_INLINE bool tier_rank_sampled(__u64 hash)
{
	return !(hash >> 32 & (TIER_RANK_SAMPLE - 1));
}

/* Why a page at or beyond look_ms is refused. */
TIER_RANK_INLINE enum tier_decision tier_rank_refusal(const struct tier_rank *rank, __u32 latency_ms)
{
	return latency_ms >= rank->cold_ms ? TIER_REJECT_COLD : TIER_REJECT_ONCE;
}

/* Count a fault: of a page looked at closely, or of a sampled one, for others, too. */
TIER_RANK_INLINE void tier_rank_count(struct tier_rank *rank, const struct tier_rank_page *page,
				      __u32 slot, bool closely)
{
	__sync_fetch_and_add(&rank->now[slot & (TIER_HIST_SLOTS - 1)],
			     closely ? 1ULL : TIER_RANK_SAMPLE);
	if (page->nr_pages > 1)
		__sync_fetch_and_add(&rank->now_extra, page->nr_pages - 1ULL);
}

/* Count a page that was to go up and faults below: it came back, or it never moved. */
TIER_RANK_INLINE void tier_rank_back(struct tier_rank *rank, const struct tier_rank_page *page,
				     bool moved, __u64 weight)
{
	__sync_fetch_and_add(moved ? &rank->now_returned : &rank->now_failed,
			     page->nr_pages * weight);
	if (moved && page->latency_ms < rank->hot_ms)
		__sync_fetch_and_add(&rank->now_thrash, (__u64)page->nr_pages);
}

/* The longer one of a page's last two latencies; what is never proven for one without a mark. */
TIER_RANK_INLINE __u32 tier_rank_longest(__u32 mark, bool known, __u32 slot)
{
	__u32 last = tier_rank_mark_slot(mark);

	return !known ? TIER_RANK_SCORES : last > slot ? last : slot;
}

/* Count what is known of a page by its mark; did it go up? */
TIER_RANK_INLINE bool tier_rank_recall(struct tier_rank *rank, const struct tier_rank_page *page,
				       __u32 mark, __u32 slot, bool closely)
{
	__u32 last = tier_rank_mark_slot(mark), longest = tier_rank_longest(mark, true, slot);
	bool up = tier_rank_mark_up(mark);
	__u64 weight = closely ? 1 : TIER_RANK_SAMPLE;

	if (up)
		tier_rank_back(rank, page, tier_rank_mark_moved(mark, page->frame), weight);
	/* others have marks there only from before look_slot changed: left out */
	if (closely && last >= rank->look_slot && page->nr_pages == 1)
		weight = tier_rank_sampled(page->hash) ? TIER_RANK_SAMPLE : 0;
	__sync_fetch_and_add(&rank->now_marked[last], weight);
	if (page->latency_ms < rank->cold_ms)
		__sync_fetch_and_add(&rank->now_again[longest < TIER_RANK_SCORES ?
						      longest : TIER_RANK_SCORES - 1], weight);
	return up;
}

/* What is kept of the budget for changes: three quarters of what can be saved up. */
TIER_RANK_INLINE __s64 tier_rank_kept(__u64 node_pages)
{
	return node_pages / 32 * 3;
}

/* The first reason that applies to a warm page; REJECT_ONCE when none does. */
TIER_RANK_INLINE enum tier_decision
tier_rank_reason(struct tier_rank *rank, const struct tier_rank_page *page, __u32 proven_slot,
		 bool up, __u64 node_pages)
{
	if (!up && (page->latency_ms < rank->room_ms || rank->surging) &&
	    tier_rank_spend(&rank->room_pages, page->nr_pages, 0))
		return TIER_PROMOTE_OTHER;
	if (proven_slot < rank->proven_slot &&
	    tier_rank_spend_evenly(rank, page->nr_pages, rank->proven_kept_pages))
		return TIER_PROMOTE_HOT;
	if (page->latency_ms < rank->hot_ms && rank->hot_open &&
	    tier_rank_spend_evenly(rank, page->nr_pages, rank->hot_kept_pages))
		return TIER_PROMOTE_HOT;
	if (rank->surging &&
	    tier_rank_spend(&rank->budget_pages, page->nr_pages, node_pages / 32))
		return TIER_PROMOTE_OTHER;
	return TIER_REJECT_ONCE;
}

/*
 * Where cold begins: behind all that may go up. What faults during a surge had
 * waited, which makes it look colder. And where it is no use to look at each page: where
 * none goes up, nor lately did, for a threshold that moves to and fro would find no marks.
 */
TIER_RANK_INLINE void tier_rank_set_cold(struct tier_rank *rank)
{
	__u32 cold_ms = rank->surging ? 0xffffffffU : rank->warm_ms, look_ms, slot;

	if (cold_ms < rank->room_ms)
		cold_ms = rank->room_ms;
	rank->cold_ms = cold_ms;

	look_ms = tier_hist_low(rank->proven_slot & (TIER_HIST_SLOTS - 1));
	if (look_ms < rank->room_ms)
		look_ms = rank->room_ms;
	if (rank->hot_open && look_ms < rank->hot_ms)
		look_ms = rank->hot_ms;
	slot = rank->look_last / 2 & (TIER_HIST_SLOTS - 1);
	if (look_ms < tier_hist_low(slot))
		look_ms = tier_hist_low(slot);
	if (rank->surging || look_ms > cold_ms)
		look_ms = cold_ms;
	slot = tier_hist_slot(look_ms);
	slot += tier_hist_low(slot) < look_ms;
	if (!rank->surging && rank->look_last < slot * 2)
		rank->look_last = slot * 2;
	rank->look_slot = slot;
	rank->look_ms = rank->surging ? cold_ms : tier_hist_low(slot);
}

/* Is it time for tier_rank_window()? To be asked at each fault: counts it. */
TIER_RANK_INLINE bool tier_rank_pace(struct tier_rank *rank, __u32 now_ms, __u32 latency_ms)
{
	__sync_fetch_and_add(&rank->window_faults, 1U);
	if (latency_ms >= rank->cold_ms)
		__sync_fetch_and_add(&rank->window_waited, 1U);
	return now_ms - rank->window_ms >= TIER_RANK_WINDOW_MS ||
	       *(volatile __u32 *)&rank->window_waited >= rank->surge_faults;
}

/* What a silence held up comes in a burst, which is no surge: until as many have come. */
TIER_RANK_INLINE void tier_rank_hold(struct tier_rank *rank, __u32 faults, __u32 window_ms)
{
	__u32 held = rank->window_held;

	if (window_ms >= 2 * TIER_RANK_WINDOW_MS && window_ms < 60000)
		held += rank->window_usual * (window_ms / TIER_RANK_WINDOW_MS);
	else
		held -= faults < held ? faults : held;
	if (held > 1U << 20)
		held = 1U << 20;
	rank->surge_faults += held - rank->window_held;
	rank->window_held = held;
}

/*
 * A window ends, or has seen so many faults that a surge begins. Plain stores: CPUs
 * that meet here may lose some faults, which makes a surge seen a little later.
 */
TIER_RANK_INLINE void tier_rank_window(struct tier_rank *rank, __u32 now_ms)
{
	__u32 waited = rank->window_waited, faults = rank->window_faults;
	__u32 window_ms = now_ms - rank->window_ms;

	if (window_ms >= TIER_RANK_WINDOW_MS) {
		if (!rank->learned)
			rank->first_faults += faults;
		rank->window_ms = now_ms;
		rank->window_faults = rank->window_waited = 0;
		if (!rank->surging) {
			if (waited > rank->window_peak && !rank->window_held)
				rank->window_peak = waited;
			if (waited > rank->surge_faults)
				rank->surge_faults = waited;
			tier_rank_hold(rank, faults, window_ms);
		} else if (now_ms - rank->surge_ms >= TIER_RANK_SURGE_MS) {
			rank->surging = 0;
			rank->surge_faults = rank->window_peak;
			rank->window_held = 0;
			tier_rank_set_cold(rank);
		}
	} else if (rank->learned && !rank->surging && rank->window_waited >= rank->surge_faults) {
		rank->surging = 1;
		rank->surge_ms = now_ms;
		/* until something hot follows, the next has to be twice as strong */
		rank->window_peak = (rank->surge_faults - rank->window_held) * 2;
		rank->surge_open = 1;
		rank->surge_faults = TIER_RANK_NO_SURGE;
		rank->hot_open = 2;
		rank->second_pages = rank->budget_pages;
		rank->hot_kept_pages = 0;
		tier_rank_set_cold(rank);
	}
}

/* ---- once a second ---- */

/* The observer's count of pages demoted, ever; what was before the policy is none of its. */
TIER_RANK_INLINE void tier_rank_demoted(struct tier_rank *rank, __u64 demoted_pages)
{
	if (rank->learned)
		rank->now_demoted += demoted_pages - rank->demoted_before;
	rank->demoted_before = demoted_pages;
}

/* What was counted since the last time, in 64ths; others count on meanwhile. */
TIER_RANK_INLINE __u64 tier_rank_take(__u64 *now)
{
	__u64 n = *(volatile __u64 *)now;

	if (n)
		__sync_fetch_and_sub(now, n);
	return n << TIER_RANK_UNIT_SHIFT;
}

TIER_RANK_INLINE void tier_rank_decay(__u64 *sum, __u64 more, __u32 shift)
{
	*sum += more - (*sum >> shift);
}

TIER_RANK_STEP int tier_rank_fold(struct tier_rank *rank)
{
	__u64 n;

	if (!rank)
		return 0;
	for (__u32 i = 0; i < TIER_HIST_SLOTS; i++) {
		n = tier_rank_take(&rank->now[i]);
		tier_rank_decay(&rank->fast[i], n, TIER_RANK_FAST_SHIFT);
		tier_rank_decay(&rank->slow[i], n, TIER_RANK_SLOW_SHIFT);
	}
	for (__u32 i = 0; i < TIER_RANK_SCORES; i++) {
		tier_rank_decay(&rank->marked[i], tier_rank_take(&rank->now_marked[i]),
				TIER_RANK_SLOW_SHIFT);
		tier_rank_decay(&rank->again[i], tier_rank_take(&rank->now_again[i]),
				TIER_RANK_SLOW_SHIFT);
	}
	n = tier_rank_take(&rank->now_returned);
	tier_rank_decay(&rank->returned, n, TIER_RANK_FAST_SHIFT);
	tier_rank_decay(&rank->returned_slow, n, TIER_RANK_SLOW_SHIFT);
	tier_rank_decay(&rank->promoted, tier_rank_take(&rank->now_promoted), TIER_RANK_FAST_SHIFT);
	tier_rank_decay(&rank->failed, tier_rank_take(&rank->now_failed), TIER_RANK_FAST_SHIFT);
	tier_rank_decay(&rank->demoted, tier_rank_take(&rank->now_demoted), TIER_RANK_FAST_SHIFT);
	tier_rank_decay(&rank->thrash, tier_rank_take(&rank->now_thrash), TIER_RANK_SLOW_SHIFT);
	tier_rank_decay(&rank->extra, tier_rank_take(&rank->now_extra), TIER_RANK_SLOW_SHIFT);
	tier_rank_decay(&rank->seconds, 1U << TIER_RANK_UNIT_SHIFT, TIER_RANK_SLOW_SHIFT);
	return 0;
}

TIER_RANK_INLINE __u64 tier_rank_sum(struct tier_rank *rank, const __u64 *faults)
{
	__u64 sum = 0;

	for (__u32 i = 0; i < TIER_HIST_SLOTS; i++) {
		rank->below[i] = sum;
		sum += faults[i];
	}
	return sum;
}

/*
 * How clearly the pages below slot i stand out, as a ratio in 256ths; 0: not
 * clearly. Four slots are an octave; [T, 4T) is two.
 */
TIER_RANK_INLINE __u64 tier_rank_contrast(const struct tier_rank *rank, __u32 i, __u64 sum)
{
	__u64 below = rank->below[i], next = rank->below[i + 8] - below;
	/* where one fault stands for others, as many must have been seen; no branch to verify */
	__u32 sampled = (rank->look_slot - i) >> 31;
	__u64 least = TIER_RANK_MIN_FAULTS << TIER_RANK_UNIT_SHIFT << sampled * TIER_RANK_SAMPLE_SHIFT;

	if (below < least || below * 3 > sum ||
	    below * 2 * (sum >> TIER_RANK_UNIT_SHIFT) <
	    next * ((sum + below * 3) >> TIER_RANK_UNIT_SHIFT))
		return 0;
	/* towards zero: of one rate half, a quarter, an eighth */
	if (rank->below[i - 4] * 5 < below * 3 || rank->below[i - 8] * 3 < below ||
	    rank->below[i - 12] * 6 < below)
		return 0;
	return (below * 256 / (next + 1) + 1) * (rank->apart_slow[i >> 6 & 1] >> (i & 63) & 1);
}

/*
 * Below which slots the slow sum has a fifth more than one population would have. The fast one
 * has it, too, some time after much was scanned at once: no latency is longer than that is ago.
 */
TIER_RANK_INLINE void tier_rank_apart_slow(struct tier_rank *rank)
{
	__u64 sum = tier_rank_sum(rank, rank->slow), below, next, lack;

	rank->apart_slow[0] = rank->apart_slow[1] = 0;
	for (__u32 i = TIER_RANK_FIRST_SLOT; i < TIER_HIST_SLOTS - 8; i++) {
		below = rank->below[i];
		next = rank->below[i + 8] - below;
		/* the sign, and no branch to verify */
		lack = below * 5 * (sum >> TIER_RANK_UNIT_SHIFT) -
		       next * 2 * ((sum + below * 3) >> TIER_RANK_UNIT_SHIFT);
		rank->apart_slow[i >> 6 & 1] |= (~lack >> 63) << (i & 63);
	}
}

/* Has there been a surge lately? */
TIER_RANK_INLINE bool tier_rank_follows(const struct tier_rank *rank, __u32 now_ms)
{
	return rank->surge_ms && now_ms - rank->surge_ms < TIER_RANK_FOLLOW_MS;
}

/* What a window has of so many in the fast sum. */
TIER_RANK_INLINE __u64 tier_rank_in_window(__u64 sum)
{
	return (sum >> (TIER_RANK_UNIT_SHIFT + TIER_RANK_FAST_SHIFT)) * TIER_RANK_WINDOW_MS / 1000;
}

/* The hot threshold, and how many faults in a window make a surge. */
TIER_RANK_STEP int tier_rank_hot(struct tier_rank *rank, __u32 now_ms)
{
	__u32 hot_ms, fall_ms, i;
	__u64 sum, contrast, below, next;
	volatile __u32 *apart_slot;
	volatile __u64 *best;

	if (!rank)
		return 0;
	apart_slot = &rank->apart_slot;
	best = &rank->best;
	fall_ms = rank->hot_ms - (rank->hot_ms + 63) / 64;
	tier_rank_apart_slow(rank);
	/* just after a change the slow sum is about what was before */
	if (tier_rank_follows(rank, now_ms))
		rank->apart_slow[0] = rank->apart_slow[1] = ~0ULL;
	sum = tier_rank_sum(rank, rank->fast);
	*best = *apart_slot = 0;
	for (i = TIER_RANK_FIRST_SLOT; i < TIER_HIST_SLOTS - 8; i++) {
		contrast = tier_rank_contrast(rank, i, sum);
		if (contrast > *best)
			*best = contrast;
	}
	for (i = TIER_RANK_FIRST_SLOT; i < TIER_HIST_SLOTS - 8; i++) {
		contrast = tier_rank_contrast(rank, i, sum);
		if (contrast && contrast * 4 >= *best * 3)
			*apart_slot = i;
	}
	i = *apart_slot & (TIER_HIST_SLOTS - 1);	/* masks, which verifiers follow better */
	rank->apart = 0;
	if (i) {
		below = rank->below[i];
		next = (rank->below[(i + 8) & (TIER_HIST_SLOTS - 1)] - below) / 3;
		if (below > next)
			rank->apart = (below - next) >> (TIER_RANK_UNIT_SHIFT + TIER_RANK_FAST_SHIFT);
	}
	rank->hot_open = i ? 2 : rank->hot_open - !!rank->hot_open;
	hot_ms = tier_hist_low(i);
	rank->hot_ms = hot_ms > fall_ms ? hot_ms : fall_ms;

	rank->window_peak -= rank->window_peak / 32;
	if (rank->surging)
		return 0;
	rank->window_usual = tier_rank_in_window(sum);
	/* more of those that waited than any window has seen lately */
	sum -= rank->below[tier_hist_slot(rank->cold_ms) & (TIER_HIST_SLOTS - 1)];
	sum = tier_rank_in_window(sum * TIER_RANK_SURGE_TIMES) + 16;
	if (sum < rank->window_peak)
		sum = rank->window_peak;
	rank->surge_faults = rank->seconds > TIER_RANK_SETTLE_S << TIER_RANK_UNIT_SHIFT &&
			     sum < 0x7fffffff ? sum + rank->window_held : TIER_RANK_NO_SURGE;
	return 0;
}

/* Was the last surge a change? Then hot pages come next. After a vain one it takes more. */
TIER_RANK_INLINE void tier_rank_surged(struct tier_rank *rank, __u32 now_ms)
{
	if (!rank->surge_open)
		return;
	if (rank->apart) {
		/* a change: the next one need not be twice as strong */
		rank->surge_open = rank->surge_vain = 0;
		rank->window_peak /= 2;
		rank->changed_ms = rank->surge_ms;
	} else if (now_ms - rank->surge_ms >= TIER_RANK_FOLLOW_MS) {
		rank->surge_open = 0;
		rank->surge_vain += rank->surge_vain < TIER_RANK_VAIN_MAX;
		if (rank->window_peak < 1U << 24)
			rank->window_peak <<= rank->surge_vain & 7;
	}
}

/*
 * The income of the budget: refill, and more while a hot population stands out,
 * less of it when promoted pages keep coming back hot: then the hot ones are
 * more than the node holds.
 */
TIER_RANK_INLINE void tier_rank_income(struct tier_rank *rank, __u32 now_ms, __u64 node_pages,
				       __u64 refill_pages, __u64 folio, __u32 patience_ms)
{
	__u64 more = rank->apart * folio;

	if (rank->thrash >= TIER_RANK_MIN_FAULTS << TIER_RANK_UNIT_SHIFT &&
	    rank->thrash * 4 > rank->returned_slow) {
		rank->backoff_start_ms = now_ms;
		rank->backoff_shift += rank->backoff_shift < TIER_RANK_BACKOFF_MAX;
	} else if (now_ms - rank->backoff_start_ms > patience_ms) {
		rank->backoff_start_ms = now_ms;
		rank->backoff_shift -= !!rank->backoff_shift;
	}
	if (more > node_pages / 64)
		more = node_pages / 64;
	/* after a surge there is something to follow, and savings for that */
	rank->second_pages = node_pages / 64 + 1;
	rank->hot_kept_pages = tier_rank_kept(node_pages);
	if (tier_rank_follows(rank, now_ms)) {
		rank->second_pages = rank->budget_pages;
		rank->hot_kept_pages = node_pages / 64;
	}
	/* at first all that is found is new */
	rank->proven_kept_pages = rank->seconds < TIER_RANK_FIND_S << TIER_RANK_UNIT_SHIFT ?
				  (__s64)(node_pages / 64) : tier_rank_kept(node_pages);
	if (rank->budget_pages < (__s64)(node_pages / 8))
		__sync_fetch_and_add(&rank->budget_pages,
				     (__s64)(refill_pages + (more >> (rank->backoff_shift & 31))));
}

/* Enough of these pages to tell something, and at least an nth part of those that went up? */
TIER_RANK_INLINE bool tier_rank_many(const struct tier_rank *rank, __u64 pages, __u64 folio,
				     __u32 nth)
{
	return pages >= (folio * TIER_RANK_MIN_RETURNS) << TIER_RANK_UNIT_SHIFT &&
	       pages * nth >= rank->promoted;
}

/* Is there room? Sets the thresholds of warm pages and of those that go up into it. */
TIER_RANK_INLINE void tier_rank_room(struct tier_rank *rank, __u32 now_ms, __u64 node_pages,
				     __u64 sum, __u64 folio, __u64 refill_pages,
				     __u32 patience_ms)
{
	volatile __u32 *warm_slot = &rank->warm_slot, *room_slot = &rank->room_slot;
	__s64 spent = rank->room_given - *(volatile __s64 *)&rank->room_pages;
	__u64 mass, share, part, returned = rank->returned;
	/* in the first interval nobody counted who had to make way */
	bool swapping = !rank->learned || tier_rank_many(rank, rank->demoted, folio, 4);
	__s64 more, most;

	/* if others had to make way, there was no room */
	if (swapping)
		spent *= TIER_RANK_SWAP_PACE;
	if (spent > 0)
		rank->credit -= (__u64)spent < rank->credit ? (__u64)spent : rank->credit;
	/* while others make way a promotion may come too early: that says nothing */
	if (!swapping)
		returned += rank->failed;
	if (tier_rank_many(rank, returned, folio, 32)) {
		rank->credit = 0;
		rank->probe_shift = TIER_RANK_PROBE_MAX;
		rank->probe_start_ms = now_ms;
	} else if (now_ms - rank->probe_start_ms > patience_ms) {
		rank->probe_start_ms = now_ms;
		rank->probe_shift -= rank->probe_shift > TIER_RANK_PROBE_MIN;
	}
	rank->credit += node_pages >> (rank->probe_shift & 31);
	if (rank->credit > node_pages)
		rank->credit = node_pages;
	/* saved up over the pause between two scans; what was overdrawn is paid back */
	share = rank->credit / TIER_RANK_FILL_S + 1;
	/* until it shows which of both are the hotter ones */
	if (swapping)
		share = share / (rank->lasting ? TIER_RANK_SWAP_PACE : TIER_RANK_BLIND_PACE) + 1;
	/* what changed may change again */
	if (rank->changed_ms && now_ms - rank->changed_ms < TIER_RANK_STIR_MS)
		share += refill_pages;
	more = rank->room_pages + (__s64)share;
	most = share * TIER_RANK_SAVE_S;
	rank->room_pages = more < most ? more : most;
	rank->room_given = rank->room_pages;

	mass = share * rank->seconds / folio;
	part = sum * (4 + rank->credit * 6 / (node_pages ? node_pages : 1)) / 16;
	if (mass > part)
		mass = part;
	*warm_slot = *room_slot = 0;
	for (__u32 i = 1; i < TIER_HIST_SLOTS; i++) {
		/* one slot more than fits: what is too much, the budget cuts */
		if (rank->below[i - 1] * 4 <= sum)
			*warm_slot = i;
		if (rank->below[i - 1] <= mass)
			*room_slot = i;
	}
	rank->warm_ms = tier_hist_low(*warm_slot & (TIER_HIST_SLOTS - 1));
	rank->room_ms = tier_hist_low(*room_slot & (TIER_HIST_SLOTS - 1));
}

/* Below which slot being warm twice is more than chance, as far as the budget goes. */
TIER_RANK_STEP int tier_rank_prove(struct tier_rank *rank, __u64 sum, __u64 folio,
				   __u64 refill_pages)
{
	__u64 marked = 0, again = 0, hits, chance, excess, scatter, most, mass = refill_pages;
	volatile __u32 *slot, *lasting;
	volatile __u64 *best;

	if (!rank)
		return 0;
	slot = &rank->again_slot;
	lasting = &rank->lasting;
	best = &rank->best;
	/* whole faults from here on: products of 64ths would overflow */
	sum = (sum >> TIER_RANK_UNIT_SHIFT) + 1;
	*best = *slot = *lasting = 0;
	for (__u32 i = 0; i < TIER_RANK_SCORES; i++) {
		marked += rank->marked[i];
		again += rank->again[i];
		hits = again >> TIER_RANK_UNIT_SHIFT;
		chance = (marked >> TIER_RANK_UNIT_SHIFT) *
			 (rank->below[i + 1] >> TIER_RANK_UNIT_SHIFT) / sum;
		if (hits < 8 || hits <= chance + chance / 16)
			continue;
		excess = hits - chance;
		/* a fault that stands for others scatters as they would if they came together */
		scatter = i < rank->look_slot ? hits : hits * TIER_RANK_SAMPLE;
		if (excess * 2 > chance && excess * excess > scatter * 9)
			*lasting = 1;
		if (excess > *best && excess * excess > scatter) {
			*best = excess;
			*slot = i + 1;
		}
	}
	if (rank->budget_pages > rank->proven_kept_pages)
		mass += (__u64)(rank->budget_pages - rank->proven_kept_pages) / 8;
	mass = mass * rank->seconds / folio;
	/* what lies beyond that is less certain: only from this second's refill */
	excess = *best << TIER_RANK_UNIT_SHIFT;
	most = refill_pages * rank->seconds / folio;
	if (most > excess * TIER_RANK_PROVEN_TIMES)
		most = excess * TIER_RANK_PROVEN_TIMES;
	if (most < excess)
		most = excess;
	if (mass > most)
		mass = most;
	again = 0;
	for (__u32 i = 0; i < TIER_RANK_SCORES; i++) {
		if (again > mass && *slot > i)
			*slot = i;
		again += rank->again[i];
	}
	rank->proven_slot = *slot;
	return 0;
}

TIER_RANK_INLINE void tier_rank_adjust(struct tier_rank *rank, __u32 now_ms, __u64 node_pages,
				       __u64 refill_pages, __u32 patience_ms)
{
	__u64 sum, folio;

	if (!rank->learned) {
		rank->probe_start_ms = rank->backoff_start_ms = now_ms;
		rank->surge_faults = TIER_RANK_NO_SURGE;
		rank->probe_shift = TIER_RANK_PROBE_MAX;
		rank->credit = node_pages;
		rank->budget_pages = node_pages / 8;
	}
	tier_rank_fold(rank);
	tier_rank_hot(rank, now_ms);
	tier_rank_surged(rank, now_ms);
	sum = tier_rank_sum(rank, rank->slow);
	if (!sum)
		return;
	folio = (sum + rank->extra) / sum;
	tier_rank_income(rank, now_ms, node_pages, refill_pages, folio, patience_ms);
	tier_rank_room(rank, now_ms, node_pages, sum, folio, refill_pages, patience_ms);
	tier_rank_prove(rank, sum, folio, refill_pages);
	/* what is hot shows soonest if at first each warm page is looked at */
	rank->look_last = rank->learned ? rank->look_last - !!rank->look_last :
			  (rank->warm_slot + TIER_RANK_LOOK_SLOTS) * 2;
	tier_rank_set_cold(rank);
	rank->learned = 1;
}

#endif /* TIER_RANK_H */
