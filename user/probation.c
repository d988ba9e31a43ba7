// SPDX-License-Identifier: GPL-2.0
/*
 * swap --probation: five ways to fail. The module ejected the policy; what it
 * promotes does not arrive; it thrashes (pages come down about as fast as they go
 * up, and they did not before); of what it moves far less stays up than of what
 * the old one moved; or it promotes next to nothing, though the faults go on and the
 * old one filled the fast nodes at a good rate. Ratios of few pages say nothing: below
 * ENOUGH none is taken.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "probation.h"

#define ENOUGH_PAGES	1000

const char *const trial_names[TRIAL_STATES] = {
	[TRIAL_RUNNING] = "running",
	[TRIAL_PASSED] = "passed",
	[TRIAL_FAILED] = "failed",
	[TRIAL_OVER] = "over",
};

static __u64 boottime_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* Negative errno, and the error in the context. */
static int read_moves(struct tierctl *t, struct moves *m)
{
	struct tier_stats *s;
	struct totals totals;
	int err = tier_stats__read(t->ctx, &s);

	if (err)
		return err;
	stats_totals(s, &totals);
	m->wanted = totals.verdict_pages[TIER_VERDICT_PROMOTE];
	m->promoted = totals.moves[TIER_MV_PROMOTED];
	m->demoted = totals.moves[TIER_MV_DEMOTED];
	m->faults = totals.faults_seen;
	m->time_ns = s->time_ns;
	m->known = s->observer;
	tier_stats__free(s);
	return 0;
}

static int remember(struct tierctl *t, struct probation *p)
{
	struct tier_status *s;
	int code;

	if (tier_status__read(t->ctx, &s))
		return failure_ctx(t);
	if (s->state == TIER_STATE_ACTIVE && !s->observer)
		code = failure(t, TIER_CLASS_FAILED, "Unload, and load without --no-observer; or swap "
			       "without --probation.", "swap --probation: no observer is loaded, so "
			       "what moves cannot be watched");
	else if (s->state == TIER_STATE_ACTIVE)
		code = saved_from_status(t, &p->old, s);
	else
		code = failure(t, TIER_CLASS_FAILED, "tierctl load POLICY puts one in force.",
			       "swap --probation: there is no policy in force to go back to");
	tier_status__free(s);
	return code;
}

int probation_begin(struct tierctl *t, __u64 watch_ms, struct probation *p)
{
	struct moves a, b;
	double seconds;
	int code;

	memset(p, 0, sizeof(*p));
	code = remember(t, p);
	if (code)
		return code;
	if (read_moves(t, &a))
		return failure_ctx(t);
	note(t, "watching %s for %.0f s, to have something to compare with", p->old.policy,
	     watch_ms / 1e3);
	if (!sleep_until(now_ns() + watch_ms * 1000000))
		return failure(t, TIER_CLASS_FAILED, "", "interrupted: nothing has changed");
	if (read_moves(t, &b))
		return failure_ctx(t);
	seconds = (b.time_ns - a.time_ns) / 1e9;
	p->promoted_per_s = (b.promoted - a.promoted) / seconds;
	p->demoted_per_s = (b.demoted - a.demoted) / seconds;
	p->faults_per_s = (b.faults - a.faults) / seconds;
	return TIER_CLASS_OK;
}

/* ---- the memo ---- */

