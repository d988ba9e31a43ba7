// SPDX-License-Identifier: GPL-2.0
/* The fast path: one hint fault, from the kernel's question to our verdict. */
#include "internal.h"
#include <linux/filter.h>
#include <linux/jiffies.h>
#include <linux/mempolicy.h>
#include <linux/nodemask.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include <linux/topology.h>
#include <linux/vmstat.h>

/*
 * Sets of decisions as bit masks, all constants: the known ones, any other value
 * being a bad verdict, and the ones that pgpromote_candidate or its companion
 * counts.
 */
static __always_inline u32 known_decisions(void)
{
#define TIER_DECISION(id, verdict, sym, name, cause) | BIT(id)
	return 0
#include <tier/decisions.def>
		;
#undef TIER_DECISION
}

/* Refusals that nothing is counted for elsewhere: most faults end in one. */
static __always_inline u32 plain_rejects(void)
{
#define TIER_DECISION(id, verdict, sym, name, cause) \
	| ((id) >= TIER_FIRST_REJECT && !tier_decision_is_candidate(id) ? BIT(id) : 0)
	return 0
#include <tier/decisions.def>
		;
#undef TIER_DECISION
}

static __always_inline u32 counted_decisions(void)
{
#define TIER_DECISION(id, verdict, sym, name, cause) \
	| (tier_decision_is_candidate(id) ? BIT(id) : 0)
	return BIT(TIER_PROMOTE_ROOM)
#include <tier/decisions.def>
		;
#undef TIER_DECISION
}

/*
 * Where the hook sends the CPU to impose a verdict: should_numa_migrate_memory()
 * returns from here to its caller.
 */
static noinline notrace bool verdict_promote(void)
{
	return true;
}

static noinline notrace bool verdict_reject(void)
{
	return false;
}

/*
 * The last fault address on this CPU, left by mpol_misplaced()'s hook for the
 * decision that follows under the same page-table lock. On PREEMPT_RT that lock lets
 * the task move to another CPU in between, and its slot then outlives the fault whose
 * vm_fault it points to: no slot counts there, and there is no address.
 */
struct fault_address {
	struct task_struct *task;
	struct folio *folio;
	struct vm_fault *vmf;
	unsigned long addr;
};
static DEFINE_PER_CPU(struct fault_address, fault_address);

void notrace tier_hook_address(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			       struct ftrace_regs *fregs)
{
	struct fault_address *slot;

	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		return;
	preempt_disable_notrace();
	slot = this_cpu_ptr(&fault_address);
	slot->task = current;
	slot->folio = (struct folio *)ftrace_regs_get_argument(fregs, 0);
	slot->vmf = (struct vm_fault *)ftrace_regs_get_argument(fregs, 1);
	slot->addr = ftrace_regs_get_argument(fregs, 2) & PAGE_MASK;
	preempt_enable_notrace();
}

static struct vm_area_struct *fill_address(struct tier_fault *fault, struct folio *folio)
{
	struct vm_area_struct *vma = NULL;
	struct fault_address *slot;

	if (!IS_ENABLED(CONFIG_PREEMPT_RT)) {
		preempt_disable_notrace();
		slot = this_cpu_ptr(&fault_address);
		if (slot->task == current && slot->folio == folio) {
			vma = slot->vmf->vma;
			fault->addr = slot->addr;
			tier_near_begin(slot->vmf, fault->now_ms);
		}
		slot->task = NULL;
		preempt_enable_notrace();
	}

	if (!vma) {
		tier_event(NO_ADDRESS);
		return NULL;
	}
	fault->mm_id = (u64)vma->vm_mm;
	fault->vm_start = vma->vm_start;
	fault->vm_end = vma->vm_end;
	fault->vm_flags = vma->vm_flags;
	fault->flags |= TIER_FAULT_ADDR;
	if (vma->vm_mm != current->mm)
		fault->flags |= TIER_FAULT_REMOTE;
	return vma;
}

