#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tables, results.json, plots and the page of `make bench`, from the cases that were measured.

  bench_report.py DIR [--keys KEY...] [--docs DOCS] [--default-policy rank]

Reads DIR/cases/*.json (bench_case.py made them) and DIR/cost/*.json, writes DIR/results.json,
DIR/benchmarks.md and the plots beside it; with --docs the page, its plots and results.json also
go there.
Cases whose key is not among KEYs are of another policy, workload or machine than today's, and
cases that may not be compared are named and left out.

All figures are medians over runs. A policy's runs stand beside those of mode 2 from the same
machines, from the same seeds.

Exit: 0 done, 1 failed or a case could not be compared, 2 usage.
"""
import argparse
import json
import math
import shutil
import statistics
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # the source directory stays clean
from bench_plot import draw  # noqa: E402

WORKLOADS = {
    "W1": "hot/cold, 90 % of the accesses on a 16th of the pages",
    "W2": "Zipf 0.99 over 4 KiB records, scrambled",
    "W3": "the hot set moves every 30 s",
    "W4": "hot set, and repeated scans over the cold memory",
    "W5": "uniform: nothing to gain",
    "W6": "a stream (5 % of the accesses) has the fast node, a process with a hot set comes",
    "W7": "W1 in huge pages, all on the slow node at first",
    "W8": "random updates with a hot region (GUPS)",
    "W2M": "W2 as gets from a real memcached (accesses: cache lines read; kvload)",
}

# Goals of the default policy against mode 2, by workload: promotions as a share of mode 2's,
# hit ratio no more than half a point below mode 2's, share of the best placement's hit ratio,
# time to 90 % no longer than mode 2's. Modelled access time: everywhere at most 3 % worse.
GOALS = {
    "W1": {"promotions": 0.20, "hits": 0.005, "oracle": 0.95},
    "W2": {"promotions": 0.20, "hits": 0.005, "oracle": 0.95},
    "W3": {"t90": True},
    "W4": {"promotions": 0.20, "hits": 0.005, "oracle": 0.95},
    "W5": {"promotions": 0.02},
    "W6": {"promotions": 0.20, "hits": 0.005},
    "W7": {},
    "W8": {"promotions": 0.20, "hits": 0.005},
    "W2M": {},
}
TIME_RATIO = 1.03

# Key of results.json: key of tierload's totals.
FIGURES = {
    "fast_hit_ratio": "fast_hit_ratio_final", "fast_hit_ratio_mean": "fast_hit_ratio",
    "oracle_hit_ratio": "oracle_hit_ratio", "promotions": "promotions",
    "demotions": "demotions", "wasted_promotions": "wasted_promotions",
    "ping_pong_pages": "ping_pong_pages", "hint_faults": "hint_faults",
    "pte_updates": "pte_updates", "system_time_s": "machine_system_time_s",
    "modelled_access_ns": "modelled_access_ns", "modelled_memory_ns": "modelled_memory_ns",
    "t90_s": "t90_s",
}


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def middle(values):
    """Median; a time that was never reached is later than any other."""
    value = statistics.median(math.inf if v is None else v for v in values)
    return None if math.isinf(value) else value


def read_cases(folder, keys):
    """Cases that count, by (workload, policy), and what is to be said of the others."""
    good, notes, refused = {}, [], 0
    for path in sorted(folder.glob("cases/*.json")):
        case = load(path)
        name = f"{case['workload']} {case['policy_name']}, run {case['run']}"
        if keys and case["key"] not in keys:
            notes.append(f"{name}: left out, it was measured with another version of the policy, "
                         "the workload or the machine, or was not asked for")
        elif case["why_not"]:
            refused += 1
            notes += [f"{name}: not compared: {reason}" for reason in case["why_not"]]
        else:
            good.setdefault((case["workload"], case["policy_name"]), []).append(case)
    return good, notes, refused


def last_third(samples):
    """Promotions in the last third of a run: those of a steady state."""
    start = samples[-1]["t_s"] * 2 / 3
    return sum(s["promotions"] for s in samples if s["t_s"] > start)


def figures(cases, who):
    totals = [c[who]["totals"] for c in cases]
    row = {"runs": len(cases)}
    row.update({key: middle([t[name] for t in totals]) for key, name in FIGURES.items()})
    row["promotions_last_third"] = middle([last_third(c[who]["samples"]) for c in cases])
    # What is free for the best placement grows as the machine's own pages are demoted.
    row["oracle_hit_ratio"] = middle([max(c[w]["totals"]["oracle_hit_ratio"]
                                          for w in ("mode2", "policy")) for c in cases])
    return row


def result_rows(good):
    """The list for results.json: mode2 once a workload, over all its machines."""
    rows = []
    for workload in WORKLOADS:
        mine = {p: cases for (w, p), cases in good.items() if w == workload}
        if not mine:
            continue
        pooled = [c for cases in mine.values() for c in cases]
        rows.append({"workload": workload, "policy": "mode2", **figures(pooled, "mode2")})
        rows += [{"workload": workload, "policy": p, **figures(cases, "policy")}
                 for p, cases in sorted(mine.items())]
    return rows


def ratio(a, b):
    return a / b if b else math.inf if a else 0.0


def judge(workload, base, ours):
    """Goals of this workload: (what, value, met)."""
    goal, out = GOALS[workload], []
    if "hits" in goal:
        points = ours["fast_hit_ratio"] - base["fast_hit_ratio"]
        out.append((f"hits at least mode 2's - {100 * goal['hits']:.1f} points",
                    f"{100 * points:+.1f} points", points >= -goal["hits"]))
    if "promotions" in goal:
        share = ratio(ours["promotions"], base["promotions"])
        out.append((f"promotions at most {100 * goal['promotions']:.0f} % of mode 2's",
                    f"{100 * share:.1f} %", share <= goal["promotions"]))
    if "oracle" in goal:
        share = ratio(ours["fast_hit_ratio"], ours["oracle_hit_ratio"])
        out.append((f"hits at least {100 * goal['oracle']:.0f} % of the best placement's",
                    f"{100 * share:.1f} %", share >= goal["oracle"]))
    if "t90" in goal:
        mine, theirs = ours["t90_s"], base["t90_s"]
        met = (math.inf if mine is None else mine) <= (math.inf if theirs is None else theirs)
        out.append(("90 % after a move no later than mode 2",
                    f"{seconds(mine)} s ({seconds(theirs)} s)", met))
    time = ratio(ours["modelled_access_ns"], base["modelled_access_ns"])
    out.append(("modelled access time at most 3 % above mode 2's", f"{100 * (time - 1):+.1f} %",
                time <= TIME_RATIO))
    return out


def read_cost(folder):
    """Cost per policy: instructions per fault from the lab, ns per decision from this host."""
    cost, notes = {}, []

    def add(name, values):
        cost.setdefault(name, {"policy": name, "insn_per_refused_fault": None,
                               "insn_per_promoted_fault": None,
                               "ns_per_decision": None, "ns_over_empty": None}).update(values)

    def rows(name):
        try:
            doc = load(folder / "cost" / name)
        except OSError:
            notes.append(f"{name} is not there: not measured")
            return []
        if isinstance(doc, list):
            return doc
        return doc.get("cost") or doc.get("cases") or doc.get("policies") or []

    for row in rows("fault_cost.json"):
        add(row.get("policy") or row["case"],
            {k: row[k] for k in ("insn_per_refused_fault", "insn_per_promoted_fault") if k in row})
    for row in rows("decision_cost.json"):
        if "ns_per_decision" in row:
            add(row["policy"], {k: row.get(k) for k in ("ns_per_decision", "ns_over_empty")})
    return list(cost.values()), notes


# ---- text ----

def seconds(value):
    return "never" if value is None else f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def percent(value):
    return f"{100 * value:.1f}"


def table(head, rows, markdown):
    """Columns to the right but the first; as markdown or as plain text."""
    rows = [[str(c) for c in row] for row in rows]
    if markdown:
        lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
        return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])
    width = [max(len(r[i]) for r in [head] + rows) for i in range(len(head))]
    return "\n".join("  ".join(c.ljust(w) if i == 0 else c.rjust(w)
                               for i, (c, w) in enumerate(zip(r, width)))
                     for r in [head] + rows)


def compare_rows(good):
    for (workload, policy), cases in sorted(good.items()):
        yield workload, policy, figures(cases, "mode2"), figures(cases, "policy")


def summary_table(good, default):
    """What the README begins with: the default policy in a line per workload."""
    rows = []
    for workload, policy, base, ours in compare_rows(good):
        if policy != default:
            continue
        share = ratio(ours["promotions"], base["promotions"])
        time = ratio(ours["modelled_access_ns"], base["modelled_access_ns"])
        rows.append([f"{workload}: {WORKLOADS[workload]}", percent(base["fast_hit_ratio"]),
                     percent(ours["fast_hit_ratio"]), percent(ours["oracle_hit_ratio"]),
                     f"{base['promotions']:.0f}", f"{ours['promotions']:.0f}",
                     f"{100 * share:.1f} %", f"{100 * (time - 1):+.1f} %"])
    return table(["workload", "fast hits %: mode2", default, "best", "promoted: mode2", default,
                  "share", "modelled access time"], rows, True)


def main_table(good, markdown):
    rows = []
    for workload, policy, base, ours in compare_rows(good):
        for name, row in (("mode2", base), (policy, ours)):
            rows.append([f"{workload} {name}", row["runs"], percent(row["fast_hit_ratio"]),
                         percent(row["oracle_hit_ratio"]), f"{row['promotions']:.0f}",
                         f"{row['promotions_last_third']:.0f}", f"{row['demotions']:.0f}",
                         f"{row['wasted_promotions']:.0f}", f"{row['ping_pong_pages']:.0f}",
                         seconds(row["t90_s"]), f"{row['modelled_access_ns']:.1f}"])
    return table(["case", "runs", "fast hits %", "best %", "promoted", "last third", "demoted",
                  "wasted", "twice", "t90 s", "ns/access"], rows, markdown)


def effort_table(good, markdown):
    rows = []
    for workload, policy, base, ours in compare_rows(good):
        for name, row in (("mode2", base), (policy, ours)):
            rows.append([f"{workload} {name}", f"{row['hint_faults']:.0f}",
                         f"{row['pte_updates']:.0f}", f"{row['system_time_s']:.1f}",
                         f"{row['modelled_memory_ns']:.1f}"])
    return table(["case", "hint faults", "PTE updates", "system time s", "ns/access, memory alone"],
                 rows, markdown)


def goal_table(good, default, markdown):
    """The default policy against its goals; and the number missed."""
    rows, logs, missed = [], [], 0
    for workload, policy, base, ours in compare_rows(good):
        if policy != default:
            continue
        logs.append(math.log(ratio(ours["modelled_access_ns"], base["modelled_access_ns"])))
        for what, value, met in judge(workload, base, ours):
            rows.append([f"{workload}: {what}", value, "met" if met else "**missed**"
                         if markdown else "MISSED"])
            missed += not met
    if logs:
        mean = math.exp(statistics.mean(logs))
        what = "all" if len(logs) == len(WORKLOADS) else f"these {len(logs)}"
        rows.append([f"modelled access time, geometric mean of {what}: below mode 2's",
                     f"{100 * (mean - 1):+.1f} %",
                     "met" if mean < 1 else "**missed**" if markdown else "MISSED"])
        missed += mean >= 1
    return table(["goal", "measured", ""], rows, markdown), missed


def validity_table(good, markdown):
    rows = []
    for (workload, policy), cases in sorted(good.items()):
        slip = max(c[who]["totals"]["slip"] for c in cases for who in ("mode2", "policy"))
        classes = [c["classes"] for c in cases if c["classes"]]
        hot = middle([c["hot_median_ms"] for c in classes]) if classes else None
        cold = middle([c["cold_median_ms"] for c in classes]) if classes else None
        rows.append([f"{workload} {policy}", percent(slip),
                     f"{hot:.0f}" if classes else "-", f"{cold:.0f}" if classes else "-"])
    return table(["case", "late batches % (worst run)", "hot median ms", "cold median ms"],
                 rows, markdown)


def spread_table(good, markdown):
    rows = []
    for (workload, policy), cases in sorted(good.items()):
        for who, name in (("mode2", "mode2"), ("policy", policy)):
            totals = [c[who]["totals"] for c in cases]
            hits = sorted(t["fast_hit_ratio_final"] for t in totals)
            moved = sorted(t["promotions"] for t in totals)
            rows.append([f"{workload} {name}", len(cases),
                         f"{percent(hits[0])}..{percent(hits[-1])}",
                         f"{moved[0]}..{moved[-1]}"])
    return table(["case", "runs", "fast hits %", "promoted"], rows, markdown)


def cost_table(cost, markdown):
    def cell(value):
        return "not measured" if value is None else f"{value:.0f}"

    return table(["case", "instructions, refused fault", "instructions, promoted fault",
                  "ns per decision", "above an empty program"],
                 [[c["policy"], cell(c["insn_per_refused_fault"]),
                   cell(c["insn_per_promoted_fault"]), cell(c["ns_per_decision"]),
                   cell(c["ns_over_empty"])] for c in cost],
                 markdown)


def conditions(good):
    """What was measured on, from the first case; all have the same key parts."""
    case = next(iter(good.values()))[0]
    machine, lab, option = case["mode2"]["machine"], case["lab"], case["mode2"]["options"]
    knobs = machine["knobs"]
    return (f"Linux {machine['kernel']}, QEMU {lab['qemu']} (TCG, no KVM), {lab['cpus']} CPUs, "
            f"fast node {lab['fast_mb']} MiB, slow node {lab['slow_mb']} MiB, demotion on, "
            f"vm.min_free_kbytes {lab['min_free_kb']}, vm.watermark_boost_factor 0. "
            f"{option['pages'] // 256} MiB touched, on the fast node at first as far as "
            f"it goes: {machine['fast_mib_available']:.0f} MiB were free there. "
            f"{option['rate_per_s']:.0f} accesses/s. Scanner: "
            f"delay {knobs['scan_delay_ms']} ms, {knobs['scan_size_mb']} MB a round, "
            "one round in the scan period below (CPU time). "
            f"Modelled time: {option['fast_ns']:.0f} ns for fast memory, "
            f"{option['slow_ns']:.0f} ns for slow memory, {option['fault_ns']:.0f} ns a "
            f"hint fault, {option['migrate_ns']:.0f} ns a page moved.")


def lengths(good):
    out = []
    for workload in WORKLOADS:
        cases = [c for (w, _), cs in sorted(good.items()) if w == workload for c in cs]
        if not cases:
            out.append(f"| {workload} | {WORKLOADS[workload]} | not measured yet | | | |")
            continue
        o, knobs = cases[0]["mode2"]["options"], cases[0]["mode2"]["machine"]["knobs"]
        hot = o["hot_pages"] if cases[0]["classes"] else "-"
        out.append(f"| {workload} | {WORKLOADS[workload]} | {o['seconds']:.0f} s | "
                   f"{o['rate_per_s']:.0f} | {hot} | {knobs['scan_period_min_ms']} ms |")
    return "\n".join(["| Workload | What | Length | Accesses/s | Hot pages | Scan period |",
                      "|---|---|---|---|---|---|"] + out)


def page(good, cost, notes, default, plots):
    goals, missed = goal_table(good, default, True)
    verdict = f"Of what was measured, {missed} goals are missed." if missed else \
        "Of what was measured, all are met."
    parts = [
        "# Benchmarks", "Written by `make bench`; do not edit.",
        "The machine is emulated: placements, counts and instructions are measured, access time "
        "is modelled from them, and speed is not shown at all. `mode2` is the kernel's own "
        "algorithm without us. One machine is booted per case; in it mode 2 and the policy run "
        "one after the other (which first alternates), the same workload from the same seed. "
        "Figures are medians over such runs.",
        f"## The default policy, `{default}`", summary_table(good, default),
        conditions(good), "## Workloads", lengths(good), "## Policies beside mode 2",
        main_table(good, True),
        "*fast hits*: share of the accesses whose page is in fast memory, last third of the run. "
        "*best*: the same for the best static placement. *last third*: promotions in it. "
        "*wasted*: promotions of pages outside "
        "the true hot set. *twice*: pages promoted more than once. *t90*: time to 90 % of the "
        "final share; W3: after each move. *ns/access*: modelled, with hint faults and migrations.",
        f"## Goals of the default policy, `{default}`",
        f"Judged by the medians above. {verdict}", goals,
        "## Effort", effort_table(good, True), "## Lowest and highest run",
        spread_table(good, True), "## May it be compared?",
        "A case counts only if the pace held (at most 5 % of the batches of accesses late, none "
        "dropped) and, where there is a hot set, if its pages fault in a tenth of the time of "
        "the others: recorded before the runs, by address, while nothing was promoted.",
        validity_table(good, True),
    ]
    if notes:
        parts.append("To be known with it:\n\n" + "\n".join(f"- {n}" for n in notes))
    if cost:
        parts += ["## Cost", "Instructions per hint fault, counted by the emulator (one CPU, "
                  "`-icount`); ns per decision natively, through `BPF_PROG_RUN`.",
                  cost_table(cost, True)]
    if plots:
        parts.append("## Plots")
        parts += [f"{caption}\n\n![{caption}](benchmarks/{name})" for name, caption in plots]
    return "\n\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", type=Path)
    parser.add_argument("--keys", nargs="*", default=[])
    parser.add_argument("--docs", type=Path)
    parser.add_argument("--default-policy", default="rank")
    args = parser.parse_args()

    good, notes, refused = read_cases(args.dir, set(args.keys))
    for note in notes:
        print(f"bench: {note}")
    notes += [f"{w} {p}: {len(cases)} run{'s' * (len(cases) > 1)}; the goals are stated for the "
              "medians of at least 3, so this is an indication, no result"
              for (w, p), cases in sorted(good.items()) if len(cases) < 3]
    cost, cost_notes = read_cost(args.dir)
    results = {"cases": result_rows(good), "cost": cost, "default_policy": args.default_policy,
               "conditions": conditions(good) if good else None,
               "not_compared": notes + cost_notes}
    (args.dir / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if not good:
        print("bench_report.py: no case that may be compared in "
              f"{args.dir / 'cases'}; run make bench", file=sys.stderr)
        return 1
    plots = draw(good, args.dir / "benchmarks")
    text = page(good, cost, notes + cost_notes, args.default_policy, plots)
    (args.dir / "benchmarks.md").write_text(text, encoding="utf-8")
    if args.docs:
        shutil.copy(args.dir / "benchmarks.md", args.docs / "benchmarks.md")
        (args.docs / "benchmarks").mkdir(exist_ok=True)
        shutil.copy(args.dir / "results.json", args.docs / "benchmarks" / "results.json")
        for name, _ in plots:
            shutil.copy(args.dir / "benchmarks" / name, args.docs / "benchmarks" / name)

    print("\n" + conditions(good) + "\n\n" + main_table(good, False))
    print("\n" + goal_table(good, args.default_policy, False)[0])
    if cost:
        print("\n" + cost_table(cost, False))
    print(f"\nbench: {args.dir / 'results.json'}, {args.dir / 'benchmarks.md'}"
          + (f", {args.docs / 'benchmarks.md'}" if args.docs else ""))
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
