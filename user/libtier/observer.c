// SPDX-License-Identifier: GPL-2.0
/* The observer object: scans, skips and migrations, beside whatever policy is in force. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "internal.h"

#define LOG_BYTES	(1U << 20)

static int find_observer(struct tier_ctx *ctx, char *path, size_t size)
{
	for (unsigned int i = 0; i < ctx->nr_dirs; i++) {
		if ((size_t)snprintf(path, size, "%s/trace.bpf.o", ctx->dirs[i]) < size &&
		    !access(path, F_OK))
			return 0;
	}
	return tier_fail(ctx, TIER_CLASS_FAILED, -ENOENT, "Run make install.",
			 "find the observer: no trace.bpf.o in the lookup directories");
}

/* Kernels differ in what they have to observe: a program without its target stays out. */
static bool target_exists(struct tier_ctx *ctx, const struct bpf_program *prog)
{
	const char *section = bpf_program__section_name(prog), *target;
	struct btf *btf = tier_vmlinux_btf(ctx);
	char type[128];

	target = strchr(section, '/');
	if (!btf || !target)
		return false;
	target++;
	if (strstr(section, "tp_btf")) {
		snprintf(type, sizeof(type), "btf_trace_%s", target);
		return btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF) > 0;
	}
	return btf__find_by_name_kind(btf, target, BTF_KIND_FUNC) > 0;
}

static int attach_all(struct tier_ctx *ctx, struct bpf_object *obj, const char *path)
{
	struct bpf_program *prog;
	unsigned int nr = 0;

	bpf_object__for_each_program(prog, obj) {
		const char *name = bpf_program__name(prog);
		struct bpf_link *link;
		int err;

		if (bpf_program__fd(prog) < 0)
			continue;
		tier_libbpf_begin(ctx);
		link = bpf_program__attach(prog);
		tier_libbpf_end(ctx);
		if (!link) {
			/* Not every function that BTF names can be traced. */
			tier_log(ctx, TIER_LOG_WARN, "observer: attach %s: %s; its counters stay 0",
				 name, strerror(errno));
			continue;
		}
		err = tier_pin_fd(ctx, bpf_link__fd(link), "observer/link_%s", name);
		bpf_link__destroy(link);
		if (err)
			return err;
		nr++;
	}
	if (!nr)
		return tier_fail(ctx, TIER_CLASS_FAILED, -ENOENT, NULL,
				 "attach the observer %s: no program of it fits this kernel", path);
	return 0;
}

int tier_observer_attach(struct tier_ctx *ctx, const struct tier_env *env)
{
	struct bpf_object *obj = NULL;
	struct bpf_program *prog;
	char path[PATH_MAX], *log;
	int err;

	err = find_observer(ctx, path, sizeof(path));
	if (err)
		return err;
	log = calloc(1, LOG_BYTES);
	if (!log)
		return tier_fail(ctx, TIER_CLASS_FAILED, -ENOMEM, NULL,
				 "attach the observer: out of memory");
	obj = tier_bpf_open(ctx, path, log, LOG_BYTES);
	if (!obj) {
		err = ctx->err;
		goto out;
	}
	err = tier_set_machine(obj, env);
	if (err) {
		tier_fail(ctx, TIER_CLASS_FAILED, err, NULL, "set the constants of %s: %s", path,
			  strerror(-err));
		goto out;
	}
	err = tier_pin_mkdir(ctx, "observer") ?: tier_size_maps(ctx, obj, env, true);
	if (err)
		goto out;
	bpf_object__for_each_program(prog, obj)
		bpf_program__set_autoload(prog, target_exists(ctx, prog));

	tier_libbpf_begin(ctx);
	err = bpf_object__load(obj);
	tier_libbpf_end(ctx);
	err = err ? tier_load_failed(ctx, err, path, log) : attach_all(ctx, obj, path);
out:
	bpf_object__close(obj);
	free(log);
	return err;
}

static __u32 prog_of_link(struct tier_ctx *ctx, const char *name)
{
	struct bpf_link_info info = {};
	__u32 len = sizeof(info), id = 0;
	int fd = tier_pin_get(ctx, "observer/%s", name);

	if (fd < 0)
		return 0;
	if (!bpf_link_get_info_by_fd(fd, &info, &len))
		id = info.prog_id;
	close(fd);
	return id;
}

void tier_observer_note(struct tier_ctx *ctx, struct tier_progs *progs)
{
	struct dirent *entry;
	char path[192];
	DIR *dir;

	tier_pin_path(ctx, path, sizeof(path), "observer");
	dir = opendir(path);
	while (dir && progs->nr < TIER_MAX_PROGS && (entry = readdir(dir))) {
		__u32 id = strncmp(entry->d_name, "link_", 5) ? 0 :
			   prog_of_link(ctx, entry->d_name);

		for (unsigned int i = 0; i < progs->nr; i++)
			if (progs->id[i] == id)
				id = 0;
		if (id)
			progs->id[progs->nr++] = id;
	}
	if (dir)
		closedir(dir);
}

static bool prog_lives(__u32 id)
{
	int fd = bpf_prog_get_fd_by_id(id);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/*
 * The kernel frees an unpinned link some grace periods later, and its program
 * after the hook is gone. Waiting for the programs lets unload end with the
 * functions unhooked.
 */
int tier_observer_remove(struct tier_ctx *ctx, struct tier_progs *progs)
{
	struct timespec step = { .tv_nsec = 10 * 1000 * 1000 };
	unsigned int nr = progs->nr;
	int err;

	err = tier_pin_remove(ctx, "observer");
	if (err)
		return err;
	/* 10, 20, 40, 80, then 160 ms: 3 s in all */
	for (int i = 0; i < 22 && nr; i++) {
		while (nr && !prog_lives(progs->id[nr - 1]))
			nr--;
		if (nr)
			nanosleep(&step, NULL);
		if (step.tv_nsec < 160 * 1000 * 1000)
			step.tv_nsec *= 2;
	}
	if (nr)
		tier_log(ctx, TIER_LOG_DEBUG, "%u observer programs are still in use elsewhere", nr);
	return 0;
}
