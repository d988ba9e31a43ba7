// SPDX-License-Identifier: GPL-2.0
/*
 * Single decisions of the policy in force, as they are made. A fexit program on
 * the policy's own promote() program, held by this process alone: when it ends,
 * however it ends, the kernel takes the program away.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "internal.h"

#define LOG_BYTES	(1U << 20)

struct tier_watch {
	struct bpf_object *obj;
	struct bpf_link *link;
	struct ring_buffer *ring;
	int tasks_fd, lost_fd;
	__u32 map_id;		/* of the policy that is watched */
	tier_watch_fn on_event;
	void *data;
};

/*
 * Reading a struct_ops map gives program ids in place of function pointers. Their
 * place depends on the kernel's layout: the module's BTF knows it.
 */
static __u32 promote_prog_id(struct tier_ctx *ctx, __u32 map_id)
{
	struct btf *vmlinux = tier_vmlinux_btf(ctx);
	struct btf *btf = vmlinux ? btf__load_module_btf(TIER_MODULE, vmlinux) : NULL;
	struct bpf_map_info info = {};
	__u32 len = sizeof(info), zero = 0, id = 0;
	int data = -1, member = -1, fd;
	unsigned int size;
	char *value = NULL;

	if (btf) {
		data = tier_btf_member(btf, TIER_OPS_VALUE, "data", &size);
		member = tier_btf_member(btf, TIER_OPS_TYPE, "promote", &size);
	}
	btf__free(btf);
	fd = bpf_map_get_fd_by_id(map_id);
	if (fd < 0 || data < 0 || member < 0)
		goto out;
	if (bpf_map_get_info_by_fd(fd, &info, &len) ||
	    data + member + sizeof(__u64) > info.value_size)
		goto out;
	value = calloc(1, info.value_size);
	if (value && !bpf_map_lookup_elem(fd, &zero, value))
		id = *(__u64 *)(value + data + member);
out:
	if (fd >= 0)
		close(fd);
	free(value);
	return id;
}

/* Name of a program's function: the info of the program cuts it after 15 bytes. */
static int prog_function(int prog_fd, char *name, size_t size)
{
	struct bpf_func_info func = {};
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);
	const struct btf_type *t;
	struct btf *btf;
	int err = -ENOENT;

	info.nr_func_info = 1;
	info.func_info_rec_size = sizeof(func);
	info.func_info = (__u64)(unsigned long)&func;
	if (bpf_prog_get_info_by_fd(prog_fd, &info, &len))
		return -errno;
	btf = btf__load_from_kernel_by_id(info.btf_id);
	t = btf ? btf__type_by_id(btf, func.type_id) : NULL;
	if (t && btf_is_func(t)) {
		tier_copy(name, size, btf__name_by_offset(btf, t->name_off));
		err = 0;
	}
	btf__free(btf);
	return err;
}

static int find_object(struct tier_ctx *ctx, char *path, size_t size)
{
	for (unsigned int i = 0; i < ctx->nr_dirs; i++)
		if ((size_t)snprintf(path, size, "%s/watch.bpf.o", ctx->dirs[i]) < size &&
		    !access(path, F_OK))
			return 0;
	return tier_fail(ctx, TIER_CLASS_FAILED, -ENOENT, "Run make install.",
			 "find the watcher: no watch.bpf.o in the lookup directories");
}

static int set_options(struct bpf_object *obj, const struct tier_watch_opts *opts)
{
	const struct {
		const char *name;
		__u64 value;
	} values[] = {
		{ "watch_want_events", opts->on_event != NULL },
		{ "watch_want_tasks", opts->tasks },
		{ "watch_tgid", opts->pid },
		{ "watch_node", (__u32)opts->node },
		{ "watch_decisions", opts->decisions },
	};

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		int err = tier_set_rodata(obj, values[i].name, values[i].value);

		if (err)
			return err;
	}
	return 0;
}

static int load(struct tier_ctx *ctx, struct tier_watch *watch, const struct tier_watch_opts *opts,
		const char *path, int prog_fd, const char *function)
{
	struct bpf_program *prog;
	char *log = calloc(1, LOG_BYTES);
	int err;

	if (!log)
		return tier_fail(ctx, TIER_CLASS_FAILED, -ENOMEM, NULL, "watch: out of memory");
	watch->obj = tier_bpf_open(ctx, path, log, LOG_BYTES);
	err = watch->obj ? set_options(watch->obj, opts) : ctx->err;
	if (err && watch->obj)
		tier_fail(ctx, TIER_CLASS_FAILED, err, "Build tierctl and its objects together.",
			  "set the options of %s: %s", path, strerror(-err));
	prog = watch->obj ? bpf_object__find_program_by_name(watch->obj, "watch_decision") : NULL;
	if (!err && !prog)
		err = tier_fail(ctx, TIER_CLASS_FAILED, -ENOENT, NULL, "%s has no watch_decision", path);
	if (!err) {
		bpf_program__set_autoload(prog, true);
		err = bpf_program__set_attach_target(prog, prog_fd, function);
		if (err)
			tier_fail(ctx, TIER_CLASS_FAILED, err, NULL, "watch program %s: %s", function,
				  strerror(-err));
	}
	if (!err) {
		tier_libbpf_begin(ctx);
		err = bpf_object__load(watch->obj);
		if (!err) {
			watch->link = bpf_program__attach(prog);
			if (!watch->link)
				err = -errno;
		}
		tier_libbpf_end(ctx);
		if (err)
			tier_load_failed(ctx, err, path, log);
	}
	free(log);
	return err;
}

