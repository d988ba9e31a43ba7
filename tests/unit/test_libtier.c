// SPDX-License-Identifier: GPL-2.0
/* libtier without a kernel of ours: parsing, settings, lock, journal, object metadata. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "libtier/internal.h"

static struct tier_ctx *ctx;
static char run_dir[] = "/tmp/test_libtier.XXXXXX";
static char warnings[4096];

static void on_log(void *data, enum tier_log_level level, const char *line)
{
	size_t len = strlen(warnings);

	if (level == TIER_LOG_WARN)
		snprintf(warnings + len, sizeof(warnings) - len, "%s\n", line);
}

static int setup(void **state)
{
	struct tier_ctx_opts opts = { .log = on_log, .lock_timeout_ms = 100,
				      .allow_unsafe_files = true };

	if (!mkdtemp(run_dir))
		return -1;
	ctx = tier_ctx__new(&opts);
	tier_copy(ctx->run_dir, sizeof(ctx->run_dir), run_dir);
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	tier_ctx__free(ctx);
	snprintf(command, sizeof(command), "rm -rf %s", run_dir);
	return system(command);
}

/* ---- parsing ---- */

static void test_node_lists(void **state)
{
	static const struct {
		const char *text;
		__u64 mask;
		const char *back;
	} good[] = {
		{ "0", 1, "0" },
		{ "0-1", 3, "0-1" },
		{ "0,2-3,63", 1 | 4 | 8 | 1ULL << 63, "0,2-3,63" },
		{ "62-63", 3ULL << 62, "62-63" },
		{ "", 0, "" },
	};
	static const char *const bad[] = { "a", "1-", "3-1", "-1" };
	char back[64];
	__u64 mask;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(tier_parse_list(good[i].text, &mask), 0);
		assert_int_equal(mask, good[i].mask);
		tier_format_list(mask, back, sizeof(back));
		assert_string_equal(back, good[i].back);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(tier_parse_list(bad[i], &mask), -EINVAL);
}

static void test_numbers(void **state)
{
	static const char *const bad[] = { "", " 1", "-1", "+1", "1 ", "1x", "0x", "x", "1.5" };
	__u64 v;

	assert_int_equal(tier_parse_u64("0", &v), 0);
	assert_int_equal(v, 0);
	assert_int_equal(tier_parse_u64("18446744073709551615", &v), 0);
	assert_true(v == UINT64_MAX);
	assert_int_equal(tier_parse_u64("0x1F", &v), 0);
	assert_int_equal(v, 31);
	/* Not octal: what looks like ten is ten. */
	assert_int_equal(tier_parse_u64("010", &v), 0);
	assert_int_equal(v, 10);
	assert_int_equal(tier_parse_u64("18446744073709551616", &v), -ERANGE);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(tier_parse_u64(bad[i], &v), -EINVAL);
}

static void test_lines(void **state)
{
	const char *text = "slow_faults 7\nfaults 9\nfaults_more 11\n";
	__u64 v;

	assert_int_equal(tier_line_value(text, "faults", &v), 0);
	assert_int_equal(v, 9);
	assert_int_equal(tier_line_value(text, "faults_more", &v), 0);
	assert_int_equal(v, 11);
	assert_int_equal(tier_line_value(text, "fault", &v), -ENOENT);
	assert_int_equal(tier_line_value("", "fault", &v), -ENOENT);
}

/* ---- settings ---- */

static struct tier_param_info params[] = {
	{ .name = "hot_threshold_ms", .unit = "ms", .size = 4, .min = 1, .max = 60000 },
	{ .name = "rate_limit_mbps", .unit = "MiB/s", .size = 8, .max = 1000 },
};

static int check(const char *name, const char *value, __u64 *v)
{
	struct tier_setting setting = { name, value };
	unsigned int index;

	tier_clear_error(ctx);
	return tier_params_check(ctx, "fixed", params, ARRAY_SIZE(params), &setting, &index, v);
}

static void test_settings(void **state)
{
	__u64 v;

	assert_int_equal(check("hot_threshold_ms", "1", &v), 0);
	assert_int_equal(check("hot_threshold_ms", "60000", &v), 0);
	assert_int_equal(v, 60000);

	assert_int_equal(check("hot_threshold_ms", "0", &v), -ERANGE);
	assert_int_equal(check("hot_threshold_ms", "60001", &v), -ERANGE);
	assert_int_equal(check("rate_limit_mbps", "99999999999999999999999", &v), -ERANGE);
	assert_non_null(strstr(ctx->hint, "0 to 1000 MiB/s"));
	assert_int_equal(check("hot_threshold_ms", "soon", &v), -EINVAL);
	assert_non_null(strstr(ctx->hint, "1 to 60000 ms"));
	assert_int_equal(ctx->class, TIER_CLASS_USAGE);

	assert_int_equal(check("hot_treshold_ms", "5", &v), -ENOENT);
	assert_non_null(strstr(ctx->hint, "Did you mean hot_threshold_ms?"));
	assert_null(strstr(ctx->hint, "rate_limit"));
	assert_int_equal(check("threshold", "5", &v), -ENOENT);
	assert_non_null(strstr(ctx->hint, "Did you mean hot_threshold_ms?"));
	assert_int_equal(check("zzz", "5", &v), -ENOENT);
	assert_non_null(strstr(ctx->hint, "hot_threshold_ms, rate_limit_mbps"));
}

