// SPDX-License-Identifier: GPL-2.0
/* Probation: what is held against a policy, and the memo that outlives its tierctl. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libtier/internal.h"
#include "probation.h"

static struct tierctl t;

/* What is said against a policy that wanted, moved up and saw come down so many pages. */
static const char *verdict(double old_up, double old_down, __u64 wanted, __u64 up, __u64 down)
{
	static struct probation p;
	const struct moves now = {
		.wanted = 50 + wanted, .promoted = 60 + up, .demoted = 70 + down, .known = true,
	};

	p = (struct probation){
		.promoted_per_s = old_up, .demoted_per_s = old_down, .old.policy = "old",
		.from = { .wanted = 50, .promoted = 60, .demoted = 70, .known = true },
	};
	probation_judge(&p, &now, true);
	return p.why;
}

/* The same of one that moved up so many pages in 60 s, at so many faults a second. */
static const char *idle_verdict(double old_up, double old_down, double old_faults, __u64 up,
				__u64 faults_per_s, bool ended)
{
	static struct probation p;
	const struct moves now = {
		.promoted = 60 + up, .faults = 80 + 60 * faults_per_s,
		.time_ns = 65000000000ULL, .known = true,
	};

	p = (struct probation){
		.promoted_per_s = old_up, .demoted_per_s = old_down, .faults_per_s = old_faults,
		.old.policy = "old",
		.from = { .promoted = 60, .faults = 80, .time_ns = 5000000000ULL, .known = true },
	};
	probation_judge(&p, &now, ended);
	return p.why;
}

static void harm_is_found(void **state)
{
	assert_non_null(strstr(verdict(10, 1, 5000, 100, 0), "do not succeed"));
	assert_non_null(strstr(verdict(100, 10, 5000, 4500, 4000), "thrashes"));
	/* the old one thrashed as well, but not like this */
	assert_non_null(strstr(verdict(1000, 600, 5000, 4500, 4000), "is gain"));
}

static void idleness_is_found(void **state)
{
	assert_string_equal(idle_verdict(100, 10, 500, 3, 500, true),
			    "it promotes next to nothing: 3 pages went up in 60 s; old had 100 a second");
	assert_non_null(strstr(idle_verdict(100, 10, 500, 500, 260, true), "next to nothing"));
	/* there is time left */
	assert_string_equal(idle_verdict(100, 10, 500, 3, 500, false), "");
	/* a tenth of what the old one gained */
	assert_string_equal(idle_verdict(100, 10, 500, 541, 500, true), "");
	/* nothing is touched any more */
	assert_string_equal(idle_verdict(100, 10, 500, 3, 240, true), "");
	/* the old one did little, or what it did came down again */
	assert_string_equal(idle_verdict(10, 0, 500, 0, 500, true), "");
	assert_string_equal(idle_verdict(100, 95, 500, 0, 500, true), "");
	assert_string_equal(idle_verdict(100, 200, 500, 0, 500, true), "");
}

static void good_ones_stay(void **state)
{
	assert_string_equal(verdict(1000, 10, 5000, 4500, 100), "");
	/* too little to tell */
	assert_string_equal(verdict(1000, 10, 900, 10, 0), "");
	assert_string_equal(verdict(1000, 10, 900, 900, 900), "");
	/* no worse than the old one, which thrashed */
	assert_string_equal(verdict(1000, 900, 5000, 4500, 4100), "");
	/* nothing at all, where no time has passed */
	assert_string_equal(verdict(1000, 10, 0, 0, 0), "");
}

/* Counters that were reset meanwhile, or an observer that has gone, tell nothing. */
static void no_evidence_no_verdict(void **state)
{
	struct probation p = { .from = { .wanted = 9000, .promoted = 9000, .known = true } };
	struct moves now = { .wanted = 5000, .promoted = 0, .known = true };

	probation_judge(&p, &now, true);
	assert_string_equal(p.why, "");
	now = (struct moves){ .wanted = 90000, .promoted = 9000, .known = false };
	probation_judge(&p, &now, true);
	assert_string_equal(p.why, "");
}

