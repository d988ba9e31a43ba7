/* SPDX-License-Identifier: GPL-2.0 */
/* tierctl explain: a process's memory, mapping by mapping. */
#ifndef TIER_EXPLAIN_H
#define TIER_EXPLAIN_H

#include "emit.h"
#include "sysinfo.h"

/* Why the NUMA scanner or the policy never gets at a mapping's pages. */
enum obstacle {
	OBSTACLE_NONE = 0,	/* scanned: the policy decides */
	OBSTACLE_HUGETLB,
	OBSTACLE_DEVICE,
	OBSTACLE_POLICY,	/* memory policy without NUMA balancing */
	OBSTACLE_BOUND,		/* memory policy that excludes the fast nodes */
	OBSTACLE_READ_ONLY_FILE,
	OBSTACLE_NO_ACCESS,
	OBSTACLE_NR
};

/* Short name (JSON) and the sentence that explains it. */
const char *obstacle_name(enum obstacle o);
const char *obstacle_text(enum obstacle o);

struct vma {
	__u64 start, end;	/* end 0: unknown */
	char what[64];		/* file, "heap", "stack", "anonymous" */
	char policy[48];	/* as in numa_maps: "default", "bind:1" */
	__u64 bytes[SYS_MAX_NODES];
	__u64 fast_bytes, slow_bytes;
	unsigned int mapmax;	/* processes that map its most shared page; 0: one */
	bool file;
	bool shared;		/* MAP_SHARED */
	bool locked;		/* mlock() */
	enum obstacle obstacle;
};

struct maps {
	struct vma *vma;
	unsigned int nr;
};

/* Shared copy-on-write, some of it at least: such pages the scanner leaves alone. */
bool vma_shares_cow(const struct vma *v);

/* Read numa_maps and smaps of @pid. 0 or a negative errno (-ENOENT: no such process). */
int maps_read(unsigned int pid, __u64 fast_nodes, struct maps *maps);
void maps_free(struct maps *maps);

#endif /* TIER_EXPLAIN_H */
