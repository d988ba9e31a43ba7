// SPDX-License-Identifier: GPL-2.0
/*
 * ns that a decision takes, on this machine's kernel and compiled for its CPU: each policy's
 * replay program over made-up faults, and an empty program of the same form in between. What
 * a policy takes above the empty one is the decision and its accounting.
 *
 * The faults come from 65536 pages, a sixteenth of which is hot, 20 in a ms; promoted pages
 * fault no more until later ones push them down, an eighth of all may be up. In stream
 * "mixed" every other fault is of a hot page as long as some are down; "cold" has none, so
 * that nearly all is refused. A sample of a policy and one of the empty program are taken
 * right after each other; the difference is per pair, and then min, median and max of all
 * pairs are told.
 */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include <json-c/json.h>

#include "replaybench.h"

#define MAX_POLICIES	32
#define MAX_REPEATS	101

static const char *const all[] = {
	"kernel", "mru", "fixed", "fixed,rate_limit_mbps=100", "mainline", "twotouch", "rank",
	"lazyscan", "locality",
	"fixed,reject_shared_cow=1,honour_nodemask=1,thrash_limit_percent=20,success_gate=1",
};

/* Goals: ns above the empty program, by policy as it is without parameters. */
static const struct { const char *policy; double ns; } goals[] = {
	{ "fixed", 60 }, { "rank", 150 },
};

static struct options {
	const char *json;
	unsigned int repeats, calls;
	bool check;
	unsigned int nr;
	const char *policies[MAX_POLICIES];
} options = { .repeats = 11, .calls = 64 };

enum { STREAM_MIXED, STREAM_COLD, NR_STREAMS };
static const struct { const char *name; uint32_t hot_percent; } streams[NR_STREAMS] = {
	[STREAM_MIXED] = { "mixed", 50 }, [STREAM_COLD] = { "cold", 0 },
};

struct result {
	struct rb_policy *policy[NR_STREAMS];
	double ns[NR_STREAMS][MAX_REPEATS], over[NR_STREAMS][MAX_REPEATS];
	double ratio[NR_STREAMS][MAX_REPEATS];
	struct rb_spread ns_spread[NR_STREAMS], over_spread[NR_STREAMS], ratio_spread[NR_STREAMS];
};

