/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The module's only knowledge of kernel differences. What a header shows is
 * probed by Kbuild (TIER_HAVE_*); versions stand only for what no header shows.
 */
#ifndef TIER_KMOD_COMPAT_H
#define TIER_KMOD_COMPAT_H

#include <linux/btf.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/version.h>

/*
 * 6.12: reg() and unreg() are given the link (73287fe22872, 6.11) and
 * mpol_misplaced() the vm_fault (f8fd525ba3a2, 6.10); nothing older is tested.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#error "tier_policy needs Linux 6.12 or later; advisory mode works without the module"
#endif

#if !defined(CONFIG_DYNAMIC_FTRACE_WITH_ARGS) || !defined(CONFIG_BPF_JIT) || \
	!defined(CONFIG_KRETPROBES) || !defined(CONFIG_NUMA_BALANCING)
#error "tier_policy needs DYNAMIC_FTRACE_WITH_ARGS, BPF_JIT, KRETPROBES and NUMA_BALANCING"
#endif

#ifdef LAST_CPUPID_NOT_IN_PAGE_FLAGS
#error "tier_policy needs the scan stamp in folio->flags (fewer CPU or node bits)"
#endif

/* The flags word became a struct around the word. */
#ifdef TIER_HAVE_MEMDESC_FLAGS
#define tier_folio_flags(folio)	(&(folio)->flags.f)
#else
#define tier_folio_flags(folio)	(&(folio)->flags)
#endif

/* Only the free part of the high-atomic reserve is out of reach; older kernels kept no count. */
#ifdef TIER_HAVE_FREE_HIGHATOMIC
#define tier_zone_highatomic(zone)	READ_ONCE((zone)->nr_free_highatomic)
#else
#define tier_zone_highatomic(zone)	READ_ONCE((zone)->nr_reserved_highatomic)
#endif

/* Pages that the free-space rule let through got a counter of their own. */
static inline void tier_count_room_pages(int nid, long nr_pages)
{
#ifdef TIER_HAVE_CANDIDATE_NRL
	mod_node_page_state(NODE_DATA(nid), PGPROMOTE_CANDIDATE_NRL, nr_pages);
#endif
}

/* Renamed when the estimate became exact for more folios. */
static inline bool tier_folio_mapped_multiple(struct folio *folio)
{
#ifdef TIER_HAVE_MAYBE_MAPPED_SHARED
	return folio_maybe_mapped_shared(folio);
#else
	return folio_likely_mapped_shared(folio);
#endif
}

/* migrate_misplaced_folio() lost its VMA argument: position of the target node. */
#ifdef TIER_HAVE_MIGRATE_WITHOUT_VMA
#define TIER_MIGRATE_NODE_ARG	1
#else
#define TIER_MIGRATE_NODE_ARG	2
#endif

/* Trusted arguments became what every kfunc gets, and the flag went. */
#ifndef KF_TRUSTED_ARGS
#define KF_TRUSTED_ARGS	0
#endif

#endif /* TIER_KMOD_COMPAT_H */
