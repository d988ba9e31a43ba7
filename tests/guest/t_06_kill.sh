#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# kill -9 of tierctl at any point of load and unload: all of it or nothing of it happened.
#
# tierctl works in a child of its own session. Three ways to die are tried: the process
# that the user sees, the worker alone, and both at once. After the next `tierctl
# status` the machine is either fully loaded or as it was before; `unload` always ends
# with it as it was before.
# lab: --timeout 1500
. ./lib.sh

# Each death is one boot of tierctl or two, seconds under emulation: spread thin.
POINTS=5
LOAD_CALLS=7
UNLOAD_CALLS=5

tierctl_gone()
{
	! pidof tierctl
}

# settled: nothing of the killed command runs any more.
settle()
{
	wait_for 60 "tierctl to end" tierctl_gone || not_ok "tierctl did not end within 60 s"
}

# fully_loaded: by what the kernel says, not by what tierctl says.
fully_loaded()
{
	[ "$(cat $MODULE_SYSFS/state 2>/dev/null)" = active ] &&
		[ -e "$PIN_DIR/link" ] && [ -e "$PIN_DIR/maps/tier_counts" ] &&
		[ $(($(cat /proc/sys/kernel/numa_balancing) & 2)) = 2 ] &&
		tierctl stats --json >"$T_DIR/stats.json" 2>&1 &&
		[ "$(jget "$T_DIR/stats.json" policy)" = "$(cat $MODULE_SYSFS/policy)" ]
}

fully_clean()
{
	machine_state >"$T_DIR/now"
	cmp -s "$T_DIR/before" "$T_DIR/now"
}

# verdict WHAT: after a kill. Counts how often it was which.
loaded=0
clean=0
verdict()
{
	settle
	tierctl status --json >"$T_DIR/status.json" 2>"$T_DIR/status.err"
	if fully_clean; then
		clean=$((clean + 1))
		ok "$1: clean"
	elif fully_loaded; then
		loaded=$((loaded + 1))
		ok "$1: loaded"
	else
		not_ok "$1: neither loaded nor clean"
		sed 's/^/#   status: /' "$T_DIR/status.json" "$T_DIR/status.err" | head -n 30
		diff "$T_DIR/before" "$T_DIR/now" | sed 's/^/#   /'
	fi
	fully_clean || tierctl unload >"$T_DIR/unload.out" 2>&1 ||
		{ not_ok "$1: unload"; sed 's/^/#   /' "$T_DIR/unload.out"; }
	if ! fully_clean; then
		not_ok "$1: unload did not end clean"
		diff "$T_DIR/before" "$T_DIR/now" | sed 's/^/#   /'
		tierctl clean >/dev/null 2>&1
		rmmod tier_policy 2>/dev/null
	fi
}

start_loaded()
{
	tierctl load fixed >"$T_DIR/load.out" 2>&1 && return
	sed 's/^/#   /' "$T_DIR/load.out"
	bail "load fails before it is killed"
}

# calls_of COMMAND...: how many bpf(2) calls the worker makes. At its end unload asks for
# programs until the kernel has freed them, now more often, now less: of those the first.
calls_of()
{
	strace -f -qq -e trace=bpf -e signal=none -o "$T_DIR/trace" tierctl "$@" >/dev/null 2>&1
	awk '/ bpf\(/ {
			n[$1]++
			asking = /BPF_PROG_GET_FD_BY_ID/
			if (!asking || !asked[$1])
				sure[$1] = n[$1]
			asked[$1] = asking
			if (sure[$1] > most) most = sure[$1]
		}
		END { print most + 0 }' "$T_DIR/trace"
}

# shot NTH COMMAND...: whoever makes its NTH bpf(2) call dies on entering it.
# shot_both: and the process that waits for its child dies as it does so.
shot()
{
	local nth=$1
	shift
	strace -f -qq -o "$T_DIR/trace" -e trace=bpf -e inject=bpf:signal=KILL:when="$nth" \
		tierctl "$@" >"$T_DIR/out" 2>&1
}

