// SPDX-License-Identifier: GPL-2.0
/*
 * Policy rank's arithmetic: populations told apart, lasting heat told from
 * chance, room and its returns, budgets, surges, marks, decay; on made-up
 * populations of known access intervals, and at the edges.
 */
#include <linux/types.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <tier/rank.h>

#define NODE		65536U
#define REFILL		273U
#define PATIENCE_MS	20000U

static double share_below(double ms, double mean_ms)
{
	return 1 - exp(-ms / mean_ms);
}

/* A second's faults of pages accessed at random, every mean_ms on average. */
static void populate(struct tier_rank *rank, double faults, double mean_ms)
{
	for (__u32 slot = 0; slot <= TIER_HIST_LAST; slot++)
		rank->now[slot] += lround(faults * (share_below(tier_hist_low(slot + 1), mean_ms) -
						    share_below(tier_hist_low(slot), mean_ms)));
}

/* Of these, pages that are known from their last fault, which had the same distribution. */
static void repeat(struct tier_rank *rank, double faults, double mean_ms)
{
	for (__u32 slot = 0; slot < TIER_RANK_SCORES; slot++) {
		double from = share_below(tier_hist_low(slot), mean_ms);
		double to = share_below(tier_hist_low(slot + 1), mean_ms);

		rank->now_marked[slot] += lround(faults * (to - from));
		/* the longer of the two falls into the slot */
		rank->now_again[slot] += lround(faults * (to * to - from * from));
	}
}

static void second(struct tier_rank *rank, __u32 *now_ms)
{
	*now_ms += 1001;
	tier_rank_adjust(rank, *now_ms, NODE, REFILL, PATIENCE_MS);
}

static void hot_population_stands_out(void **state)
{
	struct tier_rank rank = {};
	__u32 now = 100000;
	double hot, cold;

	populate(&rank, 4096, 43);
	populate(&rank, 61440, 6000);
	second(&rank, &now);
	hot = share_below(rank.hot_ms, 43);
	cold = share_below(rank.hot_ms, 6000);
	print_message("threshold %u ms: %.1f %% of the hot, %.1f %% of the cold\n", rank.hot_ms,
		      100 * hot, 100 * cold);
	assert_true(rank.hot_open);
	assert_true(hot > 0.9);
	assert_true(cold < 0.05);
	/* nothing hot left: closed within seconds, while the threshold falls slowly */
	for (int i = 0; i < 12; i++) {
		populate(&rank, 20000, 6000);
		second(&rank, &now);
	}
	assert_false(rank.hot_open);
	assert_in_range(rank.hot_ms, 50, 200);
}

/* The same shape at a fifth or thirty times the speed: same shares. */
static void scale_does_not_matter(void **state)
{
	double scale[] = { 1, 4, 30 };

	for (int i = 0; i < 3; i++) {
		struct tier_rank rank = {};
		__u32 now = 100000;

		populate(&rank, 5000, 50 * scale[i]);
		populate(&rank, 60000, 5000 * scale[i]);
		second(&rank, &now);
		assert_in_range(rank.hot_ms, 110 * scale[i], 330 * scale[i]);
	}
}

static void one_population_is_not_hot(void **state)
{
	double mean[] = { 10, 100, 1000, 10000, 300000 };

	for (int i = 0; i < 5; i++) {
		struct tier_rank rank = {};
		__u32 now = 100000;

		populate(&rank, 50000, mean[i]);
		second(&rank, &now);
		assert_false(rank.hot_open);
		assert_int_equal(rank.hot_ms, 0);
	}
}

/* Pages of a sweep, scanned at one moment: as short as hot ones, but not towards zero. */
static void a_band_is_not_hot(void **state)
{
	struct tier_rank rank = {};
	__u32 now = 100000;

	rank.now[tier_hist_slot(160)] = 3000;
	populate(&rank, 20000, 6000);
	second(&rank, &now);
	assert_false(rank.hot_open);
}

static void few_pages_prove_nothing(void **state)
{
	struct tier_rank rank = {};
	__u32 now = 100000;

	populate(&rank, 30, 20);
	populate(&rank, 300, 60000);
	second(&rank, &now);
	assert_int_equal(rank.hot_ms, 0);
	second(&(struct tier_rank){}, &now);
}

/* Warm is the hottest quarter, to within a slot; never nothing, were all in one slot. */
static void warm_is_a_quarter(void **state)
{
	struct tier_rank rank = {}, one = { .now = { [0] = 1000 } };
	__u32 now = 100000;

	populate(&rank, 80000, 6000);
	second(&rank, &now);
	assert_in_range(100 * share_below(rank.warm_ms, 6000), 25, 35);
	second(&one, &now);
	assert_in_range(one.warm_ms, 1, 0xffffffff);
}

static void chance_proves_nothing(void **state)
{
	struct tier_rank rank = {};
	__u32 now = 100000;

	for (int i = 0; i < 40; i++) {
		populate(&rank, 8000, 600);
		repeat(&rank, 2000, 600);
		second(&rank, &now);
		assert_int_equal(rank.proven_slot, 0);
		assert_int_equal(rank.lasting, 0);
	}
}

