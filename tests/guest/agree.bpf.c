// SPDX-License-Identifier: GPL-2.0
/*
 * Compares the policy mainline with the kernel's own decision, fault by fault.
 *
 * At the entry of should_numa_migrate_memory() the policy decides in its shadow form, with
 * the kit's own code; at its return the kernel's answer is at hand. The policy's windows and
 * threshold start from the kernel's: what they do from then on is what is compared.
 */
#include "bpf/policy_mainline.bpf.c"
#include "agree.h"

#define TICKS_MS	8	/* two ticks of a 250 Hz kernel */

typedef struct {
	long counter;
} atomic_long_t;

struct pglist_data {
	unsigned int nbp_rl_start;
	unsigned long nbp_rl_nr_cand;
	unsigned int nbp_threshold;
	unsigned int nbp_th_start;
	unsigned long nbp_th_nr_cand;
	atomic_long_t vm_stat[64];
} __attribute__((preserve_access_index));

enum node_stat_item {
	PGPROMOTE_CANDIDATE = 0,
};

extern const void node_data __ksym;

/* Pages by which the kernel's candidate counter may lag: per CPU up to 125, both ends. */
const volatile __u32 agree_count_slack;

struct agree_entry {
	__u64 task;		/* 0: nothing to compare */
	struct tier_fault fault;
	__u32 decision;
	__u32 threshold_ms;	/* of the policy, after its decision */
	__u64 used_pages;	/* of the window, after it */
	__u64 limit_pages;
	__u32 kernel_threshold_ms;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct agree_entry);
} agree_entries SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct agree_result);
} agree_results SEC(".maps");

__u32 agree_started[TIER_MAX_NODES];

static __always_inline struct pglist_data *pgdat_of(__s32 nid)
{
	struct pglist_data *pgdat = NULL;

	bpf_probe_read_kernel(&pgdat, sizeof(pgdat), (const void **)&node_data + (nid & 63));
	return pgdat;
}

static __always_inline __u64 kernel_candidates(struct pglist_data *pgdat)
{
	__u32 item = bpf_core_enum_value(enum node_stat_item, PGPROMOTE_CANDIDATE);
	__u32 at = bpf_core_field_offset(struct pglist_data, vm_stat);
	__s64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), (void *)pgdat + at + item * sizeof(value));
	return value < 0 ? 0 : value;
}

/* The policy goes on from where the kernel is. */
static __always_inline void start_from_kernel(struct tier_node *node, struct pglist_data *pgdat)
{
	node->candidates_pages = kernel_candidates(pgdat);
	node->window_start_ms = BPF_CORE_READ(pgdat, nbp_rl_start);
	node->window_candidates_pages = BPF_CORE_READ(pgdat, nbp_rl_nr_cand);
	node->adjust_start_ms = BPF_CORE_READ(pgdat, nbp_th_start);
	node->adjust_candidates_pages = BPF_CORE_READ(pgdat, nbp_th_nr_cand);
	node->adjusted_ms = BPF_CORE_READ(pgdat, nbp_threshold);
	node->reference_ms = hot_threshold_ms;
}

SEC("fentry/should_numa_migrate_memory")
int agree_enter(unsigned long long *ctx)
{
	struct agree_entry *entry;
	struct tier_fault f = {};
	struct pglist_data *pgdat;
	struct tier_node *node;
	__u32 zero = 0, nid;

	entry = bpf_map_lookup_elem(&agree_entries, &zero);
	if (!entry)
		return 0;
	entry->task = 0;
	if (!tier_shadow_fault(&f, ctx, mainline_needs))
		return 0;
	node = tier_node(&f);
	pgdat = pgdat_of(f.dst_nid);
	if (!node || !pgdat)
		return 0;
	nid = f.dst_nid & 63;
	if (!__sync_lock_test_and_set(&agree_started[nid], 1))
		start_from_kernel(node, pgdat);

	entry->decision = tier_run(&f, decide);
	entry->fault = f;
	entry->threshold_ms = node->threshold_ms;
	entry->used_pages = node->candidates_pages - node->window_candidates_pages;
	entry->limit_pages = node->limit_pages_per_s;
	entry->kernel_threshold_ms = BPF_CORE_READ(pgdat, nbp_threshold);
	entry->task = bpf_get_current_task();
	return 0;
}

static __always_inline bool near_ms(__u32 a, __u32 b)
{
	return a - b + TICKS_MS <= 2 * TICKS_MS;
}

static enum agree_class why(const struct agree_entry *entry, struct pglist_data *pgdat, bool kernel)
{
	__u32 threshold_ms = BPF_CORE_READ(pgdat, nbp_threshold);
	__u32 window_ms = BPF_CORE_READ(pgdat, nbp_rl_start);
	__u64 used = kernel_candidates(pgdat) - BPF_CORE_READ(pgdat, nbp_rl_nr_cand);
	__u32 slack = agree_count_slack, now_ms = entry->fault.now_ms;
	struct tier_node *node = tier_node(&entry->fault);

	if (!node)
		return AGREE_UNEXPLAINED;
	/* a bypass of one of them only: the kernel then has no threshold */
	if (entry->decision == TIER_PROMOTE_ROOM ||
	    (kernel && !threshold_ms && entry->kernel_threshold_ms))
		return AGREE_ROOM;
	if (!threshold_ms)
		threshold_ms = hot_threshold_ms;
	if (near_ms(entry->fault.latency_ms, threshold_ms) ||
	    near_ms(entry->fault.latency_ms, entry->threshold_ms))
		return AGREE_CLOCK;
	if ((entry->fault.latency_ms < threshold_ms) != (entry->fault.latency_ms < entry->threshold_ms))
		return AGREE_THRESHOLD;
	/* from here on both found it hot: what differs is the limit's answer */
	if (entry->decision == TIER_REJECT_COLD)
		return AGREE_UNEXPLAINED;
	if (near_ms(now_ms, window_ms) || near_ms(now_ms, window_ms + 1000) ||
	    near_ms(now_ms, node->window_start_ms) || near_ms(now_ms, node->window_start_ms + 1000))
		return AGREE_WINDOW;
	if (used + slack >= entry->limit_pages && used <= entry->limit_pages + slack)
		return AGREE_COUNT;
	return AGREE_UNEXPLAINED;
}

SEC("fexit/should_numa_migrate_memory")
int agree_leave(unsigned long long *ctx)
{
	struct agree_result *result;
	struct agree_entry *entry;
	struct pglist_data *pgdat;
	__u32 zero = 0, decision;
	bool kernel, policy;
	__u64 ret = 0;

	entry = bpf_map_lookup_elem(&agree_entries, &zero);
	result = bpf_map_lookup_elem(&agree_results, &zero);
	if (!entry || !result || !entry->task)
		return 0;
	if (entry->task != bpf_get_current_task() || bpf_get_func_ret(ctx, &ret)) {
		result->lost++;
		return 0;
	}
	entry->task = 0;
	kernel = (__u8)ret;
	decision = entry->decision & 31;
	policy = tier_decision_verdict(decision) == TIER_VERDICT_PROMOTE;
	pgdat = pgdat_of(entry->fault.dst_nid);
	result->decision[decision]++;
	result->promoted += kernel;
	if (kernel == policy)
		result->class[AGREE_SAME]++;
	else if (pgdat)
		result->class[why(entry, pgdat, kernel)]++;
	return 0;
}
