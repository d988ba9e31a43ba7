# SPDX-License-Identifier: GPL-2.0
# Sourced by the guest tests: TAP output, counters, knobs, the kernel's log.
#
# A test prints one "ok N - what" or "not ok N - what" per check and ends with
# done_testing, which prints the plan. A test without a plan has not ended, and
# tests/run.sh takes that for a failure, whatever the exit status was.

T_NR=0
T_BAD=0
T_DIR=$(mktemp -d /tmp/test.XXXXXX)

PIN_DIR=/sys/fs/bpf/tier
MODULE_SYSFS=/sys/kernel/tier_policy
SCAN_KNOBS=/sys/kernel/debug/sched/numa_balancing
MODULE_FILE=/lib/modules/$(uname -r)/updates/tier_policy.ko
FAST_NODE=0
SLOW_NODE=1

ok()
{
	T_NR=$((T_NR + 1))
	echo "ok $T_NR - $*"
}

not_ok()
{
	T_NR=$((T_NR + 1))
	T_BAD=$((T_BAD + 1))
	echo "not ok $T_NR - $*"
}

note()
{
	echo "# $*"
}

# is GOT WANT WHAT: equal as strings.
is()
{
	if [ "$1" = "$2" ]; then
		ok "$3 ($1)"
	else
		not_ok "$3"
		note "     got: $1"
		note "expected: $2"
	fi
}

# holds WHAT TEST-ARGUMENT...: holds "some faults came" "$n" -gt 0
holds()
{
	local what=$1
	shift
	if [ "$@" ]; then
		ok "$what ($*)"
	else
		not_ok "$what"
		note "does not hold: $*"
	fi
}

# runs WHAT COMMAND...: the command exits with 0. Its output is shown if not.
runs()
{
	local what=$1 status=0
	shift
	"$@" >"$T_DIR/runs" 2>&1 || status=$?
	if [ "$status" = 0 ]; then
		ok "$what"
	else
		not_ok "$what"
		note "exit status $status of: $*"
		sed 's/^/#   /' "$T_DIR/runs"
	fi
	return "$status"
}

# fails STATUS PATTERN WHAT COMMAND...: it exits with STATUS, and its stderr holds
# the pattern (extended regular expression, any case).
fails()
{
	local want=$1 pattern=$2 what=$3 status=0
	shift 3
	"$@" >"$T_DIR/out" 2>"$T_DIR/err" || status=$?
	if [ "$status" = "$want" ] && grep -Eiq -e "$pattern" "$T_DIR/err"; then
		ok "$what (exit $status: $(head -n 1 "$T_DIR/err"))"
		return 0
	fi
	not_ok "$what"
	note "exit status $status, expected $want and /$pattern/ on stderr: $*"
	sed 's/^/#   /' "$T_DIR/err"
	return 1
}

# bail WHAT: nothing further makes sense. No plan: a failure.
bail()
{
	echo "Bail out! $*" >&2
	dmesg | tail -n 15 | sed 's/^/# kernel: /' >&2
	exit 1
}

need()
{
	runs "$@" || bail "$1"
}

# skip_all WHY: the whole test does not apply to this machine.
skip_all()
{
	echo "1..0 # skip $*"
	exit 0
}

done_testing()
{
	echo "1..$T_NR"
	[ "$T_BAD" = 0 ]
	exit
}

# wait_for SECONDS WHAT COMMAND...: until it succeeds. Says nothing by itself.
wait_for()
{
	local tries=$(($1 * 10)) what=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		tries=$((tries - 1))
		if [ "$tries" -le 0 ]; then
			note "gave up waiting: $what"
			return 1
		fi
		sleep 0.1
	done
}

# --- counters ---

# The kernel keeps node counters per CPU and folds them now and then.
fold()
{
	echo 1 >/proc/sys/vm/stat_refresh
}

