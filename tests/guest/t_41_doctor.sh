#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# doctor finds each fault made on purpose, and nothing on a healthy machine.
# lab: --fast-mb 256 --slow-mb 768 --timeout 600
# paced
. ./lib.sh

# found STATUS ID WHAT [OPTION]...: doctor exits so and has exactly this finding among its.
found()
{
	local status=$1 id=$2 what=$3 got=0
	shift 3
	tierctl doctor --json "$@" >"$T_DIR/doctor" 2>"$T_DIR/err" || got=$?
	is $got "$status" "$what: exit code"
	jget "$T_DIR/doctor" findings.*.id 2>/dev/null | grep -qx "$id" && ok "$what: found" || {
		not_ok "$what: not found"
		sed 's/^/#   /' "$T_DIR/doctor"
		return
	}
	holds "$what: says what mends it" -n "$(jget "$T_DIR/doctor" "findings.id=$id.remedy")"
}

healthy()
{
	runs "$1" tierctl doctor "-w" "${2:-1s}"
	is "$(tierctl doctor -w 0 --json | jget - worst)" note "$1: nothing found"
}

# stopped_by_gate N: condition: it held back so many faults.
stopped_by_gate()
{
	[ "$(tierctl stats --json | jget -s - "nodes.*.as_target.faults.full")" -ge "$1" ]
}

DEMOTION=/sys/kernel/mm/numa/demotion_enabled
LIMIT=/proc/sys/kernel/numa_balancing_promote_rate_limit_MBps

quick_scans
echo 1 >$DEMOTION
found 1 mode_off "tiering mode off, nothing loaded" -w 0
echo 0 >/proc/sys/kernel/ftrace_enabled
found 1 ftrace_off "ftrace off" -w 0
tierctl doctor -w 0 --fix --json >"$T_DIR/doctor" 2>"$T_DIR/err"
grep -q 'ftrace_enabled' "$T_DIR/err" && ok "--fix says what it does, as JSON too" ||
	not_ok "--fix says what it does, as JSON too"
echo 0 >/proc/sys/kernel/ftrace_enabled
runs "--fix switches it on" sh -c 'tierctl doctor -w 0 --fix; [ "$(cat /proc/sys/kernel/ftrace_enabled)" = 1 ]'
limit=$(cat $LIMIT)
echo 0 >$LIMIT
found 1 rate_limit_zero "the kernel's rate limit is 0" -w 0
echo "$limit" >$LIMIT

need "load" tierctl load fixed --set hot_threshold_ms=150
healthy "a healthy machine"
echo 0 >$DEMOTION
found 1 demotion_off "demotion off" -w 0
echo 1 >$DEMOTION
echo 1 >/proc/sys/kernel/numa_balancing
found 1 mode_off "tiering mode off with a policy in force" -w 0
tierctl doctor -w 0 --fix >/dev/null 2>&1
is "$(cat /proc/sys/kernel/numa_balancing)" 3 "--fix switches it on"
runs "threshold of 0" tierctl set hot_threshold_ms=0
found 1 threshold_zero "a threshold that cannot work" -w 0
runs "and back" tierctl set hot_threshold_ms=150
healthy "healthy again" 0
runs "a policy whose limit of 0 promotes nothing" tierctl swap mainline --set rate_limit_mbps=0
found 1 rate_limit_zero "the policy's rate limit is 0" -w 0
runs "and back to one" tierctl swap fixed --set hot_threshold_ms=150

# --- a process that may not use fast memory ---
./holdmem $SLOW_NODE 8 lock >"$T_DIR/hold" &
hold=$!
wait_for 10 "the memory" grep -q ready "$T_DIR/hold"
found 1 bound_slow "a process bound to the slow node" -w 0
jget "$T_DIR/doctor" "findings.id=bound_slow.evidence" | grep -q "holdmem ($hold)" &&
	ok "it is named" || not_ok "it is not named"
tierctl explain $hold >"$T_DIR/explain"
grep -q 'cannot be promoted' "$T_DIR/explain" && ok "explain says so too" || {
	not_ok "explain does not say so"
	sed 's/^/#   /' "$T_DIR/explain"
}
grep -q '8\.[0-9] MiB of the slow memory is locked (mlock)' "$T_DIR/explain" &&
	ok "and that it is locked" || not_ok "and that it is locked: $(cat "$T_DIR/explain")"
