// SPDX-License-Identifier: GPL-2.0
/*
 * Policy rank's bytecode, one rule at a time: what it leaves to the kernel, limits, what it
 * counts of a fault and what it remembers of a page. How well all that works together is
 * in test_policy_rank.c.
 */
#include "policy_run.h"
#include <tier/rank.h>

#define NODE_PAGES	65536U
#define START_MS	100000U
#define SECOND_MS	1064U	/* a second is over, and its last window */
#define NOW_MS		(START_MS + 2 * SECOND_MS)

static struct tier_rank rank_of(struct policy *p, __u32 node)
{
	struct tier_rank rank;

	assert_int_equal(bpf_map_lookup_elem(policy_map(p, "rank_nodes"), &node, &rank), 0);
	return rank;
}

static __u64 sum_of(const __u64 *counts, unsigned int nr)
{
	__u64 sum = 0;

	for (unsigned int i = 0; i < nr; i++)
		sum += counts[i];
	return sum;
}

static struct tier_fault page_at(__u32 page, __u32 now_ms, __u32 latency_ms)
{
	struct tier_fault f = at((__u64)page << 12, now_ms, latency_ms);

	f.vm_end = ~0ULL;
	f.pfn = 1000000 + page;
	return f;
}

/*
 * Two seconds of faults, a quarter of them soon after their scan: the first second's are the
 * kernel's to decide, and after the second one it is known that nobody had to make way.
 */
static struct policy *learned(const struct setting *more)
{
	struct setting set[4] = { { "tier_top_node_pages", NODE_PAGES } };
	static struct tier_replay_entry out[1000];
	static struct tier_fault f[1000];
	struct policy *p;

	for (int i = 0; more && more[i].name; i++)
		set[i + 1] = more[i];
	p = policy_start("rank", set);
	for (__u32 s = 0; s < 2; s++) {
		for (__u32 i = 0; i < 1000; i++)
			f[i] = page_at(100000 + s * 1000 + i, START_MS + s * SECOND_MS + i,
				       i % 4 ? 2000 + i * 8 : i % 64);
		policy_run(p, f, 1000, out);
		if (s)
			break;
		for (int i = 0; i < 1000; i++)
			assert_int_equal(out[i].decision, TIER_KERNEL);
		assert_int_equal(policy_node(p, 0).threshold_ms, 0);
	}
	assert_int_equal(policy_decide(p, page_at(50000, NOW_MS, 60000)), TIER_REJECT_COLD);
	return p;
}

/* The first second ends with so many faults, if they come sooner. */
static void many_faults_shorten_the_first_second(void **state)
{
	struct setting set[] = { { "tier_top_node_pages", NODE_PAGES }, { NULL } };
	static struct tier_replay_entry out[4000];
	static struct tier_fault f[4000];
	struct policy *p = policy_start("rank", set);
	__u32 kernel = 0;

	for (__u32 i = 0; i < 4000; i++)
		f[i] = page_at(i, START_MS + i / 8, i % 4 ? 2000 + i * 2 : i % 64);
	policy_run(p, f, 4000, out);
	for (int i = 0; i < 4000; i++)
		kernel += out[i].decision == TIER_KERNEL;
	assert_in_range(kernel, TIER_RANK_LEARN_FAULTS, TIER_RANK_LEARN_FAULTS + 8 * 32);
	assert_in_range(policy_node(p, 0).threshold_ms, 1, 10000);
	policy_stop(p);
}

static void first_second_is_the_kernels(void **state)
{
	struct policy *p = learned(NULL);
	struct tier_node node = policy_node(p, 0);

	assert_in_range(node.threshold_ms, 1, 10000);
	assert_int_equal(node.limit_pages_per_s, NODE_PAGES / 8 + 1);
	policy_stop(p);
}

/* There is room for 3276 pages a second: the operator's 256 are the narrower limit. */
static void operator_limits_promotion(void **state)
{
	struct setting set[] = { { "rate_limit_mbps", 1 }, { NULL } };
	static struct tier_replay_entry out[1000];
	static struct tier_fault f[1000];

	for (int limited = 0; limited < 2; limited++) {
		struct policy *p = learned(limited ? set : NULL);
		__u32 promoted = 0, refused = 0;

		for (__u32 i = 0; i < 1000; i++)
			f[i] = page_at(i, NOW_MS + i / 10, 1);
		policy_run(p, f, 1000, out);
		for (int i = 0; i < 1000; i++) {
			promoted += tier_decision_verdict(out[i].decision) == TIER_VERDICT_PROMOTE;
			refused += out[i].decision == TIER_REJECT_RATE;
		}
		if (limited) {
			assert_in_range(promoted, 250, 256);
			assert_in_range(refused, 1000 - 256, 750);
			assert_int_equal(policy_node(p, 0).limit_pages_per_s, 256);
		} else {
			assert_int_equal(promoted, 1000);
		}
		policy_stop(p);
	}
}

