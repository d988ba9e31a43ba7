/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Between the policy tests only: load a policy object into the running kernel,
 * without module and NUMA, and run its replay program over made-up faults.
 * The verifier and the bytecode are the real ones.
 */
#ifndef POLICY_RUN_H
#define POLICY_RUN_H

#include <errno.h>
#include <linux/types.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <cmocka.h>
#include <tier/abi.h>
#include <tier/hist.h>

#define NR_NODES	2
#define MAX_FAULTS	4096

struct policy {
	struct bpf_object *obj;
	int replay_fd;
	int nr_cpus;
};

/* A setting made before load, of a rodata constant or of a parameter. */
struct setting {
	const char *name;
	__u64 value;
};

static inline int policy_print(enum libbpf_print_level level, const char *fmt, va_list args)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, fmt, args) : 0;
}

/* Where a global lies in its section's map; NULL when there is no such global. */
static inline void *policy_var(struct policy *p, const char *section, const char *name, size_t *size)
{
	const struct btf *btf = bpf_object__btf(p->obj);
	int id = btf__find_by_name_kind(btf, section, BTF_KIND_DATASEC);
	struct bpf_map *map = bpf_object__find_map_by_name(p->obj, section);
	const struct btf_type *sec;
	size_t bytes;
	char *data;

	if (id < 0 || !map)
		return NULL;
	data = bpf_map__initial_value(map, &bytes);
	sec = btf__type_by_id(btf, id);
	for (int i = 0; i < btf_vlen(sec); i++) {
		const struct btf_var_secinfo *var = btf_var_secinfos(sec) + i;
		const struct btf_type *type = btf__type_by_id(btf, var->type);

		if (!strcmp(btf__name_by_offset(btf, type->name_off), name)) {
			*size = var->size;
			return data + var->offset;
		}
	}
	return NULL;
}

static inline void policy_set(struct policy *p, const char *name, __u64 value)
{
	size_t size = 0;
	void *at = policy_var(p, ".data.params", name, &size);

	if (!at)
		at = policy_var(p, ".rodata", name, &size);
	if (!at)
		fail_msg("the object has no global '%s'", name);
	memcpy(at, &value, size);
}

static inline struct policy *policy_open(const char *name)
{
	const char *dir = getenv("TIER_BPF_DIR");
	struct policy *p = calloc(1, sizeof(*p));
	struct bpf_program *prog;
	struct bpf_map *map;
	char path[512], replay[64];

	libbpf_set_print(policy_print);
	snprintf(path, sizeof(path), "%s/policy_%s.bpf.o", dir ? dir : "build/bpf", name);
	snprintf(replay, sizeof(replay), "%s_replay", name);
	p->obj = bpf_object__open_file(path, NULL);
	if (!p->obj)
		fail_msg("cannot open %s: %s", path, strerror(errno));
	bpf_object__for_each_program(prog, p->obj) {
		const char *at = strstr(bpf_program__name(prog), "_replay");

		bpf_program__set_autoload(prog, at != NULL);
	}
	bpf_object__for_each_map(map, p->obj) {
		const char *at = bpf_map__name(map);

		if (bpf_map__type(map) == BPF_MAP_TYPE_STRUCT_OPS)
			bpf_map__set_autocreate(map, false);
		else if (!strcmp(at, "tier_counts"))
			bpf_map__set_max_entries(map, NR_NODES * NR_NODES);
		else if (!strcmp(at, "tier_hist") || !strcmp(at, "tier_nodes"))
			bpf_map__set_max_entries(map, NR_NODES);
		else if (!strncmp(at, "tier_replay_", 12))
			bpf_map__set_max_entries(map, MAX_FAULTS);
	}
	policy_set(p, "tier_nr_nodes", NR_NODES);
	policy_set(p, "tier_top_nodes", 1);
	p->nr_cpus = libbpf_num_possible_cpus();
	return p;
}

static inline void policy_load(struct policy *p, const char *name)
{
	char replay[64];

	assert_int_equal(bpf_object__load(p->obj), 0);
	snprintf(replay, sizeof(replay), "%s_replay", name);
	p->replay_fd = bpf_program__fd(bpf_object__find_program_by_name(p->obj, replay));
	assert_true(p->replay_fd >= 0);
}

/* Open, set, load in one go; the list of settings ends with a NULL name. */
static inline struct policy *policy_start(const char *name, const struct setting *set)
{
	struct policy *p = policy_open(name);

	for (; set && set->name; set++)
		policy_set(p, set->name, set->value);
	policy_load(p, name);
	return p;
}

static inline void policy_stop(struct policy *p)
{
	bpf_object__close(p->obj);
	free(p);
}

static inline int policy_map(struct policy *p, const char *name)
{
	int fd = bpf_object__find_map_fd_by_name(p->obj, name);

	if (fd < 0)
		fail_msg("the object has no map '%s'", name);
	return fd;
}

