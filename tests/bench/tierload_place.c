// SPDX-License-Identifier: GPL-2.0
/* Nodes, placement and kernel counters for tierload. */
#include "tierload_place.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NODE_DIR "/sys/devices/system/node"
/* Asked for at once: bounds the time for which the target's mmap lock is held. */
#define QUERY_PAGES 1024

const char *const tl_vmstat_name[TL_VM_COUNT] = {
	[TL_VM_PROMOTED] = "pgpromote_success",
	[TL_VM_CANDIDATES] = "pgpromote_candidate",
	[TL_VM_DEMOTED] = "pgdemote_",
	[TL_VM_HINT_FAULTS] = "numa_hint_faults",
	[TL_VM_PTE_UPDATES] = "numa_pte_updates",
	[TL_VM_NUMA_MIGRATED] = "numa_pages_migrated",
	[TL_VM_MIGRATE_FAIL] = "pgmigrate_fail",
};

/* Parse "0-2,5" into a mask. */
static int read_node_list(const char *name, uint64_t *mask)
{
	char path[128], text[256] = "", *p = text;
	FILE *f;

	*mask = 0;
	snprintf(path, sizeof(path), NODE_DIR "/%s", name);
	f = fopen(path, "re");
	if (!f) {
		fprintf(stderr, "tierload: reading %s: %m; a kernel with CONFIG_NUMA and a mounted /sys is needed\n",
			path);
		return -ENOENT;
	}
	if (!fgets(text, sizeof(text), f))
		text[0] = 0;
	fclose(f);
	while (*p >= '0' && *p <= '9') {
		unsigned long from = strtoul(p, &p, 10), to = from;

		if (*p == '-')
			to = strtoul(p + 1, &p, 10);
		if (to >= TL_MAX_NODES) {
			fprintf(stderr, "tierload: node %lu in %s: at most %d nodes are handled\n",
				to, path, TL_MAX_NODES);
			return -E2BIG;
		}
		for (; from <= to; from++)
			*mask |= 1ull << from;
		if (*p == ',')
			p++;
	}
	return 0;
}

int tl_find_nodes(struct tl_nodes *nodes)
{
	uint64_t memory, cpu;
	int err = read_node_list("has_memory", &memory);

	if (!err)
		err = read_node_list("has_cpu", &cpu);
	if (err)
		return err;
	nodes->fast = memory & cpu;
	nodes->slow = memory & ~cpu;
	return 0;
}

/* Sums of (free - low watermark) and of the file pages over the zones of the nodes. */
int tl_free_pages(uint64_t mask, uint64_t *free_pages, uint64_t *cache_pages)
{
	unsigned long long free_zone = 0, value;
	unsigned int node = 0;
	bool ours = false;
	char line[256];
	FILE *f = fopen("/proc/zoneinfo", "re");

	*free_pages = *cache_pages = 0;
	if (!f) {
		fprintf(stderr, "tierload: reading /proc/zoneinfo: %m\n");
		return -ENOENT;
	}
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Node %u, zone", &node) == 1)
			ours = node < TL_MAX_NODES && (mask >> node & 1);
		else if (ours && sscanf(line, " pages free %llu", &value) == 1)
			free_zone = value;
		else if (ours && sscanf(line, " low %llu", &value) == 1 && free_zone > value) {
			*free_pages += free_zone - value;
			free_zone = 0;	/* a zone counts once */
		} else if (ours && (sscanf(line, " nr_zone_inactive_file %llu", &value) == 1 ||
				    sscanf(line, " nr_zone_active_file %llu", &value) == 1)) {
			*cache_pages += value;
		}
	}
	fclose(f);
	return 0;
}

static int set_policy(int mode, uint64_t mask, const char *what)
{
	unsigned long nodes[TL_MAX_NODES / (8 * sizeof(unsigned long))] = { mask };
	int err;

	if (!mask)
		mode = MPOL_DEFAULT;
	if (!syscall(SYS_set_mempolicy, mode, mask ? nodes : NULL, mask ? TL_MAX_NODES + 1 : 0))
		return 0;
	err = errno;
	fprintf(stderr, "tierload: %s nodes %#llx (set_mempolicy): %s\n", what,
		(unsigned long long)mask, strerror(err));
	return -err;
}

int tl_policy_bind(uint64_t mask)
{
	return set_policy(MPOL_BIND, mask, "binding memory to");
}

int tl_policy_prefer(uint64_t mask)
{
	return set_policy(MPOL_PREFERRED_MANY, mask, "preferring memory of");
}

