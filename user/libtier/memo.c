// SPDX-License-Identifier: GPL-2.0
/*
 * What invocations of tierctl and its daemon leave for each other in the run
 * directory: memos (small texts that go with the policy, but for the exit record), seats
 * (roles that one process at a time can have), and the cheap look at whether a policy is there.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

static const char *const memo_names[TIER_NR_MEMO] = {
	[TIER_MEMO_PROBATION] = "probation.json",
	[TIER_MEMO_REATTACH] = "reattach.json",
	[TIER_MEMO_EXIT] = "exit",
};

#define MEMO_BYTES	65536

const char *tier_ctx__run_dir(const struct tier_ctx *ctx)
{
	return ctx->run_dir;
}

static void memo_path(struct tier_ctx *ctx, enum tier_memo memo, char *path, size_t size)
{
	snprintf(path, size, "%s/%s", ctx->run_dir, memo_names[memo]);
}

int tier_memo__write(struct tier_ctx *ctx, enum tier_memo memo, const char *text)
{
	char path[96];
	int err;

	tier_clear_error(ctx);
	if (strlen(text) >= MEMO_BYTES)
		return tier_fail(ctx, TIER_CLASS_FAILED, -E2BIG, NULL, "write %s: too long",
				 memo_names[memo]);
	err = tier_run_dir(ctx);
	if (err)
		return err;
	memo_path(ctx, memo, path, sizeof(path));
	err = tier_replace_text(path, text, 0600);
	if (!err)
		return 0;
	return tier_fail(ctx, TIER_CLASS_FAILED, err, "Make room on the file system of /run.",
			 "write %s: %s", path, strerror(-err));
}

int tier_memo__read(struct tier_ctx *ctx, enum tier_memo memo, char **text)
{
	char path[96];
	int err;

	tier_clear_error(ctx);
	memo_path(ctx, memo, path, sizeof(path));
	*text = malloc(MEMO_BYTES);
	err = *text ? tier_read_text(path, *text, MEMO_BYTES) : -ENOMEM;
	if (err >= 0)
		return 0;
	free(*text);
	*text = NULL;
	return err == -ENOENT ? err : tier_fail(ctx, TIER_CLASS_FAILED, err, NULL, "read %s: %s",
						path, strerror(-err));
}

void tier_memo__remove(struct tier_ctx *ctx, enum tier_memo memo)
{
	char path[96], next[104];

	memo_path(ctx, memo, path, sizeof(path));
	unlink(path);
	/* Of a writer that was killed before its rename. */
	snprintf(next, sizeof(next), "%s.new", path);
	unlink(next);
}

void tier_memos_remove(struct tier_ctx *ctx)
{
	for (int memo = 0; memo < TIER_NR_MEMO; memo++)
		if (memo != TIER_MEMO_EXIT)
			tier_memo__remove(ctx, memo);
}

void tier_exit_keep(struct tier_ctx *ctx)
{
	char text[4096];

	if (tier_module_text("exit", text, sizeof(text)) <= 0)
		return;
	/* An ordinary end is not news, and what ended before it is history. */
	if (!strncmp(text, "kind unloaded\n", strlen("kind unloaded\n")))
		tier_memo__remove(ctx, TIER_MEMO_EXIT);
	else if (tier_memo__write(ctx, TIER_MEMO_EXIT, text))
		tier_log(ctx, TIER_LOG_WARN, "why the last policy left force is lost with the module: %s",
			 ctx->message);
}

/*
 * A seat is a byte of the lock file, of the kind of lock that knows nothing of
 * flock(): invocations of tierctl go on beside whoever has one.
 */
static int seat_lock(struct tier_ctx *ctx, enum tier_seat seat, int command, struct flock *byte)
{
	char path[96];
	int fd, err;

	if (geteuid())
		return tier_fail(ctx, TIER_CLASS_PERMISSION, -EPERM, "Run it with sudo.",
				 "lock %s/lock: not root", ctx->run_dir);
	err = tier_run_dir(ctx);
	if (err)
		return err;
	*byte = (struct flock){
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1 + seat, .l_len = 1,
	};
	snprintf(path, sizeof(path), "%s/lock", ctx->run_dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return tier_fail(ctx, errno == EACCES ? TIER_CLASS_PERMISSION : TIER_CLASS_FAILED,
				 -errno, NULL, "open %s: %s", path, strerror(errno));
	if (!fcntl(fd, command, byte))
		return fd;
	err = errno == EACCES ? -EAGAIN : -errno;
	close(fd);
	if (err == -EAGAIN)
		return -EBUSY;
	return tier_fail(ctx, TIER_CLASS_FAILED, err, NULL, "lock %s: %s", path, strerror(-err));
}

int tier_seat__take(struct tier_ctx *ctx, enum tier_seat seat)
{
	struct flock byte;

	tier_clear_error(ctx);
	return seat_lock(ctx, seat, F_OFD_SETLK, &byte);
}

bool tier_seat__taken(struct tier_ctx *ctx, enum tier_seat seat)
{
	struct flock byte;
	int fd;

	tier_clear_error(ctx);
	fd = seat_lock(ctx, seat, F_OFD_GETLK, &byte);
	if (fd < 0)
		return false;
	close(fd);
	return byte.l_type != F_UNLCK;
}

int tier_presence__read(struct tier_ctx *ctx, struct tier_presence *presence)
{
	struct tier_journal journal;
	struct tier_active active;
	struct stat st;
	int err;

	tier_clear_error(ctx);
	memset(presence, 0, sizeof(*presence));
	err = tier_lock(ctx, false);
	if (err)
		return err;
	if (!tier_active_open(ctx, &active))
		presence->map_id = active.map_id;
	tier_active_close(&active);
	err = presence->map_id ? 0 : tier_journal_read(ctx, &journal);
	presence->lost = !presence->map_id && !err && journal.phase == TIER_PHASE_ACTIVE;
	/* The directory of a module that was inserted anew is another one. */
	if (!stat(TIER_SYSFS, &st))
		presence->module_instance = st.st_ino;
	tier_unlock(ctx);
	return err == -ENOENT ? 0 : err;
}
