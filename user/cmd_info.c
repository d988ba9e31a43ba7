// SPDX-License-Identifier: GPL-2.0
/* tierctl info: what a policy object holds, read without loading it. */
#include "emit.h"

static const struct out_col head_cols[] = {
	{ "/name", "policy", 0 }, { "/path", "object", 0 }, { "/abi_version", "ABI version", OUT_NO_UNIT },
	{ "/ops", "ops", 0 }, { "/needs", "asks the fault for", OUT_OPTIONAL }, { 0 },
};

static const struct out_col param_cols[] = {
	{ "/name", "NAME", 0 }, { "/type", "TYPE", 0 }, { "/unit", "UNIT", OUT_OPTIONAL },
	{ "/min", "MIN", 0 }, { "/max", "MAX", 0 }, { "/default", "DEFAULT", 0 },
	{ "/help", "MEANING", 0 }, { 0 },
};

static const struct out_col prog_cols[] = {
	{ "/name", "PROGRAM", 0 }, { "/section", "SECTION", 0 }, { "/insns", "INSNS", OUT_NO_UNIT },
	{ 0 },
};

static const struct out_col verify_cols[] = {
	{ "/name", "PROGRAM", 0 }, { "/verified_insns", "VERIFIER STEPS", OUT_NO_UNIT },
	{ "/budget_insns", "BUDGET", OUT_NO_UNIT }, { "/xlated_bytes", "BYTECODE B", OUT_NO_UNIT },
	{ "/jited_bytes", "MACHINE CODE B", OUT_NO_UNIT }, { 0 },
};

static const struct out_view views[] = {
	{ OUT_VIEW_LINES, "", NULL, head_cols, NULL, false },
	{ OUT_VIEW_TABLE, "/params", "Parameters", param_cols, NULL, false },
	{ OUT_VIEW_TABLE, "/programs", "Programs (instructions as compiled)", prog_cols, NULL, false },
	{ OUT_VIEW_TABLE, "/verified", "As this kernel takes them", verify_cols, NULL, false },
	{ 0 },
};

enum { VERIFY };
static const struct opt opts[] = {
	[VERIFY] = { "verify", 0, OPT_FLAG, NULL,
		"load the programs for a moment: what the kernel's verifier makes of them", 0, 0, NULL },
	{ 0 },
};

#define MAX_PROGS	16

/* 0 or an exit code, reported; @over: a program is above the budget. */
static int emit_verified(struct tierctl *t, const char *policy, bool *over)
{
	struct tier_prog_cost costs[MAX_PROGS];
	unsigned int nr;

	if (tier_policy__verify(t->ctx, policy, costs, MAX_PROGS, &nr))
		return failure_ctx(t);
	*over = false;
	out_begin_array(t->out, "verified");
	for (unsigned int i = 0; i < nr; i++) {
		out_begin_object(t->out, NULL);
		out_str(t->out, "name", costs[i].name);
		out_u64(t->out, "verified_insns", costs[i].verified_insns);
		out_u64(t->out, "budget_insns", TIER_VERIFIER_BUDGET);
		out_bool(t->out, "over_budget", costs[i].verified_insns > TIER_VERIFIER_BUDGET);
		out_u64(t->out, "xlated_bytes", costs[i].xlated_bytes);
		out_u64(t->out, "jited_bytes", costs[i].jited_bytes);
		out_end(t->out);
		*over |= costs[i].verified_insns > TIER_VERIFIER_BUDGET;
	}
	out_end(t->out);
	return 0;
}

static int run(struct tierctl *t, const struct args *args)
{
	struct tier_policy_info *info;
	bool over = false;
	int code;

	if (tier_policy__inspect(t->ctx, args->words[0], &info))
		return failure_ctx(t);
	out_str(t->out, "name", info->name);
	out_str(t->out, "path", info->path);
	out_u64(t->out, "abi_version", info->abi_version);
	out_begin_array(t->out, "ops");
	for (unsigned int i = 0; i < info->nr_ops; i++)
		out_str(t->out, NULL, info->ops[i]);
	out_end(t->out);
	emit_flags(t->out, "needs", info->flags);
	emit_params(t->out, info->params, info->nr_params);
	out_begin_array(t->out, "programs");
	for (unsigned int i = 0; i < info->nr_progs; i++) {
		out_begin_object(t->out, NULL);
		out_str(t->out, "name", info->progs[i].name);
		out_str(t->out, "section", info->progs[i].section);
		out_u64(t->out, "insns", info->progs[i].insns);
		out_end(t->out);
	}
	out_end(t->out);
	code = args->opt[VERIFY].given ? emit_verified(t, args->words[0], &over) : 0;
	if (!code)
		code = show(t, views);
	/* With --json the document has said it: there is but one. */
	if (!code && over && t->json)
		code = TIER_CLASS_FAILED;
	else if (!code && over)
		code = failure(t, TIER_CLASS_FAILED, "A smaller loop bound or a function that is not "
			       "static (verified once) helps.",
			       "verify %s: a program takes the verifier more than %u steps", info->name,
			       TIER_VERIFIER_BUDGET);
	tier_policy_info__free(info);
	return code;
}

const struct command cmd_info = {
	.name = "info",
	.args = "POLICY|FILE.bpf.o",
	.group = "Look",
	.summary = "what a policy object holds: parameters, ops, programs",
	.doc = "Reads a policy object without loading it: ABI version, ops, what it asks of the fault "
	"record, parameters with type, unit, range, default and meaning, programs and their sizes. Needs "
	"no privileges.\n\n"
	"With --verify, which needs root, the kernel is given the programs for a moment: all that it can "
	"take without the module, and those that decide if the module is in. Exits with 1 if one is "
	"refused or takes the verifier more steps than the project's budget.",
	.examples = "  tierctl info fixed\n  tierctl info ./policy_mine.bpf.o --verify\n",
	.opts = opts,
	.min_words = 1,
	.max_words = 1,
	.words = WORDS_POLICY,
	.run = run,
};
