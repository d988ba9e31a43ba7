// SPDX-License-Identifier: GPL-2.0
/*
 * One look into a hash of VMAs and nothing else, in the form of a policy: no policy that keeps
 * something by VMA costs less, or grows less with the number of VMAs.
 */
#include <tier/policy.bpf.h>

/* As large as the table of the policy lazyscan. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct tier_region_key);
	__type(value, __u64[6]);
} lookup_vmas SEC(".maps");

static long bare_one(__u32 i, struct tier_replay *run)
{
	__u32 at = run->first + i % run->nr;
	struct tier_replay_entry *entry = bpf_map_lookup_elem(&tier_replay_faults, &at);
	struct tier_region_key key;
	__u64 *vma;

	if (!entry) {
		run->error = -ENOENT;
		return 1;
	}
	key.mm_id = entry->fault.mm_id;
	key.region = entry->fault.vm_start;
	vma = bpf_map_lookup_elem(&lookup_vmas, &key);
	if (vma)
		vma[0]++;
	entry->decision = TIER_KERNEL;
	entry->latency_ms = entry->fault.latency_ms;
	return 0;
}

SEC("?syscall")
int bare_replay(struct tier_replay *ctx)
{
	return tier_replay_run(ctx, bare_one);
}

static enum tier_decision decide(const struct tier_fault *f)
{
	return TIER_KERNEL;
}

TIER_POLICY(lookup, decide, .flags = TIER_NEED_ADDR);
