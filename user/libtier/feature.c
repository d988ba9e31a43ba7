// SPDX-License-Identifier: GPL-2.0
/*
 * Probes. The only file of user space that may name a kernel version, and only
 * to tell people what to look for: decisions are made on what is there.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "internal.h"

#define NODES	"/sys/devices/system/node/"
#define TIERS	"/sys/devices/virtual/memory_tiering"

const char *tier_kernel_too_old_hint(void)
{
	/* f6be98d19985 and friends, January 2024: module types for struct_ops. */
	return "Linux 6.9 or later is needed, built with CONFIG_DEBUG_INFO_BTF and "
	       "CONFIG_DEBUG_INFO_BTF_MODULES.";
}

struct btf *tier_vmlinux_btf(struct tier_ctx *ctx)
{
	if (!ctx->vmlinux_btf) {
		tier_libbpf_begin(ctx);
		ctx->vmlinux_btf = btf__load_vmlinux_btf();
		tier_libbpf_end(ctx);
	}
	return ctx->vmlinux_btf;
}

static __u64 read_mask(const char *path)
{
	char buf[256];
	__u64 mask = 0;

	if (tier_read_text(path, buf, sizeof(buf)) > 0)
		tier_parse_list(buf, &mask);
	return mask;
}

/* The kernel numbers tiers by abstract distance: the smaller the faster. */
static int tier_cmp(const void *a, const void *b)
{
	const struct tier_tier_info *x = a, *y = b;
	unsigned long nx = strtoul(x->name + strlen("memory_tier"), NULL, 10);
	unsigned long ny = strtoul(y->name + strlen("memory_tier"), NULL, 10);

	return nx < ny ? -1 : nx > ny;
}

static void probe_tiers(struct tier_env *env)
{
	struct dirent *entry;
	char path[320];
	DIR *dir;
	unsigned int slowest_cpu = 0;

	dir = opendir(TIERS);
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		struct tier_tier_info *tier = &env->tiers[env->nr_tiers];

		if (strncmp(entry->d_name, "memory_tier", strlen("memory_tier")) ||
		    env->nr_tiers == TIER_MAX_TIERS)
			continue;
		snprintf(path, sizeof(path), TIERS "/%s/nodelist", entry->d_name);
		tier_copy(tier->name, sizeof(tier->name), entry->d_name);
		tier->nodes = read_mask(path);
		if (tier->nodes)
			env->nr_tiers++;
	}
	closedir(dir);
	qsort(env->tiers, env->nr_tiers, sizeof(env->tiers[0]), tier_cmp);

	/* As node_is_toptier(): down to the slowest tier that has CPUs. */
	for (unsigned int i = 0; i < env->nr_tiers; i++)
		if (env->tiers[i].nodes & env->cpu_nodes)
			slowest_cpu = i;
	for (unsigned int i = 0; i < env->nr_tiers && i <= slowest_cpu; i++)
		env->top_nodes |= env->tiers[i].nodes;
}

static void probe_nodes(struct tier_env *env)
{
	__u64 possible = read_mask(NODES "possible");
	char buf[4096];
	__u64 kib;

	env->nr_nodes = possible ? 64 - __builtin_clzll(possible) : 1;
	env->nodes = read_mask(NODES "online");
	env->memory_nodes = read_mask(NODES "has_memory");
	env->cpu_nodes = read_mask(NODES "has_cpu");
	if (tier_read_text("/proc/meminfo", buf, sizeof(buf)) > 0 &&
	    !tier_line_value(buf, "MemTotal:", &kib))
		env->memory_bytes = kib * 1024;
}

void tier_nodes__probe(struct tier_nodes *nodes)
{
	struct tier_env env = {};

	probe_nodes(&env);
	probe_tiers(&env);
	nodes->nr = env.nr_nodes;
	nodes->online = env.nodes;
	nodes->top = env.top_nodes;
}

static int module_number(const char *file)
{
	char path[128];
	long value;

	snprintf(path, sizeof(path), TIER_SYSFS "/%s", file);
	return tier_read_long(path, &value) ? -1 : (int)value;
}

static bool has_func(struct tier_ctx *ctx, const char *name)
{
	struct btf *btf = tier_vmlinux_btf(ctx);

	return btf && btf__find_by_name_kind(btf, name, BTF_KIND_FUNC) > 0;
}

