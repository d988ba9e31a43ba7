// SPDX-License-Identifier: GPL-2.0
/* tierctl swap: replace the policy in force without a fault left undecided. */
#include <errno.h>
#include <unistd.h>

#include "probation.h"

enum { SET, DRY_RUN, PROBATION, BACKGROUND };

static const struct opt opts[] = {
	[SET] = { "set", 's', OPT_LIST, "NAME=VALUE", "start with this parameter value", 0, 0, NULL },
	[DRY_RUN] = { "dry-run", 'n', OPT_FLAG, NULL,
		"check everything, change nothing, list what would change", 0, 0, NULL },
	[PROBATION] = { "probation", 'p', OPT_DURATION, "TIME",
		"watch the new policy for TIME and go back if it does badly", 2000, 86400000, NULL },
	[BACKGROUND] = { "background", 'b', OPT_FLAG, NULL,
		"with --probation: leave the watch to the daemon", 0, 0, NULL },
	{ 0 },
};

/* The old policy is watched first, no longer than this. */
#define COMPARE_MS	10000

static int swap(struct tierctl *t, const char *policy, const struct settings *s, bool dry_run)
{
	struct tier_changes changes = { 0 };

	if (tier_swap(t->ctx, policy, s->set, s->nr, dry_run ? TIER_DRY_RUN : 0, &changes))
		return failure_ctx(t);
	out_str(t->out, "policy", policy);
	out_bool(t->out, "dry_run", dry_run);
	emit_changes(t->out, &changes);
	return TIER_CLASS_OK;
}

/* Once a second until there is a verdict or someone wants us to stop. */
static int watch(struct tierctl *t, struct probation *p)
{
	int code;

	while (p->state == TRIAL_RUNNING && sleep_until(now_ns() + 1000000000ULL))
		probation_check(t, p);
	if (p->state == TRIAL_RUNNING)
		note(t, "probation interrupted: %s stays in force", p->policy);
	if (p->state == TRIAL_OVER)
		note(t, "probation over: %s is not in force any more", p->policy);
	code = probation_finish(t, p);
	if (!code && p->state == TRIAL_FAILED)
		code = failure(t, p->ejected ? TIER_CLASS_EJECTED : TIER_CLASS_FAILED,
			       "tierctl status shows what is in force.",
			       "%s is back in force: %s failed its probation: %s", p->old.policy,
			       p->policy, p->why);
	return code;
}

static int take_seat(struct tierctl *t, bool background)
{
	int seat = tier_seat__take(t->ctx, TIER_SEAT_PROBATION);

	if (seat == -EBUSY)
		failure(t, TIER_CLASS_FAILED, "tierctl status shows it; wait for it to end.",
			"swap --probation: another policy is on probation");
	else if (seat < 0)
		failure_ctx(t);
	else if (background && !tier_seat__taken(t->ctx, TIER_SEAT_DAEMON)) {
		close(seat);
		seat = -ESRCH;
		failure(t, TIER_CLASS_FAILED, "Start it (systemctl start tierctl), or leave out "
			"--background.", "swap --background: there is no daemon to watch the policy");
	}
	return seat;
}

/* In force, but nobody could watch it: what was asked for is not to be had. */
static void go_back(struct tierctl *t, const char *policy, const struct saved *old)
{
	if (tier_swap(t->ctx, saved_source(old), old->params.set, old->params.nr, 0, NULL))
		fprintf(stderr, "tierctl: warning: %s is in force and nobody watches it; going back to "
			"%s: %s\n", policy, old->policy, tier_ctx__error(t->ctx)->message);
	else
		note(t, "%s is back in force: %s could not be watched", old->policy, policy);
}

static int swap_on_probation(struct tierctl *t, const char *policy, const struct settings *s,
			     __u64 window_ms, bool background)
{
	int seat = take_seat(t, background), code;
	struct probation p;

	if (seat < 0)
		return seat == -EPERM || seat == -EACCES ? TIER_CLASS_PERMISSION : TIER_CLASS_FAILED;
	stop_on_signals();
	code = probation_begin(t, window_ms < COMPARE_MS ? window_ms : COMPARE_MS, &p);
	if (!code)
		code = swap(t, policy, s, false);
	if (!code) {
		code = probation_start(t, window_ms, &p);
		if (code)
			go_back(t, policy, &p.old);
		else if (!background)
			code = watch(t, &p);
	}
	close(seat);
	probation_free(&p);
	return code;
}

static int run(struct tierctl *t, const struct args *args)
{
	bool dry_run = args->opt[DRY_RUN].given;
	const char *policy = args->words[0];
	struct settings s = { 0 };
	struct saved saved = { 0 };
	int code;

	if (args->opt[BACKGROUND].given && !args->opt[PROBATION].given)
		return failure(t, TIER_CLASS_USAGE, "Add --probation TIME.",
			       "--background needs --probation");
	code = settings_parse(t, &s, "--set", args->opt[SET].list, args->opt[SET].nr);
	if (!code && is_saved_status(policy)) {
		code = saved_read(t, &saved, policy, &s);
		policy = saved_source(&saved);
	}
	if (!code && args->opt[PROBATION].given && !dry_run)
		code = swap_on_probation(t, policy, &s, args->opt[PROBATION].number,
					 args->opt[BACKGROUND].given);
	else if (!code)
		code = swap(t, policy, &s, dry_run);
	if (!code)
		code = show(t, dry_run ? view_changes : NULL);
	saved_free(&saved);
	settings_free(&s);
	return code;
}

const struct command cmd_swap = {
	.name = "swap",
	.args = "POLICY|FILE.bpf.o|STATUS.json",
	.group = "Change what is in force",
	.summary = "replace the policy in force by another, live",
	.doc = "Replaces the policy in force in one step: every fault is decided by the old or by the "
	"new policy. Counters and the state that policies share go on; parameters start from the "
	"new policy's defaults or --set.\n\n"
	"With --probation the old policy is watched for up to 10 s, then the new one for TIME. The "
	"old one comes back, with its parameters, if the module ejects the new one, if its promotions "
	"do not succeed, if it thrashes, if far less of what it promotes is gain, or if at the end of "
	"TIME it has promoted next to nothing where the old one had filled much room and the faults "
	"have gone on; exit code 1, or 5 if it was ejected. All this is told from what the observer "
	"counts: without one ('load --no-observer') there is no probation. Interrupted (Ctrl-C), the new one stays. If the tierctl that watches is "
	"killed, or with --background from the start, the daemon watches and goes back; 'tierctl "
	"status' shows the state of the probation and why it failed.",
	.examples =
	"  tierctl swap mru\n"
	"  tierctl swap ./policy_mine.bpf.o --probation 60s\n"
	"  tierctl swap rank --probation 10min --background\n",
	.opts = opts,
	.min_words = 1,
	.max_words = 1,
	.words = WORDS_POLICY,
	.run = run,
};
