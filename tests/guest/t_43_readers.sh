#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A group that may read: all of the reading commands, and nothing else.
# lab: --fast-mb 256 --slow-mb 512 --one-thread
. ./lib.sh

CONF=/etc/tierctl.conf
# Group "user" is the one that may read; one belongs to it by a second group.
SECOND="./setpriv --reuid 65534 --regid 65534 --groups 1000"
FIRST="./setpriv --reuid 1000 --regid 1000 --clear-groups"
STRANGER="./setpriv --reuid 65534 --regid 65534 --clear-groups"

quick_scans
machine_state >"$T_DIR/before"
chmod 755 "$T_DIR"
caps=-all$(sed -n 's/^CapabilityBoundingSet=//p' tierctl.service.in | tr 'A-Z' 'a-z' |
	tr ' ' '\n' | sed 's/^cap_/,+/' | tr -d '\n')

start()
{
	umask 077
	./setpriv --bounding-set "$caps" --inh-caps=-all tierctl daemon 2>"$T_DIR/daemon" &
	daemon=$!
	umask 022
	wait_for 10 "the daemon" grep -q '^serving requests\|^no policy' "$T_DIR/daemon" ||
		bail "the daemon does not start: $(cat "$T_DIR/daemon")"
}

stop()
{
	kill -TERM $daemon
	status=0
	wait $daemon || status=$?
	is $status 0 "the daemon ends cleanly"
}

printf 'read_group = nosuch\n' >$CONF
fails 2 "read_group in $CONF:1: there is no group 'nosuch'" "a group that is not there is refused" \
	tierctl daemon
printf 'read_group = user\n' >$CONF

need "load" tierctl load fixed --set hot_threshold_ms=150
fails 4 'read_group' "without the daemon: the message names what is missing" $FIRST tierctl status
start
tierload touch --pages 7919 --place slow --pace spin --rate 20000 --seconds 1000 --quiet \
	>"$T_DIR/tierload" 2>&1 &
load=$!
wait_for 60 "faults" counter_over policy_calls 1000 || not_ok "faults come"

# --- members read what root reads ---
reads()
{
	local path=$1 want
	shift
	want=$(tierctl "$@" --json 2>/dev/null | jget - "$path")
	[ "$want" ] || not_ok "root: $*"
	is "$($SECOND tierctl "$@" --json 2>"$T_DIR/err" | jget - "$path")" "$want" "a member: $*"
	[ ! -s "$T_DIR/err" ] || sed 's/^/#   /' "$T_DIR/err"
}
reads policy status
reads params.hot_threshold_ms status
reads params.name=hot_threshold_ms.max get
reads accounted stats
reads policies.policy=fixed.in_force stats
reads policies.name=fixed.in_force list
reads features.name=hook_promote.available version --features
reads config.key=read_group.value config
is "$($FIRST tierctl get hot_threshold_ms)" 150 "a member by its first group: the bare value"
runs "a member: hist" $SECOND tierctl hist
runs "a member: topo" $SECOND tierctl topo
runs "a member: info" $SECOND tierctl info fixed
root=0 member=0
tierctl doctor -w 0 --json >"$T_DIR/root" 2>/dev/null || root=$?
$SECOND tierctl doctor -w 0 --json >"$T_DIR/member" 2>/dev/null || member=$?
is $member $root "a member: doctor comes to what root's comes to"
is "$(jget "$T_DIR/member" worst)" "$(jget "$T_DIR/root" worst)" "and finds the same"
$SECOND tierctl metrics >"$T_DIR/metrics" 2>"$T_DIR/err"
is "$(tail -n 1 "$T_DIR/metrics")" "# EOF" "a member: metrics, to the end"
is "$($SECOND tierctl stats -i 200ms --count 5 --json 2>/dev/null | grep -c '"accounted":true')" 5 \
	"a member: one line per interval, and the sum holds"
$SECOND tierctl stats --by nosuch >"$T_DIR/out" 2>&1
is $? 2 "a member: a usage error is one"
(cd /tmp && $OLDPWD/setpriv --reuid 65534 --regid 65534 --groups 1000 \
	tierctl dump -o "/tmp/reader.tar.gz" >/dev/null 2>&1)
mkdir "$T_DIR/dump" && tar xzf /tmp/reader.tar.gz -C "$T_DIR/dump" 2>/dev/null
is "$(jget "$T_DIR"/dump/*/status.json policy)" fixed "a member: dump holds the status"
rm -f /tmp/reader.tar.gz

# --- and change nothing ---
machine_state >"$T_DIR/loaded"
for command in "set hot_threshold_ms=1" "swap mru" reset unload clean "load mru" "doctor --fix" \
	"trace --count 1" "swap mru --probation 5s"; do
	# shellcheck disable=SC2086 # words on purpose
	fails 4 'root|sudo' "a member may not: $command" $SECOND tierctl $command
done
same_state "$T_DIR/loaded" "nothing has changed"
is "$(tierctl get hot_threshold_ms)" 150 "nor has the parameter"
for command in status stats get metrics; do
	fails 4 'read_group' "others may not: $command" $STRANGER tierctl $command
done
for command in list version topo config; do
	runs "others may still: $command" $STRANGER tierctl $command
done

# --- a reader that leaves ends its command ---
# commands: processes that run this one command, the reader's own and the daemon's.
commands()
{
	local f
	for f in /proc/[0-9]*/cmdline; do
		tr '\0' ' ' <"$f" 2>/dev/null
		echo
	done | grep -c '^tierctl stats -i 1h'
}
two_commands()
{
	[ "$(commands)" = 2 ]
}
no_command()
{
	[ "$(commands)" = 0 ]
}
$SECOND tierctl stats -i 1h >/dev/null 2>&1 &
reader=$!
wait_for 10 "the command" two_commands || not_ok "the daemon runs the command"
kill -9 $reader
wait $reader 2>/dev/null
wait_for 10 "its end" no_command && ok "a reader that leaves ends its command" ||
	not_ok "a reader that leaves ends its command"

# --- the daemon's end ends them all ---
$SECOND tierctl stats -i 1h >/dev/null 2>"$T_DIR/err" &
reader=$!
wait_for 10 "the command" two_commands || not_ok "the daemon runs the command"
stop
wait $reader
holds "a reader is told that the daemon has gone" $? -ne 0
wait_for 10 "no command" no_command && ok "no command is left" || not_ok "no command is left"
is "$(ls /run/tierctl | grep -c readers)" 0 "no socket is left"

kill $load
wait $load
rm $CONF
runs "unload" tierctl unload
same_state "$T_DIR/before" "nothing is left behind"
done_testing
