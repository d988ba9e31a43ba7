// SPDX-License-Identifier: GPL-2.0
/*
 * The daemon's side of promotions that no fault carries out: the queue that
 * policies fill, and where its outcomes are counted.
 *
 * All maps are the pinned ones of the policy in force. They go with it; what is
 * held here then is let go at the next refresh.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "internal.h"

struct tier_requests {
	struct tier_ctx *ctx;
	tier_request_fn fn;
	void *data;
	int lock_fd;
	__u32 policy_id;		/* struct_ops map that this was opened for */
	__u32 ring_id;
	struct ring_buffer *ring;	/* NULL: nothing to serve */
	int ring_fd, daemon_fd, results_fd;
	struct tier_request_counts results;
	struct tier_async *async;	/* NULL: the policy does not want it */
};

static __u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* A ring buffer has one reader. */
static int lock_only_one(struct tier_ctx *ctx, struct tier_requests *r)
{
	r->lock_fd = tier_seat__take(ctx, TIER_SEAT_DAEMON);
	if (r->lock_fd == -EBUSY)
		return tier_fail(ctx, TIER_CLASS_FAILED, -EBUSY,
				 "See systemctl status tierctl, or pgrep -af 'tierctl daemon'.",
				 "start serving requests: another daemon does already");
	return r->lock_fd < 0 ? r->lock_fd : 0;
}

int tier_requests__new(struct tier_ctx *ctx, tier_request_fn fn, void *data,
		       struct tier_requests **result)
{
	struct tier_requests *r;
	int err;

	tier_clear_error(ctx);
	*result = NULL;
	if (geteuid())
		return tier_fail(ctx, TIER_CLASS_PERMISSION, -EPERM, "Run it with sudo.",
				 "serve requests: not root");
	r = calloc(1, sizeof(*r));
	if (!r)
		return tier_fail(ctx, TIER_CLASS_FAILED, -ENOMEM, NULL,
				 "serve requests: out of memory");
	r->ctx = ctx;
	r->fn = fn;
	r->data = data;
	r->ring_fd = r->daemon_fd = r->results_fd = r->lock_fd = -1;
	err = lock_only_one(ctx, r);
	if (err)
		tier_requests__free(r);
	else
		*result = r;
	return err;
}

static void listen_until(struct tier_requests *r, __u64 until_ns)
{
	struct tier_daemon daemon = { .until_ns = until_ns, .pid = getpid() };
	__u32 zero = 0;

	if (r->daemon_fd >= 0)
		bpf_map_update_elem(r->daemon_fd, &zero, &daemon, BPF_ANY);
}

static void detach(struct tier_requests *r)
{
	tier_async_close(r->async);
	r->async = NULL;
	if (r->ring)
		listen_until(r, 0);
	ring_buffer__free(r->ring);
	r->ring = NULL;
	close_fd(&r->ring_fd);
	close_fd(&r->daemon_fd);
	close_fd(&r->results_fd);
	r->policy_id = r->ring_id = 0;
}

void tier_requests__free(struct tier_requests *r)
{
	if (!r)
		return;
	detach(r);
	close_fd(&r->lock_fd);
	free(r);
}

static int on_sample(void *data, void *sample, size_t size)
{
	struct tier_requests *r = data;

	if (size >= sizeof(struct tier_request))
		r->fn(r->data, sample);
	return 0;
}

static __u32 map_id(int fd)
{
	struct bpf_map_info info = {};
	__u32 len = sizeof(info);

	return bpf_map_get_info_by_fd(fd, &info, &len) ? 0 : info.id;
}

/* Outcomes go on from what an earlier daemon has counted. */
static int open_results(struct tier_requests *r)
{
	__u32 zero = 0;
	int err;

	r->results_fd = tier_pin_get(r->ctx, "maps/tier_request_results");
	if (r->results_fd == -ENOENT) {
		r->results_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "tier_req_result",
					       sizeof(zero), sizeof(r->results), 1, NULL);
		if (r->results_fd < 0)
			return tier_fail(r->ctx, TIER_CLASS_FAILED, r->results_fd, NULL,
					 "make the map of outcomes: %s", strerror(-r->results_fd));
		err = tier_pin_fd(r->ctx, r->results_fd, "maps/tier_request_results");
		if (err)
			return err;
	}
	if (r->results_fd < 0 || bpf_map_lookup_elem(r->results_fd, &zero, &r->results))
		return tier_fail(r->ctx, TIER_CLASS_FAILED, -errno, NULL,
				 "read the map of outcomes: %s", strerror(errno));
	return 0;
}

