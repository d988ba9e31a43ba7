// SPDX-License-Identifier: GPL-2.0
/*
 * The shipped policies' bytecode, run by the kernel over made-up faults: each
 * decision at its edges. Needs root, no NUMA.
 */
#include "policy_run.h"

static void kernel_leaves_all_and_counts(void **state)
{
	struct policy *p = policy_start("kernel", NULL);
	struct tier_replay_entry out[3];
	struct tier_fault f[3] = { fault(5000, 0), fault(5000, 999), fault(5000, 4000000000U) };
	struct tier_counts counts;

	f[2].nr_pages = 512;
	policy_run(p, f, 3, out);
	for (int i = 0; i < 3; i++)
		assert_int_equal(out[i].decision, TIER_KERNEL);
	counts = policy_counts(p, 1, 0);
	assert_int_equal(counts.faults[TIER_KERNEL], 3);
	assert_int_equal(counts.pages[TIER_KERNEL], 514);
	policy_stop(p);
}

static void mru_promotes_any(void **state)
{
	struct policy *p = policy_start("mru", NULL);

	assert_int_equal(policy_decide(p, fault(1, 0)), TIER_PROMOTE_ANY);
	assert_int_equal(policy_decide(p, fault(1, 0xffffffff)), TIER_PROMOTE_ANY);
	policy_stop(p);
}

static void fixed_threshold_is_strict(void **state)
{
	struct setting set[] = { { "hot_threshold_ms", 200 }, { NULL } };
	struct policy *p = policy_start("fixed", set);

	assert_int_equal(policy_decide(p, fault(9000, 0)), TIER_PROMOTE_HOT);
	assert_int_equal(policy_decide(p, fault(9000, 199)), TIER_PROMOTE_HOT);
	assert_int_equal(policy_decide(p, fault(9000, 200)), TIER_REJECT_COLD);
	assert_int_equal(policy_decide(p, fault(9000, 0xffffffff)), TIER_REJECT_COLD);
	assert_int_equal(policy_node(p, 0).threshold_ms, 200);
	assert_int_equal(policy_node(p, 0).candidates_pages, 2);
	assert_int_equal(policy_node(p, 1).threshold_ms, 0);
	policy_stop(p);
}

static void fixed_zero_promotes_nothing(void **state)
{
	struct setting set[] = { { "hot_threshold_ms", 0 }, { NULL } };
	struct policy *p = policy_start("fixed", set);

	assert_int_equal(policy_decide(p, fault(9000, 0)), TIER_REJECT_COLD);
	policy_stop(p);
}

/* 1 MiB/s is 256 pages of 4 KiB a second. */
static void fixed_rate_limit(void **state)
{
	struct setting set[] = { { "rate_limit_mbps", 1 }, { NULL } };
	struct policy *p = policy_start("fixed", set);
	struct tier_fault f[300];
	struct tier_replay_entry out[300];
	struct tier_counts counts;

	for (int i = 0; i < 300; i++)
		f[i] = fault(10000 + i, 1);
	policy_run(p, f, 300, out);
	/* the first opens the window and is not counted in it, as in mainline */
	for (int i = 0; i < 300; i++)
		assert_int_equal(out[i].decision, i < 256 ? TIER_PROMOTE_HOT : TIER_REJECT_RATE);
	assert_int_equal(policy_node(p, 0).candidates_pages, 300);
	assert_int_equal(policy_node(p, 0).limit_pages_per_s, 256);

	/* exactly a second later the window still holds, a millisecond more opens the next */
	assert_int_equal(policy_decide(p, fault(11000, 1)), TIER_REJECT_RATE);
	assert_int_equal(policy_decide(p, fault(11001, 1)), TIER_PROMOTE_HOT);
	counts = policy_counts(p, 1, 0);
	assert_int_equal(counts.faults[TIER_PROMOTE_HOT], 257);
	assert_int_equal(counts.faults[TIER_REJECT_RATE], 45);

	/* a cold page takes nothing from the limit, a large folio all its pages */
	assert_int_equal(policy_decide(p, fault(11002, 60000)), TIER_REJECT_COLD);
	assert_int_equal(policy_node(p, 0).candidates_pages, 302);
	f[0] = fault(11003, 1);
	f[0].nr_pages = 512;
	assert_int_equal(policy_decide(p, f[0]), TIER_REJECT_RATE);
	assert_int_equal(policy_node(p, 0).candidates_pages, 814);
	policy_stop(p);
}

static void rate_limit_is_per_target_node(void **state)
{
	struct setting set[] = { { "rate_limit_mbps", 1 }, { NULL } };
	struct policy *p = policy_start("fixed", set);
	struct tier_fault f = fault(5000, 1);

	f.nr_pages = 512;
	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_HOT);
	assert_int_equal(policy_decide(p, f), TIER_REJECT_RATE);
	f.dst_nid = 1;
	f.src_nid = 0;
	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_HOT);
	assert_int_equal(policy_counts(p, 0, 1).pages[TIER_PROMOTE_HOT], 512);
	policy_stop(p);
}

