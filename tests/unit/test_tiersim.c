// SPDX-License-Identifier: GPL-2.0
/*
 * The simulator tiersim: mode 2's edges, scanner, reclaim, whole runs against
 * invariants and against what the lab measured, and real bytecode in place of
 * the model. The sources are included: their inner functions are under test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../bench/tiersim/machine.c"
#include "../bench/tiersim/measure.c"
#include "../bench/tiersim/mode2.c"
#include "../bench/tiersim/policy.c"
#include "../bench/tiersim/reclaim.c"
#include "../bench/tiersim/scan.c"
#include "../bench/tierload_dist.c"

static struct ts_options hotcold(void)
{
	return (struct ts_options){
		.workload = "hotcold", .kind = TL_HOTCOLD, .pages = 65536, .hot_pages = 4096,
		.folio_pages = 1, .hot_share = 0.9, .theta = 0.99, .move_s = 30, .scatter = true,
		.rate = 105000, .seconds = 40, .seed = 1,
		.fast_pages = 65536, .used_pages = 8960, .min_wmark_percent = 5,
		.kswapd_pages_per_s = 50000,
		.scan_period_ms = 1000, .scan_min_ms = 1000, .scan_max_ms = 60000,
		.scan_size_mib = 256, .scan_pte_ns = 700, .cpu_share = 0.45,
		.stamp_wrap_ms = 1u << 21, .hot_threshold_ms = 1000, .rate_limit_mbps = 65536,
		.fast_ns = 100, .slow_ns = 250, .fault_ns = 1000, .migrate_ns = 3000,
	};
}

/* Runs to the end and keeps the machine for a look inside. */
static void run_named(struct ts_machine *m, const struct ts_options *opt, const char *name)
{
	struct ts_decider *d = ts_builtin_open(name, opt);

	assert_non_null(d);
	assert_int_equal(ts_run(m, opt, d), 0);
	m->decider = NULL;
	ts_decider_close(d);
}

/* ---- mode 2 ---- */

static enum tier_decision fault_mode2(struct ts_mode2 *s, uint32_t now_ms, uint32_t latency_ms)
{
	const struct tier_fault f = { .now_ms = now_ms, .latency_ms = latency_ms, .nr_pages = 1 };

	return ts_mode2_decide(s, &f);
}

static void test_mode2_threshold(void **state)
{
	struct ts_options opt = hotcold();
	struct ts_mode2 s;
	uint32_t now = 1000;
	int i;

	ts_mode2_init(&s, &opt);
	/* within the first interval the reference counts, and strictly */
	assert_int_equal(fault_mode2(&s, now, 999), TIER_PROMOTE_HOT);
	assert_int_equal(fault_mode2(&s, now, 1000), TIER_REJECT_COLD);
	/* an interval ends only after more than its length; few candidates: a step up */
	assert_int_equal(fault_mode2(&s, 60000, 1000), TIER_REJECT_COLD);
	assert_int_equal(fault_mode2(&s, 60001, 1124), TIER_PROMOTE_HOT);
	assert_int_equal(s.threshold_ms, 1125);
	for (now = 60001, i = 0; i < 20; i++) {
		now += 60001;
		fault_mode2(&s, now, 100000);
	}
	assert_int_equal(s.threshold_ms, 2000);
	/* plenty of room: up it goes, and the threshold starts afresh */
	assert_int_equal(ts_mode2_decide(&s, &(struct tier_fault){
		.now_ms = now, .latency_ms = 5000, .nr_pages = 1, .flags = TIER_FAULT_ROOM }),
		TIER_PROMOTE_ROOM);
	assert_int_equal(s.threshold_ms, 0);
}

static void test_mode2_too_many(void **state)
{
	struct ts_options opt = hotcold();
	struct ts_mode2 s;
	int i;

	opt.rate_limit_mbps = 1;	/* 256 pages/s, 15360 an interval */
	ts_mode2_init(&s, &opt);
	for (i = 0; i < 20; i++) {
		s.candidates += 16897;	/* above 110 % */
		fault_mode2(&s, (i + 1) * 60001, 100000);
	}
	assert_int_equal(s.threshold_ms, 125);
	s.candidates += 15360;		/* within the band: stays */
	fault_mode2(&s, 21 * 60001, 100000);
	assert_int_equal(s.threshold_ms, 125);
}

