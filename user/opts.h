/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Typed option tables: one row per command, one row per option. The parser, the
 * help, the man page and the shell completion all read these tables, so none of
 * them can disagree with another.
 */
#ifndef TIER_OPTS_H
#define TIER_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <linux/types.h>

struct tierctl;
struct args;

enum opt_kind {
	OPT_FLAG = 0,	/* no value */
	OPT_COUNT,	/* no value, may be repeated: how often */
	OPT_TEXT,	/* any text */
	OPT_LIST,	/* any text, may be repeated */
	OPT_NUMBER,	/* whole number within min..max */
	OPT_DURATION,	/* number with ms, s, min, h (bare: s); value in ms, min..max ms */
	OPT_CHOICE,	/* one word of choices */
};

struct opt {
	const char *name;	/* long name, without dashes; NULL ends a table */
	char letter;		/* short form, 0: none */
	enum opt_kind kind;
	const char *value;	/* what the help calls the value: "N" */
	const char *help;
	__u64 min, max;
	const char *const *choices;	/* ends with NULL */
};

#define MAX_OPTS	12
#define MAX_LIST	64
#define MAX_WORDS	64

/* What completion offers for a positional argument. */
enum opt_words {
	WORDS_NONE = 0,
	WORDS_POLICY,
	WORDS_PARAM,
	WORDS_COMMAND,
	WORDS_PID,
	WORDS_SHELL,
};

struct command {
	const char *name;
	const char *args;	/* positional arguments as shown in help: "[POLICY]" */
	const char *summary;	/* one line, no full stop */
	const char *doc;	/* paragraphs for help and man page, separated by \n\n */
	const char *examples;	/* lines "command # remark"; or NULL */
	const struct opt *opts;	/* or NULL */
	unsigned int min_words, max_words;
	enum opt_words words;
	const char *group;	/* heading in help; same text groups */
	/* Options that members of read_group may give, separated by blanks; NULL: root alone. */
	const char *readers;
	int (*run)(struct tierctl *t, const struct args *args);	/* exit code */
};

struct opt_value {
	bool given;
	__u64 number;		/* NUMBER, DURATION (ms), COUNT, CHOICE (index) */
	const char *text;	/* TEXT, CHOICE */
	const char *list[MAX_LIST];
	unsigned int nr;	/* entries of list */
};

/* Result of parsing; opt[] is indexed like the command's table. */
struct args {
	const struct command *cmd;
	struct opt_value opt[MAX_OPTS];
	const char *words[MAX_WORDS];
	unsigned int nr_words;
};

/* Options that every command takes, before or after its name. */
enum {
	GLOBAL_JSON,
	GLOBAL_VERBOSE,
	GLOBAL_NO_COLOR,
	GLOBAL_HELP,
	GLOBAL_VERSION,
	GLOBAL_NR
};
extern const struct opt global_opts[];

struct globals {
	struct opt_value opt[GLOBAL_NR];
};

/* Why the command line was refused. */
struct opts_error {
	char message[512];
	char hint[256];
};

/*
 * Split argv[1..] into global options, the command's name and the rest. Sets
 * @rest to the index of the command's name, or to argc if there is none.
 */
int opts_globals(int argc, char **argv, struct globals *globals, int *rest,
		 struct opts_error *error);

/*
 * The command that @word names: exactly, or as the only one that begins so.
 * NULL: none or several; @error names the candidates.
 */
const struct command *opts_command(const struct command *const *commands, const char *word,
				   struct opts_error *error);

/* Parse argv[1..] of a command; argv[0] is its name. 0 or -EINVAL. */
int opts_parse(const struct command *cmd, int argc, char **argv, struct globals *globals,
	       struct args *args, struct opts_error *error);

/* Single values; @what names the option or argument in the message. */
int opts_number(const char *what, const char *text, __u64 min, __u64 max, __u64 *number,
		struct opts_error *error);
int opts_duration(const char *what, const char *text, __u64 min_ms, __u64 max_ms, __u64 *ms,
		  struct opts_error *error);

/* ---- help.c, man.c, completion.c: everything that is printed from the tables ---- */
void help_overview(FILE *to, const struct command *const *commands);
void help_command(FILE *to, const struct command *cmd);
void help_choices(const struct opt *o, char *buf, size_t size);	/* " (one of a, b)" or "" */
void help_man(FILE *to, const struct command *const *commands);	/* tierctl(8) */
void help_man_conf(FILE *to);		/* tierctl.conf(5) */
void help_man_counters(FILE *to);	/* tierctl-counters(7) */
void help_counters(FILE *to);	/* counters.c */
void help_completion_bash(FILE *to, const struct command *const *commands);
void help_completion_zsh(FILE *to, const struct command *const *commands);

#endif /* TIER_OPTS_H */
