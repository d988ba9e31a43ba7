// SPDX-License-Identifier: GPL-2.0
/*
 * Is the kernel in tiering mode, and which nodes are top tier? Neither answer
 * is exported to modules, so both are kept here.
 *
 * Mode: read from /proc/sys/kernel/numa_balancing. While a policy is attached,
 * a probe on the sysctl's handler sees every write: from its start until the
 * value has been read anew, the kernel decides. If the handler cannot be probed
 * the file is read every 100 ms.
 *
 * Top tier: nodes with CPUs and nodes in the same memory tier as one of them,
 * until user space, which can read the kernel's own lists, writes the set.
 */
#include "internal.h"
#include <linux/fs.h>
#include <linux/kstrtox.h>
#include <linux/nodemask.h>
#include <linux/workqueue.h>

#define MODE_FILE		"/proc/sys/kernel/numa_balancing"
#define MODE_TIERING		2
#define MODE_POLL_MS		100

static DEFINE_RAW_SPINLOCK(mode_lock);	/* all below, and the masks of tier_hot */
static bool tiering;			/* last known, false while unknown */
static unsigned int writers;		/* writes under way in the sysctl's handler */
static unsigned int writes;		/* writes begun or ended: has one come between? */
static bool top_nodes_given;		/* by user space: not to be guessed again */
static bool polling;

static int mode_error;			/* of the last reading */

static void mode_work_fn(struct work_struct *work);
static DECLARE_DELAYED_WORK(mode_work, mode_work_fn);

static void publish_masks(void)
{
	lockdep_assert_held(&mode_lock);
	WRITE_ONCE(tier_hot.left_alone_nodes,
		   tiering && !writers ? tier_hot.top_nodes : ~0ULL);
}

/* Returns the mode's bits, or a negative errno. */
static int read_mode(void)
{
	char text[16];
	struct file *file;
	loff_t pos = 0;
	ssize_t len;
	int err, mode;

	file = filp_open(MODE_FILE, O_RDONLY, 0);
	if (IS_ERR(file))
		return PTR_ERR(file);
	len = kernel_read(file, text, sizeof(text) - 1, &pos);
	filp_close(file, NULL);
	if (len < 0)
		return len;
	text[len] = '\0';
	err = kstrtoint(strim(text), 10, &mode);
	return err ?: mode;
}

/* In a kernel worker, whose root is the machine's and not a container's. */
static void mode_work_fn(struct work_struct *work)
{
	unsigned int writes_before;
	unsigned long flags;
	int mode;

	writes_before = READ_ONCE(writes);
	mode = read_mode();

	raw_spin_lock_irqsave(&mode_lock, flags);
	/* After a write that came between, another reading is on its way. */
	if (writes == writes_before && !writers)
		tiering = mode >= 0 && (mode & MODE_TIERING);
	mode_error = min(mode, 0);
	publish_masks();
	raw_spin_unlock_irqrestore(&mode_lock, flags);

	if (READ_ONCE(polling))
		schedule_delayed_work(&mode_work, msecs_to_jiffies(MODE_POLL_MS));
}

/* At once, also if the next polling reading is waiting for its time. */
static void read_mode_soon(void)
{
	cancel_delayed_work(&mode_work);
	schedule_delayed_work(&mode_work, 0);
}

static int mode_write_begin(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	unsigned long flags;

	if (!(int)regs_get_kernel_argument(regs, 1))
		return 1;	/* a read: its return does not matter either */

	raw_spin_lock_irqsave(&mode_lock, flags);
	writers++;
	writes++;
	tiering = false;
	publish_masks();
	raw_spin_unlock_irqrestore(&mode_lock, flags);
	return 0;
}

static int mode_write_end(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&mode_lock, flags);
	writers--;
	writes++;
	raw_spin_unlock_irqrestore(&mode_lock, flags);
	read_mode_soon();
	return 0;
}

static struct kretprobe mode_probe = {
	.kp.symbol_name = "sysctl_numa_balancing",
	.entry_handler = mode_write_begin,
	.handler = mode_write_end,
	.maxactive = 64,
};

static int mode_refresh(void)
{
	read_mode_soon();
	flush_delayed_work(&mode_work);
	return READ_ONCE(mode_error);
}

int tier_mode_watch(void)
{
	int err;

	err = tier_kretprobe_enable(&mode_probe);
	if (err) {
		pr_notice("cannot probe the handler of kernel.numa_balancing (%pe): reading it every %d ms\n",
			  ERR_PTR(err), MODE_POLL_MS);
		WRITE_ONCE(polling, true);
	}
	err = mode_refresh();
	if (err) {
		pr_notice("cannot read %s: %pe\n", MODE_FILE, ERR_PTR(err));
		tier_mode_unwatch();
	}
	return err;
}

void tier_mode_unwatch(void)
{
	unsigned long flags;

	if (READ_ONCE(polling))
		WRITE_ONCE(polling, false);
	else
		unregister_kretprobe(&mode_probe);
	cancel_delayed_work_sync(&mode_work);

	/* A write still in the handler will not report its end any more. */
	raw_spin_lock_irqsave(&mode_lock, flags);
	writers = 0;
	raw_spin_unlock_irqrestore(&mode_lock, flags);
}

bool tier_mode_tiering(void)
{
	return READ_ONCE(tiering);
}

/* For a reader who wants today's answer though nobody watches the mode. */
bool tier_mode_tiering_now(void)
{
	mode_refresh();
	return tier_mode_tiering();
}

static u64 guess_top_nodes(void)
{
	u64 nodes = 0;
	int nid, cpu_nid;

	rcu_read_lock();
	for_each_online_node(nid) {
		if (nid >= TIER_MAX_NODES)
			break;
		for_each_node_state(cpu_nid, N_CPU)
			if (nid == cpu_nid ||
			    (rcu_access_pointer(NODE_DATA(nid)->memtier) &&
			     rcu_access_pointer(NODE_DATA(nid)->memtier) ==
			     rcu_access_pointer(NODE_DATA(cpu_nid)->memtier)))
				nodes |= BIT_ULL(nid);
	}
	rcu_read_unlock();
	return nodes;
}

/* 0: guess, unless user space has given the set before. */
void tier_mode_set_top_nodes(u64 nodes)
{
	u64 guess = nodes ? 0 : guess_top_nodes();
	unsigned long flags;

	raw_spin_lock_irqsave(&mode_lock, flags);
	if (nodes)
		top_nodes_given = true;
	if (nodes || !top_nodes_given)
		WRITE_ONCE(tier_hot.top_nodes, nodes ?: guess);
	publish_masks();
	raw_spin_unlock_irqrestore(&mode_lock, flags);
}

void tier_mode_shutdown(void)
{
	cancel_delayed_work_sync(&mode_work);
}
