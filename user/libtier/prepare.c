// SPDX-License-Identifier: GPL-2.0
/* A policy object on its way from open to known by the kernel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "internal.h"

/* Constants are optional: a policy that does not read one does not have it. */
int tier_set_rodata(struct bpf_object *obj, const char *name, __u64 value)
{
	struct bpf_map *map = bpf_object__find_map_by_name(obj, ".rodata");
	unsigned int bytes;
	__u32 value32 = value;
	size_t size;
	char *data;
	int offset;

	if (!map || !bpf_object__btf(obj))
		return 0;
	offset = tier_btf_var(bpf_object__btf(obj), ".rodata", name, &bytes);
	if (offset == -ENOENT)
		return 0;
	data = bpf_map__initial_value(map, &size);
	if (offset < 0 || !data || (bytes != 4 && bytes != 8) || offset + bytes > size)
		return -EINVAL;
	memcpy(data + offset, bytes == 4 ? (void *)&value32 : (void *)&value, bytes);
	return 0;
}

/* Pages of the smallest top-tier node that has memory; 0: unknown. */
static __u64 top_node_pages(const struct tier_env *env)
{
	unsigned long long kib, least = 0;
	char path[64], text[256];
	const char *total;

	for (unsigned int nid = 0; nid < TIER_MAX_NODES; nid++) {
		if (!((env->top_nodes & env->memory_nodes) >> nid & 1))
			continue;
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/meminfo", nid);
		if (tier_read_text(path, text, sizeof(text)) < 0)
			continue;
		total = strstr(text, "MemTotal:");
		if (total && sscanf(total, "MemTotal: %llu kB", &kib) == 1 && (!least || kib < least))
			least = kib;
	}
	return least * 1024 / sysconf(_SC_PAGESIZE);
}

/* What programs of ours know of the machine. */
int tier_set_machine(struct bpf_object *obj, const struct tier_env *env)
{
	struct timespec tick = {};
	/* -1 of a module that is not there yet: 0 says unknown to the programs. */
	__u64 bits = env->stamp_bits < 0 ? 0 : env->stamp_bits;

	/* The coarse clock moves once a jiffy: that is the kernel's HZ. */
	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	return tier_set_rodata(obj, "tier_nr_nodes", env->nr_nodes) ?:
	       tier_set_rodata(obj, "tier_top_nodes", env->top_nodes) ?:
	       tier_set_rodata(obj, "tier_top_node_pages", top_node_pages(env)) ?:
	       tier_set_rodata(obj, "tier_stamp_bits", bits) ?:
	       tier_set_rodata(obj, "tier_stamp_shift", bits ? env->stamp_shift : 0) ?:
	       tier_set_rodata(obj, "tier_stamp_unit_ms", bits ? env->stamp_unit_ms : 1) ?:
	       tier_set_rodata(obj, "tier_stamp_wrap_ms", bits ? env->stamp_wrap_ms : 0) ?:
	       tier_set_rodata(obj, "tier_page_shift", __builtin_ctzl(sysconf(_SC_PAGESIZE))) ?:
	       tier_set_rodata(obj, "tier_hz", tick.tv_nsec ? 1000000000 / tick.tv_nsec : 0);
}

/* Four times as many regions as the machine's memory fills, as a power of two. */
static __u32 regions_wanted(const struct tier_env *env)
{
	__u64 want = (env->memory_bytes >> TIER_REGION_SHIFT) * 4;
	__u32 regions = 1024;

	while (regions < want && regions < 1 << 20)
		regions <<= 1;
	return regions;
}

#define TABLES_SHARE	1536		/* tables take at most a 1536th of memory ... */
#define TABLES_LEAST	(5ULL << 28)	/* ... or that of 1.25 GiB: smaller ones forget too much */
#define TABLE_MIN	1024		/* entries */
#define LRU_OVERHEAD	64		/* bytes the kernel adds to an entry */