static bool mempolicy_allows(const struct mempolicy *policy, int nid)
{
	if (!policy || (policy->mode != MPOL_BIND && policy->mode != MPOL_PREFERRED_MANY))
		return true;
	return node_isset(nid, policy->nodes);
}

/*
 * Cpuset and memory policy. Without the address only the task's policy is
 * known. A shared policy (tmpfs, shared memory) cannot be asked for from a
 * module: then the answer stays unknown, unless the cpuset says no already.
 */
static void fill_allowed(struct tier_fault *fault, struct task_struct *p,
			 struct vm_area_struct *vma)
{
	const struct mempolicy *policy = p->mempolicy;

	if (!node_isset(fault->dst_nid, p->mems_allowed)) {
		fault->flags |= TIER_FAULT_ALLOWED_KNOWN;
		return;
	}
	if (vma) {
		if (vma->vm_ops && vma->vm_ops->get_policy)
			return;
		if (vma->vm_policy)
			policy = vma->vm_policy;
	}
	fault->flags |= TIER_FAULT_ALLOWED_KNOWN;
	if (mempolicy_allows(policy, fault->dst_nid))
		fault->flags |= TIER_FAULT_ALLOWED;
}

/* What only some policies ask for: out of the way of those that do not. */
static noinline void fill_needs(struct tier_fault *fault, struct task_struct *p,
				struct folio *folio, u32 needs)
{
	struct vm_area_struct *vma = NULL;

	if (needs & TIER_NEED_NS)
		fault->now_ns = ktime_get_mono_fast_ns();
	if (needs & TIER_NEED_ADDR)
		vma = fill_address(fault, folio);
	if (needs & TIER_NEED_ROOM) {
		fault->flags |= TIER_FAULT_ROOM_KNOWN;
		if (tier_node_has_room(fault->dst_nid))
			fault->flags |= TIER_FAULT_ROOM;
	}
	if (needs & TIER_NEED_SHARED) {
		fault->flags |= TIER_FAULT_SHARED_KNOWN;
		if (tier_folio_mapped_multiple(folio))
			fault->flags |= TIER_FAULT_SHARED;
	}
	if (needs & TIER_NEED_ALLOWED)
		fill_allowed(fault, p, vma);
}

/* jiffies_to_msecs() is a call; at all usual HZ it is one multiplication. */
static __always_inline u32 now_ms(void)
{
	if (HZ <= MSEC_PER_SEC && !(MSEC_PER_SEC % HZ))
		return (MSEC_PER_SEC / HZ) * (u32)jiffies;
	return jiffies_to_msecs(jiffies);
}

static __always_inline u32 stamp_latency_ms(unsigned long folio_flags, u32 now)
{
	u32 stamp = (folio_flags >> LAST_CPUPID_PGSHIFT) & LAST_CPUPID_MASK;

	return (now - (stamp << PAGE_ACCESS_TIME_BUCKETS)) & PAGE_ACCESS_TIME_MASK;
}

/* Pages promoted to a node in this second: window start in ms, then pages. */
static atomic64_t cap_windows[TIER_MAX_NODES];

/*
 * One word, so that the limit is exact whatever CPUs race. A large folio over
 * the whole limit is never promoted.
 */
static noinline bool within_cap(int nid, u32 nr_pages, u32 now, u32 cap_pages)
{
	s64 old = atomic64_read(&cap_windows[nid]);
	u32 start, used;

	do {
		start = (u64)old >> 32;
		used = (u32)old;
		if (now - start >= MSEC_PER_SEC) {
			start = now;
			used = 0;
		}
		if (nr_pages > cap_pages || used > cap_pages - nr_pages)
			return false;
	} while (!atomic64_try_cmpxchg(&cap_windows[nid], &old,
				       (u64)start << 32 | (used + nr_pages)));
	return true;
}

