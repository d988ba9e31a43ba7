// SPDX-License-Identifier: GPL-2.0
/* tierctl: global options, choice of the command, exit code. */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "readers.h"

static void log_line(void *data, enum tier_log_level level, const char *line)
{
	const struct tierctl *t = data;
	char clean[1024];

	if ((int)level > t->verbose)
		return;
	out_clean(line, clean, sizeof(clean));
	fprintf(stderr, "tierctl: %s%s\n", level == TIER_LOG_WARN ? "warning: " : "", clean);
}

static int use_globals(struct tierctl *t, const struct globals *g)
{
	bool color = isatty(STDOUT_FILENO) && !g->opt[GLOBAL_NO_COLOR].given && !getenv("NO_COLOR");
	bool json = g->opt[GLOBAL_JSON].given;

	t->json = json;
	t->verbose = g->opt[GLOBAL_VERBOSE].number;
	out__free(t->out);
	t->out = out__new(stdout, json ? OUT_JSON : OUT_TEXT, color);
	return t->out ? 0 : -ENOMEM;
}

/* Was --json asked for, although the command line as a whole is wrong? */
static bool wants_json(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
		if (!strcmp(argv[i], "--json") || !strcmp(argv[i], "-j"))
			return true;
	return false;
}

static int usage_error(struct tierctl *t, int argc, char **argv, const struct globals *g,
		       const struct opts_error *error)
{
	struct globals with_json = *g;

	with_json.opt[GLOBAL_JSON].given |= wants_json(argc, argv);
	if (use_globals(t, &with_json))
		return TIER_CLASS_FAILED;
	return failure(t, TIER_CLASS_USAGE, error->hint, "%s", error->message);
}

/* Not root: the daemon may be there to read for us. */
static bool by_daemon(struct tierctl *t, int argc, char **argv, int *code)
{
	return geteuid() && t->cmd->readers && readers_ask(t, argc, argv, code);
}

static int run_command(struct tierctl *t, const struct args *args, int argc, char **argv)
{
	struct tier_ctx_opts opts = {
		.log = log_line,
		.log_data = t,
		.allow_unsafe_files = getenv("TIERCTL_ALLOW_UNSAFE_FILES") != NULL,
		.read_only = getenv(READER_ENV) != NULL,
	};
	int code;

	t->ctx = tier_ctx__new(&opts);
	if (!t->ctx)
		return failure(t, TIER_CLASS_FAILED, "", "out of memory");
	if (!by_daemon(t, argc, argv, &code))
		code = args->cmd->run(t, args);
	tier_ctx__free(t->ctx);
	t->ctx = NULL;
	return code;
}

static int tierctl(struct tierctl *t, int argc, char **argv)
{
	struct globals globals = { 0 };
	struct opts_error error;
	struct args args;
	int rest;

	if (opts_globals(argc, argv, &globals, &rest, &error))
		return usage_error(t, argc, argv, &globals, &error);
	if (globals.opt[GLOBAL_VERSION].given) {
		printf("tierctl %s\n", TIERCTL_VERSION);
		return TIER_CLASS_OK;
	}
	if (globals.opt[GLOBAL_HELP].given && rest == argc) {
		help_overview(stdout, tierctl_commands);
		return TIER_CLASS_OK;
	}
	if (rest == argc) {
		snprintf(error.message, sizeof(error.message), "no command given");
		snprintf(error.hint, sizeof(error.hint), "'tierctl --help' lists the commands.");
		return usage_error(t, argc, argv, &globals, &error);
	}
	t->cmd = opts_command(tierctl_commands, argv[rest], &error);
	if (!t->cmd || opts_parse(t->cmd, argc - rest, argv + rest, &globals, &args, &error))
		return usage_error(t, argc, argv, &globals, &error);
	if (globals.opt[GLOBAL_HELP].given) {
		help_command(stdout, t->cmd);
		return TIER_CLASS_OK;
	}
	if (use_globals(t, &globals))
		return TIER_CLASS_FAILED;
	return run_command(t, &args, argc, argv);
}

int main(int argc, char **argv)
{
	struct tierctl t = { 0 };
	int code;

	setlocale(LC_CTYPE, "");
	/* A closed pipe is an error of writing, told by the exit code. */
	signal(SIGPIPE, SIG_IGN);
	code = tierctl(&t, argc, argv);
	out__free(t.out);
	/* Help, too, must not look printed when the disk was full. */
	if (fclose(stdout) && code == TIER_CLASS_OK)
		code = TIER_CLASS_FAILED;
	return code;
}
