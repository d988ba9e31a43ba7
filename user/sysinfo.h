/* SPDX-License-Identifier: GPL-2.0 */
/* What /proc and /sys say about nodes and knobs, for topo, doctor and top. */
#ifndef TIER_SYSINFO_H
#define TIER_SYSINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

/* First line of a file without its newline. 0 or a negative errno. */
int sys_read(char *buf, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* A decimal number at the start of the file. */
int sys_read_u64(__u64 *value, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "0-3,8" as a bit mask; ids from 64 up are left out. */
__u64 sys_parse_list(const char *text);
/*
 * The nodes that the process's cpuset lets it have memory on, all if the kernel does not
 * say; as text into @list, unless that is NULL.
 */
__u64 sys_mems_allowed(unsigned int pid, char *list, size_t size);
/* A counter of /proc/vmstat; 0 if the kernel has none of that name. */
__u64 sys_vmstat(const char *name);

struct sys_node {
	bool online;
	bool has_memory;
	__u64 cpus;		/* how many */
	char cpulist[256];
	char distance[256];	/* to node 0, 1, .. */
	__u64 total_bytes;
	__u64 free_bytes;
	__u64 min_bytes, low_bytes, high_bytes;	/* watermarks, sum over zones */
	__u64 promo_bytes;	/* kswapd goal in tiering mode; 0: kernel does not say */
	bool unreclaimable;	/* kswapd has given up on the node */
	__u64 read_latency_ns, write_latency_ns;	/* firmware's word; 0: none */
	__u64 read_bandwidth_mbps, write_bandwidth_mbps;	/* MB/s, same */
	__u64 pgpromote_success, pgpromote_candidate, pgdemote;	/* pages */
};

#define SYS_MAX_NODES	64

/* @nodes has SYS_MAX_NODES entries. 0 or a negative errno. */
int sys_nodes(struct sys_node *nodes);

#endif /* TIER_SYSINFO_H */
