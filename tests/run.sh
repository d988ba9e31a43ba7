#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# run.sh [OPTION]...: all tests, after `make lab-root unit` has built them.
#
#   --kernel NAME   lab kernel, one of tests/lab/kernels.list (default: its first)
#   --only GLOB     only tests whose name fits, e.g. --only 'guest/t_0[13]*'
#   --guest-dir DIR take the guest tests from there, and nothing but them
#   --list          print the names and end
#
# Rings, from cheap to dear:
#   unit/…          programs of build/tests/unit, on this machine
#   lab/selftest    the lab keeps its promises (verdict, timeout, panic)
#   guest/ring_…    each shipped object through the verifier of the lab kernel
#   host/t_…        tierctl on this machine: bad input, JSON, install
#   guest/t_…       one behaviour each, in a machine booted for it alone
#   runner/…        tests that must fail: does this script say so?
#
# A guest test's first comment line says what it shows; a line "# lab: …" holds
# options for tests/lab/run.sh, and "# together" that it may run beside another
# (nothing in it depends on time). A test FILE.sh may have a FILE.host, run before it on this
# machine with a directory whose files the guest then gets, and a FILE.after, run after it
# on this machine with the directory of what the guest left in $OUT: its checks count like
# the guest's. A guest test that skips itself has nothing to judge, and skips that as well.
#
# What a paced workload shows depends on a host whose speed nobody here controls. A
# test that says "# paced" in a line of its own and fails is run once more, in a fresh
# machine; the first failure is shown as "again", and only the second run counts. So
# is a test whose machine died of "int3: 0000": QEMU's threads can run a breakpoint
# that the kernel, patching its code, has already taken back
# (https://bugzilla.redhat.com/show_bug.cgi?id=2216496).
#
# Every check counts. Logs are kept in build/tests/logs; of what fails, the end is
# shown. The last line is "N passed, N failed", with ", N skipped" if there were.
# Exit: 0 all passed, 1 something failed or nothing ran, 2 usage.
set -uo pipefail

me=run.sh
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/.." && pwd)
build=${TIER_BUILD:-$top/build}

usage()
{
	echo "$me: $*; try --help" >&2
	exit 2
}

kernel='' only='*' guest_dir=$here/guest whole=1 list=0
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help) sed -n '3,40s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" | sed '/^set -/,$d'; exit 0 ;;
	--list) list=1; shift; continue ;;
	--kernel | --only | --guest-dir) [ $# -ge 2 ] || usage "option '$1' needs a value" ;;
	*) usage "unknown argument '$1'" ;;
	esac
	case $1 in
	--kernel) kernel=$2 ;;
	--only) only=$2 ;;
	--guest-dir) guest_dir=$2 whole=0 ;;
	esac
	shift 2
