#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The thrash brake slows promotion that only pushes hot pages down; the success gate stops asking while promotions fail, and opens again.
# lab: --fast-mb 160 --slow-mb 512 --timeout 500
# paced
. ./lib.sh
. ./lib3.sh

PAGES=5003

failures()
{
	grown_sum "$T_DIR/a" "$T_DIR/b" observer.promote_refused observer.promote_failed
}

# faults NAME NUMBER [PAGES]: a workload for so many slow faults.
faults()
{
	reading "$T_DIR/a"
	runs "$1: workload ran" touch_until 180 "${3:-$PAGES}" \
		counter_over slow_faults $(($(counter slow_faults) + $2))
	reading "$T_DIR/b"
}

# All of a working set that does not fit is alike: what goes up pushes the like down.
quick_scans 200
demotion_on
set=$(($(free_mib $FAST_NODE) * 3 / 2 * 256))
need "load mru, no brake" tierctl load mru
reading "$T_DIR/a"
runs "no brake: more pages go up than there are" touch_until 180 $set \
	vmstat_over pgpromote_success $(($(vmstat pgpromote_success) + set * 3 / 2))
reading "$T_DIR/b"
up=$(decided "$T_DIR/a" "$T_DIR/b" any)
note "no brake: $up asked for, $(grown "$T_DIR/a" "$T_DIR/b" vm pgpromote_success) promoted, of $set pages"
is "$(decided "$T_DIR/a" "$T_DIR/b" thrash)" 0 "no brake: nothing is braked"

runs "the brake is switched on" tierctl swap mru --set thrash_limit_percent=20
# A round to see which pages return, one to brake.
faults "brake, at first" $((set * 2)) $set
faults brake $set $set
up=$(decided "$T_DIR/a" "$T_DIR/b" any)
braked=$(decided "$T_DIR/a" "$T_DIR/b" thrash)
note "brake: $up asked for, $braked braked, $(grown "$T_DIR/a" "$T_DIR/b" vm pgpromote_success) promoted"
holds "brake: at most half of the faults are still asked for" "$up" -le "$braked"
holds "brake: it never closes" "$up" -gt 0

# What fits goes up in spite of it: the brake is let go.
reading "$T_DIR/a"
runs "a small set: all pages go up" touch_until 120 $PAGES \
	vmstat_over pgpromote_success $(($(vmstat pgpromote_success) + PAGES))
runs "unload" tierctl unload

need "load fixed, everything hot" tierctl load fixed \
	--set hot_threshold_ms="$(param_max fixed hot_threshold_ms)"

# Locked memory leaves less free than the high watermark, a fifth of the node, and without
# demotion there is nothing to reclaim.
set_knob /sys/kernel/mm/numa/demotion_enabled 0
set_knob /proc/sys/vm/watermark_scale_factor 1000
eat $FAST_NODE $(($(free_mib $FAST_NODE) - LAB_FAST_MB / 8)) lock

faults "no gate" 20000
asked=$(decided "$T_DIR/a" "$T_DIR/b" hot)
holds "no gate: every fault is a promotion asked for" "$asked" -ge 20000
# The first ones still find what was left free.
holds "no gate: most of them fail" $(($(failures) * 4)) -ge $((asked * 3))

runs "the gate is switched on" tierctl set success_gate=1
reading "$T_DIR/a"
runs "gate: it closes" touch_until 120 $PAGES decision_over full 5000
reading "$T_DIR/b"
all=$(decided "$T_DIR/a" "$T_DIR/b" '*')
asked=$(decided "$T_DIR/a" "$T_DIR/b" hot)
note "gate: $asked asked for, $(decided "$T_DIR/a" "$T_DIR/b" full) stopped"
is $((asked + $(decided "$T_DIR/a" "$T_DIR/b" full))) "$all" "gate: what is not asked for counts as full"
faults "gate closed" 16000
all=$(decided "$T_DIR/a" "$T_DIR/b" '*')
asked=$(decided "$T_DIR/a" "$T_DIR/b" hot)
holds "gate closed: it probes now and then" "$asked" -gt 0
holds "gate closed: with no more than one in 32" $((asked * 32)) -le "$all"

spit
reading "$T_DIR/a"
runs "memory again: all pages go up" touch_until 120 $PAGES \
	vmstat_over pgpromote_success $(($(vmstat pgpromote_success) + PAGES))
reading "$T_DIR/b"
runs "the gate is switched off" tierctl set success_gate=0

runs "unload" tierctl unload
done_testing
