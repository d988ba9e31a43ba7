// SPDX-License-Identifier: GPL-2.0
/* What all commands share: failures in words or JSON, signals, sleeping. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tierctl.h"

volatile sig_atomic_t stopping;

const char *const tierctl_exit_codes[] = {
	[TIER_CLASS_OK] = "done",
	[TIER_CLASS_FAILED] = "failed and nothing has changed; or a check has found something",
	[TIER_CLASS_USAGE] = "the command line asks for something impossible",
	[TIER_CLASS_UNSUPPORTED] = "this kernel or machine cannot do it",
	[TIER_CLASS_PERMISSION] = "not permitted: root is needed, or the kernel refused",
	[TIER_CLASS_EJECTED] = "the module took the policy out of force",
	NULL
};

const char *tierctl_class_name(enum tier_class class)
{
	static const char *const names[] = {
		[TIER_CLASS_OK] = "ok",
		[TIER_CLASS_FAILED] = "failed",
		[TIER_CLASS_USAGE] = "usage",
		[TIER_CLASS_UNSUPPORTED] = "unsupported",
		[TIER_CLASS_PERMISSION] = "permission",
		[TIER_CLASS_EJECTED] = "ejected",
	};

	return class <= TIER_CLASS_EJECTED ? names[class] : "failed";
}

static void report_json(struct tierctl *t, enum tier_class class, const char *message,
			const char *hint, const char *detail)
{
	out_reset(t->out);
	out_begin_object(t->out, "error");
	out_str(t->out, "class", tierctl_class_name(class));
	out_u64(t->out, "exit_code", class);
	out_str(t->out, "message", message);
	out_str(t->out, "hint", hint);
	if (detail && *detail)
		out_str(t->out, "detail", detail);
	out_end(t->out);
	out_flush(t->out, NULL);
}

static int report(struct tierctl *t, enum tier_class class, const char *message,
		  const char *hint, const char *detail)
{
	char *clean;
	size_t size;

	/* A failure without a class must not end as exit 0. */
	if (class <= TIER_CLASS_OK || class > TIER_CLASS_EJECTED)
		class = TIER_CLASS_FAILED;
	hint = hint ? hint : "";
	if (t->json) {
		report_json(t, class, message, hint, detail);
		return class;
	}
	out_reset(t->out);
	size = strlen(message) + 1;
	clean = malloc(size);
	if (clean)
		out_clean(message, clean, size);
	fprintf(stderr, "tierctl: %s\n", clean ? clean : message);
	free(clean);
	if (*hint)
		fprintf(stderr, "  -> %s\n", hint);
	if (detail && *detail) {
		if (t->verbose)
			fprintf(stderr, "%s\n", detail);
		else
			fprintf(stderr, "  (the kernel's full words: run it again with -v)\n");
	}
	return class;
}

int failure(struct tierctl *t, enum tier_class class, const char *hint, const char *fmt, ...)
{
	char message[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	return report(t, class, message, hint, NULL);
}

int failure_ctx(struct tierctl *t)
{
	const struct tier_error *e = tier_ctx__error(t->ctx);

	return report(t, e->class, e->message, e->hint, e->detail);
}

int show(struct tierctl *t, const struct out_view *views)
{
	int err = out_flush(t->out, views);

	/* The reader of a pipe has gone: nobody is left to complain to. */
	if (err == -EPIPE)
		return TIER_CLASS_FAILED;
	if (err)
		return failure(t, TIER_CLASS_FAILED, "", "writing the output: %s", strerror(-err));
	return TIER_CLASS_OK;
}

void note(struct tierctl *t, const char *fmt, ...)
{
	va_list ap;

	if (t->json && !t->service)
		return;
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

static void on_signal(int sig)
{
	stopping = sig;
}

void stop_on_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };	/* no SA_RESTART: wake sleeps */

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

__u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

bool sleep_until(__u64 deadline_ns)
{
	struct timespec ts = {
		.tv_sec = deadline_ns / 1000000000ULL,
		.tv_nsec = deadline_ns % 1000000000ULL,
	};

	while (!stopping && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
	return !stopping;
}
