/* SPDX-License-Identifier: GPL-2.0 */
/* tierctl top: what is shown (top_model.c) and how (top_draw.c). */
#ifndef TIER_TOP_H
#define TIER_TOP_H

#include "emit.h"
#include "sysinfo.h"

#define TOP_HISTORY	512	/* intervals kept for the sparklines */
#define TOP_TASKS	256

struct top_task {
	__u32 pid;
	char comm[16];
	double faults_per_s, promote_per_s, reject_per_s, pages_up_per_s;
	__u64 faults;		/* since top was started */
};

enum top_sort {
	TOP_BY_FAULTS = 0,
	TOP_BY_PROMOTIONS = 1,
};

struct top {
	struct tierctl *t;
	bool want_tasks;
	enum top_sort sort;
	bool paused;
	__u64 interval_ns;

	/* the last reading and the one before it; NULL: nothing is loaded */
	struct tier_stats *now, *last;
	struct sys_node nodes[SYS_MAX_NODES];
	struct totals delta;		/* of the interval: sums only grow */
	double seconds;
	bool accounted;
	__s64 missing;

	struct tier_watch *watch;
	char watch_error[128];		/* why there are no processes */
	struct top_task tasks[TOP_TASKS];
	unsigned int nr_tasks;
	struct tier_watch_pid *old_tasks;
	unsigned int nr_old_tasks;
	__u64 tasks_ns;

	/* rings, newest at (nr - 1) % TOP_HISTORY */
	double threshold_ms[TOP_HISTORY], up_per_s[TOP_HISTORY], faults_per_s[TOP_HISTORY];
	unsigned int nr_history;
};

/* Take a reading. 0, or the exit code of what was reported. */
int top_read(struct top *top);
void top_free(struct top *top);
/* Latency quantile of the interval at one node, -1: no page in it. */
long top_quantile_ms(const struct top *top, unsigned int nid, unsigned int per_mille);

void top_draw(const struct top *top);

#endif /* TIER_TOP_H */
