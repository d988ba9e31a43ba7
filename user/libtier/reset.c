// SPDX-License-Identifier: GPL-2.0
/*
 * Counters from 0 without touching them: zeroing a map while faults count in it
 * would lose some. Instead a reading is kept, and taken off later ones.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "internal.h"

#define BASE_MAGIC	0x33534142	/* "BAS3" */

/* In front of the arrays pairs, hist and moves. Of this boot and load, so raw is fine. */
struct base {
	__u32 magic;
	__u32 abi;
	__u32 nr_nodes;
	__u32 reserved;
	__u64 module[TIER_NR_EV];
	struct tier_scans scans;
	struct tier_scan_hist scan_hist;
	struct tier_request_counts request;
};

static void base_path(struct tier_ctx *ctx, char *path, size_t size, const char *suffix)
{
	snprintf(path, size, "%s/base%s", ctx->run_dir, suffix);
}

int tier_base_remove(struct tier_ctx *ctx)
{
	char path[96];

	base_path(ctx, path, sizeof(path), "");
	return unlink(path) && errno != ENOENT ? -errno : 0;
}

/* Never below 0: an observer that was loaded anew has forgotten what it had counted. */
static void subtract(void *from, const void *what, size_t bytes)
{
	const __u64 *b = what;
	__u64 *a = from;

	for (size_t i = 0; i < bytes / sizeof(*a); i++)
		a[i] = a[i] > b[i] ? a[i] - b[i] : 0;
}

static int take_off(FILE *file, void *from, size_t bytes)
{
	void *buf = malloc(bytes);
	int err = 0;

	if (!buf)
		return -ENOMEM;
	if (fread(buf, 1, bytes, file) != bytes)
		err = -EBADMSG;
	else
		subtract(from, buf, bytes);
	free(buf);
	return err;
}

int tier_base_subtract(struct tier_ctx *ctx, struct tier_stats *stats)
{
	size_t pairs = (size_t)stats->nr_nodes * stats->nr_nodes;
	struct base base;
	char path[96];
	FILE *file;
	int err = -EBADMSG;

	base_path(ctx, path, sizeof(path), "");
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fread(&base, sizeof(base), 1, file) == 1 && base.magic == BASE_MAGIC &&
	    base.abi == TIER_ABI_VERSION && base.nr_nodes == stats->nr_nodes) {
		err = take_off(file, stats->pairs, pairs * sizeof(*stats->pairs)) ?:
		      take_off(file, stats->hist, stats->nr_nodes * sizeof(*stats->hist)) ?:
		      take_off(file, stats->moves, pairs * sizeof(*stats->moves));
		subtract(&stats->scans, &base.scans, sizeof(base.scans));
		subtract(&stats->scan_hist, &base.scan_hist, sizeof(base.scan_hist));
		subtract(&stats->request, &base.request, sizeof(base.request));
		memcpy(stats->module_base, base.module, sizeof(base.module));
	}
	fclose(file);
	if (err)
		return tier_fail(ctx, TIER_CLASS_FAILED, err, "Run tierctl reset.",
				 "read what was counted before the last reset, %s: damaged, or of "
				 "another tierctl", path);
	return 0;
}

static bool put(FILE *file, const void *data, size_t bytes)
{
	return fwrite(data, 1, bytes, file) == bytes;
}

static int write_base(struct tier_ctx *ctx, const struct tier_stats *stats,
		      const struct base *base)
{
	size_t pairs = (size_t)stats->nr_nodes * stats->nr_nodes;
	char path[96], next[96];
	FILE *file;
	bool good;

	base_path(ctx, path, sizeof(path), "");
	base_path(ctx, next, sizeof(next), ".new");
	file = fopen(next, "we");
	good = file && put(file, base, sizeof(*base)) &&
	       put(file, stats->pairs, pairs * sizeof(*stats->pairs)) &&
	       put(file, stats->hist, stats->nr_nodes * sizeof(*stats->hist)) &&
	       put(file, stats->moves, pairs * sizeof(*stats->moves));
	if (file && fclose(file))
		good = false;
	if (good && !rename(next, path))
		return 0;
	tier_fail(ctx, TIER_CLASS_FAILED, -EIO, "Make room on the file system of /run.",
		  "write %s: %s", path, strerror(errno));
	unlink(next);
	return -EIO;
}

static __u64 faults_of(const struct tier_stats *stats)
{
	__u64 sum = 0;

	for (__u32 i = 0; i < stats->nr_nodes * stats->nr_nodes; i++)
		for (int d = 0; d < TIER_NR_DECISIONS; d++)
			sum += stats->pairs[i].faults[d];
	return sum;
}

/*
 * Policies find their threshold and rate window anew. Racing faults may put
 * back a number of the window that was: they are allowed to, see tier_node.
 */
static int reset_nodes(struct tier_ctx *ctx, __u32 nr_nodes)
{
	static const struct tier_node zero;
	int fd = tier_pin_get(ctx, "maps/tier_nodes"), err = 0;

	if (fd == -ENOENT)
		return 0;
	for (__u32 i = 0; fd >= 0 && i < nr_nodes && !err; i++)
		err = bpf_map_update_elem(fd, &i, &zero, 0) ? -errno : 0;
	if (fd < 0)
		err = fd;
	else
		close(fd);
	return err ? tier_fail(ctx, TIER_CLASS_FAILED, err, NULL,
			       "reset the policies' shared state: %s", strerror(-err)) : 0;
}

static int do_reset(struct tier_ctx *ctx, void *arg, struct tier_changes *changes)
{
	struct base base = { .magic = BASE_MAGIC, .abi = TIER_ABI_VERSION };
	const unsigned int calls = TIER_EV_POLICY_CALLS;
	struct tier_active active;
	struct tier_stats *stats;
	__u64 counted;
	int err;

	err = tier_stats_read_raw(ctx, &stats);
	if (err)
		return err;
	/* The reading has just found it, and nobody else may change it now. */
	tier_active_open(ctx, &active);
	tier_active_close(&active);
	base.nr_nodes = stats->nr_nodes;
	base.scans = stats->scans;
	base.scan_hist = stats->scan_hist;
	base.request = stats->request;
	memcpy(base.module, stats->module, sizeof(base.module));
	/*
	 * Faults went on while the maps were read. If all of them are accounted
	 * for, the module's count that belongs to this reading is the maps' sum.
	 */
	counted = faults_of(stats) + stats->module_base[calls];
	if (counted >= stats->module_before[calls] && counted <= stats->module[calls])
		base.module[calls] = counted;
	err = write_base(ctx, stats, &base) ?: tier_tenures_reset(ctx, active.map_id, stats) ?:
	      reset_nodes(ctx, stats->nr_nodes);
	tier_stats__free(stats);
	return err;
}

int tier_reset(struct tier_ctx *ctx)
{
	return tier_transaction(ctx, "reset", do_reset, NULL, NULL);
}
