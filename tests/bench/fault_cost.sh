#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Instructions that a hint fault costs: under the kernel alone, with the module idle, and
# under the policies. To be run in the lab, counting instructions:
#
#   make lab RUN=tests/bench/fault_cost.sh FILES=build/tests/bench/faultloop ICOUNT=1
#
# Refused: the kernel's own threshold is 0 ms, and so is that of a policy that has one; the
# pages stay where they are. All cases take the same way through the kernel but for the decision, and
# the difference of two means is what the one costs more than the other: means, for a policy
# may look at some pages more closely than at most. One that promotes some pages all the same
# (rank) is judged by the faults that it refused.
# Promoted: the kernel's threshold is 60 s; what migration costs is in there.
#
# FAULT_COST_MAX: a refused fault under `fixed` or `rank` may cost so many instructions more
# than the kernel's own; above it the exit status is 1 (default 130).
# FAULT_COST_POLICIES: what is measured: any policies, NAME:bare for without the observer
# (default: kernel fixed fixed:bare rank).
# FAULT_COST_PROMOTED: of these the promoted faults (default: mode2 fixed mru; mode2 stands
# for the kernel alone).
# $OUT/fault_cost.json gets the figures.
set -u

max=${FAULT_COST_MAX:-130}
policies=${FAULT_COST_POLICIES:-kernel fixed fixed:bare rank}
promoted=${FAULT_COST_PROMOTED-mode2 fixed mru}
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
echo 256 >$knobs/scan_size_mb

# scan_each MS: of CPU time
scan_each()
{
	for knob in scan_delay_ms scan_period_min_ms scan_period_max_ms; do
		echo "$1" >$knobs/$knob
	done
}
scan_each 200

# settle: rank leaves its first second to the kernel, and looks at each page in its first half
# minute of seconds with faults; here these are few and far between, for idle time takes no
# instructions.
settle()
{
	scan_each 20
	for _ in $(seq 32); do
		faultloop 97 1 >/dev/null || die "faultloop failed"
		sleep 1
	done
	scan_each 200
}

# measure NAME [SKIP]: sets figure (mean), prints the line; the first SKIP rounds do not
# count.
base=
measure()
{
	line=$(faultloop 1999 4 "${2:-0}") || die "$1: faultloop failed"
	for field in $line; do
		case $field in
		faults=*) n=${field#*=} ;;
		min=*) low=${field#*=} ;;
		median=*) middle=${field#*=} ;;
		mean=*) figure=${field#*=} ;;
		p90=*) high=${field#*=} ;;
		promoted=*) up=${field#*=} ;;
		esac
	done
	if [ "$n" -lt 100 ]; then	# it promotes nearly all, as mru does
		figure=
		printf '%-18s %8s %8s %8s %8s %8s %8d %8d\n' "$1" - - - - - "$n" "$up"
		return
	fi
	[ -n "$base" ] || base=$figure
	printf '%-18s %8d %8d %8d %8d %+8d %8d %8d\n' "$1" "$low" "$middle" "$figure" "$high" \
		$((figure - base)) "$n" "$up"
	json="$json${json:+, }{\"case\": \"$1\", \"insn_per_refused_fault\": $figure, \"min\": $low, \"median\": $middle, \"p90\": $high, \"over_mainline\": $((figure - base)), \"faults\": $n}"
}

# over_limit LIMIT: is the last figure above it, or was nothing measured?
over_limit()
{
	[ -z "$figure" ] || [ $((figure - base)) -gt "$1" ]
}

# measure_up NAME: the promoted ones.
up_base=
measure_up()
{
	line=$(faultloop 1999 2) || die "$1: faultloop failed"
	up=${line#* promoted=}
	up=${up%% *}
	up_figure=${line#*promoted_median=}
	if [ "$up" -lt 100 ]; then	# it wants to know the pages better first, as rank does
		printf '%-18s %8s %8s %8s %8s %8s %8s %8d\n' "$1 promoted" - - - - - - "$up"
		[ -n "$up_base" ] || die "the kernel promoted next to nothing, so there is nothing to compare with"
		return
	fi
	[ -n "$up_base" ] || up_base=$up_figure
	printf '%-18s %8s %8d %8s %8s %+8d %8s %8d\n' "$1 promoted" - "$up_figure" - - \
		$((up_figure - up_base)) - "$up"
	json="$json${json:+, }{\"case\": \"$1\", \"insn_per_promoted_fault\": $up_figure, \"over_mainline\": $((up_figure - up_base)), \"faults\": $up}"
}

# load POLICY[:bare] THRESHOLD_MS
load()
{
	threshold=$2 bare=
	[ "$1" = "${1%:bare}" ] || bare=--no-observer
	set -- "${1%:bare}"
	# "hot_threshold_ms" as a whole word: a parameter of that name
	tierctl info "$1" --json | grep -q '"hot_threshold_ms"' &&
		set -- "$@" --set hot_threshold_ms="$threshold"
	[ -z "$bare" ] || set -- "$@" "$bare"
	tierctl load "$@" || die "cannot load $1"
}

json=
echo "Instructions per hint fault, Linux $(uname -r)"
printf '%-18s %8s %8s %8s %8s %8s %8s %8s\n' case min median mean p90 more refused promoted
measure mode2
[ -n "$base" ] || die "the kernel refused next to nothing, so there is nothing to compare with"
insmod "$module" || die "cannot insert $module"
measure "module idle"
# Idle, nothing is hooked: the path is the kernel's, to the instruction.
[ $((figure - base)) -le 5 ] && [ $((base - figure)) -le 5 ] || {
	echo "fault_cost: the idle module costs $((figure - base)) instructions, expected none"
	bad=1
}
for policy in $policies; do
	load "$policy" 0
	# then it needs some rounds to see what is cold
	if [ "${policy%:bare}" = rank ]; then
		settle
		measure "$policy" 10
	else
		measure "$policy"
	fi
	# unload puts the mode back; it was on before, so it is still on.
	tierctl unload || die "cannot unload $policy"
	case $policy in
	fixed* | rank*) ;;
	*) continue ;;
	esac
	! over_limit "$max" || {
		echo "fault_cost: $policy: not measured, or above the $max instructions more than the kernel's that are allowed"
		bad=1
	}
done
measure "mode2 again"
[ $((figure - base)) -le 5 ] && [ $((base - figure)) -le 5 ] || {
	echo "fault_cost: after unload a fault costs $((figure - base)) instructions more than before"
	bad=1
}
[ -z "$promoted" ] || echo 60000 >$knobs/hot_threshold_ms
for policy in $promoted; do
	[ "$policy" = mode2 ] || load "$policy" 60000
	measure_up "$policy"
	[ "$policy" = mode2 ] || tierctl unload || die "cannot unload $policy"
done
[ -z "${OUT:-}" ] || echo "[$json]" >"$OUT/fault_cost.json"
exit $bad
