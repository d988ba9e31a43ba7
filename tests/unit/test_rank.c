// SPDX-License-Identifier: GPL-2.0
/*
 * Threshold by rank: populations told apart, budgets, exploration and its
 * feedback, decay; on made-up populations of known access intervals.
 */
#include <linux/types.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <tier/rank.h>

#define PLENTY	100000000ULL

/* Pages accessed at random, every mean_ms on average, scanned at a random moment. */
static void populate(struct tier_rank *rank, double pages, double mean_ms)
{
	for (__u32 slot = 0; slot <= TIER_HIST_LAST; slot++) {
		double from = tier_hist_low(slot), to = tier_hist_low(slot + 1);

		rank->pages[slot] += lround(pages * (exp(-from / mean_ms) - exp(-to / mean_ms)));
	}
}

static void hot_population_stands_out(void **state)
{
	struct tier_rank rank = {};
	double hot, cold;

	populate(&rank, 4096, 43);
	populate(&rank, 61440, 6000);
	tier_rank_pick(&rank, PLENTY, 31);
	hot = 1 - exp(-(double)rank.hot_ms / 43);
	cold = 1 - exp(-(double)rank.hot_ms / 6000);
	print_message("threshold %u ms: %.1f %% of the hot, %.1f %% of the cold\n", rank.hot_ms,
		      100 * hot, 100 * cold);
	assert_true(hot > 0.9);
	assert_true(cold < 0.05);
}

/* The same shape at a hundredth or thirty times the speed: same shares. */
static void scale_does_not_matter(void **state)
{
	double scale[] = { 0.2, 1, 30 };

	for (int i = 0; i < 3; i++) {
		struct tier_rank rank = {};

		populate(&rank, 5000, 50 * scale[i]);
		populate(&rank, 60000, 5000 * scale[i]);
		tier_rank_pick(&rank, PLENTY, 31);
		assert_in_range(rank.hot_ms, 110 * scale[i], 330 * scale[i]);
	}
}

static void one_population_is_not_hot(void **state)
{
	double mean[] = { 10, 100, 1000, 10000, 300000 };

	for (int i = 0; i < 5; i++) {
		struct tier_rank rank = {};

		populate(&rank, 50000, mean[i]);
		tier_rank_pick(&rank, PLENTY, 31);
		assert_int_equal(rank.hot_ms, 0);
	}
}

static void few_pages_prove_nothing(void **state)
{
	struct tier_rank rank = {};

	populate(&rank, 30, 20);
	populate(&rank, 300, 60000);
	tier_rank_pick(&rank, PLENTY, 31);
	assert_int_equal(rank.hot_ms, 0);
	tier_rank_pick(&(struct tier_rank){}, PLENTY, 0);
}

/* A budget below the hot mass takes the hottest, to within a slot. */
static void budget_cuts_by_rank(void **state)
{
	struct tier_rank rank = {};
	__u32 full;

	populate(&rank, 8000, 43);
	populate(&rank, 80000, 6000);
	tier_rank_pick(&rank, PLENTY, 31);
	full = rank.hot_ms;
	tier_rank_pick(&rank, 62, 31);		/* 1984 pages of the decaying sum */
	assert_true(rank.hot_ms < full);
	assert_true(rank.below[tier_hist_slot(rank.hot_ms) - 1] <= 1984);
	assert_true(rank.below[tier_hist_slot(rank.hot_ms) + 1] > 1984);
}

static void exploration_takes_the_hottest_few(void **state)
{
	struct tier_rank rank = {};

	populate(&rank, 80000, 6000);
	tier_rank_pick(&rank, 640, 6);		/* 320 pages of the decaying sum */
	assert_int_equal(rank.hot_ms, 0);
	assert_true(rank.below[tier_hist_slot(rank.explore_ms) - 1] <= 320);
	assert_true(rank.below[tier_hist_slot(rank.explore_ms) + 1] > 320);
	/* however large the budget: no more than the hottest sixteenth of the pages */
	tier_rank_pick(&rank, PLENTY, 4);
	assert_true(rank.below[tier_hist_slot(rank.explore_ms) - 1] <= 5000);
	assert_true(rank.below[tier_hist_slot(rank.explore_ms) + 1] > 5000);
	tier_rank_pick(&rank, PLENTY, 0);
	assert_true(rank.explore_ms > 1000000);
}

