// SPDX-License-Identifier: GPL-2.0
/* Help and man page, both from the command tables. */
#include <string.h>

#include "tierctl.h"

#define WIDTH	80

/* @text from column @indent on, broken at spaces; \n\n makes a paragraph. */
static void wrap(FILE *to, const char *text, unsigned int indent)
{
	unsigned int at = indent;
	bool fresh = true;

	while (*text) {
		size_t word = strcspn(text, " \n");

		if (!fresh && at + 1 + word > WIDTH) {
			fprintf(to, "\n%*s", (int)indent, "");
			at = indent;
		} else if (!fresh && word) {
			fputc(' ', to);
			at++;
		}
		fwrite(text, 1, word, to);
		at += word;
		text += word;
		fresh = false;
		if (!strncmp(text, "\n\n", 2)) {
			fprintf(to, "\n\n%*s", (int)indent, "");
			at = indent;
			fresh = true;
			text++;
		}
		if (*text)
			text++;
	}
	fputc('\n', to);
}

static void option_left(const struct opt *o, char *buf, size_t size)
{
	int at = 0;

	if (o->letter)
		at = snprintf(buf, size, "-%c, ", o->letter);
	else
		at = snprintf(buf, size, "    ");
	snprintf(buf + at, size - at, "--%s%s%s", o->name, o->value ? " " : "",
		 o->value ? o->value : "");
}

static void option_choices(const struct opt *o, char *buf, size_t size)
{
	buf[0] = '\0';
	for (unsigned int i = 0; o->choices && o->choices[i]; i++)
		snprintf(buf + strlen(buf), size - strlen(buf), "%s%s", i ? ", " : " (one of ",
			 o->choices[i]);
	if (o->choices)
		snprintf(buf + strlen(buf), size - strlen(buf), ")");
}

static void print_options(FILE *to, const struct opt *opts)
{
	for (; opts && opts->name; opts++) {
		char left[64], text[512], choices[128];

		option_left(opts, left, sizeof(left));
		option_choices(opts, choices, sizeof(choices));
		snprintf(text, sizeof(text), "%s%s", opts->help, choices);
		fprintf(to, "  %-24s", left);
		if (strlen(left) > 23)
			fprintf(to, "\n%26s", "");
		wrap(to, text, 26);
	}
}

void help_overview(FILE *to, const struct command *const *commands)
{
	const char *group = "";

	fprintf(to, "Usage: tierctl [OPTION]... COMMAND [ARGUMENT]...\n\n");
	wrap(to, "Decide with a BPF policy which slow-tier pages are promoted, on a running "
	     "machine.", 0);
	for (unsigned int i = 0; commands[i]; i++) {
		if (strcmp(group, commands[i]->group))
			fprintf(to, "\n%s:\n", commands[i]->group);
		group = commands[i]->group;
		fprintf(to, "  %-12s", commands[i]->name);
		wrap(to, commands[i]->summary, 14);
	}
	fprintf(to, "\nOptions of every command:\n");
	print_options(to, global_opts);
	fprintf(to, "\nExit codes:\n");
	for (unsigned int i = 0; tierctl_exit_codes[i]; i++)
		fprintf(to, "  %u  %s\n", i, tierctl_exit_codes[i]);
	fprintf(to, "\n'tierctl help COMMAND' tells more.\n");
}

void help_command(FILE *to, const struct command *cmd)
{
	fprintf(to, "Usage: tierctl %s%s%s%s\n\n", cmd->name, cmd->opts ? " [OPTION]..." : "",
		cmd->args ? " " : "", cmd->args ? cmd->args : "");
	wrap(to, cmd->doc, 0);
	if (cmd->opts) {
		fprintf(to, "\nOptions:\n");
		print_options(to, cmd->opts);
	}
	fprintf(to, "\nOptions of every command:\n");
	print_options(to, global_opts);
	if (cmd->examples)
		fprintf(to, "\nExamples:\n%s", cmd->examples);
}

/* ---- man page ---- */

/* Text with what roff takes for a command or a hyphen made harmless. */
static void roff(FILE *to, const char *text)
{
	bool line_start = true;

	for (; *text; text++) {
		if (line_start && (*text == '.' || *text == '\''))
			fputs("\\&", to);
		line_start = *text == '\n';
		if (*text == '\\')
			fputs("\\e", to);
		else if (*text == '-')
			fputs("\\-", to);
		else if (*text == '\n' && text[1] == '\n') {
			fputs("\n.PP\n", to);
			text++;
			line_start = true;
		} else
			fputc(*text, to);
	}
	fputc('\n', to);
}

static void roff_options(FILE *to, const struct opt *opts)
{
	for (; opts && opts->name; opts++) {
		char choices[128];

		option_choices(opts, choices, sizeof(choices));
		fputs(".TP\n", to);
		if (opts->letter)
			fprintf(to, "\\fB\\-%c\\fR, ", opts->letter);
		fputs("\\fB\\-\\-", to);
		for (const char *c = opts->name; *c; c++)
			fprintf(to, "%s%c", *c == '-' ? "\\" : "", *c);
		fprintf(to, "\\fR%s%s%s\n", opts->value ? " \\fI" : "", opts->value ? opts->value : "",
			opts->value ? "\\fR" : "");
		roff(to, opts->help);
		if (*choices)
			roff(to, choices + 1);
	}
}

