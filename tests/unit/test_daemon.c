// SPDX-License-Identifier: GPL-2.0
/*
 * The daemon's parts: its configuration, and what the mover makes of requests. The
 * mover moves real pages of this process; with no node in the top tier the node
 * they are on counts as slow, so no second node is needed.
 */
#include <linux/types.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "libtier/internal.h"
#include "daemon.h"

static struct tierctl t;
static char dir[] = "/tmp/test_daemon.XXXXXX";
static char conf_path[128], drop_dir[128];

static void put(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	assert_int_equal(chmod(path, 0644), 0);
}

static void put_drop(const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", drop_dir, name);
	if (text)
		put(path, text);
	else
		unlink(path);
}

static void conf_resolves(void **state)
{
	static struct conf conf;
	char from[256];

	/* the default file need not be there, a named one must */
	unlink(conf_path);
	assert_int_equal(conf_read(&t, &conf, conf_path, false), TIER_CLASS_OK);
	assert_int_equal(conf.value[CONF_POLL_MS].number, 25);
	assert_string_equal(conf.value[CONF_POLL_MS].from, "default");
	assert_int_equal(conf_read(&t, &conf, conf_path, true), TIER_CLASS_USAGE);

	put(conf_path, "# a comment\n\n  poll_ms =  40 \npolicy=locality\nset.around_bytes = 8192\n");
	put_drop("20-b.conf", "poll_ms = 60\n");
	put_drop("10-a.conf", "poll_ms = 50\nmetrics = 9464\nset.around_bytes = 4096\n");
	put_drop("ignored", "poll_ms = nonsense\n");
	assert_int_equal(conf_read(&t, &conf, conf_path, true), TIER_CLASS_OK);
	assert_int_equal(conf.value[CONF_POLL_MS].number, 60);
	snprintf(from, sizeof(from), "%s/20-b.conf:1", drop_dir);
	assert_string_equal(conf.value[CONF_POLL_MS].from, from);
	assert_string_equal(conf.value[CONF_METRICS].text, "9464");
	snprintf(from, sizeof(from), "%s:4", conf_path);
	assert_string_equal(conf.value[CONF_POLICY].from, from);
	assert_int_equal(conf.nr_set, 1);
	assert_string_equal(conf.set[0].name, "around_bytes");
	assert_string_equal(conf.set[0].value, "4096");
	put_drop("10-a.conf", NULL);
	put_drop("20-b.conf", NULL);
	put_drop("ignored", NULL);
}

static void conf_refuses(void **state)
{
	static const char *const bad[] = {
		"poll_ms\n", "polls = 3\n", "poll_ms = \n", "poll_ms = 0\n", "poll_ms = 1001\n",
		"poll_ms = -1\n", "poll_ms = 99999999999999999999\n", "limit_mbps = 1e3\n",
		"set. = 3\n", "set.x =\n", "= 3\n", "POLL_MS = 30\n", "poll_ms = 30 # late remark\n",
	};
	static struct conf conf;
	char line[1024];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put(conf_path, bad[i]);
		if (conf_read(&t, &conf, conf_path, true) != TIER_CLASS_USAGE)
			fail_msg("taken over: %s", bad[i]);
	}
	memset(line, 'x', sizeof(line) - 1);
	memcpy(line, "policy = ", 9);
	line[sizeof(line) - 1] = '\0';
	put(conf_path, line);
	assert_int_equal(conf_read(&t, &conf, conf_path, true), TIER_CLASS_USAGE);

	put(conf_path, "poll_ms = 30\n");
	assert_int_equal(chmod(conf_path, 0666), 0);
	if (!geteuid())
		assert_int_equal(conf_read(&t, &conf, conf_path, true), TIER_CLASS_PERMISSION);
}