/* The function that registers a module's type came with the feature. */
static bool has_module_struct_ops(struct tier_ctx *ctx)
{
	return has_func(ctx, "__register_bpf_struct_ops");
}

int tier_env__probe(struct tier_ctx *ctx, struct tier_env *env)
{
	struct utsname uts;
	long value;

	tier_clear_error(ctx);
	memset(env, 0, sizeof(*env));
	if (access("/proc/self", F_OK) || access("/sys/kernel", F_OK))
		return tier_fail(ctx, TIER_CLASS_UNSUPPORTED, -ENOSYS,
				 "Mount proc on /proc and sysfs on /sys.",
				 "look at the machine: /proc or /sys is not mounted");

	uname(&uts);
	tier_copy(env->kernel_release, sizeof(env->kernel_release), uts.release);
	env->root = geteuid() == 0;
	env->btf = !access("/sys/kernel/btf/vmlinux", R_OK);
	env->module_struct_ops = env->btf && has_module_struct_ops(ctx);
	env->bpffs = tier_bpffs_mounted();

	probe_nodes(env);
	probe_tiers(env);
	env->numa_balancing = tier_read_long(TIER_NUMA_BALANCING, &value) ? -1 : value;
	env->demotion = tier_read_long("/sys/kernel/mm/numa/demotion_enabled", &value) ?
			-1 : value;

	env->module_loaded = tier_module_loaded();
	tier_module_find(ctx, env->module_path, sizeof(env->module_path));
	env->module_abi = module_number("abi_version");
	env->stamp_shift = module_number("stamp_shift");
	env->stamp_bits = module_number("stamp_bits");
	env->stamp_unit_ms = module_number("stamp_unit_ms");
	env->stamp_wrap_ms = module_number("stamp_wrap_ms");
	if (tier_module_text("state", env->module_state, sizeof(env->module_state)) < 0)
		env->module_state[0] = '\0';
	return 0;
}

/* What any policy needs of the machine. Ordered so that the first answer is the cause. */
int tier_env__require(struct tier_ctx *ctx, const struct tier_env *env)
{
	char list[64];

	if (!env->root)
		return tier_fail(ctx, TIER_CLASS_PERMISSION, -EPERM, "Run it with sudo.",
				 "change the promotion policy: not root (effective uid %u)",
				 geteuid());
	if (!env->btf)
		return tier_fail(ctx, TIER_CLASS_UNSUPPORTED, -ENOTSUP,
				 tier_kernel_too_old_hint(),
				 "read the kernel's types: kernel %s has no /sys/kernel/btf/vmlinux",
				 env->kernel_release);
	if (!env->module_struct_ops)
		return tier_fail(ctx, TIER_CLASS_UNSUPPORTED, -ENOTSUP,
				 tier_kernel_too_old_hint(),
				 "look for struct_ops in modules: kernel %s does not have it",
				 env->kernel_release);
	if (env->numa_balancing < 0)
		return tier_fail(ctx, TIER_CLASS_UNSUPPORTED, -ENOTSUP,
				 "A kernel built with CONFIG_NUMA_BALANCING is needed.",
				 "read %s: kernel %s has no NUMA balancing",
				 TIER_NUMA_BALANCING, env->kernel_release);
	if (!(env->memory_nodes & (env->memory_nodes - 1)))
		return tier_fail(ctx, TIER_CLASS_UNSUPPORTED, -ENODEV,
				 "Slow memory must be its own NUMA node: for CXL or PMEM see "
				 "daxctl reconfigure-device --mode=system-ram.",
				 "look for two NUMA nodes with memory: this machine has one");
	if (!env->nr_tiers)
		return tier_fail(ctx, TIER_CLASS_UNSUPPORTED, -ENOTSUP,
				 tier_kernel_too_old_hint(),
				 "read " TIERS ": kernel %s shows no memory tiers",
				 env->kernel_release);
	if (!(env->memory_nodes & ~env->top_nodes)) {
		tier_format_list(env->memory_nodes, list, sizeof(list));
		return tier_fail(ctx, TIER_CLASS_UNSUPPORTED, -ENODEV,
				 "The kernel ranks nodes by HMAT, CDAT or their driver: see "
				 "/sys/devices/virtual/memory_tiering and the firmware's HMAT "
				 "setting.",
				 "look for a slow memory tier: all nodes (%s) are in the top tier",
				 list);
	}
	return 0;
}

