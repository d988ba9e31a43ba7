// SPDX-License-Identifier: GPL-2.0
/*
 * tiersim: a policy's real bytecode against a modelled tiered machine.
 *
 * Runs in seconds what the lab needs minutes for, so that a policy can be
 * tuned over many workloads, sizes and seeds. It tunes; the lab proves: no
 * figure of this program is a result about a kernel.
 *
 *	tiersim hotcold mode2 fixed,hot_threshold_ms=200
 *	tiersim --all rank fixed
 *	tiersim --verbose --runs 1 moving rank		(second by second)
 *
 * What is real: the policy. Its object is loaded into this machine's kernel
 * and its replay programs decide each hint fault and, with a scan op, each
 * scan, with all the state that it keeps in maps. The access pattern is
 * tierload's, access by access, from the same seeds. Mainline's mode 2 is its
 * arithmetic, written out (mode2.c).
 *
 * What is modelled:
 *   scanner   one thread a process, one large area: budget, periods in CPU
 *             time, doubling, 32 times its own cost as pause (scan.c). A page
 *             that is still PROT_NONE is not stamped again.
 *   fault     the first access after the stamp; time grain one tick of 4 ms;
 *             all faults of a tick are decided in one go, then put in force.
 *   promotion succeeds if the fast node then stays above its high watermark,
 *             else it fails and wakes kswapd.
 *   kswapd    demotes up to the promotion watermark, victims by generations
 *             (reclaim.c), at a limited speed.
 *   record    ADDR, ROOM, SHARED, ALLOWED always known; nobody shares, all is
 *             allowed. Page frames are reused, newest first.
 *   time      of an access: stated latencies by the share of accesses to fast
 *             memory, plus stated costs of faults and migrations. Costs delay
 *             nothing: the pace is kept whatever happens.
 *
 * What is not: the op migrated (a policy that relies on it runs without),
 * several areas or threads in a process, contention, page cache, memory of
 * others that comes and goes, allocation failures by fragmentation, splitting
 * of huge pages, failed isolation, the look-around of the reverse map, Bloom
 * filters of the aging, kswapd giving up, writes.
 *
 * Checked against the lab (stock 6.12, 256 MiB fast + 768 MiB slow, mode 2, the
 * paced hotcold of tierload; its CPU time measured as --cpu-share):
 *	scan of 16 MB, delay, min, max 1000 ms, 40 s, --cpu-share 0.3
 *		lab 13 324 promotions, 36 142 faults, 63.4 % of hot, 17.5 % of cold fast
 *		sim 13 483             36 957         68.9 %         17.4 %
 *	scan of 16 MB, delay 100 ms, min and max 1600 ms, 40 s, --cpu-share 0.45
 *		lab 45 922             150 858        100 %          68.1 %
 *		sim 46 057             154 187        100 %          68.3 %
 *	promote all (hot threshold 100 s) of 288 MiB, 60 s at 34 700 accesses/s (the lab
 *	had slipped there from 40 000: the shape only)
 *		lab full after 26 s with 51 910 pages, then hits fall from 96.9 to
 *		86.9 % (the first aging cannot tell hot from cold), from 48 s on 97.0 %
 *		sim full after 26 s with 51 726 pages, 96.8 to 85.4 %, then 96.8 %
 *
 * Validity: hot and cold pages' median latencies are shown (hot/cold_ms); a
 * '!' behind them says that hot is above a tenth of cold, so that absolute
 * figures would not carry over to a real machine.
 *
 * A run is a function of its options and its seed.
 */
#include "../parse.h"
#include "sim.h"

#include <argp.h>
#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_POLICIES 32
#define MAX_SETS 64
#define MAX_RUNS 64

static const struct {
	const char *name;
	enum tl_kind kind;
	bool two, huge, contiguous;
} workloads[] = {
	{ .name = "hotcold", .kind = TL_HOTCOLD },
	{ .name = "zipf", .kind = TL_ZIPF },
	{ .name = "moving", .kind = TL_MOVING },
	{ .name = "scanmix", .kind = TL_SCANMIX },
	{ .name = "uniform", .kind = TL_UNIFORM },
	{ .name = "two", .kind = TL_HOTCOLD, .two = true },
	{ .name = "thp", .kind = TL_HOTCOLD, .huge = true },
	{ .name = "gups", .kind = TL_GUPS, .contiguous = true },
};
#define WORKLOADS (int)(sizeof(workloads) / sizeof(workloads[0]))

