// SPDX-License-Identifier: GPL-2.0
/*
 * Counters by policy. The maps go on over swaps, so a swap takes a reading just
 * before it: what comes after is the new policy's. The readings telescope, so the
 * policies' counts always sum to those of the maps; of the faults that fall into
 * the reading itself some go to the neighbour.
 *
 * The file holds sums of policies that went, the start of the one in force, and
 * the start of the next. Which of the two is in force the link tells, so a killed
 * swap leaves nothing to mend.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

#define TENURE_MAGIC	0x314e4554	/* "TEN1" */

/* A reading, and whose time began with it. */
struct start {
	__u32 map_id;			/* 0: empty */
	__u32 reserved;
	char policy[TIER_NAME_LEN];
	__u64 since_ns;			/* CLOCK_BOOTTIME */
	struct tier_counts counts;
	__u64 moves[TIER_NR_MV];
};

struct tier_tenures {
	__u32 magic;
	__u32 abi;
	__u32 nr;
	__u32 reserved;
	struct tier_tenure went[TIER_MAX_TENURES];
	struct start now, next;
};

static __u64 boottime_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void tenure_path(struct tier_ctx *ctx, char *path, size_t size, const char *suffix)
{
	snprintf(path, size, "%s/tenures%s", ctx->run_dir, suffix);
}

void tier_tenures_remove(struct tier_ctx *ctx)
{
	char path[96];

	tenure_path(ctx, path, sizeof(path), "");
	unlink(path);
}

static int write_file(struct tier_ctx *ctx, const struct tier_tenures *t)
{
	char path[96], next[96];
	FILE *file;
	bool good;

	tenure_path(ctx, path, sizeof(path), "");
	tenure_path(ctx, next, sizeof(next), ".new");
	file = fopen(next, "we");
	good = file && fwrite(t, sizeof(*t), 1, file) == 1;
	if (file && fclose(file))
		good = false;
	if (good && !rename(next, path))
		return 0;
	unlink(next);
	return -EIO;
}

/* False: there is none, or it is not of this build: then all belongs to who is in force. */
static bool read_file(struct tier_ctx *ctx, struct tier_tenures *t)
{
	char path[96];
	FILE *file;
	bool good;

	tenure_path(ctx, path, sizeof(path), "");
	file = fopen(path, "re");
	good = file && fread(t, sizeof(*t), 1, file) == 1 && t->magic == TENURE_MAGIC &&
	       t->abi == TIER_ABI_VERSION && t->nr <= TIER_MAX_TENURES;
	if (file)
		fclose(file);
	return good;
}

static void sum(const struct tier_stats *stats, struct tier_counts *counts, __u64 *moves)
{
	memset(counts, 0, sizeof(*counts));
	memset(moves, 0, TIER_NR_MV * sizeof(*moves));
	for (__u32 i = 0; i < stats->nr_nodes * stats->nr_nodes; i++) {
		for (int d = 0; d < TIER_NR_DECISIONS; d++) {
			counts->faults[d] += stats->pairs[i].faults[d];
			counts->pages[d] += stats->pairs[i].pages[d];
		}
		for (int m = 0; m < TIER_NR_MV; m++)
			moves[m] += stats->moves[i].count[m];
	}
}

/* Never below 0: an observer that was loaded anew has forgotten what it had counted. */
static void grow(__u64 *sum, const __u64 *from, const __u64 *to, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		sum[i] += to[i] > from[i] ? to[i] - from[i] : 0;
}

/* The entry of a policy; the last one takes all that find no room. */
static struct tier_tenure *entry(struct tier_tenure *tenures, __u32 *nr, const char *policy)
{
	for (__u32 i = 0; i < *nr; i++)
		if (!strcmp(tenures[i].policy, policy))
			return &tenures[i];
	if (*nr == TIER_MAX_TENURES) {
		tier_copy(tenures[*nr - 1].policy, TIER_NAME_LEN, "(others)");
		return &tenures[*nr - 1];
	}
	memset(&tenures[*nr], 0, sizeof(tenures[0]));
	tier_copy(tenures[*nr].policy, TIER_NAME_LEN, policy);
	return &tenures[(*nr)++];
}

static void add(struct tier_tenure *tenure, const struct start *from, const struct start *to)
{
	tenure->times++;
	tenure->time_ns += to->since_ns > from->since_ns ? to->since_ns - from->since_ns : 0;
	grow(tenure->counts.faults, from->counts.faults, to->counts.faults, TIER_NR_DECISIONS);
	grow(tenure->counts.pages, from->counts.pages, to->counts.pages, TIER_NR_DECISIONS);
	grow(tenure->moves, from->moves, to->moves, TIER_NR_MV);
}