/* ---- errors ---- */

static void test_error_survives_cleanup(void **state)
{
	struct tier_error_copy copy;

	tier_fail(ctx, TIER_CLASS_PERMISSION, -EPERM, "hint one", "message %d", 1);
	tier_set_detail(ctx, "detail one");
	tier_error_save(ctx, &copy);
	tier_fail(ctx, TIER_CLASS_FAILED, -EIO, NULL, "message 2: %s", ctx->message);
	tier_error_restore(ctx, &copy);
	assert_int_equal(tier_ctx__error(ctx)->class, TIER_CLASS_PERMISSION);
	assert_int_equal(tier_ctx__error(ctx)->err, -EPERM);
	assert_string_equal(tier_ctx__error(ctx)->message, "message 1");
	assert_string_equal(tier_ctx__error(ctx)->hint, "hint one");
	assert_string_equal(tier_ctx__error(ctx)->detail, "detail one");
	tier_clear_error(ctx);
	assert_string_equal(tier_ctx__error(ctx)->detail, "");
}

static void test_verifier_reason(void **state)
{
	const char *log = "0: R1=ctx()\n0: (61) r0 = *(u32 *)(r1 +0)\n"
			  "R0 invalid mem access 'scalar'\n"
			  "processed 3 insns (limit 1000000) max_states_per_insn 0\n";

	tier_clear_error(ctx);
	assert_int_equal(tier_load_failed(ctx, -EACCES, "x.bpf.o", log), -EACCES);
	assert_non_null(strstr(ctx->message, "R0 invalid mem access 'scalar'"));
	assert_null(strstr(ctx->message, "processed"));
	assert_string_equal(ctx->detail, log);
	tier_clear_error(ctx);
	assert_int_equal(tier_load_failed(ctx, -ENOENT, "x.bpf.o", ""), -ENOENT);
	assert_string_equal(tier_ctx__error(ctx)->detail, "");
}

/* ---- lock ---- */

