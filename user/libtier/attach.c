// SPDX-License-Identifier: GPL-2.0
/* load and unload: everything is checked before anything is changed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "internal.h"

#define TOP_TIER_KNOB	TIER_SYSFS "/top_tier_nodes"

/* enum bpf_attach_type: BPF_STRUCT_OPS, which headers older than the feature lack. */
#define ATTACH_STRUCT_OPS	((enum bpf_attach_type)44)

/* Someone is in force already: say who, and what can be done about it. */
int tier_check_free(struct tier_ctx *ctx, const char *policy)
{
	char state[16] = "", now[TIER_NAME_LEN] = "", owner[48] = "", text[1024], hint[160];
	struct tier_active active;
	bool ours;

	tier_module_text("state", state, sizeof(state));
	ours = !tier_active_open(ctx, &active);
	tier_active_close(&active);
	if (!ours && (!state[0] || !strcmp(state, "idle"))) {
		if (!tier_pins_exist(ctx))
			return 0;
		return tier_fail(ctx, TIER_CLASS_FAILED, -ENOTEMPTY,
				 "Run tierctl clean: it removes what belongs to no policy in force.",
				 "load policy %s: stale pins in %s, left by no load that is known",
				 policy, ctx->pin_dir);
	}
	tier_module_text("policy", now, sizeof(now));
	tier_module_text("owner", owner, sizeof(owner));
	if (!strcmp(state, "ejected")) {
		const char *line = NULL;

		if (tier_module_text("exit", text, sizeof(text)) > 0)
			line = strstr(text, "message ");
		snprintf(hint, sizeof(hint), "tierctl status shows why; tierctl unload clears it, "
			 "tierctl swap %s replaces it.", policy);
		return tier_fail(ctx, TIER_CLASS_EJECTED, -EEXIST, hint,
				 "load policy %s: policy %s is still attached, but was ejected: %.*s",
				 policy, now, line ? (int)strcspn(line + 8, "\n") : 7,
				 line ? line + 8 : "unknown");
	}
	if (!ours)
		return tier_fail(ctx, TIER_CLASS_FAILED, -EEXIST,
				 "Ask its owner to detach it; only one policy can be in force.",
				 "load policy %s: policy %s is in force, attached by %s and not by "
				 "tierctl", policy, now, owner);
	snprintf(hint, sizeof(hint), "tierctl swap %s replaces it, tierctl unload takes it off.",
		 policy);
	return tier_fail(ctx, TIER_CLASS_FAILED, -EEXIST, hint,
			 "load policy %s: policy %s is loaded already (attached by %s)", policy, now,
			 owner);
}

static int attach_failed(struct tier_ctx *ctx, int err, const char *policy)
{
	char owner[48] = "", now[TIER_NAME_LEN] = "", text[1024], hint[160];
	const char *line;

	switch (-err) {
	case EEXIST:
		tier_module_text("policy", now, sizeof(now));
		tier_module_text("owner", owner, sizeof(owner));
		snprintf(hint, sizeof(hint), "tierctl swap %s replaces a policy of ours.", policy);
		return tier_fail(ctx, TIER_CLASS_FAILED, err, hint,
				 "attach policy %s: policy %s is in force, attached by %s", policy,
				 now, owner);
	case EPROTO:
		return tier_fail(ctx, TIER_CLASS_FAILED, err,
				 "Build module and policy from the same source.",
				 "attach policy %s: the module speaks another ABI", policy);
	case EBUSY:
		return tier_fail(ctx, TIER_CLASS_FAILED, err,
				 "Only one may redirect a kernel function: see "
				 "/sys/kernel/tracing/enabled_functions (flag I) and "
				 "/sys/kernel/livepatch.",
				 "attach policy %s: another user has hooked "
				 "should_numa_migrate_memory", policy);
	case ENODEV:
	case EOPNOTSUPP:
		return tier_fail(ctx, TIER_CLASS_UNSUPPORTED, err,
				 "See sysctl kernel.ftrace_enabled (it must be 1); the kernel needs "
				 "CONFIG_DYNAMIC_FTRACE_WITH_ARGS or _REGS.",
				 "attach policy %s: the kernel's ftrace is off or cannot redirect "
				 "functions", policy);
	}
	if (tier_module_text("exit", text, sizeof(text)) > 0 &&
	    !strncmp(text, "kind init_failed", 16) && (line = strstr(text, "message ")))
		return tier_fail(ctx, TIER_CLASS_FAILED, err, "The reason is the policy's own.",
				 "attach policy %s: its init() failed: %s: %.*s", policy,
				 strerror(-err), (int)strcspn(line + 8, "\n"), line + 8);
	return tier_fail(ctx, TIER_CLASS_FAILED, err, "The kernel log (dmesg) may say more.",
			 "attach policy %s: %s", policy, strerror(-err));
}

