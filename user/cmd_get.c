// SPDX-License-Identifier: GPL-2.0
/* tierctl get: parameters of the policy in force. */
#include <string.h>

#include "emit.h"

static const struct out_col cols[] = {
	{ "/name", "NAME", 0 }, { "/value", "VALUE", 0 }, { "/unit", "UNIT", OUT_OPTIONAL },
	{ "/min", "MIN", 0 }, { "/max", "MAX", 0 }, { "/default", "DEFAULT", 0 },
	{ "/help", "MEANING", 0 }, { 0 },
};

static const struct out_view views[] = {
	{ OUT_VIEW_TABLE, "/params", NULL, cols, "the policy has no parameters", false },
	{ 0 },
};

/* One parameter asked for: only its value, for scripts. */
static const struct out_view value_view[] = {
	{ OUT_VIEW_TABLE, "/params", NULL,
	  (const struct out_col[]){ { "/value", "", OUT_NO_UNIT }, { 0 } }, NULL, true },
	{ 0 },
};

static int run(struct tierctl *t, const struct args *args)
{
	struct tier_param_value *values;
	unsigned int nr, i;
	int code;

	if (tier_get(t->ctx, &values, &nr))
		return failure_ctx(t);
	if (!args->nr_words) {
		emit_param_values(t->out, values, nr);
		code = show(t, views);
		goto out;
	}
	for (i = 0; i < nr && strcmp(values[i].info.name, args->words[0]); i++)
		;
	if (i == nr) {
		code = failure(t, TIER_CLASS_USAGE, "'tierctl get' lists the parameters.",
			    "the policy in force has no parameter '%s'", args->words[0]);
		goto out;
	}
	emit_param_values(t->out, &values[i], 1);
	code = show(t, value_view);
out:
	tier_param_values__free(values, nr);
	return code;
}

const struct command cmd_get = {
	.name = "get",
	.args = "[NAME]",
	.group = "Look",
	.summary = "parameters of the policy in force",
	.doc = "Lists the parameters of the policy in force with value, unit, range, default and "
	"meaning; with NAME prints that value alone.",
	.examples = "  tierctl get\n  tierctl get hot_threshold_ms\n",
	.max_words = 1,
	.words = WORDS_PARAM,
	.readers = "",
	.run = run,
};
