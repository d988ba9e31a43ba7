// SPDX-License-Identifier: GPL-2.0
/*
 * One look into a hash of VMAs and nothing else, in the form of a policy: no policy that keeps
 * something by VMA costs less, or grows less with the number of VMAs.
 */
#include "bare.bpf.h"

/* As large as the table of the policy lazyscan. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct tier_region_key);
	__type(value, __u64[6]);
} lookup_vmas SEC(".maps");

static __always_inline void bare_fault(const struct tier_fault *f)
{
	struct tier_region_key key = { .mm_id = f->mm_id, .region = f->vm_start };
	__u64 *vma = bpf_map_lookup_elem(&lookup_vmas, &key);

	if (vma)
		vma[0]++;
}

TIER_POLICY(lookup, decide, .flags = TIER_NEED_ADDR);
