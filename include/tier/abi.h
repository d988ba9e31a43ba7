/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared between module, BPF and user space: decisions, fault record, map values.
 *
 * This header knows nobody: the includer brings __u8..__u64 and __s32
 * (<linux/types.h> or vmlinux.h). Layouts are ABI: fields are only ever added
 * in reserved space, and sizes are asserted at the end.
 */
#ifndef TIER_ABI_H
#define TIER_ABI_H

/* A policy object says which level it was built for; the module refuses others. */
#define TIER_ABI_VERSION	1

#define TIER_NAME_LEN		16	/* policy name, with the final NUL */
#define TIER_MAX_NODES		64	/* node ids 0..63 are accounted for */
#define TIER_NR_DECISIONS	32

enum tier_verdict {
	TIER_VERDICT_KERNEL = 0,	/* the kernel's own algorithm decides */
	TIER_VERDICT_PROMOTE = 1,
	TIER_VERDICT_REJECT = 2,
};

/* What promote() returns: TIER_KERNEL, TIER_PROMOTE_*, TIER_REJECT_*. */
enum tier_decision {
#define TIER_DECISION(id, verdict, sym, name, cause) TIER_##sym = id,
#include <tier/decisions.def>
#undef TIER_DECISION
};

#define TIER_FIRST_PROMOTE	1
#define TIER_FIRST_REJECT	16

static inline enum tier_verdict tier_decision_verdict(__u32 decision)
{
	if (decision == 0)
		return TIER_VERDICT_KERNEL;
	return decision < TIER_FIRST_REJECT ? TIER_VERDICT_PROMOTE : TIER_VERDICT_REJECT;
}

/*
 * Did the page pass the threshold? Then it is a candidate in the sense of
 * pgpromote_candidate: counted before the rate limit is tested, and not when
 * the free-space rule let it through (Huang Ying's rate-limit patch, 2022).
 */
static inline int tier_decision_is_candidate(__u32 decision)
{
	return (decision >= TIER_FIRST_PROMOTE && decision < TIER_FIRST_REJECT &&
		decision != TIER_PROMOTE_ROOM) || decision == TIER_REJECT_RATE;
}

/*
 * What a policy asks of the fault record, in tier_policy_ops.flags. What it
 * does not ask for is not worked out: cost follows need.
 */
enum tier_policy_flags {
	TIER_NEED_ADDR = 1U << 0,	/* addr, mm, VMA; hooks mpol_misplaced too */
	TIER_NEED_ROOM = 1U << 1,	/* TIER_FAULT_ROOM: free-space rule of the target */
	TIER_NEED_SHARED = 1U << 2,	/* TIER_FAULT_SHARED: mapped by more than one mm */
	TIER_NEED_ALLOWED = 1U << 3,	/* TIER_FAULT_ALLOWED: nodemask and cpuset verdict */
	TIER_NEED_NS = 1U << 4,		/* now_ns */
};
#define TIER_POLICY_FLAGS_ALL	0x1fU

/*
 * tier_fault.flags. A _KNOWN bit says that the answer beside it was worked out;
 * without it the answer bit is 0 and means nothing.
 */
enum tier_fault_flags {
	TIER_FAULT_ADDR = 1U << 0,	/* addr, mm_id, vm_* are valid */
	TIER_FAULT_ROOM_KNOWN = 1U << 1,
	TIER_FAULT_ROOM = 1U << 2,	/* a zone of the target stays above its promotion
					 * watermark plus max(1 GiB, present/16) */
	TIER_FAULT_SHARED_KNOWN = 1U << 3,
	TIER_FAULT_SHARED = 1U << 4,	/* folio mapped by more than one process */
	TIER_FAULT_ALLOWED_KNOWN = 1U << 5,
	TIER_FAULT_ALLOWED = 1U << 6,	/* memory policy and cpuset allow dst_nid */
	TIER_FAULT_FILE = 1U << 7,	/* file-backed folio */
	TIER_FAULT_REMOTE = 1U << 8,	/* the address is not in the faulting task's own mm */
};

