#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The default policy, counters by policy, scan cost, and the daemon that keeps what was put
# in force.
# lab: --fast-mb 256 --slow-mb 768 --timeout 500 --one-thread
# paced
. ./lib.sh

CONF=/etc/tierctl.conf
quick_scans
echo 1 >/sys/kernel/mm/numa/demotion_enabled
machine_state >"$T_DIR/before"

policy_is()
{
	[ "$(cat $MODULE_SYSFS/policy 2>/dev/null)" = "$1" ]
}

# --- the default policy ---
runs "load without a name" tierctl load
is "$(tierctl status --json | jget - policy)" \
	"$(tierctl config --json | jget - config.key=default_policy.value)" "loads the default"
runs "unload" tierctl unload
echo 'default_policy = fixed' >$CONF
runs "load without a name again" tierctl load --set hot_threshold_ms=77
is "$(cat $MODULE_SYSFS/policy)" fixed "loads what the configuration says"
rm $CONF

# --- counters by policy ---
seen()
{
	jget "$1" "policies.policy=$2.seen_faults"
}
sum_holds()
{
	is "$(jget -s "$1" policies.*.seen_faults)" "$(jget "$1" faults_counted)" "$2"
}
# More than the fast node holds: pages go up and come down, faults never end.
tierload touch --pages 90001 --place slow --pace spin --rate 40000 --seconds 1000 --quiet \
	>"$T_DIR/tierload" 2>&1 &
load=$!
wait_for 60 "faults" counter_over policy_calls 2000 || not_ok "faults come"
tierctl stats --json >"$T_DIR/s0"
is "$(jget "$T_DIR/s0" policies.policy=fixed.seen_faults)" "$(jget "$T_DIR/s0" faults_counted)" \
	"before any swap all faults are the first policy's"
runs "swap" tierctl swap kernel
calls=$(counter policy_calls)
wait_for 60 "faults" counter_over policy_calls $((calls + 2000)) || not_ok "faults come"
runs "swap back" tierctl swap fixed --set hot_threshold_ms=77
tierctl stats --json >"$T_DIR/s1"
calls=$(counter policy_calls)
wait_for 60 "faults" counter_over policy_calls $((calls + 2000)) || not_ok "faults come"
tierctl stats --json >"$T_DIR/s2"
holds "the second policy has its faults" "$(seen "$T_DIR/s1" kernel)" -ge 1900
is "$(seen "$T_DIR/s2" kernel)" "$(seen "$T_DIR/s1" kernel)" "and none when it is not in force"
holds "the one in force has what came since" \
	$(($(seen "$T_DIR/s2" fixed) - $(seen "$T_DIR/s1" fixed))) -ge 1900
is "$(jget "$T_DIR/s2" policies.policy=kernel.promote_faults)" 0 "verdicts are told apart"
is "$(jget "$T_DIR/s2" policies.policy=fixed.times)" 2 "it came into force twice"
is "$(jget "$T_DIR/s2" policies.policy=kernel.in_force)" false "who is not in force is said"
sum_holds "$T_DIR/s2" "all policies sum to all faults"
runs "as text" sh -c "tierctl stats --by policy | grep -q '^kernel  *no'"
tierctl stats -i 500ms --count 2 --by policy --json | tail -n 1 >"$T_DIR/line"
is "$(jget "$T_DIR/line" interval.policies.*.policy)" fixed "rates are the one's in force"
runs "reset" tierctl reset
calls=$(counter policy_calls)
wait_for 60 "faults" counter_over policy_calls $((calls + 100)) || not_ok "faults come"
tierctl stats --json >"$T_DIR/s3"
holds "a reset begins anew" "$(jget "$T_DIR/s3" faults_counted)" -lt "$(jget "$T_DIR/s2" faults_counted)"
sum_holds "$T_DIR/s3" "after a reset they sum, too"
is "$(jget "$T_DIR/s3" policies.*.policy)" fixed "and who went is forgotten"

# --- the cost of scanning as a histogram ---
# After the reset none may have come yet.
scanner_ran()
{
	[ "$(tierctl hist --json | jget - scan.scan_works)" -gt 0 ]
}
wait_for 60 "the scanner" scanner_ran
# Runs go on between the reading of their number and that of the histogram.
tierctl hist --json >"$T_DIR/hist"
works=$(jget "$T_DIR/hist" scan.scan_works) runs=$(jget -s "$T_DIR/hist" "scan.work_hist.*.runs")
holds "the scanner ran" "$works" -gt 0
holds "each of its runs is in the histogram" "$runs" -ge "$works" -a "$runs" -le $((works + 100))

# --- without a daemon nobody takes over a probation ---
fails 1 'no daemon' "--background needs the daemon" \
	tierctl swap mru --probation 5s --background
