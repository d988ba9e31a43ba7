// SPDX-License-Identifier: GPL-2.0
/*
 * How fast a node's memory can be read, for limits that are given as a share of it.
 *
 * The firmware's table (HMAT) says so on many machines. Elsewhere it is measured, once,
 * and kept in the run directory, so that a share means the same at every use until the
 * next boot.
 */
#include <linux/mempolicy.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

#define NODE_DIR	"/sys/devices/system/node/node%u"
#define MAX_READERS	4
#define PASSES		4
#define LEAST_BYTES	(64UL << 20)
#define MOST_BYTES	(2UL << 30)

struct reader {
	pthread_t thread;
	const volatile __u64 *at;
	size_t words;
	__u64 sum;		/* so that the reads are not thrown away */
};

static void *read_all(void *arg)
{
	struct reader *r = arg;

	/* one word a cache line: the line is what comes over the bus */
	for (size_t i = 0; i < r->words; i += 64 / sizeof(*r->at))
		r->sum += r->at[i];
	return NULL;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* All readers over all of it once; bytes per second. */
static double one_pass(struct reader *readers, unsigned int nr, size_t bytes)
{
	double begun = seconds(), took;
	unsigned int started = 0;

	while (started < nr &&
	       !pthread_create(&readers[started].thread, NULL, read_all, &readers[started]))
		started++;
	for (unsigned int i = 0; i < started; i++)
		pthread_join(readers[i].thread, NULL);
	took = seconds() - begun;
	return started == nr && took > 0 ? bytes / took : 0;
}

/* More than the caches hold, but no more than an eighth of what is free there. */
static size_t probe_bytes(unsigned int nid)
{
	long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
	size_t want = cache > 0 ? 4 * (size_t)cache : LEAST_BYTES;
	unsigned long long free_kib = 0;
	char path[64], text[4096];
	const char *at;

	snprintf(path, sizeof(path), NODE_DIR "/meminfo", nid);
	if (tier_read_text(path, text, sizeof(text)) < 0)
		return 0;
	at = strstr(text, "MemFree:");
	if (!at || sscanf(at, "MemFree: %llu", &free_kib) != 1)
		return 0;
	if (want < LEAST_BYTES)
		want = LEAST_BYTES;
	if (want > MOST_BYTES)
		want = MOST_BYTES;
	if (want > free_kib * 1024 / 8)
		want = free_kib * 1024 / 8;
	return want & ~((1UL << 20) - 1);
}

static int measure(unsigned int nid, __u64 *mbps)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned int nr = cpus > MAX_READERS ? MAX_READERS : cpus < 1 ? 1 : cpus;
	unsigned long nodes = 1UL << nid;
	size_t bytes = probe_bytes(nid);
	struct reader readers[MAX_READERS] = {};
	double best = 0, rate;
	char *at;

	if (!bytes)
		return -ENOMEM;
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return -errno;
	/* static: the scanner shall not promote it while it is measured */
	if (syscall(SYS_mbind, at, bytes, MPOL_BIND, &nodes, 64 + 1, 0)) {
		munmap(at, bytes);
		return -errno;
	}
	memset(at, 1, bytes);
	for (unsigned int i = 0; i < nr; i++) {
		readers[i].words = bytes / nr / sizeof(__u64);
		readers[i].at = (const volatile __u64 *)at + i * readers[i].words;
	}
	for (unsigned int i = 0; i < PASSES; i++) {
		rate = one_pass(readers, nr, bytes);
		best = rate > best ? rate : best;
	}
	munmap(at, bytes);
	*mbps = best / 1e6;
	return *mbps ? 0 : -EIO;
}

static void kept_path(struct tier_ctx *ctx, unsigned int nid, char *path, size_t size)
{
	snprintf(path, size, "%s/read_mbps_node%u", ctx->run_dir, nid);
}

static int keep(struct tier_ctx *ctx, unsigned int nid, __u64 mbps)
{
	char path[96], text[32];
	int err;

	err = tier_run_dir(ctx);
	if (err)
		return err;
	kept_path(ctx, nid, path, sizeof(path));
	snprintf(text, sizeof(text), "%llu\n", mbps);
	err = tier_replace_text(path, text, 0644);
	return err ? tier_fail(ctx, TIER_CLASS_FAILED, err, "Make room on the file system of /run.",
			       "write %s: %s", path, strerror(-err)) : 0;
}

