/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the files of tiersim: the modelled machine and what decides on it. */
#ifndef TIERSIM_SIM_H
#define TIERSIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/types.h>

#include <tier/abi.h>
#include <tier/hist.h>

#include "../tierload_dist.h"

#define TS_TICK_MS 4		/* HZ=250: stamps and fault times have this grain */
#define TS_MAX_PROCS 2
#define TS_FAST_NID 0
#define TS_SLOW_NID 1
#define TS_HUGE_PAGES 512	/* base pages of a huge page */
#define TS_PAGES_PER_MIB 256

/* ---- options ---- */

struct ts_options {
	const char *workload;
	enum tl_kind kind;
	bool two;
	uint32_t pages;
	uint32_t hot_pages;
	uint32_t folio_pages;		/* 1, or TS_HUGE_PAGES */
	double hot_share;		/* 0..1 */
	double theta;
	double move_s;
	bool scatter;
	double rate;			/* accesses per second, all processes */
	double seconds;
	uint64_t seed;

	uint32_t fast_pages;		/* size of the fast node */
	uint32_t used_pages;		/* of it taken by others, for ever */
	bool place_fast;		/* the workload begins on the fast node, as far as it goes */
	double min_wmark_percent;	/* the other watermarks follow by the kernel's rule */
	double kswapd_pages_per_s;

	uint32_t scan_period_ms;	/* a new thread's period: the kernel's scan_delay_ms */
	uint32_t scan_min_ms, scan_max_ms;
	uint32_t scan_size_mib;
	double scan_pte_ns;		/* CPU time of looking at one PTE */
	double cpu_share;		/* CPUs that the accesses keep busy */
	uint32_t stamp_wrap_ms;		/* power of two */

	uint32_t hot_threshold_ms;	/* mode2's knobs */
	uint64_t rate_limit_mbps;

	double fast_ns, slow_ns, fault_ns, migrate_ns;
};

/* VM_READ, VM_WRITE, VM_MAYREAD, VM_MAYWRITE, VM_MAYEXEC: private anonymous memory. */
#define TS_VM_FLAGS 0x73

/* ---- what decides ---- */

struct ts_machine;

struct ts_decider {
	char label[64];
	/*
	 * Decide entries of one tick, which come in the order of the accesses;
	 * folio[i] is the page behind entry[i]. 0, or a negative errno that has
	 * been reported.
	 */
	int (*decide)(struct ts_decider *d, struct ts_machine *m,
		      struct tier_replay_entry *entry, const uint32_t *folio, uint32_t nr);
	/* *skip: leave the range unscanned; may be NULL. */
	int (*scan)(struct ts_decider *d, const struct tier_scan *scan, bool *skip);
	/* The scanner marked pages of a region; may be NULL. */
	int (*scanned)(struct ts_decider *d, const struct tier_region_key *key,
		       const struct tier_region *region);
	/* Hot threshold in force, 0 if there is none; may be NULL. */
	uint32_t (*threshold_ms)(struct ts_decider *d);
	void (*close)(struct ts_decider *d);
};

/* Mainline's memory tiering mode; also what a policy leaves to the kernel. */
struct ts_mode2 {
	uint32_t hot_threshold_ms, interval_ms;
	uint64_t limit_pages_per_s;
	uint32_t threshold_ms;		/* 0: unset */
	uint32_t adjust_start_ms, window_start_ms;
	uint64_t candidates, adjust_candidates, window_candidates;
};

void ts_mode2_init(struct ts_mode2 *s, const struct ts_options *opt);
enum tier_decision ts_mode2_decide(struct ts_mode2 *s, const struct tier_fault *f);

/* A decider by name: mode2, oracle. NULL when there is no such one. */
struct ts_decider *ts_builtin_open(const char *name, const struct ts_options *opt);

/*
 * A policy object's replay program: spec is NAME or FILE.bpf.o, with
 * ,parameter=value any number of times; sets are more of these, applied to
 * every object, each unknown one an error. NULL after an error message.
 */
struct ts_decider *ts_policy_open(const char *spec, char *const *sets,
				  const struct ts_options *opt);
void ts_decider_close(struct ts_decider *d);

/* ---- the machine ---- */

enum { TS_FAST = 1, TS_PROTNONE = 2, TS_YOUNG = 4 };

#define TS_MIN_NR_GENS 2
#define TS_MAX_NR_GENS 4

/* Generations of the fast node's pages, oldest at the tail of each list. */
struct ts_lru {
	uint32_t folio_pages;
	uint8_t *gen;			/* of a folio; lists catch up when reclaim meets it */
	int32_t *next, *prev;
	int32_t head[TS_MAX_NR_GENS], tail[TS_MAX_NR_GENS];
	uint64_t nr[TS_MAX_NR_GENS];	/* folios by gen[] */
	uint64_t min_seq, max_seq;
};

struct ts_kswapd {
	bool awake;
	int priority;
	uint64_t scanned;
	double budget;			/* demotions it may still make in this tick */
};

struct ts_proc {
	struct tl_dist dist;
	struct tl_cursor cursor;
	void *tables;
	double share;			/* of all accesses */
	double owed;			/* accesses that are due */
	uint32_t first_page, pages;
	uint32_t hot_ranks;		/* the rest is better left on the slow node */
	uint32_t best_ranks;		/* of the best placement that promotion can make */
	uint32_t *rank;			/* of a page, in this phase */
	double *weight;			/* of a rank, of all accesses */
	/* NUMA scanner */
	uint64_t runtime_ns, node_stamp_ns, next_scan_ms, retry_ms;
	uint32_t period_ms, scan_seq, placed_seq, offset;
	struct tier_region *region;
};

