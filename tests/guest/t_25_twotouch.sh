#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# twotouch: a sweep over memory promotes nothing, what is touched again is promoted at its second hot fault.
#
# With a threshold that takes every fault for hot, so that only the number of touches
# decides. `fixed` promotes all of the same sweep.
# lab: --fast-mb 320 --slow-mb 640 --timeout 400
# paced
. ./lib.sh
. ./lib3.sh

PAGES=10007

# sweep NAME: one round over all pages, slow enough that they are marked before it comes.
sweep()
{
	reading "$T_DIR/a"
	runs "$1: a sweep over $PAGES pages" tierload touch --pages $PAGES --place slow \
		--pace spin --rounds 1 --rate 1000 --seconds 200 --quiet
	reading "$T_DIR/b"
}

promotions()
{
	grown "$T_DIR/a" "$T_DIR/b" vm pgpromote_success
}

quick_scans 200
max=$(param_max twotouch hot_threshold_ms)
need "load twotouch, everything hot" tierctl load twotouch --set hot_threshold_ms="$max" \
	--set pair_window_ms="$(param_max twotouch pair_window_ms)"

sweep sweep
once=$(decided "$T_DIR/a" "$T_DIR/b" once)
holds "sweep: most pages took a fault" "$once" -ge $((PAGES / 2))
# A page in ten thousand may be taken for another (2 in 2^20 for each).
holds "sweep: nothing went up" "$(promotions)" -le 2
is $((once + $(decided "$T_DIR/a" "$T_DIR/b" hot))) "$(decided "$T_DIR/a" "$T_DIR/b" '*')" \
	"sweep: each fault was found hot once, or hot"

reading "$T_DIR/a"
runs "rounds: all $PAGES pages go up" touch_until 120 $PAGES \
	vmstat_over pgpromote_success $(($(vmstat pgpromote_success) + PAGES))
reading "$T_DIR/b"
is "$(promotions)" $PAGES "rounds: each went up once"
# The frames may be those of the sweep: such a page's first fault here was its second.
holds "rounds: no page went up without having been hot before" \
	$((once + $(decided "$T_DIR/a" "$T_DIR/b" once))) -ge $((PAGES - 2))

runs "everything cold" tierctl set hot_threshold_ms=0
reading "$T_DIR/a"
runs "cold: rounds over $PAGES pages" touch_until 90 $PAGES \
	counter_over slow_faults $(($(counter slow_faults) + PAGES * 2))
reading "$T_DIR/b"
is "$(decided "$T_DIR/a" "$T_DIR/b" once)" 0 "cold: none is hot once"
is "$(promotions)" 0 "cold: nothing went up"

runs "swap to fixed, everything hot" tierctl swap fixed --set hot_threshold_ms="$max"
sweep fixed
holds "fixed: the same sweep takes all that faults with it" "$(promotions)" -ge $((PAGES / 2))
runs "unload" tierctl unload
done_testing
