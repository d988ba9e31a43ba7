// SPDX-License-Identifier: GPL-2.0
/* doctor: kernel, module, tiers, memory. */
#include <ctype.h>
#include <glob.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"

#define MAX_FEATURES	64

/* Functions that the module hooks with IPMODIFY; another user of it is in the way. */
static const char *const hooked[] = { "should_numa_migrate_memory", "change_prot_numa" };

static void check_features(struct doctor *d)
{
	static const struct {
		const char *name, *id, *consequence, *remedy;
	} needed[] = {
		{ "vmlinux_btf", "no_btf", "no policy can be loaded",
		  "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y" },
		{ "module_struct_ops", "no_module_struct_ops", "no policy can be loaded",
		  "boot a newer kernel ('tierctl version --features' shows what is missing)" },
		{ "hook_promote", "no_hook", "the module cannot take over the decision",
		  "boot a kernel with CONFIG_NUMA_BALANCING=y and CONFIG_FUNCTION_TRACER=y" },
	};
	struct tier_feature features[MAX_FEATURES];
	int nr = tier_features__probe(d->t->ctx, features, MAX_FEATURES);

	for (int i = 0; i < nr && i < MAX_FEATURES; i++)
		for (size_t n = 0; n < sizeof(needed) / sizeof(needed[0]); n++) {
			struct finding *f;

			if (strcmp(features[i].name, needed[n].name))
				continue;
			d->checks++;
			if (features[i].value)
				continue;
			f = doctor_add(d, needed[n].id, SEV_UNSUPPORTED);
			SAY(f->finding, "the kernel lacks what is needed for %s", features[i].help);
			SAY(f->evidence, "%s: %s", features[i].name, features[i].detail);
			SAY(f->consequence, "%s", needed[n].consequence);
			SAY(f->remedy, "%s", needed[n].remedy);
		}
}

static void check_ftrace(struct doctor *d)
{
	struct finding *f;
	__u64 enabled;

	d->checks++;
	if (sys_read_u64(&enabled, "/proc/sys/kernel/ftrace_enabled") || enabled)
		return;
	f = doctor_add(d, "ftrace_off", SEV_PROBLEM);
	SAY(f->finding, "ftrace is switched off");
	SAY(f->evidence, "kernel.ftrace_enabled = 0");
	SAY(f->consequence, "the module's hooks are not called: the kernel's own algorithm decides");
	SAY(f->remedy, "sysctl -w kernel.ftrace_enabled=1");
	SAY(f->fix_path, "/proc/sys/kernel/ftrace_enabled");
	SAY(f->fix_value, "1");
}

static void taken(struct doctor *d, const char *name, const char *remedy, const char *evidence)
{
	struct finding *f = doctor_add(d, "ipmodify_taken", SEV_PROBLEM);

	SAY(f->finding, "something else has taken over %s", name);
	SAY(f->evidence, "%.200s", evidence);
	SAY(f->consequence, "the module cannot hook it: load fails");
	SAY(f->remedy, "%s", remedy);
}

/* A live patch has a directory FUNCTION,N for each function that it replaces. */
static bool check_livepatch(struct doctor *d)
{
	char pattern[128], remedy[200], *patch;
	bool found = false;
	glob_t paths;

	d->checks++;
	for (size_t i = 0; i < sizeof(hooked) / sizeof(hooked[0]); i++) {
		SAY(pattern, "/sys/kernel/livepatch/*/vmlinux/%s,*", hooked[i]);
		if (glob(pattern, 0, NULL, &paths))
			continue;
		patch = paths.gl_pathv[0] + strlen("/sys/kernel/livepatch/");
		SAY(remedy, "echo 0 > /sys/kernel/livepatch/%.*s/enabled, if you can do without it",
		    (int)strcspn(patch, "/"), patch);
		taken(d, hooked[i], remedy, paths.gl_pathv[0]);
		globfree(&paths);
		found = true;
	}
	return found;
}

/* Flags are single capitals between blanks, in columns of their own: "(1) R I     tramp: .." */
static bool has_flag(const char *text, char flag)
{
	for (; *text == ' ' || (isupper((unsigned char)*text) && text[1] == ' '); text++)
		if (*text == flag)
			return true;
	return *text == flag && (!text[1] || text[1] == '\n');
}

