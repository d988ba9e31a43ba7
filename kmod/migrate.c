// SPDX-License-Identifier: GPL-2.0
/*
 * The migrated op: outcome of promotions out of the hint fault path.
 *
 * A promotion can be refused before it begins (migrate_misplaced_folio_prepare()
 * fails) or end in migrate_misplaced_folio(), with success or not: one report
 * each. What is reported is taken at the functions' entry; at their end the
 * folio may be gone.
 */
#include "internal.h"
#include <linux/jiffies.h>
#include <linux/ptrace.h>

static int move_begin(struct kretprobe_instance *ri, struct pt_regs *regs, int node_arg)
{
	struct folio *folio = (struct folio *)regs_get_kernel_argument(regs, 0);
	struct tier_move *move = (struct tier_move *)ri->data;
	int dst_nid = (int)regs_get_kernel_argument(regs, node_arg);
	int src_nid = folio_nid(folio);

	if (tier_node_left_alone(src_nid) || !tier_node_is_top(dst_nid))
		return 1;	/* no promotion: its end is not reported */
	*move = (struct tier_move) {
		.src_nid = src_nid,
		.dst_nid = dst_nid,
		.nr_pages = folio_nr_pages(folio),
		.pfn = folio_pfn(folio),
	};
	return 0;
}

static void move_end(struct kretprobe_instance *ri, int error)
{
	struct tier_move *move = (struct tier_move *)ri->data;
	struct tier_in_force *policy;

	move->error = error;
	move->now_ms = jiffies_to_msecs(jiffies);
	rcu_read_lock();
	policy = rcu_dereference(tier_hot.policy);
	if (policy && policy->ops->migrated) {
		tier_event(MIGRATED_CALLS);
		policy->ops->migrated(move);
	}
	rcu_read_unlock();
}

static int migrate_begin(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	return move_begin(ri, regs, TIER_MIGRATE_NODE_ARG);
}

static int migrate_end(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	move_end(ri, (int)regs_return_value(regs));
	return 0;
}

struct kretprobe tier_migrate_probe = {
	.kp.symbol_name = "migrate_misplaced_folio",
	.entry_handler = migrate_begin,
	.handler = migrate_end,
	.data_size = sizeof(struct tier_move),
	/* Migrations sleep: as many may be under way as there are faulting tasks. */
	.maxactive = 1024,
};

static int prepare_begin(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	return move_begin(ri, regs, 2);
}

/* Success is the beginning of a migration, which reports its own end. */
static int prepare_end(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	int error = (int)regs_return_value(regs);

	if (error)
		move_end(ri, error);
	return 0;
}

struct kretprobe tier_prepare_probe = {
	.kp.symbol_name = "migrate_misplaced_folio_prepare",
	.entry_handler = prepare_begin,
	.handler = prepare_end,
	.data_size = sizeof(struct tier_move),
	.maxactive = 1024,
};
