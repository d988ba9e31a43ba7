// SPDX-License-Identifier: GPL-2.0
/*
 * A change runs in a child of its own session: what kills the caller (terminal
 * gone, Ctrl-C, kill -9) does not stop it half-way, and what kills the child is
 * undone by the caller, which still holds the lock.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "internal.h"

/* What the child hands back; its error detail follows. */
struct result {
	int ret;
	enum tier_class class;
	int err;
	char message[sizeof(((struct tier_ctx *)0)->message)];
	char hint[sizeof(((struct tier_ctx *)0)->hint)];
	struct tier_changes changes;
	size_t detail_len;
};

static int write_full(int fd, const void *buf, size_t len)
{
	while (len) {
		ssize_t n = write(fd, buf, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EPIPE;
		buf = (const char *)buf + n;
		len -= n;
	}
	return 0;
}

static int read_full(int fd, void *buf, size_t len)
{
	while (len) {
		ssize_t n = read(fd, buf, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EPIPE;
		buf = (char *)buf + n;
		len -= n;
	}
	return 0;
}

static void child_setup(void)
{
	static const int ignored[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGTSTP };
	int null;

	setsid();
	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
	/* A pipe on our output must not wait for us; stderr stays, for the log. */
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
	}
}

static void __attribute__((noreturn))
child(struct tier_ctx *ctx, int fd, tier_work_fn work, void *arg,
      const struct tier_changes *changes)
{
	struct result *result = calloc(1, sizeof(*result));

	child_setup();
	tier_lock_sign(ctx);
	if (!result)
		_exit(1);
	result->changes = *changes;
	result->ret = tier_recover(ctx) ?: work(ctx, arg, &result->changes);
	result->class = ctx->class;
	result->err = ctx->err;
	memcpy(result->message, ctx->message, sizeof(result->message));
	memcpy(result->hint, ctx->hint, sizeof(result->hint));
	result->detail_len = ctx->detail ? strlen(ctx->detail) : 0;
	/* A caller that is gone has no use for it. */
	if (!write_full(fd, result, sizeof(*result)) && result->detail_len)
		write_full(fd, ctx->detail, result->detail_len);
	_exit(0);
}

static int killed(struct tier_ctx *ctx, const char *what, int status)
{
	char how[64], policy[TIER_NAME_LEN] = "";
	struct tier_active active;
	int err;

	if (WIFSIGNALED(status))
		snprintf(how, sizeof(how), "killed by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(how, sizeof(how), "gone with status %d and no result",
			 WEXITSTATUS(status));
	err = tier_recover(ctx);
	if (err)
		return err;
	if (!tier_active_open(ctx, &active)) {
		tier_active_close(&active);
		tier_module_text("policy", policy, sizeof(policy));
	}
	return tier_fail(ctx, TIER_CLASS_FAILED, -EINTR, "Try again.",
			 "%s: the working process was %s; now %s%s", what, how, policy[0] ?
			 "in force: " : "nothing is loaded and all is as before load", policy);
}

static int parent(struct tier_ctx *ctx, const char *what, pid_t pid, int fd,
		  struct tier_changes *changes)
{
	struct result *result = calloc(1, sizeof(*result));
	int status, ret = -EINTR;
	bool answered;

	answered = result && !read_full(fd, result, sizeof(*result));
	if (answered && result->detail_len) {
		char *detail = calloc(1, result->detail_len + 1);

		if (detail && !read_full(fd, detail, result->detail_len))
			tier_set_detail(ctx, detail);
		free(detail);
	}
	close(fd);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR) {
			status = 0;
			break;
		}
	if (answered) {
		ret = result->ret;
		ctx->class = result->class;
		ctx->err = result->err;
		memcpy(ctx->message, result->message, sizeof(ctx->message));
		memcpy(ctx->hint, result->hint, sizeof(ctx->hint));
		if (changes)
			*changes = result->changes;
	}
	free(result);
	return answered ? ret : killed(ctx, what, status);
}

int tier_transaction(struct tier_ctx *ctx, const char *what, tier_work_fn work, void *arg,
		     struct tier_changes *changes)
{
	static const struct tier_changes none;
	int fds[2], err;
	pid_t pid;

	tier_clear_error(ctx);
	if (ctx->opts.read_only)
		return tier_fail(ctx, TIER_CLASS_PERMISSION, -EPERM, "Run it as root.",
				 "%s: this tierctl may only read", what);
	if (geteuid())
		return tier_fail(ctx, TIER_CLASS_PERMISSION, -EPERM, "Run it with sudo.",
				 "%s: not root (effective uid %u)", what, geteuid());
	err = tier_lock(ctx, true);
	if (err)
		return err;
	if (pipe2(fds, O_CLOEXEC)) {
		err = tier_fail(ctx, TIER_CLASS_FAILED, -errno, NULL, "%s: make a pipe: %s", what,
				strerror(errno));
		goto out;
	}
	pid = fork();
	if (pid < 0) {
		err = tier_fail(ctx, TIER_CLASS_FAILED, -errno, NULL, "%s: fork: %s", what,
				strerror(errno));
		close(fds[0]);
		close(fds[1]);
		goto out;
	}
	if (!pid) {
		close(fds[0]);
		child(ctx, fds[1], work, arg, changes ? changes : &none);
	}
	close(fds[1]);
	err = parent(ctx, what, pid, fds[0], changes);
out:
	tier_unlock(ctx);
	return err;
}