/*
 * One slow-tier hint fault, as its policy sees it. Filled in by the module
 * (inline), by the kit (shadow) or by user space (replay); read-only for the
 * policy. Everything a decision depends on is in here, so that the same
 * bytecode gives the same answer in all three places.
 */
struct tier_fault {
	__u32 now_ms;		/* clock of the scan stamp (jiffies in ms), wraps at 2^32 */
	__u32 latency_ms;	/* now_ms - stamp, modulo the stamp's wrap */
	__u32 nr_pages;		/* base pages that would move: 1, or a large folio's */
	__u32 flags;		/* TIER_FAULT_* */
	__s32 src_nid;		/* slow-tier node that holds the folio */
	__s32 dst_nid;		/* node of the faulting CPU: target of the promotion */
	__u32 pid;		/* faulting thread, global pid namespace */
	__u32 tgid;		/* its process */
	__u64 now_ns;		/* CLOCK_MONOTONIC, 0 without TIER_NEED_NS */
	__u64 pfn;		/* page frame number of the folio's first page */
	__u64 page_id;		/* the page itself: its object (file or anonymous memory) and
				 * place there; outlives its moves; 0: not known */
	/* from here on only with TIER_FAULT_ADDR, else 0 */
	__u64 addr;		/* faulting address, page aligned */
	__u64 mm_id;		/* identity of the VMA's mm (not always current's) */
	__u64 vm_start;
	__u64 vm_end;
	__u64 vm_flags;		/* VM_* bits */
	__u32 near_pages;	/* replay: answer of tier_near_pages(); else 0 */
	__u32 reserved;
};

/* What scan() is asked: one range that the NUMA scanner is about to mark. */
struct tier_scan {
	__u64 start;		/* address range, page aligned, inside one VMA */
	__u64 end;
	__u64 mm_id;		/* as in struct tier_fault */
	__u64 vm_start;
	__u64 vm_end;
	__u64 vm_flags;
	__u32 now_ms;
	__u32 scan_seq;		/* full passes the scanner has made over this mm */
	__u32 pid;		/* thread that pays for the scan */
	__u32 tgid;
};

enum tier_scan_verdict {
	TIER_SCAN_GO = 0,	/* scan as the kernel would */
	TIER_SCAN_SKIP = 1,	/* leave this range alone in this pass */
};

/* What migrated() is told: the outcome of one hint-fault promotion. */
struct tier_move {
	__s32 src_nid;
	__s32 dst_nid;
	__u32 nr_pages;
	__s32 error;		/* 0, or the kernel's negative errno */
	__u64 pfn;		/* of the folio that was to move */
	__u32 now_ms;
	__u32 reserved;
};

/* Why a policy left force other than by its owner's wish. */
enum tier_exit_kind {
	TIER_EXIT_NONE = 0,
	TIER_EXIT_UNLOADED = 1,		/* detached by its owner */
	TIER_EXIT_BAD_VERDICTS = 2,	/* too many unknown decisions in a row */
	TIER_EXIT_INIT_FAILED = 3,	/* init() returned an error */
};

/* ---- values of the BPF maps that policies share ---- */

/* Map "tier_counts": per-CPU array, index src_nid * nr_nodes + dst_nid. */
struct tier_counts {
	__u64 faults[TIER_NR_DECISIONS];
	__u64 pages[TIER_NR_DECISIONS];
};

/*
 * Map "tier_hist": per-CPU array, index dst_nid. Pages by scan-to-fault latency
 * in ms; slots of tier/hist.h (exact below 4 ms, then four steps per octave).
 */
#define TIER_HIST_SLOTS		128
struct tier_hist {
	__u64 pages[TIER_HIST_SLOTS];
};

/*
 * Map "tier_nodes": array, index dst_nid. State that outlives a swap: the next
 * policy goes on with this second's window. Racing CPUs may lose a window
 * change to each other; the damage is bounded by one fault per CPU.
 */
