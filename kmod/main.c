// SPDX-License-Identifier: GPL-2.0
/*
 * tier_policy: lets a BPF policy decide, in the NUMA hint fault path, which
 * slow-tier pages are promoted. Mechanism only: no policy is in here.
 */
#include "internal.h"
#include <linux/module.h>

unsigned int tier_promote_cap_pages_per_s;
module_param_named(promote_cap_pages_per_s, tier_promote_cap_pages_per_s, uint, 0644);
MODULE_PARM_DESC(promote_cap_pages_per_s,
		 "Hard limit on pages promoted to one node in one second, whatever the policy says (0: off)");

unsigned int tier_max_bad_verdicts = 16;
module_param_named(max_bad_verdicts, tier_max_bad_verdicts, uint, 0644);
MODULE_PARM_DESC(max_bad_verdicts,
		 "Unknown verdicts in a row after which a policy is ejected (0: never)");

/*
 * BPF registrations cannot be taken back: the kernel drops them with the
 * module's BTF. They come last, so that nothing has to be undone after them.
 */
static int __init tier_init(void)
{
	int err;

	tier_mode_set_top_nodes(0);
	err = tier_sysfs_init();
	if (err)
		return err;
	err = tier_kfunc_init();
	if (err)
		goto err_sysfs;
	err = tier_struct_ops_init();
	if (err)
		goto err_sysfs;
	return 0;

err_sysfs:
	tier_sysfs_exit();
	return err;
}

/* Each attached policy holds a module reference: none is attached any more. */
static void __exit tier_exit(void)
{
	tier_sysfs_exit();
	tier_policy_shutdown();
	tier_mode_shutdown();
	tier_hooks_shutdown();
}

module_init(tier_init);
module_exit(tier_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("BPF policies for page promotion between memory tiers");
