// SPDX-License-Identifier: GPL-2.0
/* tierctl set: change parameters of the policy in force. */
#include <string.h>

#include "emit.h"

/* What is in force now: a share of the bandwidth was typed, a limit has come of it. */
static int emit_set(struct tierctl *t, const struct settings *s)
{
	struct tier_param_value *values;
	unsigned int nr, v;

	if (tier_get(t->ctx, &values, &nr))
		return failure_ctx(t);
	out_begin_object(t->out, "set");
	for (unsigned int i = 0; i < s->nr; i++) {
		for (v = 0; v < nr && strcmp(values[v].info.name, s->set[i].name); v++)
			;
		if (v < nr)
			out_u64(t->out, s->set[i].name, values[v].value);
	}
	out_end(t->out);
	tier_param_values__free(values, nr);
	return show(t, NULL);
}

static int run(struct tierctl *t, const struct args *args)
{
	struct settings s = { 0 };
	int code;

	code = settings_parse(t, &s, "set", args->words, args->nr_words);
	if (!code && tier_set(t->ctx, s.set, s.nr))
		code = failure_ctx(t);
	/* The text form says nothing: it need not look. */
	if (!code && t->json)
		code = emit_set(t, &s);
	settings_free(&s);
	return code;
}

const struct command cmd_set = {
	.name = "set",
	.args = "NAME=VALUE...",
	.group = "Change what is in force",
	.summary = "change parameters of the policy in force",
	.doc = "Changes parameters of the policy in force; the next fault sees them. All are checked "
	"before the first is set. 'tierctl get' lists them with their ranges.",
	.examples = "  tierctl set hot_threshold_ms=500 rate_limit_mbps=64\n",
	.min_words = 1,
	.max_words = MAX_WORDS,
	.words = WORDS_PARAM,
	.run = run,
};