/* Our verdict bypasses the code that keeps pgpromote_candidate. */
static noinline void count_candidate(int nid, u32 decision, u32 nr_pages)
{
	if (decision == TIER_PROMOTE_ROOM)
		tier_count_room_pages(nid, nr_pages);
	else
		mod_node_page_state(NODE_DATA(nid), PGPROMOTE_CANDIDATE, nr_pages);
}

/*
 * The record that a policy reads. What only policies with needs see of it is zero but
 * during their calls. One to a CPU, as no hint fault interrupts another one under the
 * page-table lock; where that lock lets other tasks in, each fault brings its own.
 */
#ifdef CONFIG_PREEMPT_RT
#define DECLARE_FAULT(name)	struct tier_fault name##_here = {}, *name = &name##_here
#else
static DEFINE_PER_CPU_ALIGNED(struct tier_fault, fault_record);
#define DECLARE_FAULT(name)	struct tier_fault *name = this_cpu_ptr(&fault_record)
#endif

/* The array that the program takes its arguments from, and what must outlast its call. */
struct promote_call {
	u64 fault;
	u64 folio;
	struct tier_in_force *policy;
};

/* All that is not known of every policy and fault. The vm_fault is for this call only. */
static noinline u32 promote_slowly(struct promote_call *call, struct task_struct *p)
{
	struct tier_fault *fault = (struct tier_fault *)call->fault;
	struct folio *folio = (struct folio *)call->folio;
	struct tier_in_force *policy = call->policy;
	u32 decision;

	if (policy->needs)
		fill_needs(fault, p, folio, policy->needs);
	if (!IS_ENABLED(CONFIG_PREEMPT_RT) && policy->promote)
		decision = bpf_prog_run(policy->promote, call);
	else
		decision = policy->ops->promote(fault, folio);
	if (policy->needs) {
		tier_near_end();
		fault->now_ns = fault->addr = fault->mm_id = 0;
		fault->vm_start = fault->vm_end = fault->vm_flags = 0;
	}
	return decision;
}

/* A decision that is no plain refusal: where the CPU has to go on, 0 for the kernel's way. */
static noinline unsigned long settle(struct promote_call *call, u32 decision)
{
	struct tier_fault *fault = (struct tier_fault *)call->fault;
	struct folio *folio = (struct folio *)call->folio;
	u32 cap_pages;

	if (unlikely(decision >= TIER_NR_DECISIONS || !(known_decisions() & BIT(decision)))) {
		tier_policy_bad_verdict(call->policy, decision);
		return 0;
	}
	if (unlikely(atomic_read(&tier_hot.bad_streak)))
		atomic_set(&tier_hot.bad_streak, 0);
	if (decision == TIER_KERNEL) {
		tier_event(KERNEL_VERDICTS);
		return 0;
	}

	tier_restamp(folio, READ_ONCE(*tier_folio_flags(folio)), fault->now_ms);
	if (counted_decisions() & BIT(decision))
		count_candidate(fault->dst_nid, decision, fault->nr_pages);
	if (decision >= TIER_FIRST_REJECT) {
		tier_event(REJECT_VERDICTS);
		return (unsigned long)verdict_reject;
	}
	cap_pages = READ_ONCE(tier_promote_cap_pages_per_s);
	if (unlikely(cap_pages) &&
	    !within_cap(fault->dst_nid, fault->nr_pages, fault->now_ms, cap_pages)) {
		tier_event(CAPPED);
		return (unsigned long)verdict_reject;
	}
	tier_event(PROMOTE_VERDICTS);
	return (unsigned long)verdict_promote;
}

/*
 * One slow-tier fault, inside an RCU read side. What is needed after the call is read
 * anew or out of memory, which costs less than registers kept over it.
 */
