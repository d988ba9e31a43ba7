// SPDX-License-Identifier: GPL-2.0
/* tierctl topo: nodes, tiers, sizes, watermarks, where demotion goes. */
#include <stdlib.h>
#include <string.h>

#include "sysinfo.h"
#include "tierctl.h"

static const struct out_col node_cols[] = {
	{ "/node", "NODE", 0 }, { "/tier", "TIER", 0 }, { "/cpus", "CPUS", 0 },
	{ "/size_bytes", "SIZE", 0 }, { "/free_bytes", "FREE", 0 },
	{ "/watermark_low_bytes", "LOW", 0 }, { "/watermark_high_bytes", "HIGH", 0 },
	{ "/watermark_promo_bytes", "PROMO", OUT_OPTIONAL },
	{ "/demotion_targets", "DOWN TO", OUT_OPTIONAL }, { "/unreclaimable", "STUCK", 0 }, { 0 },
};

static const struct out_col speed_cols[] = {
	{ "/node", "NODE", 0 }, { "/distances", "DISTANCE TO 0, 1, ..", 0 },
	{ "/read_latency_ns", "READ", OUT_OPTIONAL }, { "/write_latency_ns", "WRITE", OUT_OPTIONAL },
	{ "/read_bandwidth_mbps", "READ MB/s", OUT_OPTIONAL | OUT_NO_UNIT },
	{ "/write_bandwidth_mbps", "WRITE MB/s", OUT_OPTIONAL | OUT_NO_UNIT }, { 0 },
};

static const struct out_col mode_cols[] = {
	{ "/numa_balancing", "numa_balancing", OUT_NO_UNIT },
	{ "/tiering_mode", "memory tiering mode", 0 },
	{ "/demotion_enabled", "demotion", 0 }, { 0 },
};

static const struct out_view views[] = {
	{ OUT_VIEW_TABLE, "/nodes", "Nodes", node_cols, "no NUMA nodes", false },
	{ OUT_VIEW_TABLE, "/nodes", "Distance and speed", speed_cols, NULL, false },
	{ OUT_VIEW_LINES, "", "Kernel", mode_cols, NULL, false },
	{ 0 },
};

static int tier_of(const struct tier_env *env, unsigned int nid)
{
	for (unsigned int i = 0; i < env->nr_tiers; i++)
		if (env->tiers[i].nodes >> nid & 1)
			return i;
	return -1;
}

static unsigned int distance(const struct sys_node *node, unsigned int to)
{
	const char *text = node->distance;
	char *end;
	unsigned long d = 0;

	for (unsigned int i = 0; i <= to; i++, text = end) {
		d = strtoul(text, &end, 10);
		if (end == text)
			return ~0U;
	}
	return d;
}

/*
 * The kernel does not publish its targets; this is its rule: the nearest nodes
 * of the next slower tier. Node distances list online nodes only, in order.
 */
static __u64 demotion_targets(const struct tier_env *env, const struct sys_node *nodes,
			      unsigned int nid)
{
	int tier = tier_of(env, nid);
	unsigned int best = ~0U, column = 0;
	__u64 targets = 0;

	if (tier < 0 || tier + 1 >= (int)env->nr_tiers)
		return 0;
	for (unsigned int to = 0; to < SYS_MAX_NODES; to++) {
		unsigned int d;

		if (!nodes[to].online)
			continue;
		d = distance(&nodes[nid], column++);
		if (!(env->tiers[tier + 1].nodes >> to & 1) || d > best)
			continue;
		targets = d < best ? 1ULL << to : targets | 1ULL << to;
		best = d;
	}
	return targets;
}

static void optional_u64(struct out *out, const char *key, __u64 value)
{
	if (value)
		out_u64(out, key, value);
	else
		out_str(out, key, NULL);
}

static void emit_node(struct tierctl *t, const struct tier_env *env, const struct sys_node *nodes,
		      unsigned int nid)
{
	const struct sys_node *n = &nodes[nid];
	int tier = tier_of(env, nid);
	struct out *out = t->out;
	__u64 read_mbps = 0;

	out_begin_object(out, NULL);
	out_u64(out, "node", nid);
	out_str(out, "tier", !n->has_memory ? "none" : env->top_nodes >> nid & 1 ? "fast" : "slow");
	out_str(out, "kernel_tier", tier < 0 ? NULL : env->tiers[tier].name);
	out_u64(out, "cpus", n->cpus);
	out_str(out, "cpulist", n->cpulist);
	out_u64(out, "size_bytes", n->total_bytes);
	out_u64(out, "free_bytes", n->free_bytes);
	out_u64(out, "watermark_min_bytes", n->min_bytes);
	out_u64(out, "watermark_low_bytes", n->low_bytes);
	out_u64(out, "watermark_high_bytes", n->high_bytes);
	optional_u64(out, "watermark_promo_bytes", n->promo_bytes);
	out_bool(out, "unreclaimable", n->unreclaimable);
	out_nodes(out, "demotion_targets", demotion_targets(env, nodes, nid));
	out_str(out, "distances", n->distance);
	optional_u64(out, "read_latency_ns", n->read_latency_ns);
	optional_u64(out, "write_latency_ns", n->write_latency_ns);
	tier_node__read_mbps(t->ctx, nid, &read_mbps);
	optional_u64(out, "read_bandwidth_mbps", read_mbps);
	optional_u64(out, "write_bandwidth_mbps", n->write_bandwidth_mbps);
	out_end(out);
}

static int run(struct tierctl *t, const struct args *args)
{
	struct sys_node nodes[SYS_MAX_NODES];
	struct tier_env env;
	int err;

	if (tier_env__probe(t->ctx, &env))
		return failure_ctx(t);
	err = sys_nodes(nodes);
	if (err)
		return failure(t, TIER_CLASS_UNSUPPORTED, "The kernel needs CONFIG_NUMA.",
			       "reading the NUMA nodes: %s", strerror(-err));
	out_begin_array(t->out, "nodes");
	for (unsigned int nid = 0; nid < SYS_MAX_NODES; nid++)
		if (nodes[nid].online)
			emit_node(t, &env, nodes, nid);
	out_end(t->out);
	out_s64(t->out, "numa_balancing", env.numa_balancing);
	out_bool(t->out, "tiering_mode", env.numa_balancing > 0 && env.numa_balancing & 2);
	if (env.demotion < 0)
		out_str(t->out, "demotion_enabled", NULL);
	else
		out_bool(t->out, "demotion_enabled", env.demotion);
	return show(t, views);
}

const struct command cmd_topo = {
	.name = "topo",
	.group = "Look",
	.summary = "nodes, tiers, sizes, watermarks, demotion targets",
	.doc = "Shows each node with its tier, CPUs, size, free memory, watermarks (LOW wakes kswapd, "
	"HIGH is where it stops, PROMO where it stops in memory tiering mode), where its pages are "
	"demoted to (by the kernel's rule: the nearest nodes of the next slower tier) and whether "
	"kswapd has given up on it (STUCK); then distances and, where the firmware tells, latency "
	"and bandwidth. Where it does not, the read bandwidth that tierctl measured when a limit was "
	"given as a share of it, if it was.",
	.examples = "  tierctl topo\n",
	.run = run,
};
