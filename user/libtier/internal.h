/* SPDX-License-Identifier: GPL-2.0 */
/* Inside libtier only. */
#ifndef LIBTIER_INTERNAL_H
#define LIBTIER_INTERNAL_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <libtier.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define TIER_BPFFS	"/sys/fs/bpf"
#define TIER_RUN_DIR	"/run/tierctl"
#define TIER_MODULE	"tier_policy"
#define TIER_SYSFS	"/sys/kernel/tier_policy"
#define TIER_OPS_TYPE	"tier_policy_ops"
#define TIER_OPS_VALUE	"bpf_struct_ops_" TIER_OPS_TYPE
#define TIER_PARAMS	".data.params"
#define TIER_READER_HINT	"Run it with sudo, or see read_group in 'tierctl help config'."
#define TIER_NUMA_BALANCING	"/proc/sys/kernel/numa_balancing"

struct bpf_map;
struct bpf_object;
struct btf;
struct tier_journal;

struct tier_ctx {
	struct tier_ctx_opts opts;
	enum tier_class class;
	int err;
	char message[768];
	char hint[512];
	char *detail;

	char libbpf_warning[512];	/* libbpf's last complaint */
	char failed_prog[64];		/* program it was about, if about one */

	char run_dir[64];
	char pin_dir[64];
	char base_dir[PATH_MAX];	/* parent of the executable's directory */
	char **dirs;			/* where policies are looked for */
	unsigned int nr_dirs;
	int lock_fd;
	bool undone;			/* tier_recover() took something away */
	bool trying;			/* dry run or replay: nothing may be measured and kept */
	struct btf *vmlinux_btf;	/* read once, costly */
};

/* ---- error.c ---- */

