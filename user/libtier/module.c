// SPDX-License-Identifier: GPL-2.0
/* The kernel module: find, insert, remove, and its sysfs directory. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

static const struct timespec step = { .tv_nsec = 20 * 1000 * 1000 };

bool tier_module_loaded(void)
{
	return !access(TIER_SYSFS, F_OK);
}

int tier_module_text(const char *file, char *buf, size_t size)
{
	char path[128];

	snprintf(path, sizeof(path), TIER_SYSFS "/%s", file);
	return tier_read_text(path, buf, size);
}

void tier_module_parse_counters(const char *text, __u64 counters[TIER_NR_EV])
{
	static const char *const names[] = {
#define TIER_STAT_MODULE(sym, name, unit, help) name,
#include <tier/stats.def>
	};

	/* A name that this module does not have counts nothing. */
	for (unsigned int i = 0; i < TIER_NR_EV; i++)
		if (tier_line_value(text, names[i], &counters[i]))
			counters[i] = 0;
}

int tier_module_counters(__u64 counters[TIER_NR_EV])
{
	char text[4096];
	int err;

	err = tier_module_text("counters", text, sizeof(text));
	if (err < 0) {
		memset(counters, 0, TIER_NR_EV * sizeof(counters[0]));
		return err;
	}
	tier_module_parse_counters(text, counters);
	return 0;
}

int tier_module_find(struct tier_ctx *ctx, char *path, size_t size)
{
	static const char *const places[] = {
		"/lib/modules/%s/updates/" TIER_MODULE ".ko",
		"/lib/modules/%s/updates/dkms/" TIER_MODULE ".ko",
		"/lib/modules/%s/extra/" TIER_MODULE ".ko",
	};
	struct utsname uts;

	uname(&uts);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(path, size, places[i], uts.release);
		if (!access(path, F_OK))
			return 0;
	}
	if ((size_t)snprintf(path, size, "%s/kmod/%s/" TIER_MODULE ".ko", ctx->base_dir,
			     uts.release) < size && !access(path, F_OK))
		return 0;
	path[0] = '\0';
	return -ENOENT;
}

static int insert_failed(struct tier_ctx *ctx, int err, const char *path)
{
	enum tier_class class = TIER_CLASS_FAILED;
	const char *said = strerror(-err), *hint;

	switch (-err) {
	case ENOKEY:
	case EKEYREJECTED:
	case EBADMSG:
	case EKEYREVOKED:
	case EKEYEXPIRED:
		class = TIER_CLASS_PERMISSION;
		said = "the kernel takes signed modules only, and refused this one's signature";
		hint = "Sign it with a key that the machine trusts (kmodsign, mokutil "
		       "--import), or boot without module.sig_enforce and Secure Boot.";
		break;
	case ENOEXEC:
		class = TIER_CLASS_UNSUPPORTED;
		said = "made for another kernel (version magic), or no module at all";
		hint = "Build it against the running kernel: make kmod KREL=$(uname -r).";
		break;
	case EPERM:
		class = TIER_CLASS_PERMISSION;
		hint = "See kernel.modules_disabled, /sys/kernel/security/lockdown, and whether "
		       "this root has CAP_SYS_MODULE (containers do not).";
		break;
	case ENOENT:
		class = TIER_CLASS_UNSUPPORTED;
		said = "it needs a symbol that this kernel does not have";
		hint = "Build it against the running kernel: make kmod KREL=$(uname -r); the "
		       "kernel log names the symbol.";
		break;
	case EINVAL:
		class = TIER_CLASS_UNSUPPORTED;
		hint = "Its types (BTF) do not fit the running kernel, or its parameters are "
		       "wrong: rebuild it, and see the kernel log.";
		break;
	default:
		hint = "See the kernel log (dmesg).";
	}
	return tier_fail(ctx, class, err, hint, "insert module %s: %s", path, said);
}

int tier_module_insert(struct tier_ctx *ctx)
{
	char path[256];
	struct utsname uts;
	int fd, err;

	if (tier_module_find(ctx, path, sizeof(path))) {
		uname(&uts);
		return tier_fail(ctx, TIER_CLASS_UNSUPPORTED, -ENOENT,
				 "Build it with make kmod, then sudo make install.",
				 "find module " TIER_MODULE ".ko for kernel %s: neither in "
				 "/lib/modules/%s/updates nor in the build tree",
				 uts.release, uts.release);
	}
	fd = tier_open_trusted(ctx, "module", path);
	if (fd < 0)
		return fd;
	tier_log(ctx, TIER_LOG_INFO, "insert module %s", path);
	err = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
	close(fd);
	if (err && err != -EEXIST)
		return insert_failed(ctx, err, path);
	for (int i = 0; i < 50 && !tier_module_loaded(); i++)
		nanosleep(&step, NULL);
	if (!tier_module_loaded())
		return tier_fail(ctx, TIER_CLASS_FAILED, -EIO, "See the kernel log (dmesg).",
				 "insert module %s: it is in, but " TIER_SYSFS " is not there",
				 path);
	/* Someone else was faster: as good as done, but theirs to remove. */
	return err == -EEXIST;
}

/*
 * The last reference goes when the kernel has freed the policy's map, some
 * grace periods after the link; so "in use" is worth waiting for.
 */
int tier_module_remove(struct tier_ctx *ctx)
{
	int err = 0;

	for (int i = 0; i < 500; i++) {
		if (!syscall(SYS_delete_module, TIER_MODULE, O_NONBLOCK))
			return 0;
		err = -errno;
		if (err == -ENOENT)
			return 0;
		if (err != -EAGAIN && err != -EBUSY)
			break;
		nanosleep(&step, NULL);
	}
	return tier_fail(ctx, TIER_CLASS_FAILED, err,
			 "Look for programs that still hold a policy (bpftool map), then rmmod "
			 TIER_MODULE ".",
			 "remove module " TIER_MODULE ": %s", strerror(-err));
}
