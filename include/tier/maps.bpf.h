/* SPDX-License-Identifier: GPL-2.0 */
/*
 * BPF only, part of tier/policy.bpf.h: the maps that every policy has. The
 * loader sizes them by name. tier_counts and tier_hist are shared with the next policy,
 * those of tier/shared.bpf.h with other programs too; the others are private.
 */
#ifndef TIER_MAPS_BPF_H
#define TIER_MAPS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <tier/abi.h>
#include <tier/brake.h>
#include <tier/shared.bpf.h>

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tier_counts);
} tier_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tier_hist);
} tier_hist SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tier_replay_entry);
} tier_replay_faults SEC(".maps");

/*
 * Large tables. An array that has a constant NAME_mask beside it is indexed by
 * anything & NAME_mask: on a machine with little memory the loader makes it
 * smaller, and the mask with it. Of LRU hashes it cuts the entries alone. An array
 * NAME_nodes gets as many entries as the machine has nodes.
 */

/* Thrash brake: state per target node, and marks of the pages that went up lately. */
#define TIER_BRAKE_BUCKETS	65536U
#define TIER_BRAKE_WINDOW_MS	120000U

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TIER_MAX_NODES);
	__type(key, __u32);
	__type(value, struct tier_brake);
} tier_brakes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TIER_BRAKE_BUCKETS);
	__type(key, __u32);
	__type(value, __u64);
} tier_brake_marks SEC(".maps");

const volatile __u32 tier_brake_marks_mask = TIER_BRAKE_BUCKETS - 1;

#endif /* TIER_MAPS_BPF_H */
