// SPDX-License-Identifier: GPL-2.0
/*
 * The watcher: every decision of the policy in force, as it is made.
 *
 * One fexit program on the policy's own promote() program: it sees the fault
 * record that the policy saw and the decision that it returned, whatever the
 * policy is. It lives only while `tierctl trace`, `top` or `explain` runs; then
 * a fault costs a few hundred instructions more. The loader names the target.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <tier/watch.h>

char _license[] SEC("license") = "GPL";

const volatile __u32 watch_want_events;
const volatile __u32 watch_want_tasks;
const volatile __u32 watch_tgid;		/* this process only; 0: all */
const volatile __s32 watch_node = -1;		/* this source or target only; -1: all */
const volatile __u32 watch_decisions = ~0U;	/* bit mask of decisions */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} watch_events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct tier_watch_task);
} watch_tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tier_watch_lost);
} watch_lost SEC(".maps");

static struct tier_watch_task zero_task;

static void count_task(const struct tier_fault *f, __u32 decision)
{
	struct tier_watch_task *task;
	struct tier_watch_lost *lost;
	__u32 tgid = f->tgid, zero = 0;

	task = bpf_map_lookup_elem(&watch_tasks, &tgid);
	if (!task) {
		bpf_map_update_elem(&watch_tasks, &tgid, &zero_task, BPF_NOEXIST);
		task = bpf_map_lookup_elem(&watch_tasks, &tgid);
	}
	if (!task) {
		lost = bpf_map_lookup_elem(&watch_lost, &zero);
		if (lost)
			__sync_fetch_and_add(&lost->tasks, 1);
		return;
	}
	/* threads of one process fault on several CPUs at once */
	__sync_fetch_and_add(&task->faults[decision], 1);
	__sync_fetch_and_add(&task->pages[decision], f->nr_pages);
	bpf_get_current_comm(task->comm, sizeof(task->comm));
}

static void send_event(const struct tier_fault *f, __u32 decision)
{
	struct tier_watch_event *event;
	struct tier_watch_lost *lost;
	__u32 zero = 0;

	event = bpf_ringbuf_reserve(&watch_events, sizeof(*event), 0);
	if (!event) {
		lost = bpf_map_lookup_elem(&watch_lost, &zero);
		if (lost)
			__sync_fetch_and_add(&lost->events, 1);
		return;
	}
	event->fault = *f;
	event->time_ns = bpf_ktime_get_ns();
	event->decision = decision;
	event->cpu = bpf_get_smp_processor_id();
	bpf_get_current_comm(event->comm, sizeof(event->comm));
	bpf_ringbuf_submit(event, 0);
}

/*
 * A struct_ops program takes its arguments in one array. The verifier may not trust
 * the types of a program's function; then the result is at another place of the
 * context, so the helper is asked for it.
 */
SEC("?fexit/tier_policy_promote")
int watch_decision(unsigned long long *ctx)
{
	const void *fault, *args = (const void *)ctx[0];
	struct tier_fault f;
	__u64 result = 0;
	__u32 decision;

	if (bpf_get_func_ret(ctx, &result) ||
	    bpf_probe_read_kernel(&fault, sizeof(fault), args) ||
	    bpf_probe_read_kernel(&f, sizeof(f), fault))
		return 0;
	decision = result;
	/* not a decision: the kernel decides, and the kit counts it so */
	if (decision >= TIER_NR_DECISIONS)
		decision = TIER_KERNEL;
	if (!(watch_decisions >> decision & 1))
		return 0;
	if (watch_tgid && f.tgid != watch_tgid && f.pid != watch_tgid)
		return 0;
	if (watch_node >= 0 && f.src_nid != watch_node && f.dst_nid != watch_node)
		return 0;
	if (watch_want_tasks)
		count_task(&f, decision);
	if (watch_want_events)
		send_event(&f, decision);
	return 0;
}
