// SPDX-License-Identifier: GPL-2.0
/* Small files of /proc and /sys, and files that root must be able to trust. */
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

void tier_copy(char *dst, size_t size, const char *src)
{
	size_t len = strnlen(src, size - 1);

	memmove(dst, src, len);
	dst[len] = '\0';
}

int tier_read_text(const char *path, char *buf, size_t size)
{
	size_t len = 0;
	ssize_t n;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (len < size - 1) {
		n = read(fd, buf + len, size - 1 - len);
		if (n < 0) {
			int err = -errno;

			if (err == -EINTR)
				continue;
			close(fd);
			return err;
		}
		if (!n)
			break;
		len += n;
	}
	close(fd);
	while (len && (buf[len - 1] == '\n' || buf[len - 1] == ' '))
		len--;
	buf[len] = '\0';
	return len;
}

int tier_read_long(const char *path, long *value)
{
	char buf[64], *end;
	int err;

	err = tier_read_text(path, buf, sizeof(buf));
	if (err < 0)
		return err;
	/* Switches of /sys/kernel/mm say true and false on reading. */
	if (!strcmp(buf, "true") || !strcmp(buf, "false")) {
		*value = buf[0] == 't';
		return 0;
	}
	errno = 0;
	*value = strtol(buf, &end, 0);
	return errno || end == buf ? -EINVAL : 0;
}

int tier_line_value(const char *text, const char *name, __u64 *value)
{
	size_t len = strlen(name);
	const char *line = text;

	while (line && *line) {
		if (!strncmp(line, name, len) && line[len] == ' ') {
			*value = strtoull(line + len + 1, NULL, 10);
			return 0;
		}
		line = strchr(line, '\n');
		if (line)
			line++;
	}
	return -ENOENT;
}

/* Less than all of it is no success either, and leaves errno as it was. */
static int write_once(int fd, const char *text)
{
	ssize_t n = write(fd, text, strlen(text));

	return n < 0 ? -errno : (size_t)n != strlen(text) ? -EIO : 0;
}

int tier_replace_text(const char *path, const char *text, unsigned int mode)
{
	char next[PATH_MAX];
	int fd, err;

	snprintf(next, sizeof(next), "%s.new", path);
	fd = open(next, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return -errno;
	err = write_once(fd, text);
	if (close(fd) && !err)
		err = -errno;
	if (!err && rename(next, path))
		err = -errno;
	if (err)
		unlink(next);
	return err;
}

int tier_write_text(const char *path, const char *text)
{
	int fd, err;

	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = write_once(fd, text);
	if (close(fd) && !err)
		err = -errno;
	return err;
}

int tier_parse_list(const char *text, __u64 *mask)
{
	unsigned long first, last;
	char *end;

	*mask = 0;
	while (*text && !isspace((unsigned char)*text)) {
		if (!isdigit((unsigned char)*text))
			return -EINVAL;
		first = last = strtoul(text, &end, 10);
		if (*end == '-') {
			if (!isdigit((unsigned char)end[1]))
				return -EINVAL;
			last = strtoul(end + 1, &end, 10);
			if (last < first)
				return -EINVAL;
		}
		for (; first <= last && first < 64; first++)
			*mask |= 1ULL << first;
		text = end;
		if (*text == ',')
			text++;
	}
	return 0;
}

void tier_format_list(__u64 mask, char *buf, size_t size)
{
	size_t len = 0;

	buf[0] = '\0';
	for (unsigned int i = 0; i < 64 && len < size; i++) {
		unsigned int first = i;

		if (!(mask >> i & 1))
			continue;
		while (i < 63 && mask >> (i + 1) & 1)
			i++;
		len += snprintf(buf + len, size - len, "%s%u", len ? "," : "", first);
		if (i > first && len < size)
			len += snprintf(buf + len, size - len, "-%u", i);
	}
}

int tier_parse_u64(const char *text, __u64 *value)
{
	unsigned long long v;
	char *end;

	/* strtoull takes signs and blanks; a parameter has neither. */
	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	v = strtoull(text, &end, text[0] == '0' && (text[1] | 32) == 'x' ? 16 : 10);
	if (errno == ERANGE)
		return -ERANGE;
	if (*end || end == text)
		return -EINVAL;
	*value = v;
	return 0;
}

int tier_open_trusted(struct tier_ctx *ctx, const char *what, const char *path)
{
	struct stat st;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0) {
		int err = -errno;

		return tier_fail(ctx, err == -EACCES ? TIER_CLASS_PERMISSION : TIER_CLASS_USAGE,
				 err, err == -ENOENT ? "Check the path; `tierctl list` shows the "
				 "policies at hand." : NULL,
				 "open %s %s: %s", what, path, strerror(-err));
	}
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return tier_fail(ctx, TIER_CLASS_USAGE, -EINVAL, "Give a file.",
				 "open %s %s: not a regular file", what, path);
	}
	if (geteuid() == 0 && !ctx->opts.allow_unsafe_files &&
	    (st.st_uid != 0 || st.st_mode & (S_IWGRP | S_IWOTH))) {
		char hint[256];

		close(fd);
		snprintf(hint, sizeof(hint),
			 "Run chown root:root and chmod go-w on it (or on a copy), or say "
			 "that you trust it anyway: TIERCTL_ALLOW_UNSAFE_FILES=1.");
		return tier_fail(ctx, TIER_CLASS_PERMISSION, -EPERM, hint,
				 "open %s %s: others than root may write it (owner uid %u, mode %03o)",
				 what, path, st.st_uid, st.st_mode & 0777);
	}
	return fd;
}