static __always_inline unsigned long
decide(struct tier_in_force *policy, struct task_struct *p, struct folio *folio,
       int src_nid, int dst_nid)
{
	struct promote_call call = { .folio = (u64)folio, .policy = policy };
	unsigned long folio_flags = READ_ONCE(*tier_folio_flags(folio));
	u32 now = now_ms(), decision;
	const struct bpf_prog *prog;
	DECLARE_FAULT(fault);

	call.fault = (u64)fault;
	fault->now_ms = now;
	fault->latency_ms = stamp_latency_ms(folio_flags, now);
	fault->nr_pages = folio_flags & BIT(PG_head) ? folio_nr_pages(folio) : 1;
	fault->flags = folio_flags & BIT(PG_swapbacked) ? 0 : TIER_FAULT_FILE;
	/* two plain stores: compilers make one of them, after three instructions */
	WRITE_ONCE(fault->src_nid, src_nid);
	WRITE_ONCE(fault->dst_nid, dst_nid);
	fault->pid = p->pid;
	fault->tgid = p->tgid;
	fault->pfn = folio_pfn(folio);
	fault->page_id = tier_page_id((u64)folio->mapping, folio->index);

	tier_event(POLICY_CALLS);
	prog = policy->plain_promote;
	if (likely(prog) && !static_branch_unlikely(&bpf_stats_enabled_key))
		decision = bpf_dispatcher_nop_func(&call, prog->insnsi, prog->bpf_func);
	else
		decision = promote_slowly(&call, p);
	if (unlikely(decision >= TIER_NR_DECISIONS || atomic_read(&tier_hot.bad_streak)))
		return settle(&call, decision);
	if (likely(plain_rejects() & BIT(decision))) {
		folio = (struct folio *)call.folio;
		tier_restamp(folio, READ_ONCE(*tier_folio_flags(folio)), now_ms());
		tier_event(REJECT_VERDICTS);
		return (unsigned long)verdict_reject;
	}
	if (decision == TIER_KERNEL) {
		tier_event(KERNEL_VERDICTS);
		return 0;
	}
	return settle(&call, decision);
}

/* Where preemption is off, the kernel asks for the CPU that runs this. */
static __always_inline int target_node(struct ftrace_regs *fregs)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		return cpu_to_node((int)ftrace_regs_get_argument(fregs, 3));
	return numa_node_id();
}

/*
 * Where the page-table lock is a spinlock, preemption is off and we are an RCU reader
 * as it is. Kernels that keep account of locks want to see it all the same: BPF's map
 * helpers warn there without rcu_read_lock_held(), which is true on all others.
 */
#define READER_AS_IT_IS	(!IS_ENABLED(CONFIG_PREEMPT_RT) && !IS_ENABLED(CONFIG_DEBUG_LOCK_ALLOC))

/*
 * should_numa_migrate_memory(p, folio, src_nid, dst_cpu), page-table lock held. No stack
 * protector: nothing on this stack can overflow, and it is the fast path.
 */
void notrace __no_stack_protector
tier_hook_promote(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
		  struct ftrace_regs *fregs)
{
	int src_nid = (int)ftrace_regs_get_argument(fregs, 2);
	int dst_nid = target_node(fregs);
	struct tier_in_force *policy;
	unsigned long go_on = 0;

	if (tier_node_left_alone(src_nid) || (unsigned int)dst_nid >= TIER_MAX_NODES) {
		tier_event(OTHER_FAULTS);
		return;
	}
	tier_event(SLOW_FAULTS);
	if (unlikely(!node_state(dst_nid, N_MEMORY))) {
		tier_event(NO_TARGET_MEMORY);
		return;
	}

	if (!READER_AS_IT_IS)
		rcu_read_lock();
	policy = rcu_dereference_check(tier_hot.policy, rcu_read_lock_sched_held());
	if (likely(policy))
		go_on = decide(policy, (struct task_struct *)ftrace_regs_get_argument(fregs, 0),
			       (struct folio *)ftrace_regs_get_argument(fregs, 1),
			       src_nid, dst_nid);
	else
		tier_event(UNDECIDED);
	if (!READER_AS_IT_IS)
		rcu_read_unlock();

	if (go_on)
		ftrace_regs_set_instruction_pointer(fregs, go_on);
}
