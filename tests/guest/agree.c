// SPDX-License-Identifier: GPL-2.0
/*
 * agree OBJECT JSON-FILE [READY-FILE]: compare the policy mainline with the kernel's own
 * decisions until SIGTERM, then write how often they agreed and why not (agree.h).
 *
 * The policy gets the kernel's settings as they are at the start. The module has to be there
 * and no policy loaded. Exit: 0, 1 failed, 2 usage.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <json-c/json.h>
#include <linux/types.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tier/abi.h>

#include "agree.h"
#include "guest_node.h"

#define MODULE	"/sys/kernel/tier_policy/"
#define KNOBS	"/sys/kernel/debug/sched/numa_balancing/"
#define NR_NODES 8		/* of the lab at most */
/* Largest per-CPU part of a node counter, MAX_THRESHOLD of the kernel's mm/vmstat.c. */
#define STAT_THRESHOLD	125

static const char *const decision_name[TIER_NR_DECISIONS] = {
#define TIER_DECISION(id, verdict, sym, name, cause) [id] = name,
#include <tier/decisions.def>
#undef TIER_DECISION
};

static int read_text(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "re");
	int ok = f && fgets(text, size, f);

	if (f)
		fclose(f);
	if (!ok)
		fprintf(stderr, "agree: reading %s: %s\n", path, errno ? strerror(errno) : "empty");
	return ok ? 0 : -1;
}

static int read_number(const char *path, __u64 *value)
{
	char text[64];

	if (read_text(path, text, sizeof(text)))
		return -1;
	*value = strtoull(text, NULL, 10);
	return 0;
}

/* Set a global of the object before it is loaded. */
static int set_global(struct bpf_object *obj, const char *section, const char *name, __u64 value)
{
	struct bpf_map *map = bpf_object__find_map_by_name(obj, section);
	struct btf *btf = bpf_object__btf(obj);
	int id = btf__find_by_name_kind(btf, section, BTF_KIND_DATASEC);
	const struct btf_type *sec = id < 0 ? NULL : btf__type_by_id(btf, id);
	const struct btf_var_secinfo *var = sec ? btf_var_secinfos(sec) : NULL;
	size_t size;
	char *area = map ? bpf_map__initial_value(map, &size) : NULL;

	for (int i = 0; area && sec && i < btf_vlen(sec); i++, var++) {
		const struct btf_type *type = btf__type_by_id(btf, var->type);

		if (strcmp(btf__name_by_offset(btf, type->name_off), name))
			continue;
		memcpy(area + var->offset, &value, var->size < sizeof(value) ? var->size : sizeof(value));
		return 0;
	}
	fprintf(stderr, "agree: the object has no %s in %s\n", name, section);
	return -1;
}

static int configure(struct bpf_object *obj)
{
	static const struct {
		const char *path, *section, *name;
	} from[] = {
		{ MODULE "stamp_shift", ".rodata", "tier_stamp_shift" },
		{ MODULE "stamp_bits", ".rodata", "tier_stamp_bits" },
		{ MODULE "stamp_unit_ms", ".rodata", "tier_stamp_unit_ms" },
		{ MODULE "stamp_wrap_ms", ".rodata", "tier_stamp_wrap_ms" },
		{ KNOBS "hot_threshold_ms", ".data.params", "hot_threshold_ms" },
		{ KNOBS "scan_period_max_ms", ".data.params", "adjust_interval_ms" },
		{ "/proc/sys/kernel/numa_balancing_promote_rate_limit_MBps", ".data.params",
		  "rate_limit_mbps" },
	};
	struct timespec tick;
	char nodes[64];
	__u64 value;

	for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++)
		if (read_number(from[i].path, &value) ||
		    set_global(obj, from[i].section, from[i].name, value))
			return -1;
	if (read_text(MODULE "top_tier_nodes", nodes, sizeof(nodes)))
		return -1;
	nodes[strcspn(nodes, "\n")] = 0;
	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	return set_global(obj, ".rodata", "tier_top_nodes", node_list(nodes)) ||
	       set_global(obj, ".rodata", "tier_nr_nodes", NR_NODES) ||
	       set_global(obj, ".rodata", "tier_hz", 1000000000 / tick.tv_nsec) ||
	       set_global(obj, ".rodata", "agree_count_slack",
			  2 * STAT_THRESHOLD * libbpf_num_possible_cpus());
}