static int on_sample(void *data, void *sample, size_t size)
{
	struct tier_watch *watch = data;

	if (size >= sizeof(struct tier_watch_event))
		watch->on_event(watch->data, sample);
	return 0;
}

static int open_maps(struct tier_ctx *ctx, struct tier_watch *watch)
{
	int events_fd = bpf_object__find_map_fd_by_name(watch->obj, "watch_events");

	watch->tasks_fd = bpf_object__find_map_fd_by_name(watch->obj, "watch_tasks");
	watch->lost_fd = bpf_object__find_map_fd_by_name(watch->obj, "watch_lost");
	if (events_fd < 0 || watch->tasks_fd < 0 || watch->lost_fd < 0)
		return tier_fail(ctx, TIER_CLASS_FAILED, -ENOENT,
				 "Build tierctl and its objects together.",
				 "the watcher lacks a map");
	if (!watch->on_event)
		return 0;
	watch->ring = ring_buffer__new(events_fd, on_sample, watch, NULL);
	if (!watch->ring)
		return tier_fail(ctx, TIER_CLASS_FAILED, -errno, NULL, "map the ring buffer: %s",
				 strerror(errno));
	return 0;
}

int tier_watch__open(struct tier_ctx *ctx, const struct tier_watch_opts *opts,
		     struct tier_watch **result)
{
	struct tier_active active;
	struct tier_watch *watch;
	char path[PATH_MAX], function[128];
	int prog_fd = -1, err;
	__u32 prog_id;

	*result = NULL;
	tier_clear_error(ctx);
	if (geteuid())
		return tier_fail(ctx, TIER_CLASS_PERMISSION, -EPERM, "Run it with sudo.",
				 "watch decisions: not root");
	err = tier_active_open(ctx, &active);
	if (err || !active.map_id) {
		tier_active_close(&active);
		return tier_nothing_loaded(ctx, "watch decisions");
	}
	watch = calloc(1, sizeof(*watch));
	if (!watch) {
		tier_active_close(&active);
		return tier_fail(ctx, TIER_CLASS_FAILED, -ENOMEM, NULL, "watch: out of memory");
	}
	watch->map_id = active.map_id;
	watch->on_event = opts->on_event;
	watch->data = opts->data;
	prog_id = promote_prog_id(ctx, active.map_id);
	prog_fd = prog_id ? bpf_prog_get_fd_by_id(prog_id) : -1;
	if (prog_fd < 0 || prog_function(prog_fd, function, sizeof(function)))
		err = tier_fail(ctx, TIER_CLASS_FAILED, -ENOENT, NULL,
				"watch decisions: the policy's program cannot be found");
	if (!err)
		err = find_object(ctx, path, sizeof(path));
	if (!err)
		err = load(ctx, watch, opts, path, prog_fd, function);
	if (!err)
		err = open_maps(ctx, watch);
	if (prog_fd >= 0)
		close(prog_fd);
	tier_active_close(&active);
	if (err)
		tier_watch__close(watch);
	else
		*result = watch;
	return err;
}

void tier_watch__close(struct tier_watch *watch)
{
	if (!watch)
		return;
	ring_buffer__free(watch->ring);
	bpf_link__destroy(watch->link);
	bpf_object__close(watch->obj);
	free(watch);
}

int tier_watch__poll(struct tier_watch *watch, int timeout_ms)
{
	return watch->ring ? ring_buffer__poll(watch->ring, timeout_ms) : 0;
}

bool tier_watch__current(struct tier_ctx *ctx, const struct tier_watch *watch)
{
	struct tier_active active;
	bool current;

	current = !tier_active_open(ctx, &active) && active.map_id == watch->map_id;
	tier_active_close(&active);
	return current;
}

void tier_watch__lost(const struct tier_watch *watch, struct tier_watch_lost *lost)
{
	__u32 zero = 0;

	memset(lost, 0, sizeof(*lost));
	bpf_map_lookup_elem(watch->lost_fd, &zero, lost);
}

int tier_watch__tasks(const struct tier_watch *watch, struct tier_watch_pid **tasks,
		      unsigned int *nr)
{
	unsigned int room = 0;
	__u32 key, *prev = NULL;

	*tasks = NULL;
	*nr = 0;
	while (!bpf_map_get_next_key(watch->tasks_fd, prev, &key)) {
		if (*nr == room) {
			struct tier_watch_pid *more;

			room = room ? 2 * room : 64;
			more = realloc(*tasks, room * sizeof(*more));
			if (!more) {
				free(*tasks);
				*tasks = NULL;
				return -ENOMEM;
			}
			*tasks = more;
		}
		/* An entry may be evicted between the two calls: then it is left out. */
		if (!bpf_map_lookup_elem(watch->tasks_fd, &key, &(*tasks)[*nr].task))
			(*tasks)[(*nr)++].pid = key;
		prev = &key;
	}
	return 0;
}
