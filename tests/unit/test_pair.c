// SPDX-License-Identifier: GPL-2.0
/* Marks of pages seen once: age, replacement, time wrap, false positives. */
#include <linux/types.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <tier/pair.h>

#define HASH(tag)	((__u64)(tag) << 44)

static void add_has_drop(void **state)
{
	__u64 bucket = 0, hash = HASH(0xabcde);

	assert_false(tier_pair_has(bucket, hash, 5000, 60000));
	bucket = tier_pair_add(bucket, hash, 5000);
	assert_true(tier_pair_has(bucket, hash, 5000, 60000));
	assert_false(tier_pair_has(bucket, HASH(0xabcdf), 5000, 60000));
	assert_int_equal(tier_pair_drop(bucket, HASH(0xabcdf)), bucket);
	assert_int_equal(tier_pair_drop(bucket, hash), 0);
}

/* A hash of zero at a time of zero must not look like an empty place. */
static void zero_is_a_page_too(void **state)
{
	__u64 bucket = tier_pair_add(0, 0, 0);

	assert_true(bucket != 0);
	assert_true(tier_pair_has(bucket, 0, 0, 2048));
	assert_false(tier_pair_has(0, 0, 0, 2048));
}

static void marks_age(void **state)
{
	__u64 bucket = tier_pair_add(0, HASH(1), 10 * 1024);

	assert_true(tier_pair_has(bucket, HASH(1), 70 * 1024, 60 * 1024));
	assert_false(tier_pair_has(bucket, HASH(1), 71 * 1024, 60 * 1024));
	/* the stated maximum is told apart, a whole wrap is not */
	assert_true(tier_pair_has(bucket, HASH(1), 10 * 1024 + TIER_PAIR_MAX_AGE_MS, 3600 * 1024));
	assert_true(tier_pair_has(bucket, HASH(1), 10 * 1024 + (1U << 22), 0));
}

static void older_mark_goes(void **state)
{
	__u64 bucket = 0;

	bucket = tier_pair_add(bucket, HASH(1), 10000);
	bucket = tier_pair_add(bucket, HASH(2), 20000);
	assert_true(tier_pair_has(bucket, HASH(1), 20000, 60000));
	assert_true(tier_pair_has(bucket, HASH(2), 20000, 60000));
	bucket = tier_pair_add(bucket, HASH(3), 30000);
	assert_false(tier_pair_has(bucket, HASH(1), 30000, 60000));
	assert_true(tier_pair_has(bucket, HASH(2), 30000, 60000));
	assert_true(tier_pair_has(bucket, HASH(3), 30000, 60000));
	/* marking again moves the time, it takes no second place */
	bucket = tier_pair_add(bucket, HASH(2), 90000);
	assert_true(tier_pair_has(bucket, HASH(2), 150000, 61440));
	assert_true(tier_pair_has(bucket, HASH(3), 90000, 61440));
}

static void clock_wraps(void **state)
{
	__u64 bucket = tier_pair_add(0, HASH(9), 0xffffff00);

	assert_true(tier_pair_has(bucket, HASH(9), 0xffffff00 + 5000, 10000));
	assert_false(tier_pair_has(bucket, HASH(9), 0xffffff00 + 50000, 10000));
}

/* The stated rate: at most 2 in 2^20 of pages never seen, in a full table. */
static void false_positive_rate(void **state)
{
	enum { BUCKETS = 1 << 12, PAGES = 1 << 14, PROBES = 1 << 22 };
	__u64 *table = calloc(BUCKETS, sizeof(*table));
	__u32 wrong = 0, used = 0;

	for (__u64 pfn = 0; pfn < PAGES; pfn++) {
		__u64 hash = tier_pair_hash(pfn), *bucket = &table[hash % BUCKETS];

		*bucket = tier_pair_add(*bucket, hash, 1000);
	}
	for (int i = 0; i < BUCKETS; i++)
		used += !!(__u32)table[i] + !!(table[i] >> 32);
	assert_in_range(used, BUCKETS * 3 / 2, BUCKETS * 2);
	for (__u64 pfn = 1 << 20; pfn < (1 << 20) + PROBES; pfn++) {
		__u64 hash = tier_pair_hash(pfn);

		wrong += tier_pair_has(table[hash % BUCKETS], hash, 1000, 60000);
	}
	/* 8 expected; twice as many would belie the claim */
	print_message("%u of %u unseen pages taken for seen ones\n", wrong, PROBES);
	assert_in_range(wrong, 0, 2 * 2 * (PROBES >> 20));
	free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(add_has_drop),
		cmocka_unit_test(zero_is_a_page_too),
		cmocka_unit_test(marks_age),
		cmocka_unit_test(older_mark_goes),
		cmocka_unit_test(clock_wraps),
		cmocka_unit_test(false_positive_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
