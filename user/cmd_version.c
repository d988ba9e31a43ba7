// SPDX-License-Identifier: GPL-2.0
/* tierctl version: what was built, and what this machine can do. */
#include "emit.h"

#define MAX_FEATURES	64

enum { FEATURES };

static const struct opt opts[] = {
	[FEATURES] = { "features", 'f', OPT_FLAG, NULL, "every probe of this machine and its answer",
		0, 0, NULL },
	{ 0 },
};

static const struct out_col head_cols[] = {
	{ "/version", "tierctl", 0 }, { "/abi_version", "policy ABI", OUT_NO_UNIT },
	{ "/kernel", "kernel", OUT_OPTIONAL }, { 0 },
};

static const struct out_col feature_cols[] = {
	{ "/name", "FEATURE", 0 }, { "/available", "HERE", 0 }, { "/detail", "EVIDENCE", 0 },
	{ "/help", "NEEDED FOR", 0 }, { 0 },
};

static const struct out_view views[] = {
	{ OUT_VIEW_LINES, "", NULL, head_cols, NULL, false },
	{ OUT_VIEW_TABLE, "/features", "Features", feature_cols, NULL, false },
	{ 0 },
};

static int emit_features(struct tierctl *t)
{
	struct tier_feature features[MAX_FEATURES];
	int nr = tier_features__probe(t->ctx, features, MAX_FEATURES);
	struct tier_env env;

	if (nr < 0 || tier_env__probe(t->ctx, &env))
		return failure_ctx(t);
	out_str(t->out, "kernel", env.kernel_release);
	out_begin_array(t->out, "features");
	for (int i = 0; i < nr && i < MAX_FEATURES; i++) {
		out_begin_object(t->out, NULL);
		out_str(t->out, "name", features[i].name);
		if (features[i].value < 0)
			out_str(t->out, "available", NULL);
		else
			out_bool(t->out, "available", features[i].value);
		out_str(t->out, "detail", features[i].detail);
		out_str(t->out, "help", features[i].help);
		out_end(t->out);
	}
	out_end(t->out);
	return TIER_CLASS_OK;
}

static int run(struct tierctl *t, const struct args *args)
{
	int code;

	out_str(t->out, "version", TIERCTL_VERSION);
	out_u64(t->out, "abi_version", TIER_ABI_VERSION);
	code = args->opt[FEATURES].given ? emit_features(t) : TIER_CLASS_OK;
	return code ? code : show(t, views);
}

const struct command cmd_version = {
	.name = "version",
	.group = "Help",
	.summary = "version; --features: what this machine can do",
	.doc = "Prints the version of tierctl and of the policy ABI. With --features also every probe "
	"of this machine, its answer and the evidence; put that into a bug report.",
	.examples = "  tierctl version --features\n",
	.opts = opts,
	.readers = "features",
	.run = run,
};
