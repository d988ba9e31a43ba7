// SPDX-License-Identifier: GPL-2.0
/* The command tables and their parser: every option of every command is tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tierctl.h"

static const char *const words[] = { "one", "two", NULL };

enum { FLAG, TEXT, LIST, NUMBER, TIME, CHOICE };
static const struct opt opts[] = {
	[FLAG] = { "flag", 'f', OPT_FLAG, NULL, "", 0, 0, NULL },
	[TEXT] = { "text", 't', OPT_TEXT, "T", "", 0, 0, NULL },
	[LIST] = { "list", 'l', OPT_LIST, "L", "", 0, 0, NULL },
	[NUMBER] = { "number", 'n', OPT_NUMBER, "N", "", 3, 300, NULL },
	[TIME] = { "time", 0, OPT_DURATION, "T", "", 100, 60000, NULL },
	[CHOICE] = { "choice", 'c', OPT_CHOICE, "C", "", 0, 0, words },
	{ 0 },
};
static const struct command cmd = {
	.name = "try", .args = "WORD [WORD]", .opts = opts, .min_words = 1, .max_words = 2,
};

static struct args args;
static struct globals globals;
static struct opts_error error;

#define MAX_ARGV 90

static int parse_command(const struct command *c, const char *const *list)
{
	char *argv[MAX_ARGV];
	int argc = 0;

	for (; list[argc]; argc++)
		argv[argc] = (char *)list[argc];
	argv[argc] = NULL;
	memset(&globals, 0, sizeof(globals));
	return opts_parse(c, argc, argv, &globals, &args, &error);
}

#define parse(...) parse_command(&cmd, (const char *const[]){ "try", __VA_ARGS__, NULL })

static void values(void **state)
{
	assert_int_equal(parse("w", "-f", "-t", "x", "--number=0x10", "--time", "1.5", "-c", "two",
			       "-l", "a", "--list=b", "--json", "-vv"), 0);
	assert_true(args.opt[FLAG].given);
	assert_string_equal(args.opt[TEXT].text, "x");
	assert_int_equal(args.opt[NUMBER].number, 16);
	assert_int_equal(args.opt[TIME].number, 1500);
	assert_int_equal(args.opt[CHOICE].number, 1);
	assert_int_equal(args.opt[LIST].nr, 2);
	assert_string_equal(args.opt[LIST].list[1], "b");
	assert_int_equal(args.nr_words, 1);
	assert_true(globals.opt[GLOBAL_JSON].given);
	assert_int_equal(globals.opt[GLOBAL_VERBOSE].number, 2);
	/* The shortest unique beginning of a long name will do. */
	assert_int_equal(parse("w", "--num=5"), 0);
	assert_int_equal(args.opt[NUMBER].number, 5);
	/* After -- nothing is an option. */
	assert_int_equal(parse("--", "-f"), 0);
	assert_false(args.opt[FLAG].given);
	assert_string_equal(args.words[0], "-f");
}

