// SPDX-License-Identifier: GPL-2.0
/* The context: error, log, and libbpf's print hook. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "internal.h"

/* Whom libbpf's print hook serves; libbpf gives the hook no argument of its own. */
static __thread struct tier_ctx *libbpf_ctx;

static int add_dir(struct tier_ctx *ctx, const char *dir)
{
	char **dirs = realloc(ctx->dirs, (ctx->nr_dirs + 1) * sizeof(*dirs));

	if (!dirs)
		return -ENOMEM;
	ctx->dirs = dirs;
	dirs[ctx->nr_dirs] = strdup(dir);
	if (!dirs[ctx->nr_dirs])
		return -ENOMEM;
	ctx->nr_dirs++;
	return 0;
}

static int find_dirs(struct tier_ctx *ctx)
{
	const char *env = secure_getenv("TIERCTL_POLICY_PATH");
	char path[PATH_MAX + 32], *copy, *next, *dir, *slash;
	ssize_t len;
	int err = 0;

	if (env && *env) {
		next = copy = strdup(env);
		if (!copy)
			return -ENOMEM;
		while (!err && (dir = strsep(&next, ":")))
			if (*dir)
				err = add_dir(ctx, dir);
		free(copy);
		if (err)
			return err;
	}

	len = readlink("/proc/self/exe", ctx->base_dir, sizeof(ctx->base_dir) - 1);
	if (len <= 0)
		return 0;
	ctx->base_dir[len] = '\0';
	/* bin/tierctl: what belongs to it lies beside bin. */
	for (int i = 0; i < 2; i++) {
		slash = strrchr(ctx->base_dir, '/');
		if (slash)
			*slash = '\0';
	}

	snprintf(path, sizeof(path), "%s/lib/tierctl", ctx->base_dir);
	err = add_dir(ctx, path);
	if (err)
		return err;
	snprintf(path, sizeof(path), "%s/bpf", ctx->base_dir);
	return add_dir(ctx, path);
}

struct tier_ctx *tier_ctx__new(const struct tier_ctx_opts *opts)
{
	struct tier_ctx *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	if (opts)
		ctx->opts = *opts;
	if (!ctx->opts.lock_timeout_ms)
		ctx->opts.lock_timeout_ms = 10000;
	ctx->lock_fd = -1;
	tier_copy(ctx->run_dir, sizeof(ctx->run_dir), TIER_RUN_DIR);
	tier_copy(ctx->pin_dir, sizeof(ctx->pin_dir), TIER_BPFFS "/tier");
	if (find_dirs(ctx)) {
		tier_ctx__free(ctx);
		return NULL;
	}
	return ctx;
}

void tier_ctx__free(struct tier_ctx *ctx)
{
	if (!ctx)
		return;
	tier_unlock(ctx);
	for (unsigned int i = 0; i < ctx->nr_dirs; i++)
		free(ctx->dirs[i]);
	free(ctx->dirs);
	btf__free(ctx->vmlinux_btf);
	free(ctx->detail);
	free(ctx);
}

const char *tier_policy__dir(struct tier_ctx *ctx, unsigned int index)
{
	return index < ctx->nr_dirs ? ctx->dirs[index] : NULL;
}

const struct tier_error *tier_ctx__error(const struct tier_ctx *ctx)
{
	static __thread struct tier_error error;

	error.class = ctx->class;
	error.err = ctx->err;
	error.message = ctx->message;
	error.hint = ctx->hint;
	error.detail = ctx->detail ? ctx->detail : "";
	return &error;
}

void tier_clear_error(struct tier_ctx *ctx)
{
	ctx->class = TIER_CLASS_OK;
	ctx->err = 0;
	ctx->message[0] = '\0';
	ctx->hint[0] = '\0';
	free(ctx->detail);
	ctx->detail = NULL;
}

int tier_fail(struct tier_ctx *ctx, enum tier_class class, int err, const char *hint,
	      const char *fmt, ...)
{
	char buf[sizeof(ctx->message)];	/* the old message may be an argument */
	va_list args;

	va_start(args, fmt);
	vsnprintf(buf, sizeof(buf), fmt, args);
	va_end(args);

	ctx->class = class;
	ctx->err = err;
	memcpy(ctx->message, buf, sizeof(buf));
	tier_copy(ctx->hint, sizeof(ctx->hint), hint ? hint : "");
	return err;
}

void tier_set_detail(struct tier_ctx *ctx, const char *detail)
{
	free(ctx->detail);
	ctx->detail = detail && *detail ? strdup(detail) : NULL;
}

