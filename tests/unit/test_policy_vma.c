// SPDX-License-Identifier: GPL-2.0
/*
 * Policies that look at where in an address space a page lies, lazyscan and
 * locality: their bytecode over made-up scans and faults.
 */
#include "policy_run.h"

/* Two VMAs, one with hot pages on the slow tier and one without, over 60 passes. */
static void lazyscan_scans_where_it_pays(void **state)
{
	struct setting set[] = { { "hot_threshold_ms", 500 }, { NULL } };
	struct policy *p = policy_start("lazyscan", set);
	struct tier_scan hot = { .start = 0x10000, .end = 0x20000, .vm_start = 0x10000,
				 .vm_end = 0x20000, .mm_id = 42, .pid = 100 };
	struct tier_scan cold = { .start = 0x40000, .end = 0x90000, .vm_start = 0x40000,
				  .vm_end = 0x90000, .mm_id = 42, .pid = 100 };
	struct tier_fault f = fault(0, 10);
	int hot_scans = 0, cold_scans = 0, until_found = 0;

	f.flags = TIER_FAULT_ADDR;
	f.mm_id = 42;
	for (__u32 seq = 2; seq < 62; seq++) {
		hot.scan_seq = cold.scan_seq = seq;
		hot.now_ms = cold.now_ms = f.now_ms = 10000 * seq;
		if (policy_scan(p, "lazyscan", &hot) == TIER_SCAN_GO) {
			hot_scans++;
			f.vm_start = hot.vm_start;
			f.latency_ms = 10;
			assert_int_equal(policy_decide(p, f), TIER_PROMOTE_HOT);
		}
		if (policy_scan(p, "lazyscan", &cold) == TIER_SCAN_GO) {
			cold_scans++;
			f.vm_start = cold.vm_start;
			f.latency_ms = 501;
			assert_int_equal(policy_decide(p, f), TIER_REJECT_COLD);
		}
	}
	assert_int_equal(hot_scans, 60);
	assert_in_range(cold_scans, 8, 10);

	/* the cold one turns hot: found within the stated 2^3 passes */
	do {
		cold.scan_seq++;
		until_found++;
	} while (policy_scan(p, "lazyscan", &cold) == TIER_SCAN_SKIP);
	assert_in_range(until_found, 1, 8);
	f.vm_start = cold.vm_start;
	f.latency_ms = 10;
	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_HOT);
	for (int i = 0; i < 3; i++) {
		cold.scan_seq++;
		assert_int_equal(policy_scan(p, "lazyscan", &cold), TIER_SCAN_GO);
		assert_int_equal(policy_decide(p, f), TIER_PROMOTE_HOT);
	}
	policy_stop(p);
}

static void locality_lowers_the_bar(void **state)
{
	struct setting set[] = { { "hot_threshold_ms", 500 }, { "around_bytes", 16384 }, { NULL } };
	struct setting off[] = { { "hot_threshold_ms", 500 }, { "around_bytes", 0 }, { NULL } };
	struct policy *p = policy_start("locality", set);
	struct tier_fault no_address = fault(62000, 9000);

	assert_int_equal(policy_decide(p, at(0xf000, 60000, 8000)), TIER_REJECT_COLD);
	assert_int_equal(policy_decide(p, at(0xf000, 60000, 100)), TIER_PROMOTE_HOT);
	/* the window reaches into the next block, to 0x13000 exclusive */
	assert_int_equal(policy_decide(p, at(0x10000, 61000, 9000)), TIER_PROMOTE_NEAR);
	assert_int_equal(policy_decide(p, at(0x12000, 61000, 9000)), TIER_PROMOTE_NEAR);
	assert_int_equal(policy_decide(p, at(0x13000, 61000, 9000)), TIER_REJECT_COLD);
	assert_int_equal(policy_decide(p, at(0xe000, 61000, 9000)), TIER_REJECT_COLD);
	/* a near page opens no window of its own; scanned since then: judged alone */
	assert_int_equal(policy_decide(p, at(0x11000, 61000, 900)), TIER_REJECT_COLD);
	/* the last page of a PMD range has no neighbours */
	assert_int_equal(policy_decide(p, at(0x1ff000, 60000, 1)), TIER_PROMOTE_HOT);
	assert_int_equal(policy_decide(p, at(0x200000, 61000, 9000)), TIER_REJECT_COLD);
	assert_int_equal(policy_decide(p, no_address), TIER_REJECT_COLD);
	assert_int_equal(policy_counts(p, 1, 0).faults[TIER_PROMOTE_NEAR], 2);
	policy_stop(p);

	p = policy_start("locality", off);
	assert_int_equal(policy_decide(p, at(0xf000, 60000, 100)), TIER_PROMOTE_HOT);
	assert_int_equal(policy_decide(p, at(0x10000, 61000, 9000)), TIER_REJECT_COLD);
	policy_stop(p);
}

