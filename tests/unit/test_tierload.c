// SPDX-License-Identifier: GPL-2.0
/* Distributions of tierload: what is drawn must be what the monitor assumes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tierload_dist.h"

#define PAGES 8192
#define HOT 512
#define DRAWS 1000000

static const enum tl_kind kinds[] = { TL_HOTCOLD, TL_ZIPF, TL_MOVING, TL_SCANMIX, TL_UNIFORM,
				      TL_GUPS, TL_STREAM };
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static struct tl_shape shape_of(enum tl_kind kind)
{
	return (struct tl_shape){ .kind = kind, .pages = PAGES, .hot_pages = HOT, .unit_pages = 1,
				  .hot_share = 0.9, .theta = 0.99, .scatter = true, .seed = 7 };
}

static void make(struct tl_dist *d, const struct tl_shape *shape)
{
	void *memory = malloc(tl_dist_bytes(shape));

	assert_non_null(memory);
	assert_null(tl_dist_init(d, shape, memory));
}

static void drop(struct tl_dist *d)
{
	free(d->unit_at);
}

/* The pages that one thread accesses first. */
static void sequence(const struct tl_shape *shape, unsigned int thread, uint32_t *page, size_t n)
{
	struct tl_dist d;
	struct tl_cursor cur;
	size_t i;

	make(&d, shape);
	tl_cursor_init(&cur, &d, thread, 2);
	for (i = 0; i < n; i++)
		page[i] = tl_page_of_rank(&d, tl_next_rank(&d, &cur), 0);
	drop(&d);
}

static void weights_sum_to_one(void **state)
{
	struct tl_dist d;
	double sum;
	size_t k;
	uint32_t r;

	for (k = 0; k < KINDS; k++) {
		struct tl_shape shape = shape_of(kinds[k]);

		make(&d, &shape);
		for (sum = 0.0, r = 0; r < PAGES; r++) {
			sum += tl_rank_weight(&d, r);
			if (r)
				assert_true(tl_rank_weight(&d, r) <= tl_rank_weight(&d, r - 1));
		}
		assert_true(fabs(sum - 1.0) < 1e-9);
		drop(&d);
	}
}

static void drawn_shares_match_the_weights(void **state)
{
	static uint32_t count[PAGES];
	uint32_t cut[] = { 1, 16, HOT, PAGES / 2 };
	struct tl_dist d;
	struct tl_cursor cur;
	size_t k, c;
	uint32_t r, i;

	for (k = 0; k < KINDS; k++) {
		struct tl_shape shape = shape_of(kinds[k]);

		make(&d, &shape);
		tl_cursor_init(&cur, &d, 0, 1);
		memset(count, 0, sizeof(count));
		for (i = 0; i < DRAWS; i++) {
			r = tl_next_rank(&d, &cur);
			assert_true(r < PAGES);
			count[r]++;
		}
		for (c = 0; c < sizeof(cut) / sizeof(cut[0]); c++) {
			double want = 0.0, got = 0.0;

			for (r = 0; r < cut[c]; r++) {
				want += tl_rank_weight(&d, r);
				got += (double)count[r] / DRAWS;
			}
			/* Five standard deviations, and the open round of a walk. */
			assert_true(fabs(got - want) <
				    5.0 * sqrt(want * (1.0 - want) / DRAWS) + 1e-3 * want);
		}
		drop(&d);
	}
}

static void zipf_has_the_textbook_mass(void **state)
{
	struct tl_shape shape = shape_of(TL_ZIPF);
	struct tl_dist d;
	double sum = 0.0;
	uint32_t i;

	for (i = 1; i <= PAGES; i++)
		sum += 1.0 / pow(i, 0.99);
	make(&d, &shape);
	assert_true(fabs(tl_rank_weight(&d, 0) - 1.0 / sum) < 1e-9);
	assert_true(fabs(tl_rank_weight(&d, 0) / tl_rank_weight(&d, 9) - pow(10.0, 0.99)) < 1e-9);
	drop(&d);
}

static void same_seed_same_accesses(void **state)
{
	static uint32_t a[4096], b[4096];
	size_t k;

	for (k = 0; k < KINDS; k++) {
		struct tl_shape shape = shape_of(kinds[k]);

		sequence(&shape, 0, a, 4096);
		sequence(&shape, 0, b, 4096);
		assert_memory_equal(a, b, sizeof(a));
		sequence(&shape, 1, b, 4096);
		assert_memory_not_equal(a, b, sizeof(a));
		if (kinds[k] == TL_STREAM)
			continue;
		shape.seed++;
		sequence(&shape, 0, b, 4096);
		assert_memory_not_equal(a, b, sizeof(a));
	}
}

/* In each phase every page has exactly one rank. */
static void ranks_are_a_permutation(void **state)
{
	static uint8_t seen[PAGES];
	uint32_t phase, r, page;
	struct tl_dist d;
	size_t k, unit;

	for (k = 0; k < KINDS; k++) {
		for (unit = 1; unit <= 512; unit += 511) {
			struct tl_shape shape = shape_of(kinds[k]);

			shape.unit_pages = unit;
			make(&d, &shape);
			for (phase = 0; phase < 40; phase += 13) {
				memset(seen, 0, sizeof(seen));
				for (r = 0; r < PAGES; r++) {
					page = tl_page_of_rank(&d, r, phase);
					assert_true(page < PAGES && !seen[page]);
					seen[page] = 1;
				}
			}
			drop(&d);
		}
	}
}

