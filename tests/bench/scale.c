// SPDX-License-Identifier: GPL-2.0
/*
 * Does a decision cost the same on a large machine as on a small one, and how much kernel
 * memory do a policy's maps take? Policies' replay programs over made-up faults, in maps
 * that libtier sizes for machines of 1 to 10 000 processes, 1 GiB to 16 TiB of slow memory
 * (and a quarter of that fast), 2 to 64 nodes.
 *
 * All of memory was scanned and is known to the maps; the faults of each process come from
 * the 2.5 GiB that the scanner marked in the last ten seconds, one half of them hot.
 *
 * Along an axis a policy's cases are sampled in turns. "times" is a case's cost over the
 * middle one of the axis in the same round, its median over all rounds: flat is a policy
 * no case of which costs a fifth more than the middle one. "lookup" is no policy but the
 * bound for those that keep something by VMA: one look into a hash of VMAs, no decision.
 * What the tables forget is in scale_evict.c.
 */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "scale.h"

#define GIB		(1ULL << 30)
#define MAX_CASES	8
#define MAX_REPEATS	101
#define WINDOW_PAGES	(10U << 16)	/* 2.5 GiB: what the scanner marks in ten seconds */
#define OVER_MAX	1.2	/* goal: flat within 20 % */
#define PERCENT_MAX	0.1	/* goal: share of the slow memory that the maps take */

struct size {
	uint32_t processes;
	uint64_t slow_gib;
	uint32_t nodes;
};

static const struct axis {
	const char *name;
	unsigned int nr;
	struct size size[MAX_CASES];
} axes[] = {
	{ "processes", 5, { { 1, 64, 2 }, { 10, 64, 2 }, { 100, 64, 2 }, { 1000, 64, 2 },
			    { 10000, 64, 2 } } },
	{ "slow_gib", 6, { { 16, 1, 2 }, { 16, 4, 2 }, { 16, 16, 2 }, { 16, 256, 2 },
			   { 16, 4096, 2 }, { 16, 16384, 2 } } },
	{ "nodes", 6, { { 16, 1024, 2 }, { 16, 1024, 4 }, { 16, 1024, 8 }, { 16, 1024, 16 },
			{ 16, 1024, 32 }, { 16, 1024, 64 } } },
};

/* wrap_proof: looks the region of every fault up, in the largest of the maps */
static const char *const all[] = {
	"lookup", "fixed", "rank", "mainline", "twotouch", "lazyscan", "locality", "fixed,wrap_proof=1",
	"fixed,thrash_limit_percent=20",
};

static struct options {
	const char *json;
	unsigned int repeats, calls;
	bool check;
	unsigned int nr;
	const char *policies[32];
} options = { .repeats = 9, .calls = 12 };

struct point {
	struct rb_policy *policy;
	double ns[MAX_REPEATS], over[MAX_REPEATS];
	uint64_t map_bytes, per_cpu_bytes;
	double percent;
};