/* A process that holds the lock until it is killed. */
static pid_t holder(bool exclusive)
{
	int fds[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (tier_lock(ctx, exclusive) || write(fds[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &byte, 1), 1);
	close(fds[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* A machine that lacks one thing is told that thing; only kernels stand in for others here. */
static void test_requirements(void **state)
{
	const struct tier_env good = {
		.kernel_release = "6.1.0-test", .root = true, .btf = true, .module_struct_ops = true,
		.numa_balancing = 0, .memory_nodes = 3, .top_nodes = 1, .nr_tiers = 2,
	};
	struct tier_env env = good;

	assert_int_equal(tier_env__require(ctx, &env), 0);

	env.module_struct_ops = false;
	assert_int_equal(tier_env__require(ctx, &env), -ENOTSUP);
	assert_int_equal(tier_ctx__error(ctx)->class, TIER_CLASS_UNSUPPORTED);
	assert_non_null(strstr(tier_ctx__error(ctx)->message, "6.1.0-test"));
	assert_non_null(strstr(tier_ctx__error(ctx)->hint, "6.9"));

	env = good;
	env.btf = false;
	assert_int_equal(tier_env__require(ctx, &env), -ENOTSUP);
	assert_non_null(strstr(tier_ctx__error(ctx)->message, "btf/vmlinux"));

	env = good;
	env.numa_balancing = -1;
	assert_int_equal(tier_env__require(ctx, &env), -ENOTSUP);
	assert_non_null(strstr(tier_ctx__error(ctx)->hint, "CONFIG_NUMA_BALANCING"));

	env = good;
	env.root = false;
	assert_int_equal(tier_env__require(ctx, &env), -EPERM);
	assert_int_equal(tier_ctx__error(ctx)->class, TIER_CLASS_PERMISSION);
}

static void test_lock(void **state)
{
	char name[32];
	pid_t pid = holder(true);

	snprintf(name, sizeof(name), "process %d", pid);
	assert_int_equal(tier_lock(ctx, true), -EAGAIN);
	assert_non_null(strstr(ctx->message, name));
	assert_int_equal(tier_lock(ctx, false), -EAGAIN);
	end(pid);
	/* The kernel lets go of a killed holder's lock. */
	assert_int_equal(tier_lock(ctx, true), 0);
	tier_unlock(ctx);

	pid = holder(false);
	assert_int_equal(tier_lock(ctx, false), 0);
	tier_unlock(ctx);
	assert_int_equal(tier_lock(ctx, true), -EAGAIN);
	end(pid);
}

static void test_run_dir_of_others(void **state)
{
	assert_int_equal(chmod(run_dir, 0777), 0);
	assert_int_equal(tier_lock(ctx, true), -EPERM);
	assert_int_equal(ctx->class, TIER_CLASS_PERMISSION);
	assert_int_equal(chmod(run_dir, 0755), 0);
	assert_int_equal(tier_lock(ctx, true), 0);
	tier_unlock(ctx);
}

/* ---- journal ---- */

static void test_journal(void **state)
{
	struct tier_journal out = { .phase = TIER_PHASE_LOADING, .bpffs_mounted = true }, in;
	struct tier_record *record;

	assert_int_equal(tier_journal_read(ctx, &in), -ENOENT);
	tier_journal_knob(&out, "/proc/x", "1", "3");
	for (unsigned int i = 0; i < TIER_NR_EV; i++)
		out.module_base[i] = UINT64_MAX - i;
	record = tier_journal_record(&out, 10, 0);
	strcpy(record->policy, "fixed");
	strcpy(record->object, "/a \"quoted\" path/\xc3\xa4.bpf.o");
	record->nr_params = 1;
	strcpy(record->params[0].name, "hot_threshold_ms");
	record->params[0].def = 1000;
	assert_int_equal(tier_journal_write(ctx, &out), 0);
	assert_int_equal(tier_journal_read(ctx, &in), 0);
	assert_memory_equal(&in, &out, sizeof(in));

	/* A swap's record stands beside the one in force, and then replaces it. */
	record = tier_journal_record(&out, 11, 10);
	strcpy(record->policy, "mru");
	assert_string_equal(tier_journal_find(&out, 10)->policy, "fixed");
	assert_string_equal(tier_journal_find(&out, 11)->policy, "mru");
	tier_journal_record(&out, 12, 11);
	assert_null(tier_journal_find(&out, 10));
	assert_non_null(tier_journal_find(&out, 11));
	assert_non_null(tier_journal_find(&out, 12));

	assert_int_equal(tier_journal_remove(ctx), 0);
	assert_int_equal(tier_journal_remove(ctx), 0);
	assert_int_equal(tier_journal_read(ctx, &in), -ENOENT);
}

static void write_state(const char *text)
{
	char path[96];
	FILE *file;

	snprintf(path, sizeof(path), "%s/state.json", run_dir);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* Killed between the write and the rename: the half that has no name yet goes. */
static void test_journal_litter(void **state)
{
	char path[96];
	FILE *file;

	assert_false(tier_journal_litter(ctx, false));
	snprintf(path, sizeof(path), "%s/state.json.new", run_dir);
	file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
	assert_true(tier_journal_litter(ctx, false));
	assert_true(tier_recover_needed(ctx));
	assert_int_equal(tier_recover(ctx), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_false(tier_journal_litter(ctx, false));
}

static void test_journal_damaged(void **state)
{
	struct tier_journal journal;

	write_state("{ \"version\": 1, \"phase\": ");
	assert_int_equal(tier_journal_read(ctx, &journal), -EBADMSG);
	assert_int_not_equal(ctx->class, TIER_CLASS_OK);
	write_state("{ \"version\": 2 }");
	assert_int_equal(tier_journal_read(ctx, &journal), -EPROTO);
	/* Of before the last boot: nothing of what it says holds any more. */
	write_state("{ \"version\": 1, \"boot_id\": \"other\", \"phase\": \"active\" }");
	assert_int_equal(tier_journal_read(ctx, &journal), -ENOENT);
	assert_int_equal(tier_journal_remove(ctx), 0);
}

static void test_knobs(void **state)
{
	struct tier_journal journal = { .phase = TIER_PHASE_ACTIVE };
	struct tier_changes changes = { 0 };
	char path[3][64], text[16];

	for (int i = 0; i < 3; i++) {
		snprintf(path[i], sizeof(path[i]), "%s/knob%d", run_dir, i);
		fclose(fopen(path[i], "w"));
		tier_write_text(path[i], "1\n");
		tier_journal_knob(&journal, path[i], "1", "3");
	}
	assert_int_equal(tier_knob_set(ctx, &journal, path[0]), 0);
	assert_int_equal(tier_knob_set(ctx, &journal, "/not/ours"), 0);
	tier_read_text(path[0], text, sizeof(text));
	assert_string_equal(text, "3");
	tier_write_text(path[1], "2\n");	/* someone else's wish, to be left alone */

	warnings[0] = '\0';
	tier_knobs_restore(ctx, &journal, &changes);
	tier_read_text(path[0], text, sizeof(text));
	assert_int_equal(text[0], '1');
	tier_read_text(path[1], text, sizeof(text));
	assert_int_equal(text[0], '2');
	assert_non_null(strstr(warnings, "knob1 is now 2"));
	assert_null(strstr(warnings, "knob0"));
	assert_null(strstr(warnings, "knob2"));
	assert_int_equal(changes.nr, 1);
	assert_string_equal(changes.change[0].what, path[0]);
}

/* ---- metadata ---- */

static void test_inspect(void **state)
{
	const char *dir = getenv("TIER_BPF_DIR");
	struct tier_policy_info *info;
	bool threshold = false;
	char path[256];

	snprintf(path, sizeof(path), "%s/policy_fixed.bpf.o", dir ? dir : "build/bpf");
	if (access(path, R_OK)) {
		print_message("no %s: build the BPF objects first\n", path);
		skip();
	}
	assert_int_equal(tier_policy__inspect(ctx, path, &info), 0);
	assert_string_equal(info->name, "fixed");
	assert_int_equal(info->abi_version, TIER_ABI_VERSION);
	assert_int_equal(info->nr_ops, 1);
	assert_string_equal(info->ops[0], "promote");
	assert_true(info->nr_progs >= 3);
	for (unsigned int i = 0; i < info->nr_params; i++) {
		const struct tier_param_info *p = &info->params[i];

		assert_true(p->def >= p->min && p->def <= p->max);
		assert_true(strlen(p->help) > 0);
		if (strcmp(p->name, "hot_threshold_ms"))
			continue;
		threshold = true;
		assert_string_equal(p->unit, "ms");
		assert_int_equal(p->def, 1000);
	}
	assert_true(threshold);
	tier_policy_info__free(info);

	snprintf(path, sizeof(path), "%s/trace.bpf.o", dir ? dir : "build/bpf");
	assert_int_equal(tier_policy__inspect(ctx, path, &info), -ENOEXEC);
	assert_int_equal(ctx->class, TIER_CLASS_USAGE);
	assert_int_equal(tier_policy__inspect(ctx, "./nosuch.bpf.o", &info), -ENOENT);
	assert_int_equal(tier_policy__inspect(ctx, "nosuch", &info), -ENOENT);
	assert_int_equal(tier_policy__inspect(ctx, "/proc/self/exe", &info), -ENOEXEC);
	assert_int_equal(tier_policy__inspect(ctx, "/dev/null", &info), -EINVAL);
}

static void test_shares(void **state)
{
	unsigned int hundredths;

	assert_int_equal(tier_parse_share("5%", &hundredths), 0);
	assert_int_equal(hundredths, 500);
	assert_int_equal(tier_parse_share("0.25%", &hundredths), 0);
	assert_int_equal(hundredths, 25);
	assert_int_equal(tier_parse_share("0.3%", &hundredths), 0);
	assert_int_equal(hundredths, 30);
	assert_int_equal(tier_parse_share("100%", &hundredths), 0);
	assert_int_equal(hundredths, 10000);
	assert_int_equal(tier_parse_share("100.01%", &hundredths), -ERANGE);
	assert_int_equal(tier_parse_share("0%", &hundredths), -ERANGE);
	assert_int_equal(tier_parse_share("0.001%", &hundredths), -EINVAL);
	assert_int_equal(tier_parse_share("5", &hundredths), -EINVAL);
	assert_int_equal(tier_parse_share("%", &hundredths), -EINVAL);
	assert_int_equal(tier_parse_share("-5%", &hundredths), -EINVAL);
	assert_int_equal(tier_parse_share("5%%", &hundredths), -EINVAL);
	assert_int_equal(tier_parse_share("5.%", &hundredths), -EINVAL);
	assert_int_equal(tier_parse_share("99999999999%", &hundredths), -EINVAL);

	/* MB/s to MiB/s; never 0, which would be no limit; no overflow */
	assert_int_equal(tier_share_mibps(20480, 1000), 1953);
	assert_int_equal(tier_share_mibps(1, 1), 1);
	assert_int_equal(tier_share_mibps(UINT64_MAX / 1000000, 10000), (UINT64_MAX / 1000000 * 1000000) >> 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_node_lists),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_error_survives_cleanup),
		cmocka_unit_test(test_verifier_reason),
		cmocka_unit_test(test_requirements),
		cmocka_unit_test(test_lock),
		cmocka_unit_test(test_run_dir_of_others),
		cmocka_unit_test(test_journal),
		cmocka_unit_test(test_journal_litter),
		cmocka_unit_test(test_journal_damaged),
		cmocka_unit_test(test_knobs),
		cmocka_unit_test(test_inspect),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
