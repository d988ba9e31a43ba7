// SPDX-License-Identifier: GPL-2.0
/*
 * The daemon keeps what an operator put in force: it loads the policy again that
 * went without `tierctl unload` (pins removed, module taken out and put back), and
 * watches a policy on probation whose own tierctl has gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon.h"
#include "probation.h"
#include "sysinfo.h"

/* Parameters may be set at any time: they are looked at again so often. */
#define LOOK_NS		(10 * 1000000000ULL)
#define RETRY_NS	(30 * 1000000000ULL)
/* Whoever inserts the module may be about to load a policy: let them go first. */
#define ANEW_LOOKS	3
#define SYS_MODULE	16	/* bit of CAP_SYS_MODULE */

struct keeper {
	struct tierctl *t;
	struct tierctl look;		/* changes nothing, and does not wait for a lock */
	bool reattach;
	__u32 map_id;			/* of the policy that is remembered, 0: none */
	struct saved last;
	__u64 instance;			/* of the module it was in force with */
	unsigned int anew;		/* looks since the module was inserted anew */
	__u64 look_ns, retry_ns;	/* not before */
	bool failed;			/* said so already */
	int seat;			/* on probation, else -1 */
	struct probation trial;
	__u64 trial_ns;			/* its end is not tried again before */
	bool trial_failed;		/* said so already */
};

struct keeper *keeper__new(struct tierctl *t, bool reattach)
{
	const struct tier_ctx_opts opts = { .lock_timeout_ms = 20, .read_only = true };
	struct keeper *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->t = t;
	k->look = *t;
	k->look.ctx = tier_ctx__new(&opts);
	k->reattach = reattach;
	k->seat = -1;
	if (k->look.ctx)
		return k;
	free(k);
	return NULL;
}

static void leave_trial(struct keeper *k)
{
	if (k->seat < 0)
		return;
	close(k->seat);
	k->seat = -1;
	k->trial_ns = 0;
	k->trial_failed = false;
	probation_free(&k->trial);
}

void keeper__free(struct keeper *k)
{
	if (!k)
		return;
	leave_trial(k);
	saved_free(&k->last);
	tier_ctx__free(k->look.ctx);
	free(k);
}

static void remember(struct keeper *k, const struct tier_presence *presence)
{
	struct tier_status *s;

	if (presence->map_id == k->map_id && now_ns() < k->look_ns)
		return;
	if (tier_status__read(k->look.ctx, &s))
		return;
	saved_free(&k->last);
	k->map_id = 0;
	/* One that the module ejected is not worth having again. */
	if (s->state == TIER_STATE_ACTIVE && !saved_from_status(k->t, &k->last, s))
		k->map_id = s->map_id;
	tier_status__free(s);
	k->look_ns = now_ns() + LOOK_NS;
}

/* A service with few rights may swap, but neither insert the module nor set knobs. */
static bool may_load(void)
{
	__u64 rights = 0;
	char line[128];
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "CapEff:", 7))
			rights = strtoull(line + 7, NULL, 16);
	if (f)
		fclose(f);
	return rights >> SYS_MODULE & 1 && !access("/proc/sys/kernel/numa_balancing", W_OK);
}

static int write_memo(struct tierctl *t, const struct saved *saved)
{
	struct json_object *doc = saved_to_json(saved);
	int err = tier_memo__write(t->ctx, TIER_MEMO_REATTACH,
				   json_object_to_json_string_ext(doc, JSON_C_TO_STRING_PRETTY));

	json_object_put(doc);
	return err;
}

/* Whoever starts us anew has the rights: see `daemon --load-only` in the unit. */
static int hand_over(struct keeper *k)
{
	if (write_memo(k->t, &k->last))
		return failure_ctx(k->t);
	return failure(k->t, TIER_CLASS_FAILED, "The service manager restarts it, which loads the policy.",
		       "policy %s is to be loaded again, and this daemon has not the rights",
		       k->last.policy);
}

