/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared between the workload programs and the simulator: numbers on the command
 * line. What does not fit ends the program with a message that begins with @what.
 */
#ifndef BENCH_PARSE_H
#define BENCH_PARSE_H

#include <argp.h>
#include <stdint.h>

/* A number within @min..@max; neither may be infinite. */
double parse_number(struct argp_state *state, const char *what, const char *arg, double min,
		    double max);

/* The same without a fraction: @max at most 2^53, where doubles are still exact. */
uint64_t parse_whole(struct argp_state *state, const char *what, const char *arg, double min,
		     double max);

#endif /* BENCH_PARSE_H */
