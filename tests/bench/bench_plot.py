# SPDX-License-Identifier: GPL-2.0
"""Plots of `make bench`, by gnuplot: one small chart per workload in each picture."""
import shutil
import subprocess

# Told apart without colour too: by width and dashes.
STYLES = {"mode2": "lc rgb '#888888' lw 2 dt 2"}
LINES = ["lc rgb '#1f5fa8' lw 2", "lc rgb '#b5471b' lw 2", "lc rgb '#2f7d32' lw 2",
         "lc rgb '#7b3fa0' lw 2"]


def write_columns(path, rows):
    path.write_text("".join(" ".join(str(c) for c in row) + "\n" for row in rows) + "\n",
                    encoding="utf-8")


def first_runs(good):
    """{workload: {policy: case}}: what is drawn is the first run of each."""
    out = {}
    for (workload, policy), cases in sorted(good.items()):
        out.setdefault(workload, {})[policy] = min(cases, key=lambda c: c["run"])
    return out


def hits(case, who):
    return [(s["t_s"], 100 * s["fast_hit_ratio"]) for s in case[who]["samples"]]


def promotions(case, who):
    total, rows = 0, []
    for s in case[who]["samples"]:
        total += s["promotions"]
        rows.append((s["t_s"], total))
    return rows


def grid(runs, name, height=190):
    """Two columns of charts."""
    rows, columns = (len(runs) + 1) // 2, min(2, len(runs))
    return [f"set terminal svg size {450 * columns},{height * rows + 20} font 'sans,11' "
            "background '#ffffff'",
            f"set output '{name}'", f"set multiplot layout {rows},{columns}",
            "set grid lc rgb '#dddddd'", "set border 3", "set tics nomirror",
            "set key bottom right samplen 2"]


def curves(runs, folder, stem, ylabel, rows_of, extra=()):
    script = grid(runs, f"{stem}.svg") + list(extra) + ["set xlabel 's' offset 0,0.8"]
    for workload, policies in runs.items():
        parts = []
        base = next(iter(policies.values()))
        series = [("mode2", rows_of(base, "mode2"))]
        series += [(p, rows_of(c, "policy")) for p, c in policies.items()]
        number = 0
        for name, rows in series:
            if not rows:
                continue
            data = folder / "data" / f"{stem}.{workload}.{name}"
            write_columns(data, rows)
            style = STYLES.get(name) or LINES[number % len(LINES)]
            number += name not in STYLES
            parts.append(f"'data/{data.name}' using 1:2 with lines {style} title '{name}'")
        if parts:
            script += [f"set title '{workload}' offset 0,-0.7", f"set ylabel '{ylabel}'",
                       "plot " + ", ".join(parts)]
    return script + ["unset multiplot"]


def thresholds(case, who):
    if who == "mode2":
        return []       # the kernel does not tell it
    return [(t, ms) for t, ms in case["series"]["threshold_ms"] if ms]


def heat(runs, folder):
    rows, columns = (len(runs) + 1) // 2, min(2, len(runs))
    script = [f"set terminal pngcairo size {450 * columns},{210 * rows + 20} font 'sans,9'",
              "set output 'latency.png'", f"set multiplot layout {rows},{columns}",
              "set palette defined (0 '#ffffff', 1 '#9ecae1', 2 '#2171b5', 3 '#08306b')",
              "set logscale cb", "set cblabel 'pages/s'", "set xlabel 's' offset 0,0.8",
              "set ylabel 'latency, ms'", "unset key",
              "set ytics (" + ", ".join(f"'{(1 << o) >> 1}' {o}" for o in range(1, 18, 3)) + ")"]
    for workload, policies in runs.items():
        case = next(iter(policies.values()))
        slice_s = case["series"]["slice_s"]
        data = folder / "data" / f"latency.{workload}"
        write_columns(data, [((t + 0.5) * slice_s, o, n / slice_s)
                             for t, o, n in case["series"]["heat"]])
        script += [f"set title '{workload}, {case['policy_name']}' offset 0,-0.7",
                   "set yrange [0:17.5]",
                   f"plot 'data/{data.name}' using 1:2:($1-{slice_s / 2}):($1+{slice_s / 2}):"
                   "($2-0.5):($2+0.5):3 with boxxyerror fill solid noborder lc palette"]
    return script + ["unset multiplot"]


def draw(good, folder):
    """Write the plots into folder; returns (file name, caption) of each."""
    if not shutil.which("gnuplot"):
        print("bench: no gnuplot, so no plots; install gnuplot-nox (scripts/deps.sh bench)")
        return []
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "data").mkdir(parents=True)
    runs = first_runs(good)
    pictures = [
        ("hits.svg", "Share of accesses served by fast memory, %, run 1",
         curves(runs, folder, "hits", "fast hits, %", hits,
                ["set yrange [0:100]", "set ytics 25"])),
        ("promotions.svg", "Promotions since the start of the run, run 1",
         curves(runs, folder, "promotions", "promotions", promotions, ["set key top left"])),
        ("threshold.svg", "Threshold in force, ms (mode 2 does not tell its own), run 1",
         curves(runs, folder, "threshold", "threshold, ms", thresholds, ["set key top right"])),
        ("latency.png", "Scan-to-fault latency of the faults under the policy, run 1",
         heat(runs, folder)),
    ]
    done = []
    for name, caption, script in pictures:
        path = folder / (name.split(".")[0] + ".gp")
        path.write_text("\n".join(script) + "\n", encoding="utf-8")
        made = subprocess.run(["gnuplot", path.name], cwd=folder, capture_output=True, text=True,
                              check=False)
        if made.returncode or not (folder / name).stat().st_size:
            print(f"bench: gnuplot could not draw {name}: {made.stderr.strip()[-300:]}")
            continue
        done.append((name, caption))
    return done
