// SPDX-License-Identifier: GPL-2.0
/*
 * Every program that needs neither module nor tiers, through the verifier of
 * the kernel that runs this: the observer and the policies' shadow programs,
 * loaded and attached. What the running kernel has no function for is left out.
 */
#include <glob.h>
#include "policy_run.h"

static struct btf *vmlinux;

/* The observer's and the shadows' targets as the section names give them. */
static bool has_target(const struct bpf_program *prog)
{
	const char *section = bpf_program__section_name(prog), *target = strchr(section, '/');
	char name[128];

	if (!target)
		return false;
	snprintf(name, sizeof(name), "%s%s", strncmp(section, "tp_btf", 6) ? "" : "btf_trace_",
		 target + 1);
	return btf__find_by_name_kind(vmlinux, name, strncmp(section, "tp_btf", 6) ?
				      BTF_KIND_FUNC : BTF_KIND_TYPEDEF) > 0;
}

/* Loads and attaches what has a target; returns how many programs that were, or -EPERM. */
static int load_and_attach(const char *path)
{
	struct policy p = { .obj = bpf_object__open_file(path, NULL) };
	struct bpf_program *prog;
	struct bpf_map *map;
	int attached = 0, err;

	if (!p.obj)
		fail_msg("cannot open %s: %s", path, strerror(errno));
	bpf_object__for_each_program(prog, p.obj)
		bpf_program__set_autoload(prog, strncmp(bpf_program__section_name(prog), "struct_ops", 10) &&
					  has_target(prog));
	bpf_object__for_each_map(map, p.obj)
		if (bpf_map__type(map) == BPF_MAP_TYPE_STRUCT_OPS)
			bpf_map__set_autocreate(map, false);
	policy_set(&p, "tier_hz", 250);
	policy_set(&p, "tier_stamp_shift", 30);
	policy_set(&p, "tier_stamp_bits", 21);
	policy_set(&p, "tier_top_nodes", 1);
	err = bpf_object__load(p.obj);
	if (err == -EPERM) {	/* lockdown or a container: root may not trace */
		bpf_object__close(p.obj);
		return -EPERM;
	}
	if (err)
		fail_msg("the verifier refused %s: %s", path, strerror(-err));
	bpf_object__for_each_program(prog, p.obj) {
		struct bpf_link *link;

		if (!bpf_program__autoload(prog))
			continue;
		link = bpf_program__attach(prog);
		if (!link)
			fail_msg("%s: %s does not attach: %s", path, bpf_program__name(prog),
				 strerror(errno));
		bpf_link__destroy(link);
		attached++;
	}
	bpf_object__close(p.obj);
	return attached;
}

static void observer_loads(void **state)
{
	const char *dir = getenv("TIER_BPF_DIR");
	char path[512];
	int programs;

	snprintf(path, sizeof(path), "%s/trace.bpf.o", dir ? dir : "build/bpf");
	programs = load_and_attach(path);
	if (programs == -EPERM)
		skip();
	print_message("observer: %d programs\n", programs);
	assert_in_range(programs, 5, 16);
}

static void shadows_load(void **state)
{
	const char *dir = getenv("TIER_BPF_DIR");
	char pattern[512];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/policy_*.bpf.o", dir ? dir : "build/bpf");
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		int programs = load_and_attach(found.gl_pathv[i]);

		if (programs == -EPERM)
			skip();
		assert_int_equal(programs, 1);
	}
	print_message("shadow programs of %zu policies\n", found.gl_pathc);
	globfree(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(observer_loads),
		cmocka_unit_test(shadows_load),
	};

	if (!policy_can_run())
		return 77;
	vmlinux = btf__load_vmlinux_btf();
	if (!vmlinux || btf__find_by_name_kind(vmlinux, "should_numa_migrate_memory", BTF_KIND_FUNC) < 0) {
		printf("1..0 # SKIP this kernel has no BTF or no NUMA balancing\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
