# SPDX-License-Identifier: GPL-2.0
# Sourced after lib.sh by the tests of policies: nodes, memory under pressure, workloads.

PROMOTE_LIMIT=/proc/sys/kernel/numa_balancing_promote_rate_limit_MBps

tiering_on()
{
	set_knob /proc/sys/kernel/numa_balancing 2
}

demotion_on()
{
	set_knob /sys/kernel/mm/numa/demotion_enabled 1
}

# steady_scans: as quick, but in small steps. Marking all memory at once makes a burst of
# faults, after which latencies tell of the burst.
steady_scans()
{
	quick_scans 250
	set_knob "$SCAN_KNOBS/scan_size_mb" 32
}

# node_vmstat NODE NAME: a counter of one node, exact.
node_vmstat()
{
	fold
	awk -v n="$2" '$1 == n { print $2; found = 1 } END { exit !found }' \
		"/sys/devices/system/node/node$1/vmstat" || bail "no $2 for node $1"
}

# free_mib NODE: free memory of a node.
free_mib()
{
	awk '/MemFree:/ { print int($4 / 1024) }' "/sys/devices/system/node/node$1/meminfo"
}

# eat NODES MIB [lock]: hold memory of these nodes; $EATER is the process.
eat()
{
	rm -f "$T_DIR/eaten"
	# shellcheck disable=SC2086 # "lock" or nothing
	memeater "$1" "$2" ${3:-} "$T_DIR/eaten" >"$T_DIR/eater.out" 2>&1 &
	EATER=$!
	wait_for 120 "$2 MiB of node $1" test -e "$T_DIR/eaten" || {
		sed 's/^/# /' "$T_DIR/eater.out"
		bail "cannot take $2 MiB of node $1"
	}
}

spit()
{
	kill "$EATER" 2>/dev/null
	wait "$EATER" 2>/dev/null
	EATER=
}

# decided A B DECISION [pages]: faults (or pages) that ended so between two readings.
decided()
{
	grown_sum "$1" "$2" "nodes.*.as_target.${4:-faults}.$3"
}

# decision_over DECISION N: condition: so many faults ended so since the policy's counters began.
decision_over()
{
	[ "$(tierctl stats --json | jget -s - "nodes.*.as_target.faults.$1")" -ge "$2" ]
}

# load_run NAME TIERLOAD-ARGUMENT...: run it to its end, report in $T_DIR/NAME.json.
load_run()
{
	local name=$1 status=0
	shift
	tierload "$@" --quiet --json "$T_DIR/$name.json" >"$T_DIR/$name.out" 2>&1 || status=$?
	[ $status = 0 ] || sed 's/^/# tierload: /' "$T_DIR/$name.out"
	return $status
}

# hot_over NAME PERCENT SAMPLES: condition: the last line of that run's table has so much of
# the hot set on fast memory, and is the SAMPLESth or a later one.
hot_over()
{
	awk -v percent="$2" -v samples="$3" '$1 + 0 > 0 { n++; hot = $3 + 0 }
		END { exit !(n >= samples && hot >= percent) }' "$T_DIR/$1.out"
}

# hot_until NAME SECONDS PERCENT SAMPLES TIERLOAD-ARGUMENT...: run it until so much of the
# hot set is fast, for that many half seconds at least, at most so long. Report as of load_run.
hot_until()
{
	local name=$1 seconds=$2 percent=$3 samples=$4 load status=0
	shift 4
	tierload "$@" --seconds 1000 --report-ms 500 --json "$T_DIR/$name.json" \
		>"$T_DIR/$name.out" 2>&1 &
	load=$!
	wait_for "$seconds" "$percent % of the hot set" hot_over "$name" "$percent" "$samples" ||
		status=1
	kill $load 2>/dev/null
	wait $load || status=1
	[ $status = 0 ] || tail -n 20 "$T_DIR/$name.out" | sed 's/^/# tierload: /'
	return $status
}

# pace_held NAME: the load of that run was what was asked for; else it compares with nothing.
pace_held()
{
	awk -v slip="$(jget "$T_DIR/$1.json" totals.slip)" 'BEGIN { exit !(slip <= 0.05) }'
}

# paced_run NAME TIERLOAD-ARGUMENT...: load_run, taken again once if the host did not let it
# hold its pace, unless it never does: $SLIPPED names the runs.
SLIPPED=""
paced_run()
{
	load_run "$@" || return
	! pace_held "$1" || return 0
	note "$1: the host is too busy, late batches: $(jget "$T_DIR/$1.json" totals.slip)"
	if [ -z "$SLIPPED" ]; then
		load_run "$@" || return
		! pace_held "$1" || return 0
	fi
	SLIPPED="$SLIPPED $1"
}

# compares WHAT TEST-ARGUMENT...: holds, between runs: if one of them slipped, only what
# holds in spite of it is a result.
compares()
{
	local what=$1
	shift
	if [ -n "$SLIPPED" ] && ! [ "$@" ]; then
		ok "$what # SKIP ($*) pace did not hold in:$SLIPPED"
	else
		holds "$what" "$@"
	fi
}

# settled_sum NAME KEY: sum of a counter over the samples of the run's second half.
settled_sum()
{
	jget "$T_DIR/$1.json" "samples.*.$2" | awk '{ v[NR] = $1 }
		END { for (i = int(NR / 2) + 1; i <= NR; i++) n += v[i]; print n + 0 }'
}

# settled_median NAME-A NAME-B: by how many thousandths B's hit ratio exceeds A's: the
# median over pairs of samples of the same second, in the second half.
settled_median()
{
	jget "$T_DIR/$1.json" 'samples.*.fast_hit_ratio' >"$T_DIR/median.a"
	jget "$T_DIR/$2.json" 'samples.*.fast_hit_ratio' >"$T_DIR/median.b"
	paste "$T_DIR/median.a" "$T_DIR/median.b" | awk 'NF == 2 { v[NR] = int(($2 - $1) * 1000) }
		END { for (i = int(NR / 2) + 1; i <= NR; i++) print v[i] }' | sort -n |
		awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'
}

# permille NAME KEY: a ratio of that report, in thousandths.
permille()
{
	jget "$T_DIR/$1.json" "totals.$2" | awk '{ printf "%d\n", $1 * 1000 + 0.5 }'
}

kernel_of()
{
	jget "$T_DIR/$1.json" "totals.$2"
}
