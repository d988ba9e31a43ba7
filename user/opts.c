// SPDX-License-Identifier: GPL-2.0
/* The command line against the typed tables. getopt_long() does the splitting. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "opts.h"
#include "out/out.h"

const struct opt global_opts[] = {
	[GLOBAL_JSON] = { "json", 'j', OPT_FLAG, NULL, "print JSON, errors too", 0, 0, NULL },
	[GLOBAL_VERBOSE] = { "verbose", 'v', OPT_COUNT, NULL,
		"say what is done, on stderr; twice: libbpf's words too", 0, 0, NULL },
	[GLOBAL_NO_COLOR] = { "no-color", 0, OPT_FLAG, NULL,
		"no colours (also: NO_COLOR in the environment, or no terminal)", 0, 0, NULL },
	[GLOBAL_HELP] = { "help", 'h', OPT_FLAG, NULL, "print help and exit", 0, 0, NULL },
	[GLOBAL_VERSION] = { "version", 'V', OPT_FLAG, NULL, "print the version and exit", 0, 0, NULL },
	[GLOBAL_NR] = { 0 },
};

#define LONG_BASE	1000	/* getopt values of long options: above every letter */

/* What getopt_long() wants, made from a command's table and the global one. */
struct getopt_tables {
	struct option longs[GLOBAL_NR + MAX_OPTS + 1];
	const struct opt *opts[GLOBAL_NR + MAX_OPTS];
	struct opt_value *values[GLOBAL_NR + MAX_OPTS];
	char shorts[2 * (GLOBAL_NR + MAX_OPTS) + 3];
	unsigned int nr;
};

static bool takes_value(const struct opt *o)
{
	return o->kind != OPT_FLAG && o->kind != OPT_COUNT;
}

static void add_table(struct getopt_tables *t, const struct opt *opts, struct opt_value *values)
{
	char *s = t->shorts + strlen(t->shorts);

	for (unsigned int i = 0; opts && opts[i].name; i++, t->nr++) {
		t->longs[t->nr].name = opts[i].name;
		t->longs[t->nr].has_arg = takes_value(&opts[i]) ? required_argument : no_argument;
		t->longs[t->nr].val = LONG_BASE + t->nr;
		t->opts[t->nr] = &opts[i];
		t->values[t->nr] = &values[i];
		if (!opts[i].letter)
			continue;
		*s++ = opts[i].letter;
		if (takes_value(&opts[i]))
			*s++ = ':';
	}
	*s = '\0';
}

static void __attribute__((format(printf, 3, 4)))
fail(struct opts_error *error, const char *hint, const char *fmt, ...)
{
	char raw[sizeof(error->message)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(raw, sizeof(raw), fmt, ap);
	va_end(ap);
	/* What the user typed may hold anything. */
	out_clean(raw, error->message, sizeof(error->message));
	snprintf(error->hint, sizeof(error->hint), "%s", hint);
}

int opts_number(const char *what, const char *text, __u64 min, __u64 max, __u64 *number,
		struct opts_error *error)
{
	char *end = NULL;

	errno = 0;
	*number = strtoull(text, &end, 0);
	if (!isdigit((unsigned char)*text) || *end || errno || *number < min || *number > max) {
		fail(error, "", "%s takes a whole number from %llu to %llu, not '%.80s'", what,
		     (unsigned long long)min, (unsigned long long)max, text);
		return -EINVAL;
	}
	return 0;
}

int opts_duration(const char *what, const char *text, __u64 min_ms, __u64 max_ms, __u64 *ms,
		  struct opts_error *error)
{
	static const struct {
		const char *unit;
		double ms;
	} units[] = { { "", 1000 }, { "s", 1000 }, { "ms", 1 }, { "min", 60000 }, { "h", 3600000 } };
	char *end = NULL;
	double value = -1;

	/* strtod() would also take "inf", "nan", hexadecimal and leading spaces. */
	if (isdigit((unsigned char)*text) && !(text[0] == '0' && tolower(text[1]) == 'x'))
		value = strtod(text, &end);
	for (size_t i = 0; value >= 0 && i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit))
			continue;
		value *= units[i].ms;
		if (value < (double)min_ms || value > (double)max_ms)
			break;
		*ms = (__u64)(value + 0.5);
		return 0;
	}
	fail(error, "", "%s takes a time from %g s to %g s such as 500ms, 2 or 1min, not '%.80s'",
	     what, min_ms / 1e3, max_ms / 1e3, text);
	return -EINVAL;
}

