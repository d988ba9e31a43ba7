// SPDX-License-Identifier: GPL-2.0
/* tierctl set: change parameters of the policy in force. */
#include <stdlib.h>

#include "emit.h"

static int run(struct tierctl *t, const struct args *args)
{
	struct settings s = { 0 };
	int code;

	code = settings_parse(t, &s, "set", args->words, args->nr_words);
	if (!code && tier_set(t->ctx, s.set, s.nr))
		code = failure_ctx(t);
	if (!code) {
		out_begin_object(t->out, "set");
		/* The library has taken them: they are numbers, decimal or 0x. */
		for (unsigned int i = 0; i < s.nr; i++)
			out_u64(t->out, s.set[i].name, strtoull(s.set[i].value, NULL, 0));
		out_end(t->out);
		code = show(t, NULL);
	}
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
