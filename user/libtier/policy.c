// SPDX-License-Identifier: GPL-2.0
/* Policy objects: find, open, and read what they say of themselves. */
#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "internal.h"

static bool is_path(const char *policy)
{
	size_t len = strlen(policy);

	return strchr(policy, '/') || (len > 2 && !strcmp(policy + len - 2, ".o"));
}

int tier_object_find(struct tier_ctx *ctx, const char *policy, char *path, size_t size)
{
	if (is_path(policy)) {
		if ((size_t)snprintf(path, size, "%s", policy) >= size)
			return tier_fail(ctx, TIER_CLASS_USAGE, -ENAMETOOLONG, "Use a shorter path.",
					 "open policy: the path is longer than %zu bytes", size - 1);
		return 0;
	}
	if (!*policy || strlen(policy) >= TIER_NAME_LEN)
		return tier_fail(ctx, TIER_CLASS_USAGE, -EINVAL,
				 "`tierctl list` shows the policies at hand; a file is named by "
				 "a path with a slash.",
				 "find policy \"%.40s\": a name has 1 to %d characters", policy,
				 TIER_NAME_LEN - 1);
	for (unsigned int i = 0; i < ctx->nr_dirs; i++) {
		if ((size_t)snprintf(path, size, "%s/policy_%s.bpf.o", ctx->dirs[i], policy) >= size)
			continue;
		if (!access(path, F_OK))
			return 0;
	}
	return tier_fail(ctx, TIER_CLASS_USAGE, -ENOENT,
			 "`tierctl list` shows the policies at hand; a file of your own is named "
			 "by its path (./NAME.bpf.o).",
			 "find policy \"%s\": no policy_%s.bpf.o in %s%s", policy, policy,
			 ctx->nr_dirs ? ctx->dirs[0] : "any directory",
			 ctx->nr_dirs > 1 ? " or the directories after it" : "");
}

/* The descriptor that was checked is the one that is read. */
static void *read_object(struct tier_ctx *ctx, const char *path, size_t *size)
{
	int fd = tier_open_trusted(ctx, "object", path);
	size_t len = 0;
	struct stat st;
	ssize_t n;
	char *buf;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) || st.st_size > 64 << 20) {
		close(fd);
		tier_fail(ctx, TIER_CLASS_USAGE, -EFBIG, "A policy object has some 100 KiB.",
			  "read object %s: larger than 64 MiB", path);
		return NULL;
	}
	buf = malloc(st.st_size + 1);
	while (buf && len < (size_t)st.st_size) {
		n = read(fd, buf + len, st.st_size - len);
		if (n <= 0)
			break;
		len += n;
	}
	close(fd);
	if (!buf)
		tier_fail(ctx, TIER_CLASS_FAILED, -ENOMEM, NULL, "read object %s: out of memory",
			  path);
	*size = len;
	return buf;
}

struct bpf_object *tier_bpf_open(struct tier_ctx *ctx, const char *path, char *log,
				 unsigned int log_bytes)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts);
	struct bpf_object *obj;
	char name[64], *dot;
	const char *base;
	size_t size;
	void *buf;

	buf = read_object(ctx, path, &size);
	if (!buf)
		return NULL;

	base = strrchr(path, '/');
	tier_copy(name, sizeof(name), base ? base + 1 : path);
	dot = strchr(name, '.');
	if (dot)
		*dot = '\0';
	opts.object_name = name;
	opts.kernel_log_buf = log;
	opts.kernel_log_size = log_bytes;

	tier_libbpf_begin(ctx);
	obj = bpf_object__open_mem(buf, size, &opts);
	tier_libbpf_end(ctx);
	if (!obj)
		/* libbpf's own codes, from 4000 up, mean nothing outside of it */
		tier_fail(ctx, TIER_CLASS_USAGE, errno < __LIBBPF_ERRNO__START ? -errno : -ENOEXEC,
			  "Build it with clang -target bpf -g; see docs/writing-a-policy.md.",
			  "open object %s: %s", path,
			  ctx->libbpf_warning[0] ? ctx->libbpf_warning : "no BPF object");
	free(buf);
	return obj;
}

