// SPDX-License-Identifier: GPL-2.0
/*
 * Hint faults that memory policy rules out: the program that sees them, held by
 * the daemon alone, so that it costs nothing when no daemon runs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "internal.h"

#define LOG_BYTES	(1U << 20)

/* Hot below this where the policy has no threshold: the kernel's own default. */
#define DEFAULT_THRESHOLD_MS	1000

struct tier_async {
	struct bpf_object *obj;
	struct bpf_link *link;	/* NULL: could not be loaded; said once */
	__u32 nr_nodes;
};

/* Value of a parameter of the policy in force, -1 if it has none of that name. */
static __s64 param(struct tier_ctx *ctx, __u32 policy_id, const char *name)
{
	struct tier_live live;
	__s64 value = -1;

	if (tier_live_open(ctx, policy_id, &live) || !live.info)
		return -1;
	for (unsigned int i = 0; i < live.info->nr_params; i++)
		if (!strcmp(live.info->params[i].name, name))
			value = live.info->params[i].def;
	tier_live_close(&live);
	return value;
}

bool tier_async_wanted(struct tier_ctx *ctx, __u32 policy_id)
{
	return policy_id && param(ctx, policy_id, "honour_nodemask") == 1;
}

/* /sys/devices/system/node/nodeN/distance: one number for each online node, in order. */
static void read_distances(__u8 *distances, const struct tier_nodes *nodes)
{
	char path[80], text[512], *at;

	for (unsigned int from = 0; from < nodes->nr; from++) {
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/distance", from);
		if (tier_read_text(path, text, sizeof(text)) < 0)
			continue;
		at = text;
		for (unsigned int to = 0; to < nodes->nr; to++)
			if (nodes->online >> to & 1)
				distances[from * TIER_MAX_NODES + to] = strtoul(at, &at, 10);
	}
}

static int set_distances(struct bpf_object *obj, const struct tier_nodes *nodes)
{
	struct bpf_map *map = bpf_object__find_map_by_name(obj, ".rodata");
	unsigned int bytes;
	size_t size;
	char *data;
	int at;

	at = map ? tier_btf_var(bpf_object__btf(obj), ".rodata", "tier_distances", &bytes) : -ENOENT;
	data = map ? bpf_map__initial_value(map, &size) : NULL;
	if (at < 0 || !data || bytes != TIER_MAX_NODES * TIER_MAX_NODES || at + bytes > size)
		return -EINVAL;
	read_distances((__u8 *)data + at, nodes);
	return 0;
}

static int find_object(struct tier_ctx *ctx, char *path, size_t size)
{
	for (unsigned int i = 0; i < ctx->nr_dirs; i++)
		if ((size_t)snprintf(path, size, "%s/async.bpf.o", ctx->dirs[i]) < size &&
		    !access(path, F_OK))
			return 0;
	return tier_fail(ctx, TIER_CLASS_FAILED, -ENOENT, "Run make install.",
			 "find the program for faults outside the nodemask: no async.bpf.o in the "
			 "lookup directories");
}

static int load(struct tier_ctx *ctx, struct tier_async *async, const char *path, char *log)
{
	struct bpf_program *prog;
	struct tier_nodes nodes;
	struct tier_env env;
	int err;

	async->obj = tier_bpf_open(ctx, path, log, LOG_BYTES);
	if (!async->obj)
		return ctx->err;
	tier_nodes__probe(&nodes);
	async->nr_nodes = nodes.nr;
	err = tier_env__probe(ctx, &env) ?: tier_set_machine(async->obj, &env) ?:
	      set_distances(async->obj, &nodes);
	if (err)
		return tier_fail(ctx, TIER_CLASS_FAILED, err,
				 "Build tierctl and its objects together.",
				 "set the constants of %s: %s", path, strerror(-err));
	err = tier_size_maps(ctx, async->obj, &env, true);
	if (err)
		return err;
	prog = bpf_object__find_program_by_name(async->obj, "async_fault");
	if (!prog)
		return tier_fail(ctx, TIER_CLASS_FAILED, -ENOENT, NULL, "%s has no async_fault", path);
	bpf_program__set_autoload(prog, true);
	tier_libbpf_begin(ctx);
	err = bpf_object__load(async->obj);
	if (!err) {
		async->link = bpf_program__attach(prog);
		err = async->link ? 0 : -errno;
	}
	tier_libbpf_end(ctx);
	return err ? tier_load_failed(ctx, err, path, log) : 0;
}

int tier_async_open(struct tier_ctx *ctx, __u32 policy_id, struct tier_async **result)
{
	struct tier_async *async;
	char path[PATH_MAX], *log;
	int err;

	*result = NULL;
	if (!tier_async_wanted(ctx, policy_id))
		return 0;
	async = calloc(1, sizeof(*async));
	log = calloc(1, LOG_BYTES);
	if (!async || !log) {
		free(async);
		free(log);
		return tier_fail(ctx, TIER_CLASS_FAILED, -ENOMEM, NULL, "hook faults: out of memory");
	}
	err = find_object(ctx, path, sizeof(path)) ?: load(ctx, async, path, log);
	free(log);
	if (err)
		tier_log(ctx, TIER_LOG_WARN, "%s; going on without: pages of tasks that run outside "
			 "their memory policy's nodes stay where they are", ctx->message);
	else
		tier_log(ctx, TIER_LOG_INFO, "watching faults outside the memory policy's nodes");
	*result = async;
	return 0;
}

void tier_async_close(struct tier_async *async)
{
	if (!async)
		return;
	bpf_link__destroy(async->link);
	bpf_object__close(async->obj);
	free(async);
}

/*
 * A node's threshold is published when a fault towards it is decided. Where that
 * never happens the policy's own parameter stands in for it.
 */
void tier_async_refresh(struct tier_ctx *ctx, struct tier_async *async, __u32 policy_id)
{
	__s64 fallback_ms = param(ctx, policy_id, "hot_threshold_ms");
	int from = tier_pin_get(ctx, "maps/tier_nodes"), to;
	struct tier_async_node value = {};
	struct tier_node node;
	long mode = 0;

	to = async->link ? bpf_object__find_map_fd_by_name(async->obj, "tier_async_nodes") : -1;
	/* Without tiering there is no stamp: nothing may be taken for hot then. */
	tier_read_long(TIER_NUMA_BALANCING, &mode);
	for (__u32 nid = 0; from >= 0 && to >= 0 && nid < async->nr_nodes; nid++) {
		if (bpf_map_lookup_elem(from, &nid, &node))
			break;
		value.threshold_ms = !(mode & 2) ? 0 : node.threshold_ms ? node.threshold_ms :
				     fallback_ms >= 0 ? fallback_ms : DEFAULT_THRESHOLD_MS;
		bpf_map_update_elem(to, &nid, &value, BPF_ANY);
	}
	if (from >= 0)
		close(from);
}
