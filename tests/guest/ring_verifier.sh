#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Every shipped object passes the verifier of this kernel, and is taken in force.
#
# One check for each policy: load, what the module says is in force, unload. The
# observer comes with each; its programs must all be attached where their target exists.
# lab: --timeout 600
# together
. ./lib.sh

machine_state >"$T_DIR/before"
dmesg_mark
tierctl list --json >"$T_DIR/list.json" || bail "tierctl list failed"
holds "policies are found" "$(jget -n "$T_DIR/list.json" 'policies.*')" -ge 3
for file in /usr/local/lib/tierctl/policy_*.bpf.o; do
	name=${file##*/policy_}
	name=${name%.bpf.o}
	if tierctl load "$name" >"$T_DIR/out" 2>&1 &&
		[ "$(cat $MODULE_SYSFS/policy)" = "$name" ]; then
		ok "$name is in force"
	else
		not_ok "$name"
		tierctl -v load "$name" 2>&1 | tail -n 30 | sed 's/^/#   /'
	fi
	[ "$name" != fixed ] || observers=$(find "$PIN_DIR/observer" -name 'link_*' | wc -l)
	tierctl unload >"$T_DIR/out" 2>&1 || { not_ok "$name: unload"; sed 's/^/#   /' "$T_DIR/out"; }
done
# Scanner, its skips, two migration functions, the folio copy: see trace.bpf.c.
holds "the observer's programs are attached" "${observers:-0}" -ge 5
same_state "$T_DIR/before" "nothing is left behind"
quiet_kernel "the kernel said nothing above notice"
done_testing