struct command {
	struct ts_options opt;
	int workload;			/* -1: all */
	bool all, verbose;
	int runs;
	char *policy[MAX_POLICIES];
	int policies;
	char *set[MAX_SETS + 1];
	int sets;
	const char *json;
};

enum {
	O_ALL = 256, O_RUNS, O_SEED, O_SECONDS, O_JSON, O_PAGES, O_HOT, O_SHARE, O_THETA, O_MOVE,
	O_RATE, O_FAST, O_USED, O_PLACE, O_WMARK, O_KSWAPD, O_PERIOD, O_MIN, O_MAX, O_SIZE, O_PTE, O_CPU,
	O_WRAP, O_THRESHOLD, O_LIMIT, O_FAST_NS, O_SLOW_NS, O_FAULT_NS, O_MIGRATE_NS,
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "What to run:", 1 },
	{ "all", O_ALL, NULL, 0, "all eight workloads, mode2 first, and how the goals are met", 0 },
	{ "set", 's', "K=V", 0, "set a parameter of every policy object (repeatable)", 0 },
	{ "runs", O_RUNS, "N", 0, "seeds per case; medians are shown (default 1, with --all 3)", 0 },
	{ "seed", O_SEED, "N", 0, "first seed (default 1)", 0 },
	{ "seconds", O_SECONDS, "N", 0, "simulated seconds (default 60)", 0 },
	{ "verbose", 'v', NULL, 0, "a line per simulated second", 0 },
	{ "json", O_JSON, "FILE", 0, "write all runs with their samples; - is stdout, without tables", 0 },
	{ NULL, 0, NULL, 0, "Workload:", 2 },
	{ "pages", O_PAGES, "N", 0, "4 KiB pages accessed (default 65536)", 0 },
	{ "hot-pages", O_HOT, "N", 0, "size of the hot set (default a 16th)", 0 },
	{ "hot-share", O_SHARE, "P", 0, "percent of accesses that go to it (default 90)", 0 },
	{ "theta", O_THETA, "X", 0, "zipf: exponent (default 0.99)", 0 },
	{ "move-s", O_MOVE, "S", 0, "moving: seconds between moves (default 30)", 0 },
	{ "rate", O_RATE, "N", 0, "accesses per second (default 105000)", 0 },
	{ NULL, 0, NULL, 0, "Machine:", 3 },
	{ "fast-mib", O_FAST, "N", 0, "size of the fast node (default 256)", 0 },
	{ "place", O_PLACE, "NODE", 0, "where pages are at first: slow (default), or fast as far as it goes", 0 },
	{ "used-mib", O_USED, "N", 0, "of it taken by kernel and others (default 35)", 0 },
	{ "min-wmark", O_WMARK, "P", 0, "min watermark, percent of the node (default 4.6)", 0 },
	{ "kswapd-pages", O_KSWAPD, "N", 0, "pages kswapd can demote in a second (default 10000)", 0 },
	{ "scan-period-ms", O_PERIOD, "N", 0, "a thread's first scan period (default 1000)", 0 },
	{ "scan-min-ms", O_MIN, "N", 0, "scan_period_min_ms (default 1000)", 0 },
	{ "scan-max-ms", O_MAX, "N", 0, "scan_period_max_ms; mode2's interval too (default 60000)", 0 },
	{ "scan-size-mb", O_SIZE, "N", 0, "scan_size_mb (default 256)", 0 },
	{ "scan-pte-ns", O_PTE, "N", 0, "CPU time of scanning one PTE (default 700, as emulated)", 0 },
	{ "cpu-share", O_CPU, "X", 0, "CPUs that the accesses keep busy (default 0.45, as emulated)", 0 },
	{ "stamp-wrap-ms", O_WRAP, "N", 0, "wrap of the scan stamp, a power of two (default 2097152)", 0 },
	{ "hot-threshold-ms", O_THRESHOLD, "N", 0, "mode2's reference threshold (default 1000)", 0 },
	{ "rate-limit-mbps", O_LIMIT, "N", 0, "mode2's promotion limit (default 65536)", 0 },
	{ "fast-ns", O_FAST_NS, "N", 0, "latency of fast memory (default 100)", 0 },
	{ "slow-ns", O_SLOW_NS, "N", 0, "latency of slow memory (default 250)", 0 },
	{ "fault-ns", O_FAULT_NS, "N", 0, "cost of a hint fault (default 1000)", 0 },
	{ "migrate-ns", O_MIGRATE_NS, "N", 0, "cost of moving a page (default 3000)", 0 },
	{ 0 }
};

