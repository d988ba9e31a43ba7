/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Access distributions of tierload: which page does access number n touch,
 * and how probable is each page. Pure code, no system call: unit tests link
 * it alone.
 *
 * A distribution is defined over *ranks*: rank 0 is the most accessed page,
 * and the probability of a rank never changes. Where a rank lives in memory is
 * a second question, answered by a permutation made from the seed, and, for a
 * hot set that moves, by the phase. So the monitor, which knows both, can say
 * what share of the accesses a placement serves without looking at a single
 * access.
 */
#ifndef TIERLOAD_DIST_H
#define TIERLOAD_DIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tl_kind {
	TL_HOTCOLD,	/* hot_share of the accesses on hot_pages, the rest on the others */
	TL_ZIPF,	/* rank r has a weight of 1 / (r + 1)^theta */
	TL_MOVING,	/* hotcold whose hot set is another one in each phase */
	TL_SCANMIX,	/* hotcold whose cold accesses walk in address order, again and again */
	TL_UNIFORM,	/* every page alike */
	TL_GUPS,	/* hotcold, read-modify-write of random words */
	TL_STREAM,	/* every page in address order, again and again */
};

/* What a distribution is made from. */
struct tl_shape {
	enum tl_kind kind;
	uint32_t pages;
	uint32_t hot_pages;	/* kinds with a hot set */
	uint32_t unit_pages;	/* pages that stay together when scattered: 1, or a huge page */
	double hot_share;	/* 0..1, kinds with a hot set */
	double theta;		/* TL_ZIPF */
	bool scatter;		/* false: ranks lie in address order from a seeded start */
	uint64_t seed;
};

struct tl_alias {
	uint32_t keep;		/* stay on this slot when the drawn 32 bits are below */
	uint32_t other;		/* else take this rank */
};

struct tl_dist {
	struct tl_shape shape;
	uint32_t units;
	uint64_t hot_below;	/* hot when a drawn 32 bit number is below it */
	uint32_t *unit_at;	/* unit of rank order -> unit of address order */
	struct tl_alias *alias;	/* TL_ZIPF only */
	double zipf_sum;
};

/* One thread's position in the access sequence. */
struct tl_cursor {
	uint64_t rng;
	uint32_t first, end;	/* this thread's part of the ranks walked in order */
	uint32_t next;
	uint64_t rounds;	/* completed walks */
};

/* Memory that tl_dist_init() needs; the caller decides on which node it lies. */
size_t tl_dist_bytes(const struct tl_shape *shape);

/* Returns NULL, or what is wrong with the shape. */
const char *tl_dist_init(struct tl_dist *dist, const struct tl_shape *shape, void *memory);

void tl_cursor_init(struct tl_cursor *cur, const struct tl_dist *dist,
		    unsigned int thread, unsigned int threads);

/* The next rank that this thread accesses. */
uint32_t tl_next_rank(const struct tl_dist *dist, struct tl_cursor *cur);

/* Where a rank lies in phase number @phase (0 for what does not move). */
uint32_t tl_page_of_rank(const struct tl_dist *dist, uint32_t rank, uint32_t phase);

/* Share of all accesses that go to this rank; sums to 1 over all ranks. */
double tl_rank_weight(const struct tl_dist *dist, uint32_t rank);

/* Number of ranks, from 0, that deserve fast memory when @fast_pages fit there. */
uint32_t tl_hot_ranks(const struct tl_dist *dist, uint32_t fast_pages);

bool tl_has_hot_set(enum tl_kind kind);
uint64_t tl_mix64(uint64_t x);

static inline uint64_t tl_random(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15ull;
	return tl_mix64(*state);
}

#endif
