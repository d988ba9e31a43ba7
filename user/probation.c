// SPDX-License-Identifier: GPL-2.0
/*
 * swap --probation: four ways to fail. The module ejected the policy; what it
 * promotes does not arrive; it thrashes (pages come down about as fast as they go
 * up, and they did not before); or of what it moves far less stays up than of what
 * the old one moved. Ratios of few pages say nothing: below ENOUGH none is taken.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probation.h"

#define ENOUGH_PAGES	1000
#define STEP_MS		1000

struct moves {
	__u64 wanted, promoted, demoted;
	__u64 time_ns;
	bool known;		/* the observer is there */
};

static int read_moves(struct tierctl *t, struct moves *m)
{
	struct tier_stats *s;
	struct totals totals;
	int code = stats_read(t, &s);

	if (code)
		return code;
	stats_totals(s, &totals);
	m->wanted = totals.verdict_pages[TIER_VERDICT_PROMOTE];
	m->promoted = totals.moves[TIER_MV_PROMOTED];
	m->demoted = totals.moves[TIER_MV_DEMOTED];
	m->time_ns = s->time_ns;
	m->known = s->observer;
	tier_stats__free(s);
	return TIER_CLASS_OK;
}

static int remember(struct tierctl *t, struct probation_old *old)
{
	struct tier_status *s;
	int code = TIER_CLASS_OK;

	if (tier_status__read(t->ctx, &s))
		return failure_ctx(t);
	if (s->state != TIER_STATE_ACTIVE) {
		tier_status__free(s);
		return failure(t, TIER_CLASS_FAILED, "tierctl load POLICY puts one in force.",
			       "swap --probation: there is no policy in force to go back to");
	}
	snprintf(old->policy, sizeof(old->policy), "%s", s->policy);
	snprintf(old->object, sizeof(old->object), "%s",
		 *s->object && !access(s->object, R_OK) ? s->object : s->policy);
	for (unsigned int i = 0; i < s->nr_params && !code; i++) {
		char word[128];
		const char *words[] = { word };

		snprintf(word, sizeof(word), "%s=%llu", s->params[i].info.name, s->params[i].value);
		code = settings_parse(t, &old->params, "probation", words, 1);
	}
	tier_status__free(s);
	return code;
}

int probation_begin(struct tierctl *t, __u64 watch_ms, struct probation_old *old)
{
	struct moves a, b;
	double seconds;
	int code;

	memset(old, 0, sizeof(*old));
	code = remember(t, old);
	if (!code)
		code = read_moves(t, &a);
	if (code)
		return code;
	note(t, "watching %s for %.0f s, to have something to compare with", old->policy,
	     watch_ms / 1e3);
	sleep_until(now_ns() + watch_ms * 1000000);
	code = read_moves(t, &b);
	if (code)
		return code;
	seconds = (b.time_ns - a.time_ns) / 1e9;
	old->promoted_per_s = (b.promoted - a.promoted) / seconds;
	old->demoted_per_s = (b.demoted - a.demoted) / seconds;
	return TIER_CLASS_OK;
}

/* Of the pages that go up, the share that does not push another one down. */
static double kept(double promoted, double demoted)
{
	return promoted > demoted ? (promoted - demoted) / promoted : 0;
}

/* Fills in @why if what happened since @from is reason enough to go back. */
static void judge(const struct moves *from, const struct moves *now,
		  const struct probation_old *old, char *why, size_t size)
{
	__u64 wanted = now->wanted - from->wanted, promoted = now->promoted - from->promoted;
	__u64 demoted = now->demoted - from->demoted;
	double old_kept = kept(old->promoted_per_s, old->demoted_per_s);
	bool old_thrashed = old->demoted_per_s > old->promoted_per_s / 2;

	if (!now->known)
		return;
	if (wanted >= ENOUGH_PAGES && promoted * 10 < wanted)
		snprintf(why, size, "its promotions do not succeed: %llu pages wanted, %llu promoted",
			 wanted, promoted);
	else if (promoted >= ENOUGH_PAGES && demoted * 2 > promoted && !old_thrashed)
		snprintf(why, size, "it thrashes: %llu pages went up and %llu came down; %s had %.0f and "
			 "%.0f a second", promoted, demoted, old->policy, old->promoted_per_s,
			 old->demoted_per_s);
	else if (promoted >= ENOUGH_PAGES && old->promoted_per_s > 1 &&
		 kept(promoted, demoted) < old_kept / 2)
		snprintf(why, size, "of what it promotes %.0f %% is gain, %s had %.0f %%",
			 100 * kept(promoted, demoted), old->policy, 100 * old_kept);
}

static bool ejected(struct tierctl *t, char *why, size_t size)
{
	struct tier_status *s;
	bool out = false;

	if (tier_status__read(t->ctx, &s))
		return false;
	if (s->state == TIER_STATE_EJECTED) {
		snprintf(why, size, "the module ejected it (%s): %s", s->exit.kind, s->exit.message);
		out = true;
	}
	tier_status__free(s);
	return out;
}

int probation_watch(struct tierctl *t, __u64 window_ms, const struct probation_old *old,
		    char *why, size_t size, enum tier_class *class)
{
	__u64 end_ns = now_ns() + window_ms * 1000000, step_ns = now_ns();
	struct moves from, now;
	int code = read_moves(t, &from);

	why[0] = '\0';
	*class = TIER_CLASS_FAILED;
	while (!code && !*why && now_ns() < end_ns) {
		step_ns += STEP_MS * 1000000ULL;
		if (!sleep_until(step_ns < end_ns ? step_ns : end_ns))
			return TIER_CLASS_OK;
		if (ejected(t, why, size)) {
			*class = TIER_CLASS_EJECTED;
			break;
		}
		code = read_moves(t, &now);
		if (!code)
			judge(&from, &now, old, why, size);
	}
	if (code || !*why)
		return code;
	if (tier_swap(t->ctx, old->object, old->params.set, old->params.nr, 0, NULL))
		return failure_ctx(t);
	return TIER_CLASS_OK;
}

void probation_end(struct probation_old *old)
{
	settings_free(&old->params);
}
