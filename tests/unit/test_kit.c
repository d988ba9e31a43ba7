// SPDX-License-Identifier: GPL-2.0
/*
 * What the kit does around every decision, whatever the policy: accounting,
 * replay, and the parameters that all policies have.
 */
#include "policy_run.h"
#include <tier/brake.h>

/* Every fault once, under its pair of nodes, its decision and its slot. */
static void accounting_adds_up(void **state)
{
	struct setting set[] = { { "hot_threshold_ms", 1024 }, { NULL } };
	struct policy *p = policy_start("fixed", set);
	static struct tier_fault f[MAX_FAULTS];
	static struct tier_replay_entry out[MAX_FAULTS];
	__u64 want[TIER_HIST_SLOTS] = {}, hot = 0, cold = 0;
	struct tier_counts counts;
	struct tier_hist hist;
	__u32 seed = 12345;

	for (int i = 0; i < 3989; i++) {	/* a prime number of them */
		seed = seed * 1664525 + 1013904223;
		f[i] = fault(100000, (seed >> 8) >> (i % 24));
		want[tier_hist_slot(f[i].latency_ms)]++;
		if (f[i].latency_ms < 1024)
			hot++;
		else
			cold++;
	}
	policy_run(p, f, 3989, out);
	counts = policy_counts(p, 1, 0);
	hist = policy_hist(p, 0);
	assert_int_equal(counts.faults[TIER_PROMOTE_HOT], hot);
	assert_int_equal(counts.faults[TIER_REJECT_COLD], cold);
	assert_int_equal(hot + cold, 3989);
	assert_memory_equal(hist.pages, want, sizeof(want));
	/* 1024 is a slot's lower bound: verdicts and histogram agree to the slot */
	for (__u32 i = 0; i < tier_hist_slot(1024); i++)
		hot -= hist.pages[i];
	assert_int_equal(hot, 0);
	policy_stop(p);
}

static void large_folios_count_their_pages(void **state)
{
	struct policy *p = policy_start("fixed", NULL);
	struct tier_fault f = fault(1, 2000);

	policy_decide(p, f);
	f.nr_pages = 512;
	policy_decide(p, f);
	assert_int_equal(policy_hist(p, 0).pages[tier_hist_slot(2000)], 513);
	assert_int_equal(policy_counts(p, 1, 0).faults[TIER_REJECT_COLD], 2);
	assert_int_equal(policy_counts(p, 1, 0).pages[TIER_REJECT_COLD], 513);
	policy_stop(p);
}

/* A record that no machine can make must not write outside the maps. */
static void impossible_nodes_are_harmless(void **state)
{
	struct policy *p = policy_start("fixed", NULL);
	struct tier_fault f = fault(1, 1);

	f.src_nid = -1;
	f.dst_nid = 63;
	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_HOT);
	f.src_nid = 0x7fffffff;
	f.dst_nid = -1;
	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_HOT);
	policy_stop(p);
}

static void replay_reports_errors(void **state)
{
	struct policy *p = policy_start("mru", NULL);
	struct tier_replay run = { .first = MAX_FAULTS - 1, .nr = 2, .repeat = 1 };

	assert_int_equal(policy_run_raw(p, &run), -ENOENT);
	assert_int_equal(run.error, -ENOENT);
	run = (struct tier_replay){ .nr = 1 };
	assert_int_equal(policy_run_raw(p, &run), -EINVAL);
	run = (struct tier_replay){ .nr = 1 << 20, .repeat = 1 << 20 };
	assert_int_equal(policy_run_raw(p, &run), -E2BIG);
	run = (struct tier_replay){ .nr = 5, .repeat = 1000 };
	assert_int_equal(policy_run_raw(p, &run), 0);
	assert_true(run.elapsed_ns > 0);
	policy_stop(p);
}

static void put_region(struct policy *p, const struct tier_fault *f, const struct tier_region *r)
{
	struct tier_region_key key = { .mm_id = f->mm_id, .region = f->addr >> TIER_REGION_SHIFT };

	assert_int_equal(bpf_map_update_elem(policy_map(p, "tier_regions"), &key, r, BPF_ANY), 0);
}