static void memo_says_all(void **state)
{
	static const char memo[] =
		"{ \"policy\": \"new\", \"map_id\": 42, \"old\": { \"policy\": \"fixed\", \"object\": "
		"\"/nowhere/policy_fixed.bpf.o\", \"observer\": true, \"params\": { \"hot_threshold_ms\": "
		"\"77\" } }, \"promoted_per_s\": 12.5, \"demoted_per_s\": 3, \"faults_per_s\": 7.5, "
		"\"faults\": 110, \"time_ns\": 120, \"wanted_pages\": 100, "
		"\"promoted_pages\": 90, \"demoted_pages\": 8, \"end_ns\": 123456789012345, \"state\": "
		"\"failed\", \"why\": \"it thrashes\" }";
	struct probation p;

	assert_false(probation_read(&t, &p));
	assert_int_equal(tier_memo__write(t.ctx, TIER_MEMO_PROBATION, memo), 0);
	assert_true(probation_read(&t, &p));
	assert_string_equal(p.policy, "new");
	assert_int_equal(p.map_id, 42);
	assert_string_equal(p.old.policy, "fixed");
	/* the object has gone: the name must do */
	assert_string_equal(saved_source(&p.old), "fixed");
	assert_int_equal(p.old.params.nr, 1);
	assert_string_equal(p.old.params.set[0].value, "77");
	assert_true(p.promoted_per_s > 12.4 && p.promoted_per_s < 12.6);
	assert_true(p.faults_per_s > 7.4 && p.faults_per_s < 7.6);
	assert_int_equal(p.from.faults, 110);
	assert_int_equal(p.from.time_ns, 120);
	assert_int_equal(p.from.promoted, 90);
	assert_int_equal(p.end_ns, 123456789012345);
	assert_int_equal(p.state, TRIAL_FAILED);
	assert_string_equal(p.why, "it thrashes");
	probation_free(&p);
	tier_memo__remove(t.ctx, TIER_MEMO_PROBATION);
	assert_false(probation_read(&t, &p));
}

/* Unload takes the module away, and with it what says why the policy was ejected. */
static void exit_record_outlives_the_module(void **state)
{
	static const char text[] =
		"kind bad_verdicts\npolicy nonsense\nerror -22\nmessage no known verdict\n"
		"time_ns 77\nejections 1\n";
	struct tier_status *s;

	if (geteuid() || tier_module_loaded()) {
		skip();
		return;
	}
	assert_int_equal(tier_status__read(t.ctx, &s), 0);
	assert_string_equal(s->exit.kind, "");
	tier_status__free(s);
	assert_int_equal(tier_memo__write(t.ctx, TIER_MEMO_EXIT, text), 0);
	/* what goes with the policy leaves it alone */
	tier_memos_remove(t.ctx);
	assert_int_equal(tier_status__read(t.ctx, &s), 0);
	assert_string_equal(s->exit.kind, "bad_verdicts");
	assert_string_equal(s->exit.policy, "nonsense");
	assert_string_equal(s->exit.message, "no known verdict");
	assert_int_equal(s->exit.error, -EINVAL);
	assert_int_equal(s->exit.time_ns, 77);
	assert_int_equal(s->exit.module[TIER_EV_EJECTIONS], 1);
	tier_status__free(s);
	/* without a module there is nothing to keep */
	tier_exit_keep(t.ctx);
	tier_memo__remove(t.ctx, TIER_MEMO_EXIT);
	assert_int_equal(tier_status__read(t.ctx, &s), 0);
	assert_string_equal(s->exit.kind, "");
	tier_status__free(s);
}

static void one_process_has_a_seat(void **state)
{
	int seat, daemon;

	if (geteuid()) {
		skip();
		return;
	}
	assert_false(tier_seat__taken(t.ctx, TIER_SEAT_PROBATION));
	seat = tier_seat__take(t.ctx, TIER_SEAT_PROBATION);
	assert_true(seat >= 0);
	assert_int_equal(tier_seat__take(t.ctx, TIER_SEAT_PROBATION), -EBUSY);
	assert_true(tier_seat__taken(t.ctx, TIER_SEAT_PROBATION));
	/* the other one is free */
	assert_false(tier_seat__taken(t.ctx, TIER_SEAT_DAEMON));
	daemon = tier_seat__take(t.ctx, TIER_SEAT_DAEMON);
	assert_true(daemon >= 0);
	close(seat);
	assert_false(tier_seat__taken(t.ctx, TIER_SEAT_PROBATION));
	close(daemon);
}

static int setup(void **state)
{
	static char dir[] = "/tmp/test_probation.XXXXXX";

	t.ctx = tier_ctx__new(NULL);
	t.out = out__new(stdout, OUT_TEXT, false);
	if (!t.ctx || !t.out || !mkdtemp(dir))
		return -1;
	tier_copy(t.ctx->run_dir, sizeof(t.ctx->run_dir), dir);
	return 0;
}

static int finish(void **state)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/lock", t.ctx->run_dir);
	unlink(path);
	rmdir(t.ctx->run_dir);
	out__free(t.out);
	tier_ctx__free(t.ctx);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(harm_is_found),
		cmocka_unit_test(idleness_is_found),
		cmocka_unit_test(good_ones_stay),
		cmocka_unit_test(no_evidence_no_verdict),
		cmocka_unit_test(memo_says_all),
		cmocka_unit_test(exit_record_outlives_the_module),
		cmocka_unit_test(one_process_has_a_seat),
	};

	return cmocka_run_group_tests(tests, setup, finish);
}
