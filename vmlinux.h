/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel as our BPF programs see it: only what they read, kept by hand.
 *
 * Origin: BTF of Linux 6.12.95 (Debian cloud, x86-64), compared with 6.18.
 * Field order and offsets do not matter: preserve_access_index makes libbpf
 * look every field up in the running kernel's BTF. What differs between
 * kernels is handled in tier/compat.bpf.h, not here. To add a type: copy the
 * fields that are read, nothing more.
 */
#ifndef TIER_VMLINUX_H
#define TIER_VMLINUX_H

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __s8 s8;
typedef __u8 u8;
typedef __s16 s16;
typedef __u16 u16;
typedef __s32 s32;
typedef __u32 u32;
typedef __s64 s64;
typedef __u64 u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

enum { false = 0, true = 1 };

#ifndef NULL
#define NULL ((void *)0)
#endif

/* Stable user-space ABI of the bpf() system call; same numbers everywhere. */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_EXIST = 2,
	BPF_F_NO_PREALLOC = 1U << 0,
	BPF_F_MMAPABLE = 1U << 10,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1U << 0,
	BPF_RB_NO_WAKEUP = 1U << 0,
};

enum {
	EPERM = 1,
	ENOENT = 2,
	E2BIG = 7,
	EAGAIN = 11,
	EINVAL = 22,
	ERANGE = 34,
};

/* Bits of vm_area_struct.vm_flags; unchanged since the 2.6 series. */
enum {
	VM_READ = 0x1,
	VM_WRITE = 0x2,
	VM_EXEC = 0x4,
	VM_SHARED = 0x8,
	VM_MAYWRITE = 0x20,
};

/* Memory policies; modes are user-space ABI, the flags are the kernel's own. */
enum {
	MPOL_BIND = 2,
	MPOL_PREFERRED_MANY = 5,
	MPOL_F_MOF = 1 << 3,	/* hint faults lead to migration */
	MPOL_F_MORON = 1 << 4,	/* towards the node of the CPU that faults */
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct mm_struct {
	int numa_scan_seq;
};

typedef struct {
	unsigned long bits[1];	/* as many as the kernel has node ids; the first word is read */
} nodemask_t;

struct mempolicy {
	unsigned short mode;
	unsigned short flags;
	nodemask_t nodes;
};

struct task_struct {
	int pid;
	int tgid;
	struct mm_struct *mm;
	struct mempolicy *mempolicy;
	nodemask_t mems_allowed;
};

struct vm_operations_struct {
	void *get_policy;
};

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	struct mm_struct *vm_mm;
	unsigned long vm_flags;
	const struct vm_operations_struct *vm_ops;
	struct mempolicy *vm_policy;
};

struct vm_fault {
	struct vm_area_struct *vma;
};

struct page {
	unsigned long flags;
};

struct folio {
	struct address_space *mapping;
	unsigned long index;
	unsigned long _flags_1;
};

enum pageflags {
	PG_head,
	PG_swapbacked,
};

enum zone_type {
	__MAX_NR_ZONES = 4,
};

enum numa_vmaskip_reason {
	NUMAB_SKIP_UNSUITABLE = 0,
	NUMAB_SKIP_SHARED_RO = 1,
	NUMAB_SKIP_INACCESSIBLE = 2,
	NUMAB_SKIP_SCAN_DELAY = 3,
	NUMAB_SKIP_PID_INACTIVE = 4,
	NUMAB_SKIP_IGNORE_PID = 5,
	NUMAB_SKIP_SEQ_COMPLETED = 6,
};

#pragma clang attribute pop

_Static_assert(sizeof(long) == 8 && sizeof(__u64) == 8 && sizeof(__u32) == 4,
	       "BPF objects are built for 64-bit: use -target bpf");

#endif /* TIER_VMLINUX_H */
