// SPDX-License-Identifier: GPL-2.0
/* Thrash brake: steps, hysteresis, bounds, small samples, idle times. */
#include <linux/types.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <tier/brake.h>

static __u32 now;

/* An interval with so many candidates, of which so many return; admitted ones. */
static __u32 interval(struct tier_brake *brake, __u32 candidates, __u32 returned)
{
	__u32 admitted = 0;

	for (__u32 i = 0; i < candidates; i++)
		admitted += tier_brake_admit(brake, now, 1, i < returned, 20);
	now += TIER_BRAKE_INTERVAL_MS + 1;
	return admitted;
}

static void halves_and_recovers(void **state)
{
	struct tier_brake brake = {};

	now = 1000;
	assert_int_equal(interval(&brake, 640, 640), 640);
	assert_in_range(interval(&brake, 640, 640), 320, 321);
	assert_in_range(interval(&brake, 640, 640), 160, 161);
	/* between half the limit and the limit it stays (10 to 20 %) */
	interval(&brake, 640, 100);
	assert_in_range(interval(&brake, 640, 100), 80, 81);
	assert_in_range(interval(&brake, 640, 0), 80, 81);
	assert_in_range(interval(&brake, 640, 0), 160, 161);
	assert_in_range(interval(&brake, 640, 0), 320, 321);
	assert_int_equal(interval(&brake, 640, 0), 640);
	assert_int_equal(interval(&brake, 640, 0), 640);
}

static void edges_of_the_limit(void **state)
{
	struct tier_brake brake = { .candidates_pages = 100, .returned_pages = 20 };

	tier_brake_step(&brake, 3000, 20);	/* exactly the limit is not above it */
	assert_int_equal(brake.level, 0);
	assert_int_equal(brake.share_percent, 20);
	brake.candidates_pages = 100;
	brake.returned_pages = 21;
	tier_brake_step(&brake, 3000, 20);
	assert_int_equal(brake.level, 1);
	brake.candidates_pages = 100;
	brake.returned_pages = 11;
	tier_brake_step(&brake, 3000, 20);
	assert_int_equal(brake.level, 1);
	brake.candidates_pages = 100;
	brake.returned_pages = 9;
	tier_brake_step(&brake, 3000, 20);
	assert_int_equal(brake.level, 0);
}

static void never_beyond_the_last_step(void **state)
{
	struct tier_brake brake = {};

	now = 1000;
	for (int i = 0; i < 30; i++)
		interval(&brake, 640, 640);
	assert_int_equal(brake.level, TIER_BRAKE_MAX_LEVEL);
	assert_in_range(interval(&brake, 640, 640), 10, 10);
}

static void few_candidates_prove_nothing(void **state)
{
	struct tier_brake brake = {};

	now = 1000;
	for (int i = 0; i < 4; i++)
		interval(&brake, 10, 10);
	assert_int_equal(brake.level, 0);
	/* together they do, as long as they are not ten seconds apart */
	interval(&brake, 70, 70);
	assert_int_equal(brake.level, 1);
	now += 60000;
	interval(&brake, 10, 10);
	assert_int_equal(brake.level, 0);
}

static void clock_wraps(void **state)
{
	struct tier_brake brake = {};

	now = 0xfffff000;
	for (int i = 0; i < 6; i++)
		interval(&brake, 640, 640);
	assert_int_equal(brake.level, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(halves_and_recovers),
		cmocka_unit_test(edges_of_the_limit),
		cmocka_unit_test(never_beyond_the_last_step),
		cmocka_unit_test(few_candidates_prove_nothing),
		cmocka_unit_test(clock_wraps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
