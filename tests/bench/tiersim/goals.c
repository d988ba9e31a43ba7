// SPDX-License-Identifier: GPL-2.0
/* A policy's medians beside mode2's, judged by the goals of the default policy. */
#include "sim.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Which goals apply where; time per access is judged everywhere. */
static const struct goal {
	const char *workload;
	double promotions;	/* at most this share of mode2's; 0: not judged */
	bool hits;		/* at least mode2's, less half a point */
	bool oracle;		/* at least 95 % of the best placement's */
	bool t90;		/* no later than mode2 */
} goals[] = {
	{ "hotcold", 0.20, true, true, false },
	{ "zipf", 0.20, true, true, false },
	{ "moving", 0, false, false, true },
	{ "scanmix", 0.20, true, true, false },
	{ "uniform", 0.02, false, false, false },
	{ "two", 0.20, true, false, false },
	{ "thp", 0, false, false, false },
	{ "gups", 0.20, true, false, false },
};

#define HITS_SLACK 0.005
#define ORACLE_SHARE 0.95
#define TIME_RATIO 1.03

void ts_goals_head(void)
{
	printf("\nGoals, by the last third of each run (* judged, ! missed):\n");
	printf("%-8s %-28s %13s %13s %13s %17s %12s\n", "workload", "policy", "hits - mode2",
	       "promote/mode2", "hits/best", "t90_s (mode2)", "ns/mode2");
}

static char mark(struct ts_goals *g, bool judged, bool met)
{
	if (!judged)
		return ' ';
	g->missed += !met;
	return met ? '*' : '!';
}

/* Later than any time when never reached. */
static double reached(double t90_s)
{
	return t90_s < 0 ? INFINITY : t90_s;
}

void ts_goals_row(struct ts_goals *g, const char *workload, const char *policy,
		  const struct ts_totals *mode2, const struct ts_totals *t)
{
	const struct goal *goal = NULL;
	double hits = t->hit_final - mode2->hit_final, time = t->access_ns / mode2->access_ns;
	double best = t->oracle_hit > 0 ? t->hit_final / t->oracle_hit : 0;
	double promoted = mode2->count.promotions ?
		(double)t->count.promotions / mode2->count.promotions : t->count.promotions ? INFINITY : 0;
	size_t i;

	for (i = 0; i < sizeof(goals) / sizeof(goals[0]); i++)
		if (!strcmp(goals[i].workload, workload))
			goal = &goals[i];
	if (!goal)
		return;
	printf("%-8s %-28.28s %+12.1f%c %11.1f%%%c %11.1f%%%c %8.1f (%5.1f)%c %11.3f%c\n", workload,
	       policy, 100 * hits, mark(g, goal->hits, hits >= -HITS_SLACK), 100 * promoted,
	       mark(g, goal->promotions > 0, promoted <= goal->promotions), 100 * best,
	       mark(g, goal->oracle, best >= ORACLE_SHARE), t->t90_s, mode2->t90_s,
	       mark(g, goal->t90, reached(t->t90_s) <= reached(mode2->t90_s)), time,
	       mark(g, true, time <= TIME_RATIO));
	g->workloads++;
	g->log_time_ratio += log(time);
}

void ts_goals_end(const struct ts_goals *g, const char *policy)
{
	double mean = g->workloads ? exp(g->log_time_ratio / g->workloads) : 1.0;

	printf("%-8s %-28.28s geometric mean of ns/mode2 %.3f%c; goals missed: %d\n", "", policy, mean,
	       mean < 1.0 ? '*' : '!', g->missed + !(mean < 1.0));
}