static struct tier_request last_request;
static int nr_requests;

static int on_request(void *ctx, void *data, size_t size)
{
	assert_true(size >= sizeof(last_request));
	memcpy(&last_request, data, sizeof(last_request));
	nr_requests++;
	return 0;
}

static __u64 request_count(struct policy *p, __u32 id)
{
	struct tier_request_counts counts;

	policy_sum(p, "tier_request_counts", 0, (__u64 *)&counts, sizeof(counts) / 8);
	return counts.count[id];
}

static void daemon_listens_until(struct policy *p, __u64 until_ns)
{
	struct tier_daemon daemon = { .until_ns = until_ns };
	__u32 zero = 0;

	assert_int_equal(bpf_map_update_elem(policy_map(p, "tier_daemon"), &zero, &daemon, BPF_ANY), 0);
}

static void locality_asks_the_daemon(void **state)
{
	struct setting set[] = { { "hot_threshold_ms", 500 }, { "around_bytes", 65536 }, { NULL } };
	struct policy *p = policy_start("locality", set);
	struct ring_buffer *ring = ring_buffer__new(policy_map(p, "tier_requests"), on_request, NULL, NULL);
	struct tier_fault f = at(0x1f8000, 60000, 100);
	struct tier_replay run = { .nr = 1, .repeat = 10000 };
	struct tier_replay_entry out;

	assert_non_null(ring);
	f.tgid = 77;
	f.near_pages = 15;

	/* nobody listens: nothing is queued, and nothing is counted as dropped */
	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_HOT);
	daemon_listens_until(p, 1);
	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_HOT);
	assert_int_equal(ring_buffer__consume(ring), 0);
	for (__u32 id = 0; id < TIER_NR_RQ; id++)
		assert_int_equal(request_count(p, id), 0);

	daemon_listens_until(p, ~0ULL);
	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_HOT);
	assert_int_equal(ring_buffer__consume(ring), 1);
	assert_int_equal(last_request.start, f.addr + 4096);
	assert_int_equal(last_request.end, 0x7f0000200000);	/* the PMD ends first */
	assert_int_equal(last_request.nr_pages, 7);
	assert_int_equal(last_request.kind, TIER_REQUEST_NEAR);
	assert_int_equal(last_request.tgid, 77);
	assert_int_equal(last_request.src_nid, 1);
	assert_int_equal(last_request.dst_nid, 0);
	assert_true(last_request.time_ns > 0);
	assert_int_equal(request_count(p, TIER_RQ_REQUESTS), 1);
	assert_int_equal(request_count(p, TIER_RQ_PAGES), 7);
	/* near pages are candidates too: three hot ones and seven */
	assert_int_equal(policy_node(p, 0).candidates_pages, 10);

	/* the first that does not wait ends the window: the page table says 2 */
	f.near_pages = 2;
	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_HOT);
	assert_int_equal(ring_buffer__consume(ring), 1);
	assert_int_equal(last_request.end, f.addr + 3 * 4096);

	/* another process's memory cannot be reached by the faulting one's id */
	f.flags |= TIER_FAULT_REMOTE;
	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_HOT);
	assert_int_equal(ring_buffer__consume(ring), 0);
	f.flags &= ~TIER_FAULT_REMOTE;

	/* cold and near pages ask for nothing, nor does the last page of a range */
	assert_int_equal(policy_decide(p, at(0x1fa000, 61000, 9000)), TIER_PROMOTE_NEAR);
	assert_int_equal(policy_decide(p, at(0x1ff000, 61000, 1)), TIER_PROMOTE_HOT);
	assert_int_equal(ring_buffer__consume(ring), 0);
	assert_int_equal(request_count(p, TIER_RQ_REQUESTS), 2);

	/* nobody reads: what does not fit is dropped and counted, none is lost silently */
	f.now_ms = 70000;
	policy_run(p, &f, 1, &out);
	assert_int_equal(policy_run_raw(p, &run), 0);
	assert_int_equal(request_count(p, TIER_RQ_PAGES), 7 + 2 * (request_count(p, TIER_RQ_REQUESTS) - 1));
	assert_int_equal(request_count(p, TIER_RQ_PAGES) - 9 + request_count(p, TIER_RQ_DROPPED),
			 2 * 10001);
	assert_true(request_count(p, TIER_RQ_DROPPED) > 0);
	nr_requests = 0;
	ring_buffer__consume(ring);
	assert_int_equal(nr_requests, request_count(p, TIER_RQ_REQUESTS) - 2);
	ring_buffer__free(ring);
	policy_stop(p);
}

