// SPDX-License-Identifier: GPL-2.0
/* tierctl load: put a policy in force and leave it there. */
#include "daemon.h"
#include "emit.h"

enum { SET, DRY_RUN, NO_OBSERVER };

static const struct opt opts[] = {
	[SET] = { "set", 's', OPT_LIST, "NAME=VALUE", "start with this parameter value", 0, 0, NULL },
	[DRY_RUN] = { "dry-run", 'n', OPT_FLAG, NULL,
		"check everything, change nothing, list what would change", 0, 0, NULL },
	[NO_OBSERVER] = { "no-observer", 0, OPT_FLAG, NULL,
		"without the observer: no scan and migration counters", 0, 0, NULL },
	{ 0 },
};

/* Without a name: what the configuration says, so that scripts need not know. */
static int default_policy(struct tierctl *t, char *policy, size_t size)
{
	static struct conf conf;
	int code = conf_read(t, &conf, CONF_FILE, false);

	if (!code)
		snprintf(policy, size, "%s", conf.value[CONF_DEFAULT_POLICY].text);
	return code;
}

static int run(struct tierctl *t, const struct args *args)
{
	unsigned int flags = (args->opt[DRY_RUN].given ? TIER_DRY_RUN : 0) |
			     (args->opt[NO_OBSERVER].given ? TIER_NO_OBSERVER : 0);
	const char *policy = args->words[0];
	struct tier_changes changes = { 0 };
	struct settings s = { 0 };
	struct saved saved = { 0 };
	char name[256];
	int code;

	code = settings_parse(t, &s, "--set", args->opt[SET].list, args->opt[SET].nr);
	if (!code && !policy) {
		code = default_policy(t, name, sizeof(name));
		policy = name;
	} else if (!code && is_saved_status(policy)) {
		code = saved_read(t, &saved, policy, &s);
		policy = saved_source(&saved);
		flags |= saved.no_observer ? TIER_NO_OBSERVER : 0;
	}
	if (!code && tier_load(t->ctx, policy, s.set, s.nr, flags, &changes))
		code = failure_ctx(t);
	if (!code) {
		out_str(t->out, "policy", policy);
		out_bool(t->out, "dry_run", args->opt[DRY_RUN].given);
		emit_changes(t->out, &changes);
		code = show(t, args->opt[DRY_RUN].given ? view_changes : NULL);
	}
	saved_free(&saved);
	settings_free(&s);
	return code;
}

const struct command cmd_load = {
	.name = "load",
	.args = "[POLICY|FILE.bpf.o|STATUS.json]",
	.group = "Change what is in force",
	.summary = "put a policy in force; it stays when tierctl ends",
	.doc = "Puts a policy in force. POLICY is a name that 'tierctl list' shows, FILE.bpf.o an "
	"object of your own, STATUS.json (or - for standard input) what 'tierctl status --json' "
	"printed: the same policy with the same parameters. Without any it is the default policy, "
	TIERCTL_DEFAULT_POLICY
	" (key default_policy of " CONF_FILE " names another).\n\n"
	"Inserts the kernel module and switches memory tiering mode on if need be; 'tierctl "
	"unload' puts both back. The policy stays in force after tierctl has ended: its link is "
	"pinned. If anything fails, everything is as before.\n\n"
	"Root takes only objects and files that root alone may write; TIERCTL_ALLOW_UNSAFE_FILES=1 in the "
	"environment says that you trust the others.",
	.examples =
	"  tierctl load\n"
	"  tierctl load fixed --set hot_threshold_ms=200\n"
	"  tierctl load ./policy_mine.bpf.o --dry-run\n"
	"  tierctl status --json > saved.json; tierctl load saved.json\n",
	.opts = opts,
	.max_words = 1,
	.words = WORDS_POLICY,
	.run = run,
};