is "$(grep -c 'cpuset' "$T_DIR/explain")" 0 "a cpuset that excludes nothing is no word worth"
kill $hold
wait $hold
healthy "healthy without it" 0

# --- promotions that cannot succeed: the fast node is full of locked memory ---
# Promotion asks for more than the high watermark; the memory itself must stay above min.
free_mb=$(awk '/MemFree/ { print int($4 / 1024) }' /sys/devices/system/node/node$FAST_NODE/meminfo)
high_mb=$(tierctl topo --json | jget - nodes.node=$FAST_NODE.watermark_high_bytes)
low_mb=$(tierctl topo --json | jget - nodes.node=$FAST_NODE.watermark_low_bytes)
leave_mb=$(((high_mb + low_mb) / 2 / 1048576))
runs "everything is hot" tierctl swap mru
# With demotion what was promoted would make room for the next: thrashing, not failing.
echo 0 >$DEMOTION
./holdmem $FAST_NODE $((free_mb - leave_mb)) lock >"$T_DIR/hold" &
hold=$!
wait_for 60 "the locked memory" grep -q ready "$T_DIR/hold" || not_ok "the memory can be had"
tierload touch --pages 7919 --place slow --pace spin --rate 20000 --seconds 1000 --quiet \
	>"$T_DIR/tierload" 2>&1 &
load=$!
calls=$(counter policy_calls)
wait_for 60 "faults" counter_over policy_calls $((calls + 8000)) || not_ok "faults come"
tierctl doctor -w 5s --json >"$T_DIR/doctor"
jget "$T_DIR/doctor" findings.*.id | grep -Eqx 'promotions_fail|kswapd_gave_up' &&
	ok "promotions that fail are found" || {
	not_ok "promotions that fail are not found"
	sed 's/^/#   /' "$T_DIR/doctor"
	tierctl stats | sed 's/^/#   /'
}
# A policy that stops asking hides these failures; doctor sees what it does instead.
runs "the success gate is switched on" tierctl set success_gate=1
wait_for 60 "the gate" stopped_by_gate 1000 || not_ok "the gate closes"
tierctl doctor -w 5s --json >"$T_DIR/doctor"
jget "$T_DIR/doctor" findings.*.id | grep -qx gate_closed && ok "a gate that is closed is found" || {
	not_ok "a gate that is closed is not found"
	sed 's/^/#   /' "$T_DIR/doctor"
}
# Left to the kernel no verdict promotes, and its attempts fail as well.
runs "the kernel's own algorithm decides" tierctl swap kernel
calls=$(counter policy_calls)
wait_for 60 "faults" counter_over policy_calls $((calls + 8000)) || not_ok "faults come"
tierctl doctor -w 5s --json >"$T_DIR/doctor"
jget "$T_DIR/doctor" findings.*.id | grep -Eqx 'promotions_fail|kswapd_gave_up' &&
	ok "the kernel's promotions that fail are found" || {
	not_ok "the kernel's promotions that fail are not found"
	sed 's/^/#   /' "$T_DIR/doctor"
}
kill $load $hold
wait $load
wait $hold
echo 1 >$DEMOTION

# --- ejected ---
runs "swap to a policy that answers nonsense" tierctl swap ./bad_verdict.bpf.o
tierload touch --pages 4099 --place slow --seconds 4 --pace spin --rate 20000 --quiet >/dev/null 2>&1
wait_for 10 "the ejection" grep -q ejected $MODULE_SYSFS/state
found 5 ejected "a policy that was ejected" -w 0
runs "unload" tierctl unload

# --- stale pins: of a load that is not ours to undo ---
mount -t bpf bpf /sys/fs/bpf 2>/dev/null
mkdir -p $PIN_DIR/maps
found 1 stale_pins "pins without a policy" -w 0
runs "--fix removes them" sh -c "tierctl doctor -w 0 --fix; [ ! -e $PIN_DIR/maps ]"
umount /sys/fs/bpf
done_testing
