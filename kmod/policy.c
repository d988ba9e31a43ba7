// SPDX-License-Identifier: GPL-2.0
/*
 * Which policy is in force: attach, swap, detach, ejection.
 *
 * tier_hot.policy is what the hooks call. It is published before the hooks are
 * armed and taken back after they are gone, so that a hooked fault always finds
 * a policy, except after an ejection: then it is NULL until the hooks are gone,
 * and the kernel decides.
 */
#include "internal.h"
#include <linux/err.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>

struct tier_hot tier_hot ____cacheline_aligned = {
	.left_alone_nodes = ~0ULL,
};

static DEFINE_MUTEX(policy_mutex);	/* all of attached */
static struct {
	enum tier_state state;
	struct tier_policy_ops *ops;
	char owner[TASK_COMM_LEN + 16];
	u64 since_ns;
} attached;

static void settle_ejection_fn(struct work_struct *work);
static DECLARE_WORK(ejection_work, settle_ejection_fn);
/* Written by whoever took tier_hot.policy away, read after a grace period. */
static int ejection_value;

/*
 * Two, so that one can be filled in while the other is in force. Between two calls
 * that put a policy in force lies a grace period: the other one has no reader left.
 * Returns true if a policy was in force.
 */
static bool publish(struct tier_policy_ops *ops)
{
	static struct tier_in_force slots[2];
	static unsigned int last;
	struct tier_in_force *slot = NULL;

	lockdep_assert_held(&policy_mutex);
	if (ops) {
		last ^= 1;
		slot = &slots[last];
		slot->ops = ops;
		slot->promote = tier_direct_prog(ops);
		slot->needs = ops->flags;
		slot->plain_promote = slot->needs || IS_ENABLED(CONFIG_PREEMPT_RT) ?
				      NULL : slot->promote;
	}
	atomic_set(&tier_hot.bad_streak, 0);
	return unrcu_pointer(xchg(&tier_hot.policy, RCU_INITIALIZER(slot)));
}

static int call_init(struct tier_policy_ops *ops)
{
	int err = ops->init ? ops->init() : 0;

	if (err >= 0)
		return 0;
	if (err < -MAX_ERRNO)
		err = -EINVAL;
	pr_notice("policy '%s' refused: its init() returned %pe\n", ops->name, ERR_PTR(err));
	tier_exit_record_set(TIER_EXIT_INIT_FAILED, ops->name, err, "init() refused");
	return err;
}

static void call_exit(struct tier_policy_ops *ops)
{
	if (ops->exit)
		ops->exit();
}

static void note_owner(struct tier_policy_ops *ops)
{
	char comm[TASK_COMM_LEN];

	attached.ops = ops;
	attached.state = TIER_STATE_ACTIVE;
	attached.since_ns = ktime_get_boottime_ns();
	get_task_comm(comm, current);
	snprintf(attached.owner, sizeof(attached.owner), "%s %d", comm, task_tgid_nr(current));
}

static int put_in_force(struct tier_policy_ops *ops)
{
	int err;

	lockdep_assert_held(&policy_mutex);
	err = call_init(ops);
	if (err)
		return err;
	tier_mode_set_top_nodes(0);
	err = tier_mode_watch();
	if (err)
		goto err_exit;
	publish(ops);
	err = tier_hooks_enable(tier_hooks_wanted(ops));
	if (err)
		goto err_unpublish;
	return 0;

err_unpublish:
	publish(NULL);
	synchronize_rcu();
	tier_mode_unwatch();
err_exit:
	call_exit(ops);
	return err;
}

/* The hooks go first: no fault is left without a policy. Returns false if it was ejected. */
static bool take_out_of_force(void)
{
	bool in_force;

	lockdep_assert_held(&policy_mutex);
	tier_hooks_disable(~0U);
	in_force = publish(NULL);
	tier_mode_unwatch();
	synchronize_rcu();
	call_exit(attached.ops);
	return in_force;
}