static void lasting_heat_is_proven(void **state)
{
	struct tier_rank rank = {};
	__u32 now = 100000, limit_ms;

	for (int i = 0; i < 40; i++) {
		populate(&rank, 200, 50);
		populate(&rank, 8000, 6000);
		repeat(&rank, 200, 50);
		repeat(&rank, 2000, 6000);
		second(&rank, &now);
	}
	assert_int_equal(rank.lasting, 1);
	limit_ms = tier_hist_low(rank.proven_slot);
	print_message("proven below %u ms\n", limit_ms);
	assert_in_range(limit_ms, 50, 400);
	/* a budget that is used up takes the hottest of them only */
	rank.budget_pages = -100000;
	tier_rank_prove(&rank, tier_rank_sum(&rank, rank.slow), 1, 20);
	assert_true(tier_hist_low(rank.proven_slot) < limit_ms);
	assert_true(rank.proven_slot > 0);
	tier_rank_prove(&rank, tier_rank_sum(&rank, rank.slow), 1, 0);
	assert_in_range(rank.proven_slot, 0, 4);
}

/* Beyond what exceeds chance more may go up, but no more than comes in. */
static void little_heat_is_used_up_by_the_refill(void **state)
{
	struct tier_rank rank = {};
	__u32 now = 100000;
	__u64 again[2] = { 0 };

	for (int i = 0; i < 60; i++) {
		/* nearly alike */
		populate(&rank, 2000, 2000);
		populate(&rank, 2000, 5000);
		repeat(&rank, 500, 2000);
		repeat(&rank, 500, 5000);
		second(&rank, &now);
	}
	/* more than chance, but not beyond doubt */
	assert_int_equal(rank.lasting, 0);
	rank.budget_pages = NODE / 8;
	for (int i = 0; i < 2; i++) {
		tier_rank_prove(&rank, tier_rank_sum(&rank, rank.slow), 1, i ? NODE : 1);
		for (__u32 slot = 0; slot < rank.proven_slot; slot++)
			again[i] += rank.again[slot];
		print_message("refill %d: proven below %llu ms, %llu pages a second\n", i ? (int)NODE : 1,
			      (unsigned long long)tier_hist_low(rank.proven_slot),
			      (unsigned long long)(again[i] / rank.seconds));
	}
	assert_true(again[1] > again[0] * 3 / 2);
	assert_true(again[1] <= again[0] * (TIER_RANK_PROVEN_TIMES + 2));
}

/* The room of a second on an empty node, once it is known that it is empty. */
static __s64 first_share(struct tier_rank *rank, __u32 *now_ms)
{
	populate(rank, 8000, 600);
	second(rank, now_ms);
	assert_in_range(rank->room_pages, 1, NODE / TIER_RANK_FILL_S / TIER_RANK_BLIND_PACE + 1);
	rank->room_pages = rank->room_given = 0;
	second(rank, now_ms);
	return rank->room_pages;
}

static void room_closes_at_once_and_opens_slowly(void **state)
{
	struct tier_rank rank = {};
	__u32 now = 100000;
	__s64 share = first_share(&rank, &now);

	assert_in_range(share, NODE / TIER_RANK_FILL_S, NODE / TIER_RANK_FILL_S + 10);
	/* not used: saved up, but only so much */
	for (int i = 0; i < 20; i++)
		second(&rank, &now);
	assert_in_range(rank.room_pages, share * 3, share * TIER_RANK_SAVE_S);
	/* used: the credit shrinks by that much */
	rank.room_pages -= 3000;
	second(&rank, &now);
	assert_in_range(rank.credit, NODE - 3000, NODE - 3000 + (NODE >> 10));
	/* a few pages come back: full */
	rank.now_promoted = 3000;
	rank.now_returned = 200;
	second(&rank, &now);
	assert_int_equal(rank.credit, NODE >> TIER_RANK_PROBE_MAX);
	assert_int_equal(rank.probe_shift, TIER_RANK_PROBE_MAX);
	/* none: the growth of the credit doubles after each wait */
	for (int i = 0; i < 200; i++)
		second(&rank, &now);
	assert_true(rank.probe_shift < TIER_RANK_PROBE_MAX - 2);
	for (int i = 0; i < 2000; i++)
		second(&rank, &now);
	assert_int_equal(rank.probe_shift, TIER_RANK_PROBE_MIN);
	assert_int_equal(rank.credit, NODE);
}

/*
 * While pages come down as others go up, room is given in smaller shares, and a promotion that
 * failed does not close it. Without demotion it does.
 */
