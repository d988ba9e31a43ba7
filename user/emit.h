/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Parts of documents that several commands share: emitted here once, so that a
 * key means the same wherever it appears.
 */
#ifndef TIER_EMIT_H
#define TIER_EMIT_H

#include "tierctl.h"

#define MAX_SETTINGS	MAX_LIST

/* "k=v" words as settings; points into freshly allocated @store (free it). */
struct settings {
	struct tier_setting set[MAX_SETTINGS];
	unsigned int nr;
	char *store[MAX_SETTINGS];
};

/* 0 or an exit code; then already reported. @what names the source: "--set". */
int settings_parse(struct tierctl *t, struct settings *s, const char *what,
		   const char *const *words, unsigned int nr);
void settings_free(struct settings *s);

/* A policy with its parameters as it was in force, so that it can be again. */
struct saved {
	char policy[TIER_NAME_LEN];
	char object[256];		/* path, "" if it is unknown */
	bool no_observer;
	struct settings params;
};

struct json_object;

/* These return 0 or an exit code, reported; @what names the source. */
int saved_from_status(struct tierctl *t, struct saved *saved, const struct tier_status *status);
int saved_from_json(struct tierctl *t, struct saved *saved, struct json_object *doc,
		    const char *what);
struct json_object *saved_to_json(const struct saved *saved);
/* What to hand to tier_load(): the object if it can be read, else the name. */
const char *saved_source(const struct saved *saved);
void saved_free(struct saved *saved);

/*
 * Root does what a file says only if it is root's alone to write. 0 or an exit code, then
 * reported.
 */
int check_trusted(struct tierctl *t, int fd, const char *path);

/* Is the argument a saved `tierctl status --json` ("-": standard input)? */
bool is_saved_status(const char *word);
/* Read one. Its parameters are added to @wins, but those that are in there already. */
int saved_read(struct tierctl *t, struct saved *saved, const char *path, struct settings *wins);

/* Array "changes" and the views that show it. */
void emit_changes(struct out *out, const struct tier_changes *changes);
extern const struct out_view view_changes[];

/* Array "params" with type, range, default and help; value if @values. */
void emit_params(struct out *out, const struct tier_param_info *info, unsigned int nr);
void emit_param_values(struct out *out, const struct tier_param_value *values, unsigned int nr);

/* Words of TIER_NEED_* as array @key. */
void emit_flags(struct out *out, const char *key, __u32 flags);

const char *tier_state__name(enum tier_state state);

/* ---- counters (emit_stats.c) ---- */

/* Sums over one reading that several commands need. */
struct totals {
	__u64 verdict[3];		/* faults by enum tier_verdict */
	__u64 verdict_pages[3];
	__u64 faults[TIER_NR_DECISIONS];
	__u64 pages[TIER_NR_DECISIONS];
	__u64 moves[TIER_NR_MV];
	__u64 faults_counted;		/* by the kit: sum over verdicts and reasons */
	/*
	 * By the module: handed to the policy since load, when the reading of
	 * the maps began and ended. Without faults in between both are the same.
	 */
	__u64 faults_seen_before;
	__u64 faults_seen;
};

/*
 * Take a reading. A fault may be between the module's count and its policy's at
 * that moment: a reading that does not add up is taken again, a few times. 0 or
 * the exit code of what was then reported.
 */
int stats_read(struct tierctl *t, struct tier_stats **stats);

void stats_totals(const struct tier_stats *stats, struct totals *totals);
/* Totals of one node as target (@target) or source. */
void stats_node_totals(const struct tier_stats *stats, unsigned int nid, bool target,
		       struct totals *totals);
/* Totals of one policy's time in force. */
void stats_tenure_totals(const struct tier_tenure *tenure, struct totals *totals);
/* Faults that the module handed out and nobody counted (negative: the reverse). */
__s64 stats_missing(const struct totals *totals);

/* The whole reading as fields of the open object. */
void emit_stats(struct out *out, const struct tier_stats *stats);
/* Counters of one scope as object @key: { name: value }. */
void emit_module(struct out *out, const char *key, const __u64 *module, const __u64 *base);
void emit_hist(struct out *out, const char *key, const struct tier_hist *hist);
void emit_quantile(struct out *out, const char *key, const struct tier_hist *hist,
		   unsigned int per_mille);

const char *verdict_name(enum tier_verdict verdict);
const char *node_tier(const struct tier_stats *stats, unsigned int nid);

#endif /* TIER_EMIT_H */