done
[ -n "$kernel" ] || kernel=$(awk '!/^#/ && NF { print $1; exit }' "$here/lab/kernels.list")
root=$build/lab/$kernel/root
logs=$build/tests/logs
[ "$whole" = 1 ] || logs+=/$(basename "$guest_dir")
work=$(mktemp -d "${TMPDIR:-/tmp}/tiertests.XXXXXX")
jobs_running=()
cleanup()
{
	[ ${#jobs_running[@]} = 0 ] || kill "${jobs_running[@]}" 2>/dev/null
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Results of the tests, one file each: "PASSED FAILED SKIPPED".
mkdir -p "$work/results" "$logs"

wanted()
{
	# shellcheck disable=SC2254 # a glob on purpose
	case $1 in
	$only) ;;
	*) return 1 ;;
	esac
	[ "$list" = 0 ] || { echo "$1"; return 1; }
}

log_of()
{
	echo "$logs/${1//\//.}.log"
}

# report NAME START PASSED FAILED SKIPPED WHY: one line, the end of the log on failure.
report()
{
	local name=$1 seconds=$(($(date +%s) - $2)) passed=$3 failed=$4 skipped=$5 why=$6 word=ok
	if [ "$failed" -gt 0 ]; then
		word='not ok'
	elif [ "$passed" = 0 ]; then
		word=skip
	fi
	echo "$passed $failed $skipped" >"$work/results/${name//\//.}"
	{
		printf '%-6s  %-26s %3d passed%s%s  %d s%s\n' "$word" "$name" "$passed" \
			"$([ "$failed" = 0 ] || echo ", $failed failed")" \
			"$([ "$skipped" = 0 ] || echo ", $skipped skipped")" "$seconds" "${why:+: $why}"
		[ "$word" != 'not ok' ] || show_log "$name"
	} >"$work/report.$BASHPID"
	# In one write: two jobs may report at once.
	cat "$work/report.$BASHPID"
	rm -f "$work/report.$BASHPID"
}

show_log()
{
	local log
	log=$(log_of "$1")
	{
		grep -a -A 6 '^not ok' "$log" | head -n 60
		echo "--- end of ${log#"$PWD"/}:"
		tail -n 25 "$log"
	} | tr -d '\r' | sed 's/^/    /'
}

# judge NAME START STATUS: count the TAP in the test's log. It passes only if it
# says so: a plan that fits, no failed check, exit status 0.
judge()
{
	local name=$1 start=$2 status=$3 log passed failed skipped plan why=''
	log=$(log_of "$name")
	# cmocka's plan is one per group, and it marks a skipped test as "not ok # SKIP".
	read -r passed failed skipped plan < <(tr -d '\r' <"$log" | awk '
		/^(not )?ok .*# *[Ss][Kk][Ii][Pp]/ { skipped++; next }
		/^ok / { passed++ }
		/^not ok / { failed++ }
		/^1\.\.[0-9]/ { sub(/^1\.\./, ""); plan += $1; plans++ }
		END { print passed + 0, failed + 0, skipped + 0, plans ? plan : "none" }')
	if [ "$status" = 0 ] && [ "$plan" = 0 ]; then
		why=$(sed -n 's/^1\.\.0 *# *[Ss][Kk][Ii][Pp][Pp]* *//p' "$log" | head -n 1)
		[ -z "$why" ] || { report "$name" "$start" 0 0 1 "$why"; return; }
	fi
	if [ "$status" != 0 ] && [ "$failed" = 0 ]; then
		why="exit status $status"
	elif [ "$plan" = none ]; then
		why="ended without a plan"
	elif [ "$plan" != $((passed + failed + skipped)) ]; then
		why="planned $plan checks, made $((passed + failed + skipped))"
	elif [ "$plan" = 0 ]; then
		why="made no check"
	fi
	# What is wrong beside the failed checks is one more failure.
	[ -z "$why" ] || failed=$((failed + 1))
	report "$name" "$start" "$passed" "$failed" "$skipped" "$why"
}

# --- the rings ---------------------------------------------------------------

run_unit()
{
	local program name start status
	for program in "$build"/tests/unit/test_*; do
		[ -x "$program" ] && [ -f "$program" ] || continue
		case $program in *.d | *.o) continue ;; esac
		name=unit/$(basename "$program")
		wanted "$name" || continue
		start=$(date +%s) status=0
		(cd "$top" && TIER_BPF_DIR=$build/bpf CMOCKA_MESSAGE_OUTPUT=tap \
			timeout 120 "$program") >"$(log_of "$name")" 2>&1 </dev/null || status=$?
		judge "$name" "$start" "$status"
	done
}

run_hosts()
{
	local script name start status
	for script in "$here"/host/t_*; do
		[ -x "$script" ] || continue
		name=host/$(basename "${script%.*}")
		wanted "$name" || continue
		start=$(date +%s) status=0
		(cd "$top" && TIER_BUILD=$build timeout 1200 "$script") \
			>"$(log_of "$name")" 2>&1 </dev/null || status=$?
		judge "$name" "$start" "$status"
	done
}

run_selftest()
{
	local start status=0 log n
	wanted lab/selftest || return 0
	[ -e "$here/lab/selftest.sh" ] || return 0
	start=$(date +%s)
	log=$(log_of lab/selftest)
	timeout 300 "$here/lab/selftest.sh" >"$log" 2>&1 </dev/null || status=$?
	# It has no plan of its own: its exit status says whether it got to the end.
	n=$(grep -c -E '^(not )?ok ' "$log")
	[ "$status" != 0 ] || grep -q '^1\.\.' "$log" || echo "1..$n" >>"$log"
	judge lab/selftest "$start" "$status"
}

# Files that every guest test finds beside it.
guest_files()
{
	local file
	for file in "$here"/guest/lib*.sh "$here/bench/fault_cost.sh" "$build"/tests/guest/* \
		"$build"/tests/bench/tierload "$build"/tests/bench/faultloop \
		"$(command -v strace)"; do
		case $file in *.d | *.o) [[ $file == *.bpf.o ]] || continue ;; esac
		[ ! -f "$file" ] || printf '%s\n' "$file"
	done
}

# guest_once NAME SCRIPT: in a machine of its own. Its output is in the test's log, the
# status is its own.
guest_once()
{
	local name=$1 script=$2 status=0 log options=() extra after=${2%.sh}.after base
	base=$(basename "$script" .sh)
	log=$(log_of "$name")
	: >"$log"
	if [ -e "${script%.sh}.host" ]; then
		extra=$work/host.$base
		rm -rf "$extra"
		mkdir "$extra"
		if ! (cd "$top" && TIER_ROOT=$root "${script%.sh}.host" "$extra") >>"$log" 2>&1; then
			echo "not ok 1 - ${script##*/}: its host part failed" >>"$log"
			return 1
		fi
		for file in "$extra"/*; do
			[ ! -e "$file" ] || options+=(--file "$file")
		done
	fi
	while IFS= read -r file; do
		options+=(--file "$file")
	done < <(guest_files)
	# shellcheck disable=SC2207 # words on purpose
	options+=($(sed -n 's/^# lab: //p' "$script"))
	if [ -e "$after" ]; then
		extra=$work/out.$base
		rm -rf "$extra"
		mkdir "$extra"
		options+=(--out "$extra")
	fi
	"$here/lab/run.sh" --kernel "$kernel" --root "$root" --run "$script" "${options[@]}" \
		>>"$log" 2>&1 </dev/null || status=$?
	if [ -e "$after" ] && grep -q '^1\.\.[1-9]' "$log"; then
		(cd "$top" && TIER_BUILD=$build timeout 600 "$after" "$extra") >>"$log" 2>&1 </dev/null ||
			status=$?
	fi
	return $status
}

# again SCRIPT LOG STATUS: why this test may be run once more; fails if it may not.
again()
{
	[ "$3" != 0 ] || grep -q '^not ok ' "$2" || return 1
	if grep -a -q 'int3: 0000 \[#' "$2"; then
		echo "the emulator lost a breakpoint (int3)"
	elif grep -q '^# paced$' "$1"; then
		echo "paced, and the host's speed may be why"
	else
		return 1
	fi
}

run_guest()
{
	local name=$1 script=$2 start status=0 log why
	start=$(date +%s)
	log=$(log_of "$name")
	guest_once "$name" "$script" || status=$?
	if why=$(again "$script" "$log" "$status"); then
		mv "$log" "${log%.log}.first.log"
		{
			echo "again   $name: $why"
			grep -a '^not ok' "${log%.log}.first.log" | head -n 20 | sed 's/^/    first run: /'
		} | tr -d '\r'
		start=$(date +%s) status=0
		guest_once "$name" "$script" || status=$?
	fi
	judge "$name" "$start" "$status"
}

run_guests()
{
	local script name together=()
	for script in "$guest_dir"/*.sh; do
		[ -f "$script" ] || continue
		case ${script##*/} in lib*.sh) continue ;; esac
		name=guest/$(basename "$script" .sh)
		wanted "$name" || continue
		if grep -q '^# together' "$script"; then
			together+=("$script")
		else
			run_guest "$name" "$script"
		fi
	done
	for script in ${together[@]+"${together[@]}"}; do
		while [ "$(jobs -pr | wc -l)" -ge 2 ]; do
			wait -n
		done
		run_guest "guest/$(basename "$script" .sh)" "$script" &
		jobs_running+=($!)
	done
	wait
	jobs_running=()
}