/* ---- the list for people ---- */

static void add(struct tier_feature *features, int max, int *nr, const char *name,
		const char *help, int value, const char *detail)
{
	if (*nr < max) {
		struct tier_feature *f = &features[*nr];

		f->name = name;
		f->help = help;
		f->value = value;
		tier_copy(f->detail, sizeof(f->detail), detail ? detail : "");
	}
	(*nr)++;
}

static const struct {
	const char *name;
	const char *func;
	const char *help;
} functions[] = {
	{ "hook_promote", "should_numa_migrate_memory", "the decision that policies replace" },
	{ "hook_address", "mpol_misplaced", "address of the fault, for policies that want it" },
	{ "hook_scan", "change_prot_numa", "policies that skip ranges; region history" },
	{ "observe_scanner", "task_numa_work", "cost of the NUMA scanner" },
	{ "observe_migrate", "migrate_misplaced_folio", "outcome of promotions" },
	{ "observe_prepare", "migrate_misplaced_folio_prepare",
	  "promotions refused before they began" },
	{ "observe_copies", "folio_migrate_flags", "promotions and demotions, whoever asked" },
};

int tier_features__probe(struct tier_ctx *ctx, struct tier_feature *features, int max)
{
	struct tier_env env;
	struct btf *btf;
	char buf[128];
	int nr = 0, err;
	long value;

	err = tier_env__probe(ctx, &env);
	if (err)
		return err;
	btf = env.btf ? tier_vmlinux_btf(ctx) : NULL;

	add(features, max, &nr, "root", "load, swap, set, unload", env.root, "");
	add(features, max, &nr, "vmlinux_btf", "everything", env.btf, "/sys/kernel/btf/vmlinux");
	add(features, max, &nr, "module_struct_ops", "policies in force",
	    btf ? env.module_struct_ops : -1, env.kernel_release);
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		add(features, max, &nr, functions[i].name, functions[i].help,
		    btf ? has_func(ctx, functions[i].func) : -1, functions[i].func);
	add(features, max, &nr, "observe_skips", "why the scanner passed over a VMA",
	    btf ? btf__find_by_name_kind(btf, "btf_trace_sched_skip_vma_numa",
					 BTF_KIND_TYPEDEF) > 0 : -1,
	    "sched_skip_vma_numa");

	err = tier_read_long("/proc/sys/kernel/ftrace_enabled", &value);
	add(features, max, &nr, "ftrace", "the module's hooks", err ? -1 : value != 0,
	    "kernel.ftrace_enabled");
	add(features, max, &nr, "bpffs", "policies that outlive the loader (load mounts it)",
	    env.bpffs, TIER_BPFFS);
	add(features, max, &nr, "numa_balancing", "hint faults",
	    env.numa_balancing >= 0, TIER_NUMA_BALANCING);
	snprintf(buf, sizeof(buf), "%u", env.nr_tiers);
	add(features, max, &nr, "memory_tiers", "slow and fast memory told apart",
	    (env.memory_nodes & ~env.top_nodes) != 0 && env.nr_tiers > 1, buf);
	add(features, max, &nr, "module_file", "policies in force",
	    env.module_path[0] != '\0', env.module_path);
	if (env.module_loaded)
		snprintf(buf, sizeof(buf), "ABI %d, state %s", env.module_abi, env.module_state);
	else
		tier_copy(buf, sizeof(buf), "load inserts it");
	add(features, max, &nr, "module_loaded", "policies in force", env.module_loaded, buf);
	if (env.module_loaded) {
		snprintf(buf, sizeof(buf), "%d", env.module_abi);
		add(features, max, &nr, "module_abi", "module and policies speak the same language",
		    env.module_abi == TIER_ABI_VERSION, buf);
		snprintf(buf, sizeof(buf), "wraps after %d ms, unit %d ms", env.stamp_wrap_ms,
			 env.stamp_unit_ms);
		add(features, max, &nr, "scan_stamp", "scan-to-fault latency",
		    env.stamp_wrap_ms > 0, buf);
	}
	return nr;
}