static int choice(const char *what, const struct opt *o, const char *text, __u64 *index,
		  struct opts_error *error)
{
	char words[128] = "";

	for (*index = 0; o->choices[*index]; ++*index) {
		if (!strcmp(o->choices[*index], text))
			return 0;
		snprintf(words + strlen(words), sizeof(words) - strlen(words), "%s%s",
			 *index ? ", " : "", o->choices[*index]);
	}
	fail(error, "", "%s takes one of %s, not '%.80s'", what, words, text);
	return -EINVAL;
}

static int take(const struct opt *o, const char *text, struct opt_value *v,
		struct opts_error *error)
{
	char what[64];

	snprintf(what, sizeof(what), "--%s", o->name);
	if (takes_value(o) && !*text) {
		fail(error, "", "%s: the value is empty", what);
		return -EINVAL;
	}
	if (takes_value(o) && !out_utf8_valid(text, true)) {
		fail(error, "", "%s: the value is not printable UTF-8", what);
		return -EINVAL;
	}
	if (v->given && takes_value(o) && o->kind != OPT_LIST) {
		fail(error, "", "%s is given twice", what);
		return -EINVAL;
	}
	v->given = true;
	v->text = text;
	switch (o->kind) {
	case OPT_FLAG:
	case OPT_TEXT:
		return 0;
	case OPT_COUNT:
		v->number++;
		return 0;
	case OPT_LIST:
		if (v->nr == MAX_LIST) {
			fail(error, "", "%s is given more than %d times", what, MAX_LIST);
			return -EINVAL;
		}
		v->list[v->nr++] = text;
		return 0;
	case OPT_NUMBER:
		return opts_number(what, text, o->min, o->max, &v->number, error);
	case OPT_DURATION:
		return opts_duration(what, text, o->min, o->max, &v->number, error);
	case OPT_CHOICE:
		return choice(what, o, text, &v->number, error);
	}
	return -EINVAL;
}

/* getopt says only that it did not like argv[optind - 1]; say why. */
static void explain(const struct getopt_tables *t, int letter, const char *word,
		    const char *hint, struct opts_error *error)
{
	char names[256] = "";
	unsigned int nr = 0;
	size_t len;

	if (strncmp(word, "--", 2)) {
		fail(error, hint, "unknown option -%c", isprint(letter) ? letter : '?');
		return;
	}
	len = strcspn(word + 2, "=");
	for (unsigned int i = 0; i < t->nr; i++) {
		if (strncmp(t->opts[i]->name, word + 2, len))
			continue;
		if (strlen(t->opts[i]->name) == len) {
			fail(error, hint, "--%s takes no value", t->opts[i]->name);
			return;
		}
		nr++;
		snprintf(names + strlen(names), sizeof(names) - strlen(names), " --%s",
			 t->opts[i]->name);
	}
	if (nr > 1)
		fail(error, hint, "%.80s is ambiguous:%s", word, names);
	else if (nr == 1)
		fail(error, hint, "%s takes no value", names + 1);
	else
		fail(error, hint, "unknown option %.80s", word);
}

static int walk(struct getopt_tables *t, int argc, char **argv, const char *hint,
		struct opts_error *error)
{
	int got, index;

