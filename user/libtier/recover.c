// SPDX-License-Identifier: GPL-2.0
/*
 * Two states last: policy in force (link pinned, journal active), or nothing.
 * Whoever finds something between the two brings it to one of them. The link's
 * pin decides which: it is made last by load, and falls first in unload.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "internal.h"

/* What holds promotions back: those of a policy in force, and the kernel's own. */
static const struct {
	const char *path, *least;
} holds[] = {
	{ "/sys/module/" TIER_MODULE "/parameters/promote_cap_pages_per_s", "1" },
	{ "/proc/sys/kernel/numa_balancing_promote_rate_limit_MBps", "0" },
};

bool tier_recover_needed(struct tier_ctx *ctx)
{
	struct tier_journal journal;
	struct tier_active active;
	bool needed;

	if (tier_journal_litter(ctx, false))
		return true;
	if (tier_journal_read(ctx, &journal))
		return false;
	needed = journal.phase != TIER_PHASE_ACTIVE || tier_active_open(ctx, &active);
	if (!needed) {
		needed = !active.map_id;
		tier_active_close(&active);
	}
	return needed;
}

int tier_recover(struct tier_ctx *ctx)
{
	struct tier_journal journal;
	struct tier_active active;
	bool alive;
	int err;

	ctx->undone = false;
	tier_journal_litter(ctx, true);
	err = tier_journal_read(ctx, &journal);
	if (err)
		return err == -ENOENT ? 0 : err;

	alive = !tier_active_open(ctx, &active);
	tier_active_close(&active);
	alive = alive && active.map_id;
	if (alive && journal.phase != TIER_PHASE_UNLOADING) {
		tier_pin_collect(ctx, active.map_id);
		if (journal.phase == TIER_PHASE_ACTIVE)
			return 0;
		tier_log(ctx, TIER_LOG_INFO, "finish a load that was killed after its last step");
		journal.phase = TIER_PHASE_ACTIVE;
		return tier_journal_write(ctx, &journal);
	}
	tier_log(ctx, TIER_LOG_WARN, "%s: putting the machine back as it was before load",
		 journal.phase == TIER_PHASE_UNLOADING ? "an earlier unload was killed half-way" :
		 journal.phase == TIER_PHASE_LOADING ? "an earlier load was killed half-way" :
		 "the loaded policy's pin was removed by someone else");
	ctx->undone = true;
	return tier_teardown(ctx, &journal, NULL);
}

/* Detach takes effect at once; where links cannot be detached the last pin must do. */
static bool detach_link(struct tier_ctx *ctx)
{
	struct tier_active active;

	if (tier_active_open(ctx, &active))
		return false;
	if (bpf_link_detach(active.link_fd) && errno != EOPNOTSUPP && errno != ENOLINK)
		tier_log(ctx, TIER_LOG_DEBUG, "detach the link: %s", strerror(errno));
	tier_active_close(&active);
	return true;
}

/* The module unhooks before it says idle: then no fault can reach the policy. */
static int wait_idle(struct tier_ctx *ctx)
{
	const struct timespec step = { .tv_nsec = 10 * 1000 * 1000 };
	char state[16];

	for (int i = 0; i < 1000; i++) {
		if (tier_module_text("state", state, sizeof(state)) < 0 || !strcmp(state, "idle"))
			return 0;
		nanosleep(&step, NULL);
	}
	return tier_fail(ctx, TIER_CLASS_FAILED, -ETIMEDOUT,
			 "Some process still holds its link (bpftool link, then fuser); end it, "
			 "then run tierctl unload again.",
			 "detach the policy: the module still says \"%s\" after 10 s", state);
}

static void unmount_bpffs(struct tier_ctx *ctx, struct tier_changes *changes)
{
	struct dirent *entry;
	bool empty = true;
	DIR *dir;

	if (!tier_bpffs_mounted())
		return;
	dir = opendir(TIER_BPFFS);
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			empty = false;
	if (dir)
		closedir(dir);
	if (!empty) {
		tier_log(ctx, TIER_LOG_WARN, TIER_BPFFS " was mounted by load but holds pins of "
			 "others by now: left mounted");
		return;
	}
	if (umount2(TIER_BPFFS, 0)) {
		tier_log(ctx, TIER_LOG_WARN, "unmount " TIER_BPFFS ": %s; left mounted",
			 strerror(errno));
		return;
	}
	tier_log(ctx, TIER_LOG_INFO, "unmount " TIER_BPFFS);
	tier_change_add(changes, TIER_BPFFS, "bpf", "unmounted");
}

