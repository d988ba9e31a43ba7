// SPDX-License-Identifier: GPL-2.0
/* What tierload says: a line per interval, a summary, a JSON file. */
#include "tierload.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define SCAN_DIR "/sys/kernel/debug/sched/numa_balancing/"

static const struct {
	const char *name, *path;
} knobs[] = {
	{ "numa_balancing", "/proc/sys/kernel/numa_balancing" },
	{ "numa_balancing_promote_rate_limit_MBps",
	  "/proc/sys/kernel/numa_balancing_promote_rate_limit_MBps" },
	{ "demotion_enabled", "/sys/kernel/mm/numa/demotion_enabled" },
	{ "scan_delay_ms", SCAN_DIR "scan_delay_ms" },
	{ "scan_period_min_ms", SCAN_DIR "scan_period_min_ms" },
	{ "scan_period_max_ms", SCAN_DIR "scan_period_max_ms" },
	{ "scan_size_mb", SCAN_DIR "scan_size_mb" },
	{ "hot_threshold_ms", SCAN_DIR "hot_threshold_ms" },
};

static const char *place_name(enum tl_place place)
{
	return place == TL_PLACE_SLOW ? "slow" : place == TL_PLACE_FAST ? "fast" : "default";
}

static double mib(uint64_t pages)
{
	return pages * (double)sysconf(_SC_PAGESIZE) / 1048576.0;
}

void tl_print_start(const struct tl_run *run)
{
	const struct tl_options *opt = run->opt;

	if (opt->quiet)
		return;
	printf("%s: %u pages (%.0f MiB) placed %s, ", opt->workload, opt->pages, mib(opt->pages),
	       place_name(opt->place));
	if (opt->two || tl_has_hot_set(opt->kind))
		printf("%u hot pages (%s) get %.0f %%, ", opt->hot_pages,
		       opt->scatter ? "scattered" : "contiguous", 100.0 * opt->hot_share);
	if (opt->rate > 0.0)
		printf("%.0f accesses/s, ", opt->rate);
	else
		printf("unpaced, ");
	printf("seed %llu\n", (unsigned long long)opt->seed);
	printf("fast memory available: %.0f MiB on nodes %#llx (slow nodes %#llx)\n",
	       mib(run->fast_capacity_pages), (unsigned long long)run->nodes->fast,
	       (unsigned long long)run->nodes->slow);
	printf("%7s %6s %6s %6s %7s %7s %7s %7s %7s %7s %6s\n", "seconds", "hits%", "hot%", "cold%",
	       "fast-pg", "promote", "candid.", "demote", "faults", "ptes", "slip%");
	fflush(stdout);
}

void tl_print_sample(const struct tl_run *run, const struct tl_sample *s)
{
	const uint64_t *vm = s->delta.vm;

	if (run->opt->quiet)
		return;
	printf("%7.1f %6.1f %6.1f %6.1f %7u %7llu %7llu %7llu %7llu %7llu %6.1f\n", s->t_s,
	       100.0 * s->hit, 100.0 * s->hot_fast, 100.0 * s->cold_fast, s->fast_pages,
	       (unsigned long long)vm[TL_VM_PROMOTED], (unsigned long long)vm[TL_VM_CANDIDATES],
	       (unsigned long long)vm[TL_VM_DEMOTED], (unsigned long long)vm[TL_VM_HINT_FAULTS],
	       (unsigned long long)vm[TL_VM_PTE_UPDATES], 100.0 * s->slip);
	fflush(stdout);
}

static void print_time(const char *what, double seconds)
{
	if (seconds < 0.0)
		printf("%s never", what);
	else
		printf("%s %.1f s", what, seconds);
}

void tl_print_totals(const struct tl_run *run)
{
	const struct tl_totals *t = &run->total;
	const uint64_t *vm = t->delta.vm;

	if (run->opt->quiet)
		return;
	printf("\n%llu accesses in %.1f s (%.0f/s), slip %.1f %%%s\n",
	       (unsigned long long)t->accesses, t->seconds,
	       t->seconds > 0.0 ? t->accesses / t->seconds : 0.0, 100.0 * t->slip,
	       t->slip > TL_SLIP_LIMIT ? ": PACING DID NOT HOLD, do not compare this run" : "");
	printf("fast hit ratio: mean %.4f, last third %.4f, best placement %.4f\n", t->hit_mean,
	       t->hit_final, t->oracle_hit);
	print_time("time to 90 %: of the final ratio", t->t90_s);
	print_time(", of the best placement", t->t90_oracle_s);
	printf("\npromotions %llu (candidates %llu), demotions %llu, hint faults %llu, ptes marked %llu\n",
	       (unsigned long long)vm[TL_VM_PROMOTED], (unsigned long long)vm[TL_VM_CANDIDATES],
	       (unsigned long long)vm[TL_VM_DEMOTED], (unsigned long long)vm[TL_VM_HINT_FAULTS],
	       (unsigned long long)vm[TL_VM_PTE_UPDATES]);
	printf("seen by placement: promoted %llu (outside the hot set %llu), demoted %llu, promoted twice %llu pages\n",
	       (unsigned long long)t->seen_promotions, (unsigned long long)t->wasted_promotions,
	       (unsigned long long)t->seen_demotions, (unsigned long long)t->ping_pong_pages);
	printf("modelled access %.1f ns (memory alone %.1f ns), system time %.2f s (machine %.2f s)\n",
	       t->access_ns, t->memory_ns, t->delta.system_s, t->delta.machine_system_s);
	if (run->opt->touch)
		printf("complete rounds over all pages: %llu\n", (unsigned long long)t->rounds);
	if (run->opt->thp)
		printf("huge pages: %.0f MiB at the start, %.0f MiB at the end\n",
		       t->huge_start_bytes / 1048576.0, t->huge_end_bytes / 1048576.0);
	fflush(stdout);
}