static void swapping_is_slow(void **state)
{
	struct tier_rank rank = {};
	__u32 now = 100000;
	__s64 share = first_share(&rank, &now);
	__u64 credit;

	rank.now_promoted = 1000;
	rank.now_failed = 500;
	rank.now_demoted = 1000;
	rank.room_pages = rank.room_given = 0;
	second(&rank, &now);
	assert_in_range(rank.room_pages, share / TIER_RANK_BLIND_PACE, share / TIER_RANK_BLIND_PACE + 1);
	/* faster if some heat is known to last */
	rank.now_demoted = 1000;
	rank.room_pages = rank.room_given = 0;
	rank.lasting = 1;
	second(&rank, &now);
	assert_in_range(rank.room_pages, share / TIER_RANK_SWAP_PACE, share / TIER_RANK_SWAP_PACE + 1);
	/* each that went up took a place that was not free */
	credit = rank.credit;
	rank.now_demoted = 1000;
	rank.room_pages -= 300;
	second(&rank, &now);
	assert_in_range(credit - rank.credit, 300 * TIER_RANK_SWAP_PACE - 100, 300 * TIER_RANK_SWAP_PACE);
	/* a few demotions are others' doing */
	for (int i = 0; i < 20; i++)
		second(&rank, &now);
	rank.now_promoted = 1000;
	rank.now_demoted = 100;
	rank.room_pages = 0;
	second(&rank, &now);
	assert_true(rank.room_pages > share / 2);
	rank.now_failed = 500;
	second(&rank, &now);
	assert_int_equal(rank.credit, NODE >> TIER_RANK_PROBE_MAX);
}

/* For some time after a change the refill goes up as room does, whatever the node is full of. */
static void a_change_stirs(void **state)
{
	struct tier_rank rank = {};
	__u32 now = 100000;

	first_share(&rank, &now);
	for (__u32 s = 0; s < 60; s++) {
		populate(&rank, 8000, 600);
		rank.now_promoted = rank.now_returned = 200;
		rank.room_pages = rank.room_given = 0;
		if (s == 10)
			rank.changed_ms = now + 1001;
		second(&rank, &now);
		if (s >= 10 && s <= 10 + TIER_RANK_STIR_MS / 1001)
			assert_in_range(rank.room_pages, REFILL, REFILL + 2);
		else
			assert_in_range(rank.room_pages, 0, 2);
	}
}

/* Room takes a share of what comes, by how much of the node is free. */
static void an_empty_node_is_less_choosy(void **state)
{
	struct { __u64 credit; int percent; } room[] = { { NODE, 62 }, { NODE / 2, 43 }, { NODE / 4, 31 } };
	struct tier_rank rank = {};
	__u32 now = 100000;

	/* few faults: the share would hold them all */
	populate(&rank, 500, 600);
	second(&rank, &now);
	for (int i = 0; i < 3; i++) {
		rank.credit = room[i].credit;
		second(&rank, &now);
		assert_in_range(100 * share_below(rank.room_ms, 600), room[i].percent,
				room[i].percent + 10);
		/* what may go up is not cold */
		assert_int_equal(rank.cold_ms, rank.room_ms);
	}
	rank.now_promoted = rank.now_returned = 100;
	second(&rank, &now);
	assert_true(rank.room_ms < rank.warm_ms);
	assert_int_equal(rank.cold_ms, rank.warm_ms);

	/* more than the share holds: the hottest of them, one slot more than fits */
	rank = (struct tier_rank){ .learned = 1, .credit = NODE, .probe_start_ms = now,
				   .probe_shift = TIER_RANK_PROBE_MAX };
	populate(&rank, 80000, 600);
	second(&rank, &now);
	assert_in_range(80000 * share_below(rank.room_ms, 600), NODE / TIER_RANK_FILL_S,
			NODE / TIER_RANK_FILL_S * 3 / 2);
	assert_int_equal(rank.cold_ms, rank.warm_ms);
}

/* One of a thousand returns: its owner may have unmapped and mapped again. */
static void a_rare_return_does_not_close(void **state)
{
	struct tier_rank rank = {};
	__u32 now = 100000;

	populate(&rank, 8000, 600);
	for (int i = 0; i < 20; i++) {
		rank.now_promoted = 3000;
		rank.now_returned = 3;
		second(&rank, &now);
	}
	assert_in_range(rank.credit, NODE / 2, NODE);
}

static void budget_is_saved_up_and_overdrawn(void **state)
{
	struct tier_rank rank = {};
	__u32 now = 100000;

	populate(&rank, 8000, 600);
	second(&rank, &now);
	assert_int_equal(rank.budget_pages, NODE / 8);
	assert_false(tier_rank_spend(&rank.budget_pages, 1, NODE / 8));
	assert_true(tier_rank_spend(&rank.budget_pages, 512, NODE / 8 - 1));
	rank.budget_pages = 1;
	assert_true(tier_rank_spend(&rank.budget_pages, 512, 0));
	assert_int_equal(rank.budget_pages, -511);
	assert_false(tier_rank_spend(&rank.budget_pages, 1, 0));
	second(&rank, &now);
	assert_int_equal(rank.budget_pages, -511 + (int)REFILL);
	for (int i = 0; i < 1000; i++)
		second(&rank, &now);
	assert_in_range(rank.budget_pages, NODE / 8, NODE / 8 + REFILL);
}

