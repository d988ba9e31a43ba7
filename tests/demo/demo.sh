#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# demo.sh BUILD KERNEL: the demo on this machine: boot the lab, run guest.sh there,
# leave BUILD/demo/result.json. Called by `make demo`, which has built everything.
set -eu

build=$1 kernel=$2
here=$(cd "$(dirname "$0")" && pwd)
out=$build/demo

rm -rf "$out"
mkdir -p "$out"
echo "demo: booting Linux $kernel with two memory tiers under emulation"
status=0
"$here/../lab/run.sh" --kernel "$kernel" --root "$build/lab/$kernel/root" \
	--fast-mb 128 --slow-mb 512 --cpus 2 --timeout 420 --run "$here/guest.sh" \
	--file "$build/tests/bench/tierload" --file "$build/tests/guest/jget" --out "$out" || status=$?
if [ -f "$out/result.json" ]; then
	echo "demo: figures in $out/result.json"
fi
if [ "$status" != 0 ]; then
	echo "demo: FAILED (status $status)" >&2
	exit "$status"
fi
echo "demo: every promise kept"
