// SPDX-License-Identifier: GPL-2.0
/* What the verifier of the running kernel makes of a policy: loaded, looked at, let go. */
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "internal.h"

/* Shadow programs load where their function is; decisions where the module's type is. */
static bool can_load(const struct bpf_program *prog, const struct btf *traceable, bool module)
{
	const char *section = bpf_program__section_name(prog);

	if (!strncmp(section, "struct_ops", 10))
		return module;
	if (!strncmp(section, "fentry/", 7))
		return traceable &&
		       btf__find_by_name_kind(traceable, section + 7, BTF_KIND_FUNC) > 0;
	return !strcmp(section, "syscall");
}

static int read_cost(const struct bpf_program *prog, struct tier_prog_cost *cost)
{
	struct bpf_prog_info info = {};
	__u32 size = sizeof(info);

	if (bpf_prog_get_info_by_fd(bpf_program__fd(prog), &info, &size))
		return -errno;
	tier_copy(cost->name, sizeof(cost->name), bpf_program__name(prog));
	cost->verified_insns = info.verified_insns;
	cost->xlated_bytes = info.xlated_prog_len;
	cost->jited_bytes = info.jited_prog_len;
	return 0;
}

static int open_and_load(struct tier_ctx *ctx, const char *policy, struct tier_object *object,
			 const struct tier_env *env, const struct btf *traceable)
{
	struct bpf_program *prog;
	int err;

	err = tier_object_open(ctx, policy, object);
	if (err)
		return err;
	err = tier_object_prepare(ctx, object, env, NULL, 0, false);
	if (!err) {
		bpf_object__for_each_program(prog, object->obj)
			bpf_program__set_autoload(prog, can_load(prog, traceable,
								 env->module_loaded));
		if (!env->module_loaded)
			bpf_map__set_autocreate(object->ops, false);
		err = tier_object_load(ctx, object);
	}
	if (err)
		tier_object_close(object);
	return err;
}

int tier_policy__verify(struct tier_ctx *ctx, const char *policy, struct tier_prog_cost *costs,
			unsigned int max, unsigned int *nr)
{
	struct tier_object object;
	struct bpf_program *prog;
	struct tier_env env;
	int err;

	*nr = 0;
	tier_clear_error(ctx);
	err = tier_env__probe(ctx, &env);
	if (err)
		return err;
	err = open_and_load(ctx, policy, &object, &env, tier_vmlinux_btf(ctx));
	/* Lockdown and containers may forbid tracing and allow the rest. */
	if (err == -EPERM) {
		tier_clear_error(ctx);
		err = open_and_load(ctx, policy, &object, &env, NULL);
		if (!err)
			tier_log(ctx, TIER_LOG_WARN, "this system lets nobody trace: the shadow "
				 "program was left out");
	}
	if (err)
		return err;
	bpf_object__for_each_program(prog, object.obj) {
		if (!bpf_program__autoload(prog) || *nr == max)
			continue;
		err = read_cost(prog, &costs[*nr]);
		if (err) {
			tier_fail(ctx, TIER_CLASS_FAILED, err, NULL,
				  "ask the kernel about program %s: %s", bpf_program__name(prog),
				  strerror(-err));
			goto out;
		}
		(*nr)++;
	}
out:
	tier_object_close(&object);
	return err;
}