static void times(void **state)
{
	static const struct {
		const char *text;
		int err;
		__u64 ms;
	} cases[] = {
		{ "1", 0, 1000 }, { "250ms", 0, 250 }, { "0.5", 0, 500 }, { "1min", 0, 60000 },
		{ "60s", 0, 60000 }, { "100ms", 0, 100 }, { "99ms", -EINVAL, 0 },
		{ "60.001", -EINVAL, 0 }, { "2min", -EINVAL, 0 }, { "1h", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 }, { "+1", -EINVAL, 0 }, { " 1", -EINVAL, 0 }, { "nan", -EINVAL, 0 },
		{ "inf", -EINVAL, 0 }, { "1e999", -EINVAL, 0 }, { "0x1", -EINVAL, 0 },
		{ "1d", -EINVAL, 0 }, { "s", -EINVAL, 0 }, { "1 s", -EINVAL, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int err = parse("w", "--time", cases[i].text);

		if (err != cases[i].err)
			fail_msg("--time '%s' gives %d", cases[i].text, err);
		if (!err)
			assert_int_equal(args.opt[TIME].number, cases[i].ms);
		else
			assert_non_null(strstr(error.message, "--time"));
	}
}

static void refusals(void **state)
{
	assert_int_equal(parse("w", "--nosuch"), -EINVAL);
	assert_non_null(strstr(error.message, "--nosuch"));
	assert_int_equal(parse("w", "-x"), -EINVAL);
	assert_non_null(strstr(error.message, "-x"));
	assert_int_equal(parse("w", "--flag=1"), -EINVAL);
	assert_non_null(strstr(error.message, "--flag takes no value"));
	assert_int_equal(parse("w", "--fla=1"), -EINVAL);
	assert_non_null(strstr(error.message, "--flag takes no value"));
	/* --no-color and --number both begin with --n */
	assert_int_equal(parse("w", "--n"), -EINVAL);
	assert_non_null(strstr(error.message, "ambiguous"));
	assert_non_null(strstr(error.message, "--number"));
	assert_non_null(strstr(error.message, "--no-color"));
	assert_int_equal(parse("w", "--choice", "three"), -EINVAL);
	assert_non_null(strstr(error.message, "one, two"));
	assert_int_equal(parse("-f"), -EINVAL);
	assert_non_null(strstr(error.message, "WORD"));
	assert_int_equal(parse("a", "b", "c"), -EINVAL);
	assert_non_null(strstr(error.message, "'c'"));
	assert_int_equal(parse("a", ""), -EINVAL);
	assert_int_equal(parse("a\xff"), -EINVAL);
	assert_true(strlen(error.hint) > 0);
}

static void globals_stop_at_command(void **state)
{
	char *argv[] = { "tierctl", "-j", "stats", "--count", "3", NULL };
	int rest;

	memset(&globals, 0, sizeof(globals));
	assert_int_equal(opts_globals(5, argv, &globals, &rest, &error), 0);
	assert_int_equal(rest, 2);
	assert_true(globals.opt[GLOBAL_JSON].given);
	argv[1] = "--jsonx";
	assert_int_equal(opts_globals(5, argv, &globals, &rest, &error), -EINVAL);
	assert_non_null(strstr(error.message, "--jsonx"));
}

static void prefixes(void **state)
{
	static const struct command a = { .name = "stats" }, b = { .name = "status" },
				    c = { .name = "set" };
	const struct command *const table[] = { &a, &b, &c, NULL };

	assert_ptr_equal(opts_command(table, "stats", &error), &a);
	assert_ptr_equal(opts_command(table, "se", &error), &c);
	assert_null(opts_command(table, "stat", &error));
	assert_non_null(strstr(error.message, "stats, status"));
	assert_null(strstr(error.message, "set"));
	assert_null(opts_command(table, "", &error));
	assert_null(opts_command(table, "statsx", &error));
}

/* What is wrong for every option that takes a value, whatever its kind. */
static void try_bad(const struct command *c, const struct opt *o)
{
	static char huge[8192];
	char option[64];
	const char *bad[] = { "", "\xff\xfe", "a\033[31m", huge };

	memset(huge, '9', sizeof(huge) - 1);
	snprintf(option, sizeof(option), "--%s", o->name);
	assert_int_equal(parse_command(c, (const char *const[]){ c->name, option, NULL }), -EINVAL);
	assert_non_null(strstr(error.message, option));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		bool free_text = o->kind == OPT_TEXT || o->kind == OPT_LIST;
		int err;

		if (bad[i] == huge && free_text)
			continue;
		err = parse_command(c, (const char *const[]){ c->name, option, bad[i], NULL });
		if (err != -EINVAL || !strstr(error.message, option) ||
		    !out_utf8_valid(error.message, true))
			fail_msg("%s %s '%.20s': %d, %s", c->name, option, bad[i], err, error.message);
	}
	if (o->kind == OPT_NUMBER || o->kind == OPT_DURATION) {
		static const char *const numbers[] = { "-1", "1x", "0x", "99999999999999999999" };

		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
			int err = parse_command(c, (const char *const[]){ c->name, option, numbers[i],
									   NULL });

			if (err != -EINVAL || !strstr(error.message, option))
				fail_msg("%s %s %s: %d, %s", c->name, option, numbers[i], err,
					 error.message);
		}
	}
}

static const char *good_value(const struct opt *o, char *buf, size_t size)
{
	if (o->kind == OPT_CHOICE)
		return o->choices[0];
	if (o->kind == OPT_NUMBER || o->kind == OPT_DURATION)
		snprintf(buf, size, "%llu%s", (unsigned long long)o->min,
			 o->kind == OPT_DURATION ? "ms" : "");
	else
		snprintf(buf, size, "a=1");
	return buf;
}

