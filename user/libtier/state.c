// SPDX-License-Identifier: GPL-2.0
/* The lock that serialises invocations, and the knobs that load changes. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

int tier_run_dir(struct tier_ctx *ctx)
{
	struct stat st;

	if (mkdir(ctx->run_dir, 0755) && errno != EEXIST)
		return tier_fail(ctx, errno == EACCES ? TIER_CLASS_PERMISSION : TIER_CLASS_FAILED,
				 -errno, "Mount a tmpfs on /run, or make it writable.",
				 "make directory %s: %s", ctx->run_dir, strerror(errno));
	/* Root acts on what lies in here: it must be root's alone to write. */
	if (lstat(ctx->run_dir, &st) || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_mode & (S_IWGRP | S_IWOTH))
		return tier_fail(ctx, TIER_CLASS_PERMISSION, -EPERM, "Remove it.",
				 "use directory %s: not a directory that only root may write",
				 ctx->run_dir);
	return 0;
}

static int lock_busy(struct tier_ctx *ctx)
{
	char holder[64], hint[160];
	int len = pread(ctx->lock_fd, holder, sizeof(holder) - 1, 0);

	holder[len > 0 ? len : 0] = '\0';
	holder[strcspn(holder, "\n")] = '\0';
	snprintf(hint, sizeof(hint), "Wait for it to end; if it hangs, see what it is doing: "
		 "ps -fp %s", holder[0] ? holder : "PID");
	close(ctx->lock_fd);
	ctx->lock_fd = -1;
	return tier_fail(ctx, TIER_CLASS_FAILED, -EAGAIN, hint,
			 "lock %s/lock: still held after %u ms, by process %s", ctx->run_dir,
			 ctx->opts.lock_timeout_ms, holder[0] ? holder : "unknown");
}

int tier_lock(struct tier_ctx *ctx, bool exclusive)
{
	const struct timespec step = { .tv_nsec = 20 * 1000 * 1000 };
	unsigned int waited_ms = 0;
	char path[96];
	int err;

	err = tier_run_dir(ctx);
	if (err)
		return err;
	snprintf(path, sizeof(path), "%s/lock", ctx->run_dir);
	/* 0600: a lock that others could take would let them stop root. */
	ctx->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (ctx->lock_fd < 0)
		return tier_fail(ctx, TIER_CLASS_FAILED, -errno, NULL, "open %s: %s", path,
				 strerror(errno));
	while (flock(ctx->lock_fd, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR) {
			err = -errno;
			close(ctx->lock_fd);
			ctx->lock_fd = -1;
			return tier_fail(ctx, TIER_CLASS_FAILED, err, NULL, "lock %s: %s", path,
					 strerror(-err));
		}
		if (waited_ms >= ctx->opts.lock_timeout_ms)
			return lock_busy(ctx);
		nanosleep(&step, NULL);
		waited_ms += 20;
	}
	if (exclusive)
		tier_lock_sign(ctx);
	return 0;
}

/* For the message of those who wait. */
void tier_lock_sign(struct tier_ctx *ctx)
{
	char line[32];
	int len = snprintf(line, sizeof(line), "%d\n", getpid());

	if (ftruncate(ctx->lock_fd, 0) || pwrite(ctx->lock_fd, line, len, 0) != len)
		tier_log(ctx, TIER_LOG_DEBUG, "sign the lock: %s", strerror(errno));
}

/* A child that shares the descriptor keeps the lock until it closes it too. */
void tier_unlock(struct tier_ctx *ctx)
{
	if (ctx->lock_fd < 0)
		return;
	close(ctx->lock_fd);
	ctx->lock_fd = -1;
}

int tier_knob_set(struct tier_ctx *ctx, const struct tier_journal *journal, const char *path)
{
	for (unsigned int i = 0; i < journal->nr_knobs; i++) {
		const struct tier_knob *knob = &journal->knobs[i];
		int err;

		if (strcmp(knob->path, path))
			continue;
		tier_log(ctx, TIER_LOG_INFO, "write %s to %s (was %s)", knob->set, path,
			 knob->saved);
		err = tier_write_text(path, knob->set);
		if (err)
			return tier_fail(ctx, err == -EACCES || err == -EPERM || err == -EROFS ?
					 TIER_CLASS_PERMISSION : TIER_CLASS_FAILED, err,
					 "Containers often mount it read-only: run tierctl on the host.",
					 "write %s to %s: %s", knob->set, path, strerror(-err));
	}
	return 0;
}

/* Last changed, first put back. */
void tier_knobs_restore(struct tier_ctx *ctx, const struct tier_journal *journal,
			struct tier_changes *changes)
{
	for (unsigned int i = journal->nr_knobs; i-- > 0;) {
		const struct tier_knob *knob = &journal->knobs[i];
		char now[sizeof(knob->set)];
		int err;

		/* The module's own knobs go with it. */
		if (journal->module_inserted && !strncmp(knob->path, TIER_SYSFS "/",
							 strlen(TIER_SYSFS "/")))
			continue;
		err = tier_read_text(knob->path, now, sizeof(now));
		if (err == -ENOENT || (err >= 0 && !strcmp(now, knob->saved)))
			continue;
		if (err >= 0 && strcmp(now, knob->set)) {
			tier_log(ctx, TIER_LOG_WARN,
				 "%s is now %s: someone changed it after load had set it to %s; left "
				 "alone (before load it was %s)", knob->path, now, knob->set,
				 knob->saved);
			continue;
		}
		if (err >= 0)
			err = tier_write_text(knob->path, knob->saved);
		if (err < 0) {
			tier_log(ctx, TIER_LOG_WARN, "put %s back to %s: %s; do it by hand",
				 knob->path, knob->saved, strerror(-err));
			continue;
		}
		tier_log(ctx, TIER_LOG_INFO, "write %s to %s (was %s)", knob->saved, knob->path,
			 now);
		tier_change_add(changes, knob->path, now, knob->saved);
	}
}