	opterr = 0;
	optind = 0;	/* 0, not 1: makes glibc forget an earlier parse */
	while ((got = getopt_long(argc, argv, t->shorts, t->longs, NULL)) != -1) {
		int letter = optopt;

		if (got == ':') {
			for (unsigned int i = 0; i < t->nr; i++)
				if (letter == LONG_BASE + (int)i || letter == t->opts[i]->letter)
					fail(error, hint, "--%s needs a value: %s", t->opts[i]->name,
					     t->opts[i]->value);
			return -EINVAL;
		}
		if (got == '?') {
			/* A refused flag with a value ("--json=1") has its number in optopt. */
			if (letter >= LONG_BASE && letter < LONG_BASE + (int)t->nr)
				fail(error, hint, "--%s takes no value",
				     t->opts[letter - LONG_BASE]->name);
			else
				explain(t, letter, letter ? "-" : argv[optind - 1], hint, error);
			return -EINVAL;
		}
		index = -1;
		for (unsigned int i = 0; i < t->nr; i++)
			if (got == LONG_BASE + (int)i || got == t->opts[i]->letter)
				index = i;
		if (index < 0 || take(t->opts[index], optarg, t->values[index], error)) {
			if (!*error->hint)
				snprintf(error->hint, sizeof(error->hint), "%s", hint);
			return -EINVAL;
		}
	}
	return 0;
}

int opts_globals(int argc, char **argv, struct globals *globals, int *rest,
		 struct opts_error *error)
{
	struct getopt_tables t = { .shorts = "+:" };
	int err;

	memset(error, 0, sizeof(*error));
	add_table(&t, global_opts, globals->opt);
	err = walk(&t, argc, argv, "'tierctl --help' lists commands and options.", error);
	*rest = optind;
	return err;
}

const struct command *opts_command(const struct command *const *commands, const char *word,
				   struct opts_error *error)
{
	const struct command *found = NULL;
	unsigned int nr = 0;
	char names[256] = "";

	for (unsigned int i = 0; commands[i]; i++) {
		if (!strcmp(commands[i]->name, word))
			return commands[i];
		if (!*word || strncmp(commands[i]->name, word, strlen(word)))
			continue;
		found = commands[i];
		nr++;
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
			 nr > 1 ? ", " : "", found->name);
	}
	if (nr == 1)
		return found;
	if (nr)
		fail(error, "Type more of the name.", "'%.40s' is ambiguous: %s", word, names);
	else
		fail(error, "'tierctl --help' lists the commands.", "there is no command '%.40s'", word);
	return NULL;
}

int opts_parse(const struct command *cmd, int argc, char **argv, struct globals *globals,
	       struct args *args, struct opts_error *error)
{
	struct getopt_tables t = { .shorts = ":" };
	char hint[80];
	int err;

	memset(error, 0, sizeof(*error));
	memset(args, 0, sizeof(*args));
	args->cmd = cmd;
	snprintf(hint, sizeof(hint), "See 'tierctl help %s'.", cmd->name);
	add_table(&t, global_opts, globals->opt);
	add_table(&t, cmd->opts, args->opt);
	err = walk(&t, argc, argv, hint, error);
	if (err || globals->opt[GLOBAL_HELP].given)
		return err;
	for (int i = optind; i < argc; i++) {
		if (args->nr_words == cmd->max_words || args->nr_words == MAX_WORDS) {
			fail(error, hint, "%s: one argument too many: '%.80s'", cmd->name, argv[i]);
			return -EINVAL;
		}
		if (!*argv[i] || !out_utf8_valid(argv[i], true)) {
			fail(error, hint, "%s: argument %u is %s", cmd->name, args->nr_words + 1,
			     *argv[i] ? "not printable UTF-8" : "empty");
			return -EINVAL;
		}
		args->words[args->nr_words++] = argv[i];
	}
	if (args->nr_words < cmd->min_words) {
		fail(error, hint, "%s needs %s", cmd->name, cmd->args);
		return -EINVAL;
	}
	return 0;
}