/* Bring it to where t->now is the policy of @map_id. */
static void resolve(struct tier_ctx *ctx, struct tier_tenures *t, __u32 map_id,
		    const char *policy)
{
	char text[32];

	if (!read_file(ctx, t) || (t->now.map_id != map_id && t->next.map_id != map_id)) {
		/* The first since load: it began with everything at 0. */
		memset(t, 0, sizeof(*t));
		t->magic = TENURE_MAGIC;
		t->abi = TIER_ABI_VERSION;
		t->now.map_id = map_id;
		tier_copy(t->now.policy, sizeof(t->now.policy), policy);
		if (tier_module_text("since", text, sizeof(text)) > 0)
			t->now.since_ns = strtoull(text, NULL, 10);
		return;
	}
	if (t->now.map_id != map_id) {
		add(entry(t->went, &t->nr, t->now.policy), &t->now, &t->next);
		t->now = t->next;
	}
	memset(&t->next, 0, sizeof(t->next));
}

static void start_here(struct start *start, __u32 map_id, const char *policy,
		       const struct tier_stats *stats)
{
	memset(start, 0, sizeof(*start));
	start->map_id = map_id;
	tier_copy(start->policy, sizeof(start->policy), policy);
	start->since_ns = boottime_ns();
	sum(stats, &start->counts, start->moves);
}

int tier_tenures_note(struct tier_ctx *ctx, __u32 from_id, __u32 to_id, const char *to_policy,
		      const struct tier_stats *stats)
{
	struct tier_tenures *t = calloc(1, sizeof(*t));
	int err = -ENOMEM;

	if (t) {
		resolve(ctx, t, from_id, stats->policy);
		start_here(&t->next, to_id, to_policy, stats);
		err = write_file(ctx, t);
	}
	free(t);
	return err;
}

void tier_tenures_swap(struct tier_ctx *ctx, __u32 from_id, __u32 to_id, const char *to_policy)
{
	struct tier_error_copy copy;
	struct tier_stats *stats;
	int err;

	tier_error_save(ctx, &copy);
	err = tier_stats_read_raw(ctx, &stats);
	if (!err)
		err = tier_tenures_note(ctx, from_id, to_id, to_policy, stats);
	tier_stats__free(stats);
	if (err) {
		/* Their sum must hold: without an account there is one policy, the one in force. */
		tier_log(ctx, TIER_LOG_WARN, "counters by policy: what earlier policies decided counts "
			 "as decided by the one in force until the next load or reset: %s",
			 strerror(-err));
		tier_tenures_remove(ctx);
	}
	tier_error_restore(ctx, &copy);
}

int tier_tenures_reset(struct tier_ctx *ctx, __u32 map_id, const struct tier_stats *stats)
{
	struct tier_tenures *t = calloc(1, sizeof(*t));
	int err = -ENOMEM;

	if (t) {
		t->magic = TENURE_MAGIC;
		t->abi = TIER_ABI_VERSION;
		start_here(&t->now, map_id, stats->policy, stats);
		err = write_file(ctx, t);
	}
	free(t);
	return err ? tier_fail(ctx, TIER_CLASS_FAILED, err, "Make room on the file system of /run.",
			       "write %s/tenures: %s", ctx->run_dir, strerror(-err)) : 0;
}

int tier_tenures_read(struct tier_ctx *ctx, __u32 map_id, struct tier_stats *stats)
{
	struct tier_tenures *t = calloc(1, sizeof(*t));
	struct start end = {};
	struct tier_tenure *now;

	stats->tenures = calloc(TIER_MAX_TENURES, sizeof(*stats->tenures));
	if (!t || !stats->tenures) {
		free(t);
		return tier_fail(ctx, TIER_CLASS_FAILED, -ENOMEM, NULL, "stats: out of memory");
	}
	resolve(ctx, t, map_id, stats->policy);
	memcpy(stats->tenures, t->went, t->nr * sizeof(t->went[0]));
	stats->nr_tenures = t->nr;
	now = entry(stats->tenures, &stats->nr_tenures, t->now.policy);
	now->in_force = true;
	end.since_ns = boottime_ns();
	sum(stats, &end.counts, end.moves);
	add(now, &t->now, &end);
	free(t);
	return 0;
}
