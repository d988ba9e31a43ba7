#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# bench.sh [OPTION]...: policies beside the kernel's own mode 2, in the lab. Called by
# `make bench`, which has built everything.
#
#   --build DIR      where the build is (default build)
#   --kernel NAME    lab kernel (default: the first of kernels.list)
#   --workloads "W1 ..."  (default W1 to W8, and W2M: W2 through memcached)
#   --policies "rank ..." (default rank)
#   --runs N         machines booted per workload and policy (default 3); run number n
#                    has seed n, odd ones start with mode 2, even ones with the policy
#   --seconds N      length of a run (default: the workload's own, see below)
#   --jobs N         machines at a time (default: half the CPUs here, for each has two; paced
#                    like these they need less, so see whether the pace holds with more)
#   --limit N        boot at most N machines now, then report what there is
#   --fresh          forget the cases that were measured before
#   --latency-ns "FAST SLOW"  modelled latencies of the tiers (default "100 250")
#   --no-cost        leave the costs out
#
# One machine is booted per case: in it mode 2 and the policy run one after the other, the
# same workload from the same seed. What it left is kept in BUILD/bench/cases, and is taken
# again if the policy's source changed or if the runs cannot be compared (bench_case.py
# says why). So a bench that was interrupted goes on where it was.
#
# Writes BUILD/bench/results.json and BUILD/bench/benchmarks.md with its plots; of a bench of all
# workloads that page also goes to docs/.
#
# Exit: 0 all was measured and could be compared, 1 not all, 2 usage.
set -euo pipefail

me=bench.sh
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)

# The machine, and what all workloads have in common.
fast_mb=128 slow_mb=512 cpus=2
scan_delay_ms=50 scan_period_ms=800 scan_size_mb=12
# kswapd demotes as much at a time as the watermarks are high. By default they are a twentieth of
# a node so small, on a machine with 64 GiB about a thousandth: so low they are here, too.
min_free_kb=1024
# Memory lies where the kernel puts it: fast memory first, then slow memory. So the fast node
# is full from the start, and promoting means demoting.
common=(--mib 160 --rate 50000 --place default)
classes_s=10

# workload NAME: sets args, and seconds for the latencies of the two classes of pages: 0 where
# pages do not fall into classes. After a minute promotions are those of a steady state; the
# length is such that these outweigh those of the start.
# W3, W4 and W7 spin while they wait, as programs do that only wait for memory. The scanner counts
# CPU time: who sleeps is scanned slowly, and faster if the promotions take more of his time.
# W3 is looked at more often, for the time after a move is what counts there.
# W4 walks over its cold pages in six seconds, a scan takes five: then some pages are walked over
# just after they were scanned, and look hot. If a scan is much faster, all of them wait for the
# next walk, and nobody takes them for hot.
# W5 is slower: what mode 2 promotes there takes so much time that the pace would slip.
# W7 is slower, for of the 512 pages of a huge page any access is the first one. It begins on
# the slow node: in a full fast node of this size no block for a huge page is ever free, and
# nobody promotes one.
# A memcached, paced so that it keeps up, takes less CPU time than the others: its scan period
# is shorter.
workload()
{
	local classes=$classes_s length=240 period=$scan_period_ms
	case $1 in
	W1) args=(hotcold "${common[@]}") ;;
	W2) args=(zipf "${common[@]}"); classes=0 ;;
	W3) args=(moving "${common[@]}" --move-s 30 --report-ms 250 --pace spin); length=180 ;;
	W4) args=(scanmix "${common[@]}" --hot-share 87 --pace spin); period=5000 ;;
	W5) args=(uniform "${common[@]}" --rate 25000); classes=0 ;;
	W6) args=(two "${common[@]}" --hot-pages 768 --hot-share 95 --stream-share 5) ;;
	W7) args=(hotcold "${common[@]}" --rate 5000 --pace spin --thp on --place slow); length=90 ;;
	W8) args=(gups "${common[@]}") ;;
	W2M) args=(memcached --records 36000 --rate 500); classes=0 period=400 ;;
	*) return 1 ;;
	esac
	length=${seconds:-$length}
	args+=(--seconds "$length" --fast-ns "${latency_ns% *}" --slow-ns "${latency_ns#* }")
	classes_now=$classes length_now=$length period_now=$period
}

# In this order those that spin (W3, W4, W7) are not beside each other on two machines.
all="W1 W3 W2 W4 W5 W7 W6 W8 W2M"
build=$top/build kernel='' workloads=$all policies=rank runs=3 limit=-1 fresh=0 cost=1
latency_ns="100 250" seconds='' jobs=$((($(nproc) + 1) / 2))

say()
{
	echo "bench: $*"
}

usage()
{
	echo "$me: $*; try --help" >&2
	exit 2
}

