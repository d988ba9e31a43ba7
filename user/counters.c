// SPDX-License-Identifier: GPL-2.0
/* docs/counters.md, from the tables that the counters themselves come from. */
#include "metrics.h"

static void row(FILE *to, const char *name, const char *unit, const char *metric,
		const char *suffix, const char *help)
{
	char full[96];

	metric_name(metric, name, full, sizeof(full));
	fprintf(to, "| `%s` | %s | `tier_%s%s` | ", name, unit, full, suffix);
	for (; *help; help++)
		fprintf(to, "%s%c", *help == '|' ? "\\" : "", *help);
	fputs(" |\n", to);
}

static void heading(FILE *to, const char *title, const char *text)
{
	fprintf(to, "\n## %s\n\n%s\n\n| Name | Unit | Metric | What bumps it |\n"
		"| --- | --- | --- | --- |\n", title, text);
}

static void decisions(FILE *to)
{
	static const char *const verdicts[] = { "kernel", "promote", "reject" };

	fputs("\n## Verdicts and reasons\n\n"
	      "Every slow-tier hint fault that reaches the policy ends in exactly one of these. In JSON\n"
	      "the keys of `faults` and `pages`, as metrics the label `reason` of\n"
	      "`tier_decided_faults_total` and `tier_decided_pages_total`, each with `source_node`,\n"
	      "`target_node` and `verdict`.\n\n"
	      "| Reason | Verdict | Cause |\n| --- | --- | --- |\n", to);
	for (unsigned int d = 0; d < TIER_NR_DECISIONS; d++)
		if (tier_decision__name(d))
			fprintf(to, "| `%s` | %s | %s |\n", tier_decision__name(d),
				verdicts[tier_decision_verdict(d)], tier_decision__cause(d));
}

static const char kernel_counters[] =
	"\n## The kernel's own counters beside ours\n\n"
	"All in `/proc/vmstat`; the promotion and demotion ones per node in `/proc/zoneinfo` too.\n\n"
	"| Kernel | Counts | Beside it, ours |\n| --- | --- | --- |\n"
	"| `numa_pte_updates` | page table entries that the scanner made PROT_NONE | `scan_ptes` |\n"
	"| `numa_huge_pte_updates` | the huge ones among them | in `scan_ptes`, as the kernel returns "
	"them |\n"
	"| `numa_hint_faults` | hint faults, one a fault whatever its size, on all nodes | "
	"`slow_faults` + `other_faults` + `numa_hint_faults_local` |\n"
	"| `numa_hint_faults_local` | those on a page of the CPU's own node | none: such a page is "
	"not to be promoted |\n"
	"| `numa_pages_migrated` | pages moved by hint faults | `promoted_pages`, as far as they went "
	"from slow to fast |\n"
	"| `pgpromote_candidate` | pages that passed the hot threshold, before the rate limit; not "
	"those of the free-space rule | pages under `hot`, `any`, `near`, `other`, `rate`; the module "
	"keeps the kernel's counter truthful |\n"
	"| `pgpromote_candidate_nrl` | candidates that no rate limit applies to (newer kernels) | "
	"pages under `room` |\n"
	"| `pgpromote_success` | pages promoted by hint faults | `promoted_pages`; `promote_ok` counts "
	"faults |\n"
	"| `pgdemote_kswapd`, `pgdemote_direct`, `pgdemote_khugepaged`, `pgdemote_proactive` | pages "
	"demoted, by who reclaimed | `demoted_pages`, whoever asked |\n"
	"| `pgmigrate_success`, `pgmigrate_fail` | pages moved, or not, for any reason | includes "
	"everything above |\n"
	"\n## Sums that hold\n\n"
	"- Over verdicts and reasons: the sum of `faults` is `policy_calls`. `tierctl stats` checks it "
	"at every reading (`accounted`).\n"
	"- `slow_faults` = `policy_calls` + `undecided` + `no_target_memory`.\n"
	"- `policy_calls` = `promote_verdicts` + `reject_verdicts` + `kernel_verdicts` + `capped` + "
	"`bad_verdicts`.\n"
	"- Faults of promote verdicts = `promote_ok` + `promote_refused` + `promote_failed`, while the "
	"observer is there.\n"
	"- `numa_hint_faults` - `numa_hint_faults_local` = `slow_faults` + `other_faults`, as long as no "
	"memory policy rules faults out before anyone decides; those of a policy whose nodes exclude the "
	"running CPU's are `nodemask_faults`, while a daemon runs and `honour_nodemask` is on.\n"
	"- `requested_pages` = what was moved + what was refused, by reason, + what still waits in the "
	"ring.\n";

void help_counters(FILE *to)
{
	fputs("# Counters\n\n"
	      "Made by `tierctl help --counters` from `include/tier/decisions.def` and\n"
	      "`include/tier/stats.def`; do not edit. A name is the JSON key of `tierctl stats --json`;\n"
	      "the metric is what `tierctl metrics` calls it, with times in seconds. All only grow while\n"
	      "a policy is loaded, also over swaps; they begin at zero with `load` and with `reset`.\n", to);
	decisions(to);
#define TIER_STAT_MODULE(sym, name, unit, help) row(to, name, unit, "module_", "_total", help);
	heading(to, "Module", "Per machine, from `/sys/kernel/tier_policy/counters`, less what was "
		"counted before `load`.");
#include <tier/stats.def>
#define TIER_STAT_MOVE(sym, name, unit, help) row(to, name, unit, "", "_total", help);
	heading(to, "Migrations", "From the observer, per source and target node.");
#include <tier/stats.def>
#define TIER_STAT_SCAN(sym, name, unit, help) row(to, name, unit, "", "_total", help);
	heading(to, "Scanner", "From the observer, per machine.");
#include <tier/stats.def>
#define TIER_STAT_SKIP(sym, name, unit, help) row(to, name, unit, "", "_total", help);
	heading(to, "VMAs that the scanner passed over", "From the observer, per machine.");
#include <tier/stats.def>
#define TIER_STAT_REQUEST(sym, name, unit, help) row(to, name, unit, "", "_total", help);
	heading(to, "Promotions without a fault", "Asked for by the policy, carried out by "
		"`tierctl daemon`; per machine.");
#include <tier/stats.def>
	fputs(kernel_counters, to);
}
