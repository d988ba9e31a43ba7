/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared between libtier and its users: find, load, tune, swap, read and remove
 * promotion policies.
 *
 * Conventions
 *  - Functions return 0 (or what their comment says) or a negative errno, and
 *    then leave the whole story in the context: tier_ctx__error().
 *  - The library never prints and never exits. It speaks through the log
 *    callback of the context, which may be absent.
 *  - One context per thread. A context is cheap; nothing stays open in it
 *    between calls, so a context may be kept for as long as the caller likes.
 *  - Units are in the names. Node sets are bit masks over node ids 0..63.
 *  - Results are handed out through pointers, which are NULL after a failure;
 *    each has a free function of its own, and those take NULL.
 *  - Errors that any function may return are not repeated below: -ENOMEM;
 *    -EPERM or -EACCES with class PERMISSION when rights are missing; -EAGAIN
 *    when the lock was not to be had within lock_timeout_ms.
 *  - Functions may sleep, and fork: call none from a signal handler.
 */
#ifndef LIBTIER_H
#define LIBTIER_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>
#include <tier/abi.h>
#include <tier/watch.h>

/* ---- context, errors, log ---- */

struct tier_ctx;

/* What kind of failure it was. The values are tierctl's exit codes. */
enum tier_class {
	TIER_CLASS_OK = 0,
	TIER_CLASS_FAILED = 1,		/* tried and failed; nothing has changed */
	TIER_CLASS_USAGE = 2,		/* the caller asked for something impossible */
	TIER_CLASS_UNSUPPORTED = 3,	/* this kernel or machine cannot do it */
	TIER_CLASS_PERMISSION = 4,	/* not root, or the kernel refused the right */
	TIER_CLASS_EJECTED = 5,		/* the module took the policy out of force */
};

struct tier_error {
	enum tier_class class;
	int err;		/* negative errno */
	const char *message;	/* "what was tried: what the kernel said" */
	const char *hint;	/* what to do next, a sentence; may be "" */
	const char *detail;	/* verifier log, many lines; may be "" */
};

enum tier_log_level {
	TIER_LOG_WARN = 0,	/* the operator should read this */
	TIER_LOG_INFO = 1,	/* steps (tierctl -v) */
	TIER_LOG_DEBUG = 2,	/* libbpf's own talk (tierctl -vv) */
};

/* @line has no final newline. May be called from a child process (see tier_load). */
typedef void (*tier_log_fn)(void *data, enum tier_log_level level, const char *line);

struct tier_ctx_opts {
	tier_log_fn log;		/* NULL: nothing is said */
	void *log_data;			/* handed to log */
	unsigned int lock_timeout_ms;	/* how long to wait for another tierctl; 0: 10 000 */
	bool allow_unsafe_files;	/* load objects that others than root may write */
	bool read_only;		/* change nothing, not even what a killed load left: -EPERM */
};

/* NULL if out of memory. @opts may be NULL; it is copied. Needs no rights, opens nothing. */
struct tier_ctx *tier_ctx__new(const struct tier_ctx_opts *opts);
void tier_ctx__free(struct tier_ctx *ctx);

/* The error of the last call that failed; valid until the next call. Never NULL. */
const struct tier_error *tier_ctx__error(const struct tier_ctx *ctx);

/* Directory of lock, journal and memos: "/run/tierctl". Valid with @ctx. */
const char *tier_ctx__run_dir(const struct tier_ctx *ctx);

/* ---- environment (feature.c) ---- */

#define TIER_MAX_TIERS	16

struct tier_tier_info {
	char name[32];		/* as in sysfs: memory_tier4 */
	__u64 nodes;
};

/* What tier_env__probe() finds out. -1 in an int: the kernel does not say. */
struct tier_env {
	char kernel_release[72];
	bool root;		/* effective uid 0: load and the like may be tried */
	bool btf;		/* /sys/kernel/btf/vmlinux readable */
	bool module_struct_ops;	/* kernel accepts struct_ops types of modules */
	bool bpffs;		/* bpffs mounted on /sys/fs/bpf */

