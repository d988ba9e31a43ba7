#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The daemon as a service: configuration, policy at boot, and the few rights of its unit.
. ./lib.sh

WINDOWS=257
CONF=/etc/tierctl.conf

quick_scans
machine_state >"$T_DIR/before"
dmesg_mark
mkdir -p $CONF.d

# The unit's capabilities, as setpriv spells them: "-all,+sys_admin,+sys_ptrace".
caps=-all$(sed -n 's/^CapabilityBoundingSet=//p' tierctl.service.in | tr 'A-Z' 'a-z' |
	tr ' ' '\n' | sed 's/^cap_/,+/' | tr -d '\n')
note "rights: $caps"

start()
{
	./setpriv --bounding-set "$caps" --inh-caps=-all tierctl daemon "$@" 2>"$T_DIR/daemon" &
	daemon=$!
	wait_for 10 "the daemon" grep -q '^serving requests\|^no policy' "$T_DIR/daemon" ||
		bail "the daemon does not start: $(cat "$T_DIR/daemon")"
}

requests()
{
	tierctl stats --json >"$T_DIR/stats.json" || bail "tierctl stats failed"
	jget "$T_DIR/stats.json" "requests.$1"
}

# A configuration that cannot be is refused, with file and line.
printf 'poll_ms = 25\npolicy = locality\nnonsense = 1\n' >$CONF
fails 2 "tierctl.conf:3: unknown key" "an unknown key is refused" tierctl daemon
fails 2 "tierctl.conf:3: unknown key" "config refuses it, too" tierctl config
printf 'poll_ms = 25\npolicy = locality\nset.no_such = 1\n' >$CONF
fails 2 "no_such" "a parameter that the policy does not have is refused" tierctl daemon --load-only
is "$(cat /proc/modules | grep -c tier_policy)" 0 "nothing was loaded by it"

printf 'poll_ms = 30\npolicy = locality\nset.hot_threshold_ms = 1000\nset.honour_nodemask = 1\n' >$CONF
echo "set.hot_threshold_ms = $(param_max locality hot_threshold_ms)" >$CONF.d/10-hot.conf
chmod 666 $CONF
fails 4 'others than root may write' "a configuration that all may write is refused" tierctl config
chmod 644 $CONF
echo '{ "policy": "locality", "params": { "hot_threshold_ms": 77 } }' >"$T_DIR/saved.json"
chmod 666 "$T_DIR/saved.json"
fails 4 'others than root may write' "so is a saved status" tierctl load "$T_DIR/saved.json"
tierctl config --json >"$T_DIR/config.json"
is "$(jget "$T_DIR/config.json" config.key=poll_ms.from)" "$CONF:1" "config says where a value comes from"
is "$(tierctl config | awk '$1 == "set.hot_threshold_ms" { print $3 }')" "$CONF.d/10-hot.conf:1" \
	"a drop-in wins"
is "$(jget "$T_DIR/config.json" config.key=limit_mbps.from)" default "what no file says is the default"

# Without a policy it waits for one.
runs "the policy is loaded" tierctl daemon --load-only
is "$(tierctl get hot_threshold_ms)" "$(param_max locality hot_threshold_ms)" "with its parameters"
runs "loading again changes nothing" tierctl daemon --load-only
start
advance near $WINDOWS >"$T_DIR/near" 2>&1 || not_ok "workload ran"
note "$(cat "$T_DIR/near")"
# shellcheck disable=SC1090,SC2046 # name=number words of our own program
eval $(grep '^leaders=' "$T_DIR/near")
holds "with few rights: near pages go up without a fault" "$near_fast" -ge $((near * 9 / 10))
is "$(requests request_not_allowed_pages)" 0 "with few rights: no process is out of reach"
# The program that sees the faults outside the nodemask is loaded with them, too.
runs "with few rights: faults outside the nodemask are hooked" sh -c \
	"grep -q '^mpol_misplaced' /sys/kernel/tracing/enabled_functions && ! grep -q 'going on without' '$T_DIR/daemon'"
tierctl unload
wait_for 5 "the daemon to let go" grep -q 'no policy in force' "$T_DIR/daemon" ||
	not_ok "the daemon lets go of what was unloaded"
kill -TERM $daemon
status=0
wait $daemon || status=$?
is "$status" 0 "SIGTERM ends it cleanly"

rm -r $CONF $CONF.d
start
is "$(cat "$T_DIR/daemon")" "no policy in force that makes requests" "without a policy it waits"
kill -TERM $daemon
wait $daemon || not_ok "the daemon ended with status $?"
same_state "$T_DIR/before" "nothing is left behind"
quiet_kernel "the kernel said nothing above notice"
done_testing