/* Proven pages get the savings, too, as long as all of them are new: for a minute. */
static void the_first_minute_finds(void **state)
{
	struct tier_rank rank = {};
	__u32 now = 100000;

	for (int s = 1; s <= 120; s++) {
		populate(&rank, 8000, 600);
		second(&rank, &now);
		if (s <= 55)
			assert_int_equal(rank.proven_kept_pages, NODE / 64);
		if (s >= 65)
			assert_int_equal(rank.proven_kept_pages, tier_rank_kept(NODE));
	}
}

/* A hot population adds to the income, until what it sent up keeps coming back hot. */
static void thrash_takes_the_extra_income(void **state)
{
	struct tier_rank rank = {};
	__u32 now = 100000;
	__s64 before;

	populate(&rank, 4096, 43);
	populate(&rank, 20000, 6000);
	second(&rank, &now);
	rank.budget_pages = 0;
	populate(&rank, 4096, 43);
	second(&rank, &now);
	assert_int_equal(rank.budget_pages, REFILL + NODE / 64);
	for (int i = 0; i < 20; i++) {
		populate(&rank, 4096, 43);
		populate(&rank, 20000, 6000);
		rank.now_returned = 300;
		rank.now_thrash = 200;
		second(&rank, &now);
	}
	assert_int_equal(rank.backoff_shift, TIER_RANK_BACKOFF_MAX);
	before = rank.budget_pages = 0;
	populate(&rank, 4096, 43);
	second(&rank, &now);
	assert_in_range(rank.budget_pages - before, REFILL, REFILL + NODE / 64 / 128);
	for (int i = 0; i < 400; i++)
		second(&rank, &now);
	assert_int_equal(rank.backoff_shift, 0);
}

/* What the fault of a page that waited long does before it is decided; true during a surge. */
static bool pace(struct tier_rank *rank, __u32 now_ms)
{
	if (tier_rank_pace(rank, now_ms, 60000))
		tier_rank_window(rank, now_ms);
	return rank->surging;
}

/* However many faults, before there is something to compare with there is no surge. */
static void no_surge_before_the_pace_is_known(void **state)
{
	struct tier_rank rank = {};
	__u32 now = 100000;

	for (int s = 0; s <= TIER_RANK_SETTLE_S; s++) {
		for (int i = 0; i < 8000; i++)
			assert_false(pace(&rank, now + i / 80));
		populate(&rank, 8000, 600);
		second(&rank, &now);
	}
}

static void surge_is_four_times_the_pace(void **state)
{
	struct tier_rank rank = {};
	__u32 now = 0xffff0000, surges = 0;	/* wraps on the way */

	populate(&rank, 4000, 600);
	second(&rank, &now);
	for (int s = 0; s < 100; s++) {
		for (int i = 0; i < 4000; i++)
			surges += pace(&rank, now + i / 4);
		populate(&rank, 4000, 600);
		/* full, or room would say where cold begins */
		rank.now_promoted = 3000;
		rank.now_returned = 200;
		second(&rank, &now);
	}
	assert_int_equal(surges, 0);
	/* three times as many as usually come of those that waited, three of four, are none */
	for (int i = 0; i < 900; i++)
		surges += pace(&rank, now + i / 9);
	assert_int_equal(surges, 0);
	now += 200;
	/* nor are those that fault soon after their scan */
	for (int i = 0; i < 2000; i++) {
		if (tier_rank_pace(&rank, now + i / 25, rank.cold_ms - 1))
			tier_rank_window(&rank, now + i / 25);
		surges += rank.surging;
	}
	assert_int_equal(surges, 0);
	now += 200;
	for (int i = 0; i < 2000; i++)
		surges += pace(&rank, now + i / 20);
	/* but for what the 200 ms before have held up */
	assert_in_range(surges, 1000, 1200);
	assert_int_equal(rank.hot_open, 2);
	/* what was saved up is for this */
	assert_int_equal(rank.second_pages, rank.budget_pages);
	assert_int_equal(rank.hot_kept_pages, 0);
	/* nothing is cold: what faults now had waited */
	assert_int_equal(rank.cold_ms, ~0U);
	/* it ends by itself */
	now += TIER_RANK_SURGE_MS + 100;
	assert_false(pace(&rank, now));
	assert_int_equal(rank.cold_ms, rank.warm_ms);
	/* but some seconds on hot pages are followed, and then are few again */
	for (int s = 0; s < 3; s++) {
		populate(&rank, 4000, 600);
		second(&rank, &now);
		assert_true(rank.second_pages > NODE / 64 + 1);
		assert_int_equal(rank.hot_kept_pages, NODE / 64);
	}
	second(&rank, &now);
	assert_int_equal(rank.second_pages, NODE / 64 + 1);
	assert_int_equal(rank.hot_kept_pages, tier_rank_kept(NODE));
}

