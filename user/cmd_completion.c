// SPDX-License-Identifier: GPL-2.0
/* tierctl completion: shell completion from the command tables. */
#include <stdlib.h>
#include <string.h>

#include "tierctl.h"

static int run(struct tierctl *t, const struct args *args)
{
	char *text = NULL;
	size_t size;
	FILE *to;

	if (strcmp(args->words[0], "bash") && strcmp(args->words[0], "zsh"))
		return failure(t, TIER_CLASS_USAGE, "", "completion knows bash and zsh, not '%s'",
			       args->words[0]);
	to = open_memstream(&text, &size);
	if (!to)
		return failure(t, TIER_CLASS_FAILED, "", "out of memory");
	if (args->words[0][0] == 'b')
		help_completion_bash(to, tierctl_commands);
	else
		help_completion_zsh(to, tierctl_commands);
	if (fclose(to)) {
		free(text);
		return failure(t, TIER_CLASS_FAILED, "", "out of memory");
	}
	out_str(t->out, "shell", args->words[0]);
	out_str(t->out, "script", text);
	if (!t->json)	/* a script is no prose: as it is, never wrapped */
		fputs(text, stdout);
	free(text);
	return show(t, NULL);
}

const struct command cmd_completion = {
	.name = "completion",
	.args = "bash|zsh",
	.group = "Help",
	.summary = "completion for a shell, generated from the command table",
	.doc = "Prints a completion script. For bash save it as "
	"/usr/share/bash-completion/completions/tierctl, for zsh as _tierctl in a directory of "
	"$fpath.",
	.examples = "  source <(tierctl completion bash)\n",
	.min_words = 1,
	.max_words = 1,
	.words = WORDS_SHELL,
	.run = run,
};
