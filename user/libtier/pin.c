// SPDX-License-Identifier: GPL-2.0
/* bpffs and our directory in it. */
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "internal.h"

bool tier_bpffs_mounted(void)
{
	struct statfs fs;

	return !statfs(TIER_BPFFS, &fs) && fs.f_type == BPF_FS_MAGIC;
}

int tier_bpffs_mount(struct tier_ctx *ctx)
{
	tier_log(ctx, TIER_LOG_INFO, "mount bpffs on " TIER_BPFFS);
	if (mount("bpffs", TIER_BPFFS, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700"))
		return tier_fail(ctx, errno == EPERM ? TIER_CLASS_PERMISSION :
				 TIER_CLASS_UNSUPPORTED, -errno,
				 "The kernel needs CONFIG_BPF_SYSCALL, and this root CAP_SYS_ADMIN.",
				 "mount bpffs on " TIER_BPFFS ": %s", strerror(errno));
	return 0;
}

static int format_path(struct tier_ctx *ctx, char *buf, size_t size, const char *fmt,
		       va_list args)
{
	int len = snprintf(buf, size, "%s/", ctx->pin_dir);

	len += vsnprintf(buf + len, size - len, fmt, args);
	return (size_t)len < size ? 0 : -ENAMETOOLONG;
}

int tier_pin_path(struct tier_ctx *ctx, char *buf, size_t size, const char *fmt, ...)
{
	va_list args;
	int err;

	va_start(args, fmt);
	err = format_path(ctx, buf, size, fmt, args);
	va_end(args);
	return err;
}

int tier_pin_mkdir(struct tier_ctx *ctx, const char *sub)
{
	char path[192];

	tier_pin_path(ctx, path, sizeof(path), "%s", sub);
	if (mkdir(path, 0700) && errno != EEXIST)
		return tier_fail(ctx, TIER_CLASS_FAILED, -errno, NULL, "make directory %s: %s",
				 path, strerror(errno));
	return 0;
}

int tier_pin_fd(struct tier_ctx *ctx, int fd, const char *fmt, ...)
{
	char path[192];
	va_list args;

	va_start(args, fmt);
	format_path(ctx, path, sizeof(path), fmt, args);
	va_end(args);
	if (bpf_obj_pin(fd, path))
		return tier_fail(ctx, TIER_CLASS_FAILED, -errno,
				 errno == EEXIST ? "Run tierctl clean." : NULL, "pin %s: %s", path,
				 strerror(errno));
	return 0;
}

int tier_pin_get(struct tier_ctx *ctx, const char *fmt, ...)
{
	char path[192];
	va_list args;
	int fd;

	va_start(args, fmt);
	format_path(ctx, path, sizeof(path), fmt, args);
	va_end(args);
	fd = bpf_obj_get(path);
	return fd < 0 ? -errno : fd;
}

int tier_active_open(struct tier_ctx *ctx, struct tier_active *active)
{
	struct bpf_link_info info = {};
	__u32 len = sizeof(info);
	int fd;

	memset(active, 0, sizeof(*active));
	active->link_fd = -1;
	fd = tier_pin_get(ctx, "link");
	if (fd < 0)
		return fd == -ENOTDIR ? -ENOENT : fd;
	if (bpf_link_get_info_by_fd(fd, &info, &len)) {
		int err = -errno;

		close(fd);
		return err;
	}
	active->link_fd = fd;
	active->link_id = info.id;
	/*
	 * struct_ops.map_id is the first word of the union; headers of before
	 * 6.4 do not name it. It stays 0 if the link is detached.
	 */
	memcpy(&active->map_id, (char *)&info + offsetof(struct bpf_link_info, tracing),
	       sizeof(active->map_id));
	return 0;
}

void tier_active_close(struct tier_active *active)
{
	if (active->link_fd >= 0)
		close(active->link_fd);
	active->link_fd = -1;
}

bool tier_pins_exist(struct tier_ctx *ctx)
{
	return !access(ctx->pin_dir, F_OK);
}

/* Pins are at most one directory deep, and bpffs has no symlinks worth following. */
static int remove_tree(const char *path, int depth)
{
	char child[512];
	struct dirent *entry;
	int err = 0;
	DIR *dir;

	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while ((entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		snprintf(child, sizeof(child), "%s/%s", path, entry->d_name);
		if (unlink(child) && (errno == EISDIR || errno == EPERM) && depth)
			err = remove_tree(child, depth - 1) ?: err;
	}
	closedir(dir);
	if (rmdir(path) && errno != ENOENT)
		err = -errno;
	return err;
}

int tier_pin_remove(struct tier_ctx *ctx, const char *sub)
{
	char path[192];
	struct stat st;
	int err;

	if (*sub)
		tier_pin_path(ctx, path, sizeof(path), "%s", sub);
	else
		tier_copy(path, sizeof(path), ctx->pin_dir);
	if (lstat(path, &st))
		return 0;
	if (S_ISDIR(st.st_mode))
		err = remove_tree(path, 3);
	else
		err = unlink(path) ? -errno : 0;
	if (err)
		return tier_fail(ctx, TIER_CLASS_FAILED, err, NULL, "remove %s: %s", path,
				 strerror(-err));
	return 0;
}

int tier_pin_collect(struct tier_ctx *ctx, __u32 map_id)
{
	struct dirent *entry;
	char keep[32];
	int err = 0;
	DIR *dir;

	snprintf(keep, sizeof(keep), "policy-%u", map_id);
	dir = opendir(ctx->pin_dir);
	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		if (!strncmp(entry->d_name, "policy-", strlen("policy-")) &&
		    strcmp(entry->d_name, keep))
			err = tier_pin_remove(ctx, entry->d_name) ?: err;
	closedir(dir);
	return err;
}
