#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# selftest.sh: does the lab tell the truth? A failure in the guest must never come
# out as success. Prints TAP; the exit status is 1 if any check failed.
set -eu

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/tierlab-self.XXXXXX")
export TMPDIR=$work
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
count=0
failed=0

# check NAME COMMAND...: one TAP line by the command's status.
check()
{
	local name=$1
	shift
	count=$((count + 1))
	if "$@"; then
		echo "ok $count - $name"
	else
		echo "not ok $count - $name"
		failed=$((failed + 1))
	fi
}

# script NAME: a guest script from stdin.
script()
{
	{ echo '#!/bin/sh'; cat; } >"$work/$1"
}

# lab NAME [OPTION]...: run it; status in $status, output in NAME.out with the
# second at which each line came, talk in NAME.err.
lab()
{
	local name=$1
	shift
	{
		"$here/run.sh" --run "$work/$name" "$@" 2>"$work/$name.err" && echo "status 0" ||
			echo "status $?"
	} |
		while IFS= read -r line; do
			echo "$EPOCHSECONDS $line"
		done >"$work/$name.out"
	status=$(sed -n '$s/.* status //p' "$work/$name.out")
}

# printed NAME TEXT: the script printed this line.
printed()
{
	cut -d' ' -f2- "$work/$1.out" | grep -qxF -e "$2"
}

# came NAME TEXT: the second at which the line came.
came()
{
	awk -v t="$2" '{ s = $1; sub(/^[0-9]+ /, ""); if ($0 == t) { print s; exit } }' "$work/$1.out"
}

# Linked dynamically, so that its libraries have to come along; touches memory that
# was put on the slow node until the kernel has noticed.
cat >"$work/toucher.c" <<'C'
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	const size_t size = 16 << 20;
	unsigned long slow = 1 << 1;
	char *p;

	syscall(SYS_set_mempolicy, 2 /* MPOL_BIND */, &slow, 64);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return 1;
	madvise(p, size, MADV_NOHUGEPAGE);
	memset(p, 1, size);
	syscall(SYS_set_mempolicy, 0 /* MPOL_DEFAULT */, NULL, 0);
	for (;;)
		for (size_t i = 0; i < size; i += 4096)
			((volatile char *)p)[i]++;
}
C
gcc -O2 -o "$work/toucher" "$work/toucher.c"

script speak <<'SH'
echo "args $#: $1|$2"
echo "env $GREETING"
echo "user $(id -u) in $(pwd) on $LAB_KERNEL $LAB_NODES"
echo "tiers $(ls -d /sys/devices/virtual/memory_tiering/memory_tier* | wc -l)"
echo "by stderr" >&2
echo "by device" >/dev/stderr
echo "<1>tierlab: noise" >/dev/kmsg
echo 2 >/proc/sys/kernel/numa_balancing
echo 100 >/sys/kernel/debug/sched/numa_balancing/scan_delay_ms
echo 100 >/sys/kernel/debug/sched/numa_balancing/scan_period_min_ms
hint_faults() { awk '/^numa_hint_faults / { print $2 }' /proc/vmstat; }
before=$(hint_faults)
./toucher &
echo first
sleep 3
echo second
# A busy host makes the guest slow.
tries=20
until [ "$(hint_faults)" -gt "$before" ] || [ $tries = 0 ]; do
	tries=$((tries - 1))
	sleep 1
done
[ "$(hint_faults)" -gt "$before" ] && echo "hint faults moved"
kill $!
echo kept >"$OUT/kept"
sleep 1000 &
exit 7
SH
lab speak --file "$work/toucher" --out "$work/out" --env "GREETING=it's" -- "two words" '"$q"'
check "exit status comes through" [ "$status" = 7 ]
check "arguments come through word for word" printed speak 'args 2: two words|"$q"'
check "environment comes through" printed speak "env it's"
check "script is root beside its files" printed speak "user 0 in /lab on 6.12 2tier"
check "guest has two memory tiers" printed speak "tiers 2"
check "both outputs come" eval 'printed speak "by stderr" && printed speak "by device"'
check "no kernel message in the output" eval '! grep -q noise "$work/speak.out"'
check "output is streamed" \
	[ $(($(came speak second) - $(came speak first))) -ge 2 ]
check "hint faults happen" printed speak "hint faults moved"
check "files come back" grep -qx kept "$work/out/kept"

script endless <<'SH'
while :; do sleep 1; done
SH
lab endless --timeout 8
check "script without end: 124" [ "$status" = 124 ]
check "it is said why" grep -q 'no end after 8 s' "$work/endless.err"

script crash <<'SH'
echo c >/proc/sysrq-trigger
SH
lab crash
check "kernel panic: 126" [ "$status" = 126 ]
check "it is said why" grep -q 'kernel panicked: .*sysrq triggered crash' "$work/crash.err"

script warned <<'SH'
echo "WARNING: made up by the selftest" >/dev/kmsg
exit 0
SH
lab warned
check "a kernel that reports a bug fails the run: 126" [ "$status" = 126 ]

script silent <<'SH'
busybox poweroff -f
SH
lab silent
check "end without verdict: 125" [ "$status" = 125 ]
check "it is said why" grep -q 'without a verdict' "$work/silent.err"

"$here/run.sh" --run "$work/endless" >/dev/null 2>&1 &
runner=$!
machine=
for _ in $(seq 60); do
	sleep 0.5
	machine=$(pgrep -P "$runner" timeout) && break
done
kill -KILL "$runner"
wait "$runner" 2>/dev/null || :
for _ in 1 2 3 4 5 6 7 8 9 10; do
	kill -0 "$machine" 2>/dev/null || break
	sleep 0.2
done
check "QEMU does not outlive a killed run" eval '[ -n "$machine" ] && ! kill -0 "$machine" 2>/dev/null'

check "an unknown kernel is a usage error" eval \
	'"$here/run.sh" --kernel none --run "$work/silent" >/dev/null 2>&1; [ $? = 2 ]'
check "a missing file fails" eval \
	'"$here/run.sh" --file "$work/none" --run "$work/silent" >/dev/null 2>&1; [ $? = 125 ]'

# Their logs are of wanted failures.
for name in speak endless crash warned silent; do
	sed -n 's/^run.sh: kernel log kept in //p' "$work/$name.err" | xargs -r rm -f
done

echo "1..$count"
[ "$failed" = 0 ] || { echo "# $failed of $count checks failed"; exit 1; }
