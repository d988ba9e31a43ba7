// SPDX-License-Identifier: GPL-2.0
/* tierctl clean: remove what no policy in force owns. */
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

	if (tier_clean(t->ctx, flags, &changes))
		return failure_ctx(t);
	out_bool(t->out, "dry_run", flags);
	emit_changes(t->out, &changes);
	return show(t, view_changes);
}

const struct command cmd_clean = {
	.name = "clean",
	.group = "Change what is in force",
	.summary = "remove pins and state that belong to no policy in force",
	.doc = "Removes pins and saved state that belong to no policy in force, after restoring the "
	"knobs named in it. A policy in force is not touched. Prints what was removed.",
	.examples = "  tierctl clean --dry-run\n",
	.opts = opts,
	.run = run,
};
