#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Every hint fault is counted once, and every promotion that was asked for is accounted for.
#
# A known workload: a prime number of pages on the slow node, touched in rounds.
# What /proc/vmstat says, what the module says and what the policy kit says must be
# the same numbers, to the page.
# lab: --fast-mb 320 --slow-mb 768
. ./lib.sh

PAGES=7919

quick_scans
machine_state >"$T_DIR/before"
dmesg_mark

# sums A B NAME: all that must add up between two readings.
sums()
{
	local a=$1 b=$2 what=$3 faults slow other counted promote ok failed
	faults=$(decided_faults "$a" "$b")
	slow=$(grown "$a" "$b" module slow_faults)
	other=$(grown "$a" "$b" module other_faults)
	counted=$(grown_sum "$a" "$b" 'nodes.*.as_target.faults.*')
	promote=$(grown "$a" "$b" module promote_verdicts)
	ok=$(grown_sum "$a" "$b" observer.promote_ok)
	failed=$(grown_sum "$a" "$b" observer.promote_refused observer.promote_failed)

	holds "$what: slow faults came" "$slow" -ge "$PAGES"
	is "$((slow + other))" "$faults" "$what: faults seen by the module = hint faults of /proc/vmstat that are not local"
	is "$counted" "$slow" "$what: faults counted under a reason = slow faults"
	is "$(grown_sum "$a" "$b" 'nodes.*.as_source.faults.*')" "$slow" \
		"$what: the same per source node"
	is "$(grown "$a" "$b" module policy_calls)" "$slow" "$what: each went to the policy"
	is "$((promote + $(grown "$a" "$b" module reject_verdicts) + \
		$(grown "$a" "$b" module kernel_verdicts)))" "$slow" "$what: each has one verdict"
	is "$(grown "$a" "$b" module undecided)" 0 "$what: none undecided"
	is "$(jget "$b.json" accounted)" true "$what: tierctl finds the sums right"
	# The control leaves the verdict to the kernel: then it, too, makes promotions.
	[ "$what" = kernel ] ||
		is "$((ok + failed))" "$promote" "$what: promote verdicts = successes + failures"
	is "$(grown "$a" "$b" vm pgpromote_success)" \
		"$(grown_sum "$a" "$b" observer.promoted_pages)" \
		"$what: pgpromote_success = promotions seen by the observer"
}

# run_touch NAME PAGES vmstat|counter COUNTER BY: touch pages until the counter has grown by
# that much, with a reading before and after.
run_touch()
{
	local goal
	reading "$T_DIR/a"
	goal=$(($("$3" "$4") + $5))
	runs "$1: workload ran" touch_until 90 "$2" "$3_over" "$4" $goal
	reading "$T_DIR/b"
}

failures()
{
	grown_sum "$T_DIR/a" "$T_DIR/b" observer.promote_refused observer.promote_failed
}

need "load fixed, so that every slow page goes up" \
	tierctl load fixed --set hot_threshold_ms="$(param_max fixed hot_threshold_ms)"
run_touch everything $PAGES vmstat pgpromote_success $PAGES
sums "$T_DIR/a" "$T_DIR/b" everything
# Each page faults once and is on the fast node afterwards; one whose migration
# failed faults again in the next scan.
is "$(grown "$T_DIR/a" "$T_DIR/b" vm pgpromote_success)" $PAGES \
	"everything: $PAGES pages were promoted"
is "$(($(grown "$T_DIR/a" "$T_DIR/b" module slow_faults) - $(failures)))" $PAGES \
	"everything: $PAGES faults, and one more for each failure"

runs "nothing is hot at a threshold of 0" tierctl set hot_threshold_ms=0
run_touch nothing $PAGES counter slow_faults $((PAGES * 3))
sums "$T_DIR/a" "$T_DIR/b" nothing
is "$(grown "$T_DIR/a" "$T_DIR/b" vm pgpromote_success)" 0 "nothing: no promotion"

runs "swap to the control" tierctl swap kernel
run_touch kernel $PAGES counter slow_faults $PAGES
sums "$T_DIR/a" "$T_DIR/b" kernel

# More pages than the fast node holds: many promotions fail, none may be lost. Prime.
runs "swap to mru" tierctl swap mru
pages=$(prime_above $((LAB_FAST_MB * 256 * 5 / 4)))
run_touch overflow "$pages" counter slow_faults "$pages"
sums "$T_DIR/a" "$T_DIR/b" overflow
holds "overflow: some promotions failed" "$(failures)" -gt 0

runs "unload" tierctl unload
same_state "$T_DIR/before" "nothing is left behind"
quiet_kernel "the kernel said nothing above notice"
done_testing