static void large_folios_count_their_pages(void **state)
{
	struct policy *p = learned(NULL);
	struct tier_fault f = page_at(0, NOW_MS, 1);
	__s64 before = rank_of(p, 0).room_pages;

	f.nr_pages = 512;
	assert_int_equal(tier_decision_verdict(policy_decide(p, f)), TIER_VERDICT_PROMOTE);
	assert_int_equal(rank_of(p, 0).now_extra, 511);
	assert_int_equal(rank_of(p, 0).now_promoted, 512);
	assert_int_equal(before - rank_of(p, 0).room_pages, 512);
	policy_stop(p);
}

/*
 * A page that was to go up and faults below again has come back, in another frame, or it
 * never moved; room is not for such.
 */
static void returns_are_seen(void **state)
{
	struct policy *p = learned(NULL);
	struct tier_fault f = page_at(7, NOW_MS, 1);

	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_OTHER);
	assert_int_equal(rank_of(p, 0).now_returned, 0);
	f.now_ms += 100;
	assert_int_not_equal(policy_decide(p, f), TIER_PROMOTE_OTHER);
	assert_int_equal(rank_of(p, 0).now_returned, 0);
	assert_int_equal(rank_of(p, 0).now_failed, 1);
	/* another page does not come back */
	policy_decide(p, page_at(8, NOW_MS + 101, 1));
	assert_int_equal(rank_of(p, 0).now_returned + rank_of(p, 0).now_failed, 1);
	f = page_at(9, NOW_MS + 102, 1);
	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_OTHER);
	f.pfn = 2000000;
	assert_int_not_equal(tier_rank_frame(f.pfn), tier_rank_frame(page_at(9, 0, 0).pfn));
	policy_decide(p, f);
	assert_int_equal(rank_of(p, 0).now_returned, 1);
	assert_int_equal(rank_of(p, 0).now_failed, 1);
	policy_stop(p);
}

/* What the observer counts of the node that a page leaves reaches the policy's sums. */
static void demotions_are_seen(void **state)
{
	struct policy *p = policy_start("rank", (struct setting[]){
		{ "tier_top_node_pages", NODE_PAGES }, { NULL } });
	struct tier_node node;
	__u32 nid = 0;

	for (__u32 s = 0; s < 6; s++) {
		node = policy_node(p, 0);
		node.demoted_pages = 1000000 + s * 500;
		assert_int_equal(bpf_map_update_elem(policy_map(p, "tier_nodes"), &nid, &node, 0), 0);
		policy_decide(p, page_at(s, START_MS + s * 1100, 10));
	}
	/* the first million was before the policy; of the rest a quarter is forgotten a second */
	assert_in_range(rank_of(p, 0).demoted >> TIER_RANK_UNIT_SHIFT, 1000, 1600);
	policy_stop(p);
}

/* What was warm at its last fault is known at the next one; a cold fault ends that. */
static void a_cold_fault_forgets(void **state)
{
	struct policy *p = learned(NULL);

	/* cold faults are counted by sampling: several pages, of which some are left out */
	for (__u32 page = 0; page < 8; page++) {
		policy_decide(p, page_at(page, NOW_MS, 1));
		assert_int_equal(policy_decide(p, page_at(page, NOW_MS, 60000)), TIER_REJECT_COLD);
		policy_decide(p, page_at(page, NOW_MS, 1));
		assert_int_equal(sum_of(rank_of(p, 0).now_again, TIER_RANK_SCORES), page);
		policy_decide(p, page_at(page, NOW_MS, 1));
		assert_int_equal(sum_of(rank_of(p, 0).now_again, TIER_RANK_SCORES), page + 1);
	}
	policy_stop(p);
}

/* Each target node has thresholds and budgets of its own, and starts with the kernel's. */
static void nodes_are_apart(void **state)
{
	struct policy *p = learned(NULL);
	struct tier_fault f = page_at(7, NOW_MS, 1);

	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_OTHER);
	f.src_nid = 0;
	f.dst_nid = 1;
	assert_int_equal(policy_decide(p, f), TIER_KERNEL);
	assert_int_equal(rank_of(p, 1).window_ms, NOW_MS);
	assert_int_equal(rank_of(p, 1).learned, 0);
	policy_stop(p);
}

/* A node that knows its thresholds, has nothing left to give, and no second ends. */
static struct tier_rank settled(void)
{
	return (struct tier_rank){ .learned = 1, .adjusted_ms = START_MS, .window_ms = START_MS,
				   .surge_faults = ~0U, .cold_ms = 1000, .look_ms = 1000,
				   .look_slot = tier_hist_slot(1000),
				   .proven_kept_pages = tier_rank_kept(NODE_PAGES),
				   .hot_kept_pages = NODE_PAGES / 64 };
}

static struct policy *with_rank(const struct tier_rank *rank)
{
	struct setting set[] = { { "tier_top_node_pages", NODE_PAGES }, { NULL } };
	struct policy *p = policy_start("rank", set);
	__u32 zero = 0;

	assert_int_equal(bpf_map_update_elem(policy_map(p, "rank_nodes"), &zero, rank, BPF_ANY), 0);
	return p;
}