/* What nothing hot follows was no change: the next surge has to be stronger each time. */
static void vain_surges_become_rare(void **state)
{
	struct tier_rank rank = { .learned = 1, .surge_faults = 100 };
	__u32 now = 100000;

	for (__u32 vain = 1; vain <= TIER_RANK_VAIN_MAX + 1; vain++) {
		rank.surge_faults = 100;
		rank.cold_ms = 10;
		rank.window_ms = now += 10000;
		for (int i = 0; i < 100; i++)
			if (tier_rank_pace(&rank, now, 10))
				tier_rank_window(&rank, now);
		assert_true(rank.surging);
		tier_rank_surged(&rank, now + TIER_RANK_FOLLOW_MS - 1);
		assert_int_equal(rank.window_peak, 200);
		tier_rank_surged(&rank, now + TIER_RANK_FOLLOW_MS);
		assert_int_equal(rank.window_peak,
				 200 << (vain < TIER_RANK_VAIN_MAX ? vain : TIER_RANK_VAIN_MAX));
		/* it is judged once */
		tier_rank_surged(&rank, now + TIER_RANK_FOLLOW_MS + 1000);
		assert_int_equal(rank.surge_vain, vain < TIER_RANK_VAIN_MAX ? vain : TIER_RANK_VAIN_MAX);
		rank.surging = rank.window_waited = rank.window_faults = 0;
	}
	assert_int_equal(rank.changed_ms, 0);
	rank.surge_open = rank.apart = 1;
	rank.window_peak = 200;
	tier_rank_surged(&rank, rank.surge_ms + 2000);
	assert_int_equal(rank.surge_vain, 0);
	assert_int_equal(rank.window_peak, 100);
	assert_int_equal(rank.changed_ms, rank.surge_ms);
}

/* A program that stood still and catches up brings what it would have brought meanwhile. */
static void catching_up_is_no_surge(void **state)
{
	static const __u32 silence_ms[] = { 31, 200 };

	for (int i = 0; i < 2; i++) {
		struct tier_rank rank = { .learned = 1, .surge_faults = 100, .cold_ms = 10,
					  .window_usual = 25, .window_ms = 1000 };
		__u32 now = 1000 + silence_ms[i];
		int burst = 0;

		while (!rank.surging && burst < 1000) {
			if (tier_rank_pace(&rank, now, 10))
				tier_rank_window(&rank, now);
			burst++;
		}
		/* the first one only ends the silence */
		assert_int_equal(burst, 1 + 100 + (i ? 200 / TIER_RANK_WINDOW_MS * 25 : 0));
		rank = (struct tier_rank){ .learned = 1, .surge_faults = 100, .cold_ms = 10,
					   .window_usual = 25, .window_ms = 1000 };
		now = 1000 + silence_ms[i];
		for (burst = 0; !rank.surging && burst < 1000; burst++)
			/* 90 in a window: once they are all there a window of 100 is one */
			if (tier_rank_pace(&rank, now + burst / 90 * TIER_RANK_WINDOW_MS, 10))
				tier_rank_window(&rank, now + burst / 90 * TIER_RANK_WINDOW_MS);
		assert_false(rank.surging);
		assert_int_equal(rank.window_held, 0);
		assert_int_equal(rank.surge_faults, 100);
	}
}

/*
 * Just after a burst of scanning all faults are younger than that: the fast sum cannot tell them
 * from a population of their own. After a surge it is believed.
 */
static void latencies_since_a_scan_are_no_population(void **state)
{
	struct tier_rank rank = {}, surged;
	__u32 now = 100000;

	for (int s = 0; s < 60; s++) {
		populate(&rank, 2000, 8000);
		second(&rank, &now);
	}
	/* thirty chunks, one each 50 ms, and a fault each 20 ms of each */
	for (__u32 chunk = 1; chunk <= 30; chunk++)
		for (__u32 ms = 0; ms < chunk * 50; ms += 20)
			rank.now[tier_hist_slot(ms)]++;
	surged = rank;
	surged.surge_ms = now - 1000;
	second(&surged, &(__u32){ now });
	assert_in_range(surged.hot_ms, 256, 2000);
	second(&rank, &now);
	assert_int_equal(rank.hot_ms, 0);
}

/* Bursts that come with every scan are no news. */
static void regular_bursts_are_no_surge(void **state)
{
	struct tier_rank rank = {};
	__u32 now = 100000, late = 0;

	populate(&rank, 3000, 600);
	second(&rank, &now);
	for (int s = 0; s < 200; s++) {
		__u32 surges = 0;

		if (s % 5 == 0) {
			for (int i = 0; i < 3000; i++)
				surges += pace(&rank, now + i / 60);
			populate(&rank, 3000, 600);
		}
		late += s >= 100 ? surges : 0;
		pace(&rank, now + 500);
		second(&rank, &now);
	}
	assert_in_range(late, 0, 20 * 1000);
	print_message("of 20 bursts of 3000 faults, %u faults counted as surge\n", late);
}

