#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A huge page mapped by a PMD is decided by one fault and counted with 512 pages.
# lab: --fast-mb 512 --slow-mb 1024
. ./lib.sh

HUGE=37			# huge pages: prime
PAGES=$((HUGE * 512))

quick_scans
need "load fixed, everything hot" tierctl load fixed \
	--set hot_threshold_ms="$(param_max fixed hot_threshold_ms)"
reading "$T_DIR/a"
runs "workload of $HUGE huge pages ran" touch_until 90 $PAGES \
	vmstat_over pgpromote_success $(($(vmstat pgpromote_success) + PAGES)) \
	-- --thp on --json "$T_DIR/run.json"
reading "$T_DIR/b"

is "$(jget "$T_DIR/run.json" totals.huge_mib_start)" $((HUGE * 2)) \
	"the memory was mapped by huge pages"
failed=$(grown_sum "$T_DIR/a" "$T_DIR/b" observer.promote_refused observer.promote_failed)
is $(($(grown_sum "$T_DIR/a" "$T_DIR/b" 'nodes.*.as_target.faults.hot') - failed)) $HUGE \
	"one fault for each huge page, and one more for each failure"
faults=$(grown_sum "$T_DIR/a" "$T_DIR/b" 'nodes.*.as_target.faults.*')
is "$(grown_sum "$T_DIR/a" "$T_DIR/b" 'nodes.*.as_target.pages.*')" $((faults * 512)) \
	"each fault counts 512 pages"
is "$(grown "$T_DIR/a" "$T_DIR/b" vm pgpromote_success)" $PAGES "all pages were promoted"
is "$(grown_sum "$T_DIR/a" "$T_DIR/b" observer.promoted_pages)" $PAGES \
	"the observer saw them go"
is "$(grown "$T_DIR/a" "$T_DIR/b" vm pgpromote_candidate)" $((faults * 512)) \
	"pgpromote_candidate moved by pages, not by faults"
is "$(decided_faults "$T_DIR/a" "$T_DIR/b")" \
	$((faults + $(grown "$T_DIR/a" "$T_DIR/b" module other_faults))) \
	"hint faults = faults counted"

runs "nothing hot" tierctl set hot_threshold_ms=0
reading "$T_DIR/a"
runs "workload ran again" touch_until 90 $PAGES \
	counter_over slow_faults $(($(counter slow_faults) + HUGE)) -- --thp on
reading "$T_DIR/b"
cold=$(grown_sum "$T_DIR/a" "$T_DIR/b" 'nodes.*.as_target.faults.cold')
holds "huge pages were refused" "$cold" -ge $HUGE
is "$(grown_sum "$T_DIR/a" "$T_DIR/b" 'nodes.*.as_target.pages.cold')" $((cold * 512)) \
	"a refusal, too, counts 512 pages"
is "$(grown "$T_DIR/a" "$T_DIR/b" vm pgpromote_success)" 0 "and nothing was promoted"
runs "unload" tierctl unload
done_testing
