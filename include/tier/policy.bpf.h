/* SPDX-License-Identifier: GPL-2.0 */
/*
 * BPF only: the one header that a policy includes.
 *
 *	#include <tier/policy.bpf.h>
 *
 *	TIER_PARAM(__u32, hot_threshold_ms, 1000, 0, 60000, "ms",
 *		   "a page that faults sooner than this after its scan is hot");
 *
 *	static enum tier_decision decide(const struct tier_fault *f)
 *	{
 *		return f->latency_ms < hot_threshold_ms ? TIER_PROMOTE_HOT : TIER_REJECT_COLD;
 *	}
 *
 *	TIER_POLICY(myname, decide);
 *
 * From the one function the kit makes three programs:
 *
 *	myname_promote	struct_ops: decides real faults inline
 *	myname_shadow	fentry: sees the same faults, counts, changes nothing
 *	myname_replay	syscall: runs over recorded or made-up faults
 *
 * The three differ in who fills the fault record in; all go through tier_run(),
 * which also does the accounting: every fault counts once, in tier_counts under
 * its decision and in tier_hist under its latency.
 */
#ifndef TIER_POLICY_BPF_H
#define TIER_POLICY_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <tier/abi.h>
#include <tier/ops.h>
#include <tier/compat.bpf.h>
#include <tier/brake.h>
#include <tier/gate.h>
#include <tier/hist.h>
#include <tier/pair.h>
#include <tier/rate.h>
#include <tier/wrap.h>

#define TIER_INLINE static inline __attribute__((always_inline))

char _license[] SEC("license") = "GPL";

/*
 * What the loader knows of the machine; constants to the verifier, which drops
 * the code that they rule out.
 */
const volatile __u32 tier_nr_nodes = 1;		/* highest possible node id + 1 */
const volatile __u64 tier_top_nodes;		/* bit n: node n is in the top tier */
const volatile __u32 tier_stamp_shift;		/* scan stamp in the folio's flags word */
const volatile __u32 tier_stamp_bits;
const volatile __u32 tier_stamp_unit_ms = 1;
const volatile __u32 tier_stamp_wrap_ms;	/* 0: unknown, latency is taken as it is */
const volatile __u32 tier_page_shift = 12;
/* Used by the shadow program only; 0 means unknown and is safe. */
const volatile __u32 tier_hz;			/* 1e9 / clock_getres(CLOCK_MONOTONIC_COARSE) */
const volatile __u64 tier_kaddr_numa_mode;	/* address of sysctl_numa_balancing_mode */
const volatile __u64 tier_kaddr_vmemmap_base;	/* address of vmemmap_base (x86) */

#include <tier/params.bpf.h>
#include <tier/maps.bpf.h>

/* ---- kfuncs of the module: weak, test bpf_ksym_exists() before the call ---- */

extern bool tier_bpf_node_is_toptier(__s32 nid) __ksym __weak;
extern bool tier_bpf_node_has_room(__s32 nid) __ksym __weak;
extern bool tier_bpf_folio_mapped_multiple(struct folio *folio) __ksym __weak;
extern __s32 tier_bpf_nearest_toptier(__s32 nid, __u64 allowed_nodes) __ksym __weak;
extern __u32 tier_bpf_near_pages(__u32 max) __ksym __weak;

/* ---- helpers for policies ---- */

/* The target node's state, which outlives swaps; NULL for an unknown node. */
TIER_INLINE struct tier_node *tier_node(const struct tier_fault *f)
{
	__u32 nid = f->dst_nid;

	return bpf_map_lookup_elem(&tier_nodes, &nid);
}

TIER_INLINE void tier_publish_on(struct tier_node *node, __u32 threshold_ms,
				 __u64 limit_pages_per_s)
{
	/* stores only when something changes: all CPUs share the line */
	if (node->threshold_ms != threshold_ms)
		node->threshold_ms = threshold_ms;
	if (node->limit_pages_per_s != limit_pages_per_s)
		node->limit_pages_per_s = limit_pages_per_s;
}

/*
 * Publish what is in force on the target node, for `tierctl stats`: hot
 * threshold and rate limit, each 0 when the policy has none. They outlive a
 * swap, so a policy without them publishes zeroes.
 */