/* 1 MiB/s is 256 pages: near pages beyond the limit are not asked for. */
static void locality_requests_within_the_limit(void **state)
{
	struct setting set[] = { { "around_bytes", 2097152 }, { "rate_limit_mbps", 1 }, { NULL } };
	struct policy *p = policy_start("locality", set);
	struct tier_fault f = at(0x0, 60000, 100);

	daemon_listens_until(p, ~0ULL);
	f.near_pages = 200;
	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_HOT);
	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_HOT);
	assert_int_equal(request_count(p, TIER_RQ_PAGES), 200);
	assert_int_equal(request_count(p, TIER_RQ_LIMITED), 200);
	/* they took the limit of the hot ones, too */
	assert_int_equal(policy_decide(p, f), TIER_REJECT_RATE);
	f.now_ms += 1001;
	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_HOT);
	assert_int_equal(request_count(p, TIER_RQ_PAGES), 400);
	policy_stop(p);
}

/* Hot pages, near ones too, beyond 256 a second are refused. */
static void limit_holds_in_address_space(void **state)
{
	struct setting set[] = { { "hot_threshold_ms", 500 }, { "rate_limit_mbps", 1 }, { NULL } };
	const char *const policies[] = { "locality", "lazyscan" };

	for (int i = 0; i < 2; i++) {
		struct policy *p = policy_start(policies[i], set);
		struct tier_fault f = at(0x200000, 60000, 100);

		assert_int_equal(policy_decide(p, at(0xf000, 60000, 100)), TIER_PROMOTE_HOT);
		f.nr_pages = 512;
		assert_int_equal(policy_decide(p, f), TIER_REJECT_RATE);
		assert_int_equal(policy_decide(p, at(0xf000, 60000, 100)), TIER_REJECT_RATE);
		assert_int_equal(policy_decide(p, at(0x10000, 60500, 9000)),
				 i ? TIER_REJECT_COLD : TIER_REJECT_RATE);
		assert_int_equal(policy_decide(p, at(0xf000, 61001, 100)), TIER_PROMOTE_HOT);
		policy_stop(p);
	}
}

/* A window ends with its VMA, and is of no use to another VMA or process. */
static void locality_window_stays_in_its_vma(void **state)
{
	struct setting set[] = { { "hot_threshold_ms", 500 }, { "around_bytes", 65536 }, { NULL } };
	struct policy *p = policy_start("locality", set);
	struct tier_fault f = at(0x10000, 60000, 100);

	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_HOT);
	f = at(0x11000, 61000, 9000);
	f.vm_start += 0x1000;
	assert_int_equal(policy_decide(p, f), TIER_REJECT_COLD);
	f = at(0x11000, 61000, 9000);
	f.mm_id += 0x1000;
	assert_int_equal(policy_decide(p, f), TIER_REJECT_COLD);
	/* the VMA was cut short since: its pages up to there are near */
	f = at(0x11000, 61000, 9000);
	f.vm_end = f.vm_start + 0x12000;
	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_NEAR);
	f.addr = f.vm_end;
	assert_int_equal(policy_decide(p, f), TIER_REJECT_COLD);
	policy_stop(p);
}