# vmstat NAME: a counter of /proc/vmstat, exact.
vmstat()
{
	fold
	awk -v n="$1" '$1 == n { print $2; found = 1 } END { exit !found }' /proc/vmstat ||
		bail "no $1 in /proc/vmstat"
}

# counter NAME: one of the module's.
counter()
{
	awk -v n="$1" '$1 == n { print $2; found = 1 } END { exit !found }' "$MODULE_SYSFS/counters" ||
		bail "no $1 in the module's counters"
}

# reading FILE: a consistent reading of all that counts faults. Faults of any
# process fall between two readings, of this shell too; so the kernel's count is
# read before and after the rest, until it did not move in between.
#
# FILE.vm, FILE.module hold "name value" lines, FILE.json what `tierctl stats` says.
reading()
{
	local tries=200
	while :; do
		fold
		cat /proc/vmstat >"$1.vm"
		tierctl stats --json >"$1.json" || bail "tierctl stats failed"
		cat "$MODULE_SYSFS/counters" >"$1.module"
		fold
		cat /proc/vmstat >"$1.after"
		[ "$(value "$1.vm" numa_hint_faults)" != "$(value "$1.after" numa_hint_faults)" ] ||
			break
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || bail "hint faults never paused for a reading"
		sleep 0.2
	done
}

# value FILE NAME: from a file of "name value" lines.
value()
{
	awk -v n="$2" '$1 == n { print $2; found = 1 } END { exit !found }' "$1" ||
		bail "no $2 in ${1##*/}"
}

# grown A B SUFFIX NAME: by how much it grew from reading A to reading B.
grown()
{
	echo $(($(value "$2.$3" "$4") - $(value "$1.$3" "$4")))
}

# decided_faults A B: hint faults that the kernel had a decision to make on. A page that is
# on the faulting CPU's own node already has none: mpol_misplaced() leaves before it asks.
decided_faults()
{
	echo $(($(grown "$1" "$2" vm numa_hint_faults) - \
		$(grown "$1" "$2" vm numa_hint_faults_local)))
}

# grown_sum A B PATH...: the same for sums over paths of the statistics.
grown_sum()
{
	local a=$1 b=$2 sum=0 path
	shift 2
	for path; do
		sum=$((sum + $(total "$b.json" "$path") - $(total "$a.json" "$path")))
	done
	echo "$sum"
}

# total FILE PATH: sum over a path of a JSON file. A path that is not there is no 0.
total()
{
	jget -s "$1" "$2" || bail "no '$2' in ${1##*/}"
}

# --- workloads ---

# touch_until SECONDS PAGES COMMAND... [-- ARGUMENT...]: touch that many pages of the slow
# node in rounds until the command succeeds, at most so long. How fast pages are marked
# and fault depends on the machine; what must come out of it does not.
touch_until()
{
	local seconds=$1 pages=$2 condition= status=0 load
	shift 2
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		condition="$condition $1"
		shift
	done
	[ $# = 0 ] || shift
	tierload touch --pages "$pages" --place slow --pace spin --quiet --seconds 1000 \
		--rate 40000 "$@" >"$T_DIR/tierload" 2>&1 &
	load=$!
	# shellcheck disable=SC2086 # words on purpose
	wait_for "$seconds" "the workload:$condition" $condition || status=1
	kill $load 2>/dev/null
	wait $load || status=1
	[ $status = 0 ] || sed 's/^/# tierload: /' "$T_DIR/tierload"
	return $status
}

# vmstat_over NAME N, counter_over NAME N: conditions.
vmstat_over()
{
	[ "$(vmstat "$1")" -ge "$2" ]
}

counter_over()
{
	[ "$(counter "$1")" -ge "$2" ]
}

# --- the scanner ---

# quick_scans [PERIOD_MS]: the NUMA scanner in a hurry, so that tests are short.
quick_scans()
{
	echo 100 >"$SCAN_KNOBS/scan_delay_ms"
	echo "${1:-200}" >"$SCAN_KNOBS/scan_period_min_ms"
	echo "${1:-200}" >"$SCAN_KNOBS/scan_period_max_ms"
	echo 256 >"$SCAN_KNOBS/scan_size_mb"
}

set_knob()
{
	echo "$2" >"$1" || bail "cannot write $2 to $1"
}

# param_max POLICY NAME: the highest value that the parameter takes.
param_max()
{
	tierctl info "$1" --json >"$T_DIR/info.json" || bail "tierctl info $1 failed"
	jget "$T_DIR/info.json" "params.name=$2.max" || bail "policy $1 has no parameter $2"
}

# prime_above N: an odd count that no other number in the system comes near by chance.
prime_above()
{
	awk -v n="$1" 'BEGIN {
		for (n += 1 - n % 2; ; n += 2) {
			for (d = 3; d * d <= n && n % d; d += 2)
				;
			if (d * d > n) { print n; exit }
		}
	}'
}