static void marks(void **state)
{
	__u64 hash = 0xabcdef0123456789ULL;
	__u32 mark = tier_rank_mark(hash, 5, true, 200, 0xfffff000);

	assert_true(tier_rank_mark_up(mark));
	assert_int_equal(tier_rank_mark_slot(mark), TIER_RANK_SCORES - 1);
	assert_false(tier_rank_mark_moved(mark, 5));
	assert_true(tier_rank_mark_moved(mark, 4));
	assert_true(tier_rank_mark_is(mark, hash, 0xfffff000, 0));
	/* the time wraps with the clock */
	assert_true(tier_rank_mark_is(mark, hash, 4096, 8192));
	assert_false(tier_rank_mark_is(mark, hash, 16384, 8192));
	assert_false(tier_rank_mark_is(mark, hash ^ 1ULL << 52, 0xfffff000, 8192));
	assert_false(tier_rank_mark_is(0, 0, 0, 8192));
	mark = tier_rank_mark(hash, 0, false, 7, 1 << 20);
	assert_false(tier_rank_mark_up(mark));
	assert_false(tier_rank_mark_moved(mark, 0));
	assert_int_equal(tier_rank_mark_slot(mark), 7);
}

/* Frames next to each other, and those of huge pages, fall into all eight. */
static void frames_differ(void **state)
{
	__u64 steps[] = { 1, 512 };

	for (int s = 0; s < 2; s++) {
		__u32 seen[8] = {};

		for (__u64 i = 0; i < 800; i++)
			seen[tier_rank_frame(4711 * 512 + i * steps[s])]++;
		for (int i = 0; i < 8; i++)
			assert_in_range(seen[i], 50, 150);
	}
}

/* Where none goes up one base page in four is counted, for four; of others each. */
static void faults_are_sampled(void **state)
{
	struct tier_rank rank = { .look_slot = 40 };
	struct tier_rank_page page = { .latency_ms = 5000, .nr_pages = 1 };
	__u64 taken = 0;

	for (__u64 i = 0; i < 4000; i++)
		taken += tier_rank_sampled(i * 0x9e3779b97f4a7c15ULL);
	assert_in_range(taken, 900, 1100);
	tier_rank_count(&rank, &page, 40, false);
	tier_rank_count(&rank, &page, 39, true);
	assert_int_equal(rank.now[40], 4);
	assert_int_equal(rank.now[39], 1);
	assert_int_equal(rank.now_extra, 0);
	page.nr_pages = 512;
	tier_rank_count(&rank, &page, 40, true);
	assert_int_equal(rank.now[40], 5);
	assert_int_equal(rank.now_extra, 511);
}

/* Faults of known pages count as often as those are looked at whose mark could tell the same. */
static void marks_count_for_those_without(void **state)
{
	struct tier_rank rank = { .look_slot = 40, .look_ms = tier_hist_low(40), .hot_ms = 20,
				  .cold_ms = tier_hist_low(50) };
	struct tier_rank_page page = { .latency_ms = 10, .nr_pages = 1, .hash = 1ULL << 32 };
	__u32 low = tier_rank_mark(page.hash, 0, false, 39, 0);
	__u32 high = tier_rank_mark(page.hash, 0, true, 41, 0);

	assert_false(tier_rank_recall(&rank, &page, low, 30, true));
	assert_int_equal(rank.now_marked[39], 1);
	assert_int_equal(rank.now_again[39], 1);
	/* a mark from when more were looked at: where only those of sampled pages count */
	assert_true(tier_rank_recall(&rank, &page, high, 30, true));
	assert_int_equal(rank.now_failed, 1);
	assert_int_equal(rank.now_marked[41], 0);
	page.hash = page.frame = 1;
	tier_rank_recall(&rank, &page, high, 30, true);
	assert_int_equal(rank.now_returned, 1);
	assert_int_equal(rank.now_thrash, 1);
	assert_int_equal(rank.now_marked[41], 4);
	assert_int_equal(rank.now_again[41], 4);
	/* it stands for four; when cold, not again warm */
	page.latency_ms = tier_hist_low(45);
	tier_rank_recall(&rank, &page, high, 45, false);
	assert_int_equal(rank.now_returned, 5);
	assert_int_equal(rank.now_again[45], 4);
	page.latency_ms = rank.cold_ms;
	tier_rank_recall(&rank, &page, high, 50, false);
	assert_int_equal(rank.now_marked[41], 12);
	assert_int_equal(rank.now_again[50], 0);
	/* a large folio is always looked at */
	page = (struct tier_rank_page){ .latency_ms = 10, .nr_pages = 512, .hash = 1ULL << 32 };
	tier_rank_recall(&rank, &page, tier_rank_mark(page.hash, 0, false, 45, 0), 30, true);
	assert_int_equal(rank.now_marked[45], 1);
}

