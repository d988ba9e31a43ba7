/* SPDX-License-Identifier: GPL-2.0 */
/* A new policy on trial: watched for a while, and taken back if it does badly. */
#ifndef TIER_PROBATION_H
#define TIER_PROBATION_H

#include "emit.h"

/* What is needed to go back to the policy that is in force now. */
struct probation_old {
	char policy[TIER_NAME_LEN];
	char object[256];		/* path, or the name if the path is unknown */
	struct settings params;
	double promoted_per_s, demoted_per_s;
};

/* Remember the policy in force and watch it for @watch_ms. 0 or an exit code. */
int probation_begin(struct tierctl *t, __u64 watch_ms, struct probation_old *old);

/*
 * Watch the policy in force for @window_ms. Empty @why: it did well, or the watch
 * was interrupted. Otherwise the old one is back in force, and why. 0 or an exit
 * code: then going back failed and has been reported.
 */
int probation_watch(struct tierctl *t, __u64 window_ms, const struct probation_old *old,
		    char *why, size_t size, enum tier_class *class);

void probation_end(struct probation_old *old);

#endif /* TIER_PROBATION_H */
