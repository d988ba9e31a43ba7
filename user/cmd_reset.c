// SPDX-License-Identifier: GPL-2.0
/* tierctl reset: counters from zero. */
#include "emit.h"

static int run(struct tierctl *t, const struct args *args)
{
	if (tier_reset(t->ctx))
		return failure_ctx(t);
	out_bool(t->out, "reset", true);
	return show(t, NULL);
}

const struct command cmd_reset = {
	.name = "reset",
	.group = "Change what is in force",
	.summary = "counters and shared thresholds begin anew",
	.doc = "All counters read as zero from now on, and the thresholds and windows that policies "
	"share begin anew, so that benchmarks start level. No fault is lost: the counters themselves "
	"go on, a reading is put aside and subtracted. For monitoring this is a counter reset, as "
	"after unload and load. What a policy keeps to itself begins anew when it is swapped for "
	"itself.",
	.examples = "  tierctl reset\n",
	.run = run,
};
