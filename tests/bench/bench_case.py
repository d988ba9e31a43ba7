#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""One case of `make bench`: what a booted machine left behind, as one JSON file.

  bench_case.py take DIR FILE --workload W1 --policy rank --run 1 --order mode2 \\
                --key KEY --lab fast_mb=160 ...
  bench_case.py check FILE --key KEY

take reads what bench_guest.sh left in DIR and writes FILE. It also judges whether the two
runs in it may be compared at all, and says why not:
  - the pace held: at most 5 % of the batches of accesses were late, none was dropped;
  - where pages fall into a hot and a cold class, the hot ones' median scan-to-fault latency
    is at most a tenth of the cold ones': else nothing could have told them apart here.
KEY stands for all that a case depends on (policy source, workload, machine). check succeeds
if FILE holds a case with that KEY that may be compared.

Exit: 0 done, 1 not (check: to be measured again), 2 usage.
"""
import argparse
import json
import statistics
import sys
from collections import Counter
from pathlib import Path

SLIP_LIMIT = 0.05
CLASS_RATIO = 0.1
# Fewer recorded faults of a class give no median. A huge page is one fault.
MIN_FAULTS = {"hot": 5, "cold": 20}
# Heat map: octaves of latency, and slices of time.
SLICE_S = 2
OCTAVES = 18


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def is_hot(maps, pid, address):
    """True or False; None for memory that is not the workload's."""
    for m in maps.get(pid, []):
        page = (address - int(m["address"], 16)) // 4096
        if 0 <= page < m["pages"]:
            return bool(int(m["hot_map"][page // 4], 16) >> page % 4 & 1)
    return None


def read_classes(folder):
    """Latencies of the faults on hot and on cold pages; None where none were recorded."""
    if not (folder / "classes.json").exists():
        return None
    load_json = load(folder / "classes.json")
    maps = {}
    for m in load_json["page_maps"]:
        maps.setdefault(m["pid"], []).append(m)
    latency = {"hot": [], "cold": []}
    for line in (folder / "classes.trace").read_text(encoding="utf-8").splitlines():
        pid, ms, address = line.split()
        if address == "-":
            continue
        hot = is_hot(maps, int(pid), int(address, 16))
        if hot is not None:
            latency["hot" if hot else "cold"].append(float(ms))
    out = {"slip": load_json["totals"]["slip"], "seconds": load_json["totals"]["seconds"]}
    for name, values in latency.items():
        out[name + "_faults"] = len(values)
        out[name + "_median_ms"] = statistics.median(values) if values else None
    return out


def judge(case):
    """Why the case must not be compared; empty if it may."""
    why = []
    for who in ("mode2", "policy"):
        totals = case[who]["totals"]
        if totals["slip"] > SLIP_LIMIT:
            why.append(f"pacing slipped under {who}: {100 * totals['slip']:.1f} % of the "
                       f"batches were late, {100 * SLIP_LIMIT:.0f} % allowed")
        if totals["dropped_ms"]:
            why.append(f"pacing slipped under {who}: {totals['dropped_ms']} ms of accesses "
                       "were dropped")
    classes = case["classes"]
    if not classes:
        return why
    for name, least in MIN_FAULTS.items():
        if classes[name + "_faults"] < least:
            why.append(f"only {classes[name + '_faults']} faults on {name} pages were recorded, "
                       f"{least} needed for a median")
            return why
    hot, cold = classes["hot_median_ms"], classes["cold_median_ms"]
    if hot > CLASS_RATIO * cold:
        why.append(f"hot and cold pages cannot be told apart: median latencies {hot:.0f} ms and "
                   f"{cold:.0f} ms, a tenth needed")
    return why


def read_series(folder):
    """Threshold in force and latencies, second by second, of the policy's run."""
    threshold, heat, first_ns = [], Counter(), None
    last = Counter()
    for line in (folder / "stats.jsonl").read_text(encoding="utf-8").splitlines():
        try:
            doc = json.loads(line)
        except json.JSONDecodeError:
            continue        # cut off when the reader was stopped
        if "interval" not in doc:
            continue
        first_ns = first_ns or doc["time_ns"] - int(doc["interval"]["time_s"] * 1e9)
        t_s = (doc["time_ns"] - first_ns) / 1e9
        node = next(n for n in doc["nodes"] if n["tier"] == "fast")
        threshold.append([round(t_s, 1), node["threshold_ms"]])
        now = Counter()
        for slot in node["latency_hist"]:
            now[min(int(slot["from_ms"]).bit_length(), OCTAVES - 1)] += slot["pages"]
        for octave, pages in (now - last).items():
            heat[(int(t_s) // SLICE_S, octave)] += pages
        last = now
    return {"threshold_ms": threshold, "slice_s": SLICE_S,
            "heat": sorted([t, o, n] for (t, o), n in heat.items())}


def read_run(path):
    doc = load(path)
    keep = ("t_s", "phase", "fast_hit_ratio", "promotions", "demotions", "hint_faults",
            "pte_updates", "system_time_s")
    return {"options": doc["options"], "machine": doc["machine"], "totals": doc["totals"],
            "phases": doc["phases"],
            "samples": [{k: s[k] for k in keep if k in s} for s in doc["samples"]]}


def take(args):
    folder = Path(args.dir)
    case = {
        "workload": args.workload, "policy_name": args.policy, "run": args.run,
        "order": args.order, "key": args.key,
        "lab": dict(pair.split("=", 1) for pair in args.lab),
        "mode2": read_run(folder / "mode2.json"), "policy": read_run(folder / "policy.json"),
        "classes": read_classes(folder), "series": read_series(folder),
    }
    case["why_not"] = judge(case)
    # Not half a case under its name when the disk is full or the bench interrupted.
    half = Path(args.file + ".tmp")
    half.write_text(json.dumps(case), encoding="utf-8")
    half.rename(args.file)
    for reason in case["why_not"]:
        print(f"bench: NOT COMPARED: {reason}")
    return 0


def check(args):
    try:
        case = load(args.file)
    except (OSError, json.JSONDecodeError):
        return 1
    return 0 if case["key"] == args.key and not case["why_not"] else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = parser.add_subparsers(required=True)
    p = sub.add_parser("take")
    p.add_argument("dir")
    p.add_argument("file")
    for name in ("workload", "policy", "order", "key"):
        p.add_argument("--" + name, required=True)
    p.add_argument("--run", type=int, required=True)
    p.add_argument("--lab", nargs="*", default=[])
    p.set_defaults(do=take)
    p = sub.add_parser("check")
    p.add_argument("file")
    p.add_argument("--key", required=True)
    p.set_defaults(do=check)
    args = parser.parse_args()
    try:
        return args.do(args)
    except (OSError, KeyError, ValueError, StopIteration) as e:
        print(f"bench_case.py: reading what the machine left: {type(e).__name__}: {e}",
              file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