static void mainline_room_bypasses_and_resets(void **state)
{
	struct setting set[] = { { "adjust_interval_ms", 1000 }, { NULL } };
	struct policy *p = policy_start("mainline", set);
	struct tier_fault room = fault(9000, 3000000);

	/* no candidate in the first interval: one step up, to 1125 ms */
	assert_int_equal(policy_decide(p, fault(5000, 1000)), TIER_REJECT_COLD);
	assert_int_equal(policy_decide(p, fault(6001, 1124)), TIER_PROMOTE_HOT);
	assert_int_equal(policy_decide(p, fault(6001, 1125)), TIER_REJECT_COLD);
	room.flags = TIER_FAULT_ROOM_KNOWN | TIER_FAULT_ROOM;
	assert_int_equal(policy_decide(p, room), TIER_PROMOTE_ROOM);
	assert_int_equal(policy_node(p, 0).adjusted_ms, 0);
	assert_int_equal(policy_node(p, 0).candidates_pages, 1);	/* bypass: no candidate */
	room.flags = TIER_FAULT_ROOM_KNOWN;
	assert_int_equal(policy_decide(p, room), TIER_REJECT_COLD);
	policy_stop(p);
}

/* The same stream through the bytecode and through a model of the kernel's rules. */
static void mainline_agrees_with_model(void **state)
{
	enum { NR = 4000, LIMIT = 512, INTERVAL = 3000, REF = 1000 };
	struct setting set[] = { { "rate_limit_mbps", 2 }, { "adjust_interval_ms", INTERVAL }, { NULL } };
	struct policy *p = policy_start("mainline", set);
	static struct tier_fault f[NR];
	static struct tier_replay_entry out[NR];
	__u64 cand = 0, window_cand = 0, adjust_cand = 0, seen[4] = {};
	__u32 threshold = 0, window = 0, adjust = 0, seed = 7, now = 20000;

	for (int i = 0; i < NR; i++) {
		seed = seed * 1664525 + 1013904223;
		now += seed >> 29;
		f[i] = fault(now, (seed >> 9) % 2500);
		f[i].nr_pages = seed >> 24 == 1 ? 512 : 1;
		if (i % 1500 > 1480)
			f[i].flags = TIER_FAULT_ROOM_KNOWN | TIER_FAULT_ROOM;
	}
	policy_run(p, f, NR, out);
	for (int i = 0; i < NR; i++) {
		__u32 want, th;

		now = f[i].now_ms;
		if (f[i].flags) {
			threshold = 0;
			want = TIER_PROMOTE_ROOM;
			seen[0]++;
			goto check;
		}
		if (!adjust)
			adjust = now;
		if (now - adjust > INTERVAL) {
			__u64 diff = cand - adjust_cand, ref = LIMIT * INTERVAL / 1000;

			adjust = now;
			adjust_cand = cand;
			th = threshold ? threshold : REF;
			if (diff > ref * 11 / 10)
				th = th - REF / 8 > REF / 8 ? th - REF / 8 : REF / 8;
			else if (diff < ref * 9 / 10)
				th = th + REF / 8 < REF * 2 ? th + REF / 8 : REF * 2;
			threshold = th;
		}
		th = threshold ? threshold : REF;
		if (f[i].latency_ms >= th) {
			want = TIER_REJECT_COLD;
			seen[1]++;
			goto check;
		}
		cand += f[i].nr_pages;
		if (now - window > 1000) {
			window = now;
			window_cand = cand;
		}
		want = cand - window_cand >= LIMIT ? TIER_REJECT_RATE : TIER_PROMOTE_HOT;
		seen[want == TIER_REJECT_RATE ? 2 : 3]++;
check:
		if (out[i].decision != want)
			fail_msg("fault %d: decision %u, the model says %u", i, out[i].decision, want);
	}
	for (int i = 0; i < 4; i++)
		assert_true(seen[i] > 20);	/* every rule had its turn */
	policy_stop(p);
}

static void mainline_zero_limit_refuses(void **state)
{
	struct setting set[] = { { "rate_limit_mbps", 0 }, { NULL } };
	struct policy *p = policy_start("mainline", set);

	assert_int_equal(policy_decide(p, fault(5000, 1)), TIER_REJECT_RATE);
	assert_int_equal(policy_node(p, 0).candidates_pages, 1);
	policy_stop(p);
}

static struct tier_fault page(__u64 pfn, __u32 now_ms, __u32 latency_ms)
{
	struct tier_fault f = fault(now_ms, latency_ms);

