// SPDX-License-Identifier: GPL-2.0
/*
 * locality: a hot page lowers the bar for the pages after it.
 *
 * Idea. Data next to a page that was just touched is likely to be touched soon.
 * When a page is found hot, the pages after it, up to around_bytes, in the same
 * VMA and under the same PMD, that still wait for their first access since
 * their scan, are promoted when they fault, however long they have waited. While
 * a daemon listens they are not even waited for: those of the window up to the
 * first that does not qualify (accessed already, elsewhere, not there) count as
 * accessed now and are put into a ring buffer, and the daemon moves them ahead of
 * their faults.
 *
 * Terms. Window: the around_bytes after a hot page. Near: promoted because of a
 * window. Request: a window handed to the daemon.
 *
 * Storage. The last hot page of each block of around_bytes, in a table of 65536
 * places (2 MiB); when two blocks share a place the newer hot page wins, and
 * the older one's neighbours are judged by their own latency.
 *
 * Source. Promote in advance, RFC 2022 (mm, numa_around_bytes). There a near
 * page that does not qualify ends the window at once; without a daemon nobody
 * walks the page table here, and a gap does not end it.
 *
 * Where it does badly. Scattered records (a hash table over memory): the
 * neighbours have nothing to do with the hot page, and cold memory goes up with
 * it. Watch the share of "near" among the promotions and what comes down again.
 */
#include <tier/policy.bpf.h>
#include <tier/request.bpf.h>
#include <tier/near.h>

TIER_PARAM(__u32, hot_threshold_ms, 1000, 0, 4294967295, "ms",
	   "promote a page that faults sooner than this after its scan");
TIER_PARAM(__u32, rate_limit_mbps, 0, 0, 4294967295, "MiB/s",
	   "promotion limit per target node, or a share of the slow tier's bandwidth (5%), near pages included; 0 is no limit");
TIER_PARAM(__u32, around_bytes, 16384, 0, 2097152, "bytes",
	   "window after a hot page, cut to a power of two; 0 is off");

#define NR_PLACES	65536U

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NR_PLACES);
	__type(key, __u32);
	__type(value, struct tier_near);
} locality_windows SEC(".maps");

const volatile __u32 locality_windows_mask = NR_PLACES - 1;

static __always_inline struct tier_near *window_at(const struct tier_fault *f, __u64 addr,
						   __u64 window)
{
	__u32 place = tier_pair_hash((addr & -window) ^ f->mm_id << 20) & locality_windows_mask;

	return bpf_map_lookup_elem(&locality_windows, &place);
}

/* A hot page's window begins in its own block or in the one before. */
static __always_inline bool is_near(const struct tier_fault *f, __u64 window)
{
	struct tier_near *near = window_at(f, f->addr, window);

	if (near && tier_near_covers(near, f, window, tier_page_shift))
		return true;
	near = window_at(f, f->addr - window, window);
	return near && tier_near_covers(near, f, window, tier_page_shift);
}

/* The near pages of a hot one, for the daemon. */
static __always_inline void request(const struct tier_fault *f, __u64 window)
{
	__u64 end = tier_near_end(f->addr, f->vm_end, window, tier_page_shift);
	struct tier_node *node = tier_node(f);
	struct tier_request req = {};
	__u32 nr;

	/* Another process's memory: nobody here knows by which id to reach it. */
	if (!node || f->flags & TIER_FAULT_REMOTE || !tier_daemon_listens())
		return;
	nr = tier_near_pages(f, ((end - f->addr) >> tier_page_shift) - 1);
	if (!nr)
		return;
	req.start = f->addr + (1ULL << tier_page_shift);
	req.end = req.start + ((__u64)nr << tier_page_shift);
	req.mm_id = f->mm_id;
	req.tgid = f->tgid;
	req.pid = f->pid;
	req.src_nid = f->src_nid;
	req.dst_nid = f->dst_nid;
	req.nr_pages = nr;
	req.kind = TIER_REQUEST_NEAR;
	tier_request(node, f->now_ms, &req);
}

static enum tier_decision decide(const struct tier_fault *f)
{
	__u64 limit_pages_per_s = tier_mbps_to_pages(rate_limit_mbps, tier_page_shift), window;
	__u32 threshold_ms = hot_threshold_ms;
	bool hot = f->latency_ms < threshold_ms;
	struct tier_near *near;

	tier_publish(f, threshold_ms, limit_pages_per_s);
	window = f->flags & TIER_FAULT_ADDR ? tier_near_window(around_bytes, tier_page_shift) : 0;
	if (!hot && !(window && is_near(f, window)))
		return TIER_REJECT_COLD;
	if (!tier_rate_take(f, limit_pages_per_s))
		return TIER_REJECT_RATE;
	if (!hot)
		return TIER_PROMOTE_NEAR;
	near = window ? window_at(f, f->addr, window) : NULL;
	if (near) {
		near->mm_id = f->mm_id;
		near->vm_start = f->vm_start;
		near->addr = f->addr;
		near->now_ms = f->now_ms;
		request(f, window);
	}
	return TIER_PROMOTE_HOT;
}

TIER_POLICY(locality, decide, .flags = TIER_NEED_ADDR);
