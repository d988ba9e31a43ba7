#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# guest.sh: the demo, inside a machine with two memory tiers.
#
# Four runs of one paced workload with one seed: the kernel's own mode 2, policy
# fixed, policy mru, then fixed again with two live swaps in the middle of it.
# Leaves result.json in $OUT; exits 0 only if every promise was kept.
set -u

SECONDS_PER_RUN=${DEMO_SECONDS:-28}
HOT_THRESHOLD_MS=${DEMO_HOT_THRESHOLD_MS:-500}
KNOBS=/sys/kernel/debug/sched/numa_balancing
failures=0

say()
{
	echo "demo: $*"
}

broken()
{
	echo "demo: NOT KEPT: $*"
	failures=$((failures + 1))
}

vmstat()
{
	awk -v name="$1" '$1 == name { print $2 }' /proc/vmstat
}

# reading FILE: what vmstat and we have counted, at one moment: read again until
# no fault fell in between.
reading()
{
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		echo 1 >/proc/sys/vm/stat_refresh
		before=$(vmstat numa_hint_faults)
		[ "$1" = none ] || tierctl stats --json >"$1" || return 1
		hint_faults=$(vmstat numa_hint_faults)
		local_faults=$(vmstat numa_hint_faults_local)
		promotions=$(vmstat pgpromote_success)
		demotions=$(($(vmstat pgdemote_kswapd) + $(vmstat pgdemote_direct) + $(vmstat pgdemote_khugepaged)))
		[ "$before" != "$hint_faults" ] || return 0
		sleep 0.2
	done
	return 0
}

# Per second: where the accesses went, what moved, how the faults were judged.
show()
{
	last=$(cat /tmp/verdicts 2>/dev/null || echo "0 0 0 0")
	printf '%-7s %4s %6s %8s %8s   %s\n' policy s fast% promoted demoted 'node 0, candidates: hot any, refused: cold rate'
	while read -r t hits _ _ _ promote candidates demote _ _ slip; do
		case $t in [0-9]*.[0-9]) ;; *) continue ;; esac
		[ -n "${slip:-}" ] || continue
		now=mode2
		verdicts="kernel: candidates $candidates"
		if [ "$1" != mode2 ]; then
			now=$(cat /sys/kernel/tier_policy/policy)
			tierctl stats --json >/tmp/now.json
			# In the order of decisions.def: 2 hot, 4 any, 7 cold, 8 rate.
			new=$(jget /tmp/now.json 'nodes.node=0.as_target.faults.*' |
				awk 'NR == 2 || NR == 4 || NR == 7 || NR == 8' | tr '\n' ' ')
			verdicts=$(echo "$last $new" | awk '{
				printf "hot %d any %d, cold %d rate %d", $5-$1, $6-$2, $7-$3, $8-$4 }')
			last=$new
			echo "$new" >/tmp/verdicts
		fi
		printf '%-7s %4.0f %6s %8s %8s   %s\n' "$now" "$t" "$hits" "$promote" "$demote" "$verdicts"
	done
}

# run NAME: one run of the workload; its figures go to /tmp/NAME.json.
run()
{
	name=$1
	if [ "$name" = mode2 ]; then reading none; else reading /tmp/begin.json || broken "stats before $name"; fi
	faults_begin=$hint_faults local_begin=$local_faults promotions_begin=$promotions demotions_begin=$demotions
	tierload hotcold --mib 192 --hot-pages 2048 --rate 50000 --seconds "$SECONDS_PER_RUN" --seed 7 \
		--json "$OUT/workload-$name.json" >/tmp/pipe 2>/tmp/tierload.err &
	workload=$!
	show "$name" </tmp/pipe &
	shower=$!
	if [ "$name" = swaps ]; then
		sleep $((SECONDS_PER_RUN / 4))
		swap mru
		sleep $((SECONDS_PER_RUN / 4))
		swap fixed --set hot_threshold_ms="$HOT_THRESHOLD_MS"
	fi
	wait $workload || { broken "workload under $name: $(cat /tmp/tierload.err)"; }
	wait $shower
	accounted=0 policy=$name
	if [ "$name" = mode2 ]; then
		reading none
	else
		reading /tmp/end.json || broken "stats after $name"
		[ "$(jget /tmp/end.json accounted)" = true ] || broken "faults under $name are not all accounted for"
		accounted=$(($(jget /tmp/end.json faults_counted) - $(jget /tmp/begin.json faults_counted)))
		# A fault on a page of the CPU's own node is none of a promotion policy's.
		remote=$((hint_faults - faults_begin - local_faults + local_begin))
		[ $remote = $accounted ] ||
			broken "$name: $remote hint faults on other nodes' pages, $accounted accounted for"
	fi
	ratio=$(jget "$OUT/workload-$name.json" totals.fast_hit_ratio_final)
	printf '{"policy":"%s","fast_hit_ratio":%s,"promotions":%d,"demotions":%d,"hint_faults":%d,"faults_accounted":%d}' \
		"$policy" "$ratio" $((promotions - promotions_begin)) $((demotions - demotions_begin)) \
		$((hint_faults - faults_begin)) "$accounted" >"/tmp/$name.json"
}