while [ $# -gt 0 ]; do
	case $1 in
	-h | --help) sed -n '3,/^set -/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" | grep -v '^set '; exit 0 ;;
	--fresh) fresh=1; shift; continue ;;
	--no-cost) cost=0; shift; continue ;;
	--build | --kernel | --workloads | --policies | --runs | --limit | --latency-ns | --seconds | --jobs)
		[ $# -ge 2 ] || usage "option '$1' needs a value" ;;
	*) usage "unknown argument '$1'" ;;
	esac
	case $1 in
	--build) build=$2 ;;
	--kernel) kernel=$2 ;;
	--workloads) workloads=$2 ;;
	--policies) policies=$2 ;;
	--runs) runs=$2 ;;
	--limit) limit=$2 ;;
	--seconds) seconds=$2 ;;
	--jobs) jobs=$2 ;;
	--latency-ns) latency_ns=$2 ;;
	esac
	shift 2
done
[[ $runs =~ ^[1-9][0-9]?$ ]] || usage "--runs takes a number from 1 to 99, not '$runs'"
[[ $limit =~ ^-?[0-9]+$ ]] || usage "--limit takes a number, not '$limit'"
[[ $seconds =~ ^([1-9][0-9]{1,3})?$ ]] ||
	usage "--seconds takes a number from 10 to 9999, not '$seconds'"
[[ $jobs =~ ^[1-9][0-9]?$ ]] || usage "--jobs takes a number from 1 to 99, not '$jobs'"
[[ $latency_ns =~ ^[0-9]+\ [0-9]+$ ]] ||
	usage "--latency-ns takes two numbers, fast and slow, not '$latency_ns'"
[ -n "$kernel" ] || kernel=$(awk '!/^#/ && NF { print $1; exit }' "$top/tests/lab/kernels.list")
for name in $workloads; do
	workload "$name" || usage "no workload '$name': $all"
done
for policy in $policies; do
	[ -f "$top/bpf/policy_$policy.bpf.c" ] || usage "no policy '$policy' in bpf/"
done

out=$build/bench
root=$build/lab/$kernel/root
bench_case=$here/bench_case.py
[ -d "$root" ] || { echo "$me: $root is not there; run make bench" >&2; exit 1; }
[ "$fresh" = 0 ] || rm -rf "$out/cases" "$out/cost"
mkdir -p "$out/cases"
qemu=$(qemu-system-x86_64 --version | sed -n '1s/.*version \([0-9.]*\).*/\1/p')

# key WORKLOAD POLICY: of all that decides what a case shows: the sources of the policy's
# decisions (not the kit's: it counts and passes them on), the workload with its generator, the
# machine.
key()
{
	local file=$top/bpf/policy_$2.bpf.c
	workload "$1"
	{
		cat "$here"/tierload*.[ch] "$here"/clock.h "$here"/bench_guest.sh
		[ "${args[0]}" != memcached ] || cat "$here/kvload.c"
		# shellcheck disable=SC2046 # names without blanks
		(cd "$top/include" && cat "$file" $(sed -n 's/^#include <\(tier\/.*\)>/\1/p' "$file" |
			grep -v '^tier/policy.bpf.h$'))
		echo "${args[*]} $classes_now $fast_mb $slow_mb $cpus $scan_delay_ms" \
			"$period_now $scan_size_mb $min_free_kb $kernel"
	} | sha256sum | cut -c1-16
}

# boot OUT LAB-OPTION...: one machine. What it says and leaves is kept in OUT.
boot()
{
	local into=$1 status=0
	shift
	rm -rf "$into"
	mkdir -p "$into"
	"$top/tests/lab/run.sh" --kernel "$kernel" --root "$root" --out "$into" "$@" \
		>"$into/log" 2>&1 || status=$?
	return $status
}

# measure WORKLOAD POLICY RUN
measure()
{
	local case=$out/cases/$1.$2.$3 order=mode2 status=0
	[ $(($3 % 2)) = 1 ] || order=policy
	workload "$1"
	say "$1 $2, run $3 of $runs: ${args[*]} --seed $3 ($order first)"
	boot "$case.new" --fast-mb $fast_mb --slow-mb $slow_mb --cpus $cpus \
		--timeout $((400 + 4 * length_now)) \
		--run "$here/bench_guest.sh" --file "$build/tests/bench/tierload" \
		--file "$build/tests/bench/kvload" --file "$(command -v memcached)" \
		--file "$build/tests/guest/jget" --env BENCH_SCAN_DELAY_MS=$scan_delay_ms \
		--env BENCH_SCAN_PERIOD_MS="$period_now" --env BENCH_SCAN_SIZE_MB=$scan_size_mb \
		--env BENCH_MIN_FREE_KB=$min_free_kb \
		-- "$2" "$order" "$classes_now" "${args[@]}" --seed "$3" || status=$?
	if [ "$status" != 0 ]; then
		say "FAILED (status $status):"
		tail -n 8 "$case.new/log" | sed 's/^/  /'
		return 1
	fi
	"$bench_case" take "$case.new" "$case.json" --workload "$1" --policy "$2" --run "$3" \
		--order "$order" --key "$(key "$1" "$2")" --lab fast_mb=$fast_mb slow_mb=$slow_mb \
		cpus=$cpus min_free_kb=$min_free_kb qemu="$qemu" || return 1
	rm -rf "$case.new"
}