/* 1 with a queue, 0 if this policy has none. */
static int open_queue(struct tier_requests *r)
{
	int err;

	r->ring_fd = tier_pin_get(r->ctx, "maps/tier_requests");
	if (r->ring_fd == -ENOENT)
		return 0;
	r->daemon_fd = tier_pin_get(r->ctx, "maps/tier_daemon");
	if (r->ring_fd < 0 || r->daemon_fd < 0) {
		err = r->ring_fd < 0 ? r->ring_fd : r->daemon_fd;
		return tier_fail(r->ctx, TIER_CLASS_FAILED, err, NULL, "open the request queue: %s",
				 strerror(-err));
	}
	err = open_results(r);
	if (err)
		return err;
	r->ring_id = map_id(r->ring_fd);
	r->ring = ring_buffer__new(r->ring_fd, on_sample, r, NULL);
	if (!r->ring)
		return tier_fail(r->ctx, TIER_CLASS_FAILED, -errno, NULL,
				 "map the request queue: %s", strerror(errno));
	tier_log(r->ctx, TIER_LOG_INFO, "serving the requests of the policy in force");
	return 1;
}

/* The queue in force may have gone with a policy and come back with the next. */
static bool queue_is_current(struct tier_requests *r)
{
	int fd = tier_pin_get(r->ctx, "maps/tier_requests");
	bool current = fd >= 0 && map_id(fd) == r->ring_id;

	close_fd(&fd);
	return current;
}

static int attach(struct tier_requests *r, __u32 policy_id)
{
	struct tier_active active;
	int err;

	/* Pins are made below: not while an unload removes them. */
	err = tier_lock(r->ctx, false);
	if (err)
		return err;
	if (tier_active_open(r->ctx, &active) || active.map_id != policy_id)
		err = -EAGAIN;
	tier_active_close(&active);
	if (!err)
		err = tier_async_open(r->ctx, policy_id, &r->async);
	if (!err)
		err = open_queue(r);
	tier_unlock(r->ctx);
	if (err < 0) {
		detach(r);
		return err;
	}
	r->policy_id = policy_id;
	return err;
}

int tier_requests__refresh(struct tier_requests *r)
{
	struct tier_active active;
	__u32 policy_id = 0;

	tier_clear_error(r->ctx);
	if (!tier_active_open(r->ctx, &active))
		policy_id = active.map_id;
	tier_active_close(&active);
	if (r->policy_id && (r->policy_id != policy_id || (r->ring && !queue_is_current(r)) ||
			     tier_async_wanted(r->ctx, policy_id) != (r->async != NULL)))
		detach(r);
	if (!policy_id)
		return 0;
	if (!r->policy_id) {
		int err = attach(r, policy_id);

		if (err < 0)
			return err;
	}
	if (r->async)
		tier_async_refresh(r->ctx, r->async, policy_id);
	return r->ring != NULL;
}

int tier_requests__serve(struct tier_requests *r, unsigned int listen_ms)
{
	int nr;

	if (!r->ring)
		return 0;
	listen_until(r, listen_ms ? now_ns() + listen_ms * 1000000ULL : 0);
	nr = ring_buffer__consume(r->ring);
	return nr < 0 ? 0 : nr;
}

void tier_requests__count(struct tier_requests *r, enum tier_stat_request id, __u64 nr)
{
	r->results.count[id] += nr;
}

void tier_requests__publish(struct tier_requests *r)
{
	__u32 zero = 0;

	if (r->results_fd >= 0)
		bpf_map_update_elem(r->results_fd, &zero, &r->results, BPF_ANY);
}