/* Bytes of a table of the policy's own, whose size is ours to choose; else 0. */
static __u64 table_bytes(const struct bpf_object *obj, const struct bpf_map *map, char *mask,
			 size_t size)
{
	const struct btf *btf = bpf_object__btf(obj);
	unsigned int bytes;

	snprintf(mask, size, "%s_mask", bpf_map__name(map));
	if (bpf_map__type(map) == BPF_MAP_TYPE_ARRAY && btf &&
	    tier_btf_var(btf, ".rodata", mask, &bytes) >= 0)
		return (__u64)bpf_map__max_entries(map) * ((bpf_map__value_size(map) + 7) & ~7U);
	if (bpf_map__type(map) == BPF_MAP_TYPE_LRU_HASH &&
	    strcmp(bpf_map__name(map), "tier_regions"))
		return (__u64)bpf_map__max_entries(map) *
		       (bpf_map__key_size(map) + bpf_map__value_size(map) + LRU_OVERHEAD);
	return 0;
}

/* Halves the largest table until all of them fit the machine; see tier/maps.bpf.h. */
static int size_tables(struct bpf_object *obj, const struct tier_env *env)
{
	__u64 memory = env->memory_bytes > TABLES_LEAST ? env->memory_bytes : TABLES_LEAST;
	struct bpf_map *map, *largest;
	__u64 sum, most, bytes;
	char mask[128];
	__u32 entries;
	int err = 0;

	do {
		sum = most = 0;
		largest = NULL;
		bpf_object__for_each_map(map, obj) {
			bytes = table_bytes(obj, map, mask, sizeof(mask));
			sum += bytes;
			if (bpf_map__type(map) == BPF_MAP_TYPE_RINGBUF)	/* takes its part as it is */
				sum += bpf_map__max_entries(map);
			if (bytes <= most || bpf_map__max_entries(map) <= TABLE_MIN)
				continue;
			most = bytes;
			largest = map;
		}
		if (sum <= memory / TABLES_SHARE || !largest)
			break;
		entries = bpf_map__max_entries(largest) / 2;
		err = bpf_map__set_max_entries(largest, entries);
		if (!err && bpf_map__type(largest) == BPF_MAP_TYPE_ARRAY) {
			snprintf(mask, sizeof(mask), "%s_mask", bpf_map__name(largest));
			err = tier_set_rodata(obj, mask, entries - 1);
		}
	} while (!err);
	return err;
}

/* State that a policy keeps per node. */
static int size_node_maps(struct bpf_object *obj, const struct tier_env *env)
{
	struct bpf_map *map;
	int err = 0;

	bpf_object__for_each_map(map, obj) {
		const char *name = bpf_map__name(map), *at = strrchr(name, '_');

		if (!err && bpf_map__type(map) == BPF_MAP_TYPE_ARRAY && at &&
		    !strcmp(at, "_nodes") && strncmp(name, "tier_", 5))
			err = bpf_map__set_max_entries(map, env->nr_nodes);
	}
	return err;
}

int tier_size_maps(struct tier_ctx *ctx, struct bpf_object *obj, const struct tier_env *env,
		   bool pin)
{
	const struct {
		const char *name;
		const char *dir;
		__u32 entries;
	} maps[] = {
		{ "tier_counts", "maps", env->nr_nodes * env->nr_nodes },
		{ "tier_hist", "maps", env->nr_nodes },
		{ "tier_nodes", "maps", env->nr_nodes },
		{ "tier_regions", "maps", regions_wanted(env) },
		{ "tier_moves", "observer", env->nr_nodes * env->nr_nodes },
		{ "tier_scans", "observer", 1 },
		{ "tier_scan_hist", "observer", 1 },
		{ "tier_requests", "maps", 256 * 1024 },
		{ "tier_request_counts", "maps", 1 },
		{ "tier_daemon", "maps", 1 },
	};
	char path[192];
	int err = size_tables(obj, env) ?: size_node_maps(obj, env);

	if (err)
		return tier_fail(ctx, TIER_CLASS_FAILED, err, NULL, "size the policy's tables: %s",
				 strerror(-err));
	for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(obj, maps[i].name);

		if (!map)
			continue;
		err = bpf_map__set_max_entries(map, maps[i].entries);
		/* libbpf takes the pinned map if there is one, and pins a new one if not. */
		tier_pin_path(ctx, path, sizeof(path), "%s/%s", maps[i].dir, maps[i].name);
		if (!err)
			err = bpf_map__set_pin_path(map, pin ? path : NULL);
		if (err)
			return tier_fail(ctx, TIER_CLASS_FAILED, err, NULL,
					 "size map %s to %u entries: %s", maps[i].name,
					 maps[i].entries, strerror(-err));
	}
	return 0;
}

