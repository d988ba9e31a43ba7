// SPDX-License-Identifier: GPL-2.0
/* tierctl help: help text, man page and the command table as data. */
#include <string.h>

#include "tierctl.h"

enum { MAN, PAGE, COUNTERS };

static const char *const pages[] = { "tierctl.8", "tierctl.conf.5", "tierctl-counters.7", NULL };
enum { PAGE_COMMANDS, PAGE_CONF, PAGE_COUNTERS };

static const struct opt opts[] = {
	[MAN] = { "man", 0, OPT_FLAG, NULL, "print the man page (roff)", 0, 0, NULL },
	[PAGE] = { "page", 0, OPT_CHOICE, "PAGE", "with --man: another page", 0, 0, pages },
	[COUNTERS] = { "counters", 0, OPT_FLAG, NULL, "print what each counter means (Markdown)", 0, 0,
		NULL },
	{ 0 },
};

static void emit_options(struct out *out, const struct opt *o)
{
	out_begin_array(out, "options");
	for (; o && o->name; o++) {
		char letter[2] = { o->letter, 0 };

		out_begin_object(out, NULL);
		out_str(out, "name", o->name);
		out_str(out, "letter", o->letter ? letter : NULL);
		out_str(out, "value", o->value);
		out_str(out, "help", o->help);
		out_end(out);
	}
	out_end(out);
}

static int emit_table(struct tierctl *t, const struct command *only)
{
	out_begin_array(t->out, "commands");
	for (unsigned int i = 0; tierctl_commands[i]; i++) {
		const struct command *c = tierctl_commands[i];

		if (only && c != only)
			continue;
		out_begin_object(t->out, NULL);
		out_str(t->out, "name", c->name);
		out_str(t->out, "args", c->args);
		out_str(t->out, "summary", c->summary);
		out_str(t->out, "doc", c->doc);
		emit_options(t->out, c->opts);
		out_end(t->out);
	}
	out_end(t->out);
	emit_options(t->out, global_opts);
	return show(t, NULL);
}

static int run(struct tierctl *t, const struct args *args)
{
	const struct command *cmd = NULL;
	struct opts_error error;

	if ((args->opt[MAN].given || args->opt[COUNTERS].given) && args->nr_words)
		return failure(t, TIER_CLASS_USAGE, "", "--%s takes no command",
			       args->opt[MAN].given ? "man" : "counters");
	if (args->nr_words) {
		cmd = opts_command(tierctl_commands, args->words[0], &error);
		if (!cmd)
			return failure(t, TIER_CLASS_USAGE, error.hint, "%s", error.message);
	}
	if (args->opt[PAGE].given && !args->opt[MAN].given)
		return failure(t, TIER_CLASS_USAGE, "Add --man.", "--page needs --man");
	if (args->opt[MAN].given && args->opt[PAGE].number == PAGE_CONF)
		help_man_conf(stdout);
	else if (args->opt[MAN].given && args->opt[PAGE].number == PAGE_COUNTERS)
		help_man_counters(stdout);
	else if (args->opt[MAN].given)
		help_man(stdout, tierctl_commands);
	else if (args->opt[COUNTERS].given)
		help_counters(stdout);
	else if (t->json)
		return emit_table(t, cmd);
	else if (cmd)
		help_command(stdout, cmd);
	else
		help_overview(stdout, tierctl_commands);
	return TIER_CLASS_OK;
}

const struct command cmd_help = {
	.name = "help",
	.args = "[COMMAND]",
	.group = "Help",
	.summary = "help on a command",
	.doc = "Prints help on COMMAND, or the list of commands; with --json the table of commands "
	"and options as data. The pages of --man and --counters are text in any case.",
	.examples = "  tierctl help load\n",
	.opts = opts,
	.max_words = 1,
	.words = WORDS_COMMAND,
	.run = run,
};