/* Is variable @name in section @section one of our tables of operations? */
static bool is_ops_var(const struct btf *btf, const char *section, const char *name)
{
	const struct btf_var_secinfo *var;
	const struct btf_type *sec, *type;
	int id = btf__find_by_name_kind(btf, section, BTF_KIND_DATASEC);

	if (id < 0)
		return false;
	sec = btf__type_by_id(btf, id);
	var = btf_var_secinfos(sec);
	for (int i = 0; i < btf_vlen(sec); i++, var++) {
		type = btf__type_by_id(btf, var->type);
		if (strcmp(btf__name_by_offset(btf, type->name_off), name))
			continue;
		id = btf__resolve_type(btf, type->type);
		type = id < 0 ? NULL : btf__type_by_id(btf, id);
		return type && btf_is_struct(type) &&
		       !strcmp(btf__name_by_offset(btf, type->name_off), TIER_OPS_TYPE);
	}
	return false;
}

static int find_ops(struct tier_ctx *ctx, struct tier_object *object)
{
	const struct btf *btf = bpf_object__btf(object->obj);
	const char *hint = "Include <tier/policy.bpf.h> and end with TIER_POLICY(); see "
			   "docs/writing-a-policy.md.";
	bool unlinked = false;
	struct bpf_map *map;

	bpf_object__for_each_map(map, object->obj) {
		const char *name = bpf_map__name(map);

		if (bpf_map__type(map) != BPF_MAP_TYPE_STRUCT_OPS || !btf)
			continue;
		if (is_ops_var(btf, ".struct_ops", name))
			unlinked = true;
		if (!is_ops_var(btf, ".struct_ops.link", name))
			continue;
		if (object->ops)
			return tier_fail(ctx, TIER_CLASS_USAGE, -E2BIG,
					 "Split it: one policy a file.",
					 "look for the policy in %s: it has more than one, %s and %s",
					 object->path, bpf_map__name(object->ops), name);
		object->ops = map;
	}
	if (!object->ops)
		return tier_fail(ctx, TIER_CLASS_USAGE, -ENOEXEC, unlinked ?
				 "Put its table into section .struct_ops.link." : hint,
				 "look for a policy in %s: no policy in it (no table of type "
				 TIER_OPS_TYPE ")", object->path);
	return 0;
}

static int read_ops(struct tier_object *object, struct tier_policy_info *info)
{
	const struct btf *btf = bpf_object__btf(object->obj);
	const struct btf_member *member;
	const struct btf_type *type;
	const unsigned char *data;
	unsigned int size;
	size_t data_size;
	int offset, id;

	data = bpf_map__initial_value(object->ops, &data_size);
	id = btf__find_by_name_kind(btf, TIER_OPS_TYPE, BTF_KIND_STRUCT);
	if (!data || id < 0)
		return -EINVAL;
	type = btf__type_by_id(btf, id);
	info->ops = calloc(btf_vlen(type) + 1, sizeof(*info->ops));
	if (!info->ops)
		return -ENOMEM;
	member = btf_members(type);
	for (int i = 0; i < btf_vlen(type); i++, member++) {
		size_t at = btf_member_bit_offset(type, i) / 8;
		void *prog;

		id = btf__resolve_type(btf, member->type);
		if (id < 0 || !btf_is_ptr(btf__type_by_id(btf, id)) ||
		    at + sizeof(prog) > data_size)
			continue;
		memcpy(&prog, data + at, sizeof(prog));
		if (!prog)
			continue;
		info->ops[info->nr_ops] = strdup(btf__name_by_offset(btf, member->name_off));
		if (!info->ops[info->nr_ops])
			return -ENOMEM;
		info->nr_ops++;
	}

	offset = tier_btf_member(btf, TIER_OPS_TYPE, "abi_version", &size);
	if (offset >= 0 && size == sizeof(info->abi_version))
		memcpy(&info->abi_version, data + offset, size);
	offset = tier_btf_member(btf, TIER_OPS_TYPE, "flags", &size);
	if (offset >= 0 && size == sizeof(info->flags))
		memcpy(&info->flags, data + offset, size);
	offset = tier_btf_member(btf, TIER_OPS_TYPE, "name", &size);
	if (offset >= 0 && size == TIER_NAME_LEN)
		memcpy(info->name, data + offset, TIER_NAME_LEN - 1);
	return 0;
}

