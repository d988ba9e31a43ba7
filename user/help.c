// SPDX-License-Identifier: GPL-2.0
/* Help, from the command tables. */
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

void help_choices(const struct opt *o, char *buf, size_t size)
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
		help_choices(opts, choices, sizeof(choices));
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
