// SPDX-License-Identifier: GPL-2.0
/* Numbers on the command line. */
#include <math.h>
#include <stdlib.h>

#include "parse.h"

double parse_number(struct argp_state *state, const char *what, const char *arg, double min,
		    double max)
{
	char *end;
	double x = strtod(arg, &end);

	/* The comparison is written so that NaN fails it. */
	if (end == arg || *end || !(x >= min && x <= max))
		argp_error(state, "%s: %s is not a number from %g to %g", what, arg, min, max);
	return x;
}

uint64_t parse_whole(struct argp_state *state, const char *what, const char *arg, double min,
		     double max)
{
	double x = parse_number(state, what, arg, min, max);

	if (x != floor(x))
		argp_error(state, "%s: %s is not a whole number", what, arg);
	return (uint64_t)x;
}