static void record_ejection(void)
{
	char message[96];

	snprintf(message, sizeof(message),
		 "promote() or scan() returned %d, no known verdict; %u in a row allowed",
		 READ_ONCE(ejection_value), READ_ONCE(tier_max_bad_verdicts));
	tier_event(EJECTIONS);
	tier_exit_record_set(TIER_EXIT_BAD_VERDICTS, attached.ops->name, -EINVAL, message);
	pr_warn("policy '%s' ejected: %s; the kernel decides\n", attached.ops->name, message);
}

static void settle_ejection_fn(struct work_struct *work)
{
	mutex_lock(&policy_mutex);
	/* A detach or swap may have been faster, and has left the record then. */
	if (attached.state == TIER_STATE_ACTIVE && !rcu_access_pointer(tier_hot.policy)) {
		take_out_of_force();
		record_ejection();
		attached.state = TIER_STATE_EJECTED;
	}
	mutex_unlock(&policy_mutex);
}

/* Called from the hooks, in atomic context, inside a read-side section. */
void tier_policy_bad_verdict(struct tier_in_force *policy, int value)
{
	unsigned int limit = READ_ONCE(tier_max_bad_verdicts);

	tier_event(BAD_VERDICTS);
	if (atomic_inc_return(&tier_hot.bad_streak) < limit || !limit)
		return;
	/* Several CPUs may get here, and the policy may have been swapped meanwhile. */
	if (cmpxchg(&tier_hot.policy, RCU_INITIALIZER(policy), NULL) != RCU_INITIALIZER(policy))
		return;
	WRITE_ONCE(ejection_value, value);
	schedule_work(&ejection_work);
}

int tier_policy_attach(struct tier_policy_ops *ops)
{
	int err;

	mutex_lock(&policy_mutex);
	if (attached.state != TIER_STATE_IDLE) {
		pr_notice("policy '%s' refused: '%s' is attached, by %s\n", ops->name,
			  attached.ops->name, attached.owner);
		err = -EEXIST;
		goto out;
	}
	err = put_in_force(ops);
	if (!err) {
		note_owner(ops);
		tier_event(ATTACHES);
	}
out:
	mutex_unlock(&policy_mutex);
	return err;
}

static int swap_active(struct tier_policy_ops *ops)
{
	unsigned int old_hooks = tier_hooks_wanted(attached.ops);
	unsigned int hooks = tier_hooks_wanted(ops);
	bool in_force;
	int err;

	err = call_init(ops);
	if (err)
		return err;
	err = tier_hooks_enable(hooks & ~old_hooks);
	if (err) {
		call_exit(ops);
		return err;
	}
	in_force = publish(ops);
	synchronize_rcu();
	tier_hooks_disable(old_hooks & ~hooks);
	call_exit(attached.ops);
	if (!in_force)
		record_ejection();
	return 0;
}

int tier_policy_swap(struct tier_policy_ops *ops)
{
	int err;

	mutex_lock(&policy_mutex);
	if (attached.state == TIER_STATE_EJECTED)
		err = put_in_force(ops);
	else
		err = swap_active(ops);
	if (!err) {
		note_owner(ops);
		tier_event(SWAPS);
	}
	mutex_unlock(&policy_mutex);
	return err;
}

void tier_policy_detach(void)
{
	mutex_lock(&policy_mutex);
	if (attached.state == TIER_STATE_ACTIVE) {
		if (take_out_of_force())
			tier_exit_record_set(TIER_EXIT_UNLOADED, attached.ops->name, 0,
					     "detached by its owner");
		else
			record_ejection();
	}
	/* An ejected policy's record stays: why it left is what people will ask. */
	tier_event(DETACHES);
	memset(&attached, 0, sizeof(attached));
	mutex_unlock(&policy_mutex);
}

void tier_policy_view(struct tier_policy_view *view)
{
	memset(view, 0, sizeof(*view));
	mutex_lock(&policy_mutex);
	view->state = attached.state;
	view->since_ns = attached.since_ns;
	strscpy(view->owner, attached.owner, sizeof(view->owner));
	if (attached.ops)
		strscpy(view->policy, attached.ops->name, sizeof(view->policy));
	mutex_unlock(&policy_mutex);
}

/* An ejection that a detach has overtaken may still be queued. */
void tier_policy_shutdown(void)
{
	cancel_work_sync(&ejection_work);
}