swaps=0
swap()
{
	say "tierctl swap $* (live)"
	if tierctl swap "$@"; then swaps=$((swaps + 1)); else broken "swap to $1"; fi
}

mkfifo /tmp/pipe
echo 1 >/sys/kernel/mm/numa/demotion_enabled
echo 50 >$KNOBS/scan_delay_ms
echo 800 >$KNOBS/scan_period_min_ms
echo 800 >$KNOBS/scan_period_max_ms
echo 12 >$KNOBS/scan_size_mb

say "Linux $(uname -r), fast node 0: $LAB_FAST_MB MiB, slow node 1: $LAB_SLOW_MB MiB"
say "workload: 192 MiB, 2048 hot pages get 90 % of 50 000 accesses/s, all start on the slow node"
say "the kernel's own algorithm: numa_balancing = 2"
echo 2 >/proc/sys/kernel/numa_balancing
run mode2
echo 0 >/proc/sys/kernel/numa_balancing

say "tierctl load fixed --set hot_threshold_ms=$HOT_THRESHOLD_MS"
tierctl load fixed --set hot_threshold_ms="$HOT_THRESHOLD_MS" || { broken "load fixed"; exit 1; }
[ "$(cat /proc/sys/kernel/numa_balancing)" = 2 ] || broken "load did not switch tiering mode on"
run fixed
swap mru
run mru
swap fixed --set hot_threshold_ms="$HOT_THRESHOLD_MS"
run swaps
tierctl stats
say "tierctl unload"
tierctl unload || broken "unload"
[ "$(cat /proc/sys/kernel/numa_balancing)" = 0 ] || broken "unload did not restore numa_balancing"
[ ! -e /sys/kernel/tier_policy ] || broken "the module is still there"

field()
{
	jget "/tmp/$1.json" "$2"
}

fewer=$([ "$(field fixed promotions)" -lt "$(field mru promotions)" ] && echo 1 || echo 0)
[ "$fewer" = 1 ] || broken "fixed promoted no less than mru"
[ "$(field fixed promotions)" -gt 0 ] || broken "fixed promoted nothing"
[ $swaps = 4 ] || broken "$swaps of 4 swaps"

echo
printf '%-7s %14s %12s %10s %12s %12s\n' policy 'fast hits, end' promotions demotions 'hint faults' accounted
for name in mode2 fixed mru swaps; do
	printf '%-7s %12.1f %% %12d %10d %12d %12s\n' $name \
		"$(field $name fast_hit_ratio | awk '{ print 100 * $1 }')" "$(field $name promotions)" \
		"$(field $name demotions)" "$(field $name hint_faults)" \
		"$([ $name = mode2 ] && echo - || field $name faults_accounted)"
done
echo
passed=$([ $failures = 0 ] && echo true || echo false)
printf '{"kernel":"%s","fast_mb":%d,"slow_mb":%d,"swaps":%d,"passed":%s,"runs":[%s,%s,%s,%s]}\n' \
	"$(uname -r)" "$LAB_FAST_MB" "$LAB_SLOW_MB" "$swaps" "$passed" \
	"$(cat /tmp/mode2.json)" "$(cat /tmp/fixed.json)" "$(cat /tmp/mru.json)" "$(cat /tmp/swaps.json)" \
	>"$OUT/result.json"
[ $failures = 0 ]