/* In tracefs' enabled_functions an "I" flag is IPMODIFY: one user at a time. */
static void check_ipmodify(struct doctor *d)
{
	FILE *file = fopen("/sys/kernel/tracing/enabled_functions", "re");
	char line[512], name[128];

	if (!file)
		file = fopen("/sys/kernel/debug/tracing/enabled_functions", "re");
	/* With a policy in force the user is our own module. */
	if (!file || doctor_loaded(d)) {
		if (file)
			fclose(file);
		return;
	}
	d->checks++;
	while (fgets(line, sizeof(line), file)) {
		const char *open = strchr(line, ')');

		if (sscanf(line, "%127s", name) != 1 || !open)
			continue;
		line[strcspn(line, "\n")] = '\0';
		for (size_t i = 0; i < sizeof(hooked) / sizeof(hooked[0]); i++)
			if (!strcmp(name, hooked[i]) && has_flag(open + 1, 'I'))
				taken(d, name, "look which module did: lsmod; its words are in "
				      "/sys/kernel/tracing/enabled_functions", line);
	}
	fclose(file);
}

static void check_module(struct doctor *d)
{
	struct finding *f;
	char text[64];

	d->checks++;
	if (!d->env.module_loaded && !*d->env.module_path) {
		f = doctor_add(d, "no_module", SEV_PROBLEM);
		SAY(f->finding, "there is no module tier_policy for this kernel");
		SAY(f->evidence, "kernel %s: nothing under /lib/modules and none in a build tree",
		    d->env.kernel_release);
		SAY(f->consequence, "no policy can be put in force");
		SAY(f->remedy, "make kmod && make install");
	}
	if (d->env.module_loaded && d->env.module_abi != TIER_ABI_VERSION) {
		f = doctor_add(d, "module_abi", SEV_PROBLEM);
		SAY(f->finding, "module and tierctl are of different ABI versions");
		SAY(f->evidence, "module %d, tierctl %d", d->env.module_abi, TIER_ABI_VERSION);
		SAY(f->consequence, "policies are refused");
		SAY(f->remedy, "tierctl unload; rmmod tier_policy; install the matching module");
	}
	/* A signature is checked at insertion; once it is in, it was good enough. */
	if (d->env.module_loaded)
		return;
	d->checks++;
	if (!sys_read(text, sizeof(text), "/sys/module/module/parameters/sig_enforce") &&
	    text[0] == 'Y') {
		f = doctor_add(d, "module_signature", SEV_WARNING);
		SAY(f->finding, "the kernel takes signed modules only");
		SAY(f->evidence, "/sys/module/module/parameters/sig_enforce = Y");
		SAY(f->consequence, "load fails unless tier_policy.ko is signed with a trusted key");
		SAY(f->remedy, "sign it (kmodsign, or scripts/sign-file of the kernel) and enrol the key");
	}
}

void doctor_check_kernel(struct doctor *d)
{
	check_features(d);
	check_ftrace(d);
	if (!check_livepatch(d))
		check_ipmodify(d);
	check_module(d);
}

static unsigned int bits(__u64 mask)
{
	return __builtin_popcountll(mask);
}

static void check_mode(struct doctor *d)
{
	struct finding *f;

	d->checks++;
	if (d->env.numa_balancing < 0 || d->env.numa_balancing & 2)
		return;
	f = doctor_add(d, "mode_off", doctor_loaded(d) ? SEV_PROBLEM : SEV_WARNING);
	SAY(f->finding, "memory tiering mode is off");
	SAY(f->evidence, "kernel.numa_balancing = %d, bit 2 is not set", d->env.numa_balancing);
	if (doctor_loaded(d)) {
		SAY(f->consequence, "slow pages are not scanned for promotion: the policy is never asked");
		SAY(f->fix_path, "/proc/sys/kernel/numa_balancing");
		SAY(f->fix_value, "%d", d->env.numa_balancing | 2);
		SAY(f->remedy, "sysctl -w kernel.numa_balancing=%d", d->env.numa_balancing | 2);
	} else {
		SAY(f->consequence, "no slow page is promoted");
		SAY(f->remedy, "tierctl load POLICY (switches it on, and off again at unload)");
	}
}

static void check_demotion(struct doctor *d)
{
	struct finding *f;

	d->checks++;
	if (d->env.demotion)
		return;
	f = doctor_add(d, "demotion_off", SEV_WARNING);
	SAY(f->finding, "demotion is off");
	SAY(f->evidence, "/sys/kernel/mm/numa/demotion_enabled = false");
	SAY(f->consequence, "once the fast nodes are full, cold pages do not make room: promotions fail, "
	    "or reclaim swaps");
	SAY(f->remedy, "echo 1 > /sys/kernel/mm/numa/demotion_enabled");
	SAY(f->fix_path, "/sys/kernel/mm/numa/demotion_enabled");
	SAY(f->fix_value, "1");
}