static void test_mode2_rate(void **state)
{
	struct ts_options opt = hotcold();
	struct ts_mode2 s;
	int i, promoted = 0;

	opt.rate_limit_mbps = 1;
	ts_mode2_init(&s, &opt);
	/* the candidate that opens a window is not counted in it */
	for (i = 0; i < 1000; i++)
		promoted += fault_mode2(&s, 5000, 0) == TIER_PROMOTE_HOT;
	assert_int_equal(promoted, 256);
	assert_int_equal(fault_mode2(&s, 6000, 0), TIER_REJECT_RATE);
	assert_int_equal(fault_mode2(&s, 6001, 0), TIER_PROMOTE_HOT);
	assert_int_equal(s.candidates, 1002);
}

/* ---- scanner ---- */

static void open_machine(struct ts_machine *m, const struct ts_options *opt)
{
	memset(m, 0, sizeof(*m));
	m->opt = opt;
	m->decider = ts_builtin_open("mode2", opt);
	assert_non_null(m->decider);
	assert_int_equal(init(m), 0);
}

static void close_machine(struct ts_machine *m)
{
	ts_decider_close(m->decider);
	ts_machine_free(m);
}

static void test_scan_budget(void **state)
{
	struct ts_options opt = hotcold();
	struct ts_machine m;
	struct ts_proc *p = &m.proc[0];
	int i;

	opt.scan_size_mib = 64;
	open_machine(&m, &opt);
	m.t_ms = 1000;
	assert_int_equal(scan_work(&m, p), 0);
	assert_int_equal(m.count.ptes, 16384);
	assert_int_equal(p->offset, 16384);
	assert_true(m.state[16383] & TS_PROTNONE);
	assert_false(m.state[16384] & TS_PROTNONE);
	for (i = 0; i < 3; i++)
		scan_work(&m, p);
	/* the area ends with the budget: the pass ends with the next run */
	assert_int_equal(p->scan_seq, 0);
	scan_work(&m, p);
	assert_int_equal(p->scan_seq, 1);
	assert_int_equal(m.count.ptes, 65536);
	/* a page that nobody touched keeps its stamp; what is marked costs no budget */
	m.t_ms = 9000;
	m.state[20000] &= ~TS_PROTNONE;
	scan_work(&m, p);
	assert_int_equal(m.count.ptes, 65537);
	assert_int_equal(m.stamp_ms[20000], ts_now_ms(&m));
	assert_int_equal(m.stamp_ms[19999], (uint32_t)(ts_now_ms(&m) - 8000));
	close_machine(&m);
}

static void test_scan_pace(void **state)
{
	struct ts_options opt = hotcold();
	struct ts_machine m;
	struct ts_proc *p = &m.proc[0];
	uint64_t first = 0, second = 0;

	opt.scan_size_mib = 16;
	opt.cpu_share = 0.5;
	open_machine(&m, &opt);
	for (m.t_ms = 4; m.t_ms < 20000 && !second; m.t_ms += 4) {
		ts_scan_tick(&m, p);
		if (m.count.ptes == 4096 && !first)
			first = m.t_ms;
		if (m.count.ptes == 8192)
			second = m.t_ms;
	}
	/* a second of CPU time is two on the clock; the pause is 32 x 4096 x 0.7 us more */
	assert_in_range(first, 2000, 2030);
	assert_in_range(second - first, 2150, 2250);
	close_machine(&m);
}

static void test_scan_slows_down(void **state)
{
	struct ts_options opt = hotcold();
	struct ts_machine m;
	struct ts_proc *p = &m.proc[0];
	int i;

	open_machine(&m, &opt);
	m.t_ms = 5000;
	ts_scan_promoted(&m, p);	/* no pass completed yet */
	assert_int_equal(p->period_ms, 1000);
	for (i = 0; i < 10; i++) {
		m.t_ms += 5000;
		p->scan_seq++;
		ts_scan_promoted(&m, p);
		ts_scan_promoted(&m, p);	/* once a pass */
	}
	/* 60 s over two windows: the area and what else a process has */
	assert_int_equal(p->period_ms, 30000);
	close_machine(&m);
}

/* ---- reclaim ---- */

static void test_reclaim_takes_the_cold(void **state)
{
	struct ts_options opt = hotcold();
	struct ts_machine m;
	uint32_t f, hot_left = 0, cold_left = 0;

	open_machine(&m, &opt);
	for (f = 0; f < 50000; f++)
		promote(&m, f);
	assert_int_equal(m.count.promotions, 50000);
	for (f = 50000; f < 65536 && !m.kswapd.awake; f++)
		promote(&m, f);
	assert_true(m.kswapd.awake);
	assert_int_equal(m.count.failed_promotions, 1);
	/* pages 0..9999 are in use all the time, and kswapd has much to do */
	m.promo_wmark = m.free_pages + 20000;
	for (m.t_ms = 4; m.kswapd.awake && m.t_ms < 10000; m.t_ms += 4) {
		for (f = 0; f < 10000; f++)
			m.state[f] |= TS_YOUNG;
		ts_kswapd_tick(&m);
	}
	assert_false(m.kswapd.awake);
	for (f = 0; f < 10000; f++)
		hot_left += m.state[f] & TS_FAST;
	for (; f < 50000; f++)
		cold_left += m.state[f] & TS_FAST;
	assert_int_equal(hot_left, 10000);
	assert_true(cold_left < 25000);
	close_machine(&m);
}

