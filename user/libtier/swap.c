// SPDX-License-Identifier: GPL-2.0
/* Changing the policy in force: another one in its place, or other parameters. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "internal.h"

static int swap_failed(struct tier_ctx *ctx, int err, const char *policy)
{
	if (err == -EPERM)
		return tier_fail(ctx, TIER_CLASS_FAILED, -ESTALE, "Look with tierctl status, then "
				 "try again.", "swap to policy %s: another process swapped first",
				 policy);
	if (err == -ENOLINK)
		return tier_fail(ctx, TIER_CLASS_FAILED, err, "Run tierctl unload, then load.",
				 "swap to policy %s: the link was detached by someone else", policy);
	return tier_fail(ctx, TIER_CLASS_FAILED, err,
			 "The old policy stays in force. The kernel log (dmesg) may say more.",
			 "swap to policy %s: %s", policy, strerror(-err));
}

/* The new one is complete before the pointer moves; the old one goes afterwards. */
static int swap_steps(struct tier_ctx *ctx, struct tier_object *object,
		      struct tier_journal *journal, const struct tier_active *active, int old_map)
{
	LIBBPF_OPTS(bpf_link_update_opts, opts, .flags = BPF_F_REPLACE, .old_map_fd = old_map);
	char dir[32] = "";
	__u32 map_id = 0;
	int err;

	err = tier_object_load(ctx, object) ?: tier_object_register(ctx, object) ?:
	      tier_pin_policy(ctx, object, journal, active->map_id, &map_id);
	if (!err) {
		tier_log(ctx, TIER_LOG_INFO, "swap to policy %s", object->info->name);
		tier_tenures_swap(ctx, active->map_id, map_id, object->info->name);
		if (bpf_link_update(active->link_fd, bpf_map__fd(object->ops), &opts))
			err = swap_failed(ctx, -errno, object->info->name);
	}
	if (err && map_id) {
		struct tier_error_copy copy;

		tier_error_save(ctx, &copy);
		snprintf(dir, sizeof(dir), "policy-%u", map_id);
		tier_pin_remove(ctx, dir);
		tier_error_restore(ctx, &copy);
	}
	if (err)
		return err;
	/* Swapped; the rest tidies up, and the next call does it if we cannot. */
	tier_pin_collect(ctx, map_id);
	return 0;
}

static int do_swap(struct tier_ctx *ctx, void *arg, struct tier_changes *changes)
{
	const struct tier_policy_args *args = arg;
	struct tier_object object = {};
	struct tier_journal journal;
	struct tier_active active;
	char now[TIER_NAME_LEN] = "";
	struct tier_env env;
	int err, old_map = -1;

	ctx->trying = args->flags & TIER_DRY_RUN;
	err = tier_env__probe(ctx, &env) ?: tier_env__require(ctx, &env);
	if (err)
		return err;
	if (tier_active_open(ctx, &active))
		return tier_nothing_loaded(ctx, "swap");
	err = tier_journal_read(ctx, &journal);
	if (err == -ENOENT)
		err = tier_fail(ctx, TIER_CLASS_FAILED, err,
				"Run tierctl unload, then tierctl load.",
				"swap: a policy is in force, but %s/state.json is gone",
				ctx->run_dir);
	if (!err)
		err = tier_object_open(ctx, args->policy, &object);
	if (!err)
		err = tier_object_prepare(ctx, &object, &env, args->settings, args->nr_settings,
					  !(args->flags & TIER_DRY_RUN));
	if (err)
		goto out;
	tier_module_text("policy", now, sizeof(now));
	tier_report_policy(changes, now, object.info, args);
	if (args->flags & TIER_DRY_RUN) {
		err = tier_object_load(ctx, &object);
		goto out;
	}
	old_map = bpf_map_get_fd_by_id(active.map_id);
	err = old_map < 0 ? swap_failed(ctx, -errno, object.info->name) :
	      swap_steps(ctx, &object, &journal, &active, old_map);
out:
	if (old_map >= 0)
		close(old_map);
	tier_object_close(&object);
	tier_active_close(&active);
	if (err && changes)
		changes->nr = 0;
	return err;
}

int tier_swap(struct tier_ctx *ctx, const char *policy, const struct tier_setting *settings,
	      unsigned int nr_settings, unsigned int flags, struct tier_changes *changes)
{
	struct tier_policy_args args = { policy, settings, nr_settings, flags };

	return tier_policy_transaction(ctx, "swap to", do_swap, &args, changes);
}

/* ---- parameters of the policy in force ---- */

