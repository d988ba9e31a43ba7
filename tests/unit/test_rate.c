// SPDX-License-Identifier: GPL-2.0
/* Rate limit: units, window edges, large folios, clock wrap. */
#include <linux/types.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <tier/rate.h>

static void units(void **state)
{
	assert_int_equal(tier_mbps_to_pages(1, 12), 256);
	assert_int_equal(tier_mbps_to_pages(65536, 12), 16777216);
	assert_int_equal(tier_mbps_to_pages(1, 16), 16);
	assert_int_equal(tier_mbps_to_pages(0, 12), 0);
	assert_int_equal(tier_mbps_to_pages(0xffffffff, 12), 0xffffffffULL << 8);
}

static void no_limit_counts_candidates(void **state)
{
	struct tier_node node = {};

	for (int i = 0; i < 1000; i++)
		assert_true(tier_rate_admit(&node, 5, 512, 0));
	assert_int_equal(node.candidates_pages, 512000);
	assert_int_equal(node.window_start_ms, 0);
}

/* The fault that opens a window is not counted in it; later ones are. */
static void window_edges(void **state)
{
	struct tier_node node = {};
	__u32 now = 70000;

	for (int i = 0; i < 5; i++)
		assert_true(tier_rate_admit(&node, now, 1, 5));
	assert_int_equal(node.window_start_ms, now);
	assert_false(tier_rate_admit(&node, now + 999, 1, 5));
	assert_false(tier_rate_admit(&node, now + 1000, 1, 5));
	assert_true(tier_rate_admit(&node, now + 1001, 1, 5));
	assert_int_equal(node.window_start_ms, now + 1001);
	assert_int_equal(node.candidates_pages, 8);
	assert_int_equal(node.window_candidates_pages, 8);
}

static void refused_pages_use_the_window_up(void **state)
{
	struct tier_node node = {};

	assert_true(tier_rate_admit(&node, 2000, 1, 100));
	assert_false(tier_rate_admit(&node, 2000, 512, 100));
	assert_false(tier_rate_admit(&node, 2000, 1, 100));
}

static void clock_wraps(void **state)
{
	struct tier_node node = {};
	__u32 now = 0xffffff00;

	assert_true(tier_rate_admit(&node, now, 1, 1));
	assert_false(tier_rate_admit(&node, now + 1000, 1, 1));	/* 744 after the wrap */
	assert_true(tier_rate_admit(&node, now + 1001, 1, 1));
}

/* Counters may overflow: only their difference matters. */
static void counter_is_compared_by_difference(void **state)
{
	struct tier_node node = { .candidates_pages = ~0ULL - 2, .window_candidates_pages = ~0ULL - 2,
				  .window_start_ms = 1000 };

	assert_true(tier_rate_admit(&node, 1500, 4, 5));
	assert_false(tier_rate_admit(&node, 1500, 1, 5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units),
		cmocka_unit_test(no_limit_counts_candidates),
		cmocka_unit_test(window_edges),
		cmocka_unit_test(refused_pages_use_the_window_up),
		cmocka_unit_test(clock_wraps),
		cmocka_unit_test(counter_is_compared_by_difference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