int tl_bind_range(void *start, size_t bytes, uint64_t mask)
{
	unsigned long nodes[TL_MAX_NODES / (8 * sizeof(unsigned long))] = { mask };
	int err;

	if (!syscall(SYS_mbind, start, bytes, MPOL_BIND, nodes, TL_MAX_NODES + 1, 0))
		return 0;
	err = errno;
	fprintf(stderr, "tierload: binding a mapping to nodes %#llx (mbind): %s\n",
		(unsigned long long)mask, strerror(err));
	return -err;
}

int tl_query_pages(pid_t pid, const void **address, uint32_t pages, uint8_t *node)
{
	static int status[QUERY_PAGES];
	uint32_t done, n, i;

	for (done = 0; done < pages; done += n) {
		n = pages - done < QUERY_PAGES ? pages - done : QUERY_PAGES;
		if (syscall(SYS_move_pages, pid, (unsigned long)n, address + done, NULL, status, 0) < 0) {
			int err = errno;

			fprintf(stderr, "tierload: asking where the pages of process %d lie (move_pages): %s\n",
				pid, strerror(err));
			return -err;
		}
		for (i = 0; i < n; i++)
			node[done + i] = status[i] >= 0 && status[i] < TL_MAX_NODES ?
					 status[i] : TL_NODE_NONE;
	}
	return 0;
}

int tl_query_nodes(pid_t pid, const char *area, uint32_t pages, uint8_t *node)
{
	static const void *address[QUERY_PAGES];
	size_t page_bytes = sysconf(_SC_PAGESIZE);
	uint32_t done, n, i;
	int err = 0;

	for (done = 0; !err && done < pages; done += n) {
		n = pages - done < QUERY_PAGES ? pages - done : QUERY_PAGES;
		for (i = 0; i < n; i++)
			address[i] = area + (size_t)(done + i) * page_bytes;
		err = tl_query_pages(pid, address, n, node + done);
	}
	return err;
}

static void fold_counters(void)
{
	int fd = open("/proc/sys/vm/stat_refresh", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	/* Best effort: without it sums are late by at most a second. */
	if (write(fd, "1\n", 2) < 0)
		errno = 0;
	close(fd);
}

static int read_vmstat(struct tl_counters *c)
{
	FILE *f = fopen("/proc/vmstat", "re");
	unsigned long long value;
	char name[64];
	int i;

	if (!f) {
		fprintf(stderr, "tierload: reading /proc/vmstat: %m\n");
		return -ENOENT;
	}
	while (fscanf(f, "%63s %llu", name, &value) == 2) {
		for (i = 0; i < TL_VM_COUNT; i++) {
			size_t len = strlen(tl_vmstat_name[i]);

			if (i == TL_VM_DEMOTED ? !strncmp(name, tl_vmstat_name[i], len) :
						 !strcmp(name, tl_vmstat_name[i]))
				c->vm[i] += value;
		}
	}
	fclose(f);
	return 0;
}

static void add_process_time(struct tl_counters *c, pid_t pid)
{
	double hz = sysconf(_SC_CLK_TCK);
	unsigned long long user, system;
	char path[64], line[512], *p;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return;
	/* The command in parentheses may hold anything: count fields from its end. */
	if (fgets(line, sizeof(line), f) && (p = strrchr(line, ')')) &&
	    sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu",
		   &user, &system) == 2) {
		c->user_s += user / hz;
		c->system_s += system / hz;
	}
	fclose(f);
}

static void add_machine_time(struct tl_counters *c)
{
	unsigned long long system;
	FILE *f = fopen("/proc/stat", "re");

	if (!f)
		return;
	if (fscanf(f, "cpu %*u %*u %llu", &system) == 1)
		c->machine_system_s = system / (double)sysconf(_SC_CLK_TCK);
	fclose(f);
}

int tl_read_counters(struct tl_counters *c, const pid_t *pids, int n_pids, bool fold)
{
	int i;

	memset(c, 0, sizeof(*c));
	if (fold)
		fold_counters();
	for (i = 0; i < n_pids; i++)
		add_process_time(c, pids[i]);
	add_machine_time(c);
	return read_vmstat(c);
}

uint64_t tl_huge_bytes(pid_t pid)
{
	unsigned long long kib = 0;
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "AnonHugePages: %llu kB", &kib) == 1)
			break;
	fclose(f);
	return kib * 1024;
}

void tl_read_word(const char *path, char *word, size_t size)
{
	FILE *f = fopen(path, "re");

	word[0] = 0;
	if (!f)
		return;
	if (!fgets(word, size, f))
		word[0] = 0;
	word[strcspn(word, " \t\n")] = 0;
	fclose(f);
}