	f.pfn = pfn;
	return f;
}

static void twotouch_needs_two_hot_faults(void **state)
{
	struct setting set[] = { { "hot_threshold_ms", 500 }, { "pair_window_ms", 60000 }, { NULL } };
	struct policy *p = policy_start("twotouch", set);

	assert_int_equal(policy_decide(p, page(1, 10000, 499)), TIER_REJECT_ONCE);
	assert_int_equal(policy_decide(p, page(2, 10000, 499)), TIER_REJECT_ONCE);
	assert_int_equal(policy_decide(p, page(1, 20000, 499)), TIER_PROMOTE_HOT);
	/* promoted: should it come down again, it starts over */
	assert_int_equal(policy_decide(p, page(1, 30000, 0)), TIER_REJECT_ONCE);
	/* a cold fault in between breaks the row */
	assert_int_equal(policy_decide(p, page(2, 20000, 500)), TIER_REJECT_COLD);
	assert_int_equal(policy_decide(p, page(2, 30000, 1)), TIER_REJECT_ONCE);
	/* so does too long a time */
	assert_int_equal(policy_decide(p, page(2, 95000, 1)), TIER_REJECT_ONCE);
	assert_int_equal(policy_decide(p, page(2, 96000, 1)), TIER_PROMOTE_HOT);
	assert_int_equal(policy_node(p, 0).threshold_ms, 500);
	policy_stop(p);
}

/* A sweep over memory touches each page once: nothing goes up. */
static void twotouch_ignores_a_sweep(void **state)
{
	struct policy *p = policy_start("twotouch", NULL);
	static struct tier_fault f[MAX_FAULTS];
	static struct tier_replay_entry out[MAX_FAULTS];
	__u32 promoted = 0;

	for (int i = 0; i < MAX_FAULTS; i++)
		f[i] = page(1000000 + i, 50000 + i, 5);
	policy_run(p, f, MAX_FAULTS, out);
	for (int i = 0; i < MAX_FAULTS; i++)
		assert_int_equal(out[i].decision, TIER_REJECT_ONCE);
	/* the same pages again, hot: nearly all marks are still there */
	for (int i = 0; i < MAX_FAULTS; i++)
		f[i].now_ms += 10000;
	policy_run(p, f, MAX_FAULTS, out);
	for (int i = 0; i < MAX_FAULTS; i++)
		promoted += out[i].decision == TIER_PROMOTE_HOT;
	assert_in_range(promoted, MAX_FAULTS * 99 / 100, MAX_FAULTS);
	policy_stop(p);
}

static void twotouch_limit_keeps_the_mark(void **state)
{
	struct setting set[] = { { "rate_limit_mbps", 1 }, { NULL } };
	struct policy *p = policy_start("twotouch", set);
	struct tier_fault big = page(7, 10000, 1), small = page(8, 10000, 1);

	big.nr_pages = 512;
	assert_int_equal(policy_decide(p, big), TIER_REJECT_ONCE);
	assert_int_equal(policy_decide(p, small), TIER_REJECT_ONCE);
	big.now_ms = small.now_ms = 12000;
	assert_int_equal(policy_decide(p, big), TIER_PROMOTE_HOT);	/* opens the window */
	big.pfn = 9;
	assert_int_equal(policy_decide(p, big), TIER_REJECT_ONCE);	/* no candidate yet */
	assert_int_equal(policy_decide(p, big), TIER_REJECT_RATE);
	assert_int_equal(policy_decide(p, small), TIER_REJECT_RATE);
	small.now_ms = 13001;
	assert_int_equal(policy_decide(p, small), TIER_PROMOTE_HOT);
	policy_stop(p);
}

/*
 * What is in force outlives a swap, so each policy tells its own, at the latest with the
 * first fault of a moment that tier_now_and_then() picks.
 */
static void what_is_in_force_is_published(void **state)
{
	struct setting fixed[] = { { "hot_threshold_ms", 200 }, { "rate_limit_mbps", 2 }, { NULL } };
	struct setting mainline[] = { { "hot_threshold_ms", 300 }, { "rate_limit_mbps", 2 }, { NULL } };
	struct { const char *policy; const struct setting *set; __u32 threshold_ms, limit; } try[] = {
		{ "kernel", NULL, 0, 0 }, { "mru", NULL, 0, 0 }, { "fixed", fixed, 200, 512 },
		{ "mainline", mainline, 300, 512 }, { "twotouch", fixed, 200, 512 },
		{ "lazyscan", fixed, 200, 512 }, { "locality", fixed, 200, 512 },
	};
	struct tier_node before = { .threshold_ms = 77, .limit_pages_per_s = 88 };

	for (size_t i = 0; i < sizeof(try) / sizeof(try[0]); i++) {
		struct policy *p = policy_start(try[i].policy, try[i].set);

		policy_put_node(p, 0, &before);
		policy_decide(p, fault(0x100000, 60000));
		assert_int_equal(policy_node(p, 0).threshold_ms, try[i].threshold_ms);
		assert_int_equal(policy_node(p, 0).limit_pages_per_s, try[i].limit);
		policy_stop(p);
	}
}

