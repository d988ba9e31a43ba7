// SPDX-License-Identifier: GPL-2.0
/* The scan op: asked before the NUMA scanner marks a range. */
#include "internal.h"
#include <linux/jiffies.h>
#include <linux/sched.h>

/* Where a skipped range ends: change_prot_numa() has updated no PTE. */
static noinline notrace unsigned long scan_skipped(void)
{
	return 0;
}

static bool skip_range(struct tier_in_force *policy, struct vm_area_struct *vma,
		       unsigned long start, unsigned long end)
{
	struct tier_scan scan = {
		.start = start,
		.end = end,
		.mm_id = (u64)vma->vm_mm,
		.vm_start = vma->vm_start,
		.vm_end = vma->vm_end,
		.vm_flags = vma->vm_flags,
		.now_ms = jiffies_to_msecs(jiffies),
		.scan_seq = READ_ONCE(vma->vm_mm->numa_scan_seq),
		.pid = current->pid,
		.tgid = current->tgid,
	};
	int verdict;

	tier_event(SCAN_CALLS);
	verdict = policy->ops->scan(&scan);
	if (verdict == TIER_SCAN_SKIP) {
		tier_event(SCAN_SKIPS);
		return true;
	}
	if (verdict != TIER_SCAN_GO)
		tier_policy_bad_verdict(policy, verdict);
	return false;
}

/* change_prot_numa(vma, start, end), mmap lock held for read. */
void notrace tier_hook_scan(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			    struct ftrace_regs *fregs)
{
	struct tier_in_force *policy;

	if (!tier_mode_tiering())
		return;

	rcu_read_lock();
	policy = rcu_dereference(tier_hot.policy);
	if (policy && policy->ops->scan &&
	    skip_range(policy, (struct vm_area_struct *)ftrace_regs_get_argument(fregs, 0),
		       ftrace_regs_get_argument(fregs, 1), ftrace_regs_get_argument(fregs, 2)))
		ftrace_regs_set_instruction_pointer(fregs, (unsigned long)scan_skipped);
	rcu_read_unlock();
}
