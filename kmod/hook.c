// SPDX-License-Identifier: GPL-2.0
/*
 * Arming and disarming the hooks on kernel functions.
 *
 * A hook that decides sets the instruction pointer to a function of this module
 * that returns the verdict (IPMODIFY); to leave the decision to the kernel it
 * does nothing. PERMANENT: kernel.ftrace_enabled=0 would silently take the
 * policy out of force; it is refused while a policy is attached.
 *
 * None of the hooked functions can be entered again from our callbacks, so these
 * go without ftrace's recursion lock: they touch kernel memory only, and BPF
 * programs reach user memory with page faults disabled.
 */
#include "internal.h"
#include <linux/err.h>

static struct ftrace_ops promote_ops = {
	.func = tier_hook_promote,
	.flags = FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_PERMANENT,
};

static struct ftrace_ops scan_ops = {
	.func = tier_hook_scan,
	.flags = FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_PERMANENT,
};

static struct ftrace_ops address_ops = {
	.func = tier_hook_address,
	.flags = FTRACE_OPS_FL_PERMANENT,
};

/*
 * In arming order: a deciding hook comes after the ones that feed it. Exactly
 * one of ftrace and probe is set; function is for ftrace and messages.
 */
static struct {
	unsigned int hook;
	char function[32];
	struct ftrace_ops *ftrace;
	struct kretprobe *probe;
	bool armed;
} hooks[] = {
	{ TIER_HOOK_ADDRESS, "mpol_misplaced", .ftrace = &address_ops },
	{ TIER_HOOK_SCAN, "change_prot_numa", .ftrace = &scan_ops },
#ifdef TIER_HAVE_MIGRATE_PREPARE
	{ TIER_HOOK_MIGRATED, "migrate_misplaced_folio_prepare", .probe = &tier_prepare_probe },
#endif
	{ TIER_HOOK_MIGRATED, "migrate_misplaced_folio", .probe = &tier_migrate_probe },
	{ TIER_HOOK_PROMOTE, "should_numa_migrate_memory", .ftrace = &promote_ops },
};

unsigned int tier_hooks_wanted(const struct tier_policy_ops *ops)
{
	return TIER_HOOK_PROMOTE |
	       (ops->flags & TIER_NEED_ADDR ? TIER_HOOK_ADDRESS : 0) |
	       (ops->scan ? TIER_HOOK_SCAN : 0) |
	       (ops->migrated ? TIER_HOOK_MIGRATED : 0);
}

/* Registration leaves traces in a kretprobe that a second one stumbles over. */
int tier_kretprobe_enable(struct kretprobe *probe)
{
	probe->kp.addr = NULL;
	probe->kp.flags = 0;
	return register_kretprobe(probe);
}

static int ftrace_enable(struct ftrace_ops *ops, char *function)
{
	int err;

	err = ftrace_set_filter(ops, (unsigned char *)function, strlen(function), 1);
	if (!err)
		err = register_ftrace_function(ops);
	return err;
}

static void disarm(int i)
{
	if (hooks[i].probe)
		unregister_kretprobe(hooks[i].probe);
	else
		unregister_ftrace_function(hooks[i].ftrace);
	hooks[i].armed = false;
}

/* All of them or none. */
int tier_hooks_enable(unsigned int wanted)
{
	unsigned long armed_here = 0;
	int i, err;

	for (i = 0; i < ARRAY_SIZE(hooks); i++) {
		if (!(wanted & hooks[i].hook) || hooks[i].armed)
			continue;
		err = hooks[i].probe ? tier_kretprobe_enable(hooks[i].probe) :
				       ftrace_enable(hooks[i].ftrace, hooks[i].function);
		if (err) {
			pr_notice("cannot hook %s(): %pe%s\n", hooks[i].function, ERR_PTR(err),
				  err == -EBUSY ? " (livepatch on it, or kernel.ftrace_enabled=0?)" : "");
			goto err_disarm;
		}
		hooks[i].armed = true;
		armed_here |= BIT(i);
	}
	return 0;

err_disarm:
	while (--i >= 0)
		if (armed_here & BIT(i))
			disarm(i);
	return err;
}

/* On return no callback of these hooks runs any more, nor a function it sent a CPU to. */
void tier_hooks_disable(unsigned int unwanted)
{
	int i;

	for (i = ARRAY_SIZE(hooks) - 1; i >= 0; i--)
		if (unwanted & hooks[i].hook && hooks[i].armed)
			disarm(i);
}

/*
 * Filters are set anew at each arming and freed only here: ftrace_free_filter()
 * leaves pointers to what it freed, which the next ftrace_set_filter() would
 * free again.
 */
void tier_hooks_shutdown(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(hooks); i++)
		if (hooks[i].ftrace)
			ftrace_free_filter(hooks[i].ftrace);
}
