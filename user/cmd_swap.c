// SPDX-License-Identifier: GPL-2.0
/* tierctl swap: replace the policy in force without a fault left undecided. */
#include "emit.h"

enum { SET, DRY_RUN };

static const struct opt opts[] = {
	[SET] = { "set", 's', OPT_LIST, "NAME=VALUE", "start with this parameter value", 0, 0, NULL },
	[DRY_RUN] = { "dry-run", 'n', OPT_FLAG, NULL,
		"check everything, change nothing, list what would change", 0, 0, NULL },
	{ 0 },
};

static int run(struct tierctl *t, const struct args *args)
{
	unsigned int flags = args->opt[DRY_RUN].given ? TIER_DRY_RUN : 0;
	struct tier_changes changes = { 0 };
	struct settings s = { 0 };
	int code;

	code = settings_parse(t, &s, "--set", args->opt[SET].list, args->opt[SET].nr);
	if (!code && tier_swap(t->ctx, args->words[0], s.set, s.nr, flags, &changes))
		code = failure_ctx(t);
	if (!code) {
		out_str(t->out, "policy", args->words[0]);
		out_bool(t->out, "dry_run", flags);
		emit_changes(t->out, &changes);
		code = show(t, flags ? view_changes : NULL);
	}
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
	"new policy's defaults or --set.",
	.examples = "  tierctl swap mru\n",
	.opts = opts,
	.min_words = 1,
	.max_words = 1,
	.words = WORDS_POLICY,
	.run = run,
};
