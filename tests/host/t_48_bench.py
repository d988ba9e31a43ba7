#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What `make bench` makes of given runs: what it refuses to compare, and its arithmetic.

No machine is booted: the runs are made up, the scripts are the real ones.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent / "bench"
done, failed = 0, 0


def is_(got, want, what):
    global done, failed
    done += 1
    if got == want:
        print(f"ok {done} - {what} ({got})")
    else:
        failed += 1
        print(f"not ok {done} - {what}\n#      got: {got}\n# expected: {want}")


def tierload(hits, promotions, slip=0.0, dropped_ms=0):
    """As tierload writes it, with the figures that count here."""
    knobs = {k: "1" for k in ("scan_delay_ms", "scan_period_min_ms", "scan_period_max_ms",
                              "scan_size_mb")}
    return {
        "options": {"pages": 4096, "rate_per_s": 1000, "seconds": 2, "hot_pages": 1,
                    "fast_ns": 100, "slow_ns": 250, "fault_ns": 1000, "migrate_ns": 3000},
        "machine": {"kernel": "made-up", "fast_mib_available": 8, "knobs": knobs},
        "samples": [{"t_s": t, "fast_hit_ratio": hits, "promotions": 1} for t in (0, 1, 2)],
        "phases": [], "page_maps": [{"pid": 7, "address": "10000", "pages": 8, "hot_map": "10"}],
        "totals": {
            "seconds": 2, "fast_hit_ratio_final": hits, "fast_hit_ratio": hits,
            "oracle_hit_ratio": 0.9, "promotions": promotions, "demotions": 0,
            "wasted_promotions": 0, "ping_pong_pages": 0, "hint_faults": 9, "pte_updates": 9,
            "machine_system_time_s": 1.0, "modelled_access_ns": 250 - 150 * hits,
            "modelled_memory_ns": 250 - 150 * hits, "t90_s": None if hits < 0.5 else 1.0,
            "slip": slip, "dropped_ms": dropped_ms},
    }


class Bench:
    def __init__(self, folder):
        self.folder, self.left = folder, folder / "left"
        self.left.mkdir()
        (folder / "cases").mkdir()

    def take(self, workload, run, mode2, policy, hot_ms=10, cold_ms=1000):
        """Make a case; returns what was said."""
        for name, doc in (("mode2", mode2), ("policy", policy), ("classes", tierload(0, 0))):
            (self.left / f"{name}.json").write_text(json.dumps(doc), encoding="utf-8")
        # Page 0 is hot, page 1 is not; what lies elsewhere is not the workload's.
        trace = [f"7 {hot_ms} 10000"] * 9 + [f"7 {cold_ms} 11000"] * 30 + ["7 0 90000", "8 0 11000"]
        (self.left / "classes.trace").write_text("\n".join(trace) + "\n", encoding="utf-8")
        line = {"time_ns": 5000000000, "interval": {"time_s": 1.0}, "nodes": [
            {"tier": "fast", "threshold_ms": 40, "latency_hist": [{"from_ms": 8, "pages": 3}]}]}
        (self.left / "stats.jsonl").write_text(json.dumps(line) + "\n{\"cut", encoding="utf-8")
        self.case = self.folder / "cases" / f"{workload}.rank.{run}.json"
        return self.call("bench_case.py", "take", self.left, self.case, "--workload", workload,
                         "--policy", "rank", "--run", run, "--order", "mode2", "--key", "k",
                         "--lab", "fast_mb=1", "slow_mb=2", "cpus=1", "min_free_kb=1024",
                         "qemu=0")[1]

    def call(self, program, *args):
        ran = subprocess.run([sys.executable, BENCH / program, *map(str, args)], text=True,
                             capture_output=True, check=False)
        return ran.returncode, ran.stdout + ran.stderr

    def check(self, key="k"):
        return self.call("bench_case.py", "check", self.case, "--key", key)[0]

    def report(self):
        return self.call("bench_report.py", self.folder, "--keys", "k")


def main():
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name))
        good = tierload(0.8, 1000)
        is_(bench.take("W1", 1, good, tierload(0.80, 100)), "", "two good runs are taken")
        is_(bench.check(), 0, "a good case need not be measured again")
        is_(bench.check("other"), 1, "a case of another policy source must be")
        case = json.loads(bench.case.read_text(encoding="utf-8"))
        is_([case["classes"][k] for k in ("hot_faults", "hot_median_ms", "cold_faults",
                                          "cold_median_ms")], [9, 10, 30, 1000],
            "faults are sorted by the page's address and process")
        is_(case["series"], {"threshold_ms": [[1.0, 40]], "slice_s": 2, "heat": [[0, 4, 3]]},
            "threshold and latencies over time, the cut line left out")
        bench.take("W1", 2, good, tierload(0.82, 300))
        bench.take("W1", 3, good, tierload(0.60, 200))
        bench.take("W5", 1, tierload(0.3, 1000), tierload(0.3, 20))
        is_(bench.report()[0], 0, "a report of good cases")
        rows = json.loads((bench.folder / "results.json").read_text(encoding="utf-8"))["cases"]
        rows = {(r["workload"], r["policy"]): r for r in rows}
        is_((rows["W1", "rank"]["runs"], rows["W1", "rank"]["fast_hit_ratio"],
             rows["W1", "rank"]["promotions"]), (3, 0.8, 200), "medians over three runs")
        is_(rows["W5", "rank"]["t90_s"], None, "a time that was never reached is none")
        text = bench.report()[1]
        is_(text.count("MISSED"), 2, "two goals missed: 89 % of the best hits, no gain in time")

        for what, runs, latencies in (
                ("a run that slipped", (tierload(0.8, 9, slip=0.06), good), {}),
                ("a run that dropped accesses", (good, tierload(0.8, 9, dropped_ms=1500)), {}),
                ("hot pages that fault like cold ones", (good, good), {"hot_ms": 101})):
            said = bench.take("W4", 1, *runs, **latencies)
            is_(said.startswith("bench: NOT COMPARED: "), True, f"{what}: said so")
            is_(bench.check(), 1, f"{what}: to be measured again")
            code, text = bench.report()
            is_((code, "W4 rank " in text.split("goal  ")[0].split("ns/access\n")[1]), (1, False),
                f"{what}: in no table, and exit 1")
    print(f"1..{done}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