static void put_str(struct json_object *o, const char *key, const char *value)
{
	json_object_object_add(o, key, json_object_new_string(value));
}

static void put_int(struct json_object *o, const char *key, uint64_t value)
{
	json_object_object_add(o, key, json_object_new_int64((int64_t)value));
}

static void put_num(struct json_object *o, const char *key, double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.6g", value);
	json_object_object_add(o, key, json_object_new_double_s(value, text));
}

/* A time that was not reached is null. */
static void put_time(struct json_object *o, const char *key, double seconds)
{
	if (seconds < 0.0)
		json_object_object_add(o, key, NULL);
	else
		put_num(o, key, seconds);
}

static void put_bool(struct json_object *o, const char *key, bool value)
{
	json_object_object_add(o, key, json_object_new_boolean(value));
}

static void put_counters(struct json_object *o, const struct tl_counters *c)
{
	put_int(o, "promotions", c->vm[TL_VM_PROMOTED]);
	put_int(o, "promotion_candidates", c->vm[TL_VM_CANDIDATES]);
	put_int(o, "demotions", c->vm[TL_VM_DEMOTED]);
	put_int(o, "hint_faults", c->vm[TL_VM_HINT_FAULTS]);
	put_int(o, "pte_updates", c->vm[TL_VM_PTE_UPDATES]);
	put_int(o, "numa_pages_migrated", c->vm[TL_VM_NUMA_MIGRATED]);
	put_int(o, "migrations_failed", c->vm[TL_VM_MIGRATE_FAIL]);
	put_num(o, "user_time_s", c->user_s);
	put_num(o, "system_time_s", c->system_s);
	put_num(o, "machine_system_time_s", c->machine_system_s);
}

static struct json_object *options_json(const struct tl_options *opt)
{
	struct json_object *o = json_object_new_object();

	put_int(o, "pages", opt->pages);
	put_int(o, "hot_pages", opt->hot_pages);
	put_num(o, "hot_share", opt->hot_share);
	if (opt->two)
		put_num(o, "stream_share", opt->stream_share);
	put_int(o, "unit_pages", opt->unit_pages);
	put_bool(o, "scattered", opt->scatter);
	put_num(o, "theta", opt->theta);
	put_num(o, "rate_per_s", opt->rate);
	put_num(o, "seconds", opt->seconds);
	put_num(o, "move_s", opt->move_s);
	put_num(o, "late_ms", opt->late_ms);
	put_num(o, "write_share", opt->write_share);
	put_int(o, "threads", opt->threads);
	put_int(o, "seed", opt->seed);
	put_int(o, "report_ms", opt->report_ms);
	put_str(o, "place", place_name(opt->place));
	put_bool(o, "thp", opt->thp);
	put_str(o, "pace", opt->spin ? "spin" : "sleep");
	put_num(o, "fast_ns", opt->fast_ns);
	put_num(o, "slow_ns", opt->slow_ns);
	put_num(o, "fault_ns", opt->fault_ns);
	put_num(o, "migrate_ns", opt->migrate_ns);
	return o;
}

static struct json_object *machine_json(const struct tl_run *run)
{
	struct json_object *o = json_object_new_object(), *k = json_object_new_object();
	struct utsname uts;
	char word[64];
	size_t i;

	if (!uname(&uts))
		put_str(o, "kernel", uts.release);
	put_int(o, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
	put_int(o, "fast_node_mask", run->nodes->fast);
	put_int(o, "slow_node_mask", run->nodes->slow);
	put_num(o, "fast_mib_available", mib(run->fast_capacity_pages));
	for (i = 0; i < sizeof(knobs) / sizeof(knobs[0]); i++) {
		tl_read_word(knobs[i].path, word, sizeof(word));
		if (word[0])
			put_str(k, knobs[i].name, word);
	}
	json_object_object_add(o, "knobs", k);
	return o;
}

static struct json_object *sample_json(const struct tl_sample *s)
{
	struct json_object *o = json_object_new_object();