/* A saved status names an object and parameters: root trusts it no more than that. */
static void status_of_others_is_refused(void **state)
{
	struct settings wins = { 0 };
	struct saved saved;

	put(conf_path, "{ \"policy\": \"fixed\", \"params\": { \"hot_threshold_ms\": 77 } }\n");
	assert_int_equal(chmod(conf_path, 0644), 0);
	assert_int_equal(saved_read(&t, &saved, conf_path, &wins), TIER_CLASS_OK);
	assert_string_equal(saved.policy, "fixed");
	assert_int_equal(wins.nr, 1);
	settings_free(&wins);
	saved_free(&saved);
	if (geteuid())
		return;
	for (int mode = 0; mode < 2; mode++) {
		assert_int_equal(chmod(conf_path, mode ? 0664 : 0646), 0);
		assert_int_equal(saved_read(&t, &saved, conf_path, &wins), TIER_CLASS_PERMISSION);
		assert_int_equal(wins.nr, 0);
	}
	assert_int_equal(chmod(conf_path, 0644), 0);
	assert_int_equal(chown(conf_path, 1, 1), 0);
	assert_int_equal(saved_read(&t, &saved, conf_path, &wins), TIER_CLASS_PERMISSION);
	setenv("TIERCTL_ALLOW_UNSAFE_FILES", "1", true);
	assert_int_equal(saved_read(&t, &saved, conf_path, &wins), TIER_CLASS_OK);
	unsetenv("TIERCTL_ALLOW_UNSAFE_FILES");
	assert_int_equal(chown(conf_path, 0, 0), 0);
	settings_free(&wins);
	saved_free(&saved);
}

static struct tier_request request(void *start, unsigned int pages)
{
	return (struct tier_request){
		.start = (__u64)start, .end = (__u64)start + pages * sysconf(_SC_PAGESIZE),
		.time_ns = now_ns(), .tgid = getpid(), .pid = getpid(), .nr_pages = pages,
		.kind = TIER_REQUEST_NEAR,
	};
}

static struct mover_totals run(struct mover *m, const struct tier_request *r, unsigned int nr)
{
	struct mover_totals before, after;

	mover__totals(m, &before);
	for (unsigned int i = 0; i < nr; i++)
		mover__add(m, &r[i]);
	mover__flush(m);
	mover__totals(m, &after);
	after.pages -= before.pages;
	after.moved_pages -= before.moved_pages;
	return after;
}

static void mover_counts_each_page_once(void **state)
{
	long size = sysconf(_SC_PAGESIZE);
	char *area = mmap(NULL, 64 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mover *m = mover__new(0);
	struct tier_request r[2];
	struct mover_totals sum;

	assert_non_null(m);
	assert_true(area != MAP_FAILED);
	madvise(area, 64 * size, MADV_NOHUGEPAGE);
	memset(area, 1, 32 * size);

	/* 32 pages that are there, 32 that are not */
	r[0] = request(area, 64);
	sum = run(m, r, 1);
	if (!sum.moved_pages && sum.pages == 64)
		skip();		/* no move_pages() here, or a node without room */
	assert_int_equal(sum.pages, 64);
	assert_int_equal(sum.moved_pages, 32);

	/* the same page twice in a batch is moved once */
	r[0] = request(area, 16);
	r[1] = request(area + 8 * size, 16);
	sum = run(m, r, 2);
	assert_int_equal(sum.pages, 32);
	assert_int_equal(sum.moved_pages, 24);

	/* one folio: by its first page, counted with all */
	r[0] = request(area, 1);
	r[0].kind = TIER_REQUEST_NODEMASK;
	r[0].nr_pages = 8;
	sum = run(m, r, 1);
	assert_int_equal(sum.pages, 8);
	assert_int_equal(sum.moved_pages, 8);

	/* too old; a process that is not there; a node that cannot be */
	r[0] = request(area, 16);
	r[0].time_ns -= 6000000000ULL;
	assert_int_equal(run(m, r, 1).moved_pages, 0);
	r[0] = request(area, 16);
	r[0].tgid = 0x3fffffff;
	assert_int_equal(run(m, r, 1).moved_pages, 0);
	r[0] = request(area, 16);
	r[0].dst_nid = -1;
	r[1] = request(area, 16);
	r[1].dst_nid = 63;
	sum = run(m, r, 2);
	assert_int_equal(sum.pages, 32);
	assert_int_equal(sum.moved_pages, 0);

	/* all nodes fast: nothing is on the slow tier */
	mover__set_top_nodes(m, ~0ULL);
	r[0] = request(area, 16);
	assert_int_equal(run(m, r, 1).moved_pages, 0);
	mover__free(m);
	munmap(area, 64 * size);
}

static void mover_keeps_its_limit(void **state)
{
	long size = sysconf(_SC_PAGESIZE);
	char *area = mmap(NULL, 512 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mover *m = mover__new(100);
	struct tier_request r = request(area, 511);
	struct mover_totals sum;

	assert_true(m && area != MAP_FAILED);
	madvise(area, 512 * size, MADV_NOHUGEPAGE);
	memset(area, 1, 512 * size);
	sum = run(m, &r, 1);
	if (!sum.moved_pages)
		skip();
	assert_int_equal(sum.pages, 511);
	/* a second's worth has gathered; the loop itself takes less than another */
	assert_in_range(sum.moved_pages, 100, 200);
	mover__free(m);
	munmap(area, 512 * size);
}

static void manager_is_told(void **state)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	char text[64] = "";

	unsetenv("NOTIFY_SOCKET");
	service_notify("READY=1");
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/notify", dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	setenv("NOTIFY_SOCKET", at.sun_path, 1);
	service_notify("READY=%d", 1);
	assert_int_equal(recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT), 7);
	assert_string_equal(text, "READY=1");
	setenv("NOTIFY_SOCKET", "/nowhere/at/all", 1);
	service_notify("READY=1");
	close(fd);
	unlink(at.sun_path);
}