static void no_fault_opens_nothing(void **state)
{
	struct tier_rank rank = {};

	tier_rank_pick(&rank, 1000, 0);
	assert_int_equal(rank.hot_ms, 0);
	assert_int_equal(rank.explore_ms, 0);
}

static void exploration_follows_returns(void **state)
{
	struct tier_rank rank = {};
	__u32 now = 100000;

	tier_rank_adjust(&rank, now, 1, 1000, 20000);
	assert_int_equal(rank.explore_shift, TIER_RANK_EXPLORE_START);
	/* nothing comes back: wider after each wait, not sooner */
	tier_rank_adjust(&rank, now += 20000, 1, 1000, 20000);
	assert_int_equal(rank.explore_shift, TIER_RANK_EXPLORE_START);
	tier_rank_adjust(&rank, now += 1, 1, 1000, 20000);
	assert_int_equal(rank.explore_shift, TIER_RANK_EXPLORE_START - 1);
	/* a third comes back: narrower at once, step by step with new evidence only */
	rank.explored_pages = 300;
	rank.returned_pages = 100;
	tier_rank_adjust(&rank, now += 1000, 1, 1000, 20000);
	assert_int_equal(rank.explore_shift, TIER_RANK_EXPLORE_START);
	tier_rank_adjust(&rank, now += 1000, 1, 1000, 20000);
	assert_int_equal(rank.explore_shift, TIER_RANK_EXPLORE_START);
	/* between a tenth and a quarter nothing moves */
	rank.explored_pages = 300;
	rank.returned_pages = 60;
	tier_rank_adjust(&rank, now += 30000, 1, 1000, 20000);
	assert_int_equal(rank.explore_shift, TIER_RANK_EXPLORE_START);
	for (int i = 0; i < 40; i++) {
		rank.explored_pages = rank.returned_pages = 300;
		tier_rank_adjust(&rank, now += 1000, 1, 1000, 20000);
	}
	assert_int_equal(rank.explore_shift, TIER_RANK_EXPLORE_MAX);
	for (int i = 0; i < 40; i++) {
		rank.explored_pages = rank.returned_pages = 0;
		tier_rank_adjust(&rank, now += 30000, 1, 1000, 20000);
	}
	assert_int_equal(rank.explore_shift, 0);
}

static void the_past_fades(void **state)
{
	struct tier_rank rank = { .pages = { [10] = 1000000, [11] = 1 } };

	for (int i = 0; i < 22; i++)
		tier_rank_decay(&rank, 1);
	assert_in_range(rank.pages[10], 490000, 510000);
	assert_int_equal(rank.pages[11], 0);
	tier_rank_decay(&rank, 3600);
	assert_int_equal(rank.pages[10], 0);
	tier_rank_decay(&rank, 0xffffffff);
}

static void due_once_a_second(void **state)
{
	struct tier_rank rank = {};

	assert_true(tier_rank_due(&rank, 0xffffff00));
	assert_false(tier_rank_due(&rank, 0xffffff00 + 1000));
	assert_true(tier_rank_due(&rank, 0xffffff00 + 1001));
	assert_false(tier_rank_due(&rank, 0xffffff00 + 1002));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hot_population_stands_out),
		cmocka_unit_test(scale_does_not_matter),
		cmocka_unit_test(one_population_is_not_hot),
		cmocka_unit_test(few_pages_prove_nothing),
		cmocka_unit_test(budget_cuts_by_rank),
		cmocka_unit_test(exploration_takes_the_hottest_few),
		cmocka_unit_test(no_fault_opens_nothing),
		cmocka_unit_test(exploration_follows_returns),
		cmocka_unit_test(the_past_fades),
		cmocka_unit_test(due_once_a_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
