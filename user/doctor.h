/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What doctor's checks share. A check looks at one thing, and if it is wrong
 * adds a finding: what, by which evidence, with which consequence, and what
 * mends it.
 */
#ifndef TIER_DOCTOR_H
#define TIER_DOCTOR_H

#include "emit.h"
#include "sysinfo.h"

enum severity {
	SEV_NOTE = 0,		/* worth knowing; not a fault */
	SEV_WARNING,		/* works, but probably not as meant */
	SEV_PROBLEM,		/* promotion does not happen */
	SEV_PERMISSION,		/* could not be looked at */
	SEV_EJECTED,		/* the module took the policy out */
	SEV_UNSUPPORTED,	/* cannot work on this machine as it is booted */
};

struct finding {
	const char *id;		/* stable key: "demotion_off" */
	enum severity severity;
	char finding[200];
	char evidence[256];
	char consequence[256];
	char remedy[256];
	/* What --fix does: write a value to a file, or clean up. */
	char fix_path[128];
	char fix_value[32];
	bool fix_clean;
	bool fixed;
	char fix_error[128];
};

#define MAX_FINDINGS	48

struct doctor {
	struct tierctl *t;
	struct tier_env env;
	struct tier_status *status;	/* NULL: not permitted */
	struct tier_stats *stats;	/* NULL: nothing loaded */
	struct tier_stats *earlier;	/* the same, a while before */
	struct sys_node nodes[SYS_MAX_NODES];
	__u64 vm_candidate[2], vm_success[2];	/* kernel's counters, before and after */
	double window_s;
	bool full;		/* look at every process, however long it takes */
	unsigned int checks;	/* how many were made */
	struct finding found[MAX_FINDINGS];
	unsigned int nr;
};

/* A policy is in force. */
bool doctor_loaded(const struct doctor *d);

/*
 * Add a finding and return it, so that the caller can fill in the texts. Never
 * NULL: beyond the last the last one is used again.
 */
struct finding *doctor_add(struct doctor *d, const char *id, enum severity severity);
#define SAY(field, ...) snprintf(field, sizeof(field), __VA_ARGS__)

void doctor_check_kernel(struct doctor *d);	/* doctor_machine.c */
void doctor_check_tiers(struct doctor *d);
void doctor_check_memory(struct doctor *d);
void doctor_check_policy(struct doctor *d);	/* doctor_policy.c */
void doctor_check_success(struct doctor *d);
void doctor_check_tasks(struct doctor *d);	/* doctor_tasks.c */

#endif /* TIER_DOCTOR_H */
