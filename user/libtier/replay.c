// SPDX-License-Identifier: GPL-2.0
/* A policy's decisions over made-up faults: its replay program, run by the kernel. */
#include <stdio.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "internal.h"

#define REPLAY_MAP	"tier_replay_faults"

/* Only the replay entry: no module, no struct_ops type, nothing of the machine's state. */
static int only_replay(struct tier_ctx *ctx, struct tier_object *object, unsigned int nr,
		       struct bpf_program **replay)
{
	struct bpf_map *faults = bpf_object__find_map_by_name(object->obj, REPLAY_MAP);
	char name[TIER_NAME_LEN + 8];
	struct bpf_program *prog;
	struct bpf_map *map;
	int err;

	snprintf(name, sizeof(name), "%s_replay", object->info->name);
	*replay = bpf_object__find_program_by_name(object->obj, name);
	if (!*replay || !faults)
		return tier_fail(ctx, TIER_CLASS_USAGE, -ENOENT,
				 "Build it with TIER_POLICY() of tier/policy.bpf.h.",
				 "replay %s: it has no replay program", object->path);
	bpf_object__for_each_program(prog, object->obj)
		bpf_program__set_autoload(prog, prog == *replay);
	bpf_object__for_each_map(map, object->obj)
		if (bpf_map__type(map) == BPF_MAP_TYPE_STRUCT_OPS)
			bpf_map__set_autocreate(map, false);
	err = bpf_map__set_max_entries(faults, nr);
	if (err)
		return tier_fail(ctx, TIER_CLASS_FAILED, err, NULL, "make room for %u faults: %s",
				 nr, strerror(-err));
	return 0;
}

static int run(struct tier_ctx *ctx, struct tier_object *object, struct bpf_program *replay,
	       struct tier_replay_entry *entries, unsigned int nr, __u64 *elapsed_ns)
{
	int map = bpf_object__find_map_fd_by_name(object->obj, REPLAY_MAP), err = 0;
	struct tier_replay context = { .nr = nr, .repeat = 1 };
	/* The kernel writes the context of a syscall program back in place. */
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &context, .ctx_size_in = sizeof(context));

	for (__u32 i = 0; i < nr && !err; i++)
		err = bpf_map_update_elem(map, &i, &entries[i], BPF_ANY);
	if (!err)
		err = bpf_prog_test_run_opts(bpf_program__fd(replay), &opts);
	if (!err)
		err = context.error;
	for (__u32 i = 0; i < nr && !err; i++)
		err = bpf_map_lookup_elem(map, &i, &entries[i]);
	if (err)
		return tier_fail(ctx, TIER_CLASS_FAILED, err, NULL, "replay %u faults over %s: %s",
				 nr, object->path, strerror(-err));
	if (elapsed_ns)
		*elapsed_ns = context.elapsed_ns;
	return 0;
}

int tier_replay(struct tier_ctx *ctx, const char *policy, const struct tier_setting *settings,
		unsigned int nr_settings, __u32 stamp_wrap_ms, struct tier_replay_entry *entries,
		unsigned int nr, __u64 *elapsed_ns)
{
	struct bpf_program *replay;
	struct tier_object object;
	struct tier_env env;
	int err;

	tier_clear_error(ctx);
	err = tier_env__probe(ctx, &env);
	if (err)
		return err;
	/* The faults say which nodes there are; this machine's own do not matter. */
	env.nr_nodes = 1;
	env.stamp_bits = env.stamp_shift = 0;
	env.stamp_unit_ms = 1;
	env.stamp_wrap_ms = stamp_wrap_ms;
	env.memory_bytes = 1ULL << 36;	/* tables of full size */
	for (unsigned int i = 0; i < nr; i++) {
		const struct tier_fault *f = &entries[i].fault;
		__s32 nid = f->src_nid > f->dst_nid ? f->src_nid : f->dst_nid;

		if (nid >= TIER_MAX_NODES || f->src_nid < 0 || f->dst_nid < 0)
			return tier_fail(ctx, TIER_CLASS_USAGE, -EINVAL, "Node ids go from 0 to 63.",
					 "replay fault %u: from node %d to node %d", i + 1,
					 f->src_nid, f->dst_nid);
		if ((__u32)nid >= env.nr_nodes)
			env.nr_nodes = nid + 1;
	}

	err = tier_object_open(ctx, policy, &object);
	if (err)
		return err;
	ctx->trying = true;
	err = tier_object_prepare(ctx, &object, &env, settings, nr_settings, false);
	ctx->trying = false;
	if (!err)
		err = tier_set_rodata(object.obj, "tier_stamp_wrap_ms", stamp_wrap_ms);
	if (!err)
		err = only_replay(ctx, &object, nr, &replay);
	if (!err)
		err = tier_object_load(ctx, &object);
	if (!err)
		err = run(ctx, &object, replay, entries, nr, elapsed_ns);
	tier_object_close(&object);
	return err;
}