static int read_progs(struct tier_object *object, struct tier_policy_info *info)
{
	struct bpf_program *prog;
	unsigned int nr = 0;

	bpf_object__for_each_program(prog, object->obj)
		nr++;
	info->progs = calloc(nr + 1, sizeof(*info->progs));
	if (!info->progs)
		return -ENOMEM;
	bpf_object__for_each_program(prog, object->obj) {
		struct tier_prog_info *p = &info->progs[info->nr_progs];

		p->name = strdup(bpf_program__name(prog));
		p->section = strdup(bpf_program__section_name(prog));
		p->insns = bpf_program__insn_cnt(prog);
		info->nr_progs++;
		if (!p->name || !p->section)
			return -ENOMEM;
	}
	return 0;
}

static int check_info(struct tier_ctx *ctx, const struct tier_object *object)
{
	const struct tier_policy_info *info = object->info;

	if (info->abi_version != TIER_ABI_VERSION)
		return tier_fail(ctx, TIER_CLASS_FAILED, -EPROTO,
				 "Rebuild it with the headers that came with this tierctl.",
				 "open policy %s: it speaks ABI %u, this tierctl ABI %u",
				 object->path, info->abi_version, TIER_ABI_VERSION);
	if (!info->name[0] || info->name[strspn(info->name,
	     "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")])
		return tier_fail(ctx, TIER_CLASS_USAGE, -EINVAL,
				 "Name it with letters, digits, '_', '.' and '-'.",
				 "open policy %s: its name is no name", object->path);
	if (info->flags & ~TIER_POLICY_FLAGS_ALL)
		return tier_fail(ctx, TIER_CLASS_USAGE, -EINVAL,
				 "Use the TIER_NEED_* bits of <tier/abi.h> only.",
				 "open policy %s: unknown bits in its flags (0x%x)", object->path,
				 info->flags & ~TIER_POLICY_FLAGS_ALL);
	return 0;
}

int tier_object_open(struct tier_ctx *ctx, const char *policy, struct tier_object *object)
{
	struct tier_policy_info *info;
	size_t size = 0;
	void *values;
	int err;

	memset(object, 0, sizeof(*object));
	err = tier_object_find(ctx, policy, object->path, sizeof(object->path));
	if (err)
		return err;
	object->log = calloc(1, TIER_VERIFIER_LOG_BYTES);
	info = object->info = calloc(1, sizeof(*info));
	if (!object->log || !info || !(info->path = strdup(object->path))) {
		err = tier_fail(ctx, TIER_CLASS_FAILED, -ENOMEM, NULL,
				"open policy %s: out of memory", object->path);
		goto fail;
	}
	object->obj = tier_bpf_open(ctx, object->path, object->log, TIER_VERIFIER_LOG_BYTES);
	if (!object->obj) {
		err = ctx->err;
		goto fail;
	}
	err = find_ops(ctx, object);
	if (err)
		goto fail;

	object->params = bpf_object__find_map_by_name(object->obj, TIER_PARAMS);
	values = object->params ? bpf_map__initial_value(object->params, &size) : NULL;
	err = read_ops(object, info) ?: read_progs(object, info) ?:
	      tier_params_read_info(bpf_object__btf(object->obj), info, values, size);
	if (err) {
		tier_fail(ctx, TIER_CLASS_FAILED, err,
			  "Build it with clang -g and the headers of this tierctl.",
			  "read the metadata of %s: %s", object->path, strerror(-err));
		goto fail;
	}
	err = check_info(ctx, object);
	if (!err)
		return 0;
fail:
	tier_object_close(object);
	return err;
}