/* What is going to be changed, as far as it can be told beforehand. */
static int plan(struct tier_ctx *ctx, const struct tier_env *env, struct tier_journal *journal)
{
	char list[80], now[80] = "", from[16], to[16];

	memset(journal, 0, sizeof(*journal));
	journal->phase = TIER_PHASE_LOADING;
	journal->bpffs_mounted = !env->bpffs;
	journal->module_inserted = !env->module_loaded;
	if (env->module_loaded)
		tier_module_counters(journal->module_base);

	tier_format_list(env->top_nodes, list, sizeof(list));
	if (env->module_loaded)
		tier_read_text(TOP_TIER_KNOB, now, sizeof(now));
	if (strcmp(now, list))
		tier_journal_knob(journal, TOP_TIER_KNOB, now, list);
	if (!(env->numa_balancing & 2)) {
		snprintf(from, sizeof(from), "%d", env->numa_balancing);
		snprintf(to, sizeof(to), "%d", env->numa_balancing | 2);
		tier_journal_knob(journal, TIER_NUMA_BALANCING, from, to);
	}
	if (env->module_loaded && env->module_abi != TIER_ABI_VERSION)
		return tier_fail(ctx, TIER_CLASS_FAILED, -EPROTO,
				 "Remove it (rmmod " TIER_MODULE "); load then inserts the one that "
				 "came with tierctl.",
				 "use module " TIER_MODULE ": it speaks ABI %d, this tierctl ABI %d",
				 env->module_abi, TIER_ABI_VERSION);
	return 0;
}

static void report(const struct tier_journal *journal, const struct tier_env *env,
		   const struct tier_policy_info *info, const struct tier_policy_args *args,
		   struct tier_changes *changes)
{
	if (journal->bpffs_mounted)
		tier_change_add(changes, TIER_BPFFS, "not mounted", "bpf");
	if (journal->module_inserted)
		tier_change_add(changes, "module " TIER_MODULE, "not loaded", env->module_path);
	for (unsigned int i = 0; i < journal->nr_knobs; i++)
		tier_change_add(changes, journal->knobs[i].path,
				journal->knobs[i].saved[0] ? journal->knobs[i].saved :
				"the module's own list",
				journal->knobs[i].set);
	tier_change_add(changes, "pins in " TIER_BPFFS "/tier", "none", "made");
	if (!(args->flags & TIER_NO_OBSERVER))
		tier_change_add(changes, "observer", "not attached", "attached");
	tier_report_policy(changes, "none", info, args);
}

/* The policy that comes and the parameters that do not start from their default. */
void tier_report_policy(struct tier_changes *changes, const char *from,
			const struct tier_policy_info *info, const struct tier_policy_args *args)
{
	char what[160];

	tier_change_add(changes, "policy", from, info->name);
	for (unsigned int i = 0; i < args->nr_settings; i++) {
		char def[32] = "";

		for (unsigned int j = 0; j < info->nr_params; j++)
			if (!strcmp(info->params[j].name, args->settings[i].name))
				snprintf(def, sizeof(def), "%llu", info->params[j].def);
		snprintf(what, sizeof(what), "parameter %s", args->settings[i].name);
		tier_change_add(changes, what, def, args->settings[i].value);
	}
}