policy_is fixed && ok "nothing was swapped" || not_ok "it was swapped"

start()
{
	: >"$T_DIR/daemon"
	"$@" tierctl daemon 2>"$T_DIR/daemon" &
	daemon=$!
	wait_for 10 "the daemon" grep -q '^serving requests\|^no policy' "$T_DIR/daemon" ||
		bail "the daemon does not start: $(cat "$T_DIR/daemon")"
}

# The rights that the unit leaves the daemon: going back from a policy takes no more.
caps=-all$(sed -n 's/^CapabilityBoundingSet=//p' tierctl.service.in | tr 'A-Z' 'a-z' |
	tr ' ' '\n' | sed 's/^cap_/,+/' | tr -d '\n')
start ./setpriv --bounding-set "$caps" --inh-caps=-all

# --- probation: its tierctl is killed, the daemon watches ---
tierctl swap fixed --set hot_threshold_ms=0 --probation 300s >/dev/null 2>&1 &
swapper=$!
probation_is()
{
	[ "$(tierctl status --json | jget - probation.state 2>/dev/null)" = "$1" ]
}
wait_for 60 "the swap" probation_is running || not_ok "the policy is on probation"
kill -9 $swapper
wait $swapper 2>/dev/null
wait_for 20 "the daemon" grep -q 'watching policy fixed on probation' "$T_DIR/daemon" &&
	ok "the daemon takes over a watch" || not_ok "the daemon takes over a watch"
is "$(tierctl status --json | jget - probation.watched)" true "status says that it is watched"
runs "another swap ends it" tierctl swap fixed --set hot_threshold_ms=77

# --- probation: left to the daemon, which goes back ---
# The daemon finds out within a second that its watch is over; until then there is no other.
wait_for 20 "the end of the other" tierctl swap ./bad_verdict.bpf.o --probation 300s --background ||
	not_ok "a policy is left to the daemon"
wait_for 60 "the way back" policy_is fixed && ok "the daemon goes back from a policy that was ejected" ||
	not_ok "the daemon goes back from a policy that was ejected"
wait_for 10 "its words" grep -q 'fixed is back in force: .* failed its probation' "$T_DIR/daemon" &&
	ok "it says why" || not_ok "it says why"
is "$(tierctl get hot_threshold_ms)" 77 "with the parameters of before"
is "$(tierctl status --json | jget - probation.state)" failed "status tells the outcome"
runs "and why" sh -c "tierctl status | grep -q 'why.*ejected'"
# The old one must not promote, or the new one were sent back for doing nothing.
runs "a policy that promotes nothing" tierctl set hot_threshold_ms=0
runs "another that promotes nothing" tierctl swap fixed --set hot_threshold_ms=0 \
	--set rate_limit_mbps=78 --probation 2s --background
wait_for 40 "its end" probation_is passed && ok "passes" || not_ok "passes"
is "$(tierctl get rate_limit_mbps)" 78 "and stays"

kill -TERM $daemon
wait $daemon || not_ok "the daemon with few rights ended with status $?"

# --- the policy went without unload: with all rights, the daemon loads it itself ---
start
# The daemon has looked at the parameters by then: it looks when the policy changes.
sleep 2
rm -r $PIN_DIR
wait_for 40 "the policy" grep -q 'fixed is in force again' "$T_DIR/daemon" &&
	ok "a policy whose pins were removed is loaded again" ||
	not_ok "a policy whose pins were removed is loaded again"
is "$(cat $MODULE_SYSFS/policy)" fixed "it is in force"
is "$(tierctl get rate_limit_mbps)" 78 "with its parameters"

# --- the module is inserted anew ---
sleep 2
runs "unload" tierctl unload
sleep 3
is "$(ls $MODULE_SYSFS 2>/dev/null | wc -l)" 0 "what was unloaded stays off"
insmod "$MODULE_FILE"
wait_for 40 "the policy" policy_is fixed && ok "with the module inserted anew the policy is back" ||
	not_ok "with the module inserted anew the policy is back"
is "$(tierctl get rate_limit_mbps)" 78 "with its parameters"
sleep 2
kill -TERM $daemon
wait $daemon || not_ok "the daemon ended with status $?"

# --- a service with few rights leaves that to the start of the next ---
start ./setpriv --bounding-set "$caps" --inh-caps=-all
sleep 2
rm -r $PIN_DIR
status=0
wait $daemon || status=$?
is $status 1 "a daemon with few rights ends, so that it is started anew"
runs "the step before its start" tierctl daemon --load-only
is "$(tierctl get rate_limit_mbps)" 78 "loads the policy with its parameters"

kill $load
wait $load
runs "unload" tierctl unload
rmmod tier_policy 2>/dev/null
same_state "$T_DIR/before" "nothing is left behind"
done_testing