static const struct argp_option argp_options[] = {
	{ "json", 'j', "FILE", 0, "write the figures there, too", 0 },
	{ "repeat", 'r', "N", 0, "samples of each policy (11; at least 9)", 0 },
	{ "calls", 'n', "N", 0, "calls of 4096 decisions in a sample (64)", 0 },
	{ "check", 'c', NULL, 0, "exit 1 if a goal is missed", 0 },
	{}
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'j':
		options.json = arg;
		return 0;
	case 'r':
		options.repeats = rb_number(state, arg, 9, MAX_REPEATS);
		return 0;
	case 'n':
		options.calls = rb_number(state, arg, 1, 100000);
		return 0;
	case 'c':
		options.check = true;
		return 0;
	case ARGP_KEY_ARG:
		if (options.nr == MAX_POLICIES)
			argp_error(state, "more than %d policies", MAX_POLICIES);
		options.policies[options.nr++] = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int open_one(struct tier_ctx *ctx, struct result *r, const char *spec)
{
	for (int i = 0; i < NR_STREAMS; i++) {
		struct rb_stream stream = { .pages = 65536, .processes = 16, .nodes = 2,
					    .hot_percent = streams[i].hot_percent,
					    .faults_per_ms = 20, .room_pages = 8192 };

		r->policy[i] = rb_open(ctx, spec, &stream, 1ULL << 34, 1U << 21);
		/* the first seconds of a policy are not its life */
		if (!r->policy[i] || rb_sample(r->policy[i], options.calls) < 0)
			return -1;
		r->policy[i]->faults = r->policy[i]->promoted = 0;
	}
	return 0;
}

static int measure(struct result *empty, struct result *results)
{
	for (unsigned int round = 0; round < options.repeats; round++)
		for (int i = 0; i < NR_STREAMS; i++)
			for (unsigned int k = 0; k < options.nr; k++) {
				struct result *r = &results[(k + round) % options.nr];
				double base = rb_sample(empty->policy[i], options.calls);
				double ns = rb_sample(r->policy[i], options.calls);

				if (base < 0 || ns < 0)
					return -1;
				/* of many samples of the empty one, that beside the first policy */
				if (!k) {
					empty->ns[i][round] = base;
					empty->ratio[i][round] = 1;
				}
				r->ns[i][round] = ns;
				r->over[i][round] = ns - base;
				r->ratio[i][round] = ns / base;
			}
	return 0;
}

static void summarize(struct result *r)
{
	for (int i = 0; i < NR_STREAMS; i++) {
		r->ns_spread[i] = rb_spread(r->ns[i], options.repeats);
		r->over_spread[i] = rb_spread(r->over[i], options.repeats);
		r->ratio_spread[i] = rb_spread(r->ratio[i], options.repeats);
	}
}

static double percent_promoted(const struct rb_policy *p)
{
	return p->faults ? 100.0 * p->promoted / p->faults : 0;
}

static void print_one(const char *label, const struct result *r)
{
	for (int i = 0; i < NR_STREAMS; i++)
		printf("%-16.16s %-6s %6.1f %6.1f %6.1f  %6.1f %6.1f %6.1f  %5.2f %8.1f\n",
		       i ? "" : label, streams[i].name, r->ns_spread[i].min, r->ns_spread[i].median,
		       r->ns_spread[i].max, r->over_spread[i].min, r->over_spread[i].median,
		       r->over_spread[i].max, r->ratio_spread[i].median,
		       percent_promoted(r->policy[i]));
	if (strlen(label) > 16)
		printf("  (%s)\n", label);
}

/* More digits would only pretend. */
static struct json_object *hundredths(double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.2f", value);
	return json_object_new_double_s(value, text);
}

static void add_spread(struct json_object *to, const char *name, struct rb_spread spread)
{
	char key[64];

	json_object_object_add(to, name, hundredths(spread.median));
	snprintf(key, sizeof(key), "%s_min", name);
	json_object_object_add(to, key, hundredths(spread.min));
	snprintf(key, sizeof(key), "%s_max", name);
	json_object_object_add(to, key, hundredths(spread.max));
}

static struct json_object *to_json(const char *label, const struct result *r)
{
	struct json_object *row = json_object_new_object();

	json_object_object_add(row, "policy", json_object_new_string(label));
	add_spread(row, "ns_per_decision", r->ns_spread[STREAM_MIXED]);
	add_spread(row, "ns_over_empty", r->over_spread[STREAM_MIXED]);
	add_spread(row, "ratio_to_empty", r->ratio_spread[STREAM_MIXED]);
	json_object_object_add(row, "promoted_percent",
			       hundredths(percent_promoted(r->policy[STREAM_MIXED])));
	add_spread(row, "cold_ns_per_decision", r->ns_spread[STREAM_COLD]);
	add_spread(row, "cold_ns_over_empty", r->over_spread[STREAM_COLD]);
	return row;
}

static int write_json(const struct result *empty, const struct result *results,
		      struct json_object *judged)
{
	struct json_object *all_of_it = json_object_new_object(), *cost = json_object_new_array();
	struct utsname host;
	int err;

	uname(&host);
	json_object_object_add(all_of_it, "kernel", json_object_new_string(host.release));
	json_object_object_add(all_of_it, "repeats", json_object_new_int(options.repeats));
	json_object_object_add(all_of_it, "decisions_per_sample",
			       json_object_new_int64((int64_t)options.calls * RB_FAULTS));
	json_object_array_add(cost, to_json("empty", empty));
	for (unsigned int k = 0; k < options.nr; k++)
		json_object_array_add(cost, to_json(options.policies[k], &results[k]));
	json_object_object_add(all_of_it, "cost", cost);
	json_object_object_add(all_of_it, "goals", json_object_get(judged));
	err = json_object_to_file_ext(options.json, all_of_it, JSON_C_TO_STRING_PRETTY);
	if (err)
		fprintf(stderr, "write %s: %s\n", options.json, json_util_get_last_err());
	json_object_put(all_of_it);
	return err;
}

/* How many goals are missed. */
static unsigned int judge(const struct result *results, struct json_object *judged)
{
	unsigned int missed = 0;

	for (size_t g = 0; g < ARRAY_SIZE(goals); g++)
		for (unsigned int k = 0; k < options.nr; k++) {
			double ns = results[k].over_spread[STREAM_MIXED].median;
			struct json_object *row;

			if (strcmp(options.policies[k], goals[g].policy))
				continue;
			printf("goal: %s at most %.0f ns above the empty program: %.1f ns, %s\n",
			       goals[g].policy, goals[g].ns, ns, ns <= goals[g].ns ? "met" : "missed");
			missed += ns > goals[g].ns;
			row = json_object_new_object();
			json_object_object_add(row, "policy", json_object_new_string(goals[g].policy));
			json_object_object_add(row, "limit_ns", json_object_new_double(goals[g].ns));
			json_object_object_add(row, "ns_over_empty", hundredths(ns));
			json_object_object_add(row, "met", json_object_new_boolean(ns <= goals[g].ns));
			json_object_array_add(judged, row);
		}
	return missed;
}

static int bench(struct tier_ctx *ctx, struct result *empty, struct result *results,
		 unsigned int *missed)
{
	struct json_object *judged;
	int err;

	if (open_one(ctx, empty, "empty"))
		return -1;
	for (unsigned int k = 0; k < options.nr; k++)
		if (open_one(ctx, &results[k], options.policies[k]))
			return -1;
	if (measure(empty, results))
		return -1;
	summarize(empty);
	printf("%-16s %-6s %20s  %20s  %5s %8s\n", "", "", "ns a decision", "ns above empty",
	       "ratio", "promoted");
	printf("%-16s %-6s %6s %6s %6s  %6s %6s %6s  %5s %8s\n", "policy", "stream", "min",
	       "median", "max", "min", "median", "max", "", "%");
	print_one("empty", empty);
	for (unsigned int k = 0; k < options.nr; k++) {
		summarize(&results[k]);
		print_one(options.policies[k], &results[k]);
	}
	judged = json_object_new_array();
	*missed = judge(results, judged);
	err = options.json ? write_json(empty, results, judged) : 0;
	json_object_put(judged);
	return err;
}

static void close_one(struct result *r)
{
	for (int i = 0; i < NR_STREAMS; i++)
		rb_close(r->policy[i]);
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = argp_options, .parser = parse, .args_doc = "[POLICY[,PARAMETER=VALUE]...]",
		.doc = "Measure what a policy's decision takes natively, without tiers (root).",
	};
	struct tier_ctx_opts opts = { .allow_unsafe_files = true };
	static struct result empty, results[MAX_POLICIES];
	struct tier_ctx *ctx;
	unsigned int missed = 0;
	int err;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	if (!options.nr)
		for (; options.nr < ARRAY_SIZE(all); options.nr++)
			options.policies[options.nr] = all[options.nr];
	ctx = tier_ctx__new(&opts);
	if (!ctx || !rb_usable(ctx))
		return 1;
	rb_settle();
	err = bench(ctx, &empty, results, &missed);
	close_one(&empty);
	for (unsigned int k = 0; k < options.nr; k++)
		close_one(&results[k]);
	tier_ctx__free(ctx);
	return err || (options.check && missed) ? 1 : 0;
}