static void fill_record(struct tier_record *record, const struct tier_object *object)
{
	const struct tier_policy_info *info = object->info;
	char *real = realpath(object->path, NULL);

	record->flags = info->flags;
	tier_copy(record->policy, sizeof(record->policy), info->name);
	tier_copy(record->object, sizeof(record->object), real ? real : object->path);
	free(real);
	for (unsigned int i = 0; i < info->nr_params && i < TIER_MAX_RECORD_PARAMS; i++) {
		tier_copy(record->params[i].name, sizeof(record->params[i].name),
			  info->params[i].name);
		record->params[i].def = info->params[i].def;
		record->nr_params++;
	}
}

/* Everything of a policy that must outlive us, except its link. */
int tier_pin_policy(struct tier_ctx *ctx, struct tier_object *object,
		    struct tier_journal *journal, __u32 keep, __u32 *map_id)
{
	struct bpf_map_info info = {};
	__u32 len = sizeof(info);
	char dir[32];
	int err;

	if (bpf_map_get_info_by_fd(bpf_map__fd(object->ops), &info, &len))
		return tier_fail(ctx, TIER_CLASS_FAILED, -errno, NULL, "look at the policy's map: %s",
				 strerror(errno));
	*map_id = info.id;
	/* On disk first: what a directory belongs to must be known before it is there. */
	fill_record(tier_journal_record(journal, info.id, keep), object);
	snprintf(dir, sizeof(dir), "policy-%u", info.id);
	err = tier_journal_write(ctx, journal) ?: tier_pin_mkdir(ctx, dir) ?:
	      tier_pin_fd(ctx, bpf_map__fd(object->ops), "%s/ops", dir);
	if (!err && object->params)
		err = tier_pin_fd(ctx, bpf_map__fd(object->params), "%s/params", dir);
	return err;
}

static int insert_module(struct tier_ctx *ctx, struct tier_journal *journal,
			 struct tier_env *env)
{
	char now[sizeof(journal->knobs[0].saved)];
	int err = 0;

	if (journal->module_inserted) {
		err = tier_module_insert(ctx);
		if (err < 0)
			return err;
		if (err == 1)
			journal->module_inserted = false;
		/* It may know the list by itself; what it knew is what unload puts back. */
		for (unsigned int i = 0; i < journal->nr_knobs; i++)
			if (!strcmp(journal->knobs[i].path, TOP_TIER_KNOB) &&
			    tier_read_text(TOP_TIER_KNOB, now, sizeof(now)) >= 0)
				tier_copy(journal->knobs[i].saved,
					  sizeof(journal->knobs[i].saved), now);
		err = tier_journal_write(ctx, journal) ?: tier_env__probe(ctx, env);
	}
	if (!err && env->module_abi != TIER_ABI_VERSION)
		return tier_fail(ctx, TIER_CLASS_FAILED, -EPROTO,
				 "Build module and tierctl from the same source.",
				 "use module " TIER_MODULE ": it speaks ABI %d, this tierctl ABI %d",
				 env->module_abi, TIER_ABI_VERSION);
	return err;
}