# --- what must be as before ---

# machine_state: everything that load changes, one line each; the same text
# before load and after unload means that nothing was left behind.
machine_state()
{
	local f
	for f in /proc/sys/kernel/numa_balancing* "$SCAN_KNOBS"/* \
		/sys/kernel/mm/numa/demotion_enabled /sys/kernel/mm/transparent_hugepage/enabled; do
		[ ! -f "$f" ] || echo "$f $(cat "$f")"
	done
	echo "module $(awk '$1 == "tier_policy" { print $1, "references", $3 }' /proc/modules)"
	echo "bpffs $(grep -c ' bpf ' /proc/mounts)"
	find /sys/fs/bpf -mindepth 1 2>/dev/null | sort | sed 's/^/pin /'
	# The lock file stays: removing it would open a race between two invocations. So does
	# the record of how a policy failed, until the next one is loaded.
	find /run/tierctl -mindepth 1 ! -name lock ! -name exit 2>/dev/null | sort | sed 's/^/file /'
	hooks | sed 's/^/hook /'
}

# hooks: kernel functions of the NUMA fault path that something is attached to.
hooks()
{
	awk '$1 ~ /^[a-z_0-9]+$/ { print $1 }' /sys/kernel/tracing/enabled_functions |
		grep -E 'numa|mpol|migrat' | sort
}

state_is()
{
	machine_state >"$T_DIR/state.now"
	cmp -s "$1" "$T_DIR/state.now"
}

# same_state FILE WHAT: the machine is as it was when FILE was written. The kernel frees
# a BPF link a moment after its last reference is gone: give it that moment.
same_state()
{
	if wait_for 5 "the state before" state_is "$1"; then
		ok "$2"
	else
		not_ok "$2"
		diff "$1" "$T_DIR/state.now" | sed 's/^/#   /'
	fi
}

# --- the kernel's log ---

dmesg_mark()
{
	echo "<6>tiertest: mark" >/dev/kmsg
}

# dmesg_since: what the kernel said since the mark, with level numbers.
dmesg_since()
{
	dmesg -r | awk '/tiertest: mark/ { n = 0; next } { line[n++] = $0 }
		END { for (i = 0; i < n; i++) print line[i] }'
}

# quiet_kernel WHAT: no message above notice since the mark. That a module from
# outside the tree taints the kernel is what the kernel says of any such module, and
# hrtimer and workqueue only complain of a host that did not let the guest run.
quiet_kernel()
{
	dmesg_since | awk -F'[<>]' '$2 % 8 < 5' |
		grep -v -e taint -e 'hrtimer: interrupt took' -e 'hogged CPU' >"$T_DIR/loud"
	if [ -s "$T_DIR/loud" ]; then
		not_ok "$1"
		sed 's/^/#   /' "$T_DIR/loud"
	else
		ok "$1"
	fi
}

trap 'rm -rf "$T_DIR"' EXIT