static int write_memo(struct tierctl *t, const struct probation *p)
{
	struct json_object *doc = json_object_new_object();
	int err;

#define PUT(key, value) json_object_object_add(doc, key, value)
	PUT("policy", json_object_new_string(p->policy));
	PUT("map_id", json_object_new_uint64(p->map_id));
	PUT("old", saved_to_json(&p->old));
	PUT("promoted_per_s", json_object_new_double(p->promoted_per_s));
	PUT("demoted_per_s", json_object_new_double(p->demoted_per_s));
	PUT("faults_per_s", json_object_new_double(p->faults_per_s));
	PUT("faults", json_object_new_uint64(p->from.faults));
	PUT("time_ns", json_object_new_uint64(p->from.time_ns));
	PUT("wanted_pages", json_object_new_uint64(p->from.wanted));
	PUT("promoted_pages", json_object_new_uint64(p->from.promoted));
	PUT("demoted_pages", json_object_new_uint64(p->from.demoted));
	PUT("end_ns", json_object_new_uint64(p->end_ns));
	PUT("state", json_object_new_string(trial_names[p->state]));
	PUT("why", json_object_new_string(p->why));
#undef PUT
	err = tier_memo__write(t->ctx, TIER_MEMO_PROBATION,
			       json_object_to_json_string_ext(doc, JSON_C_TO_STRING_PRETTY));
	json_object_put(doc);
	return err;
}

static __u64 get_u64(struct json_object *doc, const char *key)
{
	struct json_object *field;

	return json_object_object_get_ex(doc, key, &field) ? json_object_get_uint64(field) : 0;
}

static double get_double(struct json_object *doc, const char *key)
{
	struct json_object *field;

	return json_object_object_get_ex(doc, key, &field) ? json_object_get_double(field) : 0;
}

static void get_text(struct json_object *doc, const char *key, char *text, size_t size)
{
	struct json_object *field;

	snprintf(text, size, "%s", json_object_object_get_ex(doc, key, &field) ?
		 json_object_get_string(field) : "");
}

bool probation_read(struct tierctl *t, struct probation *p)
{
	struct json_object *doc, *old;
	char *text, state[16];
	bool good;

	memset(p, 0, sizeof(*p));
	if (tier_memo__read(t->ctx, TIER_MEMO_PROBATION, &text))
		return false;
	doc = json_tokener_parse(text);
	free(text);
	good = doc && json_object_object_get_ex(doc, "old", &old) &&
	       !saved_from_json(t, &p->old, old, "probation");
	if (good) {
		get_text(doc, "policy", p->policy, sizeof(p->policy));
		get_text(doc, "why", p->why, sizeof(p->why));
		get_text(doc, "state", state, sizeof(state));
		p->map_id = get_u64(doc, "map_id");
		p->promoted_per_s = get_double(doc, "promoted_per_s");
		p->demoted_per_s = get_double(doc, "demoted_per_s");
		p->faults_per_s = get_double(doc, "faults_per_s");
		p->from.faults = get_u64(doc, "faults");
		p->from.time_ns = get_u64(doc, "time_ns");
		p->from.wanted = get_u64(doc, "wanted_pages");
		p->from.promoted = get_u64(doc, "promoted_pages");
		p->from.demoted = get_u64(doc, "demoted_pages");
		p->end_ns = get_u64(doc, "end_ns");
		for (p->state = TRIAL_RUNNING; p->state < TRIAL_OVER; p->state++)
			if (!strcmp(state, trial_names[p->state]))
				break;
	}
	json_object_put(doc);
	return good;
}

int probation_start(struct tierctl *t, __u64 window_ms, struct probation *p)
{
	struct tier_status *s;

	if (tier_status__read(t->ctx, &s))
		return failure_ctx(t);
	snprintf(p->policy, sizeof(p->policy), "%s", s->policy);
	p->map_id = s->map_id;
	tier_status__free(s);
	p->end_ns = boottime_ns() + window_ms * 1000000;
	if (read_moves(t, &p->from) || write_memo(t, p))
		return failure_ctx(t);
	return TIER_CLASS_OK;
}

/* ---- the verdict ---- */

/* Of the pages that go up, the share that does not push another one down. */
static double kept(double promoted, double demoted)
{
	return promoted > demoted ? (promoted - demoted) / promoted : 0;
}

/*
 * Next to nothing went up in all its time, while the old one, at its rate, would have
 * filled enough room. That rate is net: who stops what came down again does well. And
 * where the faults have ceased, there was nothing to promote.
 */