/* From here on the machine changes; the caller tears down on failure. */
static int load_steps(struct tier_ctx *ctx, struct tier_object *object, struct tier_env *env,
		      const struct tier_policy_args *args, struct tier_journal *journal)
{
	struct tier_progs progs = {};
	int err, link = -1;
	__u32 map_id;

	if (journal->bpffs_mounted) {
		err = tier_bpffs_mount(ctx);
		if (err)
			return err;
	}
	err = insert_module(ctx, journal, env);
	if (!err)
		err = tier_pin_mkdir(ctx, "") ?: tier_pin_mkdir(ctx, "maps") ?:
		      tier_object_prepare(ctx, object, env, args->settings, args->nr_settings,
					  true) ?:
		      tier_object_load(ctx, object) ?: tier_object_register(ctx, object) ?:
		      tier_pin_policy(ctx, object, journal, 0, &map_id) ?:
		      tier_knob_set(ctx, journal, TOP_TIER_KNOB);
	if (err)
		return err;

	tier_log(ctx, TIER_LOG_INFO, "attach policy %s", object->info->name);
	link = bpf_link_create(bpf_map__fd(object->ops), 0, ATTACH_STRUCT_OPS, NULL);
	if (link < 0)
		return attach_failed(ctx, -errno, object->info->name);

	if (!(args->flags & TIER_NO_OBSERVER)) {
		err = tier_observer_attach(ctx, env);
		if (err) {
			/* The policy decides without it; only what it tells is missing. */
			tier_log(ctx, TIER_LOG_WARN, "%s; going on without: promotions, demotions "
				 "and scans are not counted", ctx->message);
			tier_clear_error(ctx);
			tier_observer_note(ctx, &progs);
			tier_observer_remove(ctx, &progs);
		}
	}
	err = tier_knob_set(ctx, journal, TIER_NUMA_BALANCING);
	if (!err)
		err = tier_pin_fd(ctx, link, "link");
	close(link);
	if (err)
		return err;
	/* Loaded. Whoever finds this phase and a link writes the same. */
	journal->phase = TIER_PHASE_ACTIVE;
	return tier_journal_write(ctx, journal);
}

static int do_load(struct tier_ctx *ctx, void *arg, struct tier_changes *changes)
{
	const struct tier_policy_args *args = arg;
	struct tier_error_copy copy;
	struct tier_journal journal;
	struct tier_object object;
	struct tier_env env;
	size_t size = 0;
	void *values;
	__u32 needs;
	int err;

	ctx->trying = args->flags & TIER_DRY_RUN;
	err = tier_env__probe(ctx, &env) ?: tier_env__require(ctx, &env);
	if (err)
		return err;
	err = tier_object_open(ctx, args->policy, &object);
	if (err)
		return err;
	err = tier_check_free(ctx, object.info->name);
	if (!err && !env.module_loaded && !env.module_path[0])
		err = tier_module_insert(ctx);	/* says where it looked */
	if (!err)
		err = plan(ctx, &env, &journal);
	values = object.params ? bpf_map__initial_value(object.params, &size) : NULL;
	if (!err)
		err = tier_params_apply(ctx, object.info, bpf_object__btf(object.obj),
					args->settings, args->nr_settings, values, size, 0, &needs);
	if (err)
		goto out;
	report(&journal, &env, object.info, args, changes);
	if (args->flags & TIER_DRY_RUN) {
		if (env.module_loaded)
			err = tier_object_prepare(ctx, &object, &env, args->settings,
						  args->nr_settings, false) ?:
			      tier_object_load(ctx, &object);
		else
			tier_log(ctx, TIER_LOG_WARN, "the verifier was not asked: module "
				 TIER_MODULE " is not loaded");
		goto out;
	}

	err = tier_journal_write(ctx, &journal);
	if (!err)
		err = load_steps(ctx, &object, &env, args, &journal);
	if (err) {
		tier_error_save(ctx, &copy);
		/* Our own descriptors keep the module busy: let them go first. */
		tier_object_close(&object);
		if (tier_teardown(ctx, &journal, NULL))
			tier_log(ctx, TIER_LOG_WARN, "while rolling back: %s", ctx->message);
		tier_error_restore(ctx, &copy);
	} else {
		tier_memo__remove(ctx, TIER_MEMO_EXIT);
	}
out:
	tier_object_close(&object);
	if (err && changes)
		changes->nr = 0;
	return err;
}

int tier_policy_transaction(struct tier_ctx *ctx, const char *verb, tier_work_fn work,
			    struct tier_policy_args *args, struct tier_changes *changes)
{
	char what[64];

	if (changes)
		changes->nr = 0;
	snprintf(what, sizeof(what), "%s policy %.40s", verb, args->policy);
	return tier_transaction(ctx, what, work, args, changes);
}

int tier_load(struct tier_ctx *ctx, const char *policy, const struct tier_setting *settings,
	      unsigned int nr_settings, unsigned int flags, struct tier_changes *changes)
{
	struct tier_policy_args args = { policy, settings, nr_settings, flags };

	return tier_policy_transaction(ctx, "load", do_load, &args, changes);
}