TIER_INLINE void tier_publish(const struct tier_fault *f, __u32 threshold_ms,
			      __u64 limit_pages_per_s)
{
	struct tier_node *node = tier_node(f);

	if (node)
		tier_publish_on(node, threshold_ms, limit_pages_per_s);
}

/*
 * True for one in sixteen moments. What a policy only tells the operator need
 * not be told at every fault: guard tier_publish() with it on the way to a
 * refusal, which is the path that has to be short.
 */
TIER_INLINE bool tier_now_and_then(const struct tier_fault *f)
{
	return !(f->now_ms & 0x3c0);
}

/* As tier_publish(), for a policy that has a threshold and leaves the limit alone. */
TIER_INLINE void tier_set_threshold(const struct tier_fault *f, __u32 threshold_ms)
{
	struct tier_node *node = tier_node(f);

	if (node && node->threshold_ms != threshold_ms)
		node->threshold_ms = threshold_ms;
}

/*
 * Count a page that passed the threshold; false when the target node's limit
 * for this second is used up. A limit of 0 admits all.
 */
TIER_INLINE bool tier_rate_take(const struct tier_fault *f, __u64 limit_pages_per_s)
{
	struct tier_node *node = tier_node(f);

	return !node || tier_rate_admit(node, f->now_ms, f->nr_pages, limit_pages_per_s);
}

/*
 * How many of the max pages after the faulting one wait for their access on the
 * slow tier; they count as accessed now. Needs TIER_NEED_ADDR; a replayed fault
 * brings the answer with it.
 */
TIER_INLINE __u32 tier_near_pages(const struct tier_fault *f, __u32 max)
{
	if (f->near_pages)
		return f->near_pages < max ? f->near_pages : max;
	return bpf_ksym_exists(tier_bpf_near_pages) ? tier_bpf_near_pages(max) : 0;
}

/*
 * A page's identity that outlives its moves, well spread over 64 bits. Records that
 * were made up or recorded elsewhere may have no page_id: then by address, or else by
 * frame, which changes when the page moves. A large folio has one, whichever part faults.
 */
TIER_INLINE __u64 tier_page_hash(const struct tier_fault *f)
{
	__u64 bytes = (__u64)f->nr_pages << (tier_page_shift & 63);

	if (f->page_id)
		return tier_pair_hash(f->page_id);
	if (f->flags & TIER_FAULT_ADDR)
		return tier_pair_hash((f->addr & -bytes) ^ f->mm_id << 20);
	return tier_pair_hash(f->pfn);
}

/* ---- what the kit does around every decision ---- */

/* Out of line: rarely in force, and inlined it would cost every fault its registers. */
static __noinline __u32 tier_wrap_resolve(__u64 mm_id, __u64 addr, __u32 now_ms, __u32 latency_ms)
{
	struct tier_region_key key = { .mm_id = mm_id, .region = addr >> TIER_REGION_SHIFT };
	struct tier_region *region = bpf_map_lookup_elem(&tier_regions, &key);

	return tier_wrap_latency(region, now_ms, latency_ms, tier_stamp_wrap_ms,
				 tier_stamp_unit_ms);
}

TIER_INLINE __u32 tier_true_latency(const struct tier_fault *f)
{
	if (!(f->flags & TIER_FAULT_ADDR) || !tier_stamp_wrap_ms)
		return f->latency_ms;
	if (!wrap_proof || (wrap_proof == 2 && tier_stamp_wrap_ms >= TIER_WRAP_AUTO_MS))
		return f->latency_ms;
	return tier_wrap_resolve(f->mm_id, f->addr, f->now_ms, f->latency_ms);
}

/* Refusals that any policy can switch on; TIER_KERNEL when none applies. */
TIER_INLINE int tier_refuse(const struct tier_fault *f)
{
	if (reject_shared_cow && (f->flags & TIER_FAULT_SHARED) &&
	    (f->flags & TIER_FAULT_ADDR) &&
	    (f->vm_flags & (VM_SHARED | VM_MAYWRITE)) == VM_MAYWRITE)
		return TIER_REJECT_SHARED;
	if (honour_nodemask && (f->flags & TIER_FAULT_ALLOWED_KNOWN) &&
	    !(f->flags & TIER_FAULT_ALLOWED))
		return TIER_REJECT_NODEMASK;
	return TIER_KERNEL;
}

