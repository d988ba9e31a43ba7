/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared between BPF and user space: which VMAs are worth a scan.
 *
 * A pass is one round of the scanner over an address space. For each VMA the
 * last scanned pass is judged when the next one begins: without a hot fault
 * since, the VMA sits out 1, then 3, then 7 ... passes (2^n - 1), with one it
 * is scanned in every pass again. Within a pass the first ranges are free;
 * beyond, only threads that lately faulted in the VMA scan it. The includer
 * brings __u32, __u64 and bool.
 */
#ifndef TIER_LAZY_H
#define TIER_LAZY_H

#include <tier/abi.h>

#define TIER_LAZY_MAX_BACKOFF	6	/* 63 passes */
#define TIER_LAZY_YOUNG_PASSES	2	/* an address space this young is always scanned */

struct tier_lazy_vma {
	__u64 pids[2];			/* hashed: who faulted in the last window, in this one */
	__u32 window_start_ms;
	__u32 scan_seq;			/* pass that what follows is about */
	__u32 known;			/* 0: never asked about */
	__u32 scanned;			/* scanned in this pass */
	__u32 ranges;			/* ranges asked about in this pass */
	__u32 hot_faults;		/* since the last scanned pass began */
	__u32 backoff;			/* n of 2^n - 1 */
	__u32 skip_left;		/* passes still to sit out */
};

static inline __attribute__((always_inline)) __u64 tier_lazy_pid(__u32 pid)
{
	return 1ULL << (pid * 0x61c88647U >> 26);
}

/* A fault in the VMA: who, and was its page hot. */
static inline __attribute__((always_inline)) void
tier_lazy_fault(struct tier_lazy_vma *vma, __u32 pid, __u32 now_ms, __u32 window_ms, bool hot)
{
	__u64 bit = tier_lazy_pid(pid);

	if (now_ms - vma->window_start_ms > window_ms) {
		/* two windows gone: whoever faulted in the older one is no witness */
		vma->pids[0] = now_ms - vma->window_start_ms > 2 * window_ms ? 0 : vma->pids[1];
		vma->pids[1] = 0;
		vma->window_start_ms = now_ms;
	}
	/* racing CPUs may lose a bit or a count: the next fault sets it again */
	if (!(vma->pids[1] & bit))
		vma->pids[1] |= bit;
	if (hot)
		vma->hot_faults++;
}

static inline __attribute__((always_inline)) void
tier_lazy_new_pass(struct tier_lazy_vma *vma, __u32 scan_seq, __u32 max_backoff)
{
	if (vma->hot_faults) {
		vma->backoff = 0;
		vma->skip_left = 0;
	} else if (vma->known && vma->scanned) {
		if (vma->backoff < max_backoff)
			vma->backoff++;
		else
			vma->backoff = max_backoff;	/* it may have been lowered */
		vma->skip_left = (1U << (vma->backoff & 31)) - 1;
	}
	vma->scanned = !vma->skip_left;
	if (vma->skip_left)
		vma->skip_left--;
	else
		vma->hot_faults = 0;
	vma->known = 1;
	vma->scan_seq = scan_seq;
	vma->ranges = 0;
}

/* Shall this range be scanned? */
static inline __attribute__((always_inline)) bool
tier_lazy_scan(struct tier_lazy_vma *vma, const struct tier_scan *scan, __u32 max_backoff,
	       __u32 free_ranges)
{
	if (max_backoff > TIER_LAZY_MAX_BACKOFF)
		max_backoff = TIER_LAZY_MAX_BACKOFF;
	if (!vma->known || vma->scan_seq != scan->scan_seq)
		tier_lazy_new_pass(vma, scan->scan_seq, max_backoff);
	vma->ranges++;
	if (scan->scan_seq < TIER_LAZY_YOUNG_PASSES)
		return true;
	if (!vma->scanned)
		return false;
	return vma->ranges <= free_ranges || !(vma->pids[0] | vma->pids[1]) ||
	       ((vma->pids[0] | vma->pids[1]) & tier_lazy_pid(scan->pid));
}

#endif /* TIER_LAZY_H */
