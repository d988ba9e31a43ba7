// SPDX-License-Identifier: GPL-2.0
/*
 * twotouch: promote a page that was hot in two scans in a row.
 *
 * Idea. One short latency can be chance: of pages touched every 10 s, one in
 * ten faults within a second of its scan. Asked twice, one in a hundred does,
 * while a page touched every 10 ms passes both times. So the first hot fault
 * only leaves a mark; the next fault of the page, which can only come after
 * another scan, promotes it if it is hot again and erases the mark if not.
 * Programs that sweep over memory once never pass.
 *
 * Terms. Hot: latency below hot_threshold_ms. Mark: 32 bits for a page seen hot
 * once (tier/pair.h), forgotten after pair_window_ms. In a row: no cold fault
 * of that page in between, and within that time.
 *
 * Storage and errors. 2^18 buckets of two marks, 2 MiB for the machine. False
 * positive (a page taken for one with a mark): at most 2 in 2^20 of the first
 * hot faults. False negative (a mark overwritten before the second touch): the
 * page needs one scan more; with 100 000 pages marked between the two touches
 * 1 in 18, with a million 9 in 10, which all but stops promotion: lower the
 * threshold then. A page that is freed and used anew within the window keeps its
 * mark, which is the false positive of one page once.
 *
 * Source. The idea of two accesses is in TPP (ASPLOS 2023: a page must be
 * active before it is promoted) and Chrono (EuroSys 2025: repeated idle times).
 *
 * Where it does badly. A page must stay one more scan period on the slow tier
 * before it goes up, so short phases end before their pages are promoted.
 */
#include <tier/policy.bpf.h>

#define NR_BUCKETS	(1U << 18)

TIER_PARAM(__u32, hot_threshold_ms, 1000, 0, 4294967295, "ms",
	   "a page that faults sooner than this after its scan is hot");
TIER_PARAM(__u32, pair_window_ms, 120000, 1024, 3600000, "ms",
	   "the second hot fault must follow within this time; two scan periods are right");
TIER_PARAM(__u32, rate_limit_mbps, 0, 0, 4294967295, "MiB/s",
	   "promotion limit per target node, or a share of the slow tier's bandwidth (5%); 0 is no limit");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NR_BUCKETS);
	__type(key, __u32);
	__type(value, __u64);
} twotouch_marks SEC(".maps");

const volatile __u32 twotouch_marks_mask = NR_BUCKETS - 1;

static enum tier_decision decide(const struct tier_fault *f)
{
	__u64 limit_pages_per_s = tier_mbps_to_pages(rate_limit_mbps, tier_page_shift);
	__u64 hash = tier_pair_hash(f->pfn), *bucket;
	__u32 index = hash & twotouch_marks_mask, threshold_ms = hot_threshold_ms;

	tier_publish(f, threshold_ms, limit_pages_per_s);
	bucket = bpf_map_lookup_elem(&twotouch_marks, &index);
	if (!bucket)
		return TIER_KERNEL;
	/*
	 * Plain loads and stores: two CPUs that hit one bucket at once may lose
	 * a mark, which costs that page one scan more.
	 */
	if (f->latency_ms >= threshold_ms) {
		__u64 without = tier_pair_drop(*bucket, hash);

		if (without != *bucket)
			*bucket = without;
		return TIER_REJECT_COLD;
	}
	if (!tier_pair_has(*bucket, hash, f->now_ms, pair_window_ms)) {
		*bucket = tier_pair_add(*bucket, hash, f->now_ms);
		return TIER_REJECT_ONCE;
	}
	/* the mark stays when the limit refuses: the page has proved itself */
	if (!tier_rate_take(f, limit_pages_per_s)) {
		*bucket = tier_pair_add(*bucket, hash, f->now_ms);
		return TIER_REJECT_RATE;
	}
	*bucket = tier_pair_drop(*bucket, hash);
	return TIER_PROMOTE_HOT;
}

TIER_POLICY(twotouch, decide);