static int or_flags(struct tier_ctx *ctx, struct tier_object *object, __u32 needs)
{
	unsigned int size;
	size_t data_size;
	char *data = bpf_map__initial_value(object->ops, &data_size);
	int offset = tier_btf_member(bpf_object__btf(object->obj), TIER_OPS_TYPE, "flags", &size);

	if (!data || offset < 0 || size != sizeof(__u32) || offset + size > data_size)
		return tier_fail(ctx, TIER_CLASS_FAILED, -EINVAL, NULL,
				 "ask the module for more fault data: %s has no flags in its table",
				 object->path);
	object->info->flags |= needs;
	memcpy(data + offset, &object->info->flags, sizeof(__u32));
	return 0;
}

int tier_object_prepare(struct tier_ctx *ctx, struct tier_object *object,
			const struct tier_env *env, const struct tier_setting *settings,
			unsigned int nr_settings, bool pin_maps)
{
	struct bpf_program *prog;
	size_t size = 0;
	__u32 needs;
	void *values;
	int err;

	/* The shadow and replay entries are for other occasions. */
	bpf_object__for_each_program(prog, object->obj)
		if (strncmp(bpf_program__section_name(prog), "struct_ops", 10))
			bpf_program__set_autoload(prog, false);

	values = object->params ? bpf_map__initial_value(object->params, &size) : NULL;
	err = tier_params_apply(ctx, object->info, bpf_object__btf(object->obj), settings,
				nr_settings, values, size, env->stamp_wrap_ms, &needs);
	if (err)
		return err;
	if (needs & ~object->info->flags) {
		err = or_flags(ctx, object, needs);
		if (err)
			return err;
	}

	err = tier_set_machine(object->obj, env);
	if (err)
		return tier_fail(ctx, TIER_CLASS_FAILED, err,
				 "Build it with the headers of this tierctl.",
				 "set the constants of %s: %s", object->path, strerror(-err));
	return tier_size_maps(ctx, object->obj, env, pin_maps);
}

/* The verifier ends its log with statistics; the reason is the line before them. */
static void verifier_reason(const char *log, char *reason, size_t size)
{
	static const char *const noise[] = {
		"processed ", "verification time", "stack depth", "-- END", "mark_precise",
	};
	const char *end = log + strlen(log), *start;

	reason[0] = '\0';
	while (end > log) {
		bool skip = false;
		size_t len;

		start = end;
		while (start > log && start[-1] != '\n')
			start--;
		len = end - start;
		for (size_t i = 0; i < ARRAY_SIZE(noise); i++)
			if (!strncmp(start, noise[i], strlen(noise[i])))
				skip = true;
		if (len && !skip) {
			if (len >= size)
				len = size - 1;
			memcpy(reason, start, len);
			reason[len] = '\0';
			return;
		}
		end = start > log ? start - 1 : log;
	}
}

int tier_load_failed(struct tier_ctx *ctx, int err, const char *path, const char *log)
{
	char reason[256] = "", said[128];

	libbpf_strerror(err, said, sizeof(said));
	if (err <= -__LIBBPF_ERRNO__START)
		err = -EINVAL;
	if (log)
		verifier_reason(log, reason, sizeof(reason));
	if (reason[0]) {
		tier_fail(ctx, TIER_CLASS_FAILED, -EACCES,
			  "The policy's code must change; -v shows the verifier's whole log.",
			  "load program %s of %s: the kernel's verifier refused it: %s",
			  ctx->failed_prog[0] ? ctx->failed_prog : "(unnamed)", path, reason);
		tier_set_detail(ctx, log);
		return -EACCES;
	}
	if (err == -EPERM)
		return tier_fail(ctx, TIER_CLASS_PERMISSION, err,
				 "Loading needs CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN, and no lockdown "
				 "of integrity level or more.", "load %s into the kernel: %s%s%s",
				 path, said, ctx->libbpf_warning[0] ? ": " : "",
				 ctx->libbpf_warning);
	return tier_fail(ctx, TIER_CLASS_FAILED, err,
			 "-vv shows what libbpf and the kernel said, step by step.",
			 "load %s into the kernel: %s%s%s", path, said,
			 ctx->libbpf_warning[0] ? ": " : "", ctx->libbpf_warning);
}

