#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The policy mainline decides as the kernel does: fault by fault, with limit, automatic threshold and free-space rule.
#
# Both decide on the same real hint faults, the kernel's decision being the one in force.
# Three phases: a fast node with much free memory, one with less under a tight limit, and
# one without limit. Where they differ, agree.h says why.
# lab: --fast-mb 1800 --slow-mb 640 --timeout 600
# paced
. ./lib.sh
. ./lib3.sh

SAME_PERMILLE=995
ROOM_PAGES=50021
LIMIT_PAGES=40009
LIMIT_FAULTS=150000
OPEN_PAGES=10007

# phase NAME TIERLOAD...: compare while touch_until runs, results in $T_DIR/NAME.json.
phase()
{
	local name=$1 faults compared same status=0
	shift
	rm -f "$T_DIR/ready"
	agree ./agree.bpf.o "$T_DIR/$name.json" "$T_DIR/ready" >"$T_DIR/agree.out" 2>&1 &
	local pid=$!
	wait_for 60 "the comparison" test -e "$T_DIR/ready" || {
		sed 's/^/# /' "$T_DIR/agree.out"
		bail "the comparison does not start"
	}
	faults=$(vmstat numa_hint_faults)
	runs "$name: workload ran" touch_until 200 "$@"
	faults=$(($(vmstat numa_hint_faults) - faults))
	kill -TERM $pid
	wait $pid || status=$?
	is $status 0 "$name: comparison ended well"
	compared=$(total "$T_DIR/$name.json" compared)
	same=$(total "$T_DIR/$name.json" class.same)
	note "$name: $faults hint faults, $(cat "$T_DIR/$name.json")"
	is "$(total "$T_DIR/$name.json" lost)" 0 "$name: no return without its entry"
	is "$(total "$T_DIR/$name.json" class.unexplained)" 0 "$name: each difference is explained"
	holds "$name: $same of $compared decisions are the same" \
		$((same * 1000)) -ge $((compared * SAME_PERMILLE))
	ALL=$((${ALL:-0} + compared)) ALL_SAME=$((${ALL_SAME:-0} + same))
}

decision()
{
	total "$T_DIR/$1.json" "decision.$2"
}

need "the module is there, without a policy" insmod "$MODULE_FILE"
quick_scans 1000
tiering_on

phase room $ROOM_PAGES vmstat_over pgpromote_success $(($(vmstat pgpromote_success) + ROOM_PAGES))
holds "room: the free-space rule was in force" "$(decision room room)" -ge $ROOM_PAGES

eat $FAST_NODE $(($(free_mib $FAST_NODE) - 800))
set_knob $PROMOTE_LIMIT 1
phase limit $LIMIT_PAGES vmstat_over numa_hint_faults $(($(vmstat numa_hint_faults) + LIMIT_FAULTS))
is "$(decision limit room)" 0 "limit: the free-space rule was not"
holds "limit: the limit refused" "$(decision limit rate)" -gt 1000
holds "limit: the threshold refused" "$(decision limit cold)" -gt 100
holds "limit: something was promoted" "$(decision limit hot)" -ge 256

set_knob $PROMOTE_LIMIT 65536
phase open $OPEN_PAGES vmstat_over pgpromote_success $(($(vmstat pgpromote_success) + OPEN_PAGES))
is "$(decision open rate)" 0 "open: no limit refused"
spit

holds "faults compared" "$ALL" -ge 100000
holds "all: $ALL_SAME of $ALL decisions are the same" $((ALL_SAME * 1000)) -ge $((ALL * SAME_PERMILLE))
done_testing
