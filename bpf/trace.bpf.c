// SPDX-License-Identifier: GPL-2.0
/*
 * The observer: what the NUMA scanner and the page migration do, counted.
 *
 * Scans: how often, how long, how many PTEs; and when each 64 MiB region of an
 * address space was scanned, from which the policy kit tells a wrapped stamp.
 * Moves: outcome of every hint-fault promotion, and every page that changes
 * its tier, whoever asked for it. It decides nothing; policies work without it.
 *
 * No program loads by default ("?"): the loader turns on those whose target
 * the running kernel has. Functions whose signature changed between kernels
 * are read through bpf_get_func_arg(), which asks the kernel's BTF.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <tier/abi.h>
#include <tier/compat.bpf.h>
#include <tier/hist.h>
#include <tier/shared.bpf.h>
#include <tier/wrap.h>

char _license[] SEC("license") = "GPL";

const volatile __u32 tier_nr_nodes = 1;
const volatile __u64 tier_top_nodes;
const volatile __u32 tier_stamp_shift;	/* stamp's place in the folio's flags word: */
const volatile __u32 tier_stamp_bits;	/* the node lies above; 0: moves are not counted */
const volatile __u32 tier_page_shift = 12;
const volatile __u32 tier_hz;		/* 0: region history is not recorded */

/* A scan covers 256 MiB by default; a range of more regions is not recorded in full. */
#define MAX_REGIONS	1024

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tier_moves);
} tier_moves SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tier_scans);
} tier_scans SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tier_scan_hist);
} tier_scan_hist SEC(".maps");

/* When the scan that this task is in began; a task may change CPU meanwhile. */
struct scratch {
	__u64 work_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct scratch);
} tier_scratch SEC(".maps");

/* Atomic although per CPU: the scanner's programs can preempt one another. */
static __always_inline void add(__u64 *count, __u64 nr)
{
	__sync_fetch_and_add(count, nr);
}

static __always_inline struct tier_scans *scans(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&tier_scans, &zero);
}

static __always_inline struct scratch *scratch(__u64 flags)
{
	return bpf_task_storage_get(&tier_scratch, bpf_get_current_task_btf(), NULL, flags);
}

/* ---- scans ---- */

