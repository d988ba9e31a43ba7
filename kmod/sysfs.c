// SPDX-License-Identifier: GPL-2.0
/* /sys/kernel/tier_policy: what user space may know of the module. */
#include "internal.h"
#include <linux/bitmap.h>
#include <linux/kobject.h>
#include <linux/sysfs.h>

static struct kobject *tier_kobj;

static const char *const state_names[] = {
	[TIER_STATE_IDLE] = "idle",
	[TIER_STATE_ACTIVE] = "active",
	[TIER_STATE_EJECTED] = "ejected",
};

#define TIER_SHOW(name) \
	static ssize_t name##_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)

TIER_SHOW(abi_version)
{
	return sysfs_emit(buf, "%d\n", TIER_ABI_VERSION);
}

TIER_SHOW(state)
{
	struct tier_policy_view view;

	tier_policy_view(&view);
	return sysfs_emit(buf, "%s\n", state_names[view.state]);
}

TIER_SHOW(policy)
{
	struct tier_policy_view view;

	tier_policy_view(&view);
	return sysfs_emit(buf, "%s\n", view.policy);
}

TIER_SHOW(owner)
{
	struct tier_policy_view view;

	tier_policy_view(&view);
	return sysfs_emit(buf, "%s\n", view.owner);
}

TIER_SHOW(since)
{
	struct tier_policy_view view;

	tier_policy_view(&view);
	return sysfs_emit(buf, "%llu\n", view.since_ns);
}

static ssize_t emit_events(char *buf, ssize_t at, const struct tier_events *events)
{
	int ev;

	for (ev = 0; ev < TIER_NR_EV; ev++)
		at += sysfs_emit_at(buf, at, "%s %llu\n", tier_event_names[ev], events->count[ev]);
	return at;
}

TIER_SHOW(counters)
{
	struct tier_events sum;

	tier_events_sum(&sum);
	return emit_events(buf, 0, &sum);
}

TIER_SHOW(exit)
{
	struct tier_exit_record record;
	ssize_t at;

	tier_exit_record_get(&record);
	if (record.kind == TIER_EXIT_NONE)
		return 0;
	at = sysfs_emit(buf, "kind %s\npolicy %s\nerror %d\nmessage %s\ntime_ns %llu\n",
			tier_exit_kind_name(record.kind), record.policy, record.error,
			record.message, record.time_ns);
	return emit_events(buf, at, &record.events);
}

TIER_SHOW(tiering)
{
	return sysfs_emit(buf, "%d\n", tier_mode_tiering_now());
}

TIER_SHOW(top_tier_nodes)
{
	DECLARE_BITMAP(nodes, TIER_MAX_NODES);

	bitmap_from_u64(nodes, READ_ONCE(tier_hot.top_nodes));
	return sysfs_emit(buf, "%*pbl\n", TIER_MAX_NODES, nodes);
}

static ssize_t top_tier_nodes_store(struct kobject *kobj, struct kobj_attribute *attr,
				    const char *buf, size_t count)
{
	DECLARE_BITMAP(nodes, TIER_MAX_NODES);
	u64 mask;
	int err;

	err = bitmap_parselist(buf, nodes, TIER_MAX_NODES);
	if (err)
		return err;
	bitmap_to_arr64(&mask, nodes, TIER_MAX_NODES);
	if (!mask)
		return -EINVAL;
	tier_mode_set_top_nodes(mask);
	return count;
}

TIER_SHOW(stamp_shift)
{
	return sysfs_emit(buf, "%d\n", (int)LAST_CPUPID_PGSHIFT);
}

TIER_SHOW(stamp_bits)
{
	return sysfs_emit(buf, "%d\n", (int)LAST_CPUPID_SHIFT);
}

TIER_SHOW(stamp_unit_ms)
{
	return sysfs_emit(buf, "%u\n", 1U << PAGE_ACCESS_TIME_BUCKETS);
}

TIER_SHOW(stamp_wrap_ms)
{
	return sysfs_emit(buf, "%u\n", 1U << (LAST_CPUPID_SHIFT + PAGE_ACCESS_TIME_BUCKETS));
}

static struct kobj_attribute top_tier_nodes_attr = __ATTR_RW(top_tier_nodes);
#define TIER_ATTR(name) static struct kobj_attribute name##_attr = __ATTR_RO(name)
TIER_ATTR(abi_version);
TIER_ATTR(state);
TIER_ATTR(policy);
TIER_ATTR(owner);
TIER_ATTR(since);
TIER_ATTR(counters);
TIER_ATTR(exit);
TIER_ATTR(tiering);
TIER_ATTR(stamp_shift);
TIER_ATTR(stamp_bits);
TIER_ATTR(stamp_unit_ms);
TIER_ATTR(stamp_wrap_ms);

static struct attribute *tier_attrs[] = {
	&abi_version_attr.attr,
	&state_attr.attr,
	&policy_attr.attr,
	&owner_attr.attr,
	&since_attr.attr,
	&counters_attr.attr,
	&exit_attr.attr,
	&tiering_attr.attr,
	&top_tier_nodes_attr.attr,
	&stamp_shift_attr.attr,
	&stamp_bits_attr.attr,
	&stamp_unit_ms_attr.attr,
	&stamp_wrap_ms_attr.attr,
	NULL,
};

static const struct attribute_group tier_group = {
	.attrs = tier_attrs,
};

int tier_sysfs_init(void)
{
	int err;

	tier_kobj = kobject_create_and_add("tier_policy", kernel_kobj);
	if (!tier_kobj)
		return -ENOMEM;
	err = sysfs_create_group(tier_kobj, &tier_group);
	if (err)
		kobject_put(tier_kobj);
	return err;
}

void tier_sysfs_exit(void)
{
	kobject_put(tier_kobj);
}