	__u32 nr_nodes;		/* highest possible node id + 1: size of the maps */
	__u64 nodes;		/* online nodes */
	__u64 memory_nodes;	/* nodes with memory */
	__u64 cpu_nodes;	/* nodes with CPUs */
	__u64 top_nodes;	/* nodes of the top tier: those tiers that hold CPUs, and faster */
	unsigned int nr_tiers;
	struct tier_tier_info tiers[TIER_MAX_TIERS];	/* fastest first */

	int numa_balancing;	/* mode bits, kernel.numa_balancing */
	int demotion;		/* 0, 1: /sys/kernel/mm/numa/demotion_enabled */
	__u64 memory_bytes;	/* all memory of the machine */

	bool module_loaded;
	int module_abi;
	char module_state[16];	/* idle, active, ejected; "" if not loaded */
	char module_path[256];	/* the file that load would insert; "" if none found */

	int stamp_shift;	/* of the loaded module, else -1 */
	int stamp_bits;
	int stamp_unit_ms;
	int stamp_wrap_ms;
};

/* Needs no rights, changes nothing. Fails only if /proc or /sys are not there at all. */
int tier_env__probe(struct tier_ctx *ctx, struct tier_env *env);

/* Where a node's read bandwidth is known from. */
enum tier_bandwidth_source {
	TIER_BANDWIDTH_UNKNOWN,
	TIER_BANDWIDTH_HMAT,		/* the firmware's table */
	TIER_BANDWIDTH_MEASURED,	/* by tierctl, since the last boot */
};

/* In MB/s. Never measures: that is done when a limit is given as a share of it. */
enum tier_bandwidth_source tier_node__read_mbps(struct tier_ctx *ctx, unsigned int nid,
						__u64 *mbps);

/* One probe of `tierctl version --features`. */
struct tier_feature {
	const char *name;	/* stable key: "vmlinux_btf" */
	const char *help;	/* what it is needed for */
	int value;		/* 1 yes, 0 no, -1 cannot be told (not root, not mounted) */
	char detail[128];	/* evidence */
};

/*
 * Fills up to @max entries, returns how many probes there are (so more than @max means
 * that some were left out). Needs no rights; without them some values are -1.
 */
int tier_features__probe(struct tier_ctx *ctx, struct tier_feature *features, int max);

/* ---- policy objects, read without loading (policy.c) ---- */

struct tier_param_info {
	char name[64];
	char unit[16];		/* "ms", "MiB/s"; "" if none */
	char *help;
	unsigned int size;	/* bytes: 4 or 8, unsigned */
	__u64 min;
	__u64 max;
	__u64 def;		/* default */
	__u32 needs;		/* TIER_NEED_* that a non-zero value switches on */
	__u32 auto_needs;	/* the same, but for value 2 only if the scan stamp wraps .. */
	__u32 auto_below_ms;	/* .. within less than this */
};

struct tier_prog_info {
	char *name;
	char *section;
	unsigned int insns;
};

struct tier_policy_info {
	char name[TIER_NAME_LEN];	/* of the ops table */
	char *path;
	char *error;		/* list only: why it cannot be used, else NULL */
	__u32 abi_version;
	__u32 flags;		/* TIER_NEED_* */
	unsigned int nr_ops;
	char **ops;		/* members that are set: "promote", "scan" */
	unsigned int nr_params;
	struct tier_param_info *params;
	unsigned int nr_progs;
	struct tier_prog_info *progs;
};

/*
 * @policy is a name ("fixed") or, if it holds a '/' or ends in ".o", a path.
 * Names are looked up in $TIERCTL_POLICY_PATH (colon-separated), then in
 * ../lib/tierctl and in ../bpf, both relative to the executable's directory.
 * Needs no rights and loads nothing. -ENOENT: no such policy. -ENOEXEC: no object
 * with one policy in it. -EPROTO: of another ABI version. -EPERM: root, and others
 * may write the file (see allow_unsafe_files).
 */
int tier_policy__inspect(struct tier_ctx *ctx, const char *policy,
			 struct tier_policy_info **info);
void tier_policy_info__free(struct tier_policy_info *info);

