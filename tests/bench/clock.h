/* SPDX-License-Identifier: GPL-2.0 */
/* The clock that the load generators pace by. */
#ifndef TIER_BENCH_CLOCK_H
#define TIER_BENCH_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "tierload.h"

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * TL_NS_PER_S + t.tv_nsec;
}

static inline void sleep_until(uint64_t at_ns)
{
	struct timespec t = { .tv_sec = at_ns / TL_NS_PER_S, .tv_nsec = at_ns % TL_NS_PER_S };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

#endif
