// SPDX-License-Identifier: GPL-2.0
/* Command line of tierload. */
#include "parse.h"
#include "tierload.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *argp_program_version = "tierload 1";

static const struct {
	const char *name;
	enum tl_kind kind;
	bool two, touch;
} workloads[] = {
	{ .name = "hotcold", .kind = TL_HOTCOLD },
	{ .name = "zipf", .kind = TL_ZIPF },
	{ .name = "moving", .kind = TL_MOVING },
	{ .name = "scanmix", .kind = TL_SCANMIX },
	{ .name = "uniform", .kind = TL_UNIFORM },
	{ .name = "two", .kind = TL_HOTCOLD, .two = true },
	{ .name = "gups", .kind = TL_GUPS },
	{ .name = "touch", .kind = TL_STREAM, .touch = true },
};

enum {
	O_MIB = 256, O_PAGES, O_HOT_PAGES, O_HOT_PERCENT, O_HOT_SHARE, O_STREAM_SHARE, O_LAYOUT, O_UNIT,
	O_THETA, O_MOVE_S, O_ROUNDS, O_WRITE, O_RATE, O_SECONDS, O_THREADS, O_SEED, O_PIN, O_PACE, O_LATE_MS,
	O_PLACE, O_THP, O_READY, O_WAIT, O_REPORT_MS, O_JSON, O_MAP, O_FAST_MB,
	O_FAST_NS, O_SLOW_NS, O_FAULT_NS,
	O_MIGRATE_NS,
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "Memory and distribution:", 1 },
	{ "mib", O_MIB, "N", 0, "memory touched, of all processes (default 256)", 0 },
	{ "pages", O_PAGES, "N", 0, "the same as an exact number of 4 KiB pages", 0 },
	{ "hot-pages", O_HOT_PAGES, "N", 0, "size of the hot set (default a 16th of all pages)", 0 },
	{ "hot-percent", O_HOT_PERCENT, "P", 0, "the same in percent of all pages", 0 },
	{ "hot-share", O_HOT_SHARE, "P", 0, "percent of accesses that go to it (default 90)", 0 },
	{ "stream-share", O_STREAM_SHARE, "P", 0,
	  "two: percent of all accesses that the streaming process makes (default 50)", 0 },
	{ "layout", O_LAYOUT, "scattered|contiguous", 0,
	  "where popular pages lie (default scattered; gups: contiguous)", 0 },
	{ "unit-pages", O_UNIT, "N", 0, "pages that scatter together (default 1, with --thp on 512)", 0 },
	{ "theta", O_THETA, "X", 0, "zipf: exponent (default 0.99)", 0 },
	{ "move-s", O_MOVE_S, "S", 0, "moving: seconds between moves (default 30)", 0 },
	{ "rounds", O_ROUNDS, "N", 0, "touch: end after so many rounds (default: run until --seconds)", 0 },
	{ "write-percent", O_WRITE, "P", 0, "percent of accesses that write (default 50; gups: 100)", 0 },
	{ "seed", O_SEED, "N", 0, "same seed, same hot set and same accesses (default 1)", 0 },
	{ NULL, 0, NULL, 0, "Pace and run:", 2 },
	{ "rate", O_RATE, "N", 0, "accesses per second of all threads (default 105000; 0: unpaced)", 0 },
	{ "seconds", O_SECONDS, "S", 0, "length of the run (default 60)", 0 },
	{ "threads", O_THREADS, "N", 0, "threads per process (default 1)", 0 },
	{ "pin", O_PIN, NULL, 0, "bind each thread to a CPU", 0 },
	{ "pace", O_PACE, "sleep|spin", 0, "how a thread waits for its next batch (default sleep)", 0 },
	{ "late-ms", O_LATE_MS, "N", 0,
	  "a batch of accesses that starts so late has slipped (default 100)", 0 },
	{ "place", O_PLACE, "slow|fast|default", 0, "where the memory starts (default slow)", 0 },
	{ "thp", O_THP, "on|off", 0, "back the memory with huge pages (default off)", 0 },
	{ "ready-file", O_READY, "FILE", 0,
	  "create FILE, with the process ids, once the memory is in place", 0 },
	{ "wait-file", O_WAIT, "FILE", 0, "make no access before FILE exists", 0 },
	{ NULL, 0, NULL, 0, "Report:", 3 },
	{ "report-ms", O_REPORT_MS, "N", 0, "look at the placement so often (default 1000)", 0 },
	{ "json", O_JSON, "FILE", 0, "write samples and totals; - is stdout, without the table", 0 },
	{ "page-map", O_MAP, NULL, 0, "in the JSON: where the memory of each process lies, and its hot pages", 0 },
	{ "quiet", 'q', NULL, 0, "no table", 0 },
	{ "fast-mb-available", O_FAST_MB, "N", 0,
	  "fast memory that the best placement may use, MiB (default: what is free at the start)", 0 },
	{ "fast-ns", O_FAST_NS, "N", 0, "modelled latency of fast memory (default 100)", 0 },
	{ "slow-ns", O_SLOW_NS, "N", 0, "modelled latency of slow memory (default 250)", 0 },
	{ "fault-ns", O_FAULT_NS, "N", 0, "modelled cost of a hint fault (default 1000)", 0 },
	{ "migrate-ns", O_MIGRATE_NS, "N", 0, "modelled cost of moving a page (default 3000)", 0 },
	{ 0 }
};