static const struct argp_option argp_options[] = {
	{ "json", 'j', "FILE", 0, "write the figures there, too", 0 },
	{ "repeat", 'r', "N", 0, "samples of each case (9)", 0 },
	{ "calls", 'n', "N", 0, "calls of 4096 faults in a sample (12)", 0 },
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
		options.repeats = rb_number(state, arg, 3, MAX_REPEATS);
		return 0;
	case 'n':
		options.calls = rb_number(state, arg, 1, 100000);
		return 0;
	case 'c':
		options.check = true;
		return 0;
	case ARGP_KEY_ARG:
		if (options.nr == ARRAY_SIZE(options.policies))
			argp_error(state, "more than %zu policies", ARRAY_SIZE(options.policies));
		options.policies[options.nr++] = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- what is in the maps of a machine that has been up for a while ---- */

/* Every region was scanned lately, every VMA was asked about. */
static int populate(struct rb_policy *p)
{
	int regions = bpf_object__find_map_fd_by_name(p->object.obj, "tier_regions");
	struct bpf_map *vmas = bpf_object__find_map_by_name(p->object.obj, "lazyscan_vmas") ?:
			       bpf_object__find_map_by_name(p->object.obj, "lookup_vmas");
	const struct rb_stream *s = &p->stream;
	uint64_t each = s->pages / s->processes + 1;
	struct tier_region region = { .nr = TIER_REGION_SCANS };
	char vma[256] = "";
	int err = 0;

	for (int i = 0; i < TIER_REGION_SCANS; i++) {
		region.scan_ms[i] = s->now_ms - 10000 * (TIER_REGION_SCANS - i);
		region.took_ms[i] = 20;
	}
	for (uint32_t process = 0; !err && process < s->processes; process++)
		for (uint64_t at = 0; !err && at < each; at += 1U << (TIER_REGION_SHIFT - 12)) {
			struct tier_fault f = {};
			struct tier_region_key key;

			rb_locate(s, at * s->processes + process, &f);
			key = (struct tier_region_key){ f.mm_id, f.addr >> TIER_REGION_SHIFT };
			err = bpf_map_update_elem(regions, &key, &region, BPF_ANY);
			key = (struct tier_region_key){ f.mm_id, f.vm_start };
			if (!err && vmas)
				err = bpf_map_update_elem(bpf_map__fd(vmas), &key, vma, BPF_ANY);
		}
	if (err)
		fprintf(stderr, "fill the maps of %s: %s\n", p->label, strerror(-err));
	return err;
}

/* The observer's own maps, beside those that it shares with the policy. */
static int observer_bytes(struct tier_ctx *ctx, struct rb_policy *p, uint64_t *bytes,
			  uint64_t *per_cpu_bytes)
{
	struct bpf_program *prog;
	struct bpf_object *obj;
	char path[PATH_MAX + 32];
	int err;

	snprintf(path, sizeof(path), "%s/bpf/trace.bpf.o", ctx->base_dir);
	obj = tier_bpf_open(ctx, path, NULL, 0);
	if (!obj) {
		fprintf(stderr, "%s\n", tier_ctx__error(ctx)->message);
		return -1;
	}
	/* its programs need what this kernel may lack; its maps need nothing */
	bpf_object__for_each_program(prog, obj)
		bpf_program__set_autoload(prog, false);
	err = tier_size_maps(ctx, obj, &p->env, false);
	if (!err)
		err = bpf_object__load(obj);
	if (err)
		fprintf(stderr, "make the observer's maps: %s\n", strerror(-err));
	else
		*bytes += rb_map_bytes(obj, p->object.obj, per_cpu_bytes);
	bpf_object__close(obj);
	return err;
}

static int open_point(struct tier_ctx *ctx, struct point *point, const char *spec,
		      const struct size *size)
{
	struct rb_stream stream = { .pages = size->slow_gib * GIB / 4096,
				    .processes = size->processes, .nodes = size->nodes,
				    .hot_percent = 50, .faults_per_ms = 20,
				    .window_pages = WINDOW_PAGES };
	uint32_t wrap_ms = strstr(spec, "wrap_proof") ? 4096 : 1U << 21;

	point->policy = rb_open(ctx, spec, &stream, size->slow_gib * GIB * 5 / 4, wrap_ms);
	if (!point->policy || populate(point->policy))
		return -1;
	point->per_cpu_bytes = 0;
	point->map_bytes = rb_map_bytes(point->policy->object.obj, NULL, &point->per_cpu_bytes);
	if (observer_bytes(ctx, point->policy, &point->map_bytes, &point->per_cpu_bytes))
		return -1;
	point->percent = 100.0 * point->map_bytes / (size->slow_gib * GIB);
	/* the first seconds of a policy are not its life; each node has its own */
	return rb_sample(point->policy, 16 + 4 * size->nodes) < 0 ? -1 : 0;
}

/* ---- one policy along one axis ---- */

static int measure(const struct axis *axis, struct point *points)
{
	double sorted[MAX_CASES], middle;

	for (unsigned int round = 0; round < options.repeats; round++) {
		for (unsigned int i = 0; i < axis->nr; i++) {
			unsigned int k = (i + round) % axis->nr;

			points[k].ns[round] = rb_sample(points[k].policy, options.calls);
			if (points[k].ns[round] < 0)
				return -1;
		}
		for (unsigned int i = 0; i < axis->nr; i++)
			sorted[i] = points[i].ns[round];
		middle = rb_spread(sorted, axis->nr).median;
		for (unsigned int i = 0; i < axis->nr; i++)
			points[i].over[round] = points[i].ns[round] / middle;
	}
	return 0;
}

static uint64_t value_of(const struct axis *axis, const struct size *size)
{
	return axis == &axes[0] ? size->processes : axis == &axes[1] ? size->slow_gib : size->nodes;
}

static void report(const struct axis *axis, const char *spec, struct point *points,
		   struct json_object *rows, unsigned int *missed)
{
	for (unsigned int i = 0; i < axis->nr; i++) {
		struct rb_spread ns = rb_spread(points[i].ns, options.repeats);
		double over = rb_spread(points[i].over, options.repeats).median;
		bool flat = over <= OVER_MAX, small = points[i].percent <= PERCENT_MAX;
		struct json_object *row = json_object_new_object();

		*missed += !flat + !small;
		printf("%-10s %6llu  %6.1f %6.1f %6.1f  %5.2f%s  %9.2f %8.4f%s %9.1f\n",
		       i ? "" : axis->name, (unsigned long long)value_of(axis, &axis->size[i]),
		       ns.min, ns.median, ns.max, over, flat ? " " : "!",
		       points[i].map_bytes / 1048576.0, points[i].percent, small ? " " : "!",
		       points[i].per_cpu_bytes / 1024.0);
		json_object_object_add(row, "policy", json_object_new_string(spec));
		json_object_object_add(row, "axis", json_object_new_string(axis->name));
		json_object_object_add(row, "processes",
				       json_object_new_int(axis->size[i].processes));
		json_object_object_add(row, "slow_gib",
				       json_object_new_int64(axis->size[i].slow_gib));
		json_object_object_add(row, "nodes", json_object_new_int(axis->size[i].nodes));
		json_object_object_add(row, "ns_per_fault", json_object_new_double(ns.median));
		json_object_object_add(row, "ns_per_fault_min", json_object_new_double(ns.min));
		json_object_object_add(row, "ns_per_fault_max", json_object_new_double(ns.max));
		json_object_object_add(row, "times_middle", json_object_new_double(over));
		json_object_object_add(row, "flat", json_object_new_boolean(flat));
		json_object_object_add(row, "map_bytes",
				       json_object_new_int64(points[i].map_bytes));
		json_object_object_add(row, "map_bytes_per_cpu",
				       json_object_new_int64(points[i].per_cpu_bytes));
		json_object_object_add(row, "map_percent_of_slow",
				       json_object_new_double(points[i].percent));
		json_object_object_add(row, "small", json_object_new_boolean(small));
		json_object_array_add(rows, row);
	}
}

static int bench_policy(struct tier_ctx *ctx, const char *spec, struct json_object *rows,
			unsigned int *missed)
{
	int err = 0;

	printf("\n%s\n", spec);
	for (size_t a = 0; !err && a < ARRAY_SIZE(axes); a++) {
		static struct point points[MAX_CASES];

		memset(points, 0, sizeof(points));
		for (unsigned int i = 0; !err && i < axes[a].nr; i++)
			err = open_point(ctx, &points[i], spec, &axes[a].size[i]);
		if (!err)
			err = measure(&axes[a], points);
		if (!err)
			report(&axes[a], spec, points, rows, missed);
		for (unsigned int i = 0; i < axes[a].nr; i++)
			rb_close(points[i].policy);
		fflush(stdout);
	}
	return err;
}

static int write_json(struct json_object *rows, struct json_object *evicted)
{
	struct json_object *all_of_it = json_object_new_object();
	struct utsname host;
	int err;

	uname(&host);
	json_object_object_add(all_of_it, "kernel", json_object_new_string(host.release));
	json_object_object_add(all_of_it, "cpus", json_object_new_int(libbpf_num_possible_cpus()));
	json_object_object_add(all_of_it, "times_middle_max", json_object_new_double(OVER_MAX));
	json_object_object_add(all_of_it, "map_percent_max", json_object_new_double(PERCENT_MAX));
	json_object_object_add(all_of_it, "scale", json_object_get(rows));
	json_object_object_add(all_of_it, "eviction", json_object_get(evicted));
	err = json_object_to_file_ext(options.json, all_of_it, JSON_C_TO_STRING_PRETTY);
	if (err)
		fprintf(stderr, "write %s: %s\n", options.json, json_util_get_last_err());
	json_object_put(all_of_it);
	return err;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = argp_options, .parser = parse, .args_doc = "[POLICY[,PARAMETER=VALUE]...]",
		.doc = "Measure how a policy's cost and memory grow with the machine (root).",
	};
	struct tier_ctx_opts opts = { .allow_unsafe_files = true };
	struct json_object *rows = json_object_new_array(), *evicted = json_object_new_array();
	struct tier_ctx *ctx;
	unsigned int missed = 0;
	int err = 0;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	if (!options.nr)
		for (; options.nr < ARRAY_SIZE(all); options.nr++)
			options.policies[options.nr] = all[options.nr];
	ctx = tier_ctx__new(&opts);
	if (!ctx || !rb_usable(ctx))
		return 1;
	rb_settle();
	printf("%-10s %6s  %20s  %5s   %9s %9s %9s\n", "", "", "ns a fault", "", "maps", "of slow",
	       "per CPU");
	printf("%-10s %6s  %6s %6s %6s  %5s   %9s %9s %9s\n", "axis", "", "min", "median", "max",
	       "times", "MiB", "memory %", "KiB");
	for (unsigned int k = 0; !err && k < options.nr; k++)
		err = bench_policy(ctx, options.policies[k], rows, &missed);
	if (!err)
		err = scale_evict(ctx, evicted);
	printf("\n%u points beyond a goal (!): cost at most %.0f %% above the axis' middle, maps at most "
	       "%.1f %% of slow memory\n", missed, (OVER_MAX - 1) * 100, PERCENT_MAX);
	if (!err && options.json)
		err = write_json(rows, evicted);
	json_object_put(rows);
	json_object_put(evicted);
	tier_ctx__free(ctx);
	return err || (options.check && missed) ? 1 : 0;
}