# spend: one of the boots that --limit allows; fails when there is none left.
spend()
{
	[ "$limit" != 0 ] || return 1
	limit=$((limit - 1))
}

# each COMMAND: for every case, COMMAND WORKLOAD POLICY RUN. All workloads once before any a
# second time: an interrupted bench shows the most.
each()
{
	local run name policy
	for ((run = 1; run <= runs; run++)); do
		for name in $workloads; do
			for policy in $policies; do
				"$1" "$name" "$policy" "$run"
			done
		done
	done
}

measured()
{
	"$bench_case" check "$out/cases/$1.$2.$3.json" --key "$(key "$1" "$2")"
}

# Measures a case beside others, if there is none yet and --limit allows it.
start()
{
	! measured "$@" || return 0
	while [ "$(jobs -pr | wc -l)" -ge "$jobs" ]; do
		wait -n || true
	done
	spend || return 0
	set -m		# a process group of its own, to be stopped as a whole
	measure "$@" </dev/null &
	set +m
}

stop_all()
{
	local job
	for job in $(jobs -p); do
		kill -- "-$job" 2>/dev/null || true
	done
}
trap stop_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

count()
{
	! measured "$@" || return 0
	if [ "$limit" = 0 ]; then
		left=$((left + 1))
	else
		failed=$((failed + 1))
	fi
}

failed=0 left=0
# A busy host may spoil some, so there is a second try.
for _ in 1 2; do
	each start
	wait
done
each count

# ---- costs ----

# Of what every fault runs through, and of the scripts that measure it.
cost_digest()
{
	cat "$top"/kmod/*.[ch] "$top"/include/tier/* "$top"/bpf/* "$here/fault_cost.sh" |
		sha256sum | cut -c1-16
}

measure_cost()
{
	local now names dir=$out/cost
	now=$(cost_digest)
	[ "$(cat "$dir/digest" 2>/dev/null)" != "$now" ] || return 0
	spend || { left=$((left + 1)); return 0; }
	names=$(cd "$top/bpf" && echo policy_*.bpf.c | sed 's/policy_//g; s/\.bpf\.c//g')
	say "instructions per hint fault"
	if ! boot "$dir" --fast-mb 512 --slow-mb 512 --icount --timeout 1800 \
		--env FAULT_COST_POLICIES="$names fixed:bare rank:bare" \
		--env FAULT_COST_PROMOTED="mode2 $names" \
		--run "$here/fault_cost.sh" --file "$build/tests/bench/faultloop"; then
		say "FAILED:"
		tail -n 8 "$dir/log" | sed 's/^/  /'
		# The figures count even if one of them is above its limit.
		[ -s "$dir/fault_cost.json" ] || return 1
	fi
	native_cost "$dir" || return 1
	echo "$now" >"$dir/digest"
}

# What runs on this machine's own kernel; it needs root for bpf(2).
native_cost()
{
	local name program status=0
	for name in decision_cost scale; do
		program=$out/$name
		[ -x "$program" ] || continue
		if [ "$(id -u)" != 0 ]; then
			say "$name left out: loading BPF programs here needs root"
			continue
		fi
		say "$name (on this machine's own kernel)"
		"$program" --json "$1/$name.json" >"$1/$name.log" 2>&1 || {
			say "$name says:"
			tail -n 8 "$1/$name.log" | sed 's/^/  /'
			[ -s "$1/$name.json" ] || status=1
		}
	done
	return $status
}

[ "$cost" = 0 ] || measure_cost || failed=$((failed + 1))

[ "$left" = 0 ] || say "$left boots left for the next call"
[ "$failed" = 0 ] || say "$failed failed"
# Only a page about all workloads is worth being published.
publish=()
[ "$workloads" != "$all" ] || [ "$left$failed" != 00 ] || publish=(--docs "$top/docs")
keys=()
for policy in $policies; do
	for name in $workloads; do
		keys+=("$(key "$name" "$policy")")
	done
done
status=0
default=$(sed -n 's/^#define TIERCTL_DEFAULT_POLICY[[:space:]]*"\(.*\)"/\1/p' "$top/user/tierctl.h")
"$here/bench_report.py" "$out" --keys "${keys[@]}" --default-policy "$default" \
	"${publish[@]}" || status=$?
[ "$failed" = 0 ] && [ "$left" = 0 ] && [ "$status" = 0 ]
