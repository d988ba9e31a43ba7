// SPDX-License-Identifier: GPL-2.0
/* tierctl list: policies that can be loaded by name. */
#include <string.h>

#include "emit.h"

static const struct out_col cols[] = {
	{ "/name", "POLICY", 0 }, { "/in_force", "IN FORCE", 0 }, { "/ops", "OPS", 0 },
	{ "/path", "OBJECT", 0 }, { "/error", "UNUSABLE", OUT_OPTIONAL }, { 0 },
};

static const struct out_col head_cols[] = {
	{ "/attached_policy", "in force", OUT_OPTIONAL },
	{ "/attached_by", "attached by", OUT_OPTIONAL }, { 0 },
};

static const struct out_col ejected_cols[] = {
	{ "/attached_policy", "ejected", 0 }, { "/attached_by", "attached by", OUT_OPTIONAL }, { 0 },
};

#define VIEWS(head) { \
	{ OUT_VIEW_LINES, "", NULL, head, NULL, false }, \
	{ OUT_VIEW_TABLE, "/policies", NULL, cols, "no policy found", false }, \
	{ 0 }, \
}

static const struct out_view views[2][3] = { VIEWS(head_cols), VIEWS(ejected_cols) };

static void emit_policy(struct out *out, const struct tier_policy_info *info, const char *active)
{
	out_begin_object(out, NULL);
	out_str(out, "name", info->name);
	out_bool(out, "in_force", *active && !strcmp(active, info->name));
	out_u64(out, "abi_version", info->abi_version);
	out_begin_array(out, "ops");
	for (unsigned int i = 0; i < info->nr_ops; i++)
		out_str(out, NULL, info->ops[i]);
	out_end(out);
	out_str(out, "path", info->path);
	out_str(out, "error", info->error);
	out_end(out);
}

static int run(struct tierctl *t, const struct args *args)
{
	struct tier_policy_info **infos;
	struct tier_status *status;
	char active[TIER_NAME_LEN] = "", owner[48] = "";
	bool ejected = false;
	unsigned int nr;
	int code;

	/* The list is of use without the right to look at what is in force. */
	if (!tier_status__read(t->ctx, &status)) {
		memcpy(active, status->policy, sizeof(active));
		memcpy(owner, status->owner, sizeof(owner));
		ejected = status->state == TIER_STATE_EJECTED;
		tier_status__free(status);
	}
	if (tier_policy__list(t->ctx, &infos, &nr))
		return failure_ctx(t);
	/* Whoever attached it, and wherever its object lies. */
	out_str(t->out, "attached_policy", *active ? active : NULL);
	out_str(t->out, "attached_by", *active && *owner ? owner : NULL);
	out_bool(t->out, "ejected", ejected);
	out_begin_array(t->out, "directories");
	for (unsigned int i = 0; tier_policy__dir(t->ctx, i); i++)
		out_str(t->out, NULL, tier_policy__dir(t->ctx, i));
	out_end(t->out);
	out_begin_array(t->out, "policies");
	for (unsigned int i = 0; i < nr; i++)
		emit_policy(t->out, infos[i], ejected ? "" : active);
	out_end(t->out);
	code = show(t, views[ejected]);
	if (!code && !nr)
		for (unsigned int i = 0; tier_policy__dir(t->ctx, i); i++)
			note(t, "looked in %s", tier_policy__dir(t->ctx, i));
	tier_policy_list__free(infos, nr);
	return code;
}

const struct command cmd_list = {
	.name = "list",
	.group = "Look",
	.summary = "policies that can be loaded by name",
	.doc = "Lists every policy of the lookup directories, in order of lookup; an earlier directory "
	"hides a later one ('tierctl config' shows them). An object that cannot be used is listed "
	"with the reason.\n\n"
	"Says also which policy is in force and who attached it, even if that was not tierctl or if "
	"its object is not in the list, or that the module ejected it.",
	.examples = "  tierctl list\n",
	.readers = "",
	.run = run,
};
