/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared between BPF and user space: true latency of a page whose stamp wraps.
 *
 * A folio's scan stamp has few bits: with a wrap of 4096 ms a page that faults
 * 4106 ms after its scan looks 10 ms old. The observer keeps, per region of
 * address space, when the last scans ran; a page's stamp was made by one of
 * them. So the true latency is the smallest latency + k * wrap that falls into
 * a recorded scan, the newest scan tried first. The includer brings __u32.
 */
#ifndef TIER_WRAP_H
#define TIER_WRAP_H

#include <tier/abi.h>

/*
 * took_ms of a scan that has begun and not ended yet. A mark this old was left
 * by an observer that went away in the middle: it explains nothing.
 */
#define TIER_SCAN_RUNNING	0xffffffffU
#define TIER_SCAN_RUNNING_MAX_MS 10000U

/* Clock steps between stamp and record: a tick of a 100 Hz kernel on either side. */
#define TIER_WRAP_SLACK_MS	10U

/* Smallest latency + k * wrap that is at least floor; wrap is a power of two. */
static inline __attribute__((always_inline)) __u32
tier_wrap_raise(__u32 latency_ms, __u32 wrap_ms, __u32 floor_ms)
{
	if (floor_ms <= latency_ms)
		return latency_ms;
	return latency_ms + ((floor_ms - latency_ms + wrap_ms - 1) & -wrap_ms);
}

/*
 * region: the page's region or NULL when nothing is known of it (then the plain
 * latency is all there is). unit_ms is the stamp's resolution. A stamp that no
 * recorded scan explains was made before the oldest one: its page is older.
 */
static inline __attribute__((always_inline)) __u32
tier_wrap_latency(const struct tier_region *region, __u32 now_ms, __u32 latency_ms,
		  __u32 wrap_ms, __u32 unit_ms)
{
	__u32 slack = TIER_WRAP_SLACK_MS + unit_ms, oldest_ms = 0, nr;

	if (!region || !wrap_ms || !region->nr)
		return latency_ms;
	nr = region->nr;

	for (__u32 i = 0; i < TIER_REGION_SCANS; i++) {
		__u32 slot = (nr - 1 - i) & (TIER_REGION_SCANS - 1);
		__u32 took = region->took_ms[slot];
		__u32 ended = now_ms - region->scan_ms[slot];
		__u32 begun, floor, true_ms;

		if (i >= nr)
			break;
		/* recorded by another CPU after this fault took its time */
		if (ended > 0x7fffffffU)
			ended = 0;
		if (took == TIER_SCAN_RUNNING) {	/* scan_ms is its start */
			if (ended > TIER_SCAN_RUNNING_MAX_MS)
				continue;
			begun = ended;
			floor = 0;
		} else {
			begun = ended + took;
			floor = ended > slack ? ended - slack : 0;
		}
		true_ms = tier_wrap_raise(latency_ms, wrap_ms, floor);
		if (true_ms <= begun + slack)
			return true_ms;
		oldest_ms = begun;
	}
	return tier_wrap_raise(latency_ms, wrap_ms, oldest_ms + slack + 1);
}

#endif /* TIER_WRAP_H */
