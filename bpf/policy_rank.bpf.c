// SPDX-License-Identifier: GPL-2.0
/*
 * rank: which pages, not how many milliseconds.
 *
 * Idea. How long after its scan a hot page faults depends on the machine, the load and the
 * scan rate; that it faults sooner than the others does not. And fast memory is worth filling,
 * but once it is full each promotion pushes another page down: then only pages go up of
 * which there is evidence that they are hotter than the rest. Without evidence nothing goes
 * up, whatever the limit would allow. All that is worked out anew each second and node.
 *
 * Terms. Warm: the hottest quarter of all faults lately, or as many as go up
 * into room. A warm page goes up for one of four reasons, the first that applies:
 *   room	pages that went up do not come back, so the node is not full, or
 *		full of colder ones: the hottest go up, a 20th of the room a
 *		second, or an eighth of that while others are demoted for them.
 *		When pages come back, or never moved, it closes at once.
 *   proven	it was warm at its last fault too, or when it went up, and that
 *		is more than chance now: among pages that are all alike, who was
 *		warm once is not warm again more often than any other.
 *   hot	a population of its own stands out at the short end (tier/rank.h
 *		tells how), and the page is part of it: no second look is needed.
 *   surge	pages that had waited long fault at four times the usual pace, as just
 *		after the program turned to other pages. Their latencies tell nothing
 *		then: for a quarter of a second all go up, into room if there is some.
 * Else a warm page is marked, and refused once. Budget: the last three share one, refilled with a
 * node in refill_s seconds, saved up to an eighth of it, three quarters of that for changes and
 * for the first minute. Proven and hot pages get a 64th a second, and after a surge all there is
 * for 4 s: a sweep behind the scanner looks hot, too.
 *
 * Storage and errors. At most 2^19 marks of 32 bits, 2 MiB for the machine, one page
 * to a place: a later page takes the place of an earlier one. With 100 000 marks
 * between two faults of a page its own is lost in one case of six, with a million in
 * six of seven: it then needs more scans to be proven. A page is taken for another in
 * one of 2^12 cases. Where none goes up nor lately did, which is where most faults are, one
 * page in four is looked at, for four; of the others only the mark is wiped out.
 *
 * First second. Its first second of faults, or the first thousand of them, the policy
 * only counts, and leaves them to the kernel's own algorithm, as before it was loaded.
 *
 * Source. Ranking against a capacity is in MEMTIS (SOSP 2023), promotion at the
 * second access in TPP (ASPLOS 2023); the tests for a population of its own and
 * for lasting heat, and room by returns, are this project's.
 *
 * Where it does badly. After a change, pages that faulted cold since their last scan are
 * seen only after the next one; promote-all has them up already, by luck. The first sweep
 * over memory that was left alone looks like a change. In shadow before Linux 5.16 returns
 * are taken from page frames, which says little. Streams that sweep over a range faster
 * than it is scanned fault in bands that may look like a hot population.
 */
#include <tier/policy.bpf.h>
#include <tier/rank.h>

/* Pages of the smallest top-tier node, set by the loader; 0: unknown, 4 GiB assumed. */
const volatile __u64 tier_top_node_pages;

TIER_PARAM(__u32, refill_s, 240, 1, 3600, "s",
	   "budget on a full node: promote a target node's worth of pages in this time");
TIER_PARAM(__u32, rate_limit_mbps, 0, 0, 4294967295, "MiB/s",
	   "promotion limit per target node beside that; 0 is an eighth of the node a second");
TIER_PARAM(__u32, patience_ms, 20000, 1000, 600000, "ms",
	   "after so long without pages coming back, look twice as fast for new room");

#define NR_MARKS	(1U << 19)
#define MARK_MS		240000

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TIER_MAX_NODES);
	__type(key, __u32);
	__type(value, struct tier_rank);
} rank_nodes SEC(".maps");

