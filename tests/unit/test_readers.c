// SPDX-License-Identifier: GPL-2.0
/*
 * Readers: what may be asked, and both ends of the socket. The program that the
 * server starts is this one: with READER_ENV set it is the command.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libtier/internal.h"
#include "readers.h"

static struct tierctl t;
static struct readers *readers;

static int allowed(const char *line)
{
	char copy[256], *argv[16];
	struct opts_error error;
	int argc = 0;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	return readers_allowed(argc, argv, &error);
}

static void reading_is_allowed(void **state)
{
	static const char *const good[] = {
		"tierctl status", "tierctl --json stats", "tierctl stats -i 1 --count 3 --by policy --json",
		"tierctl -v get hot_threshold_ms", "tierctl hist --node 0 --full", "tierctl doctor -w 0",
		"tierctl metrics", "tierctl list", "tierctl version --features", "tierctl met",
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		if (allowed(good[i]))
			fail_msg("refused: %s", good[i]);
}

/* Every command and option that is not marked, whatever will be added to the tables. */
static void all_else_is_not(void **state)
{
	static const char *const bad[] = {
		"tierctl", "tierctl nosuch", "tierctl st", "tierctl doctor --fix", "tierctl status extra",
		"tierctl metrics --listen 9464", "tierctl metrics --textfile /tmp/x",
		"tierctl metrics --text /tmp/x", "tierctl config --config /etc/shadow",
		"tierctl info /etc/shadow.o", "tierctl doctor --full",
		"tierctl stats --interval", "tierctl stats -- -i 1",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (!allowed(bad[i]))
			fail_msg("allowed: %s", bad[i]);
	for (unsigned int i = 0; tierctl_commands[i]; i++) {
		const struct command *c = tierctl_commands[i];
		char line[128];

		snprintf(line, sizeof(line), "tierctl %s%s", c->name, c->min_words ? " 1" : "");
		assert_int_equal(!allowed(line), c->readers != NULL);
		if (!strcmp(c->group, "Change what is in force"))
			assert_null(c->readers);
	}
}

/* Runs @line as a client, its output in files. The exit code, -1: no daemon. */
static int client(const char *line, char *out, char *err, size_t size)
{
	char copy[256], *argv[MAX_WORDS + 16], paths[2][64];
	int argc = 0, code = -1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	snprintf(paths[0], sizeof(paths[0]), "%s/out", tier_ctx__run_dir(t.ctx));
	snprintf(paths[1], sizeof(paths[1]), "%s/err", tier_ctx__run_dir(t.ctx));
	fflush(stdout);
	int keep[2] = { dup(1), dup(2) };

	assert_non_null(freopen(paths[0], "w+", stdout));
	assert_non_null(freopen(paths[1], "w+", stderr));
	if (!readers_ask(&t, argc, argv, &code))
		code = -1;
	fflush(stdout);
	fflush(stderr);
	dup2(keep[0], 1);
	dup2(keep[1], 2);
	close(keep[0]);
	close(keep[1]);
	assert_true(tier_read_text(paths[0], out, size) >= 0);
	assert_true(tier_read_text(paths[1], err, size) >= 0);
	unlink(paths[0]);
	unlink(paths[1]);
	return code;
}

static void output_and_code_come_through(void **state)
{
	static char out[100000], err[100000];

	/* more than one packet holds */
	assert_int_equal(client("tierctl get 70001", out, err, sizeof(out)), 3);
	assert_int_equal(strlen(out), 70001);
	assert_int_equal(strspn(out, "x"), 70001);
	assert_string_equal(err, "tierctl get 70001");
	assert_int_equal(client("tierctl unload", out, err, sizeof(out)), TIER_CLASS_PERMISSION);
	assert_non_null(strstr(err, "unload is for root alone"));
	assert_string_equal(out, "");
}

/* What is refused is said as any failure is: with --json as the object of the schema. */
static void refusals_are_failures(void **state)
{
	char out[1024], err[1024], line[256] = "tierctl get";

	t.json = true;
	out__free(t.out);
	t.out = out__new(stdout, OUT_JSON, false);
	assert_int_equal(client("tierctl unload --json", out, err, sizeof(out)),
			 TIER_CLASS_PERMISSION);
	assert_string_equal(err, "");
	assert_non_null(strstr(out, "\"error\""));
	assert_non_null(strstr(out, "\"permission\""));
	assert_non_null(strstr(out, "unload is for root alone"));
	t.json = false;
	out__free(t.out);
	t.out = out__new(stdout, OUT_TEXT, false);

	for (int i = 0; i < MAX_WORDS; i++)
		strcat(line, " 0");
	assert_int_equal(client(line, out, err, sizeof(out)), TIER_CLASS_USAGE);
	assert_non_null(strstr(err, "too many"));
	assert_string_equal(out, "");
}

static void a_killed_command_is_named(void **state)
{
	char out[1024], err[1024];

	assert_int_equal(client("tierctl get SIGKILL", out, err, sizeof(out)), TIER_CLASS_FAILED);
	assert_non_null(strstr(err, "signal 9"));
}

static bool within_limits(void)
{
	struct rlimit memory, core;

	return getpriority(PRIO_PROCESS, 0) == 19 && !getrlimit(RLIMIT_AS, &memory) &&
	       !getrlimit(RLIMIT_CORE, &core) && memory.rlim_cur != RLIM_INFINITY && !core.rlim_max;
}

static void commands_have_limits(void **state)
{
	char out[1024], err[1024];

	assert_int_equal(client("tierctl get limits", out, err, sizeof(out)), 0);
}

static void others_are_left_to_themselves(void **state)
{
	int status;
	pid_t pid;

	if (geteuid()) {
		skip();
		return;
	}
	pid = fork();
	if (!pid) {
		char *argv[] = { "tierctl", "status", NULL }, path[128];
		int code = 99;

		if (!freopen("/dev/null", "w", stderr) || setgroups(0, NULL) || setgid(65534) ||
		    setuid(65534))
			_exit(98);
		/* the daemon can be asked, and says no */
		snprintf(path, sizeof(path), "%s/readers", tier_ctx__run_dir(t.ctx));
		if (access(path, W_OK))
			_exit(96);
		_exit(readers_ask(&t, 2, argv, &code) ? code : 97);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 97);
}

static void none_without_daemon(void **state)
{
	char *argv[] = { "tierctl", "status", NULL };
	int code;

	readers__stop(readers);
	readers = NULL;
	assert_false(readers_ask(&t, 2, argv, &code));
}

static int setup(void **state)
{
	static char dir[] = "/tmp/test_readers.XXXXXX";
	struct group *group = getgrgid(getegid());

	t.ctx = tier_ctx__new(NULL);
	t.out = out__new(stdout, OUT_TEXT, false);
	if (!t.ctx || !t.out || !group || !mkdtemp(dir))
		return -1;
	tier_copy(t.ctx->run_dir, sizeof(t.ctx->run_dir), dir);
	return readers__start(&t, "test", group->gr_name, &readers);
}

static int finish(void **state)
{
	readers__stop(readers);
	rmdir(t.ctx->run_dir);
	out__free(t.out);
	tier_ctx__free(t.ctx);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reading_is_allowed),
		cmocka_unit_test(all_else_is_not),
		cmocka_unit_test(output_and_code_come_through),
		cmocka_unit_test(refusals_are_failures),
		cmocka_unit_test(a_killed_command_is_named),
		cmocka_unit_test(commands_have_limits),
		cmocka_unit_test(others_are_left_to_themselves),
		cmocka_unit_test(none_without_daemon),
	};

	if (getenv(READER_ENV) && !strcmp(argv[argc - 1], "SIGKILL"))
		raise(SIGKILL);
	if (getenv(READER_ENV) && !strcmp(argv[argc - 1], "limits"))
		return within_limits() ? 0 : 1;
	if (getenv(READER_ENV)) {
		for (int i = 0; i < argc; i++)
			fprintf(stderr, "%s%s", i ? " " : "", argv[i]);
		for (int i = atoi(argv[argc - 1]); i > 0; i--)
			putchar('x');
		return 3;
	}
	return cmocka_run_group_tests(tests, setup, finish);
}