/* 4096 ms + 10 ms after its scan the page looks 10 ms old; it is cold. */
static void wrapped_stamp_is_cold(void **state)
{
	struct tier_region region = { .scan_ms = { 100000 }, .took_ms = { 30 }, .nr = 1 };
	struct { __u64 mode, wrap_ms; __u32 decision, latency_ms; } try[] = {
		{ 0, 4096, TIER_PROMOTE_HOT, 10 },
		{ 1, 4096, TIER_REJECT_COLD, 4106 },
		{ 2, 4096, TIER_REJECT_COLD, 4106 },
		{ 2, 1 << 21, TIER_PROMOTE_HOT, 10 },
		{ 1, 0, TIER_PROMOTE_HOT, 10 },
	};

	for (size_t i = 0; i < sizeof(try) / sizeof(try[0]); i++) {
		struct setting set[] = { { "wrap_proof", try[i].mode }, { "hot_threshold_ms", 200 },
					 { "tier_stamp_wrap_ms", try[i].wrap_ms },
					 { "tier_stamp_unit_ms", 2 }, { NULL } };
		struct policy *p = policy_start("fixed", set);
		struct tier_fault f = fault(100000 + 4096 + 10, 10);
		struct tier_replay_entry out;

		f.flags = TIER_FAULT_ADDR;
		f.mm_id = 0xffff888000001000;
		f.addr = 0x7f0012345000;
		put_region(p, &f, &region);
		policy_run(p, &f, 1, &out);
		assert_int_equal(out.decision, try[i].decision);
		assert_int_equal(out.latency_ms, try[i].latency_ms);

		/* the same page right after a scan is hot, whatever the mode */
		f.now_ms = 100010;
		assert_int_equal(policy_decide(p, f), TIER_PROMOTE_HOT);

		/* of a region that was never recorded nothing better is known */
		f.now_ms = 100000 + 4096 + 10;
		f.addr += 1UL << TIER_REGION_SHIFT;
		assert_int_equal(policy_decide(p, f), TIER_PROMOTE_HOT);
		policy_stop(p);
	}
}

static void shared_cow_is_refused(void **state)
{
	enum { PRIVATE = 0x20 | 0x3, SHARED = 0x8 | PRIVATE, READONLY = 0x1 };
	struct setting on[] = { { "reject_shared_cow", 1 }, { NULL } };
	struct policy *p = policy_start("mru", on);
	struct tier_fault f = fault(1, 1);

	f.flags = TIER_FAULT_ADDR | TIER_FAULT_SHARED_KNOWN | TIER_FAULT_SHARED;
	f.vm_flags = PRIVATE;
	assert_int_equal(policy_decide(p, f), TIER_REJECT_SHARED);
	f.nr_pages = 512;
	assert_int_equal(policy_decide(p, f), TIER_REJECT_SHARED);
	f.vm_flags = SHARED;
	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_ANY);
	f.vm_flags = READONLY;
	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_ANY);
	f.vm_flags = PRIVATE;
	f.flags &= ~TIER_FAULT_SHARED;
	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_ANY);
	assert_int_equal(policy_counts(p, 1, 0).pages[TIER_REJECT_SHARED], 513);
	policy_stop(p);

	p = policy_start("mru", NULL);
	f.flags |= TIER_FAULT_SHARED;
	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_ANY);
	policy_stop(p);
}

static void nodemask_is_honoured(void **state)
{
	struct setting on[] = { { "honour_nodemask", 1 }, { NULL } };
	struct policy *p = policy_start("mru", on);
	struct tier_fault f = fault(1, 1);

	f.flags = TIER_FAULT_ALLOWED_KNOWN;
	assert_int_equal(policy_decide(p, f), TIER_REJECT_NODEMASK);
	f.flags |= TIER_FAULT_ALLOWED;
	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_ANY);
	f.flags = 0;		/* not known: not a reason to refuse */
	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_ANY);
	f.flags = TIER_FAULT_ADDR;
	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_ANY);
	policy_stop(p);

	p = policy_start("mru", NULL);
	f.flags = TIER_FAULT_ALLOWED_KNOWN;
	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_ANY);
	policy_stop(p);
}

/*
 * A hot set of 400 pages that comes down as fast as it goes up: the brake halves
 * admission step by step. Then it fits, and the brake is let go.
 */
static void brake_stops_thrashing(void **state)
{
	struct setting on[] = { { "thrash_limit_percent", 20 }, { NULL } };
	static struct tier_fault f[400];
	static struct tier_replay_entry out[400];
	__u32 now = 10000, promoted[32], page = 1000000;
	struct policy *p = policy_start("mru", on);

	for (int round = 0; round < 32; round++) {
		promoted[round] = 0;
		for (int i = 0; i < 400; i++) {
			f[i] = at((round < 12 ? (__u32)i : page++) * 4096ULL, now += 5, 10);
			f[i].vm_end = ~0ULL;
		}
		policy_run(p, f, 400, out);
		for (int i = 0; i < 400; i++) {
			assert_true(out[i].decision == TIER_PROMOTE_ANY ||
				    out[i].decision == TIER_REJECT_THRASH);
			promoted[round] += out[i].decision == TIER_PROMOTE_ANY;
		}
	}
	assert_int_equal(promoted[0], 400);
	for (int round = 1; round < 6; round++)
		assert_in_range(promoted[round + 1], promoted[round] * 2 / 5, promoted[round] * 3 / 5 + 1);
	assert_in_range(promoted[11], 1, 12);		/* never quite shut: it must see changes */
	assert_in_range(promoted[14], promoted[13] + 1, 400);
	assert_int_equal(promoted[31], 400);
	policy_stop(p);

	p = policy_start("mru", NULL);
	for (int round = 0; round < 12; round++) {
		policy_run(p, f, 400, out);
		for (int i = 0; i < 400; i++)
			assert_int_equal(out[i].decision, TIER_PROMOTE_ANY);
	}
	policy_stop(p);
}

static struct tier_brake brake_of(struct policy *p, __u32 dst)
{
	struct tier_brake brake;