static bool idles(const struct probation *p, const struct moves *now)
{
	double seconds = (now->time_ns - p->from.time_ns) / 1e9;
	double gain = (p->promoted_per_s - p->demoted_per_s) * seconds;

	return gain >= ENOUGH_PAGES && (now->promoted - p->from.promoted) * 10 < gain &&
	       now->faults - p->from.faults >= p->faults_per_s * seconds / 2;
}

void probation_judge(struct probation *p, const struct moves *now, bool ended)
{
	__u64 wanted = now->wanted - p->from.wanted, promoted = now->promoted - p->from.promoted;
	__u64 demoted = now->demoted - p->from.demoted;
	double old_kept = kept(p->promoted_per_s, p->demoted_per_s);
	bool old_thrashed = p->demoted_per_s > p->promoted_per_s / 2;

	/* Reset meanwhile, or without the observer: nothing can be told. */
	if (!now->known || now->wanted < p->from.wanted || now->promoted < p->from.promoted ||
	    now->demoted < p->from.demoted || now->faults < p->from.faults)
		return;
	if (wanted >= ENOUGH_PAGES && promoted * 10 < wanted)
		snprintf(p->why, sizeof(p->why), "its promotions do not succeed: %llu pages wanted, "
			 "%llu promoted", wanted, promoted);
	else if (promoted >= ENOUGH_PAGES && demoted * 2 > promoted && !old_thrashed)
		snprintf(p->why, sizeof(p->why), "it thrashes: %llu pages went up and %llu came down; %s "
			 "had %.0f and %.0f a second", promoted, demoted, p->old.policy,
			 p->promoted_per_s, p->demoted_per_s);
	else if (promoted >= ENOUGH_PAGES && p->promoted_per_s > 1 &&
		 kept(promoted, demoted) < old_kept / 2)
		snprintf(p->why, sizeof(p->why), "of what it promotes %.0f %% is gain, %s had %.0f %%",
			 100 * kept(promoted, demoted), p->old.policy, 100 * old_kept);
	else if (ended && idles(p, now))
		snprintf(p->why, sizeof(p->why), "it promotes next to nothing: %llu pages went up in "
			 "%.0f s; %s had %.0f a second", promoted,
			 (now->time_ns - p->from.time_ns) / 1e9, p->old.policy, p->promoted_per_s);
}

void probation_check(struct tierctl *t, struct probation *p)
{
	struct tier_status *s;
	struct moves now;
	bool ended = boottime_ns() >= p->end_ns;

	if (p->state != TRIAL_RUNNING || tier_status__read(t->ctx, &s))
		return;
	if (s->map_id != p->map_id) {
		p->state = TRIAL_OVER;
	} else if (s->state == TIER_STATE_EJECTED) {
		snprintf(p->why, sizeof(p->why), "the module ejected it (%s): %s", s->exit.kind,
			 s->exit.message);
		p->ejected = true;
	}
	tier_status__free(s);
	if (p->state == TRIAL_RUNNING && !*p->why && !read_moves(t, &now))
		probation_judge(p, &now, ended);
	if (*p->why)
		p->state = TRIAL_FAILED;
	else if (p->state == TRIAL_RUNNING && ended)
		p->state = TRIAL_PASSED;
}

int probation_finish(struct tierctl *t, struct probation *p)
{
	if (p->state == TRIAL_FAILED &&
	    tier_swap(t->ctx, saved_source(&p->old), p->old.params.set, p->old.params.nr, 0, NULL))
		return failure_ctx(t);
	if (p->state == TRIAL_OVER || p->state == TRIAL_RUNNING)
		tier_memo__remove(t->ctx, TIER_MEMO_PROBATION);
	else if (write_memo(t, p))
		return failure_ctx(t);
	return TIER_CLASS_OK;
}

void probation_free(struct probation *p)
{
	saved_free(&p->old);
}
