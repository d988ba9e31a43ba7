#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# rank: the hot set gets fast, the threshold never opens fully although no limit is set, and pages that are all alike are not moved round and round.
#
# mainline moves them: its threshold climbs to twice its reference, for the default limit
# is never reached.
# lab: --fast-mb 160 --slow-mb 512 --timeout 500
# paced
. ./lib.sh
. ./lib3.sh

MIB=128
HOT=2048		# touched every 45 ms
RATE=50000
LEAST_PERCENT=85
OPEN_MS=6000		# the others return after so long on average: all would pass
ALIKE_MIB=96		# of these not half fit
ALIKE_RATE=25000
MAINLINE_MS=2000	# twice its reference

threshold()
{
	tierctl stats --json | jget - "nodes.node=$FAST_NODE.threshold_ms"
}

# watch_threshold FILE: a reading a second, until killed.
watch_threshold()
{
	while :; do
		threshold >>"$1"
		sleep 1
	done
}

# uniform POLICY: pages that are all alike; $UP are the promotions of the settled half.
uniform()
{
	runs "uniform, $1: workload ran" load_run "$1" uniform --mib $ALIKE_MIB --rate $ALIKE_RATE \
		--seconds 18 --place slow --pace spin
	UP=$(settled_sum "$1" promotions)
	note "uniform, $1: $(kernel_of "$1" promotions) up, $UP of them in the second half," \
		"$(kernel_of "$1" demotions) down"
}

steady_scans
tiering_on
demotion_on
need "load rank" tierctl load rank
watch_threshold "$T_DIR/rank" &
watch=$!
reading "$T_DIR/a"
runs "hot set: $LEAST_PERCENT % of it get fast" hot_until hot 90 $LEAST_PERCENT 32 hotcold \
	--mib $MIB --hot-pages $HOT --rate $RATE --place slow --pace spin
reading "$T_DIR/b"
kill $watch
note "hot set: thresholds in ms:" $(cat "$T_DIR/rank")
note "hot set: fast part of it:" $(jget "$T_DIR/hot.json" 'samples.*.hot_fast_ratio')
highest=$(sort -n "$T_DIR/rank" | tail -n 1)
holds "hot set: there was a threshold" "$highest" -gt 0
holds "hot set: highest threshold in ms" "$highest" -lt $OPEN_MS
is "$(tierctl get rate_limit_mbps)" 0 "hot set: although no limit is set"
refused=$(decided "$T_DIR/a" "$T_DIR/b" cold)
refused=$((refused + $(decided "$T_DIR/a" "$T_DIR/b" once)))
all=$(decided "$T_DIR/a" "$T_DIR/b" '*')
holds "hot set: most of $all faults are refused for what the page is" $((refused * 2)) -ge "$all"

# So little room that it is used up at once; all that goes up then pushes the like down.
eat $FAST_NODE $(($(free_mib $FAST_NODE) - ALIKE_MIB / 2)) lock
uniform rank
rank_up=$UP
runs "swap to mainline" tierctl swap mainline --set adjust_interval_ms=500
uniform mainline
is "$(threshold)" $MAINLINE_MS "uniform, mainline: the threshold is at its upper end"
holds "uniform: rank promotes less than half of mainline's pages" $((rank_up * 2)) -le "$UP"
spit
runs "unload" tierctl unload
done_testing