/* Load the two programs of the comparison; the policy's own are not wanted. */
static int start(struct bpf_object *obj)
{
	static const char *const per_node[] = { "tier_hist", "tier_nodes" };
	struct bpf_program *prog;
	struct bpf_map *map;

	bpf_object__for_each_map(map, obj)
		if (bpf_map__type(map) == BPF_MAP_TYPE_STRUCT_OPS)
			bpf_map__set_autocreate(map, false);
	bpf_object__for_each_program(prog, obj)
		bpf_program__set_autoload(prog, !strncmp(bpf_program__name(prog), "agree_", 6));
	for (int i = 0; i < 2; i++)
		bpf_map__set_max_entries(bpf_object__find_map_by_name(obj, per_node[i]),
					 NR_NODES);
	bpf_map__set_max_entries(bpf_object__find_map_by_name(obj, "tier_counts"),
				 NR_NODES * NR_NODES);
	if (bpf_object__load(obj))
		return -1;
	/* The return first: an entry without it would wait for the wrong one. */
	if (!bpf_program__attach(bpf_object__find_program_by_name(obj, "agree_leave")) ||
	    !bpf_program__attach(bpf_object__find_program_by_name(obj, "agree_enter")))
		return -1;
	return 0;
}

static int write_result(struct bpf_object *obj, const char *path)
{
	static const char *const class_name[AGREE_CLASSES] = AGREE_CLASS_NAMES;
	int cpus = libbpf_num_possible_cpus(), err;
	struct agree_result *each = calloc(cpus, sizeof(*each)), sum = { 0 };
	struct json_object *top = json_object_new_object(), *part;
	__u64 compared = 0;
	__u32 zero = 0;

	if (!each || bpf_map_lookup_elem(bpf_object__find_map_fd_by_name(obj, "agree_results"),
					 &zero, each)) {
		fprintf(stderr, "agree: reading the results: %m\n");
		return -1;
	}
	for (int cpu = 0; cpu < cpus; cpu++)
		for (size_t i = 0; i < sizeof(sum) / sizeof(__u64); i++)
			((__u64 *)&sum)[i] += ((__u64 *)&each[cpu])[i];
	free(each);
	part = json_object_new_object();
	for (int i = 0; i < AGREE_CLASSES; i++) {
		compared += sum.class[i];
		json_object_object_add(part, class_name[i], json_object_new_int64(sum.class[i]));
	}
	json_object_object_add(top, "compared", json_object_new_int64(compared));
	json_object_object_add(top, "kernel_promoted", json_object_new_int64(sum.promoted));
	json_object_object_add(top, "lost", json_object_new_int64(sum.lost));
	json_object_object_add(top, "class", part);
	part = json_object_new_object();
	for (int i = 0; i < TIER_NR_DECISIONS; i++)
		if (decision_name[i])
			json_object_object_add(part, decision_name[i],
					       json_object_new_int64(sum.decision[i]));
	json_object_object_add(top, "decision", part);
	err = json_object_to_file_ext(path, top, JSON_C_TO_STRING_PLAIN);
	json_object_put(top);
	if (err)
		fprintf(stderr, "agree: writing %s: %m\n", path);
	return err;
}

int main(int argc, char **argv)
{
	struct bpf_object *obj;
	sigset_t set;
	FILE *ready;
	int sig;

	if (argc < 3) {
		fprintf(stderr, "usage: agree OBJECT JSON-FILE [READY-FILE]\n");
		return 2;
	}
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	obj = bpf_object__open_file(argv[1], NULL);
	if (!obj || configure(obj) || start(obj)) {
		fprintf(stderr, "agree: loading %s failed: %m\n", argv[1]);
		return 1;
	}
	if (argc > 3) {
		ready = fopen(argv[3], "we");
		if (!ready || fclose(ready)) {
			fprintf(stderr, "agree: writing %s: %m\n", argv[3]);
			return 1;
		}
	}
	sigwait(&set, &sig);
	return write_result(obj, argv[2]) ? 1 : 0;
}