/* Only with one of these is there anything to do before the policy decides. */
#define TIER_FAULT_PREPARE \
	(TIER_FAULT_ADDR | TIER_FAULT_SHARED_KNOWN | TIER_FAULT_ALLOWED_KNOWN)

TIER_INLINE int tier_prepare(struct tier_fault *f)
{
	if (!(f->flags & TIER_FAULT_PREPARE))
		return TIER_KERNEL;
	f->latency_ms = tier_true_latency(f);
	return tier_refuse(f);
}

/* A promote decision on its way through the thrash brake. */
static __noinline int tier_brake_check(__u64 hash, __u32 now_ms, __u32 dst, __u32 nr_pages,
				       int decision)
{
	__u32 index = hash & tier_brake_marks_mask;
	__u64 *bucket = bpf_map_lookup_elem(&tier_brake_marks, &index);
	struct tier_brake *brake = bpf_map_lookup_elem(&tier_brakes, &dst);
	bool returned;

	if (!bucket || !brake)
		return decision;
	returned = tier_pair_has(*bucket, hash, now_ms, TIER_BRAKE_WINDOW_MS);
	if (!tier_brake_admit(brake, now_ms, nr_pages, returned, thrash_limit_percent))
		return TIER_REJECT_THRASH;
	*bucket = tier_pair_add(*bucket, hash, now_ms);
	return decision;
}

/*
 * What the parameters make of a decision: only promotions are touched. The page's
 * identity is read from the record as it came in, so that nothing of it need be
 * kept on the way to a refusal.
 */
TIER_INLINE int tier_check(const struct tier_fault *f, const struct tier_fault *from, int decision)
{
	struct tier_node *node;

	if (decision < TIER_FIRST_PROMOTE || decision >= TIER_FIRST_REJECT)
		return decision;
	if (success_gate) {
		node = tier_node(f);
		if (node && !tier_gate_admit(node, f->now_ms))
			return TIER_REJECT_FULL;
	}
	if (thrash_limit_percent)
		return tier_brake_check(tier_page_hash(from), f->now_ms, f->dst_nid, f->nr_pages,
					decision);
	return decision;
}

TIER_INLINE void tier_account(const struct tier_fault *f, __u32 decision)
{
	__u32 pair = (__u32)f->src_nid * tier_nr_nodes + (__u32)f->dst_nid;
	__u32 dst = f->dst_nid, slot = tier_hist_slot(f->latency_ms);
	struct tier_counts *counts;
	struct tier_hist *hist;

	/* not a decision: the kernel will decide, so count it as that */
	if (decision >= TIER_NR_DECISIONS)
		decision = TIER_KERNEL;
	counts = bpf_map_lookup_elem(&tier_counts, &pair);
	if (counts) {
		counts->faults[decision]++;
		counts->pages[decision] += f->nr_pages;
	}
	hist = bpf_map_lookup_elem(&tier_hist, &dst);
	if (hist && slot < TIER_HIST_SLOTS)
		hist->pages[slot] += f->nr_pages;
}

/*
 * One fault through refusal, decision and accounting; f is a copy of from, and
 * its latency may be corrected. Macros, so that the policy's function is called
 * directly and inlined: what it does not read is never copied.
 */
#define tier_run_from(f, from, decide) ({					\
	int __decision = tier_prepare(f);					\
										\
	if (!__decision)							\
		__decision = decide(f);						\
	__decision = tier_check(f, from, __decision);				\
	tier_account(f, __decision);						\
	__decision;								\
})
#define tier_run(f, decide)	tier_run_from(f, f, decide)

/* The same without a copy, for a record that needs no preparation: most of them. */
#define tier_run_plain(from, decide) ({						\
	int __decision = tier_check(from, from, decide(from));			\
										\
	tier_account(from, __decision);						\
	__decision;								\
})

/*
 * Field by field: the module's record is a trusted BTF pointer, from which each
 * load must stay inside one member; only what is used survives optimisation.
 */