/* Each page is looked at below all that may go up, and nowhere beyond cold. */
static void looks_where_pages_go_up(void **state)
{
	struct tier_rank rank = { .warm_ms = 1024, .room_ms = 20 };

	tier_rank_set_cold(&rank);
	assert_int_equal(rank.look_ms, 20);
	assert_int_equal(rank.look_slot, tier_hist_slot(20));
	rank.proven_slot = TIER_RANK_SCORES;
	tier_rank_set_cold(&rank);
	assert_int_equal(rank.look_ms, 1024);
	rank.look_last = 0;
	rank.proven_slot = tier_hist_slot(96);
	tier_rank_set_cold(&rank);
	assert_int_equal(rank.look_ms, 96);
	/* a hot threshold within a slot: the whole slot; closed: none of it */
	rank.hot_ms = 130;
	tier_rank_set_cold(&rank);
	assert_int_equal(rank.look_ms, 96);
	rank.hot_open = 1;
	tier_rank_set_cold(&rank);
	assert_int_equal(rank.look_ms, 160);
	assert_int_equal(rank.look_slot, tier_hist_slot(160));
	assert_int_equal(tier_rank_refusal(&rank, 1023), TIER_REJECT_ONCE);
	assert_int_equal(tier_rank_refusal(&rank, 1024), TIER_REJECT_COLD);
	rank.surging = 1;
	tier_rank_set_cold(&rank);
	assert_int_equal(rank.look_ms, ~0U);
	assert_true(rank.look_slot > tier_hist_slot(1U << 31));
	/* a surge is not remembered, but what was looked at before it */
	rank.surging = rank.hot_open = rank.proven_slot = 0;
	tier_rank_set_cold(&rank);
	assert_int_equal(rank.look_ms, 160);
	rank.look_last -= 8;
	tier_rank_set_cold(&rank);
	assert_int_equal(rank.look_ms, 80);
	rank.look_last = 0;
	tier_rank_set_cold(&rank);
	assert_int_equal(rank.look_ms, 20);
}

/* At first each warm page is looked at; after half a minute only where one may go up. */
static void looks_at_each_warm_page_at_first(void **state)
{
	struct tier_rank rank = {};
	__u32 now = 100000;

	for (int s = 0; s < 60; s++) {
		populate(&rank, 8000, 6000);
		/* full: room is for few */
		rank.now_promoted = rank.now_returned = 200;
		second(&rank, &now);
		if (s < TIER_RANK_LOOK_SLOTS * 2)
			assert_int_equal(rank.look_ms, rank.cold_ms);
	}
	assert_true(rank.look_ms < rank.cold_ms / 8);
	assert_true(rank.look_ms >= rank.room_ms);
}

static void reasons_in_order(void **state)
{
	struct tier_rank rank = { .room_ms = 50, .room_pages = 2, .proven_slot = 20, .hot_ms = 100,
				  .hot_open = 1, .budget_pages = NODE / 8,
				  .second_pages = NODE / 64, .hot_kept_pages = NODE / 64,
				  .proven_kept_pages = tier_rank_kept(NODE) };
	struct tier_rank_page page = { .latency_ms = 40, .nr_pages = 1 };

	assert_int_equal(tier_rank_reason(&rank, &page, TIER_RANK_SCORES, false, NODE),
			 TIER_PROMOTE_OTHER);
	assert_int_equal(rank.room_pages, 1);
	/* a page that came back shows that there is no room for it */
	assert_int_equal(tier_rank_reason(&rank, &page, TIER_RANK_SCORES, true, NODE),
			 TIER_PROMOTE_HOT);
	assert_int_equal(rank.room_pages, 1);
	page.latency_ms = 200;
	assert_int_equal(tier_rank_reason(&rank, &page, TIER_RANK_SCORES, false, NODE),
			 TIER_REJECT_ONCE);
	assert_int_equal(tier_rank_reason(&rank, &page, 19, false, NODE), TIER_PROMOTE_HOT);
	rank.surging = 1;
	assert_int_equal(tier_rank_reason(&rank, &page, 20, false, NODE), TIER_PROMOTE_OTHER);
	assert_int_equal(rank.room_pages, 0);
	assert_int_equal(tier_rank_reason(&rank, &page, 20, false, NODE), TIER_PROMOTE_OTHER);
	/* most of the savings is for changes, the last eighth for the hot ones */
	rank.budget_pages = tier_rank_kept(NODE);
	assert_int_equal(tier_rank_reason(&rank, &page, 19, false, NODE), TIER_PROMOTE_OTHER);
	rank.surging = 0;
	assert_int_equal(tier_rank_reason(&rank, &page, 19, false, NODE), TIER_REJECT_ONCE);
	rank.surging = 1;
	rank.budget_pages = NODE / 32;
	assert_int_equal(tier_rank_reason(&rank, &page, 19, false, NODE), TIER_REJECT_ONCE);
	page.latency_ms = 99;
	assert_int_equal(tier_rank_reason(&rank, &page, 20, false, NODE), TIER_PROMOTE_HOT);
	rank.budget_pages = NODE / 64;
	assert_int_equal(tier_rank_reason(&rank, &page, 19, false, NODE), TIER_REJECT_ONCE);
	/* and not all of it in one second, but in a surge */
	rank.surging = 0;
	rank.budget_pages = NODE / 8;
	rank.second_pages = 1;
	assert_int_equal(tier_rank_reason(&rank, &page, 19, false, NODE), TIER_PROMOTE_HOT);
	assert_int_equal(tier_rank_reason(&rank, &page, 19, false, NODE), TIER_REJECT_ONCE);
	assert_int_equal(rank.budget_pages, NODE / 8 - 1);
	rank.surging = 1;
	assert_int_equal(tier_rank_reason(&rank, &page, 19, false, NODE), TIER_PROMOTE_OTHER);
}

