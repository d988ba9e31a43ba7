// SPDX-License-Identifier: GPL-2.0
/*
 * Policy rank's bytecode on made-up machines whose pages are accessed at random,
 * at known intervals: who goes up, who stays, how fast it follows a change.
 */
#include <math.h>
#include "policy_run.h"

static double random_unit(__u64 *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return ((*seed >> 33) + 0.5) / (1ULL << 31);
}

/*
 * Seconds of faults of a machine whose pages are accessed at random: hot_pages
 * every hot_ms, cold_pages every cold_ms, each scanned twice in ten seconds.
 * Promoted pages fault no more, until one that finds the target full (capacity
 * pages) pushes some cold one down.
 */
struct rank_run {
	bool up[20000];
	__u32 hot_pages, cold_pages, capacity, hot_up, cold_up, asked, now_ms;
	double hot_ms, cold_ms;
	__u64 seed;
};

static void rank_demote(struct rank_run *run)
{
	__u32 page;

	do
		page = run->hot_pages + run->cold_pages * random_unit(&run->seed);
	while (!run->up[page]);
	run->up[page] = false;
	run->cold_up--;
}

static void rank_seconds(struct policy *p, struct rank_run *run, int seconds)
{
	static struct tier_fault f[MAX_FAULTS];
	static struct tier_replay_entry out[MAX_FAULTS];
	static __u32 of[MAX_FAULTS];
	__u32 pages = run->hot_pages + run->cold_pages;

	while (seconds--) {
		__u32 nr = 0;

		for (__u32 i = 0; i < pages; i++) {
			double mean = i < run->hot_pages ? run->hot_ms : run->cold_ms;

			if (run->up[i] || random_unit(&run->seed) > 0.2 || nr == MAX_FAULTS)
				continue;
			f[nr] = fault(run->now_ms + 1000 * i / pages,
				      -log(random_unit(&run->seed)) * mean);
			f[nr].flags = TIER_FAULT_ADDR;
			f[nr].mm_id = 0xffff888001234000;
			f[nr].addr = 0x7f0000000000 + ((__u64)i << 12);
			of[nr++] = i;
		}
		policy_run(p, f, nr, out);
		for (__u32 i = 0; i < nr; i++) {
			if (tier_decision_verdict(out[i].decision) != TIER_VERDICT_PROMOTE)
				continue;
			run->asked++;
			if (run->hot_up + run->cold_up == run->capacity)
				rank_demote(run);
			run->up[of[i]] = true;
			if (of[i] < run->hot_pages)
				run->hot_up++;
			else
				run->cold_up++;
		}
		run->now_ms += 1001;
	}
}

static void rank_finds_the_hot_and_stays_closed(void **state)
{
	static struct rank_run run;
	struct setting set[] = { { "tier_top_node_pages", 65536 }, { NULL } };
	struct policy *p = policy_start("rank", set);
	__u32 asked;

	run = (struct rank_run){ .hot_pages = 1500, .cold_pages = 16000, .hot_ms = 40, .cold_ms = 8000,
				 .capacity = 6000, .now_ms = 50000, .seed = 1 };
	/* room: the hot first, then as many as fit, hottest first */
	rank_seconds(p, &run, 6);
	print_message("after 6 s: %u of 1500 hot and %u of 16000 cold up\n", run.hot_up, run.cold_up);
	assert_in_range(run.hot_up, 900, 1500);
	rank_seconds(p, &run, 54);
	print_message("after 60 s: %u hot and %u cold up\n", run.hot_up, run.cold_up);
	assert_in_range(run.hot_up, 1500 * 98 / 100, 1500);
	assert_in_range(run.hot_up + run.cold_up, 5900, 6000);

	/* full, and what is left looks alike: next to nothing is asked for */
	asked = run.asked;
	rank_seconds(p, &run, 20);
	print_message("20 s later: %u promotions asked for\n", run.asked - asked);
	assert_in_range(run.asked - asked, 0, 20 * 65536 / 2048);

	/* the workload moves: another 1500 become hot, the old ones are cold */
	for (__u32 i = 0; i < 1500; i++)
		run.up[i] = false;
	run.cold_up += run.hot_up - 1500;
	run.hot_up = 0;
	run.hot_ms = 120;
	rank_seconds(p, &run, 15);
	print_message("hot set moved, 15 s: %u of 1500 promoted\n", run.hot_up);
	assert_in_range(run.hot_up, 1500 * 90 / 100, 1500);
	policy_stop(p);
}