/* What the running kernel made of a program. */
struct tier_prog_cost {
	char name[64];
	__u32 verified_insns;	/* steps of the verifier; the kernel allows a million */
	__u32 xlated_bytes;
	__u32 jited_bytes;
};

/*
 * A program of ours may take the verifier no more steps than this, half of what the
 * kernel allows: room for verifiers that follow code less well than those we test with.
 */
#define TIER_VERIFIER_BUDGET	500000

/*
 * Load a policy's programs, all that this kernel and module can, and let them go again.
 * Up to @max of @costs are filled in.
 */
int tier_policy__verify(struct tier_ctx *ctx, const char *policy, struct tier_prog_cost *costs,
			unsigned int max, unsigned int *nr);

/*
 * Every policy_*.bpf.o of the lookup path; earlier directories hide later ones. One
 * that cannot be used is in the list too, with its error set. 0 also if there is none.
 */
int tier_policy__list(struct tier_ctx *ctx, struct tier_policy_info ***infos,
		      unsigned int *nr);
void tier_policy_list__free(struct tier_policy_info **infos, unsigned int nr);

/* Lookup directory number @index in order, NULL after the last. Valid with @ctx. */
const char *tier_policy__dir(struct tier_ctx *ctx, unsigned int index);

/* ---- change things (attach.c, transaction.c) ---- */

/*
 * All of these need root, take the exclusive lock (waiting lock_timeout_ms for
 * it), first finish or roll back what a killed predecessor left, and run in a
 * child process of its own session: the caller's death does not stop them
 * half-way, the child's death is rolled back by the caller, and the death of
 * both by the next caller. After a failure nothing has changed. -EINTR: the child
 * was killed, and the message says what is in force now.
 */

struct tier_setting {
	const char *name;
	const char *value;	/* within the parameter's range, as typed by the user */
};

/* One change to the machine: made, or with TIER_DRY_RUN to be made. */
struct tier_change {
	char what[160];		/* "/proc/sys/kernel/numa_balancing", "policy", .. */
	char from[80];
	char to[80];
};

struct tier_changes {
	unsigned int nr;
	struct tier_change change[32];
};

enum tier_flags {
	TIER_DRY_RUN = 1U << 0,		/* check all, change nothing, report the changes */
	TIER_NO_OBSERVER = 1U << 1,	/* load: without the observer object */
};

/*
 * Put a policy in force and leave it there. @flags: of enum tier_flags. @changes may
 * be NULL; it is empty after a failure.
 * -EEXIST: a policy is in force already (class EJECTED: it was ejected but is still
 * attached). -ENOTEMPTY: stale pins, see tier_clean(). -ENOENT, -EINVAL, -ERANGE: a
 * setting.
 * -EPROTO: the module is of another ABI version. -EBUSY: another has hooked the
 * kernel's functions. -ENODEV, -EOPNOTSUPP: class UNSUPPORTED. -EACCES with a detail:
 * the verifier refused the program. Those of tier_policy__inspect(), too.
 */
int tier_load(struct tier_ctx *ctx, const char *policy,
	      const struct tier_setting *settings, unsigned int nr_settings,
	      unsigned int flags, struct tier_changes *changes);

/*
 * Replace the policy in force by another, atomically. Counters and the state
 * that policies share live on; parameters start from the new one's defaults.
 * -ENOENT: nothing is loaded. -ESTALE: another process swapped first. -ENOLINK: the
 * link was detached by someone else. The rest as tier_load().
 */
int tier_swap(struct tier_ctx *ctx, const char *policy,
	      const struct tier_setting *settings, unsigned int nr_settings,
	      unsigned int flags, struct tier_changes *changes);

/*
 * Change parameters of the policy in force: all are checked, then all are set; the
 * next fault sees them. @nr_settings at least 1. -ENOENT: nothing is loaded, or the
 * policy has no parameters. -EINVAL, -ERANGE: a name or value. -EBUSY: the value needs
 * what the policy was not loaded with; a swap for itself brings it.
 */
int tier_set(struct tier_ctx *ctx, const struct tier_setting *settings,
	     unsigned int nr_settings);