void tier_error_save(struct tier_ctx *ctx, struct tier_error_copy *copy)
{
	copy->class = ctx->class;
	copy->err = ctx->err;
	memcpy(copy->message, ctx->message, sizeof(copy->message));
	memcpy(copy->hint, ctx->hint, sizeof(copy->hint));
	copy->detail = ctx->detail;
	ctx->detail = NULL;
}

void tier_error_restore(struct tier_ctx *ctx, struct tier_error_copy *copy)
{
	ctx->class = copy->class;
	ctx->err = copy->err;
	memcpy(ctx->message, copy->message, sizeof(copy->message));
	memcpy(ctx->hint, copy->hint, sizeof(copy->hint));
	free(ctx->detail);
	ctx->detail = copy->detail;
}

void tier_log(struct tier_ctx *ctx, enum tier_log_level level, const char *fmt, ...)
{
	char line[1024];
	va_list args;

	if (!ctx->opts.log)
		return;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	ctx->opts.log(ctx->opts.log_data, level, line);
}

/* libbpf names the program in front: libbpf: prog 'fixed_promote': BPF program ... */
static void note_program(struct tier_ctx *ctx, const char *line)
{
	const char *start = strstr(line, "prog '"), *end;

	if (!start || !strstr(line, "load failed"))
		return;
	start += strlen("prog '");
	end = strchr(start, '\'');
	if (end && (size_t)(end - start) < sizeof(ctx->failed_prog)) {
		memcpy(ctx->failed_prog, start, end - start);
		ctx->failed_prog[end - start] = '\0';
	}
}

static int print_hook(enum libbpf_print_level level, const char *fmt, va_list args)
{
	struct tier_ctx *ctx = libbpf_ctx;
	char *line, *end;
	int len;

	if (!ctx)
		return 0;
	len = vasprintf(&line, fmt, args);
	if (len < 0)
		return 0;
	end = line + strlen(line);
	while (end > line && end[-1] == '\n')
		*--end = '\0';

	/* The verifier log comes as one warning; it is kept elsewhere. */
	if (level == LIBBPF_WARN && !strstr(line, "BEGIN PROG LOAD LOG")) {
		const char *text = strncmp(line, "libbpf: ", 8) ? line : line + 8;

		note_program(ctx, text);
		/* Of a chain of complaints the first is the cause. */
		if (!ctx->libbpf_warning[0])
			tier_copy(ctx->libbpf_warning, sizeof(ctx->libbpf_warning), text);
	}
	tier_log(ctx, TIER_LOG_DEBUG, "%s", line);
	free(line);
	return len;
}

void tier_libbpf_begin(struct tier_ctx *ctx)
{
	libbpf_ctx = ctx;
	ctx->libbpf_warning[0] = '\0';
	ctx->failed_prog[0] = '\0';
	libbpf_set_print(print_hook);
}

void tier_libbpf_end(struct tier_ctx *ctx)
{
	if (libbpf_ctx == ctx)
		libbpf_ctx = NULL;
}

int tier_change_add(struct tier_changes *changes, const char *what, const char *from,
		    const char *to)
{
	struct tier_change *change;

	if (!changes)
		return 0;
	if (changes->nr >= ARRAY_SIZE(changes->change))
		return -ENOSPC;
	change = &changes->change[changes->nr++];
	tier_copy(change->what, sizeof(change->what), what);
	tier_copy(change->from, sizeof(change->from), from);
	tier_copy(change->to, sizeof(change->to), to);
	return 0;
}

static const char *const decision_names[TIER_NR_DECISIONS] = {
#define TIER_DECISION(id, verdict, sym, name, cause) [id] = name,
#include <tier/decisions.def>
#undef TIER_DECISION
};

static const char *const decision_causes[TIER_NR_DECISIONS] = {
#define TIER_DECISION(id, verdict, sym, name, cause) [id] = cause,
#include <tier/decisions.def>
#undef TIER_DECISION
};

const char *tier_decision__name(unsigned int decision)
{
	return decision < TIER_NR_DECISIONS ? decision_names[decision] : NULL;
}

const char *tier_decision__cause(unsigned int decision)
{
	return decision < TIER_NR_DECISIONS ? decision_causes[decision] : NULL;
}

const char *tier_flag__name(unsigned int bit)
{
	static const char *const names[] = { "addr", "room", "shared", "allowed", "ns" };

	return bit < ARRAY_SIZE(names) ? names[bit] : NULL;
}
