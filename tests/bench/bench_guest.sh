#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# bench_guest.sh POLICY ORDER CLASSES TIERLOAD-ARGUMENT...: one case of `make bench`, inside a
# freshly booted machine with two memory tiers. Called by bench.sh.
#
#   POLICY   what is compared with the kernel's own mode 2
#   ORDER    mode2 or policy: who runs first
#   CLASSES  seconds for which the latencies of hot and of cold pages are recorded before;
#            0 for a workload without a hot set
# Instead of tierload's arguments, memcached and those of kvload: a real memcached, anew for each.
#
# Leaves in $OUT: mode2.json and policy.json (tierload's), stats.jsonl (the policy's counters,
# second by second), classes.json with classes.trace, machine.json.
#
# The latencies of the two classes show whether this machine, with this load and this scanner,
# can tell hot from cold at all. They are recorded with all pages on the slow node and every one
# refused, so that none moves, and apart from the runs that are compared, for tracing costs time.
set -u

memcached=
policy=$1 order=$2 classes=$3
shift 3
KNOBS=/sys/kernel/debug/sched/numa_balancing

die()
{
	echo "bench: $*" >&2
	exit 1
}

# set_knob FILE VALUE
set_knob()
{
	echo "$2" >"$1" || die "cannot write $2 to $1"
}

# Both start from the same machine: no page cache, tiering on, nobody's policy.
settle()
{
	sync
	echo 3 >/proc/sys/vm/drop_caches
	set_knob /proc/sys/kernel/numa_balancing 2
}

# start_load JSON TIERLOAD-ARGUMENT...: its memory is in place, its accesses wait for end_load.
start_load()
{
	json=$1
	shift
	rm -f /tmp/ready /tmp/go
	program=tierload
	if [ "$1" = memcached ]; then
		shift
		# As the others have base pages: in a full fast node none of 2 MiB is ever free, and
		# most of the machine's time goes into looking for one.
		set_knob /sys/kernel/mm/transparent_hugepage/enabled never
		set_knob /proc/sys/vm/min_free_kbytes "$BENCH_MIN_FREE_KB"	# that sets it, too
		memcached -u root -s /tmp/memcached.sock -m 400 -t 1 &
		memcached=$!
		while [ ! -S /tmp/memcached.sock ]; do
			kill -0 $memcached 2>/dev/null || die "memcached did not start"
			sleep 0.1
		done
		set -- --socket /tmp/memcached.sock --pid $memcached "$@"
		program=kvload
	fi
	$program "$@" --quiet --json "$json" --ready-file /tmp/ready --wait-file /tmp/go \
		2>/tmp/tierload.err &
	load=$!
	while [ ! -s /tmp/ready ]; do
		kill -0 $load 2>/dev/null || die "$program: $(cat /tmp/tierload.err)"
		sleep 0.1
	done
}

end_load()
{
	touch /tmp/go
	wait $load || die "$program: $(cat /tmp/tierload.err)"
	[ -z "$memcached" ] || { kill $memcached; wait $memcached; rm -f /tmp/memcached.sock; }
	memcached=
}

# load_says WHAT JSON: what tierload came to, in a line.
load_says()
{
	printf 'bench: %-8s fast hits %s, promotions %s, slip %s\n' "$1" \
		"$(jget "$2" totals.fast_hit_ratio_final)" "$(jget "$2" totals.promotions)" \
		"$(jget "$2" totals.slip)"
}

record_classes()
{
	settle
	# The parameter makes the module pass addresses; nothing here is shared.
	tierctl load fixed --set hot_threshold_ms=0 --set reject_shared_cow=1 ||
		die "loading fixed, to record latencies"
	start_load "$OUT/classes.json" "$@" --seconds "$classes" --place slow --page-map
	# In place before the first access: attaching patches code that must not be running.
	tierctl trace --addr >/tmp/trace 2>/tmp/trace.err &
	trace=$!
	sleep 2
	end_load
	kill -INT $trace
	wait $trace
	# Process, latency, address. From 10 000 on a latency ends in k.
	awk '$1 ~ /^[0-9.]+$/ && $(NF-3) == "ms" {
		ms = $(NF-4)
		if (ms ~ /k$/) ms *= 1000
		print $(NF-2), ms, $NF
	}' /tmp/trace >"$OUT/classes.trace"
	rm -f /tmp/trace
	echo "bench: classes  $(wc -l <"$OUT/classes.trace") faults recorded;$(head -c 60 /tmp/trace.err)"
	tierctl unload || die "unloading fixed"
}

run_mode2()
{
	settle
	start_load "$OUT/mode2.json" "$@"
	end_load
	load_says mode2 "$OUT/mode2.json"
}

run_policy()
{
	settle
	tierctl load "$policy" || die "cannot load $policy"
	start_load "$OUT/policy.json" "$@"
	tierctl stats --interval 1 --json >"$OUT/stats.jsonl" 2>/tmp/stats.err &
	stats=$!
	end_load
	kill -INT $stats
	wait $stats
	tierctl stats --json >"$OUT/stats_end.json" || die "tierctl stats failed"
	[ "$(jget "$OUT/stats_end.json" accounted)" = true ] ||
		die "not all faults under $policy are accounted for"
	[ "$(cat /sys/kernel/tier_policy/policy)" = "$policy" ] ||
		die "$policy is no longer in force: $(cat /sys/kernel/tier_policy/exit)"
	tierctl unload || die "cannot unload $policy"
	load_says "$policy" "$OUT/policy.json"
}

set_knob /sys/kernel/mm/numa/demotion_enabled 1
# Reclaim for a boosted watermark takes page cache only. Of a node without any kswapd gives up
# after 16 vain tries, for good: nothing is demoted any more, nor promoted.
set_knob /proc/sys/vm/watermark_boost_factor 0
set_knob /proc/sys/vm/min_free_kbytes "$BENCH_MIN_FREE_KB"
set_knob $KNOBS/scan_delay_ms "$BENCH_SCAN_DELAY_MS"
set_knob $KNOBS/scan_period_min_ms "$BENCH_SCAN_PERIOD_MS"
set_knob $KNOBS/scan_period_max_ms "$BENCH_SCAN_PERIOD_MS"
set_knob $KNOBS/scan_size_mb "$BENCH_SCAN_SIZE_MB"

[ "$classes" = 0 ] || record_classes "$@"
if [ "$order" = mode2 ]; then
	run_mode2 "$@"
	run_policy "$@"
else
	run_policy "$@"
	run_mode2 "$@"
fi
