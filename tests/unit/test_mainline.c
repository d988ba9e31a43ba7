// SPDX-License-Identifier: GPL-2.0
/* Mainline's automatic threshold: band, steps, bounds, intervals, overflow. */
#include <linux/types.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <tier/mainline.h>

static void band_edges(void **state)
{
	/* 10 % of 1000 on either side: at the edge nothing moves */
	assert_int_equal(tier_mainline_step(1000, 1000, 1100, 1000), 1000);
	assert_int_equal(tier_mainline_step(1000, 1000, 1101, 1000), 875);
	assert_int_equal(tier_mainline_step(1000, 1000, 900, 1000), 1000);
	assert_int_equal(tier_mainline_step(1000, 1000, 899, 1000), 1125);
	assert_int_equal(tier_mainline_step(1000, 1000, 0, 0), 1000);
	assert_int_equal(tier_mainline_step(1000, 1000, 1, 0), 875);
}

static void bounds(void **state)
{
	__u32 threshold = 0;

	for (int i = 0; i < 20; i++)
		threshold = tier_mainline_step(threshold, 1000, 0, 1000);
	assert_int_equal(threshold, 2000);
	for (int i = 0; i < 20; i++)
		threshold = tier_mainline_step(threshold, 1000, 5000, 1000);
	assert_int_equal(threshold, 125);
	/* unset starts at the reference; a step of a small reference is nothing */
	assert_int_equal(tier_mainline_step(0, 1000, 0, 1000), 1125);
	assert_int_equal(tier_mainline_step(0, 7, 5000, 1000), 7);
	assert_int_equal(tier_mainline_step(0, 0, 5000, 1000), 0);
	assert_int_equal(tier_mainline_step(0, 0, 0, 1000), 0);
	/* left over from a larger reference: no wrap below zero */
	assert_int_equal(tier_mainline_step(10, 1000, 5000, 1000), 125);
}

static void largest_values(void **state)
{
	__u64 limit = 4294967295ULL << 8;	/* the largest setting, 4 KiB pages */
	__u64 expected = limit * 600000 / 1000;

	assert_true(expected * 11 / 10 > expected);
	assert_int_equal(tier_mainline_step(1000, 1000, expected, expected), 1000);
	assert_int_equal(tier_mainline_step(0, 1000000000, 0, 10), 1125000000);
	assert_int_equal(tier_mainline_step(2000000000, 1000000000, 0, 10), 2000000000);
}

static void interval_edges(void **state)
{
	struct tier_node node = { .adjust_start_ms = 1000, .reference_ms = 1000 };

	/* 100 pages/s over 60 s are 6000 expected; none came */
	assert_int_equal(tier_mainline_threshold(&node, 61000, 100, 1000, 60000), 1000);
	assert_int_equal(node.adjust_start_ms, 1000);
	assert_int_equal(tier_mainline_threshold(&node, 61001, 100, 1000, 60000), 1125);
	assert_int_equal(node.adjust_start_ms, 61001);
	assert_int_equal(tier_mainline_threshold(&node, 61002, 100, 1000, 60000), 1125);
	node.candidates_pages += 6601;
	assert_int_equal(tier_mainline_threshold(&node, 121002, 100, 1000, 60000), 1000);
	assert_int_equal(node.adjust_candidates_pages, 6601);
	node.candidates_pages += 6600;
	assert_int_equal(tier_mainline_threshold(&node, 181003, 100, 1000, 60000), 1000);
}

static void first_fault_opens_the_interval(void **state)
{
	struct tier_node node = { .candidates_pages = 77 };

	assert_int_equal(tier_mainline_threshold(&node, 500000, 100, 1000, 60000), 1000);
	assert_int_equal(node.adjust_start_ms, 500000);
	assert_int_equal(node.adjust_candidates_pages, 77);
	assert_int_equal(tier_mainline_threshold(&node, 560000, 100, 1000, 60000), 1000);
	assert_int_equal(tier_mainline_threshold(&node, 560001, 100, 1000, 60000), 1125);
}

static void reset_and_new_reference(void **state)
{
	struct tier_node node = { .adjust_start_ms = 1000, .reference_ms = 1000, .adjusted_ms = 1500 };

	assert_int_equal(tier_mainline_threshold(&node, 1500, 100, 1000, 60000), 1500);
	node.adjusted_ms = 0;		/* free-space rule */
	assert_int_equal(tier_mainline_threshold(&node, 1501, 100, 1000, 60000), 1000);
	node.adjusted_ms = 1500;
	assert_int_equal(tier_mainline_threshold(&node, 1502, 100, 300, 60000), 300);
}

static void clock_wraps(void **state)
{
	struct tier_node node = { .adjust_start_ms = 0xffffff00, .reference_ms = 800 };

	assert_int_equal(tier_mainline_threshold(&node, 0xffffff00 + 60000, 1, 800, 60000), 800);
	assert_int_equal(tier_mainline_threshold(&node, 0xffffff00 + 60001, 1, 800, 60000), 900);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(band_edges),
		cmocka_unit_test(bounds),
		cmocka_unit_test(largest_values),
		cmocka_unit_test(interval_edges),
		cmocka_unit_test(first_fault_opens_the_interval),
		cmocka_unit_test(reset_and_new_reference),
		cmocka_unit_test(clock_wraps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