/* Sets the context's error and returns @err. @hint may be NULL. */
int tier_fail(struct tier_ctx *ctx, enum tier_class class, int err, const char *hint,
	      const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Clean-up after a failure must not hide it: keep the error over further calls. */
struct tier_error_copy {
	enum tier_class class;
	int err;
	char message[768];
	char hint[512];
	char *detail;
};
void tier_error_save(struct tier_ctx *ctx, struct tier_error_copy *copy);
void tier_error_restore(struct tier_ctx *ctx, struct tier_error_copy *copy);
void tier_set_detail(struct tier_ctx *ctx, const char *detail);
void tier_clear_error(struct tier_ctx *ctx);
void tier_log(struct tier_ctx *ctx, enum tier_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* libbpf has one print hook a process: from here to tier_libbpf_end() it serves @ctx. */
void tier_libbpf_begin(struct tier_ctx *ctx);
void tier_libbpf_end(struct tier_ctx *ctx);

int tier_change_add(struct tier_changes *changes, const char *what, const char *from,
		    const char *to);

/* ---- file.c: small files of /proc and /sys ---- */

/* Without the final newline. Returns the length or a negative errno. */
int tier_read_text(const char *path, char *buf, size_t size);
int tier_read_long(const char *path, long *value);
/* Parses "name value" lines: the value of @name into @value, else -ENOENT. */
int tier_line_value(const char *text, const char *name, __u64 *value);
int tier_write_text(const char *path, const char *text);
/* By PATH.new and a rename: whoever reads sees the old text or the new one. */
int tier_replace_text(const char *path, const char *text, unsigned int mode);
int tier_parse_list(const char *text, __u64 *mask);	/* "0-1,3" */
void tier_format_list(__u64 mask, char *buf, size_t size);
int tier_parse_u64(const char *text, __u64 *value);
void tier_copy(char *dst, size_t size, const char *src);
/* Opens a file that root is about to trust: see tier_ctx_opts.allow_unsafe_files. */
int tier_open_trusted(struct tier_ctx *ctx, const char *what, const char *path);

/* ---- feature.c ---- */

/* The cheap part of the environment, for readings that repeat. */
struct tier_nodes {
	__u32 nr;
	__u64 online;
	__u64 top;
};
void tier_nodes__probe(struct tier_nodes *nodes);
int tier_env__require(struct tier_ctx *ctx, const struct tier_env *env);
struct btf *tier_vmlinux_btf(struct tier_ctx *ctx);
const char *tier_kernel_too_old_hint(void);

/* ---- module.c ---- */

int tier_module_find(struct tier_ctx *ctx, char *path, size_t size);
/* 0: inserted; 1: someone else had inserted it. */
int tier_module_insert(struct tier_ctx *ctx);
int tier_module_remove(struct tier_ctx *ctx);
bool tier_module_loaded(void);
int tier_module_counters(__u64 counters[TIER_NR_EV]);
void tier_module_parse_counters(const char *text, __u64 counters[TIER_NR_EV]);
int tier_module_text(const char *file, char *buf, size_t size);

/* ---- policy.c, params.c ---- */

/* A policy object that is open but not loaded. */
struct tier_object {
	char path[PATH_MAX];
	struct bpf_object *obj;
	struct bpf_map *ops;		/* its struct_ops map */
	struct bpf_map *params;		/* NULL: no parameters */
	char *log;			/* verifier log */
	struct tier_policy_info *info;
};

#define TIER_VERIFIER_LOG_BYTES	(4U << 20)

int tier_object_open(struct tier_ctx *ctx, const char *policy, struct tier_object *object);
void tier_object_close(struct tier_object *object);
/* Opens any BPF object of ours (observer). NULL and the error on failure. */
struct bpf_object *tier_bpf_open(struct tier_ctx *ctx, const char *path, char *log,
				 unsigned int log_bytes);
int tier_object_find(struct tier_ctx *ctx, const char *policy, char *path, size_t size);
int tier_load_failed(struct tier_ctx *ctx, int err, const char *what, const char *log);

int tier_params_read_info(const struct btf *btf, struct tier_policy_info *info,
			  const void *values, size_t size);
void tier_param_info_free(struct tier_param_info *params, unsigned int nr);
int tier_params_check(struct tier_ctx *ctx, const char *policy,
		      const struct tier_param_info *params, unsigned int nr_params,
		      const struct tier_setting *setting, unsigned int *index,
		      __u64 *value);
/* Applies settings to a value image; @needs: what the values in force then need. */
int tier_params_apply(struct tier_ctx *ctx, const struct tier_policy_info *info,
		      const struct btf *btf, const struct tier_setting *settings,
		      unsigned int nr, void *values, size_t size, int stamp_wrap_ms,
		      __u32 *needs);
/* Offset of variable @name in section @section; negative errno if absent. */
int tier_btf_var(const struct btf *btf, const char *section, const char *name,
		 unsigned int *size);
int tier_btf_member(const struct btf *btf, const char *type, const char *member,
		    unsigned int *size);

/* ---- bandwidth.c ---- */

/*
 * Sum of the slow-tier nodes' read bandwidths in MB/s; measures what is not known, but
 * for ctx->trying.
 */
int tier_slow_tier_mbps(struct tier_ctx *ctx, __u64 *mbps);
int tier_parse_share(const char *text, unsigned int *hundredths);
__u64 tier_share_mibps(__u64 mbps, unsigned int hundredths);

/* ---- prepare.c: from open to loaded ---- */

int tier_object_prepare(struct tier_ctx *ctx, struct tier_object *object,
			const struct tier_env *env, const struct tier_setting *settings,
			unsigned int nr_settings, bool pin_maps);
int tier_object_load(struct tier_ctx *ctx, struct tier_object *object);
/* Hands the ops table to the kernel: after this the map can be attached or swapped in. */
int tier_object_register(struct tier_ctx *ctx, struct tier_object *object);
int tier_set_rodata(struct bpf_object *obj, const char *name, __u64 value);
int tier_set_machine(struct bpf_object *obj, const struct tier_env *env);
int tier_size_maps(struct tier_ctx *ctx, struct bpf_object *obj, const struct tier_env *env,
		   bool pin);

/* ---- attach.c, swap.c ---- */

/* What load and swap are asked for, by way of their worker process. */
struct tier_policy_args {
	const char *policy;
	const struct tier_setting *settings;
	unsigned int nr_settings;
	unsigned int flags;
};

void tier_report_policy(struct tier_changes *changes, const char *from,
			const struct tier_policy_info *info, const struct tier_policy_args *args);

/* 0 if nothing is in force and nothing left behind, else the error that says what is. */
int tier_check_free(struct tier_ctx *ctx, const char *policy);
int tier_nothing_loaded(struct tier_ctx *ctx, const char *what);
int tier_pin_policy(struct tier_ctx *ctx, struct tier_object *object,
		    struct tier_journal *journal, __u32 keep, __u32 *map_id);

/* Parameters of a policy in force; all empty if it has none. */
struct tier_live {
	int fd;
	struct btf *btf;
	struct tier_policy_info *info;	/* def: the value in force */
	void *values;
	size_t size;
};

int tier_live_open(struct tier_ctx *ctx, __u32 map_id, struct tier_live *live);
void tier_live_close(struct tier_live *live);

/* ---- async.c: for requests.c ---- */

struct tier_async;

/* Does the policy in force want the faults that memory policy rules out? */
bool tier_async_wanted(struct tier_ctx *ctx, __u32 policy_id);
/* NULL in @async if it does not. Makes pins: needs the lock. */
int tier_async_open(struct tier_ctx *ctx, __u32 policy_id, struct tier_async **async);
void tier_async_close(struct tier_async *async);
/* Hands the thresholds in force to the program. */
void tier_async_refresh(struct tier_ctx *ctx, struct tier_async *async, __u32 policy_id);

/* ---- observer.c ---- */

int tier_observer_attach(struct tier_ctx *ctx, const struct tier_env *env);

#define TIER_MAX_PROGS	32

struct tier_progs {
	unsigned int nr;
	__u32 id[TIER_MAX_PROGS];
};

/* Adds the programs of the observer's pins. */
void tier_observer_note(struct tier_ctx *ctx, struct tier_progs *progs);
/* Removes the pins and waits until @progs are gone. */
int tier_observer_remove(struct tier_ctx *ctx, struct tier_progs *progs);

/* ---- pin.c ---- */

struct tier_active {
	int link_fd;
	__u32 link_id;
	__u32 map_id;
};

int tier_pin_path(struct tier_ctx *ctx, char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
bool tier_bpffs_mounted(void);
int tier_bpffs_mount(struct tier_ctx *ctx);
int tier_pin_mkdir(struct tier_ctx *ctx, const char *sub);
int tier_pin_fd(struct tier_ctx *ctx, int fd, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* 0: there is a pinned link, filled in; -ENOENT: there is none. */
int tier_active_open(struct tier_ctx *ctx, struct tier_active *active);
void tier_active_close(struct tier_active *active);
int tier_pin_get(struct tier_ctx *ctx, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
bool tier_pins_exist(struct tier_ctx *ctx);
/* Removes a tree below the pin directory ("" for all of it). 0 if it was not there. */
int tier_pin_remove(struct tier_ctx *ctx, const char *sub);
/* Removes policy-* directories other than that of @map_id. */
int tier_pin_collect(struct tier_ctx *ctx, __u32 map_id);

/* ---- journal.c: what load changed, on disk before it is changed ---- */

enum tier_phase {
	TIER_PHASE_NONE = 0,
	TIER_PHASE_LOADING = 1,
	TIER_PHASE_ACTIVE = 2,
	TIER_PHASE_UNLOADING = 3,
};

#define TIER_MAX_RECORD_PARAMS	64

/*
 * What is known of one policy beyond what the kernel tells. Found by the id of
 * its struct_ops map, so that a swap needs no second commit point: the record
 * in force is the one of the map that the link points to.
 */
struct tier_record {
	__u32 map_id;			/* 0: empty */
	__u32 flags;			/* TIER_NEED_* it was loaded with */
	char policy[TIER_NAME_LEN];
	char object[256];
	unsigned int nr_params;
	struct {
		char name[64];
		__u64 def;
	} params[TIER_MAX_RECORD_PARAMS];
};

struct tier_journal {
	enum tier_phase phase;
	bool module_inserted;
	bool bpffs_mounted;
	unsigned int nr_knobs;
	struct tier_knob knobs[8];	/* .now unused */
	__u64 module_base[TIER_NR_EV];
	struct tier_progs observer;	/* unloading: whose end must be waited for */
	struct tier_record records[2];	/* in force, and during a swap the next */
};

/* -ENOENT: no journal (or one of before the last boot). */
int tier_journal_read(struct tier_ctx *ctx, struct tier_journal *journal);
int tier_journal_write(struct tier_ctx *ctx, const struct tier_journal *journal);
int tier_journal_remove(struct tier_ctx *ctx);
bool tier_journal_litter(struct tier_ctx *ctx, bool remove);
int tier_journal_knob(struct tier_journal *journal, const char *path, const char *saved,
		      const char *set);
/* Free slot for the record of @map_id; other records than that of @keep are dropped. */
struct tier_record *tier_journal_record(struct tier_journal *journal, __u32 map_id,
					__u32 keep);
const struct tier_record *tier_journal_find(const struct tier_journal *journal, __u32 map_id);

/* ---- state.c: lock and knobs ---- */

int tier_lock(struct tier_ctx *ctx, bool exclusive);
void tier_unlock(struct tier_ctx *ctx);
void tier_lock_sign(struct tier_ctx *ctx);
int tier_run_dir(struct tier_ctx *ctx);
/* Writes the value that the journal announced for @path, if it announced one. */
int tier_knob_set(struct tier_ctx *ctx, const struct tier_journal *journal, const char *path);
void tier_knobs_restore(struct tier_ctx *ctx, const struct tier_journal *journal,
			struct tier_changes *changes);

/* ---- tenure.c: counters by policy ---- */

/* About to swap from the policy of map @from_id to that of @to_id. Failure is logged. */
void tier_tenures_swap(struct tier_ctx *ctx, __u32 from_id, __u32 to_id, const char *to_policy);
/* The same with a reading taken; 0 or a negative errno. */
int tier_tenures_note(struct tier_ctx *ctx, __u32 from_id, __u32 to_id, const char *to_policy,
		      const struct tier_stats *stats);
/* @stats: raw, the reading that counts as 0 from now on; @map_id: of the policy in force. */
int tier_tenures_reset(struct tier_ctx *ctx, __u32 map_id, const struct tier_stats *stats);
/* Fills in the tenures of a raw reading, taken with the policy of @map_id in force. */
int tier_tenures_read(struct tier_ctx *ctx, __u32 map_id, struct tier_stats *stats);
void tier_tenures_remove(struct tier_ctx *ctx);

/* ---- memo.c ---- */

/* All but the exit record, which is wanted when the policy has gone. */
void tier_memos_remove(struct tier_ctx *ctx);
/* The module is about to be removed: keep its exit record, if it tells of a failure. */
void tier_exit_keep(struct tier_ctx *ctx);

/* ---- observe.c, reset.c ---- */

/* The counters as the kernel has them. */
int tier_stats_read_raw(struct tier_ctx *ctx, struct tier_stats **stats);
/* Takes off what was counted before the last reset, if there was one. */
int tier_base_subtract(struct tier_ctx *ctx, struct tier_stats *stats);
int tier_base_remove(struct tier_ctx *ctx);

/* ---- recover.c ---- */

/*
 * Brings what a killed predecessor left to one of the two lasting states:
 * policy in force and journal active, or nothing at all. Needs the exclusive
 * lock. Sets ctx->undone if something was taken away.
 */
int tier_recover(struct tier_ctx *ctx);
/* True if tier_recover() would have something to do. Any lock will do. */
bool tier_recover_needed(struct tier_ctx *ctx);
/*
 * Rolls forward to nothing at all from wherever it stands. @journal may be
 * NULL: then there are only pins to remove.
 */
int tier_teardown(struct tier_ctx *ctx, struct tier_journal *journal,
		  struct tier_changes *changes);

/* ---- transaction.c ---- */

typedef int (*tier_work_fn)(struct tier_ctx *ctx, void *arg, struct tier_changes *changes);

/* Takes the lock, recovers, then runs @work in a child of its own session. */
int tier_transaction(struct tier_ctx *ctx, const char *what, tier_work_fn work, void *arg,
		     struct tier_changes *changes);
/* The same for "load" and "swap to" a policy (attach.c); @changes begins empty. */
int tier_policy_transaction(struct tier_ctx *ctx, const char *verb, tier_work_fn work,
			    struct tier_policy_args *args, struct tier_changes *changes);

#endif /* LIBTIER_INTERNAL_H */
