#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The fixed threshold cuts exactly where it says: at 0 ms, at its maximum and in between.
#
# In between, the latency histogram and the verdicts must agree to the bucket: the
# pages in the slots below the threshold are the ones found hot, no more, no fewer.
. ./lib.sh

PAGES=10007
BETWEEN_MS=128		# a slot boundary: powers of two are

# Pages of a latency below or at/above a limit: sum over the histogram's slots.
below()
{
	jget "$1" 'nodes.*.latency_hist.*' | awk -v t="$2" '
		{
			gsub(/[{}"]/, "")
			n = split($0, part, ",")
			for (i = 1; i <= n; i++) {
				split(part[i], kv, ":")
				gsub(/ /, "", kv[1])
				v[kv[1]] = kv[2] + 0
			}
			if (v["from_ms"] < t)
				sum += v["pages"]
		}
		END { printf "%d\n", sum }'
}

# measure NAME FAULTS: the counters of a workload that made at least so many slow faults.
measure()
{
	reading "$T_DIR/a"
	runs "$1: workload ran" touch_until 90 $PAGES \
		counter_over slow_faults $(($(counter slow_faults) + $2))
	reading "$T_DIR/b"
	hot=$(grown_sum "$T_DIR/a" "$T_DIR/b" 'nodes.*.as_target.pages.hot')
	cold=$(grown_sum "$T_DIR/a" "$T_DIR/b" 'nodes.*.as_target.pages.cold')
	rest=$(($(grown_sum "$T_DIR/a" "$T_DIR/b" 'nodes.*.as_target.pages.*') - hot - cold))
	candidates=$(grown "$T_DIR/a" "$T_DIR/b" vm pgpromote_candidate)
	promoted=$(grown "$T_DIR/a" "$T_DIR/b" vm pgpromote_success)
	is "$rest" 0 "$1: no other verdict than hot and cold"
	is "$candidates" "$hot" "$1: pgpromote_candidate moved by the hot pages"
	is "$(grown_sum "$T_DIR/a" "$T_DIR/b" 'nodes.*.candidates_pages')" "$hot" \
		"$1: tierctl's candidates moved by the hot pages"
}

quick_scans 300
need "load fixed at 0 ms" tierctl load fixed --set hot_threshold_ms=0
measure "0 ms" $((PAGES + PAGES / 2))
is "$hot" 0 "0 ms: nothing is hot"
is "$promoted" 0 "0 ms: nothing was promoted"
holds "0 ms: pages were cold" "$cold" -ge "$PAGES"

max=$(param_max fixed hot_threshold_ms)
runs "the highest threshold can be set" tierctl set hot_threshold_ms="$max"
is "$(tierctl get hot_threshold_ms)" "$max" \
	"get tells it"
measure "$max ms" $PAGES
is "$cold" 0 "$max ms: nothing is cold"
holds "$max ms: pages were hot" "$hot" -ge "$PAGES"
failed=$(grown_sum "$T_DIR/a" "$T_DIR/b" observer.promote_refused observer.promote_failed)
is $((promoted + failed)) "$hot" "$max ms: hot pages = promoted pages + failures"
holds "$max ms: no page was promoted twice" "$promoted" -le $PAGES

runs "a threshold in between can be set" tierctl set hot_threshold_ms=$BETWEEN_MS
# Half of the marks are found hot and their pages go up, so the faults end at twice PAGES.
measure "$BETWEEN_MS ms" $((PAGES * 5 / 4))
holds "$BETWEEN_MS ms: some pages were hot" "$hot" -gt 0
holds "$BETWEEN_MS ms: some pages were cold" "$cold" -gt 0
below_before=$(below "$T_DIR/a.json" $BETWEEN_MS)
below_after=$(below "$T_DIR/b.json" $BETWEEN_MS)
all_before=$(below "$T_DIR/a.json" 1000000000000)
all_after=$(below "$T_DIR/b.json" 1000000000000)
is $((below_after - below_before)) "$hot" \
	"$BETWEEN_MS ms: pages in the slots below it = pages found hot"
is $((all_after - all_before - below_after + below_before)) "$cold" \
	"$BETWEEN_MS ms: pages in the slots from it on = pages found cold"
is "$(jget "$T_DIR/b.json" "nodes.node=$FAST_NODE.threshold_ms")" "$BETWEEN_MS" \
	"the threshold in force is reported per node"

runs "unload" tierctl unload
done_testing
