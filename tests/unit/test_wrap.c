// SPDX-License-Identifier: GPL-2.0
/* True latency from a wrapping stamp and the recorded scans of its region. */
#include <linux/types.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <tier/wrap.h>

#define WRAP	4096U
#define UNIT	2U

/* What the stamp shows of a page scanned at stamp_ms. */
static __u32 seen(__u32 now, __u32 stamp_ms)
{
	return (now - stamp_ms) & (WRAP - UNIT);
}

static __u32 resolve(const struct tier_region *r, __u32 now, __u32 stamp_ms)
{
	return tier_wrap_latency(r, now, seen(now, stamp_ms), WRAP, UNIT);
}

static void record(struct tier_region *r, __u32 scan_ms, __u32 took_ms)
{
	r->scan_ms[r->nr % TIER_REGION_SCANS] = scan_ms;
	r->took_ms[r->nr % TIER_REGION_SCANS] = took_ms;
	r->nr++;
}

static void unknown_region_is_plain(void **state)
{
	struct tier_region empty = {};

	assert_int_equal(tier_wrap_latency(NULL, 9999, 10, WRAP, UNIT), 10);
	assert_int_equal(tier_wrap_latency(&empty, 9999, 10, WRAP, UNIT), 10);
}

static void wide_stamp_is_plain(void **state)
{
	struct tier_region r = {};

	record(&r, 1000, 10);
	assert_int_equal(tier_wrap_latency(&r, 900000, 10, 0, 1), 10);
}

static void wrapped_page_is_old(void **state)
{
	struct tier_region r = {};

	record(&r, 50000, 20);
	assert_int_equal(resolve(&r, 50000 + 10, 50000), 10);
	assert_int_equal(resolve(&r, 50000 + WRAP + 10, 50000), WRAP + 10);
	assert_int_equal(resolve(&r, 50000 + 7 * WRAP + 10, 50000), 7 * WRAP + 10);
}

/* Hot pages are stamped by the newest scan, cold ones keep an older stamp. */
static void each_page_finds_its_scan(void **state)
{
	struct tier_region r = {};
	__u32 now = 200000;

	for (int i = 0; i < 20; i++)
		record(&r, 100000 + i * 5000, 40);	/* last at 195000 */
	for (int i = 12; i < 20; i++) {
		__u32 stamp = 100000 + i * 5000 - 20;

		assert_int_equal(resolve(&r, now, stamp), now - stamp);
	}
	/* older than all that is recorded: at least as old as the oldest */
	assert_true(resolve(&r, now, 100000) >= now - (100000 + 12 * 5000));
	assert_int_equal(resolve(&r, now, 100000) % UNIT, 0);
	assert_int_equal((resolve(&r, now, 100000) - seen(now, 100000)) % WRAP, 0);
}

/* A scan of two seconds: any stamp within it is explained. */
static void long_scan(void **state)
{
	struct tier_region r = {};

	record(&r, 30000, 2000);
	for (__u32 stamp = 28000; stamp <= 30000; stamp += 100)
		assert_int_equal(resolve(&r, 36000, stamp), 36000 - stamp);
}

/* A fault during the scan that stamped its page: the record is still open. */
static void running_scan(void **state)
{
	struct tier_region r = {};

	record(&r, 10000, 30);
	record(&r, 40000, TIER_SCAN_RUNNING);
	assert_int_equal(resolve(&r, 40100, 40050), 50);
	assert_int_equal(resolve(&r, 40100, 10000), 40100 - 10000);
	/* the observer went away long ago: the mark explains nothing any more */
	assert_int_equal(resolve(&r, 40000 + 50000, 10000), 80000);
}

static void clock_wraps(void **state)
{
	struct tier_region r = {};
	__u32 scan = 0xfffffff0;

	record(&r, scan, 8);
	assert_int_equal(resolve(&r, scan + 100, scan), 100);
	assert_int_equal(resolve(&r, scan + WRAP + 100, scan), WRAP + 100);
}

/* Recorded by another CPU just after the fault read its clock. */
static void record_from_the_future(void **state)
{
	struct tier_region r = {};

	record(&r, 20004, 12);
	assert_int_equal(resolve(&r, 20000, 19998), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown_region_is_plain),
		cmocka_unit_test(wide_stamp_is_plain),
		cmocka_unit_test(wrapped_page_is_old),
		cmocka_unit_test(each_page_finds_its_scan),
		cmocka_unit_test(long_scan),
		cmocka_unit_test(running_scan),
		cmocka_unit_test(clock_wraps),
		cmocka_unit_test(record_from_the_future),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