struct ts_counts {
	uint64_t accesses, hint_faults, ptes, promotions, demotions, failed_promotions;
	uint64_t wasted_promotions, candidates;		/* in pages */
};

struct ts_sample {
	double t_s;
	uint32_t phase;
	double hit, hot_fast, cold_fast;
	uint32_t fast_pages, threshold_ms, period_ms;
	struct ts_counts delta;
};

struct ts_totals {
	double hit_mean, hit_final, oracle_hit, t90_s, access_ns;
	double hot_final, cold_final;
	uint64_t ping_pong_pages;
	uint32_t hot_median_ms, cold_median_ms;
	bool histogram_valid;		/* hot median at most a tenth of cold's */
	double host_s;
	struct ts_counts count;
	uint64_t decisions[TIER_NR_DECISIONS];	/* faults */
};

struct ts_machine {
	const struct ts_options *opt;
	struct ts_decider *decider;
	struct ts_mode2 kernel;
	struct ts_proc proc[TS_MAX_PROCS];
	int procs;
	uint32_t folios, folio_pages;
	uint8_t *state;			/* TS_FAST, TS_PROTNONE, TS_YOUNG of a folio */
	uint32_t *stamp_ms;
	uint32_t *pfn;			/* of a folio, in units of folios */
	uint32_t *free_pfn;		/* stack of freed slow page frames */
	uint32_t free_pfns, next_fast_pfn;
	uint8_t *promoted;		/* times, 2 stands for more */
	struct ts_lru lru;
	struct ts_kswapd kswapd;
	int64_t free_pages, low_wmark, high_wmark, promo_wmark;
	uint32_t oracle_pages;		/* what a best placement may fill: to the low watermark */
	uint64_t t_ms;
	uint32_t phase;
	/* faults of this tick */
	struct tier_replay_entry *batch;
	uint32_t *batch_folio, batch_nr, batch_max;

	struct ts_counts count, last;
	struct tier_hist hot_hist, cold_hist;
	struct ts_sample *sample;
	uint32_t samples;
	struct ts_totals total;
};

static inline uint32_t ts_now_ms(const struct ts_machine *m)
{
	/* As after ten seconds of uptime: jiffies begin five minutes before their wrap. */
	return (uint32_t)(m->t_ms - 300000 + 10000);
}

/* Where a process' one area lies, and what tells the processes apart. */
#define TS_AREA_START 0x7f0000000000ull

static inline uint32_t ts_pid(const struct ts_machine *m, const struct ts_proc *p)
{
	return 1000 + (uint32_t)(p - m->proc);
}

static inline uint64_t ts_mm_id(const struct ts_machine *m, const struct ts_proc *p)
{
	return 0xffff888000000000ull + ((uint64_t)ts_pid(m, p) << 12);
}

static inline struct ts_proc *ts_proc_of(struct ts_machine *m, uint32_t folio)
{
	uint32_t page = folio * m->folio_pages;

	return &m->proc[m->procs > 1 && page >= m->proc[1].first_page];
}

/* Rank of the folio's first page within its process; *hot: it deserves fast memory. */
static inline uint32_t ts_rank_of(struct ts_machine *m, uint32_t folio, bool *hot)
{
	struct ts_proc *p = ts_proc_of(m, folio);
	uint32_t rank = p->rank[folio * m->folio_pages - p->first_page];

	*hot = rank < p->hot_ranks;
	return rank;
}

/* machine.c: one run; 0 or a negative errno that has been reported. */
int ts_run(struct ts_machine *m, const struct ts_options *opt, struct ts_decider *decider);
void ts_machine_free(struct ts_machine *m);

/* scan.c */
void ts_scan_init(struct ts_proc *p, const struct ts_options *opt);
int ts_scan_tick(struct ts_machine *m, struct ts_proc *p);
void ts_scan_promoted(struct ts_machine *m, struct ts_proc *p);

/* reclaim.c */
int ts_lru_init(struct ts_lru *lru, uint32_t folios, uint32_t folio_pages);
void ts_lru_free(struct ts_lru *lru);
void ts_lru_add(struct ts_lru *lru, uint32_t folio);
void ts_kswapd_wake(struct ts_machine *m);
void ts_kswapd_tick(struct ts_machine *m);
void ts_demote(struct ts_machine *m, uint32_t folio);	/* machine.c */

/* measure.c */
int ts_measure_init(struct ts_machine *m);
void ts_measure_phase(struct ts_machine *m);
void ts_measure_fault(struct ts_machine *m, uint32_t folio, uint32_t latency_ms);
void ts_measure_sample(struct ts_machine *m);
int ts_measure_finish(struct ts_machine *m);

/* report.c */
struct json_object;
struct ts_result {
	const char *workload;
	char policy[64];
	uint64_t seed;
	struct ts_totals total;
	struct ts_sample *sample;
	uint32_t samples;
};

void ts_print_samples(const struct ts_result *r);
void ts_print_head(void);
void ts_print_result(const char *workload, const char *policy, const struct ts_totals *t);
struct json_object *ts_result_json(const struct ts_result *r);
/* Medians of each figure over the runs. */
void ts_median(const struct ts_result *const *run, int runs, struct ts_totals *out);

/* goals.c: what the medians of one workload are judged by. */
struct ts_goals {
	int workloads, time_ratios, missed;
	double log_time_ratio;
};

void ts_goals_head(void);
void ts_goals_row(struct ts_goals *g, const char *workload, const char *policy,
		  const struct ts_totals *mode2, const struct ts_totals *t);
void ts_goals_end(const struct ts_goals *g, const char *policy);

#endif
