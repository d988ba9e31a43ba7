#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Policy locality with the daemon: pages near a hot one go up without a fault of their own.
#
# Without a daemon nothing is requested and each page takes its own fault. With one
# the pages after each hot page are moved, up to the first that does not qualify and
# never beyond the mapping; what was requested adds up to what became of it.
# lab: --fast-mb 384 --slow-mb 768
# paced
. ./lib.sh

WINDOWS=509	# prime

quick_scans
machine_state >"$T_DIR/before"
dmesg_mark

# run_near WHAT: results as shell variables.
run_near()
{
	advance near $WINDOWS >"$T_DIR/near" 2>"$T_DIR/near.err" || {
		not_ok "$1: workload ran"
		sed 's/^/#   /' "$T_DIR/near.err"
		return 1
	}
	note "$1: $(cat "$T_DIR/near")"
	# shellcheck disable=SC1090,SC2046 # name=number words of our own program
	eval $(cat "$T_DIR/near")
}

# requests NAME: a counter of tierctl stats.
requests()
{
	tierctl stats --json >"$T_DIR/stats.json" || bail "tierctl stats failed"
	jget "$T_DIR/stats.json" "requests.$1"
}

none_waits()
{
	[ "$(requests request_waiting_pages)" = 0 ]
}

start_daemon()
{
	tierctl daemon 2>"$T_DIR/daemon" &
	daemon=$!
	wait_for 10 "the daemon" grep -q '^serving requests' "$T_DIR/daemon" ||
		bail "the daemon does not serve: $(cat "$T_DIR/daemon")"
}

# adds_up WHAT: every requested page has one outcome.
adds_up()
{
	local sum=0 name
	wait_for 10 "the queue to be empty" none_waits
	tierctl stats --json >"$T_DIR/stats.json" || bail "tierctl stats failed"
	for name in moved not_slow gone busy no_memory shared not_allowed rate stale failed; do
		sum=$((sum + $(jget "$T_DIR/stats.json" "requests.request_${name}_pages")))
	done
	is "$(jget "$T_DIR/stats.json" requests.requested_pages)" $sum \
		"$1: requested pages = moved + refused"
	is "$(jget "$T_DIR/stats.json" accounted)" true "$1: verdicts sum to faults"
}

need "load locality" tierctl load locality \
	--set hot_threshold_ms="$(param_max locality hot_threshold_ms)"

run_near "without daemon"
near_alone=$near_faults
# A page that is isolated by someone else at that moment stays: a few may.
holds "without daemon: the hot pages went up" "$leaders_fast" -ge $((leaders * 98 / 100))
is "$near_fast" 0 "without daemon: no other page went up"
holds "without daemon: the others take faults of their own" "$near_faults" -ge $((near * 9 / 10))
is "$(requests requested_pages)" 0 "without daemon: nothing is requested"
is "$(requests request_dropped_pages)" 0 "without daemon: nothing is dropped"

start_daemon
fails 1 'another daemon' "a second daemon is refused" tierctl daemon
run_near "with daemon"
holds "with daemon: the hot pages went up" "$leaders_fast" -ge $((leaders * 98 / 100))
holds "with daemon: near pages went up without a fault of theirs" \
	"$near_fast" -ge $((near * 9 / 10))
holds "with daemon: reading them takes far fewer faults" "$near_faults" -le $((near_alone / 5))
is "$stay_fast" 0 "with daemon: none of the $stay pages behind a gap or in the next mapping moved"
holds "with daemon: moved pages are counted" "$(requests request_moved_pages)" -ge "$near_fast"
adds_up "with daemon"

# Counters outlive the daemon; without it nothing more is requested.
moved=$(requests request_moved_pages)
kill -TERM $daemon
status=0
wait $daemon || status=$?
is "$status" 0 "SIGTERM ends it cleanly"
runs "it says what it did" grep -q 'stopped; moved [0-9]* of' "$T_DIR/daemon"
requested=$(requests requested_pages)
run_near "daemon gone"
is "$near_fast" 0 "daemon gone: no other page went up"
is "$(requests requested_pages)" "$requested" "daemon gone: nothing is requested"
start_daemon
is "$(requests request_moved_pages)" "$moved" "a restarted daemon goes on from the old counts"

# One that is killed is noticed, too.
kill -KILL $daemon
wait $daemon 2>/dev/null || :
sleep 3
requested=$(requests requested_pages)
run_near "daemon killed"
is "$(requests requested_pages)" "$requested" "daemon killed: nothing is requested"

# It follows unload and load, module and all, and a swap.
start_daemon
runs "unload while it runs" tierctl unload
wait_for 5 "the daemon to let go" grep -q 'no policy in force' "$T_DIR/daemon"
runs "load again" tierctl load locality \
	--set hot_threshold_ms="$(param_max locality hot_threshold_ms)"
sleep 2
run_near "loaded again"
holds "loaded again: near pages go up" "$near_fast" -ge $((near * 9 / 10))
adds_up "loaded again"
runs "swap for itself, limited to 1 MiB/s" tierctl swap locality --set rate_limit_mbps=1 \
	--set hot_threshold_ms="$(param_max locality hot_threshold_ms)"
sleep 2
limited=$(requests request_limited_pages)
run_near "limited"
holds "limited: some pages were not requested" "$(requests request_limited_pages)" -gt "$limited"
holds "limited: fewer went up" "$near_fast" -le $((near / 2))
adds_up "limited"

kill -TERM $daemon
wait $daemon || not_ok "the daemon ended with status $?"
runs "unload" tierctl unload
same_state "$T_DIR/before" "nothing is left behind"
quiet_kernel "the kernel said nothing above notice"
done_testing