/*
 * Take the policy off and put every knob back that still holds the value that
 * load gave it; one that someone changed since is left alone and warned about.
 * @flags: TIER_DRY_RUN or 0. -ENOENT: nothing is loaded (and nothing was left behind).
 * -EPERM: a policy is in force that was not loaded by us. -ETIMEDOUT: a process still
 * holds the link after 10 s.
 */
int tier_unload(struct tier_ctx *ctx, unsigned int flags, struct tier_changes *changes);

/*
 * Remove pins and state that belong to no policy in force, and put back the knobs that
 * such a state names. @flags: TIER_DRY_RUN or 0. 0 also if there was nothing.
 */
int tier_clean(struct tier_ctx *ctx, unsigned int flags, struct tier_changes *changes);

/*
 * Start all counters of tier_stats__read() from 0 and let policies find their
 * thresholds anew, so that benchmarks start level. The policy stays in force;
 * no fault is lost or counted twice. What a policy keeps to itself stays: swap
 * it for itself to lose that too. -ENOENT: nothing is loaded.
 */
int tier_reset(struct tier_ctx *ctx);

/* ---- try a policy without a tiered machine (replay.c) ---- */

/*
 * Run a policy's replay program over @entries, in order, in a state of its own:
 * fresh maps, no module, nothing in force is touched. Fills in decision and
 * latency_ms of each entry (the latency that was decided on, see wrap_proof).
 * @stamp_wrap_ms: 0, or where the scan stamp is taken to wrap (a power of two).
 * @elapsed_ns, of all decisions together, may be NULL. -ENOENT: the object has no
 * replay program. -EINVAL, -ERANGE: a setting. Needs the right to load BPF programs,
 * and no NUMA.
 */
int tier_replay(struct tier_ctx *ctx, const char *policy, const struct tier_setting *settings,
		unsigned int nr_settings, __u32 stamp_wrap_ms, struct tier_replay_entry *entries,
		unsigned int nr, __u64 *elapsed_ns);

/* ---- read things (observe.c) ---- */

struct tier_param_value {
	struct tier_param_info info;
	__u64 value;
};

/* Parameters of the policy in force. -ENOENT: nothing is loaded. */
int tier_get(struct tier_ctx *ctx, struct tier_param_value **values, unsigned int *nr);
void tier_param_values__free(struct tier_param_value *values, unsigned int nr);

enum tier_state {
	TIER_STATE_NONE = 0,	/* nothing loaded, nothing left behind */
	TIER_STATE_ACTIVE = 1,	/* policy in force, loaded by us */
	TIER_STATE_EJECTED = 2,	/* link still there, module took the policy out */
	TIER_STATE_FOREIGN = 3,	/* policy in force that was not loaded by us */
	TIER_STATE_STALE = 4,	/* pins without a policy: tier_clean() */
};

struct tier_knob {
	char path[160];
	char saved[64];		/* value before load: what unload writes back */
	char set[64];		/* value that load wrote */
	char now[64];
};

struct tier_exit_record {
	char kind[32];		/* name of enum tier_exit_kind: "bad_verdicts"; "" if none */
	char policy[TIER_NAME_LEN];
	int error;
	char message[128];
	__u64 time_ns;		/* CLOCK_BOOTTIME */
	__u64 module[TIER_NR_EV];	/* counters at that time */
};

struct tier_status {
	enum tier_state state;
	char policy[TIER_NAME_LEN];
	char owner[48];		/* "COMM PID" of who attached it */
	char object[256];	/* file it came from; "" if unknown */
	__u64 since_ns;		/* CLOCK_BOOTTIME */
	__u64 age_ns;
	__u32 link_id;
	__u32 map_id;
	bool observer;
	bool module_inserted;	/* by us: unload removes it */
	bool bpffs_mounted;	/* by us: unload unmounts it */
	bool tiering;		/* the module acts: kernel is in memory tiering mode */
	unsigned int nr_knobs;
	struct tier_knob knobs[8];
	unsigned int nr_params;
	struct tier_param_value *params;
	struct tier_exit_record exit;	/* last exit */
};

/*
 * As root, unless the context is read_only, it first finishes or rolls back what a
 * killed predecessor left. That nothing is loaded is no failure: TIER_STATE_NONE.
 * Others than root need the right to the pins if a policy is in force: -EACCES.
 */
