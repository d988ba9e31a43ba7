#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Limits hold: the rate limit exactly per target node and window, the module's hard cap above any policy.
#
# One thread on each fast node, each with its own memory: what goes up to a node is a
# multiple of its limit, for each window admits exactly that many.
# lab: --nodes 2fast1slow --fast-mb 384 --slow-mb 640 --timeout 400 --one-thread
# paced
. ./lib.sh
. ./lib3.sh

SLOW_NODE=2
PAGES=15013		# per thread: more than the limit lets through
LIMIT_MBPS=1		# 256 pages in a second
LIMIT_PAGES=256
CAP_PAGES=300

# seconds: since boot, in hundredths.
uptime_cs()
{
	awk '{ print int($1 * 100) }' /proc/uptime
}

as_target()
{
	echo $(($(total "$T_DIR/b.json" "nodes.node=$1.as_target.pages.$2") - \
		$(total "$T_DIR/a.json" "nodes.node=$1.as_target.pages.$2")))
}

# both_nodes NAME FAULTS [SECONDS]: a workload pinned to each fast node, until so many faults
# came, and then for so long.
# Measured from before the first fault until after the last.
both_nodes()
{
	local cpu goal loads=
	reading "$T_DIR/a"
	BEGUN=$(uptime_cs)
	goal=$(($(counter slow_faults) + $2))
	for cpu in 0 1; do
		taskset $((1 << cpu)) tierload touch --pages $PAGES --place slow --pace spin --quiet \
			--seconds 1000 --rate 40000 >"$T_DIR/load$cpu" 2>&1 &
		loads="$loads $!"
	done
	wait_for 120 "$2 faults" counter_over slow_faults $goal && ok "$1: faults came" ||
		not_ok "$1: faults came"
	sleep "${3:-0}"
	# shellcheck disable=SC2086 # words on purpose
	kill $loads
	# shellcheck disable=SC2086
	wait $loads
	TOOK=$(($(uptime_cs) - BEGUN))
	reading "$T_DIR/b"
}

# windows NODE: "SHORTEST span in ms of more pages than two windows may let through", then
# what each window let through, one a line. From the trace, in which a window begins with
# its first page. The last is left out, for it may not have ended.
windows()
{
	awk -v node="$1" -v limit=$LIMIT_PAGES '
		function number(key) {
			return match($0, "\"" key "\":[0-9]+") ?
				substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) : -1
		}
		number("target_node") == node {
			ms = number("time_ns") / 1e6
			at[n++] = ms
			if (n > 2 * limit && (!span || ms - at[n - 1 - 2 * limit] < span))
				span = ms - at[n - 1 - 2 * limit]
			if (in_window && ms - begun > 990) {
				window[w++] = in_window
				in_window = 0
			}
			if (!in_window++) begun = ms
		}
		END {
			printf "%d\n", span
			for (i = 0; i < w; i++) print window[i]
		}' "$T_DIR/trace"
}

quick_scans 200
need "load fixed, everything hot, limited" tierctl load fixed \
	--set hot_threshold_ms="$(param_max fixed hot_threshold_ms)" --set rate_limit_mbps=$LIMIT_MBPS
tierctl trace --json --reason hot >"$T_DIR/trace" 2>"$T_DIR/trace.err" &
trace=$!
wait_for 30 "the trace" grep -q promote /sys/kernel/tracing/enabled_functions || sleep 3
both_nodes limit 60000 5
kill -TERM $trace
wait $trace
sed 's/^/# trace: /' "$T_DIR/trace.err"
if grep -q lost_events "$T_DIR/trace"; then
	not_ok "limit: the trace is whole"
fi
for node in 0 1; do
	hot=$(as_target $node hot)
	holds "limit: node $node was asked for more" "$(as_target $node rate)" -gt 1000
	holds "limit: node $node's windows are a second long, in $TOOK/100 s" \
		"$hot" -le $((LIMIT_PAGES * (TOOK / 100 + 2)))
	windows $node >"$T_DIR/windows"
	span=$(head -n 1 "$T_DIR/windows")
	sed -i 1d "$T_DIR/windows"
	note "node $node:" $(cat "$T_DIR/windows")
	holds "limit: node $node: more than two windows' pages take a window at least, in ms" "$span" -gt 950
	# A window that began with too few faults to fill it lets fewer through.
	holds "limit: node $node: full windows let exactly $LIMIT_PAGES through" \
		"$(grep -cx $LIMIT_PAGES "$T_DIR/windows")" -ge 1
	is "$(jget "$T_DIR/b.json" "nodes.node=$node.rate_limit_pages_per_s")" $LIMIT_PAGES \
		"limit: node $node says which limit is in force"
done

runs "no limit" tierctl set rate_limit_mbps=0
set_knob /sys/module/tier_policy/parameters/promote_cap_pages_per_s $CAP_PAGES
both_nodes cap 60000
up=$(grown "$T_DIR/a" "$T_DIR/b" module promote_verdicts)
holds "cap: promotions were refused" "$(grown "$T_DIR/a" "$T_DIR/b" module capped)" -gt 1000
holds "cap: something went up" "$up" -ge $CAP_PAGES
holds "cap: no more than $CAP_PAGES pages a second and node in $TOOK/100 s" \
	"$up" -le $((2 * CAP_PAGES * (TOOK / 100 + 1)))
is "$(as_target 0 rate)" 0 "cap: the policy itself had no limit"

set_knob /sys/module/tier_policy/parameters/promote_cap_pages_per_s 0
both_nodes free 10000
is "$(grown "$T_DIR/a" "$T_DIR/b" module capped)" 0 "free: without a cap nothing is refused"
holds "free: and more goes up" "$(grown "$T_DIR/a" "$T_DIR/b" module promote_verdicts)" -ge 5000
runs "unload" tierctl unload
done_testing