/* Without a reason a warm page is refused once, and again, however often it comes. */
static void no_reason_no_promotion(void **state)
{
	struct tier_rank rank = settled();
	struct policy *p = with_rank(&rank);

	for (__u32 i = 0; i < 3; i++)
		assert_int_equal(policy_decide(p, page_at(7, START_MS + i, 1)), TIER_REJECT_ONCE);
	assert_int_equal(policy_decide(p, page_at(7, START_MS, 1000)), TIER_REJECT_COLD);
	policy_stop(p);
}

static void proven_pages_go_up(void **state)
{
	struct tier_rank rank = settled();
	__u32 short_ms = 20, long_ms = 300;
	struct policy *p;

	rank.proven_slot = tier_hist_slot(long_ms);
	rank.budget_pages = tier_rank_kept(NODE_PAGES) + 1;
	rank.second_pages = 2;
	p = with_rank(&rank);
	/* long at either of the two faults is not proven */
	assert_int_equal(policy_decide(p, page_at(7, START_MS, short_ms)), TIER_REJECT_ONCE);
	assert_int_equal(policy_decide(p, page_at(7, START_MS + 1, long_ms)), TIER_REJECT_ONCE);
	assert_int_equal(policy_decide(p, page_at(7, START_MS + 2, short_ms)), TIER_REJECT_ONCE);
	assert_int_equal(policy_decide(p, page_at(7, START_MS + 3, short_ms)), TIER_PROMOTE_HOT);
	assert_int_equal(rank_of(p, 0).budget_pages, tier_rank_kept(NODE_PAGES));
	/* the rest is saved up for a change */
	assert_int_equal(policy_decide(p, page_at(7, START_MS + 4, short_ms)), TIER_REJECT_ONCE);
	policy_stop(p);
}

static void hot_pages_go_up_at_first_sight(void **state)
{
	struct tier_rank rank = settled();
	struct tier_fault f;
	struct policy *p;

	rank.hot_ms = 500;
	rank.hot_open = 1;
	rank.budget_pages = NODE_PAGES / 64 + 1;
	rank.second_pages = 2;
	p = with_rank(&rank);
	assert_int_equal(policy_decide(p, page_at(7, START_MS, 500)), TIER_REJECT_ONCE);
	assert_int_equal(policy_decide(p, page_at(8, START_MS, 499)), TIER_PROMOTE_HOT);
	/* what is left is for the proven ones */
	assert_int_equal(policy_decide(p, page_at(9, START_MS, 499)), TIER_REJECT_ONCE);
	/* the one that went up is back in another frame, and hot: more than the node holds */
	f = page_at(8, START_MS + 1, 499);
	f.pfn++;
	policy_decide(p, f);
	assert_int_equal(rank_of(p, 0).now_thrash, 1);
	policy_stop(p);

	rank.hot_open = 0;
	p = with_rank(&rank);
	assert_int_equal(policy_decide(p, page_at(8, START_MS, 499)), TIER_REJECT_ONCE);
	policy_stop(p);
}

static void what_waited_goes_up_in_a_surge(void **state)
{
	struct tier_rank rank = settled();
	struct policy *p;

	rank.surge_faults = 3;
	rank.budget_pages = NODE_PAGES / 32 + 1;
	p = with_rank(&rank);
	/* soon after their scan: a scan's burst, no surge */
	for (__u32 i = 10; i < 20; i++)
		assert_int_equal(policy_decide(p, page_at(i, START_MS, 1)), TIER_REJECT_ONCE);
	for (__u32 i = 0; i < 2; i++)
		assert_int_equal(policy_decide(p, page_at(i, START_MS + i, 60000)), TIER_REJECT_COLD);
	assert_int_equal(policy_decide(p, page_at(2, START_MS + 3, 60000)), TIER_PROMOTE_OTHER);
	/* what is left is for those with better reasons */
	assert_int_equal(policy_decide(p, page_at(3, START_MS + 4, 60000)), TIER_REJECT_ONCE);
	policy_stop(p);
}

static void budget_is_refilled_each_second(void **state)
{
	struct tier_rank rank = settled();
	struct policy *p;

	rank.now[tier_hist_slot(5000)] = 1000;
	p = with_rank(&rank);
	policy_decide(p, page_at(7, START_MS + 1000, 60000));
	assert_int_equal(rank_of(p, 0).budget_pages, 0);
	policy_decide(p, page_at(7, NOW_MS, 60000));
	assert_int_equal(rank_of(p, 0).budget_pages, NODE_PAGES / 240 + 1);
	policy_stop(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_second_is_the_kernels),
		cmocka_unit_test(many_faults_shorten_the_first_second),
		cmocka_unit_test(operator_limits_promotion),
		cmocka_unit_test(large_folios_count_their_pages),
		cmocka_unit_test(returns_are_seen),
		cmocka_unit_test(demotions_are_seen),
		cmocka_unit_test(a_cold_fault_forgets),
		cmocka_unit_test(nodes_are_apart),
		cmocka_unit_test(no_reason_no_promotion),
		cmocka_unit_test(proven_pages_go_up),
		cmocka_unit_test(hot_pages_go_up_at_first_sight),
		cmocka_unit_test(what_waited_goes_up_in_a_surge),
		cmocka_unit_test(budget_is_refilled_each_second),
	};

	if (!policy_can_run())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