static void mru_counts_candidates(void **state)
{
	struct policy *p = policy_start("mru", NULL);
	struct tier_fault f = fault(5000, 1);

	policy_decide(p, f);
	f.nr_pages = 512;
	policy_decide(p, f);
	assert_int_equal(policy_node(p, 0).candidates_pages, 513);
	policy_stop(p);
}

/* 1024 pages are expected in an interval: the band, a step, both bounds. */
static void mainline_moves_its_threshold(void **state)
{
	struct setting set[] = { { "rate_limit_mbps", 4 }, { "adjust_interval_ms", 1000 }, { NULL } };
	struct { __u32 now_ms, reference_ms, before_ms; __u64 candidates; __u32 after_ms; } try[] = {
		{ 6001, 1000, 1000, 1126, 1000 }, { 6001, 1000, 1000, 1127, 875 },
		{ 6001, 1000, 1000, 921, 1000 }, { 6001, 1000, 1000, 920, 1125 },
		{ 6001, 1000, 0, 920, 1125 }, { 6001, 1000, 2000, 0, 2000 },
		{ 6001, 1000, 1950, 0, 2000 }, { 6001, 1000, 125, 5000, 125 },
		{ 6001, 1000, 200, 5000, 125 },
		/* the interval is not over; another reference starts anew */
		{ 6000, 1000, 1000, 5000, 1000 }, { 6000, 1000, 1500, 0, 1500 },
		{ 6000, 500, 900, 0, 1000 }, { 6001, 500, 900, 0, 1125 },
	};

	for (size_t i = 0; i < sizeof(try) / sizeof(try[0]); i++) {
		struct policy *p = policy_start("mainline", set);
		struct tier_node node = {
			.adjust_start_ms = 5000, .reference_ms = try[i].reference_ms,
			.adjusted_ms = try[i].before_ms, .adjust_candidates_pages = 50000,
			.candidates_pages = 50000 + try[i].candidates,
		};

		policy_put_node(p, 0, &node);
		assert_int_equal(policy_decide(p, fault(try[i].now_ms, 60000)), TIER_REJECT_COLD);
		assert_int_equal(policy_node(p, 0).threshold_ms, try[i].after_ms);
		policy_stop(p);
	}
}

/* A page that the limit refuses has proved itself anew: its mark starts to age again. */
static void twotouch_limit_renews_the_mark(void **state)
{
	struct setting set[] = { { "rate_limit_mbps", 1 }, { "pair_window_ms", 60000 }, { NULL } };
	struct policy *p = policy_start("twotouch", set);
	struct tier_fault big = page(7, 10000, 1), small = page(8, 10000, 1);

	big.nr_pages = 512;
	assert_int_equal(policy_decide(p, big), TIER_REJECT_ONCE);
	assert_int_equal(policy_decide(p, small), TIER_REJECT_ONCE);
	big.now_ms = small.now_ms = 60000;
	assert_int_equal(policy_decide(p, big), TIER_PROMOTE_HOT);	/* opens the window */
	assert_int_equal(policy_decide(p, big), TIER_REJECT_ONCE);
	assert_int_equal(policy_decide(p, big), TIER_REJECT_RATE);
	assert_int_equal(policy_decide(p, small), TIER_REJECT_RATE);
	small.now_ms = 110000;
	assert_int_equal(policy_decide(p, small), TIER_PROMOTE_HOT);
	policy_stop(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_leaves_all_and_counts),
		cmocka_unit_test(mru_promotes_any),
		cmocka_unit_test(fixed_threshold_is_strict),
		cmocka_unit_test(fixed_zero_promotes_nothing),
		cmocka_unit_test(fixed_rate_limit),
		cmocka_unit_test(rate_limit_is_per_target_node),
		cmocka_unit_test(mainline_room_bypasses_and_resets),
		cmocka_unit_test(mainline_agrees_with_model),
		cmocka_unit_test(mainline_zero_limit_refuses),
		cmocka_unit_test(twotouch_needs_two_hot_faults),
		cmocka_unit_test(twotouch_ignores_a_sweep),
		cmocka_unit_test(twotouch_limit_keeps_the_mark),
		cmocka_unit_test(what_is_in_force_is_published),
		cmocka_unit_test(mru_counts_candidates),
		cmocka_unit_test(mainline_moves_its_threshold),
		cmocka_unit_test(twotouch_limit_renews_the_mark),
	};

	if (!policy_can_run())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
