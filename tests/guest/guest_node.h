/* SPDX-License-Identifier: GPL-2.0 */
/* Node lists and memory policies, for the programs that guest tests run. */
#ifndef GUEST_NODE_H
#define GUEST_NODE_H

#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GUEST_MAX_NODES 64
#define GUEST_PAGE	4096ul

/* "0-1,3" as a mask; 0 if it is none. */
static inline unsigned long node_list(const char *text)
{
	unsigned long mask = 0;

	while (*text >= '0' && *text <= '9') {
		char *end;
		unsigned long from = strtoul(text, &end, 10), to = from;

		if (*end == '-')
			to = strtoul(end + 1, &end, 10);
		for (; from <= to && from < GUEST_MAX_NODES; from++)
			mask |= 1ul << from;
		text = *end == ',' ? end + 1 : end;
	}
	return *text ? 0 : mask;
}

/* The nodes without CPUs: the slow tier. */
static inline unsigned long slow_nodes(void)
{
	const char *name[] = { "has_memory", "has_cpu" };
	unsigned long mask[2] = { 0, 0 };
	char path[64], text[64];

	for (int i = 0; i < 2; i++) {
		FILE *f;

		snprintf(path, sizeof(path), "/sys/devices/system/node/%s", name[i]);
		f = fopen(path, "re");
		if (f && fscanf(f, "%63s", text) == 1)
			mask[i] = node_list(text);
		if (f)
			fclose(f);
	}
	return mask[0] & ~mask[1];
}

/* Mask 0: back to the default policy. */
static inline int task_policy(int mode, unsigned long mask)
{
	return syscall(SYS_set_mempolicy, mask ? mode : MPOL_DEFAULT, mask ? &mask : NULL,
		       mask ? GUEST_MAX_NODES + 1 : 0);
}

/* How many of the pages lie on nodes of the mask. Asks, touches nothing. */
static inline long pages_on(const char *area, unsigned long pages, unsigned long mask)
{
	enum { CHUNK = 512 };
	const void *at[CHUNK];
	int node[CHUNK];
	long found = 0;

	for (unsigned long first = 0; first < pages; first += CHUNK) {
		unsigned long nr = pages - first < CHUNK ? pages - first : CHUNK;

		for (unsigned long i = 0; i < nr; i++)
			at[i] = area + (first + i) * GUEST_PAGE;
		if (syscall(SYS_move_pages, 0, nr, at, NULL, node, 0))
			return -1;
		for (unsigned long i = 0; i < nr; i++)
			found += node[i] >= 0 && (mask >> node[i] & 1);
	}
	return found;
}

#endif /* GUEST_NODE_H */
