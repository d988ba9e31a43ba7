/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A new policy on trial: watched for a while, and taken back if it does badly. What
 * it is judged by lies in the run directory, so that the daemon goes on with the
 * watch when the tierctl that began it has gone.
 */
#ifndef TIER_PROBATION_H
#define TIER_PROBATION_H

#include "emit.h"

/* What happened up to a moment, in pages. */
struct moves {
	__u64 wanted, promoted, demoted;
	__u64 faults;		/* hint faults that the policy was asked about */
	__u64 time_ns;		/* CLOCK_MONOTONIC */
	bool known;		/* the observer is there */
};

enum trial {
	TRIAL_RUNNING = 0,
	TRIAL_PASSED,
	TRIAL_FAILED,		/* why is filled in; the old policy is not back yet */
	TRIAL_OVER,		/* another policy is in force: nobody's business any more */
	TRIAL_STATES
};

struct probation {
	struct saved old;		/* to go back to */
	double promoted_per_s, demoted_per_s, faults_per_s;	/* of the old one */
	char policy[TIER_NAME_LEN];	/* the new one */
	__u32 map_id;			/* of the new one */
	struct moves from;		/* when it came into force */
	__u64 end_ns;			/* CLOCK_BOOTTIME */
	enum trial state;
	bool ejected;
	char why[256];
};

extern const char *const trial_names[TRIAL_STATES];

/* Remember the policy in force and watch it for @watch_ms. 0 or an exit code. */
int probation_begin(struct tierctl *t, __u64 watch_ms, struct probation *p);

/* The new one came into force: it has @window_ms. Writes the memo. 0 or an exit code. */
int probation_start(struct tierctl *t, __u64 window_ms, struct probation *p);

/* Look once; fills in state, ejected and why. What cannot be read is no verdict. */
void probation_check(struct tierctl *t, struct probation *p);

/*
 * Fills in why if what happened from p->from to @now is reason enough to go back. That
 * it did too little is said only when its time has @ended.
 */
void probation_judge(struct probation *p, const struct moves *now, bool ended);

/* The trial has ended: go back if it failed. The memo keeps the outcome. 0 or an exit code. */
int probation_finish(struct tierctl *t, struct probation *p);

/* The memo, of a trial that runs or has ended. False: there is none. */
bool probation_read(struct tierctl *t, struct probation *p);

void probation_free(struct probation *p);

#endif /* TIER_PROBATION_H */
