// SPDX-License-Identifier: GPL-2.0
/*
 * Nothing, in the form of a policy: what its replay costs is the loop, the entry's
 * lookup and the clock, and so what others cost more is theirs.
 */
#include <tier/policy.bpf.h>

static long bare_one(__u32 i, struct tier_replay *run)
{
	__u32 at = run->first + i % run->nr;
	struct tier_replay_entry *entry = bpf_map_lookup_elem(&tier_replay_faults, &at);

	if (!entry) {
		run->error = -ENOENT;
		return 1;
	}
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

TIER_POLICY(empty, decide);
