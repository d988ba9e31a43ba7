#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# What every command prints, as text and as JSON, for t_44_json.after to judge.
# lab: --fast-mb 256 --slow-mb 768 --timeout 900 --one-thread
. ./lib.sh

mkdir -p "$OUT/json" "$OUT/text"

# take NAME COMMAND [ARGUMENT]...: both forms of it, as NAME.COMMAND.
take()
{
	local name=$1
	shift
	text=0 json=0
	tierctl "$@" >"$OUT/text/$name.$1" 2>"$T_DIR/err" || text=$?
	tierctl --json "$@" >"$OUT/json/$name.$1" 2>"$T_DIR/err" || json=$?
}

# keep NAME COMMAND [ARGUMENT]...: the same, and of one mind. Not for what may find
# something else a moment later.
keep()
{
	local name=$1
	take "$@"
	shift
	is $json $text "$name: $*: --json ends as text does"
	is "$(grep -v '^tierctl: warning: ' "$T_DIR/err")" "" "$name: $*: no talk on stderr beside JSON"
}

# once NAME COMMAND [ARGUMENT]...: JSON only, of what can be done only once.
once()
{
	local name=$1
	shift
	runs "$name: $*" sh -c 'out=$1; shift; tierctl --json "$@" >"$out"' once "$OUT/json/$name.$1" "$@"
}

# refused STATUS NAME COMMAND [ARGUMENT]...: it fails so, and says so in JSON.
refused()
{
	local want=$1 name=$2 status=0
	shift 2
	tierctl --json "$@" >"$OUT/json/$name.error" 2>/dev/null || status=$?
	is $status "$want" "$name: $* fails"
	is "$(jget "$OUT/json/$name.error" error.exit_code)" "$want" "$name: $*: JSON knows the exit code"
}

echo 1 >/sys/kernel/mm/numa/demotion_enabled

# --- nothing in force ---
for command in status topo list version config doctor metrics help; do
	keep idle $command
done
keep features version --features
keep idle info mainline
keep verify info mainline --verify
keep bash completion bash
{
	echo '{"latency_ms":100,"expect":"hot"}'
	echo '{"latency_ms":5000}'
} >"$T_DIR/faults.json"
keep idle replay fixed "$T_DIR/faults.json"
keep idle load fixed --dry-run
keep idle clean --dry-run
refused 1 idle_stats stats
refused 1 idle_hist hist
refused 1 idle_get get
refused 1 idle_trace trace
refused 2 usage stats -i never
refused 2 ambiguous s
refused 2 nofile load ./nosuch.bpf.o

# --- in force, nothing happening ---
once quiet load fixed --set hot_threshold_ms=150
for command in status get hist topo list; do
	keep quiet $command
done
keep one get hot_threshold_ms
keep quiet swap mru --dry-run
keep quiet unload --dry-run
refused 1 twice load fixed
refused 2 noparam set nosuch=1
refused 2 range set hot_threshold_ms=-1

# --- in force, under load ---
quick_scans
tierload touch --pages 90001 --place slow --pace spin --rate 40000 --seconds 1000 --quiet \
	>"$T_DIR/tierload" 2>&1 &
load=$!
wait_for 120 "faults" counter_over policy_calls 1000 || not_ok "faults come"
once busy set hot_threshold_ms=149
for command in status stats hist metrics; do
	keep busy $command
done
keep full hist --full
for by in node reason policy; do
	keep $by stats --by $by
	keep lines_$by stats -i 200ms --count 2 --by $by
	is "$(grep -c '^SUM OK ' "$OUT/text/lines_$by.stats")" 2 \
		"lines_$by: each interval ends with the check of the sum"
done
keep lines stats -i 200ms --count 2
# The process that faults is a child of the one that was started.
worker=$(tierctl trace --json --count 1 | jget - pid)
keep busy explain "$worker" --window 1s
keep vma explain "$worker" --vma --window 0
take busy doctor -w 1s
once busy trace --count 100
once addr trace --count 20 --addr
keep one trace --count 1
once busy dump -o "$T_DIR/dump.tar.gz"
# To a policy that promotes nothing: one that does may well thrash here, and be sent back.
# And from one, or it is sent back for that.
runs "busy: set" tierctl set hot_threshold_ms=0
once busy swap fixed --set hot_threshold_ms=0 --probation 2s
once rank swap rank
keep rank get
keep rank stats
once busy reset

# --- ejected ---
# So soon perhaps that swap itself can tell, and fails.
tierctl swap ./bad_verdict.bpf.o >/dev/null 2>&1
wait_for 60 "the ejection" grep -q ejected $MODULE_SYSFS/state || not_ok "it is ejected"
kill $load
wait $load
keep ejected status
keep ejected doctor -w 0
for command in stats list metrics; do
	keep ejected $command
done
is "$(jget "$OUT/json/ejected.stats" in_force)" false "stats says that it is not in force"
is "$(jget "$OUT/json/ejected.list" ejected)" true "list says so"
is "$(jget "$OUT/json/ejected.list" policies.*.in_force | grep -c true)" 0 \
	"list has no policy in force"
runs "metrics say so" grep -qx 'tier_policy_in_force 0' "$OUT/text/ejected.metrics"
runs "metrics tell an ejection from no policy" \
	grep -qx 'tier_policy_ejected 1' "$OUT/text/ejected.metrics"
once ejected unload
done_testing