static void moved_hot_set_is_another_one(void **state)
{
	static uint8_t hot[PAGES];
	struct tl_shape shape = shape_of(TL_MOVING);
	struct tl_dist d;
	uint32_t r, phase;

	make(&d, &shape);
	for (phase = 0; phase < PAGES / HOT; phase++) {
		for (r = 0; r < HOT; r++) {
			uint32_t page = tl_page_of_rank(&d, r, phase);

			assert_false(hot[page]);
			hot[page] = 1;
		}
	}
	/* All pages have had their turn: the next one is the first again. */
	assert_int_equal(tl_page_of_rank(&d, 3, 0), tl_page_of_rank(&d, 3, PAGES / HOT));
	drop(&d);
}

static void layouts(void **state)
{
	struct tl_shape shape = shape_of(TL_HOTCOLD);
	uint32_t r, neighbours;
	struct tl_dist d;

	make(&d, &shape);
	for (neighbours = 0, r = 1; r < HOT; r++)
		neighbours += tl_page_of_rank(&d, r, 0) == tl_page_of_rank(&d, r - 1, 0) + 1;
	assert_true(neighbours < 8);
	drop(&d);

	shape.scatter = false;
	make(&d, &shape);
	for (r = 1; r < PAGES; r++)
		assert_int_equal(tl_page_of_rank(&d, r, 0),
				 (tl_page_of_rank(&d, r - 1, 0) + 1) % PAGES);
	drop(&d);

	shape.scatter = true;
	shape.unit_pages = 512;
	make(&d, &shape);
	assert_int_equal(tl_page_of_rank(&d, 0, 0) % 512, 0);
	for (r = 1; r < HOT; r++)
		assert_int_equal(tl_page_of_rank(&d, r, 0), tl_page_of_rank(&d, r - 1, 0) + 1);
	drop(&d);
}

/* A prime number of pages: each is touched exactly once a round by one thread or several. */
static void walk_touches_each_page_once_a_round(void **state)
{
	static uint8_t count[10007];
	unsigned int threads, t;
	struct tl_shape shape = shape_of(TL_STREAM);
	struct tl_cursor cur;
	struct tl_dist d;
	uint32_t i;

	shape.pages = 10007;
	make(&d, &shape);
	for (threads = 1; threads <= 3; threads++) {
		memset(count, 0, sizeof(count));
		for (t = 0; t < threads; t++) {
			tl_cursor_init(&cur, &d, t, threads);
			while (cur.rounds < 2)
				count[tl_page_of_rank(&d, tl_next_rank(&d, &cur), 0)]++;
		}
		for (i = 0; i < shape.pages; i++)
			assert_int_equal(count[i], 2);
	}
	drop(&d);
}

/* The cold accesses of scanmix go up through memory and never hit the hot set. */
static void scan_walks_cold_memory_in_order(void **state)
{
	struct tl_shape shape = shape_of(TL_SCANMIX);
	uint32_t r, page, last = 0, steps = 0;
	struct tl_cursor cur;
	struct tl_dist d;

	make(&d, &shape);
	tl_cursor_init(&cur, &d, 0, 1);
	while (!cur.rounds) {
		r = tl_next_rank(&d, &cur);
		if (r < HOT)
			continue;
		page = tl_page_of_rank(&d, r, 0);
		assert_true(!steps || page > last);
		last = page;
		steps++;
	}
	assert_int_equal(steps, PAGES - HOT);
	drop(&d);
}

static void hot_ranks(void **state)
{
	struct tl_shape shape = shape_of(TL_ZIPF);
	struct tl_dist d;

	make(&d, &shape);
	assert_int_equal(tl_hot_ranks(&d, 100), 100);
	assert_int_equal(tl_hot_ranks(&d, PAGES + 1), PAGES);
	drop(&d);
	shape.kind = TL_HOTCOLD;
	make(&d, &shape);
	assert_int_equal(tl_hot_ranks(&d, 100), HOT);
	drop(&d);
	shape.kind = TL_UNIFORM;
	make(&d, &shape);
	assert_int_equal(tl_hot_ranks(&d, 100), 0);
	drop(&d);
}

static void bad_shapes_are_refused(void **state)
{
	static uint64_t memory[PAGES * 2];
	struct tl_shape good = shape_of(TL_HOTCOLD), bad[7];
	struct tl_dist d;
	size_t i;

	for (i = 0; i < 7; i++)
		bad[i] = good;
	bad[0].pages = 0;
	bad[1].unit_pages = 0;
	bad[2].unit_pages = 513;
	bad[3].hot_pages = 0;
	bad[4].hot_pages = PAGES;
	bad[5].hot_share = 1.0;
	bad[6].kind = TL_ZIPF;
	bad[6].theta = 0.0;
	assert_null(tl_dist_init(&d, &good, memory));
	for (i = 0; i < 7; i++)
		assert_non_null(tl_dist_init(&d, &bad[i], memory));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights_sum_to_one),
		cmocka_unit_test(drawn_shares_match_the_weights),
		cmocka_unit_test(zipf_has_the_textbook_mass),
		cmocka_unit_test(same_seed_same_accesses),
		cmocka_unit_test(ranks_are_a_permutation),
		cmocka_unit_test(moved_hot_set_is_another_one),
		cmocka_unit_test(layouts),
		cmocka_unit_test(walk_touches_each_page_once_a_round),
		cmocka_unit_test(scan_walks_cold_memory_in_order),
		cmocka_unit_test(hot_ranks),
		cmocka_unit_test(bad_shapes_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
