// SPDX-License-Identifier: GPL-2.0
/*
 * The struct_ops type "tier_policy_ops": what BPF may put into it, and the way
 * from the BPF subsystem to policy.c.
 */
#include "internal.h"
#include <linux/bpf.h>
#include <linux/bpf_verifier.h>
#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/ctype.h>
#include <linux/module.h>
#include <linux/string.h>

/* Signatures for the indirect-call checks; never called otherwise. */
static int promote_stub(const struct tier_fault *fault, struct folio *folio)
{
	return TIER_KERNEL;
}

static int scan_stub(const struct tier_scan *scan)
{
	return TIER_SCAN_GO;
}

static void migrated_stub(const struct tier_move *move)
{
}

static int init_stub(void)
{
	return 0;
}

static void exit_stub(void)
{
}

static struct tier_policy_ops stubs = {
	.promote = promote_stub,
	.scan = scan_stub,
	.migrated = migrated_stub,
	.init = init_stub,
	.exit = exit_stub,
};

static bool is_valid_access(int off, int size, enum bpf_access_type type,
			    const struct bpf_prog *prog, struct bpf_insn_access_aux *info)
{
	return bpf_tracing_btf_ctx_access(off, size, type, prog, info);
}

_Static_assert(offsetof(struct tier_policy_ops, promote) < offsetof(struct tier_policy_ops, name),
	       "promote() must have been filled in when the name is copied");

/* No btf_struct_access: what the arguments point to is read-only. */
static const struct bpf_verifier_ops verifier_ops = {
	.is_valid_access = is_valid_access,
	.get_func_proto = bpf_base_func_proto,
};

static int btf_init(struct btf *btf)
{
	return 0;
}

static int check_member(const struct btf_type *t, const struct btf_member *member,
			const struct bpf_prog *prog)
{
	if (!prog->sleepable)
		return 0;

	switch (__btf_member_bit_offset(t, member) / 8) {
	case offsetof(struct tier_policy_ops, init):
	case offsetof(struct tier_policy_ops, exit):
		return 0;
	default:
		return -EINVAL;
	}
}

static int copy_name(char *to, const char *from)
{
	size_t len = strnlen(from, TIER_NAME_LEN);
	size_t i;

	if (!len || len == TIER_NAME_LEN) {
		pr_notice("policy refused: its name must have 1 to %d bytes\n", TIER_NAME_LEN - 1);
		return -EINVAL;
	}
	for (i = 0; i < len; i++)
		if (!isascii(from[i]) || (!isalnum(from[i]) && !strchr("_.-", from[i]))) {
			pr_notice("policy refused: its name may have letters, digits, '_', '.', '-'\n");
			return -EINVAL;
		}
	strscpy(to, from, TIER_NAME_LEN);
	return 0;
}

/*
 * Returns 1 for a member that has been copied, 0 for the ones that BPF fills in.
 * Members come in their order: see direct.c for what promote's value is when.
 */
static int init_member(const struct btf_type *t, const struct btf_member *member, void *kdata,
		       const void *udata)
{
	const struct tier_policy_ops *from = udata;
	struct tier_policy_ops *to = kdata;

	switch (__btf_member_bit_offset(t, member) / 8) {
	case offsetof(struct tier_policy_ops, promote):
		tier_direct_begin(to, (int)*(const unsigned long *)&from->promote);
		return 0;
	case offsetof(struct tier_policy_ops, abi_version):
		if (from->abi_version != TIER_ABI_VERSION) {
			pr_notice("policy refused: built for ABI level %u, this module has %d\n",
				  from->abi_version, TIER_ABI_VERSION);
			return -EPROTO;
		}
		to->abi_version = from->abi_version;
		return 1;
	case offsetof(struct tier_policy_ops, flags):
		if (from->flags & ~TIER_POLICY_FLAGS_ALL) {
			pr_notice("policy refused: unknown flags %#x\n",
				  from->flags & ~TIER_POLICY_FLAGS_ALL);
			return -EINVAL;
		}
		to->flags = from->flags;
		return 1;
	case offsetof(struct tier_policy_ops, name):
		tier_direct_end(to, *(const unsigned long *)&from->promote);
		return copy_name(to->name, from->name) ?: 1;
	default:
		return 0;
	}
}

static int validate(void *kdata)
{
	const struct tier_policy_ops *ops = kdata;

	if (!ops->promote) {
		pr_notice("policy '%s' refused: it has no promote()\n", ops->name);
		return -EINVAL;
	}
	return 0;
}

static int reg(void *kdata, struct bpf_link *link)
{
	return tier_policy_attach(kdata);
}

static void unreg(void *kdata, struct bpf_link *link)
{
	tier_policy_detach();
}

/* The caller has checked that old_kdata is what this link put in force. */
static int update(void *kdata, void *old_kdata, struct bpf_link *link)
{
	return tier_policy_swap(kdata);
}

/* owner: each registered policy holds a reference to the module. */
static struct bpf_struct_ops tier_struct_ops = {
	.verifier_ops = &verifier_ops,
	.init = btf_init,
	.check_member = check_member,
	.init_member = init_member,
	.validate = validate,
	.reg = reg,
	.unreg = unreg,
	.update = update,
	.cfi_stubs = &stubs,
	.name = "tier_policy_ops",
	.owner = THIS_MODULE,
};

int tier_struct_ops_init(void)
{
	return register_bpf_struct_ops(&tier_struct_ops, tier_policy_ops);
}
