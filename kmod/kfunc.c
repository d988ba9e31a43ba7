// SPDX-License-Identifier: GPL-2.0
/* Functions that policies may call beside reading the fault record. */
#include "internal.h"
#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/nodemask.h>
#include <linux/sizes.h>
#include <linux/topology.h>
#include <linux/vmstat.h>

/*
 * The free-space rule of mode 2: some zone would stay above its promotion
 * watermark plus a margin, for an order-0 page without access to reserves.
 */
bool tier_node_has_room(int nid)
{
	struct pglist_data *pgdat = NODE_DATA(nid);
	unsigned long margin_pages = max_t(unsigned long, SZ_1G >> PAGE_SHIFT,
					   pgdat->node_present_pages / 16);
	struct zone *zone;
	long free_pages, needed_pages;
	int i;

	for (i = pgdat->nr_zones - 1; i >= 0; i--) {
		zone = &pgdat->node_zones[i];
		if (!populated_zone(zone))
			continue;
		free_pages = zone_page_state(zone, NR_FREE_PAGES) - tier_zone_highatomic(zone);
		if (IS_ENABLED(CONFIG_CMA))
			free_pages -= zone_page_state(zone, NR_FREE_CMA_PAGES);
		needed_pages = promo_wmark_pages(zone) + margin_pages +
			       zone->lowmem_reserve[ZONE_MOVABLE];
		if (free_pages > needed_pages)
			return true;
	}
	return false;
}

static bool valid_node(s32 nid)
{
	return nid >= 0 && nid < min(MAX_NUMNODES, TIER_MAX_NODES) && node_online(nid);
}

__bpf_kfunc_start_defs();

/**
 * tier_bpf_node_is_toptier - does a node belong to the top memory tier?
 * @nid: node id; an id without a node is in no tier
 *
 * Any program, any op. Returns true for a top-tier node.
 */
__bpf_kfunc bool tier_bpf_node_is_toptier(s32 nid)
{
	return valid_node(nid) && tier_node_is_top(nid);
}

/**
 * tier_bpf_node_has_room - the kernel's free-space rule, as TIER_FAULT_ROOM
 * @nid: node id
 *
 * Any program, any op. Walks the node's zones: dearer than the flag, which is
 * worked out once. Returns true if every faulting page may go up to the node.
 */
__bpf_kfunc bool tier_bpf_node_has_room(s32 nid)
{
	return valid_node(nid) && tier_node_has_room(nid);
}

/**
 * tier_bpf_folio_mapped_multiple - is a folio mapped by more than one process?
 * @folio: promote()'s second argument
 *
 * promote() only. For large folios it is the kernel's estimate from the map
 * counts. Returns true if the folio is seen as shared.
 */
__bpf_kfunc bool tier_bpf_folio_mapped_multiple(struct folio *folio)
{
	return tier_folio_mapped_multiple(folio);
}

/**
 * tier_bpf_nearest_toptier - the allowed top-tier node that is nearest to a node
 * @nid: where to measure from
 * @allowed_nodes: bit n allows node n
 *
 * Any program, any op. Only nodes with memory count; equal distances go to the
 * lowest id. Returns a node id, or -1 if no allowed node is top tier.
 */
__bpf_kfunc s32 tier_bpf_nearest_toptier(s32 nid, u64 allowed_nodes)
{
	int best = NUMA_NO_NODE, node;

	if (!valid_node(nid))
		return NUMA_NO_NODE;
	for_each_node_state(node, N_MEMORY) {
		if (node >= TIER_MAX_NODES)
			break;
		if (!(allowed_nodes & BIT_ULL(node)) || !tier_node_is_top(node))
			continue;
		if (best == NUMA_NO_NODE || node_distance(nid, node) < node_distance(nid, best))
			best = node;
	}
	return best;
}

/**
 * tier_bpf_near_pages - pages after the faulting one that wait for their access
 * @max: look at no more than these, at most one page table's worth
 *
 * promote() of a policy with TIER_NEED_ADDR; elsewhere it returns 0. Counts the
 * pages that follow in the same VMA and page table, are still PROT_NONE and lie
 * on a slow-tier node, up to the first that is not so; each counts as accessed
 * now. 0 also for a page mapped by a huge entry, and on PREEMPT_RT. Cost grows
 * with the pages looked at.
 */
__bpf_kfunc u32 tier_bpf_near_pages(u32 max)
{
	return tier_near_pages(max);
}

__bpf_kfunc_end_defs();

BTF_KFUNCS_START(tier_kfuncs)
BTF_ID_FLAGS(func, tier_bpf_node_is_toptier)
BTF_ID_FLAGS(func, tier_bpf_node_has_room)
BTF_ID_FLAGS(func, tier_bpf_folio_mapped_multiple, KF_TRUSTED_ARGS)
BTF_ID_FLAGS(func, tier_bpf_nearest_toptier)
BTF_ID_FLAGS(func, tier_bpf_near_pages)
BTF_KFUNCS_END(tier_kfuncs)

BTF_ID_LIST(folio_kfunc)
BTF_ID(func, tier_bpf_folio_mapped_multiple)

#define MEMBER_PROMOTE	0	/* index of promote() in struct tier_policy_ops */
static_assert(offsetof(struct tier_policy_ops, promote) == MEMBER_PROMOTE * sizeof(void *));

/*
 * Allow table per op: the folio's kfunc belongs to promote(). A struct_ops
 * program states its member index at load time, and the verifier holds it to
 * the member's signature. Non-zero refuses.
 */
static int kfunc_filter(const struct bpf_prog *prog, u32 kfunc_id)
{
	if (kfunc_id != folio_kfunc[0])
		return 0;
	if (prog->type == BPF_PROG_TYPE_STRUCT_OPS &&
	    prog->expected_attach_type == MEMBER_PROMOTE)
		return 0;
	return -EACCES;
}

static const struct btf_kfunc_id_set kfunc_set = {
	.owner = THIS_MODULE,
	.set = &tier_kfuncs,
	.filter = kfunc_filter,
};

/* The program types that the policy kit makes from one decision function. */
int tier_kfunc_init(void)
{
	static const enum bpf_prog_type types[] = {
		BPF_PROG_TYPE_STRUCT_OPS, BPF_PROG_TYPE_TRACING, BPF_PROG_TYPE_SYSCALL,
	};
	int i, err = 0;

	for (i = 0; i < ARRAY_SIZE(types) && !err; i++)
		err = register_btf_kfunc_id_set(types[i], &kfunc_set);
	return err;
}