static bool take_over(struct tierctl *d, int code)
{
	struct saved saved = { 0 };
	bool is = keeper_take_over(d, &saved);

	if (is) {
		assert_string_equal(saved.policy, "fixed");
		assert_int_equal(saved.params.nr, 1);
		assert_string_equal(saved.params.set[0].value, "7");
		keeper_taken_over(d, &saved, code);
	}
	saved_free(&saved);
	return is;
}

static void what_failed_is_left_for_the_next_start(void **state)
{
	const char *memo = "{ \"policy\": \"fixed\", \"params\": { \"rate_limit_mbps\": \"7\" } }";
	char dir[] = "/tmp/test_daemon.XXXXXX", path[128];
	struct tierctl d = { 0 };

	d.ctx = tier_ctx__new(NULL);
	d.out = out__new(stdout, OUT_TEXT, false);
	assert_non_null(d.ctx);
	assert_non_null(d.out);
	assert_non_null(mkdtemp(dir));
	tier_copy(d.ctx->run_dir, sizeof(d.ctx->run_dir), dir);

	assert_false(take_over(&d, TIER_CLASS_OK));
	assert_int_equal(tier_memo__write(d.ctx, TIER_MEMO_REATTACH, memo), 0);
	assert_true(take_over(&d, TIER_CLASS_FAILED));
	/* killed before the load: still there as well */
	assert_true(keeper_take_over(&d, &(struct saved){ 0 }));
	assert_true(take_over(&d, TIER_CLASS_OK));
	assert_false(take_over(&d, TIER_CLASS_OK));
	assert_int_equal(tier_memo__write(d.ctx, TIER_MEMO_REATTACH, memo), 0);
	assert_true(take_over(&d, TIER_CLASS_USAGE));
	assert_false(take_over(&d, TIER_CLASS_OK));
	assert_int_equal(tier_memo__write(d.ctx, TIER_MEMO_REATTACH, "{"), 0);
	assert_false(take_over(&d, TIER_CLASS_OK));
	snprintf(path, sizeof(path), "%s/reattach.json", dir);
	assert_int_not_equal(access(path, F_OK), 0);

	assert_int_equal(rmdir(dir), 0);
	out__free(d.out);
	tier_ctx__free(d.ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conf_resolves),
		cmocka_unit_test(conf_refuses),
		cmocka_unit_test(status_of_others_is_refused),
		cmocka_unit_test(mover_counts_each_page_once),
		cmocka_unit_test(mover_keeps_its_limit),
		cmocka_unit_test(manager_is_told),
		cmocka_unit_test(what_failed_is_left_for_the_next_start),
	};
	int failed;

	if (!mkdtemp(dir))
		return 1;
	snprintf(conf_path, sizeof(conf_path), "%s/conf", dir);
	snprintf(drop_dir, sizeof(drop_dir), "%s/conf.d", dir);
	if (mkdir(drop_dir, 0755) || !(t.out = out__new(stdout, OUT_TEXT, false)))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	out__free(t.out);
	unlink(conf_path);
	rmdir(drop_dir);
	rmdir(dir);
	return failed;
}
