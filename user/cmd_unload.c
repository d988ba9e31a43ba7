// SPDX-License-Identifier: GPL-2.0
/* tierctl unload: take the policy off and leave the machine as it was. */
#include "emit.h"

enum { DRY_RUN };

static const struct opt opts[] = {
	[DRY_RUN] = { "dry-run", 'n', OPT_FLAG, NULL, "change nothing, list what would change",
		0, 0, NULL },
	{ 0 },
};

static int run(struct tierctl *t, const struct args *args)
{
	unsigned int flags = args->opt[DRY_RUN].given ? TIER_DRY_RUN : 0;
	struct tier_changes changes = { 0 };

	if (tier_unload(t->ctx, flags, &changes))
		return failure_ctx(t);
	out_bool(t->out, "dry_run", flags);
	emit_changes(t->out, &changes);
	return show(t, flags ? view_changes : NULL);
}

const struct command cmd_unload = {
	.name = "unload",
	.group = "Change what is in force",
	.summary = "take the policy off; the machine is as before 'load'",
	.doc = "Takes the policy off. The kernel's own algorithm decides again. Every knob goes back "
	"to its value from before 'load', unless someone changed it since: that one is left alone "
	"and named. Works as well after a killed tierctl.",
	.examples = "  tierctl unload\n  tierctl unload --dry-run\n",
	.opts = opts,
	.run = run,
};
