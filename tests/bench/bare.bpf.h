/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A program to compare policies with, in the form of one: the loop, the entry's lookup and
 * the clock of a replay, and of a decision only what the includer's bare_fault() does.
 */
#ifndef BARE_BPF_H
#define BARE_BPF_H

#include <tier/policy.bpf.h>

static __always_inline void bare_fault(const struct tier_fault *f);

static long bare_one(__u32 i, struct tier_replay *run)
{
	__u32 at = run->first + i % run->nr;
	struct tier_replay_entry *entry = bpf_map_lookup_elem(&tier_replay_faults, &at);

	if (!entry) {
		run->error = -ENOENT;
		return 1;
	}
	bare_fault(&entry->fault);
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

#endif /* BARE_BPF_H */
