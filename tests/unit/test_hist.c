// SPDX-License-Identifier: GPL-2.0
/* Latency histogram: slots, their bounds and quantiles, over all of 32 bits. */
#include <linux/types.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <tier/hist.h>

static void small_values_are_exact(void **state)
{
	for (__u32 ms = 0; ms < 8; ms++) {
		assert_int_equal(tier_hist_slot(ms), ms);
		assert_int_equal(tier_hist_low(ms), ms);
	}
}

/* Slots partition the range: each begins where the one before ends. */
static void bounds_and_slots_agree(void **state)
{
	for (__u32 slot = 0; slot <= TIER_HIST_LAST; slot++) {
		__u64 low = tier_hist_low(slot), high = tier_hist_high(slot);

		assert_true(low <= high);
		assert_true(high <= 0xffffffffULL);
		assert_int_equal(tier_hist_slot(low), slot);
		assert_int_equal(tier_hist_slot(high), slot);
		if (slot >= 4)
			assert_true((high - low + 1) * 4 <= low);
	}
	assert_int_equal(tier_hist_slot(0xffffffff), TIER_HIST_LAST);
	assert_int_equal(tier_hist_high(TIER_HIST_LAST), 0xffffffff);
	assert_int_equal(tier_hist_low(TIER_HIST_LAST + 1), 1ULL << 32);
	assert_true(TIER_HIST_LAST < TIER_HIST_SLOTS);
}

static void known_slots(void **state)
{
	assert_int_equal(tier_hist_slot(8), 8);
	assert_int_equal(tier_hist_slot(9), 8);
	assert_int_equal(tier_hist_slot(10), 9);
	assert_int_equal(tier_hist_slot(1000), 35);
	assert_int_equal(tier_hist_low(35), 896);
	assert_int_equal(tier_hist_slot(1024), 36);
}

static void quantiles(void **state)
{
	__u64 pages[TIER_HIST_SLOTS] = {};

	assert_int_equal(tier_hist_quantile(pages, 500), TIER_HIST_SLOTS);
	pages[10] = 1;
	assert_int_equal(tier_hist_quantile(pages, 0), 10);
	assert_int_equal(tier_hist_quantile(pages, 1000), 10);
	pages[20] = 99;
	assert_int_equal(tier_hist_quantile(pages, 10), 10);	/* rank 1 of 100 */
	assert_int_equal(tier_hist_quantile(pages, 11), 20);	/* rank 2 */
	assert_int_equal(tier_hist_quantile(pages, 500), 20);
	assert_int_equal(tier_hist_quantile(pages, 5000), 20);
	pages[TIER_HIST_LAST] = 100;
	assert_int_equal(tier_hist_quantile(pages, 500), 20);
	assert_int_equal(tier_hist_quantile(pages, 501), TIER_HIST_LAST);
	pages[10] = 1ULL << 53;
	assert_int_equal(tier_hist_quantile(pages, 990), 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_values_are_exact),
		cmocka_unit_test(bounds_and_slots_agree),
		cmocka_unit_test(known_slots),
		cmocka_unit_test(quantiles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
