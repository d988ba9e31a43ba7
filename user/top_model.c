// SPDX-License-Identifier: GPL-2.0
/* tierctl top: two readings and what lies between them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "top.h"

#include <tier/hist.h>

static void subtract(struct totals *d, const struct totals *now, const struct totals *last)
{
	for (unsigned int i = 0; i < TIER_NR_DECISIONS; i++) {
		d->faults[i] = now->faults[i] - last->faults[i];
		d->pages[i] = now->pages[i] - last->pages[i];
	}
	for (unsigned int i = 0; i < 3; i++) {
		d->verdict[i] = now->verdict[i] - last->verdict[i];
		d->verdict_pages[i] = now->verdict_pages[i] - last->verdict_pages[i];
	}
	for (unsigned int i = 0; i < TIER_NR_MV; i++)
		d->moves[i] = now->moves[i] - last->moves[i];
	d->faults_counted = now->faults_counted - last->faults_counted;
}

/* The threshold shown over time is that of the first fast node that has one. */
static double main_threshold(const struct tier_stats *s)
{
	for (unsigned int nid = 0; nid < s->nr_nodes; nid++)
		if (s->node[nid].threshold_ms)
			return s->node[nid].threshold_ms;
	return 0;
}

static void remember(struct top *top)
{
	unsigned int at = top->nr_history++ % TOP_HISTORY;

	top->threshold_ms[at] = main_threshold(top->now);
	top->up_per_s[at] = top->delta.moves[TIER_MV_PROMOTED] / top->seconds;
	top->faults_per_s[at] = top->delta.faults_counted / top->seconds;
}

static void close_watch(struct top *top)
{
	tier_watch__close(top->watch);
	top->watch = NULL;
	free(top->old_tasks);
	top->old_tasks = NULL;
	top->nr_old_tasks = 0;
	top->nr_tasks = 0;
}

static void open_watch(struct top *top)
{
	const struct tier_watch_opts options = { .tasks = true, .node = -1, .decisions = ~0U };

	if (!top->want_tasks) {
		snprintf(top->watch_error, sizeof(top->watch_error), "switched off (--no-tasks)");
		return;
	}
	top->watch_error[0] = '\0';
	if (tier_watch__open(top->t->ctx, &options, &top->watch)) {
		out_clean(tier_ctx__error(top->t->ctx)->message, top->watch_error,
			  sizeof(top->watch_error));
		top->watch = NULL;
	}
	top->tasks_ns = now_ns();
}

static const struct tier_watch_pid *old_task(const struct top *top, __u32 pid)
{
	for (unsigned int i = 0; i < top->nr_old_tasks; i++)
		if (top->old_tasks[i].pid == pid)
			return &top->old_tasks[i];
	return NULL;
}

static void one_task(struct top_task *to, const struct tier_watch_pid *now,
		     const struct tier_watch_pid *old, double seconds)
{
	__u64 sum[3] = { 0 }, pages = 0, all = 0;

	for (unsigned int d = 0; d < TIER_NR_DECISIONS; d++) {
		__u64 before = old ? old->task.faults[d] : 0;

		all += now->task.faults[d];
		sum[tier_decision_verdict(d)] += now->task.faults[d] - before;
		if (tier_decision_verdict(d) == TIER_VERDICT_PROMOTE)
			pages += now->task.pages[d] - (old ? old->task.pages[d] : 0);
	}
	*to = (struct top_task){
		.pid = now->pid,
		.faults = all,
		.faults_per_s = (sum[0] + sum[1] + sum[2]) / seconds,
		.promote_per_s = sum[TIER_VERDICT_PROMOTE] / seconds,
		.reject_per_s = sum[TIER_VERDICT_REJECT] / seconds,
		.pages_up_per_s = pages / seconds,
	};
	memcpy(to->comm, now->task.comm, sizeof(to->comm));
	to->comm[sizeof(to->comm) - 1] = '\0';
}

static enum top_sort sort_by;

static int compare(const void *a, const void *b)
{
	const struct top_task *x = a, *y = b;
	double left = sort_by == TOP_BY_PROMOTIONS ? x->pages_up_per_s : x->faults_per_s;
	double right = sort_by == TOP_BY_PROMOTIONS ? y->pages_up_per_s : y->faults_per_s;

	if (left != right)
		return left < right ? 1 : -1;
	return x->faults != y->faults ? (x->faults < y->faults ? 1 : -1) : (int)x->pid - (int)y->pid;
}

/* Keeps the busiest TOP_TASKS; more do not fit on any screen. */
static void read_tasks(struct top *top)
{
	struct tier_watch_pid *tasks;
	unsigned int nr;
	__u64 now = now_ns();
	double seconds = (now - top->tasks_ns) / 1e9;

	if (tier_watch__tasks(top->watch, &tasks, &nr))
		return;
	top->nr_tasks = 0;
	sort_by = top->sort;
	for (unsigned int i = 0; i < nr; i++) {
		struct top_task task;

		one_task(&task, &tasks[i], old_task(top, tasks[i].pid), seconds);
		if (top->nr_tasks < TOP_TASKS) {
			top->tasks[top->nr_tasks++] = task;
			continue;
		}
		qsort(top->tasks, top->nr_tasks, sizeof(task), compare);
		if (compare(&task, &top->tasks[TOP_TASKS - 1]) < 0)
			top->tasks[TOP_TASKS - 1] = task;
	}
	qsort(top->tasks, top->nr_tasks, sizeof(top->tasks[0]), compare);
	free(top->old_tasks);
	top->old_tasks = tasks;
	top->nr_old_tasks = nr;
	top->tasks_ns = now;
}

static void nothing_loaded(struct top *top)
{
	close_watch(top);
	tier_stats__free(top->now);
	tier_stats__free(top->last);
	top->now = top->last = NULL;
}

int top_read(struct top *top)
{
	struct totals now, last;
	struct tier_stats *stats;
	int err = tier_stats__read(top->t->ctx, &stats);

	if (err == -ENOENT) {
		nothing_loaded(top);
		return TIER_CLASS_OK;
	}
	if (err)
		return tier_ctx__error(top->t->ctx)->class;
	sys_nodes(top->nodes);
	tier_stats__free(top->last);
	top->last = top->now;
	top->now = stats;
	stats_totals(stats, &now);
	top->missing = stats_missing(&now);
	if (top->watch && !tier_watch__current(top->t->ctx, top->watch))
		close_watch(top);
	if (!top->watch)
		open_watch(top);
	else
		read_tasks(top);
	if (!top->last)
		return TIER_CLASS_OK;
	stats_totals(top->last, &last);
	/* Unloaded and loaded anew in between: counters began again at zero. */
	if (now.faults_counted < last.faults_counted) {
		tier_stats__free(top->last);
		top->last = NULL;
		return TIER_CLASS_OK;
	}
	subtract(&top->delta, &now, &last);
	top->seconds = (top->now->time_ns - top->last->time_ns) / 1e9;
	if (top->seconds > 0)
		remember(top);
	return TIER_CLASS_OK;
}

long top_quantile_ms(const struct top *top, unsigned int nid, unsigned int per_mille)
{
	struct tier_hist delta;
	__u32 slot;

	for (unsigned int i = 0; i < TIER_HIST_SLOTS; i++)
		delta.pages[i] = top->now->hist[nid].pages[i] - top->last->hist[nid].pages[i];
	slot = tier_hist_quantile(delta.pages, per_mille);
	return slot >= TIER_HIST_SLOTS ? -1 : (long)tier_hist_high(slot);
}

void top_free(struct top *top)
{
	nothing_loaded(top);
}
