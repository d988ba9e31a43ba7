// SPDX-License-Identifier: GPL-2.0
/* Lazy scanning: back-off and its bound, waking up, PID windows, free ranges. */
#include <linux/types.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <tier/lazy.h>

static bool pass(struct tier_lazy_vma *vma, __u32 seq, __u32 max_backoff)
{
	struct tier_scan scan = { .scan_seq = seq, .pid = 7 };

	return tier_lazy_scan(vma, &scan, max_backoff, 4);
}

static void backs_off_to_the_bound(void **state)
{
	struct tier_lazy_vma vma = {};
	__u32 skipped = 0, longest = 0, scans = 0;

	for (__u32 seq = 10; seq < 210; seq++) {
		if (pass(&vma, seq, 3)) {
			scans++;
			skipped = 0;
		} else if (++skipped > longest) {
			longest = skipped;
		}
	}
	assert_int_equal(longest, 7);
	/* 1 + 1 + 1 to get there, then one in eight */
	assert_in_range(scans, 26, 28);
}

static void first_skips(void **state)
{
	struct tier_lazy_vma vma = {};
	bool want[] = { 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1 };

	for (__u32 i = 0; i < sizeof(want); i++)
		assert_int_equal(pass(&vma, 10 + i, 3), want[i]);
}

static void hot_fault_wakes_up(void **state)
{
	struct tier_lazy_vma vma = {};
	__u32 seq = 10;

	for (int i = 0; i < 40; i++)
		pass(&vma, seq++, 3);
	while (!pass(&vma, seq++, 3))
		;
	tier_lazy_fault(&vma, 7, 1000, 4000, true);
	for (int i = 0; i < 5; i++) {
		assert_true(pass(&vma, seq++, 3));
		tier_lazy_fault(&vma, 7, 1000, 4000, true);
	}
	/* a cold fault is none, and the back-off begins anew at one pass */
	assert_true(pass(&vma, seq++, 3));
	tier_lazy_fault(&vma, 7, 1000, 4000, false);
	assert_false(pass(&vma, seq++, 3));
	assert_true(pass(&vma, seq++, 3));
}

/* Even while it sits out: a page marked before may still be found hot. */
static void wakes_up_while_skipped(void **state)
{
	struct tier_lazy_vma vma = {};
	__u32 seq = 10;

	for (int i = 0; i < 8; i++)
		pass(&vma, seq++, 3);
	assert_false(pass(&vma, seq++, 3));
	tier_lazy_fault(&vma, 7, 1000, 4000, true);
	assert_true(pass(&vma, seq++, 3));
}

static void zero_backoff_scans_all(void **state)
{
	struct tier_lazy_vma vma = {};

	for (__u32 seq = 10; seq < 30; seq++)
		assert_true(pass(&vma, seq, 0));
	/* a bound beyond the largest is cut, not shifted out */
	for (__u32 seq = 30; seq < 3000; seq++)
		pass(&vma, seq, 200);
	assert_int_equal(vma.backoff, TIER_LAZY_MAX_BACKOFF);
	/* lowered on the fly: in force when the VMA has sat out what it was given */
	for (__u32 seq = 3000; seq < 3100; seq++)
		pass(&vma, seq, 1);
	assert_int_equal(vma.backoff, 1);
}

static void young_space_is_scanned(void **state)
{
	struct tier_lazy_vma vma = {};

	assert_true(pass(&vma, 0, 3));
	assert_true(pass(&vma, 1, 3));
}

static void one_verdict_per_pass(void **state)
{
	struct tier_lazy_vma vma = {};

	assert_true(pass(&vma, 10, 3));
	assert_true(pass(&vma, 10, 3));
	for (int i = 0; i < 10; i++)
		assert_false(pass(&vma, 11, 3));
	assert_true(pass(&vma, 12, 3));
}

static void pid_windows(void **state)
{
	struct tier_lazy_vma vma = {};
	struct tier_scan mine = { .scan_seq = 10, .pid = 7 }, other = { .scan_seq = 10, .pid = 8 };

	assert_true(tier_lazy_pid(7) != tier_lazy_pid(8));
	tier_lazy_fault(&vma, 7, 100000, 4000, true);
	for (int i = 0; i < 4; i++)
		assert_true(tier_lazy_scan(&vma, &other, 3, 4));
	/* free ranges used up: only who faulted here may go on */
	assert_false(tier_lazy_scan(&vma, &other, 3, 4));
	assert_true(tier_lazy_scan(&vma, &mine, 3, 4));
	/* the count restarts with the pass */
	tier_lazy_fault(&vma, 7, 100000, 4000, true);
	other.scan_seq = mine.scan_seq = 11;
	assert_true(tier_lazy_scan(&vma, &other, 3, 4));
	/* remembered through the next window, forgotten in the one after it */
	vma.ranges = 100;
	tier_lazy_fault(&vma, 8, 104001, 4000, true);
	assert_true(tier_lazy_scan(&vma, &mine, 3, 4));
	tier_lazy_fault(&vma, 8, 108002, 4000, true);
	assert_false(tier_lazy_scan(&vma, &mine, 3, 4));
	assert_true(tier_lazy_scan(&vma, &other, 3, 4));
	/* after a long silence the older window counts for nothing */
	tier_lazy_fault(&vma, 7, 200000, 4000, true);
	assert_false(tier_lazy_scan(&vma, &other, 3, 4));
	/* nobody known: nobody is kept out */
	vma.pids[0] = vma.pids[1] = 0;
	assert_true(tier_lazy_scan(&vma, &other, 3, 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(backs_off_to_the_bound),
		cmocka_unit_test(first_skips),
		cmocka_unit_test(hot_fault_wakes_up),
		cmocka_unit_test(wakes_up_while_skipped),
		cmocka_unit_test(zero_backoff_scans_all),
		cmocka_unit_test(young_space_is_scanned),
		cmocka_unit_test(one_verdict_per_pass),
		cmocka_unit_test(pid_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