static void the_past_fades(void **state)
{
	struct tier_rank rank = { .slow = { [10] = 1000000 }, .fast = { [10] = 1000000 } };

	for (int i = 0; i < 22; i++)
		tier_rank_fold(&rank);
	assert_in_range(rank.slow[10], 490000, 510000);
	assert_in_range(rank.fast[10], 1000, 2500);
	/* what a slot gains and loses ends in balance, small as it may be */
	for (int i = 0; i < 400; i++) {
		rank.now[20] = 1;
		tier_rank_fold(&rank);
	}
	assert_in_range(rank.slow[20] >> TIER_RANK_UNIT_SHIFT, 31, 32);
	assert_in_range(rank.seconds >> TIER_RANK_UNIT_SHIFT, 31, 32);
}

/* More than any machine: 2^30 huge pages fault in a second, on a node of 2^44 pages. */
static void nothing_overflows(void **state)
{
	struct tier_rank rank = {};
	__u32 now = 100000;

	for (int i = 0; i < 100; i++) {
		rank.now[10] = 1ULL << 28;
		rank.now[60] = 1ULL << 30;
		rank.now_extra = 512ULL << 30;
		rank.now_marked[10] = 1ULL << 28;
		rank.now_again[10] = 1ULL << 28;
		now += 1001;
		tier_rank_adjust(&rank, now, 1ULL << 44, 1ULL << 36, PATIENCE_MS);
	}
	assert_in_range(rank.proven_slot, 11, TIER_RANK_SCORES);
	assert_in_range(rank.warm_ms, tier_hist_low(60), tier_hist_low(62));
	assert_in_range(rank.credit, 1, 1ULL << 44);
	assert_in_range(rank.budget_pages, 1ULL << 40, 1ULL << 42);
	/* and less: a node of no pages */
	memset(&rank, 0, sizeof(rank));
	populate(&rank, 100, 100);
	tier_rank_adjust(&rank, now, 0, 0, PATIENCE_MS);
	assert_int_equal(rank.budget_pages, 0);
}

static void due_once_a_second(void **state)
{
	struct tier_rank rank = {};

	/* the first fault starts the clock: there is nothing to adjust by yet */
	assert_false(tier_rank_due(&rank, 0xffffff00));
	assert_false(tier_rank_due(&rank, 0xffffff00 + 1000));
	assert_true(tier_rank_due(&rank, 0xffffff00 + 1001));
	assert_false(tier_rank_due(&rank, 0xffffff00 + 1002));
	rank.adjusted_ms = 0;
	assert_false(tier_rank_due(&rank, 0));
	assert_true(rank.adjusted_ms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hot_population_stands_out),
		cmocka_unit_test(scale_does_not_matter),
		cmocka_unit_test(one_population_is_not_hot),
		cmocka_unit_test(a_band_is_not_hot),
		cmocka_unit_test(few_pages_prove_nothing),
		cmocka_unit_test(warm_is_a_quarter),
		cmocka_unit_test(chance_proves_nothing),
		cmocka_unit_test(lasting_heat_is_proven),
		cmocka_unit_test(little_heat_is_used_up_by_the_refill),
		cmocka_unit_test(room_closes_at_once_and_opens_slowly),
		cmocka_unit_test(swapping_is_slow),
		cmocka_unit_test(a_change_stirs),
		cmocka_unit_test(an_empty_node_is_less_choosy),
		cmocka_unit_test(a_rare_return_does_not_close),
		cmocka_unit_test(budget_is_saved_up_and_overdrawn),
		cmocka_unit_test(the_first_minute_finds),
		cmocka_unit_test(thrash_takes_the_extra_income),
		cmocka_unit_test(no_surge_before_the_pace_is_known),
		cmocka_unit_test(surge_is_four_times_the_pace),
		cmocka_unit_test(catching_up_is_no_surge),
		cmocka_unit_test(latencies_since_a_scan_are_no_population),
		cmocka_unit_test(vain_surges_become_rare),
		cmocka_unit_test(regular_bursts_are_no_surge),
		cmocka_unit_test(marks),
		cmocka_unit_test(frames_differ),
		cmocka_unit_test(faults_are_sampled),
		cmocka_unit_test(marks_count_for_those_without),
		cmocka_unit_test(looks_where_pages_go_up),
		cmocka_unit_test(looks_at_each_warm_page_at_first),
		cmocka_unit_test(reasons_in_order),
		cmocka_unit_test(the_past_fades),
		cmocka_unit_test(nothing_overflows),
		cmocka_unit_test(due_once_a_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
