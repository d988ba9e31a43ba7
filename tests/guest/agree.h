/* SPDX-License-Identifier: GPL-2.0 */
/* Shared between agree.bpf.c and agree.c: what became of each compared fault. */
#ifndef GUEST_AGREE_H
#define GUEST_AGREE_H

/*
 * Why policy and kernel differ, as far as can be told. Both look at the clock, at the
 * counters and at free memory, one a moment after the other.
 */
enum agree_class {
	AGREE_SAME,
	AGREE_CLOCK,		/* latency within two ticks of the threshold */
	AGREE_THRESHOLD,	/* the automatic threshold differs: moved on another fault */
	AGREE_WINDOW,		/* a one-second window began within two ticks, for one of them */
	AGREE_COUNT,		/* the limit is as near as the kernel's counter is inexact */
	AGREE_ROOM,		/* free memory crossed the free-space rule's line in between */
	AGREE_UNEXPLAINED,
	AGREE_CLASSES,
};

#define AGREE_CLASS_NAMES \
	{ "same", "clock", "threshold", "window", "count", "room", "unexplained" }

struct agree_result {
	__u64 class[AGREE_CLASSES];
	__u64 decision[32];	/* of the policy, by enum tier_decision */
	__u64 promoted;		/* by the kernel's verdict */
	__u64 lost;		/* kernel's return without the entry that belongs to it */
};

#endif /* GUEST_AGREE_H */
