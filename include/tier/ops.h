/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared between module and BPF: the struct_ops type and its contract.
 *
 * The type lives in the module's BTF, never in vmlinux.h. libbpf matches
 * members by name and does not compare signatures: a member whose signature
 * or meaning changes gets a new name; new members go to the tail.
 */
#ifndef TIER_OPS_H
#define TIER_OPS_H

#include <tier/abi.h>

struct folio;

struct tier_policy_ops {
	/**
	 * promote - decide one slow-tier hint fault (mandatory)
	 * @fault: what is known of the fault; read-only, valid during the call
	 * @folio: the faulting folio, trusted, valid during the call
	 *
	 * Called for each hint fault on a page of a slow-tier node in memory
	 * tiering mode, once per fault. Not called in other NUMA balancing
	 * modes, for top-tier pages, when the faulting CPU's node has no memory,
	 * or when the VMA's memory policy already ruled the fault out.
	 * Context: page-table lock held, preemption off (not on PREEMPT_RT),
	 * RCU read side. Must not sleep; a non-sleepable program is required.
	 * Returns enum tier_decision. Anything else counts as a bad verdict: the
	 * kernel decides, and the policy is ejected when it happens too often.
	 */
	int (*promote)(const struct tier_fault *fault, struct folio *folio);

	/**
	 * scan - decide whether a range is worth scanning (optional)
	 * @scan: the range; read-only, valid during the call
	 *
	 * Called before the NUMA scanner makes the range's PTEs PROT_NONE.
	 * Context: task work of the scanning thread, mmap lock held for read.
	 * Must not sleep. Returns enum tier_scan_verdict; an unknown value scans
	 * as the kernel would and counts as a bad verdict. Absent: every range
	 * is scanned, and change_prot_numa() is not hooked.
	 */
	int (*scan)(const struct tier_scan *scan);

	/**
	 * migrated - outcome of one hint-fault promotion (optional)
	 * @move: nodes, size and error; read-only, valid during the call
	 *
	 * Called after the kernel moved the folio or gave up, once for each
	 * promotion that promote() asked for and for those that the kernel
	 * decided on after TIER_KERNEL. Context: fault path, page-table lock may
	 * be held (refused before isolation), must not sleep. Absent: the
	 * migration functions are not hooked.
	 */
	void (*migrated)(const struct tier_move *move);

	/**
	 * init - prepare the policy (optional)
	 *
	 * Called once when the policy is attached or swapped in, before its
	 * first fault. May sleep. A negative errno refuses the policy: the
	 * attach or swap fails with it and nothing has changed.
	 */
	int (*init)(void);

	/**
	 * exit - the policy has left force (optional)
	 *
	 * Called once after the last call of every other member has returned.
	 * May sleep.
	 */
	void (*exit)(void);

	/** abi_version - TIER_ABI_VERSION of the kit that built the policy; others get -EPROTO. */
	__u32 abi_version;

	/** flags - TIER_NEED_*; unknown bits get -EINVAL. */
	__u32 flags;

	/** name - [A-Za-z0-9_.-], 1..15 bytes, NUL-terminated; else -EINVAL. */
	char name[TIER_NAME_LEN];
};

#endif /* TIER_OPS_H */