	put_num(o, "t_s", s->t_s);
	put_int(o, "phase", s->phase);
	put_num(o, "fast_hit_ratio", s->hit);
	put_num(o, "hot_fast_ratio", s->hot_fast);
	put_num(o, "cold_fast_ratio", s->cold_fast);
	put_int(o, "fast_pages", s->fast_pages);
	put_int(o, "accesses", s->accesses);
	put_num(o, "slip", s->slip);
	put_counters(o, &s->delta);
	return o;
}

static struct json_object *totals_json(const struct tl_run *run)
{
	const struct tl_totals *t = &run->total;
	struct json_object *o = json_object_new_object();

	put_num(o, "seconds", t->seconds);
	put_int(o, "accesses", t->accesses);
	put_num(o, "fast_hit_ratio", t->hit_mean);
	put_num(o, "fast_hit_ratio_final", t->hit_final);
	put_num(o, "oracle_hit_ratio", t->oracle_hit);
	put_time(o, "t90_s", t->t90_s);
	put_time(o, "t90_oracle_s", t->t90_oracle_s);
	put_num(o, "modelled_memory_ns", t->memory_ns);
	put_num(o, "modelled_access_ns", t->access_ns);
	put_counters(o, &t->delta);
	put_int(o, "seen_promotions", t->seen_promotions);
	put_int(o, "seen_demotions", t->seen_demotions);
	put_int(o, "wasted_promotions", t->wasted_promotions);
	put_int(o, "ping_pong_pages", t->ping_pong_pages);
	put_num(o, "slip", t->slip);
	put_int(o, "dropped_ms", t->dropped_ns / 1000000);
	put_bool(o, "pacing_ok", t->slip <= TL_SLIP_LIMIT);
	put_int(o, "rounds", t->rounds);
	put_num(o, "huge_mib_start", t->huge_start_bytes / 1048576.0);
	put_num(o, "huge_mib_end", t->huge_end_bytes / 1048576.0);
	return o;
}

static struct json_object *move_json(const struct tl_move *m)
{
	struct json_object *o = json_object_new_object();

	put_num(o, "t_s", m->t_s);
	put_time(o, "t90_s", m->t90_s);
	put_num(o, "final_hit_ratio", m->final_hit);
	return o;
}

/* Hot pages of the start as hexadecimal digits, four pages a digit, the lowest bit first. */
static struct json_object *map_json(const struct tl_run *run, int w)
{
	const struct tl_worker *worker = &run->worker[w];
	uint32_t digits = (worker->dist.shape.pages + 3) / 4, rank;
	struct json_object *o = json_object_new_object();
	char *map = calloc(digits + 1, 1), text[32];

	snprintf(text, sizeof(text), "%lx", (unsigned long)worker->area);
	put_int(o, "pid", worker->pid);
	put_str(o, "address", text);
	put_int(o, "pages", worker->dist.shape.pages);
	if (!map)
		return o;
	for (rank = 0; rank < run->hot_ranks[w]; rank++) {
		uint32_t page = tl_page_of_rank(&worker->dist, rank, 0);

		map[page / 4] |= 1 << page % 4;
	}
	for (rank = 0; rank < digits; rank++)
		map[rank] = "0123456789abcdef"[(int)map[rank]];
	put_str(o, "hot_map", map);
	free(map);
	return o;
}

int tl_write_json(const struct tl_run *run)
{
	struct json_object *root = json_object_new_object(), *list;
	int flags = JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE;
	bool to_stdout = !strcmp(run->opt->json, "-");
	const char *text;
	FILE *f;
	uint32_t i;
	int err = 0;

	put_str(root, "workload", run->opt->workload);
	json_object_object_add(root, "options", options_json(run->opt));
	json_object_object_add(root, "machine", machine_json(run));
	list = json_object_new_array();
	for (i = 0; i < run->samples; i++)
		json_object_array_add(list, sample_json(&run->sample[i]));
	json_object_object_add(root, "samples", list);
	list = json_object_new_array();
	for (i = 0; i < run->moves; i++)
		json_object_array_add(list, move_json(&run->move[i]));
	json_object_object_add(root, "phases", list);
	json_object_object_add(root, "totals", totals_json(run));
	list = json_object_new_array();
	for (i = 0; run->opt->page_map && i < (uint32_t)run->workers; i++)
		json_object_array_add(list, map_json(run, i));
	json_object_object_add(root, "page_maps", list);

	text = json_object_to_json_string_ext(root, flags);
	f = to_stdout ? stdout : fopen(run->opt->json, "we");
	if (!f || fprintf(f, "%s\n", text) < 0 || fflush(f))
		err = -errno;
	if (f && !to_stdout && fclose(f) && !err)
		err = -errno;
	if (err)
		fprintf(stderr, "tierload: writing %s: %s\n", run->opt->json, strerror(-err));
	json_object_put(root);
	return err;
}
