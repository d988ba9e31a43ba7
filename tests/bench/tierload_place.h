/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What tierload asks the kernel: nodes and their free memory, where the pages
 * of a process lie, counters. Nothing here touches the measured memory, so
 * measuring takes no hint fault.
 */
#ifndef TIERLOAD_PLACE_H
#define TIERLOAD_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TL_MAX_NODES 64
#define TL_NODE_NONE 0xff	/* page not present, or on its way between two nodes */

struct tl_nodes {
	uint64_t fast;		/* bit mask: nodes with memory and CPUs */
	uint64_t slow;		/* bit mask: nodes with memory and no CPU */
};

/* Counters of /proc/vmstat that are reported, in the order of tl_vmstat_name. */
enum tl_vmstat {
	TL_VM_PROMOTED,
	TL_VM_CANDIDATES,
	TL_VM_DEMOTED,		/* all pgdemote_* together */
	TL_VM_HINT_FAULTS,
	TL_VM_PTE_UPDATES,
	TL_VM_NUMA_MIGRATED,
	TL_VM_MIGRATE_FAIL,
	TL_VM_COUNT
};

struct tl_counters {
	uint64_t vm[TL_VM_COUNT];
	double user_s, system_s;	/* of the given processes */
	double machine_system_s;	/* of all CPUs: also holds kswapd, that is demotion */
};

extern const char *const tl_vmstat_name[TL_VM_COUNT];

/* All int functions: 0, or a negative errno with one message on stderr. */
int tl_find_nodes(struct tl_nodes *nodes);

/*
 * Free memory on the nodes of the mask down to where kswapd wakes up (the low
 * watermark); and the page cache there, which gives way when needed.
 */
int tl_free_pages(uint64_t mask, uint64_t *free_pages, uint64_t *cache_pages);

/* Where new memory of the calling task goes; a mask of 0 is the kernel's default. */
int tl_policy_bind(uint64_t mask);
int tl_policy_prefer(uint64_t mask);
/* The same for one mapping. A bound mapping is left alone by the hint scanner. */
int tl_bind_range(void *start, size_t bytes, uint64_t mask);

/* Node of each page (TL_NODE_NONE: none), asked by the monitor for process @pid. */
int tl_query_nodes(pid_t pid, const char *area, uint32_t pages, uint8_t *node);
/* The same for pages that lie anywhere. */
int tl_query_pages(pid_t pid, const void **address, uint32_t pages, uint8_t *node);

/*
 * The kernel keeps some counters per CPU and folds them in now and then; with
 * @fold they are folded first where root allows it, so that sums are exact.
 */
int tl_read_counters(struct tl_counters *c, const pid_t *pids, int n_pids, bool fold);

/* Bytes of the process in anonymous huge pages. */
uint64_t tl_huge_bytes(pid_t pid);

/* First word of a file, for the record of knobs; "" where it cannot be read. */
void tl_read_word(const char *path, char *word, size_t size);

#endif