static struct tier_knob *find_knob(struct tier_journal *journal, const char *path)
{
	for (unsigned int i = 0; journal && i < journal->nr_knobs; i++)
		if (!strcmp(journal->knobs[i].path, path))
			return &journal->knobs[i];
	return NULL;
}

/*
 * In tiering mode the kernel keeps a time in a slow page where it otherwise keeps the
 * last CPU, and clears it when the page is promoted, if the mode is still on when the
 * page is copied. One on its way while the mode is switched off takes its time along;
 * task_numa_fault() of 6.12 then takes that for a CPU and reads far outside of its
 * tables. So promotions are held back first (the module's least is one page a second;
 * the kernel goes on where more than a GiB is free), and the mode goes before the
 * policy does. What holds them is in the journal, as this may be killed as well.
 */
static void note_holds(struct tier_journal *journal)
{
	char now[sizeof(journal->knobs[0].saved)];

	if (!find_knob(journal, TIER_NUMA_BALANCING))
		return;
	for (unsigned int i = 0; i < ARRAY_SIZE(holds); i++)
		if (!find_knob(journal, holds[i].path) &&
		    tier_read_text(holds[i].path, now, sizeof(now)) > 0)
			tier_journal_knob(journal, holds[i].path, now, holds[i].least);
}

static void write_holds(struct tier_journal *journal, bool hold)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(holds); i++) {
		const struct tier_knob *knob = find_knob(journal, holds[i].path);

		if (knob)
			tier_write_text(knob->path, hold ? knob->set : knob->saved);
	}
}

/* Returns true if the mode is as it was before load. Else tier_knobs_restore() sees to it. */
static bool leave_tiering(struct tier_journal *journal)
{
	const struct timespec under_way = { .tv_nsec = 100 * 1000 * 1000 };
	struct tier_knob *mode = find_knob(journal, TIER_NUMA_BALANCING);
	char now[sizeof(mode->set)];
	bool done;

	if (!mode || tier_read_text(mode->path, now, sizeof(now)) < 0 || strcmp(now, mode->set))
		return false;
	write_holds(journal, true);
	nanosleep(&under_way, NULL);
	done = tier_write_text(mode->path, mode->saved) >= 0;
	write_holds(journal, false);
	return done;
}

int tier_teardown(struct tier_ctx *ctx, struct tier_journal *journal,
		  struct tier_changes *changes)
{
	char policy[TIER_NAME_LEN] = "", module_policy[TIER_NAME_LEN];
	struct tier_progs progs = {}, *observer = journal ? &journal->observer : &progs;
	bool ours, mode_restored;
	struct tier_knob *mode;
	int err, module_err = 0;

	/* On disk before the pins go: the next one could not find them any more. */
	tier_observer_note(ctx, observer);
	if (journal) {
		journal->phase = TIER_PHASE_UNLOADING;
		note_holds(journal);
		err = tier_journal_write(ctx, journal);
		if (err)
			return err;
	}
	if (tier_module_text("policy", module_policy, sizeof(module_policy)) > 0)
		tier_copy(policy, sizeof(policy), module_policy);

	mode_restored = leave_tiering(journal);
	/* With neither link nor journal a policy in force is somebody else's. */
	ours = detach_link(ctx) || journal;
	err = tier_pin_remove(ctx, "link");
	if (!err && ours)
		err = wait_idle(ctx);
	if (err)
		return err;
	if (ours && policy[0]) {
		tier_log(ctx, TIER_LOG_INFO, "policy %s detached", policy);
		tier_change_add(changes, "policy", policy, "none");
	}
	err = tier_observer_remove(ctx, observer) ?: tier_pin_remove(ctx, "");
	if (err)
		return err;
	tier_base_remove(ctx);
	tier_tenures_remove(ctx);
	tier_memos_remove(ctx);
	if (!journal)
		return 0;

	mode = find_knob(journal, TIER_NUMA_BALANCING);
	if (mode_restored) {
		tier_log(ctx, TIER_LOG_INFO, "write %s to %s (was %s)", mode->saved, mode->path,
			 mode->set);
		tier_change_add(changes, mode->path, mode->set, mode->saved);
	}
	tier_knobs_restore(ctx, journal, changes);
	if (journal->module_inserted && tier_module_loaded()) {
		tier_exit_keep(ctx);
		module_err = tier_module_remove(ctx);
		if (!module_err) {
			tier_log(ctx, TIER_LOG_INFO, "remove module " TIER_MODULE);
			tier_change_add(changes, "module " TIER_MODULE, "loaded", "removed");
		}
	}
	if (journal->bpffs_mounted)
		unmount_bpffs(ctx, changes);
	/* A module that cannot be removed must not stop the next load: it is reported, once. */
	return tier_journal_remove(ctx) ?: module_err;
}
