// SPDX-License-Identifier: GPL-2.0
/*
 * Hint faults that lead nowhere: the CPU's node is not one that the memory may go to.
 *
 * A task whose memory policy (BIND or PREFERRED_MANY with NUMA balancing) names
 * other nodes than the one it runs on takes hint faults like any other, but the
 * kernel rules them out before it asks for a decision: no policy ever sees them.
 * The same holds, one step later, for a cpuset: there the promotion cannot succeed.
 * While a daemon wants it, this program sees these faults first, judges their
 * latency by the threshold in force on the nearest top-tier node that is allowed,
 * and asks the daemon to move the hot ones there.
 *
 * It decides nothing inline, and a fault whose CPU is on an allowed node is left
 * to the policy after a few loads.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <tier/abi.h>
#include <tier/compat.bpf.h>
#include <tier/request.bpf.h>
#include <tier/shared.bpf.h>
#include <tier/wrap.h>

char _license[] SEC("license") = "GPL";

const volatile __u32 tier_nr_nodes = 1;
const volatile __u64 tier_top_nodes;
const volatile __u32 tier_stamp_shift;
const volatile __u32 tier_stamp_bits;
const volatile __u32 tier_stamp_unit_ms = 1;
const volatile __u32 tier_stamp_wrap_ms;
const volatile __u32 tier_page_shift = 12;
const volatile __u32 tier_hz;
/* As the firmware's table has it, [from * TIER_MAX_NODES + to]; 0: not known. */
const volatile __u8 tier_distances[TIER_MAX_NODES * TIER_MAX_NODES];

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TIER_MAX_NODES);
	__type(key, __u32);
	__type(value, struct tier_async_node);
} tier_async_nodes SEC(".maps");

/* Nodes of the task's or the VMA's memory policy; all if it does not restrict. */
static __always_inline __u64 policy_nodes(struct task_struct *task, struct vm_area_struct *vma)
{
	struct mempolicy *policy = task->mempolicy;

	/* tmpfs and the like: the policy is the object's, which cannot be asked from here */
	if (vma->vm_ops && vma->vm_ops->get_policy)
		return ~0ULL;
	if (vma->vm_policy)
		policy = vma->vm_policy;
	if (!policy || (policy->mode != MPOL_BIND && policy->mode != MPOL_PREFERRED_MANY) ||
	    (policy->flags & (MPOL_F_MOF | MPOL_F_MORON)) != (MPOL_F_MOF | MPOL_F_MORON))
		return ~0ULL;
	return policy->nodes.bits[0];
}

struct nearest {
	__u64 allowed;
	__u32 from;
	__s32 best;
	__u32 best_distance;
};

static long look_at_node(__u32 node, struct nearest *n)
{
	__u32 at = (n->from * TIER_MAX_NODES + node) & (TIER_MAX_NODES * TIER_MAX_NODES - 1);
	__u32 distance = tier_distances[at];

	if (n->allowed >> (node & 63) & 1 && (n->best < 0 || distance < n->best_distance)) {
		n->best = node;
		n->best_distance = distance;
	}
	return 0;
}

static __always_inline __u32 latency_of(struct vm_area_struct *vma, __u64 addr, __u64 flags,
					__u32 now_ms)
{
	struct tier_region_key key = {
		.mm_id = (__u64)vma->vm_mm, .region = addr >> TIER_REGION_SHIFT,
	};
	__u32 mask = ((1U << (tier_stamp_bits & 31)) - 1) * tier_stamp_unit_ms;
	__u32 stamp_ms = (__u32)(flags >> (tier_stamp_shift & 63)) * tier_stamp_unit_ms;

	return tier_wrap_latency(bpf_map_lookup_elem(&tier_regions, &key), now_ms,
				 (now_ms - stamp_ms) & mask, tier_stamp_wrap_ms,
				 tier_stamp_unit_ms);
}

/* (folio, vmf, addr), under the page-table lock, before the kernel decides. */
SEC("?fentry/mpol_misplaced")
int async_fault(unsigned long long *ctx)
{
	const void *folio = (const void *)ctx[0];
	struct vm_area_struct *vma = ((struct vm_fault *)ctx[1])->vma;
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 here = 1ULL << (bpf_get_numa_node_id() & 63), in_policy, in_cpuset, flags;
	struct tier_request req = {};
	struct tier_async_node *async;
	struct tier_node *node;
	struct nearest n;
	__u32 now_ms, target;
	__s32 src;

	if (!tier_stamp_bits || !tier_hz)
		return 0;
	in_policy = policy_nodes(task, vma);
	in_cpuset = task->mems_allowed.bits[0];
	if (in_policy & in_cpuset & here)
		return 0;
	src = tier_compat_folio_nid(folio, tier_stamp_shift, tier_stamp_bits);
	if (tier_top_nodes >> (src & 63) & 1 || !tier_daemon_listens())
		return 0;
	/* outside the cpuset only: the policy is asked, and counts the fault itself */
	if (!(in_policy & here))
		tier_request_count(TIER_RQ_NODEMASK_FAULTS, 1);

	n = (struct nearest){ .allowed = in_policy & in_cpuset & tier_top_nodes, .from = src,
			      .best = -1 };
	bpf_loop(tier_nr_nodes, look_at_node, &n, 0);
	if (n.best < 0) {
		tier_request_count(TIER_RQ_NODEMASK_NOWHERE, 1);
		return 0;
	}
	target = n.best;
	flags = tier_compat_folio_flags(folio);
	now_ms = tier_jiffies_ms(tier_hz);
	async = bpf_map_lookup_elem(&tier_async_nodes, &target);
	node = bpf_map_lookup_elem(&tier_nodes, &target);
	if (!async || !node || latency_of(vma, ctx[2], flags, now_ms) >= async->threshold_ms) {
		tier_request_count(TIER_RQ_NODEMASK_COLD, 1);
		return 0;
	}
	/* another process's memory: nobody here knows by which id to reach it */
	if (vma->vm_mm != task->mm)
		return 0;
	req.start = ctx[2] & -(1ULL << tier_page_shift);
	req.end = req.start + (1ULL << tier_page_shift);
	req.mm_id = (__u64)vma->vm_mm;
	req.tgid = task->tgid;
	req.pid = task->pid;
	req.src_nid = src;
	req.dst_nid = target;
	req.nr_pages = 1U << (tier_compat_folio_order(folio, flags) & 31);
	req.kind = TIER_REQUEST_NODEMASK;
	tier_request(node, now_ms, &req);
	return 0;
}