static bool number_in(const char *path, __u64 *value)
{
	char text[32];

	return tier_read_text(path, text, sizeof(text)) > 0 && !tier_parse_u64(text, value) && *value;
}

enum tier_bandwidth_source tier_node__read_mbps(struct tier_ctx *ctx, unsigned int nid, __u64 *mbps)
{
	char path[96];

	snprintf(path, sizeof(path), NODE_DIR "/access0/initiators/read_bandwidth", nid);
	if (number_in(path, mbps))
		return TIER_BANDWIDTH_HMAT;
	kept_path(ctx, nid, path, sizeof(path));
	if (number_in(path, mbps))
		return TIER_BANDWIDTH_MEASURED;
	*mbps = 0;
	return TIER_BANDWIDTH_UNKNOWN;
}

/* To measure takes memory and leaves a file: not where nothing is to change. */
static int not_known(struct tier_ctx *ctx, unsigned int nid)
{
	return tier_fail(ctx, TIER_CLASS_FAILED, -ENODATA,
			 "Give the limit in MiB/s, or leave out --dry-run: load, swap and set measure "
			 "it once.",
			 "take a share of the slow tier's bandwidth: that of node %u has not been "
			 "measured, and the firmware does not tell", nid);
}

int tier_slow_tier_mbps(struct tier_ctx *ctx, __u64 *mbps)
{
	struct tier_env env;
	__u64 slow, node;
	int err;

	err = tier_env__probe(ctx, &env);
	if (err)
		return err;
	slow = env.memory_nodes & ~env.top_nodes;
	if (!slow || !env.top_nodes)
		return tier_fail(ctx, TIER_CLASS_UNSUPPORTED, -ENODEV,
				 "Give the limit in MiB/s; tierctl topo shows the tiers.",
				 "take a share of the slow tier's bandwidth: this machine has no "
				 "slow tier");
	*mbps = 0;
	for (unsigned int nid = 0; nid < TIER_MAX_NODES; nid++) {
		if (!(slow >> nid & 1))
			continue;
		if (tier_node__read_mbps(ctx, nid, &node) == TIER_BANDWIDTH_UNKNOWN) {
			if (ctx->trying)
				return not_known(ctx, nid);
			err = measure(nid, &node);
			if (err)
				return tier_fail(ctx, TIER_CLASS_FAILED, err,
						 "Give the limit in MiB/s; tierctl topo shows what "
						 "is free on the node.",
						 "measure how fast node %u is read, for the firmware "
						 "does not tell: %s", nid, strerror(-err));
			tier_log(ctx, TIER_LOG_INFO, "node %u: %llu MB/s measured", nid, node);
			err = keep(ctx, nid, node);
			if (err)
				return err;
		}
		*mbps += node;
	}
	return 0;
}

/* "5%", "0.25%": hundredths of a percent, 1 to 10000. */
int tier_parse_share(const char *text, unsigned int *hundredths)
{
	size_t len = strspn(text, "0123456789");
	unsigned int whole, part = 0;
	const char *at = text + len;

	if (!len || len > 3)
		return -EINVAL;
	whole = strtoul(text, NULL, 10);
	if (*at == '.') {
		at++;
		len = strspn(at, "0123456789");
		if (len < 1 || len > 2)
			return -EINVAL;
		part = strtoul(at, NULL, 10) * (len == 1 ? 10 : 1);
		at += len;
	}
	if (strcmp(at, "%"))
		return -EINVAL;
	*hundredths = whole * 100 + part;
	return *hundredths >= 1 && *hundredths <= 10000 ? 0 : -ERANGE;
}

/* Of MB/s in whole MiB/s, at least 1: 0 would be no limit. */
__u64 tier_share_mibps(__u64 mbps, unsigned int hundredths)
{
	__u64 mibps = (unsigned __int128)mbps * 1000000 * hundredths / 10000 >> 20;

	return mibps ? mibps : 1;
}