static error_t parse_machine(int key, char *arg, struct argp_state *state)
{
	struct ts_options *opt = &((struct command *)state->input)->opt;

	switch (key) {
	case O_FAST:
		opt->fast_pages = parse_whole(state, "--fast-mib", arg, 1, 1 << 20) * TS_PAGES_PER_MIB;
		return 0;
	case O_USED:
		opt->used_pages = parse_whole(state, "--used-mib", arg, 0, 1 << 20) * TS_PAGES_PER_MIB;
		return 0;
	case O_PLACE:
		if (strcmp(arg, "slow") && strcmp(arg, "fast"))
			argp_error(state, "--place takes slow or fast, not '%s'", arg);
		opt->place_fast = !strcmp(arg, "fast");
		return 0;
	case O_WMARK:
		opt->min_wmark_percent = parse_number(state, "--min-wmark", arg, 0, 25);
		return 0;
	case O_KSWAPD:
		opt->kswapd_pages_per_s = parse_number(state, "--kswapd-pages", arg, 1, 1e9);
		return 0;
	case O_PERIOD:
		opt->scan_period_ms = parse_whole(state, "--scan-period-ms", arg, 1, 1e8);
		return 0;
	case O_MIN:
		opt->scan_min_ms = parse_whole(state, "--scan-min-ms", arg, 1, 1e8);
		return 0;
	case O_MAX:
		opt->scan_max_ms = parse_whole(state, "--scan-max-ms", arg, 1, 1e8);
		return 0;
	case O_SIZE:
		opt->scan_size_mib = parse_whole(state, "--scan-size-mb", arg, 1, 1 << 20);
		return 0;
	case O_PTE:
		opt->scan_pte_ns = parse_number(state, "--scan-pte-ns", arg, 0, 1e6);
		return 0;
	case O_CPU:
		opt->cpu_share = parse_number(state, "--cpu-share", arg, 0.001, 1);
		return 0;
	case O_WRAP:
		opt->stamp_wrap_ms = parse_whole(state, "--stamp-wrap-ms", arg, 2, 1u << 31);
		if (opt->stamp_wrap_ms & (opt->stamp_wrap_ms - 1))
			argp_error(state, "--stamp-wrap-ms: %s is not a power of two", arg);
		return 0;
	case O_THRESHOLD:
		opt->hot_threshold_ms = parse_whole(state, "--hot-threshold-ms", arg, 0, 1e8);
		return 0;
	case O_LIMIT:
		opt->rate_limit_mbps = parse_whole(state, "--rate-limit-mbps", arg, 0, 1e9);
		return 0;
	case O_FAST_NS:
		opt->fast_ns = parse_number(state, "--fast-ns", arg, 0, 1e9);
		return 0;
	case O_SLOW_NS:
		opt->slow_ns = parse_number(state, "--slow-ns", arg, 0, 1e9);
		return 0;
	case O_FAULT_NS:
		opt->fault_ns = parse_number(state, "--fault-ns", arg, 0, 1e9);
		return 0;
	case O_MIGRATE_NS:
		opt->migrate_ns = parse_number(state, "--migrate-ns", arg, 0, 1e9);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static error_t parse_workload(int key, char *arg, struct argp_state *state)
{
	struct ts_options *opt = &((struct command *)state->input)->opt;

	switch (key) {
	case O_SEED:
		opt->seed = (uint64_t)parse_number(state, "--seed", arg, 0, 9007199254740992.0);
		return 0;
	case O_SECONDS:
		opt->seconds = parse_whole(state, "--seconds", arg, 3, 1e6);
		return 0;
	case O_PAGES:
		opt->pages = parse_whole(state, "--pages", arg, 2 * TS_HUGE_PAGES, 1 << 28);
		if (opt->pages % (2 * TS_HUGE_PAGES))
			argp_error(state, "--pages: %s is not a multiple of %d", arg, 2 * TS_HUGE_PAGES);
		return 0;
	case O_HOT:
		opt->hot_pages = parse_whole(state, "--hot-pages", arg, 1, 1 << 28);
		return 0;
	case O_SHARE:
		opt->hot_share = parse_number(state, "--hot-share", arg, 0, 100) / 100.0;
		return 0;
	case O_THETA:
		opt->theta = parse_number(state, "--theta", arg, 0.01, 9.99);
		return 0;
	case O_MOVE:
		opt->move_s = parse_number(state, "--move-s", arg, 1, 1e6);
		return 0;
	case O_RATE:
		opt->rate = parse_number(state, "--rate", arg, 1, 1e9);
		return 0;
	}
	return parse_machine(key, arg, state);
}

static void take_argument(struct command *c, char *arg, struct argp_state *state)
{
	int w;

	if (c->workload < 0 && !c->all && !c->policies) {
		for (w = 0; w < WORKLOADS; w++)
			if (!strcmp(arg, workloads[w].name))
				c->workload = w;
		if (c->workload >= 0)
			return;
		argp_error(state, "no workload %s; see --help", arg);
	}
	if (c->policies == MAX_POLICIES)
		argp_error(state, "more than %d policies", MAX_POLICIES);
	c->policy[c->policies++] = arg;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct command *c = state->input;

	switch (key) {
	case O_ALL:
		if (c->workload >= 0)
			argp_error(state, "--all comes before the policies and takes no workload");
		c->all = true;
		return 0;
	case 's':
		if (c->sets == MAX_SETS)
			argp_error(state, "more than %d --set", MAX_SETS);
		c->set[c->sets++] = arg;
		return 0;
	case O_RUNS:
		c->runs = parse_whole(state, "--runs", arg, 1, MAX_RUNS);
		return 0;
	case 'v':
		c->verbose = true;
		return 0;
	case O_JSON:
		c->json = arg;
		return 0;
	case ARGP_KEY_ARG:
		take_argument(c, arg, state);
		return 0;
	case ARGP_KEY_END:
		if (!c->all && c->workload < 0)
			argp_error(state, "no workload given; --all runs them all");
		if (!c->all && !c->policies)
			argp_error(state, "no policy given");
		if (!c->runs)
			c->runs = c->all ? 3 : 1;
		if (c->opt.used_pages >= c->opt.fast_pages)
			argp_error(state, "--used-mib leaves nothing of --fast-mib");
		return 0;
	}
	return parse_workload(key, arg, state);
}

static const char doc[] =
	"Runs promotion policies, as real bytecode, against a modelled machine with two memory tiers.\n"
	"POLICY is mode2 (mainline's algorithm), oracle (knows the hot set), the NAME of a built "
	"policy or a FILE.bpf.o, each with ,parameter=value any number of times.\n"
	"WORKLOAD is hotcold, zipf, moving, scanmix, uniform, two, thp or gups."
	"\vExit status: 0 the runs ended, 1 one failed, 2 wrong usage. The head of the source says "
	"what is modelled and what is not: it is for tuning, the lab is for proof.\n";

/* ---- running ---- */

/* What tables call it: an object's file name without what all of them share. */
static const char *label_of(const char *spec, char *label, size_t size)
{
	const char *settings = strchrnul(spec, ','), *name = settings;
	int length;

	while (name > spec && name[-1] != '/')
		name--;
	if (!strncmp(name, "policy_", 7))
		name += 7;
	length = settings - name;
	if (length > 6 && !strncmp(settings - 6, ".bpf.o", 6))
		length -= 6;
	snprintf(label, size, "%.*s%s", length, name, settings);
	return label;
}

static void set_workload(struct ts_options *opt, int w)
{
	opt->workload = workloads[w].name;
	opt->kind = workloads[w].kind;
	opt->two = workloads[w].two;
	opt->folio_pages = workloads[w].huge ? TS_HUGE_PAGES : 1;
	opt->scatter = !workloads[w].contiguous;
	if (!opt->hot_pages)
		opt->hot_pages = opt->pages / 16;
}

static int run_one(const struct command *c, int workload, const char *policy, uint64_t seed,
		   struct ts_result *r)
{
	struct ts_options opt = c->opt;
	struct timespec begin, end;
	struct ts_decider *decider;
	struct ts_machine m;
	int err;

	set_workload(&opt, workload);
	opt.seed = seed;
	decider = ts_builtin_open(policy, &opt);
	if (!decider)
		decider = ts_policy_open(policy, c->set, &opt);
	if (!decider)
		return -EINVAL;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	err = ts_run(&m, &opt, decider);
	clock_gettime(CLOCK_MONOTONIC, &end);
	if (!err) {
		r->workload = opt.workload;
		label_of(policy, r->policy, sizeof(r->policy));
		r->seed = seed;
		r->total = m.total;
		r->total.host_s = (end.tv_sec - begin.tv_sec) + (end.tv_nsec - begin.tv_nsec) / 1e9;
		r->sample = m.sample;
		r->samples = m.samples;
		m.sample = NULL;
	}
	ts_machine_free(&m);
	ts_decider_close(decider);
	return err;
}

/* All seeds of one case; its medians. */
static int run_case(const struct command *c, int workload, const char *policy,
		    struct json_object *list, struct ts_totals *median)
{
	struct ts_result result[MAX_RUNS] = { 0 };
	const struct ts_result *each[MAX_RUNS];
	bool quiet = c->json && !strcmp(c->json, "-");
	int i, err = 0;

	for (i = 0; i < c->runs && !err; i++) {
		err = run_one(c, workload, policy, c->opt.seed + i, &result[i]);
		each[i] = &result[i];
		if (!err && c->verbose && !quiet)
			ts_print_samples(&result[i]);
		if (!err && list)
			json_object_array_add(list, ts_result_json(&result[i]));
	}
	if (!err) {
		ts_median(each, c->runs, median);
		if (c->verbose && !quiet)
			ts_print_head();
		if (!quiet)
			ts_print_result(workloads[workload].name, result[0].policy, median);
		fflush(stdout);
	}
	for (i = 0; i < c->runs; i++)
		free(result[i].sample);
	return err;
}

static int run_all(const struct command *c, struct json_object *list)
{
	static struct ts_totals median[WORKLOADS][MAX_POLICIES + 1];
	bool quiet = c->json && !strcmp(c->json, "-");
	int w, p, err = 0;

	if (!quiet)
		ts_print_head();
	for (w = 0; w < WORKLOADS && !err; w++) {
		err = run_case(c, w, "mode2", list, &median[w][0]);
		for (p = 0; p < c->policies && !err; p++)
			err = run_case(c, w, c->policy[p], list, &median[w][p + 1]);
	}
	if (err || quiet || !c->policies)
		return err;
	ts_goals_head();
	for (p = 0; p < c->policies; p++) {
		struct ts_goals goals = { 0 };
		char label[64];

		label_of(c->policy[p], label, sizeof(label));
		for (w = 0; w < WORKLOADS; w++)
			ts_goals_row(&goals, workloads[w].name, label, &median[w][0],
				     &median[w][p + 1]);
		ts_goals_end(&goals, label);
	}
	return 0;
}

static int run_some(const struct command *c, struct json_object *list)
{
	struct ts_totals median;
	int p, err = 0;

	if (!c->verbose && !(c->json && !strcmp(c->json, "-")))
		ts_print_head();
	for (p = 0; p < c->policies && !err; p++)
		err = run_case(c, c->workload, c->policy[p], list, &median);
	return err;
}

static int write_json(const struct command *c, struct json_object *list)
{
	struct json_object *root = json_object_new_object();
	int err;

	json_object_object_add(root, "runs", list);
	if (strcmp(c->json, "-"))
		err = json_object_to_file_ext(c->json, root, JSON_C_TO_STRING_PRETTY);
	else
		err = json_object_to_fd(1, root, JSON_C_TO_STRING_PRETTY);
	if (err)
		fprintf(stderr, "tiersim: writing %s: %s\n", c->json, json_util_get_last_err());
	json_object_put(root);
	return err;
}

int main(int argc, char **argv)
{
	const struct argp argp = { options, parse, "WORKLOAD POLICY...\n--all POLICY...", doc, NULL,
				   NULL, NULL };
	struct command c = {
		.workload = -1,
		.opt = {
			.pages = 65536, .hot_share = 0.9, .theta = 0.99, .move_s = 30.0,
			.rate = 105000.0, .seconds = 60.0, .seed = 1,
			.fast_pages = 256 * TS_PAGES_PER_MIB, .used_pages = 35 * TS_PAGES_PER_MIB,
			.min_wmark_percent = 4.6, .kswapd_pages_per_s = 10000.0,
			.scan_period_ms = 1000, .scan_min_ms = 1000, .scan_max_ms = 60000,
			.scan_size_mib = 256, .scan_pte_ns = 700.0, .cpu_share = 0.45,
			.stamp_wrap_ms = 1u << 21, .hot_threshold_ms = 1000,
			.rate_limit_mbps = 65536,
			.fast_ns = 100, .slow_ns = 250, .fault_ns = 1000, .migrate_ns = 3000,
		},
	};
	struct json_object *list = NULL;
	int err;

	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, &c);
	if (c.json)
		list = json_object_new_array();
	err = c.all ? run_all(&c, list) : run_some(&c, list);
	if (c.json && !err)
		err = write_json(&c, list);
	else
		json_object_put(list);
	return err ? 1 : 0;
}