static struct tier_scan range(__u64 mm_id, __u32 seq, __u32 pid, __u32 now_ms)
{
	return (struct tier_scan){ .start = 0x10000, .end = 0x20000, .vm_start = 0x10000,
				   .vm_end = 0x20000, .mm_id = mm_id, .scan_seq = seq,
				   .pid = pid, .now_ms = now_ms };
}

static __u32 scan_by(struct policy *p, __u64 mm_id, __u32 seq, __u32 pid)
{
	struct tier_scan scan = range(mm_id, seq, pid, 10000 * seq);

	return policy_scan(p, "lazyscan", &scan);
}

static void hot_fault_by(struct policy *p, __u32 pid, __u32 now_ms)
{
	struct tier_fault f = fault(now_ms, 10);

	f.flags = TIER_FAULT_ADDR;
	f.mm_id = 42;
	f.vm_start = 0x10000;
	f.vm_end = 0x20000;
	f.addr = 0x11000;
	f.pid = pid;
	assert_int_equal(policy_decide(p, f), TIER_PROMOTE_HOT);
}

/* Beyond free_ranges in a pass only who faulted here lately scans; the count restarts. */
static void lazyscan_lets_those_who_fault_scan(void **state)
{
	struct setting set[] = { { "free_ranges", 2 }, { "pid_window_ms", 4000 }, { NULL } };
	struct policy *p = policy_start("lazyscan", set);

	assert_int_equal(scan_by(p, 42, 5, 101), TIER_SCAN_GO);
	hot_fault_by(p, 100, 50000);
	assert_int_equal(scan_by(p, 42, 5, 101), TIER_SCAN_GO);
	assert_int_equal(scan_by(p, 42, 5, 101), TIER_SCAN_SKIP);
	assert_int_equal(scan_by(p, 42, 5, 100), TIER_SCAN_GO);
	/* the next pass: two ranges are free again */
	assert_int_equal(scan_by(p, 42, 6, 101), TIER_SCAN_GO);
	assert_int_equal(scan_by(p, 42, 6, 101), TIER_SCAN_GO);
	assert_int_equal(scan_by(p, 42, 6, 101), TIER_SCAN_SKIP);
	/* two windows later it is forgotten who faulted in the first */
	hot_fault_by(p, 101, 54001);
	assert_int_equal(scan_by(p, 42, 6, 100), TIER_SCAN_GO);
	hot_fault_by(p, 101, 58002);
	assert_int_equal(scan_by(p, 42, 6, 100), TIER_SCAN_SKIP);
	assert_int_equal(scan_by(p, 42, 6, 101), TIER_SCAN_GO);
	policy_stop(p);
}

/* One that is never hot, with the back-off set to 1: every other pass; others do not care. */
static void lazyscan_backs_off_as_told(void **state)
{
	struct setting one[] = { { "max_backoff", 1 }, { NULL } };
	struct setting none[] = { { "max_backoff", 0 }, { NULL } };
	struct policy *p = policy_start("lazyscan", one);

	for (__u32 seq = 10; seq < 20; seq++)
		assert_int_equal(scan_by(p, 42, seq, 100), seq & 1 ? TIER_SCAN_SKIP : TIER_SCAN_GO);
	/* the same place in another address space is another VMA */
	assert_int_equal(scan_by(p, 43, 19, 100), TIER_SCAN_GO);
	policy_stop(p);

	p = policy_start("lazyscan", none);
	for (__u32 seq = 10; seq < 20; seq++)
		assert_int_equal(scan_by(p, 42, seq, 100), TIER_SCAN_GO);
	policy_stop(p);

	/* an address space's first passes are for all of it */
	p = policy_start("lazyscan", NULL);
	assert_int_equal(scan_by(p, 42, 0, 100), TIER_SCAN_GO);
	assert_int_equal(scan_by(p, 42, 1, 100), TIER_SCAN_GO);
	policy_stop(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lazyscan_scans_where_it_pays),
		cmocka_unit_test(locality_lowers_the_bar),
		cmocka_unit_test(locality_asks_the_daemon),
		cmocka_unit_test(locality_requests_within_the_limit),
		cmocka_unit_test(limit_holds_in_address_space),
		cmocka_unit_test(locality_window_stays_in_its_vma),
		cmocka_unit_test(lazyscan_lets_those_who_fault_scan),
		cmocka_unit_test(lazyscan_backs_off_as_told),
	};

	if (!policy_can_run())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