static void test_reclaim_asks_again(void **state)
{
	struct ts_options opt = hotcold();
	struct ts_machine m;
	uint32_t f;

	open_machine(&m, &opt);
	for (f = 0; f < 1000; f++)
		promote(&m, f);
	age(&m);
	age(&m);
	/* all are in the oldest generation now, and one was used since */
	m.state[0] |= TS_YOUNG;
	m.promo_wmark = m.free_pages + 10;
	ts_kswapd_wake(&m);
	for (m.t_ms = 4; m.kswapd.awake && m.t_ms < 1000; m.t_ms += 4)
		ts_kswapd_tick(&m);
	assert_true(m.state[0] & TS_FAST);
	assert_false(m.state[1] & TS_FAST);
	assert_in_range(m.count.demotions, 11, 200);
	close_machine(&m);
}

/* ---- whole runs ---- */

static void check_books(const struct ts_machine *m)
{
	uint64_t fast = 0, listed = 0, fresh = 0;
	uint8_t *seen = calloc(m->opt->fast_pages + m->opt->pages, 1);
	uint32_t f;
	int g;

	for (f = 0; f < m->folios; f++) {
		if (m->state[f] & TS_FAST)
			fast += m->folio_pages;
		else
			fresh += !seen[m->pfn[f]]++;	/* slow frames belong to one page each */
	}
	for (g = 0; g < TS_MAX_NR_GENS; g++)
		listed += m->lru.nr[g] * m->folio_pages;
	free(seen);
	assert_int_equal(fast, m->count.promotions - m->count.demotions);
	assert_int_equal(fast, listed);
	assert_int_equal(fresh, m->folios - fast / m->folio_pages);
	assert_int_equal(m->free_pages, m->opt->fast_pages - m->opt->used_pages - (int64_t)fast);
	assert_true(m->count.hint_faults * m->folio_pages <= m->count.ptes);
}

static void test_run_repeats(void **state)
{
	struct ts_options opt = hotcold();
	struct ts_machine a, b, c;

	opt.seconds = 20;
	run_named(&a, &opt, "mode2");
	run_named(&b, &opt, "mode2");
	opt.seed = 2;
	run_named(&c, &opt, "mode2");
	assert_memory_equal(&a.count, &b.count, sizeof(a.count));
	assert_memory_equal(a.sample, b.sample, a.samples * sizeof(*a.sample));
	assert_true(memcmp(&a.count, &c.count, sizeof(a.count)) != 0);
	ts_machine_free(&a);
	ts_machine_free(&b);
	ts_machine_free(&c);
}

static void test_run_books(void **state)
{
	const enum tl_kind kinds[] = { TL_HOTCOLD, TL_ZIPF, TL_MOVING, TL_SCANMIX, TL_UNIFORM };
	struct ts_options opt = hotcold();
	struct ts_machine m;
	size_t i;

	opt.used_pages = 40000;		/* kswapd gets work */
	opt.move_s = 10;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		opt.kind = kinds[i];
		run_named(&m, &opt, "mode2");
		check_books(&m);
		if (opt.kind != TL_SCANMIX)
			assert_true(m.count.demotions > 0);
		ts_machine_free(&m);
	}
	opt.kind = TL_HOTCOLD;
	opt.folio_pages = TS_HUGE_PAGES;
	run_named(&m, &opt, "mode2");
	check_books(&m);
	ts_machine_free(&m);
	opt.folio_pages = 1;
	opt.two = true;
	run_named(&m, &opt, "mode2");
	check_books(&m);
	ts_machine_free(&m);
}

static void test_run_oracle(void **state)
{
	struct ts_options opt = hotcold();
	struct ts_machine m;

	opt.kind = TL_ZIPF;
	run_named(&m, &opt, "oracle");
	/* fills up with the best, to a watermark step below the bound, and moves nothing back */
	assert_true(m.total.hit_final <= m.total.oracle_hit);
	assert_true(m.total.hit_final > m.total.oracle_hit - 0.03);
	assert_int_equal(m.count.demotions, 0);
	ts_machine_free(&m);
}

/* Within this share of what was measured. */
static void near(double value, double measured, double share)
{
	if (value < measured * (1 - share) || value > measured * (1 + share))
		fail_msg("%g is not within %g %% of %g", value, 100 * share, measured);
}

