/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared between BPF and user space: a bounded memory of pages seen once.
 *
 * A bucket of 64 bits holds two marks of 32: 20 bits of the page's hash, 12
 * bits of time in steps of 1024 ms (wraps after 70 minutes). A page belongs to
 * one bucket; a new mark takes the place of the older of the two. Another page
 * in the same bucket with the same 20 bits is taken for this one: a chance of
 * 2 in 2^20 for each page that is looked up. The includer brings __u32, __u64
 * and bool.
 */
#ifndef TIER_PAIR_H
#define TIER_PAIR_H

#define TIER_PAIR_STEP_SHIFT	10
#define TIER_PAIR_TIME_MASK	0xfffU
/* Oldest age that the 12 bits tell apart from a younger one, with a margin. */
#define TIER_PAIR_MAX_AGE_MS	(3600U * 1000)

/* Spreads page frame numbers, neighbours too, over all 64 bits. */
static inline __attribute__((always_inline)) __u64 tier_pair_hash(__u64 pfn)
{
	pfn = (pfn + 1) * 0x9e3779b97f4a7c15ULL;
	return pfn ^ pfn >> 29;
}

static inline __attribute__((always_inline)) __u32 tier_pair_mark(__u64 hash, __u32 now_ms)
{
	__u32 mark = (__u32)(hash >> 44) << 12 | (now_ms >> TIER_PAIR_STEP_SHIFT & TIER_PAIR_TIME_MASK);

	/* 0 is an empty place: such a mark is made a step older instead */
	return mark ? mark : TIER_PAIR_TIME_MASK;
}

static inline __attribute__((always_inline)) __u32 tier_pair_age_ms(__u32 mark, __u32 now_ms)
{
	return (((now_ms >> TIER_PAIR_STEP_SHIFT) - mark) & TIER_PAIR_TIME_MASK)
		<< TIER_PAIR_STEP_SHIFT;
}

/* Is this place the page's, and no older than max_age_ms (in steps of 1024 ms)? */
static inline __attribute__((always_inline)) bool
tier_pair_match(__u32 place, __u32 mark, __u32 now_ms, __u32 max_age_ms)
{
	return place && !((place ^ mark) >> 12) && tier_pair_age_ms(place, now_ms) <= max_age_ms;
}

static inline __attribute__((always_inline)) bool
tier_pair_has(__u64 bucket, __u64 hash, __u32 now_ms, __u32 max_age_ms)
{
	__u32 mark = tier_pair_mark(hash, now_ms);

	return tier_pair_match(bucket, mark, now_ms, max_age_ms) ||
	       tier_pair_match(bucket >> 32, mark, now_ms, max_age_ms);
}

/* The bucket without the page, whatever the age of its mark. */
static inline __attribute__((always_inline)) __u64 tier_pair_drop(__u64 bucket, __u64 hash)
{
	__u32 tag = hash >> 44;

	if ((__u32)bucket >> 12 == tag)
		bucket &= ~0xffffffffULL;
	if ((__u32)(bucket >> 32) >> 12 == tag)
		bucket &= 0xffffffffULL;
	return bucket;
}

/* The bucket with the page marked now; the older of two others has to go. */
static inline __attribute__((always_inline)) __u64
tier_pair_add(__u64 bucket, __u64 hash, __u32 now_ms)
{
	__u64 mark = tier_pair_mark(hash, now_ms);
	__u32 low, high;

	bucket = tier_pair_drop(bucket, hash);
	low = bucket;
	high = bucket >> 32;
	if (!low || (high && tier_pair_age_ms(low, now_ms) >= tier_pair_age_ms(high, now_ms)))
		return (bucket & ~0xffffffffULL) | mark;
	return (bucket & 0xffffffffULL) | mark << 32;
}

#endif /* TIER_PAIR_H */