struct tier_node {
	__u32 threshold_ms;		/* hot threshold in force, 0: the policy has none */
	__u32 window_start_ms;		/* rate limit: start of this one-second window */
	__u64 candidates_pages;		/* pages that passed the threshold, ever */
	__u64 window_candidates_pages;	/* candidates_pages at window_start_ms */
	__u32 adjust_start_ms;		/* automatic threshold: start of this interval */
	__u32 adjusted_ms;		/* automatic threshold, 0: unset */
	__u64 adjust_candidates_pages;	/* candidates_pages at adjust_start_ms */
	__u64 limit_pages_per_s;	/* rate limit in force, 0: none */
	__u32 reference_ms;		/* automatic threshold: what adjusted_ms started from */
	__u32 gate_closed;		/* success gate: promotions keep failing, only probes go */
	__u64 moved_ok;			/* observer: hint-fault promotions to this node that ... */
	__u64 moved_failed;		/* ... succeeded, and that were refused or failed */
	__u64 gate_ok;			/* success gate: moved_ok at gate_start_ms */
	__u64 gate_failed;
	__u64 gate_asked;		/* candidates while it was closed; every 64th is a probe */
	__u32 gate_start_ms;
	__u32 gate_closings;		/* times it closed, ever */
	__u64 demoted_pages;		/* observer: pages that left this node for a slower tier */
	__u64 reserved[2];
};

/*
 * Map "tier_regions": LRU hash, key (mm, 2^TIER_REGION_SHIFT bytes of address
 * space), value the times of its last scans. It tells a page whose stamp has
 * wrapped from a hot one: the true scan time is a recorded one.
 */
#define TIER_REGION_SHIFT	26	/* 64 MiB */
#define TIER_REGION_SCANS	8
struct tier_region_key {
	__u64 mm_id;
	__u64 region;			/* address >> TIER_REGION_SHIFT */
};

struct tier_region {
	__u32 scan_ms[TIER_REGION_SCANS];	/* ring of scan end times, clock of now_ms */
	__u32 took_ms[TIER_REGION_SCANS];	/* how long each scan call took */
	__u32 nr;				/* scans recorded ever; last is (nr - 1) % SCANS */
	__u32 continued;			/* the open scan goes on with the one before */
};

enum tier_stat_module {
#define TIER_STAT_MODULE(sym, name, unit, help) TIER_EV_##sym,
#include <tier/stats.def>
	TIER_NR_EV
};

enum tier_stat_move {
#define TIER_STAT_MOVE(sym, name, unit, help) TIER_MV_##sym,
#include <tier/stats.def>
	TIER_NR_MV
};

enum tier_stat_scan {
#define TIER_STAT_SCAN(sym, name, unit, help) TIER_SC_##sym,
#include <tier/stats.def>
	TIER_NR_SC
};

enum tier_stat_skip {
#define TIER_STAT_SKIP(sym, name, unit, help) TIER_SK_##sym,
#include <tier/stats.def>
	TIER_NR_SK
};

/* Observer map "tier_moves": per-CPU array, index src_nid * nr_nodes + dst_nid. */
struct tier_moves {
	__u64 count[8];			/* TIER_MV_* */
};

/* Observer map "tier_scans": per-CPU array with one entry. */
struct tier_scans {
	__u64 count[8];			/* TIER_SC_* */
	__u64 skip[8];			/* TIER_SK_* */
};

/*
 * Observer map "tier_scan_hist": per-CPU array with one entry. Runs of the scanner by
 * their time in us; slots as in struct tier_hist.
 */
struct tier_scan_hist {
	__u64 runs[TIER_HIST_SLOTS];
};

/*
 * Map "tier_requests": ring buffer. Pages that a policy wants on dst_nid although
 * no fault of theirs will take them there. The daemon looks at each page again
 * and moves those that are still on a slow-tier node.
 */
enum tier_request_kind {
	TIER_REQUEST_NEAR = 1,		/* pages that follow a hot one */
	TIER_REQUEST_NODEMASK = 2,	/* hot folio whose memory policy excludes the CPU's node */
};