# The runner itself, over tests that must fail: it must say of each that it did, and
# end with a failure.
run_must_fail()
{
	local script name start log status=0 must=()
	for script in "$here"/guest/must_fail/*.sh; do
		name=runner/$(basename "$script" .sh)
		wanted "$name" && must+=("$script")
	done
	[ ${#must[@]} -gt 0 ] || return 0
	start=$(date +%s)
	TIER_BUILD=$build "${BASH_SOURCE[0]}" --kernel "$kernel" --guest-dir "$here/guest/must_fail" \
		>"$work/must_fail" 2>&1 </dev/null || status=$?
	for script in "${must[@]}"; do
		name=runner/$(basename "$script" .sh)
		log=$(log_of "$name")
		sed 's/^/# /' "$work/must_fail" | grep -v '^#     ' >"$log"
		{
			if grep -q "^not ok  guest/$(basename "$script" .sh) " "$work/must_fail"; then
				echo "ok 1 - reported as failed"
			else
				echo "not ok 1 - a test that must fail was not reported as failed"
			fi
			if [ "$status" = 1 ] && tail -n 1 "$work/must_fail" |
					grep -Eq '^[0-9]+ passed, [1-9][0-9]* failed'; then
				echo "ok 2 - the run ended as failed"
			else
				echo "not ok 2 - the run ended with status $status: $(tail -n 1 "$work/must_fail")"
			fi
			echo "1..2"
		} >>"$log"
		judge "$name" "$start" 0
		start=$(date +%s)
	done
}

if [ "$list" = 0 ] && [ ! -d "$root" ]; then
	echo "$me: nothing is installed in $root; run 'make lab-root' first" >&2
	exit 1
fi
if [ "$whole" = 1 ]; then
	run_unit
	run_hosts
	run_selftest
fi
run_guests
[ "$whole" = 0 ] || run_must_fail
[ "$list" = 0 ] || exit 0

read -r passed failed skipped < <(cat "$work"/results/* 2>/dev/null |
	awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }')
if [ $((passed + failed)) = 0 ]; then
	echo "$me: no test ran" >&2
	failed=1
fi
tail=
[ "$skipped" = 0 ] || tail=", $skipped skipped"
echo "$passed passed, $failed failed$tail"
[ "$failed" = 0 ]