/* A base page on slow node 1, faulting on node 0. */
static inline struct tier_fault fault(__u32 now_ms, __u32 latency_ms)
{
	return (struct tier_fault){
		.now_ms = now_ms, .latency_ms = latency_ms, .nr_pages = 1,
		.src_nid = 1, .dst_nid = 0, .pid = 100, .tgid = 100, .pfn = 4711,
	};
}

/* The same with an address, in a VMA of 4 MiB. */
static inline struct tier_fault at(__u64 addr, __u32 now_ms, __u32 latency_ms)
{
	struct tier_fault f = fault(now_ms, latency_ms);

	f.flags = TIER_FAULT_ADDR;
	f.mm_id = 0xffff888001234000;
	f.vm_start = 0x7f0000000000;
	f.vm_end = 0x7f0000400000;
	f.addr = f.vm_start + addr;
	return f;
}

static inline int policy_run_prog(int fd, struct tier_replay *run)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = run, .ctx_size_in = sizeof(*run));
	int err = bpf_prog_test_run_opts(fd, &opts);

	return err ? err : (int)opts.retval;
}

static inline int policy_run_raw(struct policy *p, struct tier_replay *run)
{
	return policy_run_prog(p->replay_fd, run);
}

/* Verdict of the scan op of a policy on one range. */
static inline __u32 policy_scan(struct policy *p, const char *name, const struct tier_scan *scan)
{
	struct tier_replay_scan entry = { .scan = *scan, .verdict = ~0U };
	struct tier_replay run = { .nr = 1, .repeat = 1 };
	int fd = policy_map(p, "tier_replay_scans");
	char replay[64];
	__u32 zero = 0;

	snprintf(replay, sizeof(replay), "%s_scan_replay", name);
	assert_int_equal(bpf_map_update_elem(fd, &zero, &entry, BPF_ANY), 0);
	assert_int_equal(policy_run_prog(bpf_program__fd(bpf_object__find_program_by_name(p->obj,
											   replay)),
					 &run), 0);
	assert_int_equal(bpf_map_lookup_elem(fd, &zero, &entry), 0);
	return entry.verdict;
}

/* Run over the faults in order; decisions and latencies come back in out. */
static inline void policy_run(struct policy *p, const struct tier_fault *faults, __u32 nr,
		       struct tier_replay_entry *out)
{
	struct tier_replay run = { .nr = nr, .repeat = 1 };
	int fd = policy_map(p, "tier_replay_faults");

	assert_true(nr <= MAX_FAULTS);
	for (__u32 i = 0; i < nr; i++) {
		struct tier_replay_entry entry = { .fault = faults[i], .decision = ~0U };

		assert_int_equal(bpf_map_update_elem(fd, &i, &entry, BPF_ANY), 0);
	}
	assert_int_equal(policy_run_raw(p, &run), 0);
	for (__u32 i = 0; i < nr; i++)
		assert_int_equal(bpf_map_lookup_elem(fd, &i, &out[i]), 0);
}

/* Decision on one fault. */
static inline __u32 policy_decide(struct policy *p, struct tier_fault f)
{
	struct tier_replay_entry entry;

	policy_run(p, &f, 1, &entry);
	return entry.decision;
}

/* Sums over CPUs of a per-CPU array value made of __u64. */
static inline void policy_sum(struct policy *p, const char *map, __u32 index, __u64 *sum, size_t nr)
{
	__u64 *values = calloc((size_t)p->nr_cpus * nr, sizeof(*values));

	memset(sum, 0, nr * sizeof(*sum));
	assert_int_equal(bpf_map_lookup_elem(policy_map(p, map), &index, values), 0);
	for (int cpu = 0; cpu < p->nr_cpus; cpu++)
		for (size_t i = 0; i < nr; i++)
			sum[i] += values[cpu * nr + i];
	free(values);
}

static inline struct tier_counts policy_counts(struct policy *p, int src, int dst)
{
	struct tier_counts counts;

	policy_sum(p, "tier_counts", src * NR_NODES + dst, (__u64 *)&counts,
		   sizeof(counts) / sizeof(__u64));
	return counts;
}

static inline struct tier_hist policy_hist(struct policy *p, int dst)
{
	struct tier_hist hist;

	policy_sum(p, "tier_hist", dst, hist.pages, TIER_HIST_SLOTS);
	return hist;
}

static inline struct tier_node policy_node(struct policy *p, __u32 dst)
{
	struct tier_node node;

	assert_int_equal(bpf_map_lookup_elem(policy_map(p, "tier_nodes"), &dst, &node), 0);
	return node;
}

static inline void policy_put_node(struct policy *p, __u32 dst, const struct tier_node *node)
{
	assert_int_equal(bpf_map_update_elem(policy_map(p, "tier_nodes"), &dst, node, BPF_ANY), 0);
}

/* BPF_PROG_RUN needs privilege: without it these tests cannot run at all. */
static inline bool policy_can_run(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts);
	int fd = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "probe", 4, 8, 1, &opts);

	if (fd < 0) {
		printf("1..0 # SKIP bpf() says '%s': policy tests need root\n", strerror(-fd));
		return false;
	}
	close(fd);
	return true;
}

#endif /* POLICY_RUN_H */
