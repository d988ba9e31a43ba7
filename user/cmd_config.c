// SPDX-License-Identifier: GPL-2.0
/* tierctl config: what the daemon's configuration comes to, and from where. */
#include "daemon.h"

static const struct opt opts[] = {
	{ "config", 'c', OPT_TEXT, "FILE", "read FILE and FILE.d/*.conf instead of " CONF_FILE, 0, 0, NULL },
	{ 0 },
};

static const struct out_col cols[] = {
	{ "/key", "KEY", 0 }, { "/value", "VALUE", OUT_EMPTY }, { "/from", "FROM", 0 }, { 0 },
};

static const struct out_col dir_cols[] = { { "/path", "DIRECTORY", 0 }, { 0 } };

static const struct out_view views[] = {
	{ OUT_VIEW_TABLE, "/config", NULL, cols, NULL, false },
	{ OUT_VIEW_TABLE, "/directories", "Policies are looked for in", dir_cols, "nowhere", true },
	{ 0 },
};

static void emit(struct out *out, const char *prefix, const char *key, const char *value,
		 const char *from)
{
	char full[80];

	snprintf(full, sizeof(full), "%s%s", prefix, key);
	out_begin_object(out, NULL);
	out_str(out, "key", full);
	out_str(out, "value", value);
	out_str(out, "from", from);
	out_end(out);
}

static int run(struct tierctl *t, const struct args *args)
{
	bool named = args->opt[0].given;
	static struct conf conf;
	int code;

	code = conf_read(t, &conf, named ? args->opt[0].text : CONF_FILE, named);
	if (code)
		return code;
	out_begin_array(t->out, "config");
	for (unsigned int i = 0; i < CONF_NR; i++)
		emit(t->out, "", conf_names[i], conf.value[i].text, conf.value[i].from);
	for (unsigned int i = 0; i < conf.nr_set; i++)
		emit(t->out, "set.", conf.set[i].name, conf.set[i].value, conf.set[i].from);
	out_end(t->out);
	out_begin_array(t->out, "directories");
	for (unsigned int i = 0; tier_policy__dir(t->ctx, i); i++) {
		out_begin_object(t->out, NULL);
		out_str(t->out, "path", tier_policy__dir(t->ctx, i));
		out_end(t->out);
	}
	out_end(t->out);
	return show(t, views);
}

const struct command cmd_config = {
	.name = "config",
	.group = "Service",
	.summary = "the configuration as resolved, and from where",
	.doc = "Prints every key of the configuration with its value and where that comes from: the "
	"built-in default, or FILE:LINE; then the directories in which policies are looked for, in "
	"that order (list, info, load and swap all use it). Files are " CONF_FILE " and then "
	CONF_FILE ".d/*.conf in the order of their names; a later line wins. Root reads only files "
	"that root alone may write, unless TIERCTL_ALLOW_UNSAFE_FILES is set."
#define CONF(sym, name, text, number, min, max, help) "\n\n" name ": " help "."
#include "conf.def"
#undef CONF
	"\n\nset.NAME: value of parameter NAME for the policy of key policy.",
	.examples =
	"  tierctl config\n"
	"  tierctl config --json\n",
	.opts = opts,
	.run = run,
};
