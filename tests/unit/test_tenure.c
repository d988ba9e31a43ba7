// SPDX-License-Identifier: GPL-2.0
/* Counters by policy: whose the faults are, over swaps that succeed, fail or are killed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libtier/internal.h"

#define NODES	2

static struct tier_ctx *ctx;
static struct tier_counts pairs[NODES * NODES];
static struct tier_moves moves[NODES * NODES];
static struct tier_stats stats = { .nr_nodes = NODES, .pairs = pairs, .moves = moves };

/* So many faults more, half of them hot, each of two pages; so many pages up. */
static void faults(unsigned int nr, unsigned int up)
{
	pairs[2].faults[TIER_PROMOTE_HOT] += nr / 2;
	pairs[2].pages[TIER_PROMOTE_HOT] += 2 * (nr / 2);
	pairs[1].faults[TIER_REJECT_COLD] += nr - nr / 2;
	pairs[1].pages[TIER_REJECT_COLD] += 2 * (nr - nr / 2);
	moves[2].count[TIER_MV_PROMOTED] += up;
}

static void swap(__u32 from, __u32 to, const char *policy)
{
	assert_int_equal(tier_tenures_note(ctx, from, to, policy, &stats), 0);
}

static void read_now(__u32 map_id, const char *policy)
{
	free(stats.tenures);
	stats.tenures = NULL;
	stats.nr_tenures = 0;
	tier_copy(stats.policy, sizeof(stats.policy), policy);
	assert_int_equal(tier_tenures_read(ctx, map_id, &stats), 0);
}

static const struct tier_tenure *of(const char *policy)
{
	for (__u32 i = 0; i < stats.nr_tenures; i++)
		if (!strcmp(stats.tenures[i].policy, policy))
			return &stats.tenures[i];
	fail_msg("no tenure of %s", policy);
	return NULL;
}

static void is(const char *policy, __u64 nr, __u64 up, __u32 times, bool in_force)
{
	const struct tier_tenure *t = of(policy);

	assert_int_equal(t->counts.faults[TIER_PROMOTE_HOT] + t->counts.faults[TIER_REJECT_COLD], nr);
	assert_int_equal(t->counts.pages[TIER_PROMOTE_HOT] + t->counts.pages[TIER_REJECT_COLD], 2 * nr);
	assert_int_equal(t->moves[TIER_MV_PROMOTED], up);
	assert_int_equal(t->times, times);
	assert_int_equal(t->in_force, in_force);
}

static int setup(void **state)
{
	static char dir[] = "/tmp/test_tenure.XXXXXX";

	if (!ctx) {
		ctx = tier_ctx__new(NULL);
		if (!ctx || !mkdtemp(dir))
			return -1;
		tier_copy(ctx->run_dir, sizeof(ctx->run_dir), dir);
	}
	tier_tenures_remove(ctx);
	memset(pairs, 0, sizeof(pairs));
	memset(moves, 0, sizeof(moves));
	tier_copy(stats.policy, sizeof(stats.policy), "a");
	return 0;
}

static int finish(void **state)
{
	tier_tenures_remove(ctx);
	rmdir(ctx->run_dir);
	tier_ctx__free(ctx);
	free(stats.tenures);
	return 0;
}

static void all_is_the_first_ones(void **state)
{
	faults(100, 7);
	read_now(11, "a");
	assert_int_equal(stats.nr_tenures, 1);
	is("a", 100, 7, 1, true);
}

static void swaps_divide(void **state)
{
	faults(100, 7);
	swap(11, 12, "b");
	faults(30, 2);
	read_now(12, "b");
	is("a", 100, 7, 1, false);
	is("b", 30, 2, 1, true);

	/* for itself, with other parameters: the same name */
	swap(12, 13, "b");
	faults(5, 1);
	swap(13, 14, "a");
	faults(1000, 70);
	read_now(14, "a");
	assert_int_equal(stats.nr_tenures, 2);
	is("a", 1100, 77, 2, true);
	is("b", 35, 3, 2, false);
}

/* The reading is on disk, but the policy never came into force. */
static void killed_before_the_swap(void **state)
{
	faults(100, 7);
	swap(11, 12, "b");
	faults(30, 2);
	read_now(11, "a");
	assert_int_equal(stats.nr_tenures, 1);
	is("a", 130, 9, 1, true);
	swap(11, 13, "c");
	faults(1, 0);
	read_now(13, "c");
	assert_int_equal(stats.nr_tenures, 2);
	is("a", 130, 9, 1, false);
	is("c", 1, 0, 1, true);
}

static void reset_forgets(void **state)
{
	faults(100, 7);
	swap(11, 12, "b");
	faults(30, 2);
	tier_copy(stats.policy, sizeof(stats.policy), "b");
	assert_int_equal(tier_tenures_reset(ctx, 12, &stats), 0);
	faults(8, 1);
	read_now(12, "b");
	assert_int_equal(stats.nr_tenures, 1);
	is("b", 8, 1, 1, true);
}

/* Of another load, or damaged: then it says nothing, and all is whose policy it is now. */
static void strange_file(void **state)
{
	char path[128];
	FILE *file;

	faults(100, 7);
	swap(11, 12, "b");
	read_now(99, "z");
	assert_int_equal(stats.nr_tenures, 1);
	is("z", 100, 7, 1, true);
	snprintf(path, sizeof(path), "%s/tenures", ctx->run_dir);
	file = fopen(path, "w");
	fputs("short", file);
	fclose(file);
	read_now(12, "b");
	is("b", 100, 7, 1, true);
}

/* More names than there is room for: nothing is lost. */
static void many_names(void **state)
{
	char name[TIER_NAME_LEN];
	__u64 sum = 0;

	for (unsigned int i = 0; i < 2 * TIER_MAX_TENURES; i++) {
		snprintf(name, sizeof(name), "p%u", i);
		faults(10, 1);
		swap(11 + i, 12 + i, name);
	}
	read_now(11 + 2 * TIER_MAX_TENURES, name);
	assert_int_equal(stats.nr_tenures, TIER_MAX_TENURES);
	for (__u32 i = 0; i < stats.nr_tenures; i++)
		sum += stats.tenures[i].moves[TIER_MV_PROMOTED];
	assert_int_equal(sum, 2 * TIER_MAX_TENURES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(all_is_the_first_ones, setup),
		cmocka_unit_test_setup(swaps_divide, setup),
		cmocka_unit_test_setup(killed_before_the_swap, setup),
		cmocka_unit_test_setup(reset_forgets, setup),
		cmocka_unit_test_setup(strange_file, setup),
		cmocka_unit_test_setup(many_names, setup),
	};

	return cmocka_run_group_tests(tests, NULL, finish);
}