int tier_status__read(struct tier_ctx *ctx, struct tier_status **status);
void tier_status__free(struct tier_status *status);

#define TIER_MAX_TENURES	32

/* What was counted while a policy of this name was in force, since load or reset. */
struct tier_tenure {
	char policy[TIER_NAME_LEN];	/* "(others)" takes what is beyond TIER_MAX_TENURES */
	__u32 in_force;			/* 1: now */
	__u32 times;			/* how often it came into force */
	__u64 time_ns;			/* for how long in all */
	struct tier_counts counts;
	__u64 moves[TIER_NR_MV];	/* valid with tier_stats.observer */
};

/* One reading of all counters. They only grow while a policy is loaded, also over swaps. */
struct tier_stats {
	__u64 time_ns;			/* CLOCK_MONOTONIC of the reading */
	char policy[TIER_NAME_LEN];
	bool ejected;			/* attached still, but the module took it out of force */
	__u32 nr_nodes;
	__u64 nodes;			/* online nodes */
	__u64 top_nodes;
	struct tier_counts *pairs;	/* [src * nr_nodes + dst], sum over CPUs */
	struct tier_hist *hist;		/* [dst], sum over CPUs */
	struct tier_node *node;		/* [dst] */
	__u64 module[TIER_NR_EV];	/* since the module was loaded, read after the maps */
	__u64 module_before[TIER_NR_EV];	/* the same, read before the maps */
	__u64 module_base[TIER_NR_EV];	/* of both, from before this load: subtract */
	bool observer;			/* the rest is valid */
	struct tier_moves *moves;	/* [src * nr_nodes + dst], sum over CPUs */
	struct tier_scans scans;
	struct tier_scan_hist scan_hist;	/* runs of the scanner by their time in us */
	bool requesting;		/* promotions ahead of a fault are possible; request is valid */
	struct tier_request_counts request;	/* programs and daemon */
	__u32 nr_tenures;
	struct tier_tenure *tenures;	/* by policy: sum to that of pairs and moves */
};

/*
 * -ENOENT: nothing is loaded. Faults go on while the maps are read, and the
 * module counts a fault before its policy does. So all is accounted for if the
 * faults of all pairs and decisions lie between policy_calls of module_before
 * and of module (both minus module_base); while no fault falls into the
 * reading the two are equal, and so is the sum.
 */
int tier_stats__read(struct tier_ctx *ctx, struct tier_stats **stats);
void tier_stats__free(struct tier_stats *stats);

/* ---- what processes leave for each other in the run directory (memo.c) ---- */

/* A text of up to 64 KiB that one process writes and another reads. Unload removes all but EXIT. */
enum tier_memo {
	TIER_MEMO_PROBATION = 0,	/* what the policy on trial is judged by */
	TIER_MEMO_REATTACH = 1,		/* what a restarted daemon loads again */
	TIER_MEMO_EXIT = 2,		/* the exit record of a module that was removed since */
	TIER_NR_MEMO
};

/* Root only; a reader sees the old text or the new one. 0 or a negative errno. */
int tier_memo__write(struct tier_ctx *ctx, enum tier_memo memo, const char *text);
/* free(*text). -ENOENT, without an error in @ctx: there is none. */
int tier_memo__read(struct tier_ctx *ctx, enum tier_memo memo, char **text);
/* Removing one that is not there is no failure. */
void tier_memo__remove(struct tier_ctx *ctx, enum tier_memo memo);

/* A role that one process of the machine can have. */
enum tier_seat {
	TIER_SEAT_DAEMON = 0,		/* serves requests: tier_requests__new() takes it */
	TIER_SEAT_PROBATION = 1,	/* watches the policy on trial */
};

/*
 * Root only. A descriptor: close it to leave the seat, which the end of the process
 * does too. -EBUSY, without an error in @ctx: another process has it.
 */
int tier_seat__take(struct tier_ctx *ctx, enum tier_seat seat);
/* Does a process have it, this one included? Root only; false if that cannot be told. */
bool tier_seat__taken(struct tier_ctx *ctx, enum tier_seat seat);