shot_both()
{
	local nth=$1
	shift
	strace -f -qq -o "$T_DIR/trace" -e trace=bpf,wait4,waitid \
		-e inject=bpf:signal=KILL:when="$nth" -e inject=wait4,waitid:signal=KILL:when=1 \
		tierctl "$@" >"$T_DIR/out" 2>&1
	[ "$(grep -c 'killed by SIGKILL' "$T_DIR/trace")" -ge 2 ] ||
		{ not_ok "bpf call $nth of $*: not both were killed"; tail -n 5 "$T_DIR/trace" | sed 's/^/#   /'; }
}

# now_ms: since boot.
now_ms()
{
	awk '{ printf "%d\n", $1 * 1000 }' /proc/uptime
}

# timed COMMAND...: how long it takes, in ms.
timed()
{
	local start
	start=$(now_ms)
	tierctl "$@" >/dev/null 2>&1
	echo $(($(now_ms) - start))
}

echo 1 >/proc/sys/kernel/numa_balancing
machine_state >"$T_DIR/before"
dmesg_mark

start_loaded
fully_loaded && ok "a load that nobody disturbs is a full one" || not_ok "load is not full"
fully_clean && not_ok "a loaded machine counts as clean" || ok "a loaded machine is not a clean one"
tierctl unload
same_state "$T_DIR/before" "an unload that nobody disturbs is a clean one"

# 1. Everything of tierctl dies, at five points in time of each.
load_ms=$(timed load fixed)
unload_ms=$(timed unload)
note "load takes $load_ms ms, unload $unload_ms ms"
point=1
while [ $point -le $POINTS ]; do
	wait_ms=$((load_ms * (2 * point - 1) / (2 * POINTS)))
	tierctl load fixed >/dev/null 2>&1 &
	usleep $((wait_ms * 1000))
	killall -9 tierctl 2>/dev/null
	verdict "all killed $wait_ms ms into load"

	wait_ms=$((unload_ms * (2 * point - 1) / (2 * POINTS)))
	start_loaded
	tierctl unload >/dev/null 2>&1 &
	usleep $((wait_ms * 1000))
	killall -9 tierctl 2>/dev/null
	verdict "all killed $wait_ms ms into unload"
	point=$((point + 1))
done

# 2. The worker dies on entering one of its system calls, and so does its parent, which
# is killed where it waits. Points spread over all bpf(2) calls, the last ones included:
# there the link is made and pinned.
calls=$(calls_of load fixed)
unload_calls=$(calls_of unload)
note "load makes $calls bpf calls, unload $unload_calls"
holds "load's system calls could be counted" "$calls" -gt 10
point=1
while [ $point -le $LOAD_CALLS ]; do
	nth=$((calls * point / LOAD_CALLS))
	shot_both $nth load fixed
	verdict "both killed at bpf call $nth of load"
	point=$((point + 1))
done
point=1
while [ $point -le $UNLOAD_CALLS ]; do
	nth=$((unload_calls * point / UNLOAD_CALLS))
	[ $nth -gt 0 ] || nth=1
	start_loaded
	shot_both $nth unload
	verdict "both killed at bpf call $nth of unload"
	point=$((point + 1))
done

# 3. Only one of the two dies. The visible one: the worker goes on to the end. The
# worker: its parent rolls back and says so.
for nth in $((calls / 2)) $((calls - 1)); do
	shot $nth load fixed
	holds "tierctl fails when its worker is killed at bpf call $nth" $? -ne 0
	verdict "worker killed at bpf call $nth of load"
done
for percent in 20 60; do
	tierctl load fixed >/dev/null 2>&1 &
	usleep $((load_ms * percent * 10))
	kill -9 $! 2>/dev/null
	verdict "visible process killed after $percent % of load"
done

note "$loaded times loaded, $clean times clean"
holds "kills came early enough to undo" $clean -gt 5
holds "and late enough to finish" $loaded -gt 0
quiet_kernel "the kernel said nothing above notice"
done_testing