TIER_INLINE void tier_fault_copy(struct tier_fault *to, const struct tier_fault *from)
{
	to->now_ms = from->now_ms;
	to->latency_ms = from->latency_ms;
	to->nr_pages = from->nr_pages;
	to->flags = from->flags;
	to->src_nid = from->src_nid;
	to->dst_nid = from->dst_nid;
	to->pid = from->pid;
	to->tgid = from->tgid;
	to->now_ns = from->now_ns;
	to->pfn = from->pfn;
	to->page_id = from->page_id;
	to->addr = to->mm_id = to->vm_start = to->vm_end = to->vm_flags = 0;
	to->near_pages = to->reserved = 0;
	if (from->flags & TIER_FAULT_ADDR) {
		to->addr = from->addr;
		to->mm_id = from->mm_id;
		to->vm_start = from->vm_start;
		to->vm_end = from->vm_end;
		to->vm_flags = from->vm_flags;
		to->near_pages = from->near_pages;
	}
}

/*
 * Shadow: build the record from what should_numa_migrate_memory(p, folio,
 * src_nid, dst_cpu) was given. False when the fault is not a tiering one. The
 * address is not at hand here, so nothing that needs it is known.
 */
TIER_INLINE bool tier_shadow_fault(struct tier_fault *f, unsigned long long *ctx, __u32 needs)
{
	struct task_struct *task = (void *)ctx[0];
	const void *folio = (const void *)ctx[1];
	__u32 mask = ((1U << (tier_stamp_bits & 31)) - 1) * tier_stamp_unit_ms;
	__u64 flags, base;
	__s32 mode = 2;

	f->src_nid = ctx[2];
	if (!tier_stamp_bits || !tier_hz || (tier_top_nodes >> (f->src_nid & 63) & 1))
		return false;
	if (tier_kaddr_numa_mode)
		bpf_probe_read_kernel(&mode, sizeof(mode), (void *)tier_kaddr_numa_mode);
	if (!(mode & 2))
		return false;

	flags = tier_compat_folio_flags(folio);
	f->now_ms = tier_jiffies_ms(tier_hz);
	f->latency_ms = (f->now_ms - (__u32)(flags >> (tier_stamp_shift & 63)) * tier_stamp_unit_ms) & mask;
	f->nr_pages = 1U << (tier_compat_folio_order(folio, flags) & 31);
	/* the kernel passes the CPU that runs this */
	f->dst_nid = bpf_get_numa_node_id();
	f->pid = task->pid;
	f->tgid = task->tgid;
	if (needs & TIER_NEED_NS)
		f->now_ns = bpf_ktime_get_ns();
	if (!(flags >> bpf_core_enum_value(enum pageflags, PG_swapbacked) & 1))
		f->flags |= TIER_FAULT_FILE;
	if (tier_kaddr_vmemmap_base &&
	    !bpf_probe_read_kernel(&base, sizeof(base), (void *)tier_kaddr_vmemmap_base))
		f->pfn = ((__u64)folio - base) / 64;	/* sizeof(struct page) */
	f->page_id = tier_compat_page_id(folio);
	if ((needs & TIER_NEED_ROOM) && bpf_ksym_exists(tier_bpf_node_has_room)) {
		f->flags |= TIER_FAULT_ROOM_KNOWN;
		if (tier_bpf_node_has_room(f->dst_nid))
			f->flags |= TIER_FAULT_ROOM;
	}
	return true;
}

/* bpf_loop() takes no more rounds than this. */
#define TIER_REPLAY_MAX		(1U << 23)

typedef long tier_replay_one(__u32 i, struct tier_replay *run);

TIER_INLINE int tier_replay_run(struct tier_replay *ctx, tier_replay_one *one)
{
	struct tier_replay run = { .first = ctx->first, .nr = ctx->nr };
	__u64 rounds = (__u64)ctx->nr * ctx->repeat, begun;

	if (!rounds || rounds > TIER_REPLAY_MAX) {
		ctx->error = rounds ? -E2BIG : -EINVAL;
		return ctx->error;
	}
	begun = bpf_ktime_get_ns();
	bpf_loop(rounds, one, &run, 0);
	ctx->elapsed_ns = bpf_ktime_get_ns() - begun;
	ctx->error = run.error;
	return run.error;
}

/*
 * Define the policy: its name (1..15 characters, an identifier), its decision
 * function, and any further members of struct tier_policy_ops, such as
 * .flags = TIER_NEED_ROOM or .scan = (void *)myname_scan. Once per object.
 */
