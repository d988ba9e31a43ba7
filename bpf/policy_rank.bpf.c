// SPDX-License-Identifier: GPL-2.0
/*
 * rank: a threshold by rank, not by milliseconds.
 *
 * Idea. How long after its scan a hot page faults depends on the machine, the
 * load and the scan rate; that it faults sooner than the others does not. A
 * decaying histogram of latencies per target node shows whether a hot
 * population stands out from the rest, and where it ends: there lies the
 * threshold. It follows a change within seconds, for it is worked out anew each
 * second. When nothing stands out (all pages alike, or all hot ones promoted)
 * it does not open up: a small exploration budget takes the hottest few, and
 * grows only if they stay on the fast tier.
 *
 * Terms. Budget: pages a second that may go up to one node: its size in
 * refill_s seconds, and no more than rate_limit_mbps. Hot threshold: end of the
 * hot population, lowered when it exceeds the budget. Exploration: promotion
 * without such evidence: the hottest 2^-n part of the pages, as far as that part
 * of the budget goes, n from 0 to 10, starting at 6. Returned: a page that we promoted faults on the slow tier
 * again within two minutes; so demotion found it colder than what it joined.
 *
 * Source. Ranking against a capacity instead of an absolute bar is in MEMTIS
 * (SOSP 2023); the test for two populations is this project's own (tier/rank.h
 * tells why it works). The rate limit is mainline's.
 *
 * Where it does badly. Hot pages that are more than a third of what faults on
 * the slow tier look like the rest, and go up by exploration, which needs a
 * minute or two to widen. Without an address (shadow) returns are not seen and
 * exploration just widens. Loads without any skew pay for a little exploration.
 */
#include <tier/policy.bpf.h>
#include <tier/rank.h>

/* Pages of the smallest top-tier node, set by the loader; 0: unknown, 4 GiB assumed. */
const volatile __u64 tier_top_node_pages;

TIER_PARAM(__u32, refill_s, 60, 1, 3600, "s",
	   "budget: promote at most a target node's worth of pages in this time");
TIER_PARAM(__u32, rate_limit_mbps, 0, 0, 4294967295, "MiB/s",
	   "promotion limit per target node beside the budget; 0 is no limit");
TIER_PARAM(__u32, patience_ms, 20000, 1000, 600000, "ms",
	   "exploration doubles after so long without pages coming back");

#define NR_BUCKETS		(1U << 18)
#define RETURN_WINDOW_MS	120000

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TIER_MAX_NODES);
	__type(key, __u32);
	__type(value, struct tier_rank);
} rank_nodes SEC(".maps");

/* Pages that exploration promoted, by address: the frame changes when they move. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NR_BUCKETS);
	__type(key, __u32);
	__type(value, __u64);
} rank_marks SEC(".maps");

static __always_inline __u64 budget_pages_per_s(void)
{
	__u64 pages = tier_top_node_pages ? tier_top_node_pages : 1U << 20;
	__u64 budget = pages / (refill_s ? refill_s : 1) + 1;
	__u64 limit = tier_mbps_to_pages(rate_limit_mbps, tier_page_shift);

	return limit && limit < budget ? limit : budget;
}

/* Once a second. Not static: so it is verified once, not once per caller's path. */
__noinline int rank_adjust(struct tier_rank *rank, __u32 now_ms, __u32 last_ms)
{
	__u32 seconds = last_ms ? (now_ms - last_ms) / 1000 : 1;

	if (!rank)
		return 0;
	tier_rank_adjust(rank, now_ms, seconds, budget_pages_per_s(), patience_ms);
	return 1;
}

static enum tier_decision decide(const struct tier_fault *f)
{
	__u32 nid = f->dst_nid, slot = tier_hist_slot(f->latency_ms), index, last_ms;
	struct tier_rank *rank = bpf_map_lookup_elem(&rank_nodes, &nid);
	__u64 *bucket, hash, budget = budget_pages_per_s(), limit;
	bool explore;

	if (!rank)
		return TIER_KERNEL;
	if (slot < TIER_HIST_SLOTS)
		__sync_fetch_and_add(&rank->pages[slot], (__u64)f->nr_pages);
	last_ms = rank->adjusted_ms;
	if (tier_rank_due(rank, f->now_ms))
		rank_adjust(rank, f->now_ms, last_ms);
	tier_publish(f, rank->hot_ms > rank->explore_ms ? rank->hot_ms : rank->explore_ms, budget);

	hash = tier_page_hash(f);
	index = hash & (NR_BUCKETS - 1);
	bucket = f->flags & TIER_FAULT_ADDR ? bpf_map_lookup_elem(&rank_marks, &index) : NULL;
	if (bucket && tier_pair_has(*bucket, hash, f->now_ms, RETURN_WINDOW_MS)) {
		*bucket = tier_pair_drop(*bucket, hash);
		__sync_fetch_and_add(&rank->returned_pages, (__u64)f->nr_pages);
	}

	explore = f->latency_ms >= rank->hot_ms;
	if (explore && f->latency_ms >= rank->explore_ms)
		return TIER_REJECT_COLD;
	limit = explore ? (budget >> (rank->explore_shift & 31)) + 1 : budget;
	if (!tier_rate_take(f, limit))
		return TIER_REJECT_RATE;
	if (explore) {
		__sync_fetch_and_add(&rank->explored_pages, (__u64)f->nr_pages);
		if (bucket)
			*bucket = tier_pair_add(*bucket, hash, f->now_ms);
	}
	return explore ? TIER_PROMOTE_OTHER : TIER_PROMOTE_HOT;
}

TIER_POLICY(rank, decide, .flags = TIER_NEED_ADDR);