void doctor_check_tiers(struct doctor *d)
{
	struct finding *f;

	d->checks += 2;
	if (bits(d->env.memory_nodes) < 2) {
		f = doctor_add(d, "one_node", SEV_UNSUPPORTED);
		SAY(f->finding, "the machine has one node with memory");
		SAY(f->evidence, "/sys/devices/system/node/has_memory");
		SAY(f->consequence, "there is nothing to promote from");
		SAY(f->remedy, "bring the slow memory up as a node: daxctl reconfigure-device "
		    "--mode=system-ram dax0.0");
		return;
	}
	if (d->env.nr_tiers < 2 || !(d->env.memory_nodes & ~d->env.top_nodes)) {
		f = doctor_add(d, "one_tier", SEV_UNSUPPORTED);
		SAY(f->finding, "all nodes with memory are in one tier");
		SAY(f->evidence, "/sys/devices/virtual/memory_tiering has %u tier(s)", d->env.nr_tiers);
		SAY(f->consequence, "no page counts as slow: nothing is promoted");
		SAY(f->remedy, "the firmware must describe the slow memory (HMAT), or its driver must "
		    "(dax_kmem)");
		return;
	}
	check_mode(d);
	check_demotion(d);
}

static void check_node(struct doctor *d, unsigned int nid)
{
	const struct sys_node *n = &d->nodes[nid];
	struct finding *f;

	d->checks += 2;
	if (n->unreclaimable) {
		f = doctor_add(d, "kswapd_gave_up", SEV_PROBLEM);
		SAY(f->finding, "kswapd has given up on fast node %u", nid);
		SAY(f->evidence, "/proc/zoneinfo: node_unreclaimable 1, %llu MiB free of %llu MiB",
		    n->free_bytes >> 20, n->total_bytes >> 20);
		SAY(f->consequence, "no room is made there: promotions fail until memory is freed");
		SAY(f->remedy, "free memory on node %u: numastat -m shows what fills it; mlocked and "
		    "kernel memory cannot be demoted", nid);
		return;
	}
	if (n->free_bytes < n->low_bytes && d->env.demotion == 0) {
		f = doctor_add(d, "no_room", SEV_PROBLEM);
		SAY(f->finding, "fast node %u is full, and nothing is demoted", nid);
		SAY(f->evidence, "%llu MiB free, low watermark %llu MiB, demotion off",
		    n->free_bytes >> 20, n->low_bytes >> 20);
		SAY(f->consequence, "promotions are refused");
		SAY(f->remedy, "echo 1 > /sys/kernel/mm/numa/demotion_enabled");
		return;
	}
	if (n->promo_bytes && n->free_bytes < n->promo_bytes) {
		f = doctor_add(d, "little_room", SEV_NOTE);
		SAY(f->finding, "fast node %u has less free than kswapd keeps for promotion", nid);
		SAY(f->evidence, "%llu MiB free, promotion watermark %llu MiB", n->free_bytes >> 20,
		    n->promo_bytes >> 20);
		SAY(f->consequence, "promotions wait for what is demoted");
		SAY(f->remedy, "nothing, if tierctl stats shows pages promoted; else see what fills the "
		    "node: numastat -m");
	}
}

static void check_notes(struct doctor *d)
{
	struct finding *f;
	char text[64];
	__u64 bits_on;

	d->checks += 2;
	if (!sys_read(text, sizeof(text), "/sys/kernel/mm/transparent_hugepage/enabled") &&
	    strstr(text, "[always]")) {
		f = doctor_add(d, "thp_always", SEV_NOTE);
		SAY(f->finding, "transparent huge pages are always on");
		SAY(f->evidence, "/sys/kernel/mm/transparent_hugepage/enabled: %s", text);
		SAY(f->consequence, "one hint fault stands for up to 512 pages, hot or not");
		SAY(f->remedy, "nothing, unless few pages of each are hot");
	}
	if (!sys_read(text, sizeof(text), "/sys/kernel/mm/lru_gen/enabled") &&
	    sscanf(text, "%llx", &bits_on) == 1 && bits_on) {
		f = doctor_add(d, "mglru", SEV_NOTE);
		SAY(f->finding, "multi-gen LRU chooses what is demoted");
		SAY(f->evidence, "/sys/kernel/mm/lru_gen/enabled: %s", text);
		SAY(f->consequence, "demotion follows generations, not the active and inactive lists");
		SAY(f->remedy, "nothing");
	}
}

void doctor_check_memory(struct doctor *d)
{
	for (unsigned int nid = 0; nid < SYS_MAX_NODES; nid++)
		if (d->nodes[nid].has_memory && d->env.top_nodes >> nid & 1)
			check_node(d, nid);
	check_notes(d);
}