/* The map carries the types of its object, tags and all: no file is needed. */
int tier_live_open(struct tier_ctx *ctx, __u32 map_id, struct tier_live *live)
{
	struct bpf_map_info map = {};
	__u32 len = sizeof(map), zero = 0;
	int err;

	memset(live, 0, sizeof(*live));
	live->fd = tier_pin_get(ctx, "policy-%u/params", map_id);
	if (live->fd == -ENOENT)
		return 0;	/* a policy without parameters */
	if (live->fd < 0)
		return tier_fail(ctx, live->fd == -EACCES || live->fd == -EPERM ?
				 TIER_CLASS_PERMISSION : TIER_CLASS_FAILED, live->fd, NULL,
				 "open the parameters of the policy in force: %s",
				 strerror(-live->fd));
	if (bpf_map_get_info_by_fd(live->fd, &map, &len)) {
		err = -errno;
		goto fail;
	}
	live->btf = btf__load_from_kernel_by_id(map.btf_id);
	live->info = calloc(1, sizeof(*live->info));
	live->size = map.value_size;
	live->values = calloc(1, live->size);
	if (!live->btf || !live->info || !live->values) {
		err = live->btf ? -ENOMEM : -errno;
		goto fail;
	}
	err = bpf_map_lookup_elem(live->fd, &zero, live->values) ? -errno :
	      tier_params_read_info(live->btf, live->info, live->values, live->size);
	if (!err)
		return 0;
fail:
	tier_live_close(live);
	return tier_fail(ctx, TIER_CLASS_FAILED, err, NULL,
			 "read the parameters of the policy in force: %s", strerror(-err));
}

void tier_live_close(struct tier_live *live)
{
	if (live->fd >= 0)
		close(live->fd);
	btf__free(live->btf);
	tier_policy_info__free(live->info);
	free(live->values);
	memset(live, 0, sizeof(*live));
	live->fd = -1;
}

/* Word by word, so that a fault on another CPU reads the old value or the new one. */
static int write_values(struct tier_live *live)
{
	void *map = mmap(NULL, live->size, PROT_READ | PROT_WRITE, MAP_SHARED, live->fd, 0);

	if (map == MAP_FAILED)
		return -errno;
	for (unsigned int i = 0; i < live->info->nr_params; i++) {
		unsigned int bytes;
		int at = tier_btf_var(live->btf, TIER_PARAMS, live->info->params[i].name, &bytes);
		char *from = (char *)live->values + at, *to = (char *)map + at;

		if (bytes == 4)
			__atomic_store_n((__u32 *)to, *(__u32 *)from, __ATOMIC_RELAXED);
		else
			__atomic_store_n((__u64 *)to, *(__u64 *)from, __ATOMIC_RELAXED);
	}
	munmap(map, live->size);
	return 0;
}

static int store_live(struct tier_ctx *ctx, struct tier_live *live,
		      const struct tier_setting *settings, unsigned int nr, __u32 flags)
{
	__u32 needs, missing;
	char hint[160], text[32];
	int err, wrap_ms = 0;

	if (tier_module_text("stamp_wrap_ms", text, sizeof(text)) > 0)
		wrap_ms = strtol(text, NULL, 10);

	/* "default" in the live info is the value in force: needs are judged on that. */
	err = tier_params_apply(ctx, live->info, live->btf, settings, nr, live->values,
				live->size, wrap_ms, &needs);
	if (err)
		return err;
	missing = needs & ~flags;
	if (missing) {
		snprintf(hint, sizeof(hint), "Swap it for itself with the parameter set: tierctl "
			 "swap %s --set %s=%s.", live->info->name, settings[0].name,
			 settings[0].value);
		return tier_fail(ctx, TIER_CLASS_FAILED, -EBUSY, hint,
				 "set %s: the policy was loaded without the fault data that this "
				 "needs", settings[0].name);
	}
	err = write_values(live);
	if (err)
		return tier_fail(ctx, TIER_CLASS_FAILED, err, NULL, "set parameters of %s: %s",
				 live->info->name, strerror(-err));
	return 0;
}

static int do_set(struct tier_ctx *ctx, void *arg, struct tier_changes *changes)
{
	const struct tier_policy_args *args = arg;
	const struct tier_record *record;
	struct tier_journal journal;
	struct tier_active active;
	struct tier_live live;
	int err;

	if (tier_active_open(ctx, &active))
		return tier_nothing_loaded(ctx, "set");
	err = tier_live_open(ctx, active.map_id, &live);
	if (err)
		goto out;
	if (!live.info) {
		err = tier_fail(ctx, TIER_CLASS_USAGE, -ENOENT, "tierctl status shows which policy "
				"is in force.", "set %s: the policy in force has no parameters",
				args->settings[0].name);
		goto out;
	}
	if (tier_module_text("policy", live.info->name, sizeof(live.info->name)) < 0)
		live.info->name[0] = '\0';
	record = tier_journal_read(ctx, &journal) ? NULL :
		 tier_journal_find(&journal, active.map_id);
	err = store_live(ctx, &live, args->settings, args->nr_settings,
			 record ? record->flags : TIER_POLICY_FLAGS_ALL);
	tier_live_close(&live);
out:
	tier_active_close(&active);
	return err;
}

int tier_set(struct tier_ctx *ctx, const struct tier_setting *settings,
	     unsigned int nr_settings)
{
	struct tier_policy_args args = { .settings = settings, .nr_settings = nr_settings };

	if (!nr_settings)
		return tier_fail(ctx, TIER_CLASS_USAGE, -EINVAL, "Give at least one NAME=VALUE.",
				 "set: nothing to set");
	return tier_transaction(ctx, "set", do_set, &args, NULL);
}
