// SPDX-License-Identifier: GPL-2.0
/*
 * lazyscan: fixed threshold, and scan only where scanning pays.
 *
 * Idea. Scanning costs PTE updates, TLB flushes and a fault for every page that
 * is touched again, and most of it goes into memory that has nothing hot on the
 * slow tier. A VMA whose last scan led to no hot fault is left out of the next
 * pass, then of 3, 7, ... passes, up to 2^max_backoff - 1; its first hot fault
 * puts it back into every pass. A VMA that turns hot is thus found within
 * 2^max_backoff passes (8 by default): a pass takes at least the size of the
 * address space over scan_size_mb, times the scan period.
 *
 * Terms. Pass: one round of the scanner over an address space (its scan
 * sequence). Range: what one scan call marks, up to scan_size_mb. Hot fault:
 * latency below hot_threshold_ms. PID windows: 64-bit hashes of the threads
 * that faulted in the VMA in the last and in this pid_window_ms; beyond
 * free_ranges ranges in a pass only those scan it. The range count restarts
 * with every pass, so that disjoint VMAs all get their turn.
 *
 * Source. Per-VMA scan sequence, RFC 2023 (mm, Raghavendra K T), for counter
 * and windows, on top of the filter built into the kernel since 6.7; the
 * back-off is ours. Promotion as in the policy "fixed".
 *
 * Where it does badly. In a VMA with one hot page in a gigabyte all of it is
 * scanned. Memory that is hot for less than 2^max_backoff passes may never be
 * seen. A VMA that is split, merged or moved starts afresh.
 */
#include <tier/policy.bpf.h>
#include <tier/lazy.h>

TIER_PARAM(__u32, hot_threshold_ms, 1000, 0, 4294967295, "ms",
	   "promote a page that faults sooner than this after its scan");
TIER_PARAM(__u32, rate_limit_mbps, 0, 0, 4294967295, "MiB/s",
	   "promotion limit per target node, or a share of the slow tier's bandwidth (5%); 0 is no limit");
TIER_PARAM(__u32, max_backoff, 3, 0, 6, "",
	   "a VMA without hot faults sits out at most 2^this - 1 passes; 0 scans all");
TIER_PARAM(__u32, free_ranges, 4, 0, 4294967295, "ranges",
	   "ranges of a VMA that any thread may scan in a pass");
TIER_PARAM(__u32, pid_window_ms, 4000, 100, 600000, "ms",
	   "a thread that faulted in the VMA within two of these may go on scanning it");

struct vma_key {
	__u64 mm_id;
	__u64 vm_start;
};

/* The least recently used VMAs are forgotten: they are scanned as if new. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct vma_key);
	__type(value, struct tier_lazy_vma);
} lazyscan_vmas SEC(".maps");

static int decide_scan(const struct tier_scan *scan)
{
	struct vma_key key = { .mm_id = scan->mm_id, .vm_start = scan->vm_start };
	struct tier_lazy_vma *vma = bpf_map_lookup_elem(&lazyscan_vmas, &key), fresh = {};

	if (!vma) {
		fresh.window_start_ms = scan->now_ms;
		bpf_map_update_elem(&lazyscan_vmas, &key, &fresh, BPF_NOEXIST);
		vma = bpf_map_lookup_elem(&lazyscan_vmas, &key);
	}
	if (!vma || tier_lazy_scan(vma, scan, max_backoff, free_ranges))
		return TIER_SCAN_GO;
	return TIER_SCAN_SKIP;
}

static enum tier_decision decide(const struct tier_fault *f)
{
	__u64 limit_pages_per_s = tier_mbps_to_pages(rate_limit_mbps, tier_page_shift);
	struct vma_key key = { .mm_id = f->mm_id, .vm_start = f->vm_start };
	__u32 threshold_ms = hot_threshold_ms;
	bool hot = f->latency_ms < threshold_ms;
	struct tier_lazy_vma *vma;

	tier_publish(f, threshold_ms, limit_pages_per_s);
	if (f->flags & TIER_FAULT_ADDR) {
		vma = bpf_map_lookup_elem(&lazyscan_vmas, &key);
		if (vma)
			tier_lazy_fault(vma, f->pid, f->now_ms, pid_window_ms, hot);
	}
	if (!hot)
		return TIER_REJECT_COLD;
	if (!tier_rate_take(f, limit_pages_per_s))
		return TIER_REJECT_RATE;
	return TIER_PROMOTE_HOT;
}

TIER_SCAN(lazyscan, decide_scan);
TIER_POLICY(lazyscan, decide, .flags = TIER_NEED_ADDR, .scan = (void *)lazyscan_scan);
