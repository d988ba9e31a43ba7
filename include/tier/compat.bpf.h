/* SPDX-License-Identifier: GPL-2.0 */
/*
 * BPF only: every difference between kernels that our programs meet, one block
 * each: what changed, since when, and when the block may go. All are decided
 * by the running kernel's BTF at load, none by a version number.
 */
#ifndef TIER_COMPAT_BPF_H
#define TIER_COMPAT_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <tier/abi.h>

/*
 * Linux 6.18 wraps page and folio flags in a struct (memdesc_flags_t, member
 * f). A folio starts with its first struct page, so one accessor serves both,
 * and the kernels before 6.7 that pass a page where later ones pass a folio.
 * May go when 6.17 is no longer supported.
 *
 * folio is an argument of the traced function, as its context has it: then this
 * is one load, where a helper that copies from an unknown address takes some
 * seventy instructions.
 */
struct page___memdesc {
	struct {
		unsigned long f;
	} flags;
} __attribute__((preserve_access_index));

static inline __attribute__((always_inline)) __u64 tier_compat_folio_flags(const void *folio)
{
	if (bpf_core_field_exists(struct page___memdesc, flags.f))
		return ((const struct page___memdesc *)folio)->flags.f;
	return ((const struct page *)folio)->flags;
}

/*
 * Linux 6.6 moved a folio's order into the low byte of _flags_1; before, it was
 * a byte of its own. May go when 6.1 is no longer supported.
 */
struct folio___order {
	unsigned char _folio_order;
} __attribute__((preserve_access_index));

static inline __attribute__((always_inline)) __u32
tier_compat_folio_order(const void *folio, __u64 flags)
{
	/* PG_head changes its number with nearly every release */
	if (!(flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1))
		return 0;
	if (bpf_core_field_exists(struct folio___order, _folio_order))
		return BPF_CORE_READ((const struct folio___order *)folio, _folio_order);
	return BPF_CORE_READ((const struct folio *)folio, _flags_1) & 0xff;
}

/*
 * Node of a folio. The flags word holds, from the top, node, zone, last CPU and
 * PID (the stamp), flags; the node's shift thus follows from the stamp's place.
 * Kernels that keep the stamp outside the word are not handled: stamp_bits is 0
 * there and the caller does without.
 */
static inline __attribute__((always_inline)) __s32
tier_compat_folio_nid(const void *folio, __u32 stamp_shift, __u32 stamp_bits)
{
	__u32 nr_zones = bpf_core_enum_value(enum zone_type, __MAX_NR_ZONES);
	__u32 zone_bits = nr_zones < 2 ? 0 : nr_zones == 2 ? 1 : nr_zones <= 4 ? 2 : 3;

	return tier_compat_folio_flags(folio) >> ((stamp_shift + stamp_bits + zone_bits) & 63);
}

/*
 * tier_fault.page_id. Before Linux 5.16 there was no struct folio: not known there.
 * May go when 5.15 is no longer supported.
 */
static inline __attribute__((always_inline)) __u64 tier_compat_page_id(const void *folio)
{
	if (!bpf_core_field_exists(struct folio, mapping))
		return 0;
	return tier_page_id((__u64)BPF_CORE_READ((const struct folio *)folio, mapping),
			    BPF_CORE_READ((const struct folio *)folio, index));
}

/* Jiffies in ms as the kernel counts them for the stamp; hz 0 gives 0. */
static inline __attribute__((always_inline)) __u32 tier_jiffies_ms(__u32 hz)
{
	__u64 jiffies = bpf_jiffies64();

	if (!hz)
		return 0;
	if (hz > 1000)
		return (jiffies * 1000 + hz - 1) / hz;
	return 1000 % hz ? (jiffies * 1000 + hz - 1) / hz : jiffies * (1000 / hz);
}

#endif /* TIER_COMPAT_BPF_H */
