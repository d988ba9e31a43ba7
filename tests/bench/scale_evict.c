// SPDX-License-Identifier: GPL-2.0
/* See scale.h. */
#include "scale.h"

#include <stdio.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#define GIB		(1ULL << 30)
#define NOW_MS		5000000U
#define WRAP_MS		4096U

/* How much of nr entries is still known afterwards: of all, of the first, of the last quarter. */
struct known {
	uint64_t nr;
	uint64_t of_all, of_oldest, of_newest;
};

typedef void (*fault_fn)(const struct rb_policy *p, uint64_t i, struct tier_fault *f);
typedef void (*result_fn)(uint64_t i, const struct tier_replay_entry *entry, struct known *known);

static void count(struct known *known, uint64_t i)
{
	known->of_all++;
	known->of_oldest += i < known->nr / 4;
	known->of_newest += i >= known->nr - known->nr / 4;
}

static int feed(struct rb_policy *p, uint64_t nr, fault_fn fault, result_fn result,
		struct known *known)
{
	uint32_t part;

	for (uint64_t done = 0; done < nr; done += part) {
		part = nr - done < RB_FAULTS ? nr - done : RB_FAULTS;
		for (uint32_t i = 0; i < part; i++) {
			struct tier_fault *f = &p->entry[i].fault;

			memset(f, 0, sizeof(*f));
			f->now_ms = NOW_MS;
			f->nr_pages = 1;
			f->src_nid = 1;
			fault(p, done + i, f);
		}
		if (rb_replay(p, part) < 0)
			return -1;
		for (uint32_t i = 0; result && i < part; i++)
			result(done + i, &p->entry[i], known);
	}
	return 0;
}

static void report(const char *table, uint64_t entries, const struct known *known, bool by_age,
		   const char *effect, struct json_object *rows)
{
	struct json_object *row = json_object_new_object();
	double all = 100.0 * known->of_all / known->nr;
	double oldest = 400.0 * known->of_oldest / known->nr;
	double newest = 400.0 * known->of_newest / known->nr;

	printf("%-16s %8llu %9llu  %6.1f", table, (unsigned long long)entries,
	       (unsigned long long)known->nr, all);
	if (by_age)
		printf("  %6.1f %6.1f\n", oldest, newest);
	else
		printf("  %6s %6s\n", "", "");
	json_object_object_add(row, "table", json_object_new_string(table));
	json_object_object_add(row, "entries", json_object_new_int64(entries));
	json_object_object_add(row, "inserted", json_object_new_int64(known->nr));
	json_object_object_add(row, "known_percent", json_object_new_double(all));
	if (by_age) {
		json_object_object_add(row, "known_percent_oldest_quarter",
				       json_object_new_double(oldest));
		json_object_object_add(row, "known_percent_newest_quarter",
				       json_object_new_double(newest));
	}
	/* what it means to be forgotten */
	json_object_object_add(row, "effect", json_object_new_string(effect));
	json_object_array_add(rows, row);
}

static struct rb_policy *open_on(struct tier_ctx *ctx, const char *spec, uint64_t slow_gib,
				 uint32_t wrap_ms)
{
	struct rb_stream stream = { .pages = slow_gib * GIB / 4096, .processes = 1, .nodes = 2,
				    .hot_percent = 50, .faults_per_ms = 20 };

	return rb_open(ctx, spec, &stream, slow_gib * GIB * 5 / 4, wrap_ms);
}

static struct bpf_map *map_of(struct rb_policy *p, const char *name)
{
	return bpf_object__find_map_by_name(p->object.obj, name);
}

/*
 * ---- twotouch: pages hot once; known are those that the second hot fault promotes ----
 *
 * They come again in the order of the first time, as scans have it, and those that were
 * forgotten are marked anew: which pushes out marks of pages that are still to come.
 */

static void hot_page(const struct rb_policy *p, uint64_t i, struct tier_fault *f)
{
	f->pfn = (1ULL << 24) + i;
	f->latency_ms = 1;
}

static void hot_page_again(const struct rb_policy *p, uint64_t i, struct tier_fault *f)
{
	hot_page(p, i, f);
	f->now_ms += 10000;
}

static void promoted(uint64_t i, const struct tier_replay_entry *entry, struct known *known)
{
	if (tier_decision_verdict(entry->decision) == TIER_VERDICT_PROMOTE)
		count(known, i);
}

static int evict_twotouch(struct tier_ctx *ctx, struct json_object *rows)
{
	int err = 0;

	for (uint64_t nr = 1 << 16; !err && nr <= 1 << 22; nr *= 4) {
		struct rb_policy *p = open_on(ctx, "twotouch", 64, 1U << 21);
		struct known known = { .nr = nr };

		if (!p)
			return -1;
		err = feed(p, nr, hot_page, NULL, NULL) ?:
		      feed(p, nr, hot_page_again, promoted, &known);
		if (!err)
			report("twotouch_marks", 2ULL * bpf_map__max_entries(map_of(p, "twotouch_marks")),
			       &known, true, "page is refused once more, promoted one scan later", rows);
		rb_close(p);
	}
	return err;
}

/* ---- rank: warm pages; known are those whose mark is still in the table ---- */

static void warm_page(const struct rb_policy *p, uint64_t i, struct tier_fault *f)
{
	f->now_ms = p->stream.now_ms + i / p->stream.faults_per_ms;
	f->pfn = (1ULL << 36) + i;
	if (p->object.info->flags & TIER_NEED_ADDR)
		rb_locate(&p->stream, (1ULL << 30) + i, f);
}

