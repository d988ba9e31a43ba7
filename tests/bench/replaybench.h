/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Between the native benches only: a policy object in this machine's kernel, sized as
 * libtier sizes it for a machine that need not be this one, and streams of made-up
 * faults through its replay program.
 */
#ifndef REPLAYBENCH_H
#define REPLAYBENCH_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "libtier/internal.h"

#define RB_FAULTS	4096U		/* one call of the replay program */

/* A machine whose pages are accessed at random: hot ones every 40 ms, cold ones every 8 s. */
struct rb_stream {
	uint64_t pages;			/* on the slow tier, all processes together */
	uint32_t processes;
	uint32_t nodes;			/* the lower half is the top tier; at least 2 */
	uint32_t hot_percent;		/* of the faults */
	uint32_t faults_per_ms;
	/* a process faults within so many pages at a time, those scanned lately; 0: in all */
	uint64_t window_pages;
	/* promoted pages that may be up, and fault no more; 0: promotions change nothing */
	uint32_t room_pages;
	/* state */
	uint64_t seed;
	uint32_t now_ms;
	uint32_t call;
	uint32_t tick;
	uint8_t *up;			/* by page, modulo */
	uint32_t *order;		/* of promotion: the oldest come down again */
	uint32_t oldest, nr_up;
};

/* A number on the command line. Ends the program with a message if it is none in range. */
unsigned int rb_number(struct argp_state *state, const char *arg, unsigned int min,
		       unsigned int max);

struct rb_policy {
	struct tier_object object;
	struct tier_env env;
	struct bpf_program *replay;
	struct tier_replay_entry *entry;	/* the replay map's memory */
	struct rb_stream stream;
	char label[96];
	uint64_t faults, promoted;		/* since rb_open() */
};

/*
 * @spec: a policy, with parameters after commas ("fixed,rate_limit_mbps=1"), or one of the
 * programs to compare with, "empty" and "lookup" (empty.bpf.c, lookup.bpf.c).
 * Reports its errors; NULL on failure. The machine is as the stream says, of @env only
 * memory_bytes and stamp_wrap_ms are taken.
 */
struct rb_policy *rb_open(struct tier_ctx *ctx, const char *spec, const struct rb_stream *stream,
			  uint64_t memory_bytes, uint32_t stamp_wrap_ms);
void rb_close(struct rb_policy *p);

/*
 * @calls calls with fresh faults; ns a fault, or a negative number after a message. A call
 * in which the thread lost its CPU is taken again.
 */
double rb_sample(struct rb_policy *p, unsigned int calls);

/* Run the first nr of the faults in p->entry; ns of all, negative after a message. */
int64_t rb_replay(struct rb_policy *p, unsigned int nr);

/* Where a page of the stream lies: its process and address. */
void rb_locate(const struct rb_stream *s, uint64_t page, struct tier_fault *f);

/*
 * Kernel memory of an object's maps, by their fdinfo, without those of the replay and
 * those that @but (may be NULL) has under the same name. Adds to @per_cpu_bytes what of
 * it there is once a CPU, for one of them.
 */
uint64_t rb_map_bytes(const struct bpf_object *obj, const struct bpf_object *but,
		      uint64_t *per_cpu_bytes);

/* Say what is wrong and how to mend it, if this machine cannot run BPF programs for us. */
bool rb_usable(struct tier_ctx *ctx);
/* Keep the clock and the caches of one CPU. */
void rb_settle(void);

struct rb_spread {
	double min, median, max;
};
struct rb_spread rb_spread(double *values, unsigned int nr);

#endif /* REPLAYBENCH_H */
