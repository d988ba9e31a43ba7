/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared between BPF and user space: neighbours of a page that was found hot.
 *
 * The window of a hot page are the pages after it, up to around_bytes, in the
 * same VMA and under the same PMD. A neighbour qualifies if it was waiting when
 * the hot page faulted: scanned before that, and not accessed yet. The includer
 * brings __u32, __u64 and bool.
 */
#ifndef TIER_NEAR_H
#define TIER_NEAR_H

#include <tier/abi.h>

/* The last hot page of a block of around_bytes; kept in a table, newer wins. */
struct tier_near {
	__u64 mm_id;
	__u64 vm_start;
	__u64 addr;		/* of the hot page */
	__u32 now_ms;		/* when it faulted */
	__u32 reserved;
};

/* The largest power of two that is not above bytes; 0 for less than a page. */
static inline __attribute__((always_inline)) __u64 tier_near_window(__u64 bytes, __u32 page_shift)
{
	__u64 pmd = 1ULL << ((page_shift + page_shift - 3) & 63);

	if (bytes >= pmd)
		return pmd;
	if (bytes < 1ULL << (page_shift & 63))
		return 0;
	bytes |= bytes >> 1;
	bytes |= bytes >> 2;
	bytes |= bytes >> 4;
	bytes |= bytes >> 8;
	bytes |= bytes >> 16;
	return bytes - (bytes >> 1);
}

/* End of the window of the page at addr: window, PMD range or VMA, what comes first. */
static inline __attribute__((always_inline)) __u64
tier_near_end(__u64 addr, __u64 vm_end, __u64 window, __u32 page_shift)
{
	__u64 pmd = 1ULL << ((page_shift + page_shift - 3) & 63);
	__u64 end = addr + window, pmd_end = (addr & -pmd) + pmd;

	if (pmd_end < end)
		end = pmd_end;
	return vm_end < end ? vm_end : end;
}

/* Is the faulting page a neighbour of this hot one? */
static inline __attribute__((always_inline)) bool
tier_near_covers(const struct tier_near *near, const struct tier_fault *f, __u64 window,
		 __u32 page_shift)
{
	__u32 since_ms = f->now_ms - near->now_ms;

	return near->mm_id == f->mm_id && near->vm_start == f->vm_start &&
	       near->addr < f->addr &&
	       f->addr < tier_near_end(near->addr, f->vm_end, window, page_shift) &&
	       since_ms <= f->latency_ms;
}

#endif /* TIER_NEAR_H */
