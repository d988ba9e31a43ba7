/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the files of tierload: resolved options, the control block between
 * the monitor and the workers, and what a run leaves behind.
 */
#ifndef TIERLOAD_H
#define TIERLOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tierload_dist.h"
#include "tierload_place.h"

#define TL_MAX_WORKERS 2
#define TL_MAX_THREADS 32
#define TL_NS_PER_S 1000000000ull
/* A backlog above this is dropped, not worked off: it would be another workload. */
#define TL_BACKLOG_NS TL_NS_PER_S
/* Above this share of late batches the pacing did not hold. */
#define TL_SLIP_LIMIT 0.05

enum tl_place { TL_PLACE_SLOW, TL_PLACE_FAST, TL_PLACE_DEFAULT };

struct tl_options {
	const char *workload;
	enum tl_kind kind;
	bool two;		/* a streaming process, and then a hotcold one */
	bool touch;		/* a walk over all pages, counted in rounds */
	uint32_t pages;		/* of all workers together */
	uint32_t hot_pages;
	uint32_t unit_pages;
	double hot_percent;	/* size of the hot set, % of all pages; < 0: not given */
	double hot_share;	/* 0..1 */
	double stream_share;	/* 0..1, two: of all accesses */
	double theta;
	double rate;		/* accesses per second of all threads; 0: as fast as it goes */
	double seconds;
	double move_s;
	double late_ms;		/* a batch that starts later than this has slipped */
	double write_share;	/* 0..1 */
	uint64_t rounds;	/* touch: 0 is until stopped */
	uint64_t seed;
	unsigned int threads;	/* per worker process */
	unsigned int report_ms;
	enum tl_place place;
	bool scatter, thp, pin, spin, quiet, page_map;
	double fast_mb_available;	/* < 0: ask the kernel */
	double fast_ns, slow_ns, migrate_ns, fault_ns;
	const char *json, *ready_file, *wait_file;
};

/* Written by one thread alone, read by the monitor: a cache line each. */
struct tl_thread_slot {
	_Alignas(64) _Atomic uint64_t accesses;
	_Atomic uint64_t batches;
	_Atomic uint64_t late_batches;
	_Atomic uint64_t dropped_ns;
	_Atomic uint64_t rounds;
	_Atomic bool done;
};

struct tl_control {
	_Atomic bool go, stop, leave;
	_Atomic uint32_t ready;		/* workers whose memory is in place */
	_Atomic uint32_t phase;		/* of a moving hot set */
	_Atomic uint64_t start_ns;	/* CLOCK_MONOTONIC: deadline of the first batch */
	char *_Atomic area[TL_MAX_WORKERS];	/* address in the worker */
	struct tl_thread_slot slot[TL_MAX_WORKERS][TL_MAX_THREADS];
};

/* One process that makes accesses. */
struct tl_worker {
	struct tl_dist dist;
	double share;		/* of all accesses */
	double rate;		/* accesses per second of this process; 0: unpaced */
	char *area;		/* address in the worker process */
	/* kvload: the pages by rank, and their shares of the accesses; NULL: as dist says */
	const void **address;
	double *page_weight;
	pid_t pid;
	unsigned int index;
};

/* Process of one worker: places its memory, waits for go, makes the accesses. */
int tl_worker_main(const struct tl_options *opt, struct tl_worker *worker,
		   struct tl_control *ctl, const struct tl_nodes *nodes);

/* One look at everything, taken at the end of each report interval. */
struct tl_sample {
	double t_s;
	uint32_t phase;
	double hit;			/* 0..1: share of accesses that fast memory serves */
	double hot_fast, cold_fast;	/* 0..1: share of those pages on fast nodes */
	uint32_t fast_pages;
	uint64_t accesses;		/* from here on: in this interval */
	double slip;
	struct tl_counters delta;
};

struct tl_move {
	double t_s;		/* when the hot set moved; 0 for the start */
	double t90_s;		/* seconds after it; < 0: not within its phase */
	double final_hit;
};

struct tl_totals {
	double seconds;
	uint64_t accesses;
	double hit_mean, hit_final, oracle_hit;
	double t90_s, t90_oracle_s;		/* < 0: not reached */
	double memory_ns, access_ns;
	double slip;
	uint64_t dropped_ns, rounds;
	struct tl_counters delta;
	uint64_t seen_promotions, seen_demotions, wasted_promotions, ping_pong_pages;
	uint64_t huge_start_bytes, huge_end_bytes;
};

struct tl_run {
	const struct tl_options *opt;
	const struct tl_nodes *nodes;
	struct tl_worker *worker;
	int workers;
	struct tl_control *ctl;
	uint32_t fast_capacity_pages;
	uint32_t hot_ranks[TL_MAX_WORKERS];
	double *weight[TL_MAX_WORKERS];		/* of a rank, of all accesses */
	uint8_t *node[TL_MAX_WORKERS];		/* of a page, at the last look */
	uint8_t *promoted[TL_MAX_WORKERS];	/* times, 2 stands for more */
	struct tl_counters first, last;
	uint64_t last_accesses, last_batches, last_late;
	struct tl_sample *sample;
	uint32_t samples, samples_max;
	struct tl_move *move;
	uint32_t moves;
	struct tl_totals total;
};

/* tierload_opts.c: fills in every default; ends the program on bad usage (exit 2). */
void tl_parse_options(struct tl_options *opt, int argc, char **argv);

/* tierload_measure.c: 0 or a negative errno with a message. */
int tl_measure_init(struct tl_run *run, double t_s);
int tl_measure(struct tl_run *run, double t_s);
int tl_measure_finish(struct tl_run *run);
void tl_measure_free(struct tl_run *run);

/* tierload_report.c */
void tl_print_start(const struct tl_run *run);
void tl_print_sample(const struct tl_run *run, const struct tl_sample *s);
void tl_print_totals(const struct tl_run *run);
int tl_write_json(const struct tl_run *run);

#endif
