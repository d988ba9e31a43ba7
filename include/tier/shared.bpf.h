/* SPDX-License-Identifier: GPL-2.0 */
/*
 * BPF only: the maps that policies, the observer and the program for faults that no
 * policy sees have in common. The loader pins them and sizes them by name.
 */
#ifndef TIER_SHARED_BPF_H
#define TIER_SHARED_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <tier/abi.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tier_node);
} tier_nodes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct tier_region_key);
	__type(value, struct tier_region);
} tier_regions SEC(".maps");

#endif /* TIER_SHARED_BPF_H */