static int load_again(struct keeper *k, const char *why)
{
	__u64 now = now_ns();

	if (now < k->retry_ns)
		return TIER_CLASS_OK;
	k->retry_ns = now + RETRY_NS;
	if (!k->failed)
		note(k->t, "policy %s %s: loading it again", k->last.policy, why);
	if (!may_load())
		return hand_over(k);
	/* Its remains are put away by load itself. */
	if (!tier_load(k->t->ctx, saved_source(&k->last), k->last.params.set, k->last.params.nr,
		       k->last.no_observer ? TIER_NO_OBSERVER : 0, NULL)) {
		note(k->t, "policy %s is in force again", k->last.policy);
		k->failed = false;
		k->retry_ns = 0;
	} else if (tier_ctx__error(k->t->ctx)->err != -EEXIST && !k->failed) {
		note(k->t, "warning: %s; trying again every 30 s", tier_ctx__error(k->t->ctx)->message);
		k->failed = true;
	}
	return TIER_CLASS_OK;
}

/* True: it has ended. What could not be done is said once and tried again after a while. */
static bool finish_trial(struct keeper *k)
{
	const struct saved *old = &k->trial.old;

	if (k->trial.state != TRIAL_OVER && now_ns() < k->trial_ns)
		return false;
	k->trial_ns = now_ns() + RETRY_NS;
	/* The way back that failed: look quietly whether it is open by now. */
	if (k->trial_failed && k->trial.state == TRIAL_FAILED &&
	    tier_swap(k->t->ctx, saved_source(old), old->params.set, old->params.nr, TIER_DRY_RUN,
		      NULL))
		return false;
	if (!probation_finish(k->t, &k->trial))
		return true;
	if (!k->trial_failed)
		note(k->t, "warning: the probation of policy %s cannot be ended; trying again every "
		     "30 s", k->trial.policy);
	k->trial_failed = true;
	return false;
}

static void watch_trial(struct keeper *k)
{
	struct probation p;

	if (k->seat < 0) {
		if (!probation_read(&k->look, &p))
			return;
		if (p.state == TRIAL_RUNNING)
			k->seat = tier_seat__take(k->t->ctx, TIER_SEAT_PROBATION);
		if (k->seat < 0) {
			k->seat = -1;
			probation_free(&p);
			return;
		}
		k->trial = p;
		note(k->t, "watching policy %s on probation", p.policy);
	}
	probation_check(&k->look, &k->trial);
	if (k->trial.state == TRIAL_RUNNING)
		return;
	if (!finish_trial(k)) {
		/* Until then things may change: another policy be put in force, for one. */
		k->trial.state = TRIAL_RUNNING;
		k->trial.ejected = false;
		k->trial.why[0] = '\0';
		return;
	}
	if (k->trial.state == TRIAL_PASSED)
		note(k->t, "policy %s passed its probation", k->trial.policy);
	if (k->trial.state == TRIAL_FAILED)
		note(k->t, "%s is back in force: %s failed its probation: %s", k->trial.old.policy,
		     k->trial.policy, k->trial.why);
	leave_trial(k);
}

int keeper__tick(struct keeper *k)
{
	struct tier_presence presence;

	if (tier_presence__read(k->look.ctx, &presence))
		return TIER_CLASS_OK;
	if (presence.map_id) {
		k->instance = presence.module_instance;
		k->retry_ns = 0;
		k->failed = false;
		k->anew = 0;
		remember(k, &presence);
		watch_trial(k);
		return TIER_CLASS_OK;
	}
	leave_trial(k);
	if (!k->reattach || !k->map_id)
		return TIER_CLASS_OK;
	if (presence.lost)
		return load_again(k, "went without unload");
	if (!presence.module_instance || presence.module_instance == k->instance)
		k->anew = 0;
	else if (++k->anew >= ANEW_LOOKS)
		return load_again(k, "was in force before the module was inserted anew");
	return TIER_CLASS_OK;
}

bool keeper_take_over(struct tierctl *t, struct saved *saved)
{
	struct json_object *doc;
	bool good;
	char *text;

	if (tier_memo__read(t->ctx, TIER_MEMO_REATTACH, &text))
		return false;
	doc = json_tokener_parse(text);
	free(text);
	good = doc && !saved_from_json(t, saved, doc, "reattach");
	json_object_put(doc);
	if (!good)
		tier_memo__remove(t->ctx, TIER_MEMO_REATTACH);
	return good;
}

void keeper_taken_over(struct tierctl *t, const struct saved *saved, int code)
{
	if (code != TIER_CLASS_FAILED)
		tier_memo__remove(t->ctx, TIER_MEMO_REATTACH);
	/* A load that put away the remains of another took the memo with them. */
	else if (write_memo(t, saved))
		failure_ctx(t);
}
