#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# lazyscan: fewer PTE updates and hint faults than fixed at the same hit ratio, and a VMA that turns hot is still found.
#
# Many VMAs: one hot, the others read in one go twice a second. At last one of those turns
# hot: within 2^max_backoff passes of the scanner it must be on fast memory. The kernel's
# own filter may let only every second pass reach a VMA, hence twice as many. How long a
# pass takes depends on the machine, so passes are counted, not seconds.
# lab: --fast-mb 256 --slow-mb 384 --timeout 500
# paced
. ./lib.sh
. ./lib3.sh

VMAS=12
PAGES=61
BURST_MS=500
BEGIN=3			# passes: the first ones mark all memory, whoever decides
TURN=14
THRESHOLD_MS=12
BACKOFF=2
PASSES=$((2 * (1 << BACKOFF) + 2))

# measure POLICY [PASSES_AFTER_TURN]: results in $T_DIR/POLICY, what grew from pass BEGIN
# to pass TURN in $PTES and $FAULTS.
measure()
{
	local load status=0
	# On one CPU: marking PTEs then needs no other CPU's consent.
	taskset 1 vmaload $VMAS $PAGES $BURST_MS $TURN ${2:-} >"$T_DIR/$1" 2>"$T_DIR/err" &
	load=$!
	wait_for 100 "pass $BEGIN" pass_or_end "$1" $BEGIN $load
	PTES=$(vmstat numa_pte_updates) FAULTS=$(vmstat numa_hint_faults)
	wait_for 200 "pass $TURN" pass_or_end "$1" $TURN $load
	PTES=$(($(vmstat numa_pte_updates) - PTES)) FAULTS=$(($(vmstat numa_hint_faults) - FAULTS))
	wait $load || status=$?
	is $status 0 "$1: workload ran"
	sed 's/^/# /' "$T_DIR/err"
	PERMILLE=$(value "$T_DIR/$1" hit_permille)
	note "$1: $PTES PTE updates, $FAULTS hint faults, hits $PERMILLE per mille;" \
		"$(grep -c '^[0-9].* [0-9]' "$T_DIR/$1") lines, the last:" \
		"$(grep '^[0-9].* [0-9]' "$T_DIR/$1" | tail -n 1)"
}

# pass_or_end POLICY N PROCESS: condition: the scanner is that far, or nothing runs any more.
pass_or_end()
{
	awk -v least="$2" 'NF == 5 && $4 >= least { found = 1 } END { exit !found }' "$T_DIR/$1" ||
		! kill -0 "$3"
}

quick_scans 500
need "load fixed" tierctl load fixed --set hot_threshold_ms=$THRESHOLD_MS
measure fixed
fixed_ptes=$PTES fixed_faults=$FAULTS fixed_permille=$PERMILLE

runs "swap to lazyscan" tierctl swap lazyscan --set hot_threshold_ms=$THRESHOLD_MS \
	--set max_backoff=$BACKOFF
skips=$(counter scan_skips)
measure lazyscan $PASSES
holds "ranges were skipped" $(($(counter scan_skips) - skips)) -gt 0
holds "PTE updates: lazyscan's are at most 7 tenths of fixed's" $((PTES * 10)) -le $((fixed_ptes * 7))
holds "hint faults: lazyscan's are at most 7 tenths of fixed's" $((FAULTS * 10)) -le $((fixed_faults * 7))
holds "hits per mille: not 2 points fewer than fixed's $fixed_permille" \
	"$PERMILLE" -ge $((fixed_permille - 20))
passes=$(value "$T_DIR/lazyscan" found_passes)
holds "the VMA that turned hot was found, after passes" "$passes" -ge 0
holds "within $PASSES passes" "$passes" -le $PASSES
runs "unload" tierctl unload
done_testing
