#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A task that runs outside its memory policy's nodes: the daemon takes its hot pages to them.
#
# Two fast nodes and one slow. The task runs on node 0, its policy is PREFERRED_MANY
# with NUMA balancing over nodes 1 and 2: the kernel rules its faults out before any
# policy is asked. With honour_nodemask and the daemon they reach node 1, never node 0.
# One round of faults: on node 1 the pages would go on to take such faults, and those
# are faults on a fast node that nobody has to count.
# lab: --nodes 2fast1slow --fast-mb 256 --slow-mb 512
# paced
. ./lib.sh

PAGES=1021	# prime

quick_scans
machine_state >"$T_DIR/before"
dmesg_mark
cpu=$(sed 's/[-,].*//' /sys/devices/system/node/node0/cpulist)

# run_outside WHAT: results as shell variables node0, node1, node2.
run_outside()
{
	taskset -c "$cpu" advance nodemask 6 1 $PAGES >"$T_DIR/where" 2>"$T_DIR/where.err" || {
		not_ok "$1: workload ran"
		sed 's/^/#   /' "$T_DIR/where.err"
		return 1
	}
	note "$1: $(cat "$T_DIR/where")"
	# shellcheck disable=SC1090,SC2046 # name=number words of our own program
	eval $(cat "$T_DIR/where")
}

requests()
{
	tierctl stats --json >"$T_DIR/stats.json" || bail "tierctl stats failed"
	jget "$T_DIR/stats.json" "requests.$1"
}

none_waits()
{
	[ "$(requests request_waiting_pages)" = 0 ]
}

hot=$(param_max fixed hot_threshold_ms)
need "load fixed" tierctl load fixed --set hot_threshold_ms="$hot" --set honour_nodemask=1

run_outside "without daemon"
is "$node2" $PAGES "without daemon: every page stays on the slow node"

tierctl daemon 2>"$T_DIR/daemon" &
daemon=$!
wait_for 10 "the daemon" grep -q '^serving requests' "$T_DIR/daemon" ||
	bail "the daemon does not serve: $(cat "$T_DIR/daemon")"
reading "$T_DIR/a"
run_outside "with daemon"
holds "with daemon: pages went to the nearest node of the mask" "$node1" -ge $((PAGES * 9 / 10))
is "$node0" 0 "with daemon: none went to the node that the policy leaves out"
wait_for 10 "the queue to be empty" none_waits
reading "$T_DIR/b"
holds "these faults are counted" "$(requests nodemask_faults)" -ge $((PAGES * 9 / 10))
is "$(($(grown "$T_DIR/a" "$T_DIR/b" module slow_faults) + \
	$(grown "$T_DIR/a" "$T_DIR/b" module other_faults) + \
	$(grown_sum "$T_DIR/a" "$T_DIR/b" requests.nodemask_faults)))" \
	"$(decided_faults "$T_DIR/a" "$T_DIR/b")" \
	"hint faults = faults of the policy + others + those outside the nodemask"
moved=$(requests request_moved_pages)
holds "moved pages are counted" "$moved" -ge "$node1"

runs "nothing is hot at 0 ms" tierctl set hot_threshold_ms=0
sleep 2
run_outside "cold"
is "$node2" $PAGES "cold: every page stays"
holds "cold: counted as such" "$(requests nodemask_cold_faults)" -ge $((PAGES * 9 / 10))

runs "honour_nodemask off" tierctl swap fixed --set hot_threshold_ms="$hot"
sleep 2
faults=$(requests nodemask_faults)
run_outside "off"
is "$node2" $PAGES "off: every page stays"
is "$(requests nodemask_faults)" "$faults" "off: these faults are not looked at"

kill -TERM $daemon
wait $daemon || not_ok "the daemon ended with status $?"
runs "unload" tierctl unload
same_state "$T_DIR/before" "nothing is left behind"
quiet_kernel "the kernel said nothing above notice"
done_testing
