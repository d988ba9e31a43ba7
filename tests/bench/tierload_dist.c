// SPDX-License-Identifier: GPL-2.0
/* Access distributions of tierload; tierload_dist.h has the idea. */
#include "tierload_dist.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Finalizer with full avalanche: neighbouring seeds give unrelated sequences. */
uint64_t tl_mix64(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

bool tl_has_hot_set(enum tl_kind kind)
{
	return kind == TL_HOTCOLD || kind == TL_MOVING || kind == TL_SCANMIX || kind == TL_GUPS;
}

/* Uniform in 0..n-1 from 32 random bits, without a division. */
static uint32_t below(uint32_t random32, uint32_t n)
{
	return (uint32_t)(((uint64_t)random32 * n) >> 32);
}

size_t tl_dist_bytes(const struct tl_shape *shape)
{
	size_t bytes = (size_t)shape->pages * sizeof(uint32_t);

	if (shape->kind == TL_ZIPF)
		bytes += (size_t)shape->pages * sizeof(struct tl_alias);
	return bytes;
}

static const char *check(const struct tl_shape *s)
{
	if (!s->pages)
		return "no pages";
	if (!s->unit_pages || s->pages % s->unit_pages)
		return "the number of pages is not a multiple of the scatter unit";
	if (s->kind == TL_ZIPF && !(s->theta > 0.0 && s->theta < 10.0))
		return "theta must lie between 0 and 10";
	if (!tl_has_hot_set(s->kind))
		return NULL;
	if (!s->hot_pages || s->hot_pages >= s->pages)
		return "the hot set must have at least one page and leave at least one cold page";
	if (!(s->hot_share > 0.0 && s->hot_share < 1.0))
		return "the hot share must lie between 0 and 100 percent, both excluded";
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void make_order(struct tl_dist *d)
{
	const struct tl_shape *s = &d->shape;
	uint64_t rng = tl_mix64(s->seed ^ 0x7065726d75746174ull);
	uint32_t i, start;

	for (i = 0; i < d->units; i++)
		d->unit_at[i] = i;
	if (s->kind == TL_STREAM)
		return;
	if (!s->scatter) {
		start = below(tl_random(&rng) >> 32, d->units);
		for (i = 0; i < d->units; i++)
			d->unit_at[i] = (start + i) % d->units;
		return;
	}
	for (i = d->units - 1; i > 0; i--) {
		uint32_t j = below(tl_random(&rng) >> 32, i + 1);
		uint32_t t = d->unit_at[i];

		d->unit_at[i] = d->unit_at[j];
		d->unit_at[j] = t;
	}
	if (s->kind == TL_SCANMIX) {
		/* A scan goes through memory in address order. */
		uint32_t hot_units = (s->hot_pages + s->unit_pages - 1) / s->unit_pages;

		qsort(d->unit_at + hot_units, d->units - hot_units, sizeof(*d->unit_at),
		      by_value);
	}
}

/*
 * Alias table: an exact draw from any distribution with one multiplication and
 * one comparison. The usual closed-form approximation of Zipf needs pow() for
 * each access, which an emulated CPU does in software.
 */
static const char *make_alias(struct tl_dist *d)
{
	uint32_t n = d->shape.pages, small = 0, large = 0, i;
	double *scaled = malloc(n * sizeof(*scaled));
	uint32_t *todo = malloc(n * sizeof(*todo));	/* small ones from below, large from above */

	if (!scaled || !todo) {
		free(scaled);
		free(todo);
		return "out of memory for the alias table";
	}
	for (i = 0; i < n; i++) {
		scaled[i] = tl_rank_weight(d, i) * n;
		if (scaled[i] < 1.0)
			todo[small++] = i;
		else
			todo[n - ++large] = i;
	}
	while (small && large) {
		uint32_t lo = todo[--small], hi = todo[n - large];

		d->alias[lo].keep = (uint32_t)(scaled[lo] * 4294967295.0);
		d->alias[lo].other = hi;
		scaled[hi] -= 1.0 - scaled[lo];
		if (scaled[hi] < 1.0) {
			large--;
			todo[small++] = hi;
		}
	}
	/* What is left is 1 but for rounding: always stay. */
	while (small) {
		i = todo[--small];
		d->alias[i] = (struct tl_alias){ .keep = UINT32_MAX, .other = i };
	}
	for (; large; large--) {
		i = todo[n - large];
		d->alias[i] = (struct tl_alias){ .keep = UINT32_MAX, .other = i };
	}
	free(scaled);
	free(todo);
	return NULL;
}

const char *tl_dist_init(struct tl_dist *d, const struct tl_shape *shape, void *memory)
{
	const char *wrong = check(shape);
	uint32_t i;

	if (wrong)
		return wrong;
	memset(d, 0, sizeof(*d));
	d->shape = *shape;
	d->units = shape->pages / shape->unit_pages;
	d->hot_below = (uint64_t)(shape->hot_share * 4294967296.0);
	d->unit_at = memory;
	make_order(d);
	if (shape->kind != TL_ZIPF)
		return NULL;
	/* Smallest first: the sum loses least. */
	for (i = shape->pages; i > 0; i--)
		d->zipf_sum += pow(i, -shape->theta);
	d->alias = (struct tl_alias *)(d->unit_at + shape->pages);
	return make_alias(d);
}

void tl_cursor_init(struct tl_cursor *cur, const struct tl_dist *d,
		    unsigned int thread, unsigned int threads)
{
	uint32_t from = d->shape.kind == TL_SCANMIX ? d->shape.hot_pages : 0;
	uint64_t length = d->shape.pages - from;

	memset(cur, 0, sizeof(*cur));
	cur->rng = tl_mix64(d->shape.seed + 0x9e3779b97f4a7c15ull * (thread + 1));
	cur->first = from + (uint32_t)(length * thread / threads);
	cur->end = from + (uint32_t)(length * (thread + 1) / threads);
	cur->next = cur->first;
}

static uint32_t walk(struct tl_cursor *cur)
{
	uint32_t rank = cur->next++;

	if (cur->next >= cur->end) {
		cur->next = cur->first;
		cur->rounds++;
	}
	return rank;
}

uint32_t tl_next_rank(const struct tl_dist *d, struct tl_cursor *cur)
{
	const struct tl_shape *s = &d->shape;
	uint64_t random = s->kind == TL_STREAM ? 0 : tl_random(&cur->rng);
	uint32_t high = random >> 32, low = (uint32_t)random, slot;

	switch (s->kind) {
	case TL_HOTCOLD:
	case TL_MOVING:
	case TL_GUPS:
		if (low < d->hot_below)
			return below(high, s->hot_pages);
		return s->hot_pages + below(high, s->pages - s->hot_pages);
	case TL_SCANMIX:
		/* More threads than cold pages: a thread may have nothing to walk. */
		if (low < d->hot_below || cur->first == cur->end)
			return below(high, s->hot_pages);
		return walk(cur);
	case TL_ZIPF:
		slot = below(high, s->pages);
		return low <= d->alias[slot].keep ? slot : d->alias[slot].other;
	case TL_STREAM:
		return walk(cur);
	case TL_UNIFORM:
		break;
	}
	return below(high, s->pages);
}

uint32_t tl_page_of_rank(const struct tl_dist *d, uint32_t rank, uint32_t phase)
{
	const struct tl_shape *s = &d->shape;

	if (s->kind == TL_MOVING)
		rank = (uint32_t)((rank + (uint64_t)phase * s->hot_pages) % s->pages);
	if (s->unit_pages == 1)
		return d->unit_at[rank];
	return d->unit_at[rank / s->unit_pages] * s->unit_pages + rank % s->unit_pages;
}

double tl_rank_weight(const struct tl_dist *d, uint32_t rank)
{
	const struct tl_shape *s = &d->shape;

	if (s->kind == TL_ZIPF)
		return pow(rank + 1.0, -s->theta) / d->zipf_sum;
	if (!tl_has_hot_set(s->kind))
		return 1.0 / s->pages;
	if (rank < s->hot_pages)
		return s->hot_share / s->hot_pages;
	return (1.0 - s->hot_share) / (s->pages - s->hot_pages);
}

uint32_t tl_hot_ranks(const struct tl_dist *d, uint32_t fast_pages)
{
	const struct tl_shape *s = &d->shape;

	if (tl_has_hot_set(s->kind))
		return s->hot_pages;
	if (s->kind == TL_ZIPF)
		return fast_pages < s->pages ? fast_pages : s->pages;
	return 0;
}
