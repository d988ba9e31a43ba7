/* SPDX-License-Identifier: GPL-2.0 */
/*
 * BPF only: ask the daemon to move pages that no fault will take up.
 *
 * For policies that promote ahead of a fault, beside tier/policy.bpf.h. Nothing
 * is queued unless a daemon has said, within the last seconds, that it listens.
 */
#ifndef TIER_REQUEST_BPF_H
#define TIER_REQUEST_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <tier/abi.h>
#include <tier/rate.h>

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} tier_requests SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tier_request_counts);
} tier_request_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tier_daemon);
} tier_daemon SEC(".maps");

static __always_inline void tier_request_count(__u32 id, __u64 nr)
{
	struct tier_request_counts *counts;
	__u32 zero = 0;

	counts = bpf_map_lookup_elem(&tier_request_counts, &zero);
	if (counts)
		counts->count[id] += nr;
}

static __always_inline bool tier_daemon_listens(void)
{
	struct tier_daemon *daemon;
	__u32 zero = 0;

	daemon = bpf_map_lookup_elem(&tier_daemon, &zero);
	return daemon && daemon->until_ns && bpf_ktime_get_ns() < daemon->until_ns;
}

/*
 * Hand a request to the daemon; time_ns is filled in here. Its pages count as
 * candidates of node, the target's entry of tier_nodes, within the limit that is
 * in force there. False if it was not queued, which is then counted.
 */
static __always_inline bool tier_request(struct tier_node *node, __u32 now_ms,
					 const struct tier_request *request)
{
	struct tier_request *queued;

	if (!tier_rate_admit(node, now_ms, request->nr_pages, node->limit_pages_per_s)) {
		tier_request_count(TIER_RQ_LIMITED, request->nr_pages);
		return false;
	}
	queued = bpf_ringbuf_reserve(&tier_requests, sizeof(*queued), 0);
	if (!queued) {
		tier_request_count(TIER_RQ_DROPPED, request->nr_pages);
		return false;
	}
	*queued = *request;
	queued->time_ns = bpf_ktime_get_ns();
	/* Counted first: what the daemon has done is never more than was asked. */
	tier_request_count(TIER_RQ_REQUESTS, 1);
	tier_request_count(TIER_RQ_PAGES, request->nr_pages);
	/* No wake-up from here, the page-table lock is held: the daemon looks by itself. */
	bpf_ringbuf_submit(queued, BPF_RB_NO_WAKEUP);
	return true;
}

#endif /* TIER_REQUEST_BPF_H */
