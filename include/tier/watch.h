/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared between bpf/watch.bpf.c and libtier: single decisions, for the time
 * that someone looks at them. The includer brings __u32 and __u64.
 */
#ifndef TIER_WATCH_H
#define TIER_WATCH_H

#include <tier/abi.h>

/* One decision, in the ring buffer "watch_events". */
struct tier_watch_event {
	struct tier_fault fault;
	__u64 time_ns;		/* CLOCK_MONOTONIC */
	__u32 decision;
	__u32 cpu;
	char comm[16];
};

/* Value of the LRU hash "watch_tasks", key process id. */
struct tier_watch_task {
	__u64 faults[TIER_NR_DECISIONS];
	__u64 pages[TIER_NR_DECISIONS];
	char comm[16];		/* of the thread that faulted last */
};

/* Value of the array "watch_lost", one entry. */
struct tier_watch_lost {
	__u64 events;		/* ring buffer full */
	__u64 tasks;		/* faults that no task entry could be had for */
};

TIER_ASSERT_SIZE(tier_watch_event, 136);
TIER_ASSERT_SIZE(tier_watch_task, 528);

#endif /* TIER_WATCH_H */