int tier_object_load(struct tier_ctx *ctx, struct tier_object *object)
{
	int err;

	tier_libbpf_begin(ctx);
	err = bpf_object__load(object->obj);
	tier_libbpf_end(ctx);
	if (err)
		return tier_load_failed(ctx, err, object->path, object->log);
	return 0;
}

/* One member of the kernel's table from the object's: a program by its descriptor. */
static void fill_member(const struct btf *btf, const struct btf_type *type, int index,
			const struct tier_object *object, const char *data, size_t data_size,
			char *value)
{
	const struct btf_member *member = btf_members(type) + index;
	const char *name = btf__name_by_offset(btf, member->name_off);
	unsigned int local_size;
	int local, id = btf__resolve_type(btf, member->type);
	size_t at = btf_member_bit_offset(type, index) / 8;
	const struct bpf_program *prog;
	unsigned long fd;

	local = tier_btf_member(bpf_object__btf(object->obj), TIER_OPS_TYPE, name, &local_size);
	if (local < 0 || id < 0 || local + local_size > data_size)
		return;	/* the object is older than the module: member stays absent */
	if (!btf_is_ptr(btf__type_by_id(btf, id))) {
		if (btf__resolve_size(btf, id) == (__s64)local_size)
			memcpy(value + at, data + local, local_size);
		return;
	}
	memcpy(&prog, data + local, sizeof(prog));
	if (prog && bpf_program__fd(prog) >= 0) {
		fd = bpf_program__fd(prog);
		memcpy(value + at, &fd, sizeof(fd));
	}
}

/*
 * libbpf does this step only together with creating a link, and its update of
 * a link neither works on one that comes from a pin nor compares the old map.
 */
int tier_object_register(struct tier_ctx *ctx, struct tier_object *object)
{
	struct btf *vmlinux = tier_vmlinux_btf(ctx), *btf = NULL;
	unsigned int size, value_size;
	const struct btf_type *type;
	size_t data_size;
	char *value = NULL, *data;
	int id, offset, err = -EINVAL;
	__u32 zero = 0;

	if (vmlinux)
		btf = btf__load_module_btf(TIER_MODULE, vmlinux);
	data = bpf_map__initial_value(object->ops, &data_size);
	id = btf ? btf__find_by_name_kind(btf, TIER_OPS_TYPE, BTF_KIND_STRUCT) : -1;
	offset = btf ? tier_btf_member(btf, TIER_OPS_VALUE, "data", &size) : -1;
	value_size = bpf_map__value_size(object->ops);
	if (!data || id < 0 || offset < 0 || offset + size > value_size) {
		tier_fail(ctx, TIER_CLASS_FAILED, err,
			  "Build module and tierctl from the same source.",
			  "read the types of module " TIER_MODULE ": it has no " TIER_OPS_TYPE);
		goto out;
	}
	type = btf__type_by_id(btf, id);
	value = calloc(1, value_size);
	if (!value) {
		err = tier_fail(ctx, TIER_CLASS_FAILED, -ENOMEM, NULL, "attach: out of memory");
		goto out;
	}
	/* After load libbpf reports the kernel's size for the object's table too. */
	id = btf__find_by_name_kind(bpf_object__btf(object->obj), TIER_OPS_TYPE, BTF_KIND_STRUCT);
	data_size = btf__resolve_size(bpf_object__btf(object->obj), id);
	for (int i = 0; i < btf_vlen(type); i++)
		fill_member(btf, type, i, object, data, data_size, value + offset);

	err = bpf_map_update_elem(bpf_map__fd(object->ops), &zero, value, 0) ? -errno : 0;
	if (err)
		tier_fail(ctx, TIER_CLASS_FAILED, err, err == -EPROTO ?
			  "Build module and policy from the same source." :
			  "See docs/writing-a-policy.md; the kernel log may say which member.",
			  "hand policy %s to the module: %s", object->info->name,
			  err == -EPROTO ? "it speaks another ABI" : strerror(-err));
out:
	free(value);
	btf__free(btf);
	return err;
}