void tier_object_close(struct tier_object *object)
{
	bpf_object__close(object->obj);
	free(object->log);
	tier_policy_info__free(object->info);
	memset(object, 0, sizeof(*object));
}

int tier_policy__inspect(struct tier_ctx *ctx, const char *policy,
			 struct tier_policy_info **info)
{
	struct tier_object object;
	int err;

	tier_clear_error(ctx);
	err = tier_object_open(ctx, policy, &object);
	if (err)
		return err;
	*info = object.info;
	object.info = NULL;
	tier_object_close(&object);
	return 0;
}

void tier_policy_info__free(struct tier_policy_info *info)
{
	if (!info)
		return;
	for (unsigned int i = 0; i < info->nr_ops; i++)
		free(info->ops[i]);
	for (unsigned int i = 0; i < info->nr_progs; i++) {
		free(info->progs[i].name);
		free(info->progs[i].section);
	}
	tier_param_info_free(info->params, info->nr_params);
	free(info->ops);
	free(info->progs);
	free(info->path);
	free(info->error);
	free(info);
}

/* One that cannot be opened is listed too, with the reason. */
static struct tier_policy_info *broken(struct tier_ctx *ctx, const char *path,
				       const char *name)
{
	struct tier_policy_info *info = calloc(1, sizeof(*info));

	if (!info)
		return NULL;
	tier_copy(info->name, sizeof(info->name), name);
	info->path = strdup(path);
	info->error = strdup(ctx->message);
	if (!info->path || !info->error) {
		tier_policy_info__free(info);
		return NULL;
	}
	tier_clear_error(ctx);
	return info;
}

static int list_one(struct tier_ctx *ctx, const char *path,
		    struct tier_policy_info ***infos, unsigned int *nr)
{
	const char *base = strrchr(path, '/') + 1 + strlen("policy_");
	struct tier_policy_info *info, **grown;
	char name[TIER_NAME_LEN];
	size_t len = strcspn(base, ".");

	len = len < sizeof(name) ? len : sizeof(name) - 1;
	memcpy(name, base, len);
	name[len] = '\0';
	for (unsigned int i = 0; i < *nr; i++)
		if (!strcmp((*infos)[i]->name, name))
			return 0;

	if (tier_policy__inspect(ctx, path, &info))
		info = broken(ctx, path, name);
	grown = realloc(*infos, (*nr + 1) * sizeof(*grown));
	if (grown)
		*infos = grown;
	if (!info || !grown) {
		tier_policy_info__free(info);
		return tier_fail(ctx, TIER_CLASS_FAILED, -ENOMEM, NULL,
				 "list the policies: out of memory");
	}
	grown[(*nr)++] = info;
	return 0;
}

int tier_policy__list(struct tier_ctx *ctx, struct tier_policy_info ***infos,
		      unsigned int *nr)
{
	char pattern[PATH_MAX + 32];
	glob_t found;
	int err = 0;

	tier_clear_error(ctx);
	*infos = NULL;
	*nr = 0;
	for (unsigned int i = 0; i < ctx->nr_dirs && !err; i++) {
		snprintf(pattern, sizeof(pattern), "%s/policy_*.bpf.o", ctx->dirs[i]);
		if (glob(pattern, 0, NULL, &found))
			continue;
		for (size_t j = 0; j < found.gl_pathc && !err; j++)
			err = list_one(ctx, found.gl_pathv[j], infos, nr);
		globfree(&found);
	}
	if (err) {
		tier_policy_list__free(*infos, *nr);
		*infos = NULL;
		*nr = 0;
	}
	return err;
}

void tier_policy_list__free(struct tier_policy_info **infos, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++)
		tier_policy_info__free(infos[i]);
	free(infos);
}