/* Goes over all words of the table; those that are not 0 are returned, and made 0. */
static int64_t sweep(struct bpf_map *map)
{
	uint64_t value, zero = 0;
	int64_t used = 0;
	int err;

	if (bpf_map__value_size(map) > sizeof(value))
		return -1;
	for (uint32_t i = 0; i < bpf_map__max_entries(map); i++) {
		value = 0;
		err = bpf_map_lookup_elem(bpf_map__fd(map), &i, &value);
		if (err)
			return -1;
		used += !!(uint32_t)value + !!(value >> 32);
		if (value && bpf_map_update_elem(bpf_map__fd(map), &i, &zero, BPF_ANY))
			return -1;
	}
	return used;
}

static int evict_rank(struct tier_ctx *ctx, struct json_object *rows)
{
	int err = 0;

	for (uint64_t nr = 1 << 16; !err && nr <= 1 << 22; nr *= 4) {
		struct rb_policy *p = open_on(ctx, "rank", 64, 1U << 21);
		struct known known = { .nr = nr };
		struct bpf_map *marks;
		int64_t used;

		if (!p)
			return -1;
		marks = map_of(p, "rank_marks");
		/* some seconds to learn what is warm; those marks are not the ones to count */
		if (!marks || rb_sample(p, 64) < 0 || sweep(marks) < 0 ||
		    feed(p, nr, warm_page, NULL, NULL)) {
			rb_close(p);
			return -1;
		}
		used = sweep(marks);
		if (used < 0)
			err = -1;
		known.of_all = used;
		if (!err)
			report("rank_marks", bpf_map__max_entries(marks) *
			       (uint64_t)(bpf_map__value_size(marks) / 4), &known, false,
			       "page is not proven at its next fault but at the one after", rows);
		rb_close(p);
	}
	return err;
}

/* ---- wrap proof: regions; known are those whose wrapped page is told from a hot one ---- */

static void wrapped_page(const struct rb_policy *p, uint64_t i, struct tier_fault *f)
{
	rb_locate(&p->stream, i << (TIER_REGION_SHIFT - 12), f);
	f->latency_ms = 10;
}

static void refused(uint64_t i, const struct tier_replay_entry *entry, struct known *known)
{
	if (entry->decision == TIER_REJECT_COLD)
		count(known, i);
}

static int evict_regions(struct tier_ctx *ctx, struct json_object *rows)
{
	struct tier_region region = { .nr = 1, .scan_ms = { NOW_MS - WRAP_MS - 10 } };
	int err = 0;

	for (int doubles = -1; !err && doubles <= 2; doubles++) {
		struct rb_policy *p = open_on(ctx, "fixed,wrap_proof=1,hot_threshold_ms=200", 64,
					      WRAP_MS);
		struct known known = {};
		struct bpf_map *regions;
		struct tier_fault f;

		if (!p)
			return -1;
		regions = map_of(p, "tier_regions");
		known.nr = doubles < 0 ? bpf_map__max_entries(regions) / 2 :
			   (uint64_t)bpf_map__max_entries(regions) << doubles;
		for (uint64_t i = 0; !err && i < known.nr; i++) {
			struct tier_region_key key;

			wrapped_page(p, i, &f);
			key = (struct tier_region_key){ f.mm_id, f.addr >> TIER_REGION_SHIFT };
			err = bpf_map_update_elem(bpf_map__fd(regions), &key, &region, BPF_ANY);
		}
		if (!err)
			err = feed(p, known.nr, wrapped_page, refused, &known);
		if (!err)
			report("tier_regions", bpf_map__max_entries(regions), &known, true,
			       "cold page whose stamp wrapped is taken for a hot one", rows);
		rb_close(p);
	}
	return err;
}

/* ---- lazyscan: VMAs; known are those whose back-off is remembered ---- */

static int evict_vmas(struct tier_ctx *ctx, struct json_object *rows)
{
	int err = 0;

	for (int doubles = -1; !err && doubles <= 2; doubles++) {
		struct rb_policy *p = open_on(ctx, "lazyscan", 64, 1U << 21);
		struct known known = {};
		struct bpf_map *vmas;
		char value[256] = "";

		if (!p)
			return -1;
		vmas = map_of(p, "lazyscan_vmas");
		known.nr = doubles < 0 ? bpf_map__max_entries(vmas) / 2 :
			   (uint64_t)bpf_map__max_entries(vmas) << doubles;
		for (uint64_t i = 0; !err && i < known.nr; i++) {
			uint64_t key[2] = { 0xffff888000000000ULL, i * GIB };

			err = bpf_map_update_elem(bpf_map__fd(vmas), key, value, BPF_ANY);
		}
		for (uint64_t i = 0; !err && i < known.nr; i++) {
			uint64_t key[2] = { 0xffff888000000000ULL, i * GIB };

			if (!bpf_map_lookup_elem(bpf_map__fd(vmas), key, value))
				count(&known, i);
		}
		if (!err)
			report("lazyscan_vmas", bpf_map__max_entries(vmas), &known, true,
			       "VMA is scanned in its next pass, as if it were new", rows);
		rb_close(p);
	}
	return err;
}

int scale_evict(struct tier_ctx *ctx, struct json_object *rows)
{
	int err;

	printf("\nWhat bounded tables still know after so many insertions (64 GiB of slow memory)\n");
	printf("%-16s %8s %9s  %6s  %6s %6s\n", "", "", "", "known", "oldest", "newest");
	printf("%-16s %8s %9s  %6s  %6s %6s\n", "table", "places", "inserted", "%", "1/4, %", "1/4, %");
	err = evict_rank(ctx, rows) ?: evict_twotouch(ctx, rows) ?: evict_regions(ctx, rows) ?:
	      evict_vmas(ctx, rows);
	if (err)
		fprintf(stderr, "scale: filling the tables failed\n");
	return err;
}