SEC("?fentry/task_numa_work")
int scan_work_begin(unsigned long long *ctx)
{
	struct scratch *s = scratch(BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (s)
		s->work_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline void add_run(__u64 ns)
{
	__u64 us = ns / 1000;
	__u32 zero = 0, slot;
	struct tier_scan_hist *hist = bpf_map_lookup_elem(&tier_scan_hist, &zero);

	slot = tier_hist_slot(us < 1ULL << 32 ? us : ~0U);
	if (hist && slot < TIER_HIST_SLOTS)
		add(&hist->runs[slot], 1);
}

SEC("?fexit/task_numa_work")
int scan_work_end(unsigned long long *ctx)
{
	struct tier_scans *count = scans();
	struct scratch *s = scratch(0);
	__u64 ns;

	if (!count)
		return 0;
	/* counted at the end, so that calls and time always fit together */
	if (s && s->work_ns) {
		ns = bpf_ktime_get_ns() - s->work_ns;
		add(&count->count[TIER_SC_WORKS], 1);
		add(&count->count[TIER_SC_WORK_NS], ns);
		add_run(ns);
		s->work_ns = 0;
	}
	return 0;
}

/* One scan call, as its regions are visited. */
struct visit {
	struct tier_region_key key;
	__u32 now_ms;
	__u32 begins;		/* else it ends */
	__u32 marked;		/* at the end: PTEs were marked, the scan counts */
	__u32 dropped;
};

/*
 * Small VMAs of one region are scanned one right after the other: that is one
 * scan, or they would push all older ones out of the ring.
 */
#define SAME_SCAN_MS	TIER_WRAP_SLACK_MS

static __always_inline void region_begins(struct tier_region *region, __u32 now_ms)
{
	__u32 last = (region->nr - 1) & (TIER_REGION_SCANS - 1);

	region->continued = region->nr && region->took_ms[last] != TIER_SCAN_RUNNING &&
			    now_ms - region->scan_ms[last] <= SAME_SCAN_MS;
	if (region->continued) {
		region->scan_ms[last] -= region->took_ms[last];
	} else {
		last = region->nr++ & (TIER_REGION_SCANS - 1);
		region->scan_ms[last] = now_ms;
	}
	region->took_ms[last] = TIER_SCAN_RUNNING;
}

/* Close the open scan; give its place back if it marked nothing. */
static __always_inline void region_ends(struct tier_region *region, __u32 now_ms, bool marked)
{
	__u32 last = (region->nr - 1) & (TIER_REGION_SCANS - 1);

	/*
	 * Scans of one mm rarely overlap; if they do, the first to end closes
	 * the record of both.
	 */
	if (!region->nr || region->took_ms[last] != TIER_SCAN_RUNNING)
		return;
	if (!marked && !region->continued) {
		region->nr--;
		return;
	}
	region->took_ms[last] = now_ms - region->scan_ms[last];
	region->scan_ms[last] = now_ms;
}

static long visit_region(__u32 i, struct visit *v)
{
	struct tier_region *region = bpf_map_lookup_elem(&tier_regions, &v->key);
	struct tier_region fresh = {};

	/* made when the scan begins; gone by its end: the map is too small */
	if (!region && v->begins &&
	    !bpf_map_update_elem(&tier_regions, &v->key, &fresh, BPF_NOEXIST))
		region = bpf_map_lookup_elem(&tier_regions, &v->key);
	if (!region)
		v->dropped++;
	else if (v->begins)
		region_begins(region, v->now_ms);
	else
		region_ends(region, v->now_ms, v->marked);
	v->key.region++;
	return 0;
}

static __always_inline void visit_range(struct visit *v, struct tier_scans *count,
					struct vm_area_struct *vma, __u64 start, __u64 end)
{
	__u64 first = start >> TIER_REGION_SHIFT, last = (end - 1) >> TIER_REGION_SHIFT;
	__u64 nr = last - first + 1;

	v->now_ms = tier_jiffies_ms(tier_hz);
	v->key.mm_id = (__u64)vma->vm_mm;
	v->key.region = first;
	if (nr > MAX_REGIONS) {
		if (v->begins)
			v->dropped += nr - MAX_REGIONS;
		nr = MAX_REGIONS;
	}
	bpf_loop(nr, visit_region, v, 0);
	if (v->dropped)
		add(&count->count[TIER_SC_REGION_DROPS], v->dropped);
}

SEC("?fentry/change_prot_numa")
int scan_range_begin(unsigned long long *ctx)
{
	struct tier_scans *count = scans();
	struct visit v = { .begins = 1 };

	if (count && tier_hz && ctx[1] < ctx[2])
		visit_range(&v, count, (struct vm_area_struct *)ctx[0], ctx[1], ctx[2]);
	return 0;
}

SEC("?fexit/change_prot_numa")
int scan_range_end(unsigned long long *ctx)
{
	__u64 start = ctx[1], end = ctx[2], ptes = ctx[3];
	struct visit v = { .marked = ptes > 0 };
	struct tier_scans *count = scans();

	if (!count || start >= end)
		return 0;
	add(&count->count[TIER_SC_RANGES], 1);
	add(&count->count[TIER_SC_RANGE_PAGES], (end - start) >> tier_page_shift);
	add(&count->count[TIER_SC_PTES], ptes);
	if (tier_hz)
		visit_range(&v, count, (struct vm_area_struct *)ctx[0], start, end);
	return 0;
}

/* (mm, vma, reason); the numbers of the reasons are the kernel's, so by name. */
SEC("?tp_btf/sched_skip_vma_numa")
int scan_skip(unsigned long long *ctx)
{
	__u32 reason = ctx[2], at = TIER_SK_OTHER;
	struct tier_scans *count = scans();

#define REASON(kernel, ours)							\
	if (bpf_core_enum_value_exists(enum numa_vmaskip_reason, kernel) &&	\
	    reason == bpf_core_enum_value(enum numa_vmaskip_reason, kernel))	\
		at = ours
	REASON(NUMAB_SKIP_UNSUITABLE, TIER_SK_UNSUITABLE);
	REASON(NUMAB_SKIP_SHARED_RO, TIER_SK_SHARED_RO);
	REASON(NUMAB_SKIP_INACCESSIBLE, TIER_SK_INACCESSIBLE);
	REASON(NUMAB_SKIP_SCAN_DELAY, TIER_SK_SCAN_DELAY);
	REASON(NUMAB_SKIP_PID_INACTIVE, TIER_SK_PID_INACTIVE);
	REASON(NUMAB_SKIP_IGNORE_PID, TIER_SK_IGNORE_PID);
	REASON(NUMAB_SKIP_SEQ_COMPLETED, TIER_SK_SEQ_COMPLETED);
#undef REASON
	if (count)
		add(&count->skip[at], 1);
	return 0;
}

/* ---- moves ---- */

static __always_inline bool is_top(__s32 nid)
{
	return tier_top_nodes >> (nid & 63) & 1;
}

static __always_inline void count_move(__s32 src, __s32 dst, __u32 what, __u64 nr)
{
	__u32 pair = (__u32)src * tier_nr_nodes + (__u32)dst;
	struct tier_moves *moves = bpf_map_lookup_elem(&tier_moves, &pair);

	if (moves)
		add(&moves->count[what], nr);
}

/*
 * (folio, vma, node) up to Linux 6.15, then migrate_misplaced_folio(folio, node):
 * the node is the last argument of both. The folio may be free by now, but the
 * node of its memory does not change.
 */
static __always_inline int count_outcome(unsigned long long *ctx, __u32 ok, __u32 bad, bool count_ok)
{
	__u64 node = 0, ret = 0;
	struct tier_node *state;
	__u32 dst;
	__s32 src;

	if (bpf_get_func_ret(ctx, &ret) || (!(__s32)ret && !count_ok) || !tier_stamp_bits ||
	    bpf_get_func_arg(ctx, bpf_get_func_arg_cnt(ctx) - 1, &node))
		return 0;
	src = tier_compat_folio_nid((const void *)ctx[0], tier_stamp_shift, tier_stamp_bits);
	if (is_top(src) || !is_top(node))
		return 0;
	dst = node;
	state = bpf_map_lookup_elem(&tier_nodes, &dst);
	if ((__s32)ret) {
		count_move(src, node, bad, 1);
		if (state)
			add(&state->moved_failed, 1);
	} else {
		count_move(src, node, ok, 1);
		if (state)
			add(&state->moved_ok, 1);
	}
	return 0;
}

SEC("?fexit/migrate_misplaced_folio_prepare")
int move_prepare(unsigned long long *ctx)
{
	return count_outcome(ctx, 0, TIER_MV_PROMOTE_REFUSED, false);
}

SEC("?fexit/migrate_misplaced_folio")
int move_misplaced(unsigned long long *ctx)
{
	return count_outcome(ctx, TIER_MV_PROMOTE_OK, TIER_MV_PROMOTE_FAILED, true);
}

/* (newfolio, folio): called once for every folio that is about to be replaced. */
SEC("?fentry/folio_migrate_flags")
int move_flags(unsigned long long *ctx)
{
	const void *to = (const void *)ctx[0], *from = (const void *)ctx[1];
	struct tier_node *state;
	__s32 src, dst;
	__u64 nr;

	if (!tier_stamp_bits)
		return 0;
	src = tier_compat_folio_nid(from, tier_stamp_shift, tier_stamp_bits);
	dst = tier_compat_folio_nid(to, tier_stamp_shift, tier_stamp_bits);
	if (is_top(src) == is_top(dst))
		return 0;
	nr = 1ULL << (tier_compat_folio_order(from, tier_compat_folio_flags(from)) & 31);
	count_move(src, dst, is_top(dst) ? TIER_MV_PROMOTED : TIER_MV_DEMOTED, nr);
	if (is_top(dst))
		return 0;
	state = bpf_map_lookup_elem(&tier_nodes, &src);
	if (state)
		add(&state->demoted_pages, nr);
	return 0;
}
