#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A memcached under MPOL_PREFERRED_MANY with NUMA balancing gets its demoted pages back, on nodes of its mask and on no other; a cpuset is honoured too.
#
# Two fast nodes and a slow one. The server's memory is demoted by a memory eater, the
# eater killed, all keys read back by clients on both nodes.
# lab: --nodes 2fast1slow --fast-mb 192 --slow-mb 512 --timeout 500
# paced
. ./lib.sh
. ./lib3.sh

SLOW_NODE=2
PORT=11311
KEYS=8000
BYTES=3800
PAGES=5003

# pages_of PID NODE: anonymous pages of a process on a node.
pages_of()
{
	awk -v key="N$2=" '/ anon=/ {
			for (i = 3; i <= NF; i++)
				if (index($i, key) == 1) sum += substr($i, length(key) + 1)
		}
		END { print sum + 0 }' "/proc/$1/numa_maps"
}

# serve MASK: a full memcached under that mask, one worker thread on each fast node.
serve()
{
	local cpu=0 task
	mpoltask preferred-many "$1" ./memcached -u root -m 256 -t 2 -l 127.0.0.1 -p $PORT \
		>"$T_DIR/memcached" 2>&1 &
	SERVER=$!
	need "mask $1: $KEYS keys stored" wait_for 60 "memcached" timeout 60 mckeys $PORT fill $KEYS $BYTES
	for task in /proc/"$SERVER"/task/*; do
		taskset -p $((1 << cpu)) "${task##*/}" >/dev/null
		cpu=$((1 - cpu))
	done
	FILLED=$(($(pages_of $SERVER 0) + $(pages_of $SERVER 1)))
	holds "mask $1: they are on fast memory" "$FILLED" -ge $KEYS
	is "$(pages_of $SERVER $SLOW_NODE)" 0 "mask $1: all of them"
}

# It has nothing to save, and may wait for its clients when asked to end.
stop_server()
{
	kill -KILL $SERVER
	wait $SERVER
}

# demote NODES MIB: by pressure, then without it.
demote()
{
	eat "$1" "$2"
	spit
	DEMOTED=$(pages_of $SERVER $SLOW_NODE)
	holds "mask $1: many of $FILLED pages were demoted" "$DEMOTED" -ge $((FILLED * 3 / 10))
}

most_are_back()
{
	[ $(($(pages_of $SERVER $SLOW_NODE) * 2)) -le "$DEMOTED" ]
}

# read_back MASK: both clients, each on its node, until half of the pages are back.
read_back()
{
	local cpu clients=
	for cpu in 0 1; do
		taskset $((1 << cpu)) mckeys $PORT read $KEYS $BYTES 1000 >"$T_DIR/client$cpu" 2>&1 &
		clients="$clients $!"
	done
	wait_for 120 "half of the pages to come back" most_are_back && ok "mask $1: half of the pages are back" ||
		not_ok "mask $1: half of the pages are back ($(pages_of $SERVER $SLOW_NODE) of $DEMOTED are not)"
	for cpu in $clients; do
		kill -0 "$cpu" && ok "mask $1: each key had its value" || {
			not_ok "mask $1: a client failed"
			sed 's/^/# /' "$T_DIR"/client?
		}
	done
	# shellcheck disable=SC2086 # words on purpose
	kill $clients
	# shellcheck disable=SC2086
	wait $clients
}

promoted_to()
{
	node_vmstat "$1" pgpromote_success
}

quick_scans 200
demotion_on
max=$(param_max fixed hot_threshold_ms)
need "load fixed, everything hot, memory policies honoured" tierctl load fixed \
	--set hot_threshold_ms="$max" --set honour_nodemask=1

serve 0,1
demote 0,1 $(($(free_mib 0) + $(free_mib 1) + 60))
p0=$(promoted_to 0) p1=$(promoted_to 1) p2=$(promoted_to $SLOW_NODE)
read_back 0,1
note "mask 0,1: of $DEMOTED demoted pages $(($(promoted_to 0) - p0)) and $(($(promoted_to 1) - p1)) promoted"
# The kernel moves pages between the two fast nodes too, hence its counts of promotions.
holds "mask 0,1: pages went up to node 0" $(($(promoted_to 0) - p0)) -ge $((DEMOTED / 50))
holds "mask 0,1: pages went up to node 1" $(($(promoted_to 1) - p1)) -ge $((DEMOTED / 50))
is $(($(promoted_to $SLOW_NODE) - p2)) 0 "mask 0,1: nothing was promoted to the slow node"
stop_server

serve 0
is "$(pages_of $SERVER 1)" 0 "mask 0: nothing on the other fast node"
demote 0 $(($(free_mib 0) + 60))
read_back 0
is "$(pages_of $SERVER 1)" 0 "mask 0: nothing went up to the other fast node"
stop_server

# CPU of node 1, memory of the others: no promotion can go where the thread runs.
cgroup=/sys/fs/cgroup/elsewhere
echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control
mkdir $cgroup
set_knob $cgroup/cpuset.cpus 1
set_knob $cgroup/cpuset.mems 0,$SLOW_NODE
# elsewhere FAULTS: a workload in there until so many faults came.
elsewhere()
{
	local load
	reading "$T_DIR/a"
	sh -c "echo \$\$ >$cgroup/cgroup.procs && exec tierload touch --pages $PAGES --place slow \
		--pace spin --quiet --seconds 1000 --rate 40000" >"$T_DIR/load" 2>&1 &
	load=$!
	wait_for 90 "$1 faults" counter_over slow_faults $(($(counter slow_faults) + $1)) && ok "cpuset: faults came" ||
		not_ok "cpuset: faults came: $(cat "$T_DIR/load")"
	kill $load
	wait $load
	reading "$T_DIR/b"
}
elsewhere 5000
is "$(decided "$T_DIR/a" "$T_DIR/b" nodemask)" "$(decided "$T_DIR/a" "$T_DIR/b" '*')" \
	"cpuset: each fault is refused for the nodemask"
is "$(grown "$T_DIR/a" "$T_DIR/b" vm pgpromote_success)" 0 "cpuset: nothing went up"
runs "honour_nodemask is switched off" tierctl set honour_nodemask=0
elsewhere 5000
is "$(decided "$T_DIR/a" "$T_DIR/b" nodemask)" 0 "cpuset, not honoured: none is refused for it"
holds "cpuset, not honoured: they are asked for" "$(decided "$T_DIR/a" "$T_DIR/b" hot)" -ge 5000
runs "unload" tierctl unload
done_testing
