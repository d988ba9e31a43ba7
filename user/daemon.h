/* SPDX-License-Identifier: GPL-2.0 */
/* The daemon's parts: configuration, mover, talk with the service manager. */
#ifndef TIER_DAEMON_H
#define TIER_DAEMON_H

#include "emit.h"

/* ---- daemon_conf.c ---- */

#define CONF_FILE	"/etc/tierctl.conf"
#define CONF_MAX_SET	32

enum conf_key {
#define CONF(sym, name, text, number, min, max, help) CONF_##sym,
#include "conf.def"
#undef CONF
	CONF_NR
};

/* What was resolved, and from where: "default", "option", or FILE:LINE. */
struct conf_value {
	char text[256];
	__u64 number;
	char from[512];
};

struct conf {
	struct conf_value value[CONF_NR];
	unsigned int nr_set;
	struct {
		char name[64];
		char value[32];
		char from[512];
	} set[CONF_MAX_SET];		/* parameters of the policy */
};

extern const char *const conf_names[CONF_NR];

/*
 * Read @path and then PATH.d/ *.conf in the order of their names; a later line
 * wins. The default file may be absent, one that was named may not. 0 or an exit
 * code; then already reported.
 */
int conf_read(struct tierctl *t, struct conf *conf, const char *path, bool named);

/* Take one value over from elsewhere than a file. 0 or an exit code, reported. */
int conf_set(struct tierctl *t, struct conf *conf, enum conf_key key, const char *text,
	     const char *from);

/* ---- daemon_move.c ---- */

struct mover;

/* @limit_pages_per_s: per target node, 0 for none. NULL if out of memory. */
struct mover *mover__new(__u64 limit_pages_per_s);
void mover__free(struct mover *mover);
/* Where outcomes are counted; NULL: nowhere. */
void mover__use(struct mover *mover, struct tier_requests *requests);
/* The nodes of the top tier, which may change when memory is plugged. */
void mover__set_top_nodes(struct mover *mover, __u64 top_nodes);
/* Take over the pages of a request; moves what has gathered if that is much. */
void mover__add(struct mover *mover, const struct tier_request *request);
/* Move what has gathered, and count the outcome of each page. */
void mover__flush(struct mover *mover);

struct mover_totals {
	__u64 pages;
	__u64 moved_pages;
};
void mover__totals(const struct mover *mover, struct mover_totals *totals);

/* ---- daemon_keep.c ---- */

struct keeper;

/* @reattach: load again what went without unload. NULL if out of memory. */
struct keeper *keeper__new(struct tierctl *t, bool reattach);
void keeper__free(struct keeper *keeper);
/* Once a second. 0, or the exit code with which the daemon has to end; then reported. */
int keeper__tick(struct keeper *keeper);
/* The policy that an earlier daemon left to be loaded again. False: there is none. */
bool keeper_take_over(struct tierctl *t, struct saved *saved);
/*
 * The exit code that came of it. What failed is left for the next start; what another
 * try cannot change (a usage error, say) is not, lest no daemon starts any more.
 */
void keeper_taken_over(struct tierctl *t, const struct saved *saved, int code);

/* ---- daemon_notify.c ---- */

/* Tell the service manager, if there is one: "READY=1", "STATUS=..". */
void service_notify(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif /* TIER_DAEMON_H */
