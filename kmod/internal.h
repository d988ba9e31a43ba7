/* SPDX-License-Identifier: GPL-2.0 */
/* Shared inside the module only. */
#ifndef TIER_KMOD_INTERNAL_H
#define TIER_KMOD_INTERNAL_H

#define pr_fmt(fmt) "tier_policy: " fmt

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/ftrace.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/types.h>

#include "compat.h"
#include <tier/abi.h>
#include <tier/ops.h>

struct bpf_prog;

/* A policy in force, as the hooks see it. */
struct tier_in_force {
	const struct bpf_prog *plain_promote;	/* promote, if the policy needs nothing more */
	const struct bpf_prog *promote;		/* see direct.c; NULL: call ops->promote() */
	struct tier_policy_ops *ops;
	u32 needs;				/* ops->flags */
};

/*
 * Read on every hint fault, written by control operations only: one cache line.
 *
 * left_alone_nodes folds two questions into one test: a node's bit is set if
 * faults on its pages are none of our business, because it is a top-tier node
 * or because the kernel is not in tiering mode (then all bits are set).
 */
struct tier_hot {
	struct tier_in_force __rcu *policy;
	u64 left_alone_nodes;
	u64 top_nodes;
	atomic_t bad_streak;
};
extern struct tier_hot tier_hot;

static inline bool tier_node_left_alone(int nid)
{
	return (unsigned int)nid >= TIER_MAX_NODES ||
	       READ_ONCE(tier_hot.left_alone_nodes) & BIT_ULL(nid);
}

static inline bool tier_node_is_top(int nid)
{
	return (unsigned int)nid < TIER_MAX_NODES && READ_ONCE(tier_hot.top_nodes) & BIT_ULL(nid);
}

/* main.c: module parameters */
extern unsigned int tier_promote_cap_pages_per_s;
extern unsigned int tier_max_bad_verdicts;

/* stats.c */
struct tier_events {
	u64 count[TIER_NR_EV];
};
DECLARE_PER_CPU_ALIGNED(struct tier_events, tier_events);
#define tier_event(sym)	this_cpu_inc(tier_events.count[TIER_EV_##sym])

struct tier_exit_record {
	enum tier_exit_kind kind;
	int error;
	u64 time_ns;		/* CLOCK_BOOTTIME */
	char policy[TIER_NAME_LEN];
	char message[128];
	struct tier_events events;
};
extern const char *const tier_event_names[TIER_NR_EV];
void tier_events_sum(struct tier_events *sum);
void tier_exit_record_set(enum tier_exit_kind kind, const char *policy, int error,
			  const char *message);
void tier_exit_record_get(struct tier_exit_record *record);
const char *tier_exit_kind_name(enum tier_exit_kind kind);

/* policy.c: which policy is in force */
enum tier_state {
	TIER_STATE_IDLE,
	TIER_STATE_ACTIVE,
	TIER_STATE_EJECTED,	/* attached, but out of force */
};

struct tier_policy_view {
	enum tier_state state;
	char policy[TIER_NAME_LEN];
	char owner[TASK_COMM_LEN + 16];
	u64 since_ns;		/* CLOCK_BOOTTIME, 0: none */
};
int tier_policy_attach(struct tier_policy_ops *ops);
int tier_policy_swap(struct tier_policy_ops *ops);
void tier_policy_detach(void);
void tier_policy_bad_verdict(struct tier_in_force *policy, int value);
void tier_policy_view(struct tier_policy_view *view);
void tier_policy_shutdown(void);

/* hook.c: the kernel functions that are hooked while a policy is attached */
enum tier_hooks {
	TIER_HOOK_ADDRESS = 1U << 0,
	TIER_HOOK_SCAN = 1U << 1,
	TIER_HOOK_MIGRATED = 1U << 2,
	TIER_HOOK_PROMOTE = 1U << 3,
};
unsigned int tier_hooks_wanted(const struct tier_policy_ops *ops);
int tier_hooks_enable(unsigned int hooks);
void tier_hooks_disable(unsigned int hooks);
void tier_hooks_shutdown(void);
int tier_kretprobe_enable(struct kretprobe *probe);

/* fault.c, scan.c, migrate.c: what runs in the hooks */
void tier_hook_promote(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
		       struct ftrace_regs *fregs);
void tier_hook_address(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
		       struct ftrace_regs *fregs);
void tier_hook_scan(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
		    struct ftrace_regs *fregs);
extern struct kretprobe tier_migrate_probe;
extern struct kretprobe tier_prepare_probe;

/*
 * A fault restamps its page, as it does when the kernel decides. Only once the
 * verdict is ours: a kernel that decides after us must find the scan's stamp.
 */
static __always_inline void tier_restamp(struct folio *folio, unsigned long old, u32 now_ms)
{
	const unsigned long mask = (unsigned long)LAST_CPUPID_MASK << LAST_CPUPID_PGSHIFT;
	unsigned long stamp = (unsigned long)(now_ms >> PAGE_ACCESS_TIME_BUCKETS)
			      << LAST_CPUPID_PGSHIFT;

	/* old with stamp in the mask's place: shorter than or-ing two halves together */
	while (unlikely(!try_cmpxchg(tier_folio_flags(folio), &old, old ^ ((old ^ stamp) & mask))))
		;
}

/* near.c: the pages after the one that faults */
void tier_near_begin(struct vm_fault *vmf, u32 now_ms);
void tier_near_end(void);
u32 tier_near_pages(u32 max);

/* mode.c: tiering mode and top-tier nodes, as the kernel has them */
int tier_mode_watch(void);
void tier_mode_unwatch(void);
bool tier_mode_tiering(void);
bool tier_mode_tiering_now(void);
void tier_mode_set_top_nodes(u64 nodes);
void tier_mode_shutdown(void);

/* kfunc.c */
bool tier_node_has_room(int nid);
int tier_kfunc_init(void);

/* struct_ops.c */
int tier_struct_ops_init(void);

/* direct.c: which program is a policy's promote()? */
void tier_direct_begin(const struct tier_policy_ops *ops, int prog_fd);
void tier_direct_end(const struct tier_policy_ops *ops, u32 prog_id);
const struct bpf_prog *tier_direct_prog(const struct tier_policy_ops *ops);

/* sysfs.c */
int tier_sysfs_init(void);
void tier_sysfs_exit(void);

#endif /* TIER_KMOD_INTERNAL_H */
