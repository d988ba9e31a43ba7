#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Hot page selection, step by step: mru, fixed, fixed with a limit, mainline with its automatic threshold promote less and less, at the same hit ratio.
#
# One paced load with demotion on, the same seed and start for all: 1024 hot pages touched
# every 18 ms, the others every 18 s. What counts is where the pages are and how many moved.
#
# The last step differs: mainline lowers its threshold until what passes is as much as the
# limit admits. So it promotes about as much as the limit does, but it refuses fewer
# pages that passed, and those that go up are the hotter ones.
# lab: --fast-mb 160 --slow-mb 512 --timeout 500
# paced
. ./lib.sh
. ./lib3.sh

MIB=128
HOT=1024
RATE=60000
HOT_SHARE=97
SECONDS_EACH=20
LIMIT_MBPS=1
REFERENCE_MS=6000	# a third of the time after which a cold page returns
TOLERANCE=20		# per mille

# row NAME POLICY SETTING...: one run. Refusals for the rate in $T_DIR/NAME.rate, the
# threshold at its end in $T_DIR/NAME.ms.
row()
{
	local name=$1 policy=$2 set="" setting
	shift 2
	for setting; do
		set="$set --set $setting"
	done
	# shellcheck disable=SC2086 # words on purpose
	need "$name: load $policy$set" tierctl load $policy $set
	reading "$T_DIR/a"
	runs "$name: workload ran" paced_run "$name" hotcold --mib $MIB --hot-pages $HOT \
		--hot-share $HOT_SHARE --rate $RATE --seconds $SECONDS_EACH --place slow --pace spin
	reading "$T_DIR/b"
	decided "$T_DIR/a" "$T_DIR/b" rate >"$T_DIR/$name.rate"
	jget "$T_DIR/b.json" "nodes.node=$FAST_NODE.threshold_ms" >"$T_DIR/$name.ms"
	note "$name: fast part of the hot set:" $(jget "$T_DIR/$name.json" 'samples.*.hot_fast_ratio')
	note "$name: promotions:" $(jget "$T_DIR/$name.json" 'samples.*.promotions')
	printf '# %-9s hits %s, promoted %s (%s in the second half), demoted %s, %s ms, %s over the limit\n' \
		"$name" "$(jget "$T_DIR/$name.json" totals.fast_hit_ratio_final)" \
		"$(kernel_of "$name" promotions)" "$(settled_sum "$name" promotions)" \
		"$(kernel_of "$name" demotions)" "$(cat "$T_DIR/$name.ms")" "$(cat "$T_DIR/$name.rate")"
	runs "$name: unload" tierctl unload
}

# step FROM TO PERCENT: it promotes at most so much of what the one before promotes.
step()
{
	local up
	up=$(kernel_of "$2" promotions)
	compares "$2 promotes at most $3 % of $1's pages" \
		$((up * 100)) -le $(($(kernel_of "$1" promotions) * $3))
	compares "$2: hits per mille over $1's" "$(settled_median "$1" "$2")" -ge -$TOLERANCE
}

steady_scans
tiering_on
demotion_on
row mru mru
row fixed fixed hot_threshold_ms=$REFERENCE_MS
row limit fixed hot_threshold_ms=$REFERENCE_MS rate_limit_mbps=$LIMIT_MBPS
row mainline mainline hot_threshold_ms=$REFERENCE_MS rate_limit_mbps=$LIMIT_MBPS adjust_interval_ms=1000

step mru fixed 90
step fixed limit 90
step limit mainline 110
compares "mainline: its threshold in ms is below the reference" "$(cat "$T_DIR/mainline.ms")" -lt $REFERENCE_MS
compares "mainline: refuses fewer pages that passed, by 15 % at least" \
	$(($(cat "$T_DIR/mainline.rate") * 100)) -le $(($(cat "$T_DIR/limit.rate") * 85))
done_testing