struct tier_presence {
	__u32 map_id;		/* of the policy of ours that is attached, 0: none */
	bool lost;		/* it was loaded and never unloaded, but its link is gone */
	__u64 module_instance;	/* another number each time the module is inserted; 0: it is not */
};

/* Root only. A cheap look, once a second if need be, that mends nothing. */
int tier_presence__read(struct tier_ctx *ctx, struct tier_presence *presence);

/* ---- single decisions, for as long as someone looks (watch.c) ---- */

struct tier_watch;

typedef void (*tier_watch_fn)(void *data, const struct tier_watch_event *event);

struct tier_watch_opts {
	tier_watch_fn on_event;	/* called from tier_watch__poll(); NULL: no events */
	void *data;
	bool tasks;		/* count by process: tier_watch__tasks() */
	__u32 pid;		/* this process or thread only, 0: all */
	__s32 node;		/* this source or target node only, -1: all */
	__u32 decisions;	/* bit mask, ~0: all */
};

/*
 * Root only. Faults cost more while it is open; nothing is pinned, so the end
 * of the process ends it. It holds the policy's program, and so the module: a
 * watcher that goes on after unload keeps `rmmod` from succeeding. Therefore
 * ask tier_watch__current() at least once a second. -ENOENT: nothing is loaded.
 */
int tier_watch__open(struct tier_ctx *ctx, const struct tier_watch_opts *opts,
		     struct tier_watch **watch);
void tier_watch__close(struct tier_watch *watch);

/*
 * Deliver what has come, waiting up to @timeout_ms (0: not at all, -1: until something
 * comes). Events delivered, or -EINTR after a signal. 0 at once without on_event.
 */
int tier_watch__poll(struct tier_watch *watch, int timeout_ms);

/* False once the policy was swapped or unloaded: close, and open anew. */
bool tier_watch__current(struct tier_ctx *ctx, const struct tier_watch *watch);

/* Events that found no room in the buffer, and processes none in the table, since open. */
void tier_watch__lost(const struct tier_watch *watch, struct tier_watch_lost *lost);

struct tier_watch_pid {
	__u32 pid;			/* process id */
	struct tier_watch_task task;	/* since tier_watch__open() */
};

/* All processes that faulted, unsorted; free(*tasks). 0 or -ENOMEM. */
int tier_watch__tasks(const struct tier_watch *watch, struct tier_watch_pid **tasks,
		      unsigned int *nr);

/* ---- promotions that no fault carries out: the daemon's side (requests.c) ---- */

struct tier_requests;

typedef void (*tier_request_fn)(void *data, const struct tier_request *request);

/*
 * Root only, and one per machine: -EBUSY if another process has it. @fn is called
 * from tier_requests__serve(). Nothing has to be loaded yet.
 */
int tier_requests__new(struct tier_ctx *ctx, tier_request_fn fn, void *data,
		       struct tier_requests **requests);
/* Says that nobody listens any more. What is still queued stays for the next one. */
void tier_requests__free(struct tier_requests *requests);

/*
 * Follow what is in force: call it once a second. Opens the queue of the policy
 * in force, lets go of one that was unloaded, and hooks the faults that memory
 * policy rules out if the policy's honour_nodemask is on. 1: there is a queue,
 * 0: there is none, negative: failed, try again later.
 */
int tier_requests__refresh(struct tier_requests *requests);

/*
 * Say that someone listens for the next @listen_ms (0: no longer), and deliver what
 * is queued. Requests delivered.
 */
int tier_requests__serve(struct tier_requests *requests, unsigned int listen_ms);

/* Count an outcome: TIER_RQ_MOVED and after. */
void tier_requests__count(struct tier_requests *requests, enum tier_stat_request id, __u64 nr);
/* Bring what was counted to where tier_stats__read() finds it. */
void tier_requests__publish(struct tier_requests *requests);

/* Names and units of the tables: static strings, NULL for ids without an entry. */
const char *tier_decision__name(unsigned int decision);
const char *tier_decision__cause(unsigned int decision);
const char *tier_flag__name(unsigned int bit);	/* bit number of TIER_NEED_* : "addr" */

#endif /* LIBTIER_H */