/* Index of @arg in the words, which end with NULL. */
static int choice(struct argp_state *state, const char *what, const char *arg,
		  const char *const *words)
{
	int i;

	for (i = 0; words[i]; i++)
		if (!strcmp(arg, words[i]))
			return i;
	argp_error(state, "%s: %s is none of the choices; see --help", what, arg);
	return 0;
}

static void set_workload(struct argp_state *state, struct tl_options *opt, const char *arg)
{
	size_t i;

	if (opt->workload)
		argp_error(state, "one workload at a time: %s and %s given", opt->workload, arg);
	for (i = 0; i < sizeof(workloads) / sizeof(workloads[0]); i++) {
		if (strcmp(arg, workloads[i].name))
			continue;
		opt->workload = workloads[i].name;
		opt->kind = workloads[i].kind;
		opt->two = workloads[i].two;
		opt->touch = workloads[i].touch;
		return;
	}
	argp_error(state, "no workload %s; see --help", arg);
}

static error_t parse_memory(int key, char *arg, struct argp_state *state)
{
	static const char *const layouts[] = { "contiguous", "scattered", NULL };
	struct tl_options *opt = state->input;

	switch (key) {
	case O_MIB:
		opt->pages = parse_whole(state, "--mib", arg, 1, 1 << 20) *
			     (1048576 / sysconf(_SC_PAGESIZE));
		return 0;
	case O_PAGES:
		opt->pages = parse_whole(state, "--pages", arg, 1, 1 << 28);
		return 0;
	case O_HOT_PAGES:
		opt->hot_pages = parse_whole(state, "--hot-pages", arg, 1, 1 << 28);
		return 0;
	case O_HOT_PERCENT:
		opt->hot_percent = parse_number(state, "--hot-percent", arg, 0, 100);
		return 0;
	case O_HOT_SHARE:
		opt->hot_share = parse_number(state, "--hot-share", arg, 0, 100) / 100.0;
		return 0;
	case O_STREAM_SHARE:
		opt->stream_share = parse_number(state, "--stream-share", arg, 0, 100) / 100.0;
		return 0;
	case O_LAYOUT:
		opt->scatter = choice(state, "--layout", arg, layouts);
		return 0;
	case O_UNIT:
		opt->unit_pages = parse_whole(state, "--unit-pages", arg, 1, 1 << 20);
		return 0;
	case O_THETA:
		opt->theta = parse_number(state, "--theta", arg, 0.01, 9.99);
		return 0;
	case O_MOVE_S:
		opt->move_s = parse_number(state, "--move-s", arg, 0.1, 1e6);
		return 0;
	case O_ROUNDS:
		opt->rounds = parse_whole(state, "--rounds", arg, 1, 1e15);
		return 0;
	case O_WRITE:
		opt->write_share = parse_number(state, "--write-percent", arg, 0, 100) / 100.0;
		return 0;
	case O_SEED:
		opt->seed = parse_whole(state, "--seed", arg, 0, 9007199254740992.0);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static error_t parse_report(int key, char *arg, struct argp_state *state)
{
	struct tl_options *opt = state->input;

	switch (key) {
	case O_REPORT_MS:
		opt->report_ms = parse_whole(state, "--report-ms", arg, 10, 3600000);
		return 0;
	case O_JSON:
		opt->json = arg;
		if (!strcmp(arg, "-"))
			opt->quiet = true;
		return 0;
	case O_MAP:
		opt->page_map = true;
		return 0;
	case 'q':
		opt->quiet = true;
		return 0;
	case O_FAST_MB:
		opt->fast_mb_available = parse_number(state, "--fast-mb-available", arg, 0, 1e9);
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

/* What depends on several options at once. */
static void settle(struct argp_state *state, struct tl_options *opt, int scatter_given)
{
	uint32_t unit;

	if (!opt->workload)
		argp_error(state, "no workload given");
	if (opt->rounds && !opt->touch)
		argp_error(state, "--rounds is for the workload touch");
	if (!opt->pages)
		opt->pages = (256u << 20) / sysconf(_SC_PAGESIZE);
	if (!opt->unit_pages)
		opt->unit_pages = opt->thp ? 512 : 1;
	if (opt->kind == TL_STREAM)
		opt->unit_pages = 1;
	unit = opt->unit_pages * (opt->two ? 2 : 1);
	if (opt->pages % unit)
		argp_error(state, "%u pages are not a multiple of %u, the pages that scatter together%s",
			   opt->pages, unit, opt->two ? " in two processes" : "");
	if (opt->hot_percent >= 0.0)
		opt->hot_pages = (uint32_t)(opt->pages * opt->hot_percent / 100.0);
	else if (!opt->hot_pages)
		opt->hot_pages = opt->pages / 16;
	if (scatter_given < 0)
		opt->scatter = opt->kind != TL_GUPS;
	if (opt->write_share < 0.0)
		opt->write_share = opt->kind == TL_GUPS ? 1.0 : 0.5;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	static const char *const paces[] = { "sleep", "spin", NULL };
	static const char *const places[] = { "slow", "fast", "default", NULL };
	static const char *const off_on[] = { "off", "on", NULL };
	static int scatter_given = -1;
	struct tl_options *opt = state->input;

	if (key == O_LAYOUT)
		scatter_given = 1;
	switch (key) {
	case O_RATE:
		opt->rate = parse_number(state, "--rate", arg, 0, 1e9);
		return 0;
	case O_SECONDS:
		opt->seconds = parse_number(state, "--seconds", arg, 0.1, 1e6);
		return 0;
	case O_THREADS:
		opt->threads = parse_whole(state, "--threads", arg, 1, TL_MAX_THREADS);
		return 0;
	case O_PIN:
		opt->pin = true;
		return 0;
	case O_PACE:
		opt->spin = choice(state, "--pace", arg, paces);
		return 0;
	case O_LATE_MS:
		opt->late_ms = parse_number(state, "--late-ms", arg, 1, 1000);
		return 0;
	case O_PLACE:
		opt->place = choice(state, "--place", arg, places);
		return 0;
	case O_THP:
		opt->thp = choice(state, "--thp", arg, off_on);
		return 0;
	case O_READY:
		opt->ready_file = arg;
		return 0;
	case O_WAIT:
		opt->wait_file = arg;
		return 0;
	case ARGP_KEY_ARG:
		set_workload(state, opt, arg);
		return 0;
	case ARGP_KEY_END:
		settle(state, opt, scatter_given);
		return 0;
	}
	return parse_memory(key, arg, state) ? parse_report(key, arg, state) : 0;
}

static const char doc[] =
	"Accesses memory in a known pattern at a known pace and shows where the kernel puts it.\n"
	"\n"
	"  hotcold   90 % of the accesses on a hot set, the rest on all other pages\n"
	"  zipf      few records are very popular, most are not; scrambled over memory\n"
	"  moving    hotcold whose hot set is another one every --move-s seconds\n"
	"  scanmix   hotcold whose cold part is walked in address order, again and again\n"
	"  uniform   every page alike: there is nothing to gain by moving pages\n"
	"  two       a streaming process, then a hotcold one beside it, half of all pages each\n"
	"  gups      read-modify-write of random words, 90 % of them in a hot region\n"
	"  touch     every page once a round, in order: for exact counts\n";

static const char after[] =
	"\vExit status: 0 the run ended (also by SIGTERM or SIGINT), 1 it failed, 2 wrong usage, "
	"3 this machine has no slow memory to place pages on.\n";

void tl_parse_options(struct tl_options *opt, int argc, char **argv)
{
	static char text[sizeof(doc) + sizeof(after)];
	struct argp argp = { options, parse, "WORKLOAD", text, NULL, NULL, NULL };

	*opt = (struct tl_options){
		.hot_percent = -1.0, .hot_share = 0.9, .stream_share = 0.5, .theta = 0.99, .rate = 105000.0,
		.seconds = 60.0, .move_s = 30.0, .late_ms = 100.0, .write_share = -1.0,
		.seed = 1, .threads = 1, .report_ms = 1000, .place = TL_PLACE_SLOW, .scatter = true,
		.fast_mb_available = -1.0, .fast_ns = 100.0, .slow_ns = 250.0,
		.migrate_ns = 3000.0, .fault_ns = 1000.0,
	};
	strcpy(text, doc);
	strcat(text, after);
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, opt);
}