/* Pages that come back close the room. */
static void rank_learns_from_returns(void **state)
{
	struct setting set[] = { { "tier_top_node_pages", 65536 }, { NULL } };
	struct policy *p = policy_start("rank", set);
	static struct rank_run run;
	__u32 early, late;

	run = (struct rank_run){ .cold_pages = 16000, .cold_ms = 4000, .capacity = ~0U,
				 .now_ms = 50000, .seed = 2 };
	for (int i = 0; i < 60; i++) {
		if (i == 6)
			early = run.cold_up;
		if (i == 54)
			run.cold_up = 0;
		rank_seconds(p, &run, 1);
		memset(run.up, 0, sizeof(run.up));	/* demoted at once */
	}
	late = run.cold_up;
	print_message("promoted in 6 s: %u, after returns %u\n", early, late);
	assert_true(early > 60);
	assert_true(late * 4 < early);
	policy_stop(p);
}

/* All pages scanned at one moment, every ten seconds: knowledge must last a pass. */
struct pending {
	__u32 page;
	__u32 at_ms;
	__u32 scan_ms;
};

static int by_time(const void *a, const void *b)
{
	const struct pending *x = a, *y = b;

	return x->at_ms < y->at_ms ? -1 : x->at_ms > y->at_ms;
}

static void rank_learns_from_bursts(void **state)
{
	enum { HOT = 400, PAGES = 4000, FIT = 500, PASS_MS = 10000, PASSES = 4 };
	struct setting set[] = { { "tier_top_node_pages", 65536 }, { NULL } };
	struct policy *p = policy_start("rank", set);
	static struct tier_replay_entry out[MAX_FAULTS];
	static struct tier_fault f[MAX_FAULTS];
	static struct pending todo[PAGES];
	static bool up[PAGES], waiting[PAGES];
	static __u32 scanned_ms[PAGES], due_ms[PAGES];
	__u32 hot_up = 0, cold_up = 0, asked = 0, asked_full = 0, asked_before = 0, start = 100000;
	__u64 seed = 3;

	for (int pass = 0; pass < PASSES; pass++, start += PASS_MS) {
		__u32 nr = 0;

		for (__u32 i = 0; i < PAGES; i++) {
			if (up[i])
				continue;
			if (!waiting[i]) {	/* a page that still waits keeps its stamp */
				scanned_ms[i] = start;
				due_ms[i] = start - log(random_unit(&seed)) * (i < HOT ? 40 : 8000);
				waiting[i] = true;
			}
			if (due_ms[i] - start >= PASS_MS)
				continue;
			waiting[i] = false;
			todo[nr++] = (struct pending){ i, due_ms[i], scanned_ms[i] };
		}
		qsort(todo, nr, sizeof(todo[0]), by_time);
		for (__u32 i = 0; i < nr; i++)
			f[i] = at((__u64)todo[i].page << 12, todo[i].at_ms,
				  todo[i].at_ms - todo[i].scan_ms);
		policy_run(p, f, nr, out);
		asked_before = asked;
		if (!asked_full && hot_up + cold_up == FIT)
			asked_full = asked;
		for (__u32 i = 0; i < nr; i++) {
			if (tier_decision_verdict(out[i].decision) != TIER_VERDICT_PROMOTE)
				continue;
			asked++;
			if (hot_up + cold_up == FIT)
				continue;
			up[todo[i].page] = true;
			if (todo[i].page < HOT)
				hot_up++;
			else
				cold_up++;
		}
		print_message("pass %d: %u of %d hot, %u of %d cold up, %u asked for\n", pass + 1,
			      hot_up, HOT, cold_up, PAGES - HOT, asked);
	}
	assert_in_range(hot_up, HOT * 95 / 100, HOT);
	/* until the next pass nothing tells that the target got full: but not all is asked for */
	assert_in_range(asked_full, FIT, PAGES / 2);
	/* what comes back tells: less and less from then on */
	assert_in_range(asked - asked_full, 0, 500);
	assert_in_range(asked - asked_before, 0, PAGES / 16);
	policy_stop(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rank_finds_the_hot_and_stays_closed),
		cmocka_unit_test(rank_learns_from_returns),
		cmocka_unit_test(rank_learns_from_bursts),
	};

	if (!policy_can_run())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
