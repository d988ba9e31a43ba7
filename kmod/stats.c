// SPDX-License-Identifier: GPL-2.0
/* Counters, one set per CPU, and the record of how the last policy left force. */
#include "internal.h"
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/timekeeping.h>

DEFINE_PER_CPU_ALIGNED(struct tier_events, tier_events);

const char *const tier_event_names[TIER_NR_EV] = {
#define TIER_STAT_MODULE(sym, name, unit, help) [TIER_EV_##sym] = name,
#include <tier/stats.def>
};

static const char *const exit_kind_names[] = {
	[TIER_EXIT_NONE] = "none",
	[TIER_EXIT_UNLOADED] = "unloaded",
	[TIER_EXIT_BAD_VERDICTS] = "bad_verdicts",
	[TIER_EXIT_INIT_FAILED] = "init_failed",
};

static DEFINE_SPINLOCK(record_lock);
static struct tier_exit_record last_exit;

/* The sum is no snapshot: CPUs go on counting while it is taken. */
void tier_events_sum(struct tier_events *sum)
{
	int cpu, ev;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu)
		for (ev = 0; ev < TIER_NR_EV; ev++)
			sum->count[ev] += READ_ONCE(per_cpu(tier_events, cpu).count[ev]);
}

void tier_exit_record_set(enum tier_exit_kind kind, const char *policy, int error,
			  const char *message)
{
	struct tier_exit_record record = {
		.kind = kind,
		.error = error,
		.time_ns = ktime_get_boottime_ns(),
	};

	strscpy(record.policy, policy, sizeof(record.policy));
	strscpy(record.message, message, sizeof(record.message));
	tier_events_sum(&record.events);
	spin_lock(&record_lock);
	last_exit = record;
	spin_unlock(&record_lock);
}

void tier_exit_record_get(struct tier_exit_record *record)
{
	spin_lock(&record_lock);
	*record = last_exit;
	spin_unlock(&record_lock);
}

const char *tier_exit_kind_name(enum tier_exit_kind kind)
{
	return kind < ARRAY_SIZE(exit_kind_names) ? exit_kind_names[kind] : "unknown";
}