#define TIER_POLICY(pname, decide, ...)						\
enum { pname##_needs = (struct tier_policy_ops){ __VA_ARGS__ }.flags };		\
SEC("struct_ops/" #pname "_promote")						\
int __attribute__((flatten)) pname##_promote(unsigned long long *ctx)		\
{										\
	const struct tier_fault *from = (const struct tier_fault *)ctx[0];	\
	struct tier_fault f;							\
										\
	if (!(pname##_needs & TIER_NEED_ADDR) && !(from->flags & TIER_FAULT_PREPARE)) \
		return tier_run_plain(from, decide);				\
	tier_fault_copy(&f, from);						\
	return tier_run_from(&f, from, decide);					\
}										\
										\
_Static_assert(sizeof(#pname) <= TIER_NAME_LEN, "policy name too long");	\
SEC(".struct_ops.link")								\
struct tier_policy_ops pname = {						\
	.promote = (void *)pname##_promote,					\
	.abi_version = TIER_ABI_VERSION,					\
	.name = #pname,								\
	##__VA_ARGS__								\
};										\
										\
SEC("?fentry/should_numa_migrate_memory")					\
int __attribute__((flatten)) pname##_shadow(unsigned long long *ctx)		\
{										\
	struct tier_fault f = {};						\
										\
	if (tier_shadow_fault(&f, ctx, pname##_needs))				\
		tier_run(&f, decide);						\
	return 0;								\
}										\
										\
static long __attribute__((flatten)) pname##_replay_one(__u32 i, struct tier_replay *run) \
{										\
	__u32 at = run->first + i % run->nr;					\
	struct tier_replay_entry *entry = bpf_map_lookup_elem(&tier_replay_faults, &at); \
	struct tier_fault f;							\
										\
	if (!entry) {								\
		run->error = -ENOENT;						\
		return 1;							\
	}									\
	tier_fault_copy(&f, &entry->fault);					\
	entry->decision = tier_run_from(&f, &entry->fault, decide);		\
	entry->latency_ms = f.latency_ms;					\
	return 0;								\
}										\
										\
SEC("?syscall")									\
int pname##_replay(struct tier_replay *ctx)					\
{										\
	return tier_replay_run(ctx, pname##_replay_one);			\
}										\
extern int tier_policy_needs_a_semicolon

TIER_INLINE void tier_scan_copy(struct tier_scan *to, const struct tier_scan *from)
{
	to->start = from->start;
	to->end = from->end;
	to->mm_id = from->mm_id;
	to->vm_start = from->vm_start;
	to->vm_end = from->vm_end;
	to->vm_flags = from->vm_flags;
	to->now_ms = from->now_ms;
	to->scan_seq = from->scan_seq;
	to->pid = from->pid;
	to->tgid = from->tgid;
}

/*
 * Define a policy's scan op from one function, before TIER_POLICY, which takes
 * .scan = (void *)myname_scan. A second replay program, myname_scan_replay,
 * runs the function over the map tier_replay_scans.
 */
#define TIER_SCAN(pname, decide_scan)						\
SEC("struct_ops/" #pname "_scan")						\
int __attribute__((flatten)) pname##_scan(unsigned long long *ctx)		\
{										\
	struct tier_scan scan;							\
										\
	tier_scan_copy(&scan, (const struct tier_scan *)ctx[0]);		\
	return decide_scan(&scan);						\
}										\
										\
struct {									\
	__uint(type, BPF_MAP_TYPE_ARRAY);					\
	__uint(max_entries, 1);							\
	__type(key, __u32);							\
	__type(value, struct tier_replay_scan);					\
} tier_replay_scans SEC(".maps");						\
										\
static long __attribute__((flatten)) pname##_scan_replay_one(__u32 i, struct tier_replay *run) \
{										\
	__u32 at = run->first + i % run->nr;					\
	struct tier_replay_scan *entry = bpf_map_lookup_elem(&tier_replay_scans, &at); \
	struct tier_scan scan;							\
										\
	if (!entry) {								\
		run->error = -ENOENT;						\
		return 1;							\
	}									\
	tier_scan_copy(&scan, &entry->scan);					\
	entry->verdict = decide_scan(&scan);					\
	return 0;								\
}										\
										\
SEC("?syscall")									\
int pname##_scan_replay(struct tier_replay *ctx)				\
{										\
	return tier_replay_run(ctx, pname##_scan_replay_one);			\
}										\
extern int tier_policy_needs_a_semicolon

#endif /* TIER_POLICY_BPF_H */
