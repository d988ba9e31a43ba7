#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# CPU time that `tierctl daemon` and metrics take, a minute, beside a workload. To be run
# in the lab, counting instructions (one of them is one ns of guest time):
#
#   make lab RUN=tests/bench/daemon_cost.sh FILES=build/tests/bench/tierload ICOUNT=1
#
# Cases: the daemon with a policy that asks for nothing (it polls, and keeps the policy's
# memory); with `locality`, which asks for pages ahead of their faults; serving /metrics,
# read once a second; and without a daemon `tierctl metrics`, started once a second.
#
# The total is exact; user and system share it by what the clock tick saw, 10 ms a time.
#
# DAEMON_COST_S: seconds a case, at least 10 (default 30).
# DAEMON_COST_MAX_MS: CPU ms a minute that the daemon may take, also while it serves
# /metrics; above it the exit status is 1 (default 600: one per cent of a CPU).
# $OUT/daemon_cost.json gets the figures.
set -u

seconds=${DAEMON_COST_S:-30}
max=${DAEMON_COST_MAX_MS:-600}
knobs=/sys/kernel/debug/sched/numa_balancing
hz=100 # USER_HZ, what /proc/PID/stat counts in
json=
bad=0

die()
{
	echo "daemon_cost: $*" >&2
	exit 1
}

[ "${LAB_ICOUNT:-0}" = 1 ] || die "needs a machine that counts instructions: make lab ICOUNT=1"
[ "$seconds" -ge 10 ] || die "DAEMON_COST_S=$seconds is too short to tell anything"
command -v tierload >/dev/null || die "no tierload here: add FILES=build/tests/bench/tierload"

echo 100 >$knobs/scan_delay_ms
echo 1000 >$knobs/scan_period_min_ms
echo 1000 >$knobs/scan_period_max_ms
echo 16 >$knobs/scan_size_mb
ip link set lo up

# Time on a CPU of all threads of a process, in ns.
on_cpu()
{
	cat /proc/"$1"/task/*/schedstat | awk '{ sum += $1 } END { printf "%.0f", sum }'
}

# "user system" of a process in ticks; children "wait" for those it has waited for.
ticks()
{
	sed 's/.*) //' /proc/"$1"/stat | awk -v of="$2" '{
		if (of == "children") print $14, $15; else print $12, $13 }'
}

# report NAME NS USER_TICKS SYSTEM_TICKS OPERATIONS WHAT
report()
{
	line=$(awk -v ns="$2" -v user="$3" -v kernel="$4" -v s="$seconds" 'BEGIN {
		ticks = user + kernel
		share = ticks ? user / ticks : 0
		ms = ns / 1e6 * 60 / s
		printf "%.1f %.1f %.1f %.3f", ms, ms * share, ms * (1 - share), ms / 600 }')
	# shellcheck disable=SC2086 # four numbers
	set -- "$1" "$5" "$6" $line
	printf '%-28s %9s %9s %9s %9s  %s %s\n' "$1" "$4" "$5" "$6" "$7" "$2" "$3"
	json="$json${json:+, }{\"case\": \"$1\", \"cpu_ms_per_minute\": $4, \"user_ms_per_minute\": $5, \"system_ms_per_minute\": $6, \"percent_of_a_cpu\": $7, \"operations\": $2, \"operation\": \"$3\"}"
	cpu_ms=$4
}

scrapes=0
scrape()
{
	for _ in $(seq "$1"); do
		wget -q -O /tmp/scrape http://127.0.0.1:9464/metrics || die "no metrics from the daemon"
		grep -q "^tier_.*_total" /tmp/scrape || die "what the daemon served are no metrics"
		scrapes=$((scrapes + 1))
		sleep 1
	done
}

# The queue has been served: pages asked for, so far.
asked()
{
	tierctl metrics | awk '$1 ~ /^tier_requested_pages_total/ { n += $2 } END { printf "%d", n }'
}

# daemon_case NAME POLICY [DAEMON-OPTION]...
daemon_case()
{
	name=$1 policy=$2
	shift 2
	tierctl load "$policy" || die "cannot load $policy"
	tierctl daemon "$@" 2>/tmp/daemon &
	daemon=$!
	tierload hotcold --mib 96 --hot-pages 1024 --rate 5000 --seconds $((seconds + 8)) --seed 7 \
		--json /tmp/load.json >/dev/null 2>/tmp/load.err &
	workload=$!
	sleep 5
	kill -0 $daemon 2>/dev/null || die "the daemon ended: $(cat /tmp/daemon)"
	ns=$(on_cpu $daemon)
	# shellcheck disable=SC2046 # two numbers
	set -- $(ticks $daemon own) "$(asked)" "$*"
	if [ "$4" ]; then
		scrape "$seconds"
	else
		sleep "$seconds"
	fi
	ns=$(($(on_cpu $daemon) - ns))
	before_user=$1 before_system=$2 before_asked=$3 options=$4
	# shellcheck disable=SC2046
	set -- $(ticks $daemon own) "$(asked)"
	if [ "$options" ]; then
		report "$name" "$ns" $(($1 - before_user)) $(($2 - before_system)) $scrapes scrapes
	else
		report "$name" "$ns" $(($1 - before_user)) $(($2 - before_system)) \
			$(($3 - before_asked)) "pages asked for"
	fi
	awk -v ms="$cpu_ms" -v max="$max" 'BEGIN { exit !(ms > max) }' && {
		echo "daemon_cost: $name takes $cpu_ms ms a minute, $max allowed"
		bad=1
	}
	wait $workload || die "tierload: $(cat /tmp/load.err)"
	kill -TERM $daemon
	wait $daemon || die "the daemon ended with an error: $(cat /tmp/daemon)"
	tierctl unload || die "cannot unload $policy"
}

# As a collector without the daemon does it: one process each time.
command_case()
{
	tierctl load fixed || die "cannot load fixed"
	# shellcheck disable=SC2046
	set -- $(ticks $$ children)
	for _ in $(seq "$seconds"); do
		tierctl metrics >/tmp/scrape || die "tierctl metrics failed"
	done
	before_user=$1 before_system=$2
	# shellcheck disable=SC2046
	set -- $(ticks $$ children)
	user=$(($1 - before_user)) system=$(($2 - before_system))
	report "tierctl metrics, once a s" $(((user + system) * (1000000000 / hz))) $user $system \
		"$seconds" runs
	tierctl unload || die "cannot unload fixed"
}

echo "CPU time beside a paced workload, Linux $(uname -r), ms a minute"
printf '%-28s %9s %9s %9s %9s\n' case total user system "% of CPU"
daemon_case "daemon, nothing asked" rank
daemon_case "daemon, locality" locality
daemon_case "daemon, metrics once a s" fixed --metrics 9464
command_case
[ -z "${OUT:-}" ] || echo "[$json]" >"$OUT/daemon_cost.json"
exit $bad
