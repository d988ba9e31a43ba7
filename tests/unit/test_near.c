// SPDX-License-Identifier: GPL-2.0
/* Windows after a hot page: size, bounds by VMA and PMD, who is a neighbour. */
#include <linux/types.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <tier/near.h>

#define PMD	(1ULL << 21)
#define BASE	0x7f0000000000ULL

static void window_is_a_power_of_two(void **state)
{
	assert_int_equal(tier_near_window(0, 12), 0);
	assert_int_equal(tier_near_window(4095, 12), 0);
	assert_int_equal(tier_near_window(4096, 12), 4096);
	assert_int_equal(tier_near_window(16384, 12), 16384);
	assert_int_equal(tier_near_window(16385, 12), 16384);
	assert_int_equal(tier_near_window(32767, 12), 16384);
	assert_int_equal(tier_near_window(PMD - 1, 12), PMD / 2);
	assert_int_equal(tier_near_window(PMD, 12), PMD);
	assert_int_equal(tier_near_window(~0ULL, 12), PMD);
	assert_int_equal(tier_near_window(~0ULL, 16), 1ULL << 29);
}

static void end_is_bounded(void **state)
{
	assert_int_equal(tier_near_end(BASE, BASE + PMD, 16384, 12), BASE + 16384);
	assert_int_equal(tier_near_end(BASE, BASE + 8192, 16384, 12), BASE + 8192);
	assert_int_equal(tier_near_end(BASE + PMD - 4096, BASE + 9 * PMD, 16384, 12), BASE + PMD);
	assert_int_equal(tier_near_end(BASE + 4096, BASE + 9 * PMD, PMD, 12), BASE + PMD);
}

static void who_is_a_neighbour(void **state)
{
	struct tier_near near = { .mm_id = 5, .vm_start = BASE, .addr = BASE + 0x10000, .now_ms = 50000 };
	struct tier_fault f = { .mm_id = 5, .vm_start = BASE, .vm_end = BASE + PMD,
				.addr = BASE + 0x11000, .now_ms = 52000, .latency_ms = 3000 };
	struct tier_fault g;

	assert_true(tier_near_covers(&near, &f, 16384, 12));
	g = f;
	g.addr = BASE + 0x13000;		/* the last one */
	assert_true(tier_near_covers(&near, &g, 16384, 12));
	g.addr = BASE + 0x14000;		/* beyond */
	assert_false(tier_near_covers(&near, &g, 16384, 12));
	g.addr = near.addr;			/* itself */
	assert_false(tier_near_covers(&near, &g, 16384, 12));
	g.addr = near.addr - 4096;		/* before */
	assert_false(tier_near_covers(&near, &g, 16384, 12));
	g = f;
	g.mm_id = 6;
	assert_false(tier_near_covers(&near, &g, 16384, 12));
	g = f;
	g.vm_start += 4096;
	assert_false(tier_near_covers(&near, &g, 16384, 12));
	/* scanned after the hot fault: it did not wait then */
	g = f;
	g.latency_ms = 2000;
	assert_true(tier_near_covers(&near, &g, 16384, 12));
	g.latency_ms = 1999;
	assert_false(tier_near_covers(&near, &g, 16384, 12));
	/* an empty place covers nothing, whatever the clock */
	near = (struct tier_near){};
	g = f;
	g.latency_ms = 0xffffffff;
	assert_false(tier_near_covers(&near, &g, 16384, 12));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(window_is_a_power_of_two),
		cmocka_unit_test(end_is_bounded),
		cmocka_unit_test(who_is_a_neighbour),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
