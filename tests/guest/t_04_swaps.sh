#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A thousand live swaps under load: no fault is left undecided, no counter goes back.
# lab: --fast-mb 256 --slow-mb 768 --timeout 400
. ./lib.sh

SWAPS=1000

quick_scans 200
machine_state >"$T_DIR/before"
dmesg_mark
need "load fixed" tierctl load fixed --set hot_threshold_ms=100

setsid tierload hotcold --mib 128 --hot-pages 2048 --rate 60000 --seconds 300 --threads 2 \
	--place slow --quiet >"$T_DIR/load.out" 2>&1 &
load=$!
wait_for 90 "slow faults" counter_over slow_faults 5000 ||
	bail "the workload makes no slow faults"

# Counters are read all the time while policies change under them.
(
	set -e
	while [ ! -e "$T_DIR/enough" ]; do
		tierctl stats --json >"$T_DIR/s.json"
		echo "$(jget -s "$T_DIR/s.json" 'nodes.*.as_target.faults.*')" \
			"$(jget -s "$T_DIR/s.json" 'nodes.*.as_target.pages.*')" \
			"$(jget -s "$T_DIR/s.json" 'nodes.*.as_source.faults.*')" \
			"$(jget -s "$T_DIR/s.json" 'nodes.*.latency_hist.*.pages')" \
			"$(jget -s "$T_DIR/s.json" observer.promoted_pages)" \
			"$(value "$MODULE_SYSFS/counters" slow_faults)" \
			"$(value "$MODULE_SYSFS/counters" policy_calls)" >>"$T_DIR/series"
	done
) >"$T_DIR/reader.out" 2>&1 &
reader=$!

# A reading is exact when no fault falls into it: the workload stands still for it.
kill -STOP -$load
reading "$T_DIR/a"
kill -CONT -$load
swaps_before=$(counter swaps)
for policy in mru fixed kernel fixed; do
	runs "tierctl swap $policy under load" tierctl swap $policy
done
runs "$SWAPS swaps by the link" swapstorm "$PIN_DIR/link" $SWAPS tierctl swap mru
sed 's/^/# /' "$T_DIR/runs"
touch "$T_DIR/enough"
wait $reader
is $? 0 "counters could be read all the time"
[ ! -s "$T_DIR/reader.out" ] || sed 's/^/# reader: /' "$T_DIR/reader.out"
kill -TERM -$load
wait $load
reading "$T_DIR/b"

is $(($(counter swaps) - swaps_before)) $((SWAPS + 5)) "the module counted them"
slow=$(grown "$T_DIR/a" "$T_DIR/b" module slow_faults)
holds "faults came meanwhile" "$slow" -gt 1000
for name in undecided bad_verdicts ejections; do
	is "$(grown "$T_DIR/a" "$T_DIR/b" module $name)" 0 "$name"
done
is "$(grown "$T_DIR/a" "$T_DIR/b" module policy_calls)" "$slow" "each slow fault went to a policy"
is "$(grown_sum "$T_DIR/a" "$T_DIR/b" 'nodes.*.as_target.faults.*')" "$slow" \
	"each is counted under a reason, across all swaps"
is "$((slow + $(grown "$T_DIR/a" "$T_DIR/b" module other_faults)))" \
	"$(decided_faults "$T_DIR/a" "$T_DIR/b")" "and they are the kernel's hint faults"

readings=$(wc -l <"$T_DIR/series")
holds "several readings were taken" "$readings" -ge 5
back=$(awk '{ for (i = 1; i <= NF; i++) { if ($i < last[i]) print "reading", NR, "column", i, last[i], "->", $i; last[i] = $i } }' "$T_DIR/series")
is "$back" "" "no counter ever went back in $readings readings"

runs "status after it" tierctl status
is "$(tierctl status --json | jget - policy)" mru "the last policy is in force"
runs "unload" tierctl unload
same_state "$T_DIR/before" "nothing is left behind"
quiet_kernel "the kernel said nothing above notice"
done_testing
