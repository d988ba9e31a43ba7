/* SPDX-License-Identifier: GPL-2.0 */
/* One run of tierctl: what every command gets, and how it says that it failed. */
#ifndef TIER_TIERCTL_H
#define TIER_TIERCTL_H

#include <signal.h>

#include "libtier.h"
#include "opts.h"
#include "out/out.h"

#define TIERCTL_VERSION	"0.1.0"

/* What `load` loads without a name, unless the configuration says otherwise. */
#define TIERCTL_DEFAULT_POLICY	"rank"

struct tierctl {
	struct tier_ctx *ctx;
	struct out *out;
	int verbose;		/* 0, 1 (-v), 2 (-vv) */
	bool json;
	bool service;		/* runs until stopped: what it says is its log, not talk beside JSON */
	const struct command *cmd;
};

/* The table of commands (commands.c), ends with NULL. */
extern const struct command *const tierctl_commands[];

/* Exit codes: enum tier_class, in words for help and man page. */
extern const char *const tierctl_exit_codes[];	/* ends with NULL, index = code */
const char *tierctl_class_name(enum tier_class class);

/*
 * Report a failure: JSON object on stdout with --json, else words on stderr.
 * @hint and @detail may be NULL or empty. Returns the exit code: @class.
 */
int failure(struct tierctl *t, enum tier_class class, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Report the failure that a libtier call has just returned. */
int failure_ctx(struct tierctl *t);

/* Print the document: 0, or the exit code of a failed write. */
int show(struct tierctl *t, const struct out_view *views);

/*
 * A line of talk on stderr; not with --json, where stderr is for warnings only, unless it is
 * the log of a service.
 */
void note(struct tierctl *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Set by SIGINT and SIGTERM after stop_on_signals(): a loop ends cleanly. */
extern volatile sig_atomic_t stopping;
void stop_on_signals(void);

/* Sleep until CLOCK_MONOTONIC @deadline_ns; false if it is time to stop. */
bool sleep_until(__u64 deadline_ns);
__u64 now_ns(void);

#endif /* TIER_TIERCTL_H */