/* The paced hotcold on a stock 6.12 kernel in the lab; see the head of tiersim.c. */
static void test_run_like_the_lab(void **state)
{
	struct ts_options opt = hotcold();
	struct ts_machine m;

	opt.scan_size_mib = 16;
	opt.scan_max_ms = 1000;
	opt.cpu_share = 0.3;
	run_named(&m, &opt, "mode2");
	near(m.count.promotions, 13324, 0.05);
	near(m.count.hint_faults, 36142, 0.05);
	near(m.total.cold_final, 0.175, 0.05);
	ts_machine_free(&m);

	opt.scan_period_ms = 100;
	opt.scan_min_ms = opt.scan_max_ms = 1600;
	opt.cpu_share = 0.45;
	run_named(&m, &opt, "mode2");
	near(m.count.promotions, 45922, 0.05);
	near(m.count.hint_faults, 150858, 0.05);
	near(m.total.hit_final, 0.961, 0.01);
	ts_machine_free(&m);
}

/* ---- real bytecode ---- */

static struct ts_decider *open_policy(const char *name, const char *settings,
				      const struct ts_options *opt)
{
	const char *dir = getenv("TIER_BPF_DIR");
	char spec[512];
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, NULL, 4, 4, 1, NULL);

	if (fd < 0) {
		print_message("bpf(2) is not permitted here: %s\n", strerror(-fd));
		skip();
	}
	close(fd);
	snprintf(spec, sizeof(spec), "%s/policy_%s.bpf.o%s", dir ? dir : "build/bpf", name, settings);
	return ts_policy_open(spec, NULL, opt);
}

static void run_policy(struct ts_machine *m, const struct ts_options *opt, const char *name,
		       const char *settings)
{
	struct ts_decider *d = open_policy(name, settings, opt);

	assert_non_null(d);
	assert_int_equal(ts_run(m, opt, d), 0);
	m->decider = NULL;
	ts_decider_close(d);
}

static void test_policy_kernel_is_mode2(void **state)
{
	struct ts_options opt = hotcold();
	struct ts_machine policy, model;

	opt.seconds = 20;
	run_policy(&policy, &opt, "kernel", "");
	run_named(&model, &opt, "mode2");
	assert_memory_equal(&policy.count, &model.count, sizeof(model.count));
	assert_int_equal(policy.total.decisions[TIER_KERNEL], policy.count.hint_faults);
	ts_machine_free(&policy);
	ts_machine_free(&model);
}

static void test_policy_parameters(void **state)
{
	struct ts_options opt = hotcold();
	struct ts_machine m;

	opt.seconds = 20;
	run_policy(&m, &opt, "fixed", ",hot_threshold_ms=0");
	assert_true(m.count.hint_faults > 0);
	assert_int_equal(m.count.promotions, 0);
	ts_machine_free(&m);
	run_policy(&m, &opt, "fixed", ",hot_threshold_ms=4000000000");
	assert_int_equal(m.count.promotions + m.count.failed_promotions, m.count.hint_faults);
	assert_int_equal(m.sample[m.samples - 1].threshold_ms, 4000000000u);
	ts_machine_free(&m);
	run_policy(&m, &opt, "fixed", ",hot_threshold_ms=4000000000,rate_limit_mbps=1");
	assert_in_range(m.count.promotions, 256, 256 * 20);
	ts_machine_free(&m);
}

static void test_policy_bad_settings(void **state)
{
	struct ts_options opt = hotcold();

	assert_null(open_policy("fixed", ",no_such=1", &opt));
	assert_null(open_policy("fixed", ",hot_threshold_ms=-1", &opt));
	assert_null(open_policy("fixed", ",hot_threshold_ms=5000000000", &opt));
	assert_null(open_policy("fixed", ",hot_threshold_ms", &opt));
	assert_null(open_policy("nosuchpolicy", "", &opt));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mode2_threshold),
		cmocka_unit_test(test_mode2_too_many),
		cmocka_unit_test(test_mode2_rate),
		cmocka_unit_test(test_scan_budget),
		cmocka_unit_test(test_scan_pace),
		cmocka_unit_test(test_scan_slows_down),
		cmocka_unit_test(test_reclaim_takes_the_cold),
		cmocka_unit_test(test_reclaim_asks_again),
		cmocka_unit_test(test_run_repeats),
		cmocka_unit_test(test_run_books),
		cmocka_unit_test(test_run_oracle),
		cmocka_unit_test(test_run_like_the_lab),
		cmocka_unit_test(test_policy_kernel_is_mode2),
		cmocka_unit_test(test_policy_parameters),
		cmocka_unit_test(test_policy_bad_settings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