static void try_twice(const struct command *c, const struct opt *o)
{
	const char *list[MAX_ARGV] = { c->name };
	char option[64], value[32];
	unsigned int nr = 1;

	snprintf(option, sizeof(option), "--%s", o->name);
	for (unsigned int i = 0; i < 2; i++) {
		list[nr++] = option;
		list[nr++] = good_value(o, value, sizeof(value));
	}
	for (unsigned int i = 0; i < c->min_words; i++)
		list[nr++] = "word";
	assert_int_equal(parse_command(c, list), o->kind == OPT_LIST ? 0 : -EINVAL);
	if (o->kind != OPT_LIST)
		assert_non_null(strstr(error.message, option));
}

static void every_option_of_every_command(void **state)
{
	unsigned int tried = 0;

	for (unsigned int i = 0; tierctl_commands[i]; i++)
		for (const struct opt *o = tierctl_commands[i]->opts; o && o->name; o++) {
			if (o->kind == OPT_FLAG || o->kind == OPT_COUNT)
				continue;
			try_bad(tierctl_commands[i], o);
			try_twice(tierctl_commands[i], o);
			tried++;
		}
	assert_true(tried >= 3);
}

static void check_table(const struct command *c)
{
	unsigned int nr = 0;

	assert_non_null(c->run);
	assert_non_null(c->group);
	assert_true(strlen(c->name) <= 11 && strlen(c->summary) > 10 && strlen(c->doc) > 40);
	assert_true(!c->min_words || c->args);
	for (const struct opt *o = c->opts; o && o->name; o++, nr++) {
		assert_true(strlen(o->help) > 5);
		assert_true((o->kind == OPT_FLAG || o->kind == OPT_COUNT) == !o->value);
		assert_true((o->kind == OPT_CHOICE) == (o->choices != NULL));
		for (const struct opt *g = global_opts; g->name; g++) {
			assert_string_not_equal(o->name, g->name);
			assert_true(!o->letter || o->letter != g->letter);
		}
		for (const struct opt *p = c->opts; p < o; p++) {
			assert_string_not_equal(o->name, p->name);
			assert_true(!o->letter || o->letter != p->letter);
		}
	}
	assert_true(nr <= MAX_OPTS);
}

static void tables(void **state)
{
	for (unsigned int i = 0; tierctl_commands[i]; i++) {
		check_table(tierctl_commands[i]);
		for (unsigned int j = 0; j < i; j++)
			assert_string_not_equal(tierctl_commands[i]->name, tierctl_commands[j]->name);
	}
}

static char *printed(void (*print)(FILE *, const struct command *const *))
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	print(to, tierctl_commands);
	fclose(to);
	return text;
}

/* Help, man page and table cannot disagree: all rows are in both, 80 columns hold. */
static void help_is_whole(void **state)
{
	char *help = printed(help_overview), *man = printed(help_man);

	for (unsigned int i = 0; tierctl_commands[i]; i++) {
		assert_non_null(strstr(help, tierctl_commands[i]->name));
		assert_non_null(strstr(man, tierctl_commands[i]->name));
	}
	for (unsigned int i = 0; tierctl_exit_codes[i]; i++) {
		assert_non_null(strstr(help, tierctl_exit_codes[i]));
		assert_non_null(strstr(man, tierctl_exit_codes[i]));
	}
	for (char *line = strtok(help, "\n"); line; line = strtok(NULL, "\n"))
		if (strlen(line) > 80)
			fail_msg("help line of %zu columns: %s", strlen(line), line);
	free(help);
	free(man);
	for (unsigned int i = 0; tierctl_commands[i]; i++) {
		size_t size;
		FILE *to = open_memstream(&help, &size);

		help_command(to, tierctl_commands[i]);
		fclose(to);
		for (char *line = strtok(help, "\n"); line; line = strtok(NULL, "\n"))
			if (strlen(line) > 80)
				fail_msg("%s: help line of %zu columns: %s", tierctl_commands[i]->name,
					 strlen(line), line);
		free(help);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),
		cmocka_unit_test(times),
		cmocka_unit_test(refusals),
		cmocka_unit_test(globals_stop_at_command),
		cmocka_unit_test(prefixes),
		cmocka_unit_test(every_option_of_every_command),
		cmocka_unit_test(tables),
		cmocka_unit_test(help_is_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
