// SPDX-License-Identifier: GPL-2.0
/* Tables and JSON of tiersim. */
#include "sim.h"

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const decision_names[TIER_NR_DECISIONS] = {
#define TIER_DECISION(id, verdict, sym, name, cause) [id] = name,
#include <tier/decisions.def>
#undef TIER_DECISION
};

void ts_print_samples(const struct ts_result *r)
{
	uint32_t i;

	printf("# %s, %s, seed %llu\n", r->workload, r->policy, (unsigned long long)r->seed);
	printf("seconds  hits%%   hot%%  cold%% fast-pg promote  demote  failed  faults    ptes thresh-ms scan-ms\n");
	for (i = 0; i < r->samples; i++) {
		const struct ts_sample *s = &r->sample[i];

		printf("%7.0f %6.1f %6.1f %6.1f %7u %7llu %7llu %7llu %7llu %7llu %9u %7u\n", s->t_s,
		       100 * s->hit, 100 * s->hot_fast, 100 * s->cold_fast, s->fast_pages,
		       (unsigned long long)s->delta.promotions,
		       (unsigned long long)s->delta.demotions,
		       (unsigned long long)s->delta.failed_promotions,
		       (unsigned long long)s->delta.hint_faults,
		       (unsigned long long)s->delta.ptes, s->threshold_ms, s->period_ms);
	}
}

void ts_print_head(void)
{
	printf("%-8s %-28s %5s %5s %5s %5s %5s %8s %8s %7s %7s %8s %5s %6s %11s\n", "workload",
	       "policy", "hits%", "last%", "best%", "hot%", "cold%", "promote", "demote", "wasted",
	       "twice", "faults", "t90_s", "ns", "hot/cold_ms");
}

void ts_print_result(const char *workload, const char *policy, const struct ts_totals *t)
{
	char t90[16] = "never";

	if (t->t90_s >= 0)
		snprintf(t90, sizeof(t90), "%.0f", t->t90_s);
	printf("%-8s %-28.28s %5.1f %5.1f %5.1f %5.1f %5.1f %8llu %8llu %7llu %7llu %8llu %5s %6.1f %5u/%-5u%s\n",
	       workload, policy, 100 * t->hit_mean, 100 * t->hit_final, 100 * t->oracle_hit,
	       100 * t->hot_final, 100 * t->cold_final,
	       (unsigned long long)t->count.promotions, (unsigned long long)t->count.demotions,
	       (unsigned long long)t->count.wasted_promotions,
	       (unsigned long long)t->ping_pong_pages, (unsigned long long)t->count.hint_faults,
	       t90, t->access_ns, t->hot_median_ms, t->cold_median_ms,
	       !t->hot_median_ms || t->histogram_valid ? "" : "!");
}

/* ---- JSON ---- */

static void add_real(struct json_object *o, const char *key, double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.6g", value);
	json_object_object_add(o, key, json_object_new_double_s(value, text));
}

static void add_count(struct json_object *o, const char *key, uint64_t value)
{
	json_object_object_add(o, key, json_object_new_int64((int64_t)value));
}

static void add_counts(struct json_object *o, const struct ts_counts *c)
{
	add_count(o, "accesses", c->accesses);
	add_count(o, "promotions", c->promotions);
	add_count(o, "demotions", c->demotions);
	add_count(o, "failed_promotions", c->failed_promotions);
	add_count(o, "wasted_promotions", c->wasted_promotions);
	add_count(o, "candidates", c->candidates);
	add_count(o, "hint_faults", c->hint_faults);
	add_count(o, "pte_updates", c->ptes);
}

static struct json_object *samples_json(const struct ts_result *r)
{
	struct json_object *list = json_object_new_array();
	uint32_t i;

	for (i = 0; i < r->samples; i++) {
		const struct ts_sample *s = &r->sample[i];
		struct json_object *o = json_object_new_object();

		add_real(o, "t_s", s->t_s);
		add_count(o, "phase", s->phase);
		add_real(o, "fast_hit_ratio", s->hit);
		add_real(o, "hot_fast_ratio", s->hot_fast);
		add_real(o, "cold_fast_ratio", s->cold_fast);
		add_count(o, "fast_pages", s->fast_pages);
		add_count(o, "threshold_ms", s->threshold_ms);
		add_count(o, "scan_period_ms", s->period_ms);
		add_counts(o, &s->delta);
		json_object_array_add(list, o);
	}
	return list;
}

struct json_object *ts_result_json(const struct ts_result *r)
{
	struct json_object *o = json_object_new_object(), *by = json_object_new_object();
	const struct ts_totals *t = &r->total;
	int d;

	json_object_object_add(o, "workload", json_object_new_string(r->workload));
	json_object_object_add(o, "policy", json_object_new_string(r->policy));
	add_count(o, "seed", r->seed);
	add_real(o, "fast_hit_ratio", t->hit_mean);
	add_real(o, "fast_hit_ratio_final", t->hit_final);
	add_real(o, "oracle_hit_ratio", t->oracle_hit);
	add_real(o, "hot_fast_ratio", t->hot_final);
	add_real(o, "cold_fast_ratio", t->cold_final);
	json_object_object_add(o, "t90_s", t->t90_s < 0 ? NULL : json_object_new_double(t->t90_s));
	add_real(o, "modelled_access_ns", t->access_ns);
	add_count(o, "ping_pong_pages", t->ping_pong_pages);
	add_count(o, "hot_median_ms", t->hot_median_ms);
	add_count(o, "cold_median_ms", t->cold_median_ms);
	json_object_object_add(o, "histogram_valid", json_object_new_boolean(t->histogram_valid));
	add_counts(o, &t->count);
	for (d = 0; d < TIER_NR_DECISIONS; d++)
		if (t->decisions[d] && decision_names[d])
			add_count(by, decision_names[d], t->decisions[d]);
	json_object_object_add(o, "decisions_faults", by);
	json_object_object_add(o, "samples", samples_json(r));
	return o;
}

/* ---- medians ---- */

#define MAX_RUNS 64

static int rising(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *x, int n)
{
	qsort(x, n, sizeof(*x), rising);
	return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

void ts_median(const struct ts_result *const *run, int runs, struct ts_totals *out)
{
	double x[MAX_RUNS];
	size_t c;
	int i;

#define TAKE(field) do {						\
		for (i = 0; i < runs; i++)				\
			x[i] = (double)run[i]->total.field;		\
		out->field = (__typeof__(out->field))median(x, runs);	\
	} while (0)
	memset(out, 0, sizeof(*out));
	/* never reached is later than any time */
	for (i = 0; i < runs; i++)
		x[i] = run[i]->total.t90_s < 0 ? INFINITY : run[i]->total.t90_s;
	out->t90_s = median(x, runs);
	if (!isfinite(out->t90_s))
		out->t90_s = -1.0;
	TAKE(hit_mean);
	TAKE(hit_final);
	TAKE(oracle_hit);
	TAKE(hot_final);
	TAKE(cold_final);
	TAKE(access_ns);
	TAKE(ping_pong_pages);
	TAKE(hot_median_ms);
	TAKE(cold_median_ms);
#undef TAKE
	out->histogram_valid = out->cold_median_ms && out->hot_median_ms * 10 <= out->cold_median_ms;
	for (c = 0; c < sizeof(out->count) / sizeof(uint64_t); c++) {
		for (i = 0; i < runs; i++)
			x[i] = (double)((const uint64_t *)&run[i]->total.count)[c];
		((uint64_t *)&out->count)[c] = (uint64_t)median(x, runs);
	}
}
