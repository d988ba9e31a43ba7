// SPDX-License-Identifier: GPL-2.0
/* Small readers of /proc and /sys. Absent files are facts, not failures. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sysinfo.h"

#define NODE_DIR	"/sys/devices/system/node/node%u"

static int vread(char *buf, size_t size, const char *fmt, va_list ap)
{
	char path[512];
	FILE *f;
	int err = 0;

	buf[0] = '\0';
	vsnprintf(path, sizeof(path), fmt, ap);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	errno = 0;
	if (!fgets(buf, size, f))
		err = errno ? -errno : 0;	/* an empty file is an empty line */
	fclose(f);
	buf[strcspn(buf, "\n")] = '\0';
	return err;
}

int sys_read(char *buf, size_t size, const char *fmt, ...)
{
	va_list ap;
	int err;

	va_start(ap, fmt);
	err = vread(buf, size, fmt, ap);
	va_end(ap);
	return err;
}

int sys_read_u64(__u64 *value, const char *fmt, ...)
{
	char buf[64], *end;
	va_list ap;
	int err;

	va_start(ap, fmt);
	err = vread(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	*value = 0;
	if (err)
		return err;
	*value = strtoull(buf, &end, 10);
	return end == buf ? -EINVAL : 0;
}

__u64 sys_parse_list(const char *text)
{
	__u64 mask = 0;

	while (*text >= '0' && *text <= '9') {
		char *end;
		unsigned long first = strtoul(text, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; first <= last && first < 64; first++)
			mask |= 1ULL << first;
		text = *end == ',' ? end + 1 : end;
	}
	return mask;
}

__u64 sys_mems_allowed(unsigned int pid, char *list, size_t size)
{
	char path[64], line[512];
	__u64 allowed = ~0ULL;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "Mems_allowed_list:", 18)) {
			char *text = line + 18 + strspn(line + 18, " \t");

			text[strcspn(text, "\n")] = '\0';
			allowed = sys_parse_list(text);
			if (list)
				snprintf(list, size, "%s", text);
		}
	if (f)
		fclose(f);
	return allowed;
}

__u64 sys_vmstat(const char *name)
{
	FILE *f = fopen("/proc/vmstat", "re");
	unsigned long long value, found = 0;
	char key[64];

	while (f && fscanf(f, "%63s %llu", key, &value) == 2)
		if (!strcmp(key, name))
			found = value;
	if (f)
		fclose(f);
	return found;
}

static void one_zoneinfo_line(const char *line, struct sys_node *node, __u64 page)
{
	unsigned long long v;
	char key[64];

	if (sscanf(line, " pages free %llu", &v) == 1) {
		node->free_bytes += v * page;
		return;
	}
	if (sscanf(line, " %63s %llu", key, &v) != 2)
		return;
	if (!strcmp(key, "min"))
		node->min_bytes += v * page;
	else if (!strcmp(key, "low"))
		node->low_bytes += v * page;
	else if (!strcmp(key, "high"))
		node->high_bytes += v * page;
	else if (!strcmp(key, "promo"))
		node->promo_bytes += v * page;
	else if (!strcmp(key, "node_unreclaimable:"))
		node->unreclaimable |= v;
	else if (!strcmp(key, "pgpromote_success"))
		node->pgpromote_success = v;
	else if (!strcmp(key, "pgpromote_candidate"))
		node->pgpromote_candidate = v;
	else if (!strncmp(key, "pgdemote_", 9))
		node->pgdemote += v;
}

/*
 * Watermarks, kswapd's state and the per-node counters. Per-CPU page sets and
 * lowmem reserves use other words, except for "high:", which has a colon.
 */
static int zoneinfo(struct sys_node *nodes)
{
	FILE *f = fopen("/proc/zoneinfo", "re");
	__u64 page = sysconf(_SC_PAGESIZE);
	struct sys_node *node = NULL;
	char line[512];

	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		unsigned int nid;

		if (sscanf(line, "Node %u, zone", &nid) == 1)
			node = nid < SYS_MAX_NODES ? &nodes[nid] : NULL;
		else if (node)
			one_zoneinfo_line(line, node, page);
	}
	fclose(f);
	return 0;
}

static __u64 total_bytes(unsigned int nid)
{
	char path[64], line[256];
	unsigned long long kib = 0;
	FILE *f;

	snprintf(path, sizeof(path), NODE_DIR "/meminfo", nid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Node %*u MemTotal: %llu kB", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib << 10;
}

static __u64 count_cpus(const char *list)
{
	__u64 nr = 0;

	while (*list >= '0' && *list <= '9') {
		char *end;
		unsigned long first = strtoul(list, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		nr += last >= first ? last - first + 1 : 0;
		list = *end == ',' ? end + 1 : end;
	}
	return nr;
}

int sys_nodes(struct sys_node *nodes)
{
	char list[256];
	__u64 online;
	int err;

	memset(nodes, 0, SYS_MAX_NODES * sizeof(*nodes));
	err = sys_read(list, sizeof(list), "/sys/devices/system/node/online");
	if (err)
		return err;
	online = sys_parse_list(list);
	for (unsigned int nid = 0; nid < SYS_MAX_NODES; nid++) {
		struct sys_node *n = &nodes[nid];

		if (!(online >> nid & 1))
			continue;
		n->online = true;
		sys_read(n->cpulist, sizeof(n->cpulist), NODE_DIR "/cpulist", nid);
		n->cpus = count_cpus(n->cpulist);
		sys_read(n->distance, sizeof(n->distance), NODE_DIR "/distance", nid);
		n->total_bytes = total_bytes(nid);
		n->has_memory = n->total_bytes;
#define ACCESS(field, file) sys_read_u64(&n->field, NODE_DIR "/access0/initiators/" file, nid)
		ACCESS(read_latency_ns, "read_latency");
		ACCESS(write_latency_ns, "write_latency");
		ACCESS(read_bandwidth_mbps, "read_bandwidth");
		ACCESS(write_bandwidth_mbps, "write_bandwidth");
#undef ACCESS
	}
	return zoneinfo(nodes);
}
