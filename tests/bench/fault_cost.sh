#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Instructions that a refused hint fault costs: the kernel alone, with the module idle,
# and under the policies. To be run in the lab, counting instructions:
#
#   make lab RUN=tests/bench/fault_cost.sh FILES=build/tests/bench/faultloop ICOUNT=1
#
# Every page stays where it is: the kernel's own threshold is 0 ms, and so is that of
# `fixed`. So all five take the same way through the kernel except for the decision,
# and the difference of two medians is what the one costs more than the other.
#
# FAULT_COST_MAX: a refused fault under `fixed` may cost so many instructions more than
# the kernel's own; above it the exit status is 1 (default 250).
# FAULT_COST_POLICIES: what is measured (default: kernel fixed).
# $OUT/fault_cost.json gets the figures.
set -u

max=${FAULT_COST_MAX:-250}
policies=${FAULT_COST_POLICIES:-kernel fixed}
knobs=/sys/kernel/debug/sched/numa_balancing
module=/lib/modules/$(uname -r)/updates/tier_policy.ko
bad=0

die()
{
	echo "fault_cost: $*" >&2
	exit 1
}

[ "${LAB_ICOUNT:-0}" = 1 ] || die "needs a machine that counts instructions: make lab ICOUNT=1"
command -v faultloop >/dev/null ||
	die "no faultloop here: add FILES=build/tests/bench/faultloop"

echo 2 >/proc/sys/kernel/numa_balancing || die "cannot switch tiering mode on"
echo 0 >$knobs/hot_threshold_ms
echo 100 >$knobs/scan_delay_ms
echo 200 >$knobs/scan_period_min_ms
echo 200 >$knobs/scan_period_max_ms
echo 256 >$knobs/scan_size_mb

promoted()
{
	echo 1 >/proc/sys/vm/stat_refresh
	awk '$1 == "pgpromote_success" { print $2 }' /proc/vmstat
}

# measure NAME: sets figure (median) and prints the line.
base=
measure()
{
	before=$(promoted)
	line=$(faultloop 1999 4) || die "$1: faultloop failed"
	after=$(promoted)
	figure=${line#*median=}
	figure=${figure%% *}
	low=${line#*min=}
	low=${low%% *}
	high=${line#*p90=}
	high=${high%% *}
	n=${line#faults=}
	n=${n%% *}
	[ -n "$base" ] || base=$figure
	printf '%-18s %8d %8d %8d %+8d %8d\n' "$1" "$low" "$figure" "$high" \
		$((figure - base)) "$n"
	json="$json${json:+, }{\"case\": \"$1\", \"insn_per_refused_fault\": $figure, \"min\": $low, \"p90\": $high, \"over_mainline\": $((figure - base)), \"faults\": $n}"
	[ "$before" = "$after" ] || die "$1: $((after - before)) pages were promoted, so not all was refused"
}

json=
echo "Instructions per refused hint fault, Linux $(uname -r)"
printf '%-18s %8s %8s %8s %8s %8s\n' case min median p90 more faults
measure mode2
insmod "$module" || die "cannot insert $module"
measure "module idle"
# Idle, nothing is hooked: the path is the kernel's, to the instruction.
[ $((figure - base)) -le 5 ] && [ $((base - figure)) -le 5 ] || {
	echo "fault_cost: the idle module costs $((figure - base)) instructions, expected none"
	bad=1
}
for policy in $policies; do
	set -- "$policy"
	[ "$policy" != fixed ] || set -- "$policy" --set hot_threshold_ms=0
	tierctl load "$@" || die "cannot load $policy"
	measure "$policy"
	tierctl unload || die "cannot unload $policy"
	# unload puts the mode back; it was on before, so it is still on.
	[ "$policy" != fixed ] || [ $((figure - base)) -le "$max" ] || {
		echo "fault_cost: $policy costs $((figure - base)) instructions more than the kernel, $max allowed"
		bad=1
	}
done
measure "mode2 again"
[ $((figure - base)) -le 5 ] && [ $((base - figure)) -le 5 ] || {
	echo "fault_cost: after unload a fault costs $((figure - base)) instructions more than before"
	bad=1
}
[ -z "${OUT:-}" ] || echo "[$json]" >"$OUT/fault_cost.json"
exit $bad