static void roff_command(FILE *to, const struct command *cmd)
{
	fprintf(to, ".SS %s%s%s%s\n", cmd->name, cmd->opts ? " [OPTION]..." : "",
		cmd->args ? " " : "", cmd->args ? cmd->args : "");
	roff(to, cmd->doc);
	roff_options(to, cmd->opts);
	if (cmd->examples) {
		fputs(".PP\n.nf\n", to);
		roff(to, cmd->examples);
		fputs(".fi\n", to);
	}
}

static void roff_decisions(FILE *to)
{
	static const char *const verdicts[] = { "kernel", "promote", "reject" };

	fputs(".SH VERDICTS AND REASONS\n"
	      "Every hint fault on a slow-tier page ends in exactly one of these.\n", to);
	for (unsigned int d = 0; d < TIER_NR_DECISIONS; d++) {
		if (!tier_decision__name(d))
			continue;
		fprintf(to, ".TP\n\\fB%s\\fR (%s)\n", tier_decision__name(d),
			verdicts[tier_decision_verdict(d)]);
		roff(to, tier_decision__cause(d));
	}
}

static void roff_counters(FILE *to)
{
#define ROFF_STAT(sym, name, unit, help) \
	fprintf(to, ".TP\n\\fB%s\\fR (%s)\n", name, unit); roff(to, help);
#define TIER_STAT_MODULE(sym, name, unit, help) ROFF_STAT(sym, name, unit, help)
#define TIER_STAT_MOVE(sym, name, unit, help) ROFF_STAT(sym, name, unit, help)
#define TIER_STAT_SCAN(sym, name, unit, help) ROFF_STAT(sym, name, unit, help)
#define TIER_STAT_SKIP(sym, name, unit, help) ROFF_STAT(sym, name, unit, help)
#define TIER_STAT_REQUEST(sym, name, unit, help) ROFF_STAT(sym, name, unit, help)
	fputs(".SH COUNTERS\n", to);
#include <tier/stats.def>
#undef ROFF_STAT
}

static const char man_overhead[] =
	".SH OVERHEAD\n"
	"Without a policy nothing is hooked and the cost is zero, also when the module is\n"
	"loaded. With one, each hint fault on a slow-tier page runs the policy once;\n"
	"\\fBmake lab RUN=tests/bench/fault_cost.sh ICOUNT=1\\fR counts the instructions.\n"
	"Reading counters costs the machine a copy of the per-CPU maps per reading.\n";

static const char man_files[] =
	".SH FILES\n"
	".TP\n/sys/fs/bpf/tier/\nPins: the link (policy in force), the shared maps, the observer.\n"
	".TP\n/run/tierctl/state.json\nJournal: the knobs' values from before \\fBload\\fR.\n"
	".TP\n/sys/kernel/tier_policy/\nThe module's view: state, owner, counters, exit record.\n"
	".SH ENVIRONMENT\n"
	".TP\nTIERCTL_POLICY_PATH\nDirectories, separated by colons, searched first for policies.\n"
	".TP\nTIERCTL_ALLOW_UNSAFE_FILES\nIf set, root may load objects that others can write.\n"
	".TP\nNO_COLOR\nIf set, no colours.\n";

void help_man(FILE *to, const struct command *const *commands)
{
	fputs(".\\\" Generated by 'tierctl help --man' from the command tables.\n"
	      ".TH TIERCTL 8 \"\" \"tierctl " TIERCTL_VERSION "\" \"System administration\"\n"
	      ".SH NAME\ntierctl \\- promotion policies for tiered memory\n"
	      ".SH SYNOPSIS\n\\fBtierctl\\fR [\\fIOPTION\\fR]... \\fICOMMAND\\fR "
	      "[\\fIARGUMENT\\fR]...\n"
	      ".SH DESCRIPTION\n"
	      "Small BPF programs decide, in the NUMA hint fault path of a stock kernel, which\n"
	      "slow\\-tier pages are promoted. tierctl loads, tunes, swaps, reads and removes\n"
	      "them. A policy stays in force after tierctl has ended, until \\fBunload\\fR.\n"
	      "Standard output carries data only, standard error everything else. A command\n"
	      "may be shortened as long as the short form is unique.\n"
	      ".SH COMMANDS\n", to);
	for (unsigned int i = 0; commands[i]; i++)
		roff_command(to, commands[i]);
	fputs(".SH OPTIONS\nEvery command takes these, before or after its name.\n", to);
	roff_options(to, global_opts);
	fputs(".SH EXIT STATUS\n", to);
	for (unsigned int i = 0; tierctl_exit_codes[i]; i++)
		fprintf(to, ".TP\n\\fB%u\\fR\n%s\n", i, tierctl_exit_codes[i]);
	roff_decisions(to);
	roff_counters(to);
	fputs(man_overhead, to);
	fputs(man_files, to);
}