/* By the page's identity: its frame changes when it moves. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NR_MARKS);
	__type(key, __u32);
	__type(value, __u32);
} rank_marks SEC(".maps");

const volatile __u32 rank_marks_mask = NR_MARKS - 1;

static __always_inline __u64 node_pages(void)
{
	return tier_top_node_pages ? tier_top_node_pages : 1U << 20;
}

static __always_inline __u64 limit_pages_per_s(void)
{
	__u64 limit = tier_mbps_to_pages(rate_limit_mbps, tier_page_shift);
	__u64 most = node_pages() / 8 + 1;

	return limit && limit < most ? limit : most;
}

/* A window ends; once a second the rest. Not static, as more below: verified only once. */
__noinline int rank_tick(struct tier_rank *rank, __u32 now_ms, __u32 nid)
{
	struct tier_node *node;

	if (!rank)
		return 0;
	tier_rank_window(rank, now_ms);
	if (!tier_rank_due(rank, now_ms))
		return 0;
	node = bpf_map_lookup_elem(&tier_nodes, &nid);
	if (node)
		tier_rank_demoted(rank, node->demoted_pages);
	tier_rank_adjust(rank, now_ms, node_pages(), node_pages() / (refill_s ? refill_s : 1) + 1,
			 patience_ms);
	if (node)
		tier_publish_on(node, rank->hot_ms > rank->room_ms ? rank->hot_ms : rank->room_ms,
				limit_pages_per_s());
	return 1;
}

static __always_inline bool admit(const struct tier_rank_page *page)
{
	__u32 nid = page->nid;
	struct tier_node *node = bpf_map_lookup_elem(&tier_nodes, &nid);

	return !node || tier_rate_admit(node, page->now_ms, page->nr_pages, limit_pages_per_s());
}

/* Counts the fault and what its mark tells, and decides. Not closely: nothing goes up here. */
static __always_inline int judge(struct tier_rank *rank, const struct tier_rank_page *page,
				 bool closely)
{
	__u32 slot = tier_hist_slot(page->latency_ms), index = page->hash & rank_marks_mask;
	__u32 last, *mark = bpf_map_lookup_elem(&rank_marks, &index);
	bool known, up;
	int decision = TIER_REJECT_ONCE;

	tier_rank_count(rank, page, slot, closely);
	if (!mark || !rank->learned)
		return TIER_KERNEL;
	last = *mark;
	known = tier_rank_mark_is(last, page->hash, page->now_ms, MARK_MS);
	up = known && tier_rank_recall(rank, page, last, slot, closely);
	if (page->latency_ms >= rank->cold_ms) {
		if (known)
			*mark = 0;
		return TIER_REJECT_COLD;
	}
	if (closely)
		decision = tier_rank_reason(rank, page, tier_rank_longest(last, known, slot), up,
					    node_pages());
	if (decision < TIER_FIRST_REJECT && !admit(page))
		decision = TIER_REJECT_RATE;
	up = decision < TIER_FIRST_REJECT;
	if (up)
		__sync_fetch_and_add(&rank->now_promoted, (__u64)page->nr_pages);
	*mark = tier_rank_mark(page->hash, page->frame, up, slot, page->now_ms);
	return decision;
}

__noinline int rank_closely(struct tier_rank *rank, struct tier_rank_page *page)
{
	return rank && page ? judge(rank, page, true) : TIER_KERNEL;
}

__noinline int rank_sample(struct tier_rank *rank, __u64 hash, __u32 now_ms, __u32 latency_ms,
			   __u32 frame)
{
	struct tier_rank_page page = { .hash = hash, .now_ms = now_ms, .latency_ms = latency_ms,
				       .nr_pages = 1, .frame = frame };

	return rank ? judge(rank, &page, false) : TIER_KERNEL;
}

static __always_inline enum tier_decision decide(const struct tier_fault *f)
{
	__u32 nid = f->dst_nid, index, *mark;
	struct tier_rank *rank = bpf_map_lookup_elem(&rank_nodes, &nid);
	__u64 hash = tier_page_hash(f);
	struct tier_rank_page page;

	if (!rank)
		return TIER_KERNEL;
	if (tier_rank_pace(rank, f->now_ms, f->latency_ms))
		rank_tick(rank, f->now_ms, nid);
	if (f->latency_ms >= rank->look_ms && f->nr_pages == 1) {
		if (tier_rank_sampled(hash))
			return rank_sample(rank, hash, f->now_ms, f->latency_ms,
					   tier_rank_frame(f->pfn));
		index = hash & rank_marks_mask;
		mark = bpf_map_lookup_elem(&rank_marks, &index);
		if (mark && tier_rank_mark_is(*mark, hash, f->now_ms, MARK_MS))
			*mark = 0;
		return rank->learned ? tier_rank_refusal(rank, f->latency_ms) : TIER_KERNEL;
	}
	page = (struct tier_rank_page){
		.hash = hash, .now_ms = f->now_ms, .latency_ms = f->latency_ms,
		.nr_pages = f->nr_pages, .nid = nid, .frame = tier_rank_frame(f->pfn),
	};
	return rank_closely(rank, &page);
}

TIER_POLICY(rank, decide);
