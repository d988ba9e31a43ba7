// SPDX-License-Identifier: GPL-2.0
/* tierctl info: what a policy object holds, read without loading it. */
#include "emit.h"

static const struct out_col head_cols[] = {
	{ "/name", "policy", 0 }, { "/path", "object", 0 }, { "/abi_version", "ABI version", OUT_NO_UNIT },
	{ "/ops", "ops", 0 }, { "/needs", "asks the fault for", OUT_OPTIONAL }, { 0 },
};

static const struct out_col param_cols[] = {
	{ "/name", "NAME", 0 }, { "/unit", "UNIT", OUT_OPTIONAL }, { "/min", "MIN", 0 },
	{ "/max", "MAX", 0 }, { "/default", "DEFAULT", 0 }, { "/help", "MEANING", 0 }, { 0 },
};

static const struct out_col prog_cols[] = {
	{ "/name", "PROGRAM", 0 }, { "/section", "SECTION", 0 }, { "/insns", "INSNS", OUT_NO_UNIT },
	{ 0 },
};

static const struct out_view views[] = {
	{ OUT_VIEW_LINES, "", NULL, head_cols, NULL, false },
	{ OUT_VIEW_TABLE, "/params", "Parameters", param_cols, NULL, false },
	{ OUT_VIEW_TABLE, "/programs", "Programs (instructions as compiled)", prog_cols, NULL, false },
	{ 0 },
};

static int run(struct tierctl *t, const struct args *args)
{
	struct tier_policy_info *info;
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
	code = show(t, views);
	tier_policy_info__free(info);
	return code;
}

const struct command cmd_info = {
	.name = "info",
	.args = "POLICY|FILE.bpf.o",
	.group = "Look",
	.summary = "what a policy object holds: parameters, ops, programs",
	.doc = "Reads a policy object without loading it: ABI version, ops, what it asks of the fault "
	"record, parameters with unit, range, default and meaning, programs and their sizes. Needs "
	"no privileges.",
	.examples = "  tierctl info fixed\n  tierctl info ./policy_mine.bpf.o\n",
	.min_words = 1,
	.max_words = 1,
	.words = WORDS_POLICY,
	.run = run,
};