/* ---- unload, clean ---- */

int tier_nothing_loaded(struct tier_ctx *ctx, const char *what)
{
	char state[16], policy[TIER_NAME_LEN] = "", owner[48] = "";

	if (tier_module_text("state", state, sizeof(state)) > 0 && strcmp(state, "idle")) {
		tier_module_text("policy", policy, sizeof(policy));
		tier_module_text("owner", owner, sizeof(owner));
		return tier_fail(ctx, TIER_CLASS_FAILED, -EPERM, "Ask its owner to detach it.",
				 "%s: policy %s is in force, but %s attached it, not tierctl", what,
				 policy, owner);
	}
	if (tier_pins_exist(ctx))
		return tier_fail(ctx, TIER_CLASS_FAILED, -ENOENT,
				 "Run tierctl clean to remove the stale pins.",
				 "%s: nothing is loaded, but there are pins in %s", what,
				 ctx->pin_dir);
	return tier_fail(ctx, TIER_CLASS_FAILED, -ENOENT,
			 "tierctl list shows the policies that can be loaded.",
			 "%s: nothing is loaded", what);
}

static int do_unload(struct tier_ctx *ctx, void *arg, struct tier_changes *changes)
{
	unsigned int flags = *(unsigned int *)arg;
	struct tier_journal journal;
	struct tier_active active;
	char policy[TIER_NAME_LEN] = "";
	bool linked;
	int err;

	err = tier_journal_read(ctx, &journal);
	if (err && err != -ENOENT)
		return err;
	linked = !tier_active_open(ctx, &active);
	tier_active_close(&active);
	if (err && !linked)
		/* What a killed unload had left to do was done a moment ago. */
		return ctx->undone ? 0 : tier_nothing_loaded(ctx, "unload");
	if (flags & TIER_DRY_RUN) {
		tier_module_text("policy", policy, sizeof(policy));
		tier_change_add(changes, "policy", policy, "none");
		for (unsigned int i = err ? 0 : journal.nr_knobs; i-- > 0;)
			tier_change_add(changes, journal.knobs[i].path, journal.knobs[i].set,
					journal.knobs[i].saved);
		if (!err && journal.module_inserted)
			tier_change_add(changes, "module " TIER_MODULE, "loaded", "removed");
		if (!err && journal.bpffs_mounted)
			tier_change_add(changes, TIER_BPFFS, "bpf", "unmounted");
		return 0;
	}
	if (err)
		tier_log(ctx, TIER_LOG_WARN, "%s/state.json is gone: the policy is taken off, but "
			 "what %s was before load is not known", ctx->run_dir, TIER_NUMA_BALANCING);
	return tier_teardown(ctx, err ? NULL : &journal, changes);
}

int tier_unload(struct tier_ctx *ctx, unsigned int flags, struct tier_changes *changes)
{
	if (changes)
		changes->nr = 0;
	return tier_transaction(ctx, "unload", do_unload, &flags, changes);
}

static int do_clean(struct tier_ctx *ctx, void *arg, struct tier_changes *changes)
{
	unsigned int flags = *(unsigned int *)arg;
	struct tier_journal journal;
	struct tier_active active;
	bool alive;
	int err;

	if (ctx->undone)
		tier_change_add(changes, "remains of a killed load or unload", "there", "removed");
	err = tier_journal_read(ctx, &journal);
	if (err != -ENOENT)
		return err;	/* loaded: nothing of it is stale */
	alive = !tier_active_open(ctx, &active);
	tier_active_close(&active);
	if ((alive && active.map_id) || !tier_pins_exist(ctx))
		return 0;
	tier_change_add(changes, ctx->pin_dir, "stale", "removed");
	return flags & TIER_DRY_RUN ? 0 : tier_teardown(ctx, NULL, NULL);
}

int tier_clean(struct tier_ctx *ctx, unsigned int flags, struct tier_changes *changes)
{
	if (changes)
		changes->nr = 0;
	return tier_transaction(ctx, "clean", do_clean, &flags, changes);
}
