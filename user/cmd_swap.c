// SPDX-License-Identifier: GPL-2.0
/* tierctl swap: replace the policy in force without a fault left undecided. */
#include "emit.h"
#include "probation.h"

enum { SET, DRY_RUN, PROBATION };

static const struct opt opts[] = {
	[SET] = { "set", 's', OPT_LIST, "NAME=VALUE", "start with this parameter value", 0, 0, NULL },
	[DRY_RUN] = { "dry-run", 'n', OPT_FLAG, NULL,
		"check everything, change nothing, list what would change", 0, 0, NULL },
	[PROBATION] = { "probation", 'p', OPT_DURATION, "TIME",
		"watch the new policy for TIME and go back if it does badly", 2000, 86400000, NULL },
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

static int swap_on_probation(struct tierctl *t, const char *policy, const struct settings *s,
			     __u64 window_ms)
{
	struct probation_old old;
	enum tier_class class;
	char why[256];
	int code;

	stop_on_signals();
	code = probation_begin(t, window_ms < COMPARE_MS ? window_ms : COMPARE_MS, &old);
	if (!code)
		code = swap(t, policy, s, false);
	if (!code)
		code = probation_watch(t, window_ms, &old, why, sizeof(why), &class);
	if (!code && *why)
		code = failure(t, class, "tierctl status shows what is in force.",
			       "%s is back in force: %s failed its probation: %s", old.policy, policy, why);
	else if (!code && stopping)
		note(t, "probation interrupted: %s stays in force", policy);
	probation_end(&old);
	return code;
}

static int run(struct tierctl *t, const struct args *args)
{
	bool dry_run = args->opt[DRY_RUN].given;
	struct settings s = { 0 };
	int code;

	code = settings_parse(t, &s, "--set", args->opt[SET].list, args->opt[SET].nr);
	if (!code && args->opt[PROBATION].given && !dry_run)
		code = swap_on_probation(t, args->words[0], &s, args->opt[PROBATION].number);
	else if (!code)
		code = swap(t, args->words[0], &s, dry_run);
	if (!code)
		code = show(t, dry_run ? view_changes : NULL);
	settings_free(&s);
	return code;
}

const struct command cmd_swap = {
	.name = "swap",
	.args = "POLICY|FILE.bpf.o",
	.group = "Change what is in force",
	.summary = "replace the policy in force by another, live",
	.doc = "Replaces the policy in force in one step: every fault is decided by the old or by the "
	"new policy. Counters and the state that policies share go on; parameters start from the "
	"new policy's defaults or --set.\n\n"
	"With --probation the old policy is watched for up to 10 s, then the new one for TIME. The "
	"old one comes back, with its parameters, if the module ejects the new one, if its promotions "
	"do not succeed, if it thrashes, or if far less of what it promotes is gain; exit code 1, or "
	"5 if it was ejected. Interrupted, the new one stays.",
	.examples = "  tierctl swap mru\n  tierctl swap ./policy_mine.bpf.o --probation 60s\n",
	.opts = opts,
	.min_words = 1,
	.max_words = 1,
	.words = WORDS_POLICY,
	.run = run,
};