struct tier_request {
	__u64 start;			/* page aligned, inside one VMA and one PMD range */
	__u64 end;
	__u64 mm_id;
	__u64 time_ns;			/* CLOCK_MONOTONIC */
	__u32 tgid;			/* process whose memory it is */
	__u32 pid;			/* thread whose fault asked for it */
	__s32 src_nid;
	__s32 dst_nid;
	__u32 nr_pages;			/* of [start, end), or of the folio at start */
	__u32 kind;			/* enum tier_request_kind */
};

/*
 * Map "tier_request_counts": per-CPU array with one entry, counted by programs.
 * Map "tier_request_results": array with one entry, counted by the daemon. Both
 * with the same ids; a counter is the sum over both.
 */
enum tier_stat_request {
#define TIER_STAT_REQUEST(sym, name, unit, help) TIER_RQ_##sym,
#include <tier/stats.def>
	TIER_NR_RQ
};

struct tier_request_counts {
	__u64 count[24];		/* TIER_RQ_* */
};

/* Map "tier_daemon": array with one entry. Without a daemon nothing is requested. */
struct tier_daemon {
	__u64 until_ns;			/* CLOCK_MONOTONIC: it listens at least until then */
	__u32 pid;			/* of the last that listened */
	__u32 reserved;
};

/*
 * Map "tier_async_nodes" of the program that serves faults which no policy is
 * asked about: array, index node id, kept up to date by the daemon.
 */
struct tier_async_node {
	__u32 threshold_ms;		/* a fault that leads to this node is hot below */
	__u32 reserved;
};

/* One entry of a policy's replay map: input and, afterwards, its decision. */
struct tier_replay_entry {
	struct tier_fault fault;
	__u32 decision;
	__u32 latency_ms;		/* latency the decision was made on */
};

/* One entry of a policy's scan replay map (policies with a scan op). */
struct tier_replay_scan {
	struct tier_scan scan;
	__u32 verdict;			/* out: enum tier_scan_verdict */
	__u32 reserved;
};

/* Context of a policy's replay program (BPF_PROG_RUN of the syscall entry). */
struct tier_replay {
	__u32 first;			/* first entry to run */
	__u32 nr;			/* how many entries */
	__u32 repeat;			/* rounds over them, at least 1 */
	__s32 error;			/* out: 0, or how far it could not go */
	__u64 elapsed_ns;		/* out: time of the whole run */
};

/*
 * tier_fault.page_id of a folio. A large folio has one, whichever part of it faults.
 * Only for telling pages apart: hash it before its bits are used.
 */
static inline __u64 tier_page_id(__u64 mapping, __u64 index)
{
	return mapping * 0x9e3779b1U + index;
}

#define TIER_ASSERT_SIZE(type, size) \
	_Static_assert(sizeof(struct type) == (size), "struct " #type " changed size")
TIER_ASSERT_SIZE(tier_fault, 104);
TIER_ASSERT_SIZE(tier_scan, 64);
TIER_ASSERT_SIZE(tier_move, 32);
TIER_ASSERT_SIZE(tier_counts, 512);
TIER_ASSERT_SIZE(tier_hist, 1024);
TIER_ASSERT_SIZE(tier_node, 128);
TIER_ASSERT_SIZE(tier_region, 72);
TIER_ASSERT_SIZE(tier_moves, 64);
TIER_ASSERT_SIZE(tier_scans, 128);
TIER_ASSERT_SIZE(tier_scan_hist, 1024);
TIER_ASSERT_SIZE(tier_request, 56);
TIER_ASSERT_SIZE(tier_request_counts, 192);
TIER_ASSERT_SIZE(tier_daemon, 16);
TIER_ASSERT_SIZE(tier_async_node, 8);
TIER_ASSERT_SIZE(tier_replay_entry, 112);
TIER_ASSERT_SIZE(tier_replay_scan, 72);
TIER_ASSERT_SIZE(tier_replay, 24);
_Static_assert(TIER_NR_MV <= 8 && TIER_NR_SC <= 8 && TIER_NR_SK <= 8,
	       "observer counters outgrew their map value");
_Static_assert(TIER_NR_RQ <= 24, "request counters outgrew their map value");

#endif /* TIER_ABI_H */