	assert_int_equal(bpf_map_lookup_elem(policy_map(p, "tier_brakes"), &dst, &brake), 0);
	return brake;
}

/* Which pages have been up before: by address and process, large ones as a whole. */
static void brake_tells_pages_apart(void **state)
{
	struct setting on[] = { { "thrash_limit_percent", 20 }, { NULL } };
	struct policy *p = policy_start("mru", on);
	struct tier_fault f = at(0x5000, 10000, 10);

	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_ANY);
	f.addr += 4096;
	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_ANY);
	f.addr -= 4096;
	f.mm_id += 4096;
	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_ANY);
	assert_int_equal(brake_of(p, 0).returned_pages, 0);
	f.mm_id -= 4096;
	policy_decide(p, f);
	assert_int_equal(brake_of(p, 0).returned_pages, 1);
	assert_int_equal(brake_of(p, 0).candidates_pages, 4);

	f = at(0x200000, 10000, 10);
	f.nr_pages = 512;
	policy_decide(p, f);
	assert_int_equal(brake_of(p, 0).returned_pages, 1);
	f.addr += 0x5000;
	policy_decide(p, f);
	assert_int_equal(brake_of(p, 0).returned_pages, 1 + 512);
	assert_int_equal(brake_of(p, 0).candidates_pages, 4 + 1024);

	/* what the record says of the page itself goes before address and frame */
	f.page_id = 77;
	policy_decide(p, f);
	assert_int_equal(brake_of(p, 0).returned_pages, 1 + 512);
	f.addr += 0x400000;
	f.pfn++;
	policy_decide(p, f);
	assert_int_equal(brake_of(p, 0).returned_pages, 1 + 1024);
	f.flags = 0;	/* no address asked for */
	policy_decide(p, f);
	assert_int_equal(brake_of(p, 0).returned_pages, 1 + 1536);
	f.page_id++;
	policy_decide(p, f);
	assert_int_equal(brake_of(p, 0).returned_pages, 1 + 1536);
	assert_int_equal(brake_of(p, 0).candidates_pages, 4 + 1024 + 2048);

	/* each target node has its own */
	assert_int_equal(brake_of(p, 1).asked, 0);
	f.src_nid = 0;
	f.dst_nid = 1;
	policy_decide(p, f);
	assert_int_equal(brake_of(p, 1).candidates_pages, 512);
	assert_int_equal(brake_of(p, 0).candidates_pages, 4 + 1024 + 2048);
	policy_stop(p);
}

/* 640 candidates at once; returns how many of them go up. */
static __u32 gate_round(struct policy *p, __u32 now_ms)
{
	static struct tier_replay_entry out[640];
	static struct tier_fault f[640];
	__u32 promoted = 0;

	for (int i = 0; i < 640; i++)
		f[i] = fault(now_ms, 10);
	policy_run(p, f, 640, out);
	for (int i = 0; i < 640; i++) {
		assert_true(out[i].decision == TIER_PROMOTE_ANY ||
			    out[i].decision == TIER_REJECT_FULL);
		promoted += out[i].decision == TIER_PROMOTE_ANY;
	}
	return promoted;
}

/* The observer's part: how they ended. */
static void gate_outcome(struct policy *p, __u32 ok, __u32 failed)
{
	struct tier_node node = policy_node(p, 0);
	__u32 zero = 0;

	node.moved_ok += ok;
	node.moved_failed += failed;
	assert_int_equal(bpf_map_update_elem(policy_map(p, "tier_nodes"), &zero, &node, BPF_ANY), 0);
}

static void gate_stops_asking(void **state)
{
	struct setting on[] = { { "success_gate", 1 }, { NULL } };
	struct policy *p = policy_start("mru", on);

	assert_int_equal(gate_round(p, 100000), 640);
	gate_outcome(p, 0, 640);
	assert_int_equal(gate_round(p, 103000), 10);
	assert_int_equal(policy_node(p, 0).gate_closings, 1);
	assert_int_equal(policy_counts(p, 1, 0).faults[TIER_REJECT_FULL], 630);
	gate_outcome(p, 0, 10);
	assert_int_equal(gate_round(p, 106000), 10);
	gate_outcome(p, 10, 0);
	assert_int_equal(gate_round(p, 109000), 640);
	assert_int_equal(policy_node(p, 0).gate_closings, 1);
	policy_stop(p);

	p = policy_start("mru", NULL);
	assert_int_equal(gate_round(p, 100000), 640);
	gate_outcome(p, 0, 640);
	assert_int_equal(gate_round(p, 103000), 640);
	policy_stop(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accounting_adds_up),
		cmocka_unit_test(impossible_nodes_are_harmless),
		cmocka_unit_test(replay_reports_errors),
		cmocka_unit_test(wrapped_stamp_is_cold),
		cmocka_unit_test(shared_cow_is_refused),
		cmocka_unit_test(nodemask_is_honoured),
		cmocka_unit_test(brake_stops_thrashing),
		cmocka_unit_test(gate_stops_asking),
		cmocka_unit_test(brake_tells_pages_apart),
		cmocka_unit_test(large_folios_count_their_pages),
	};

	if (!policy_can_run())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
