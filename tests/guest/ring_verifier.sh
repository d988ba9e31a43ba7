#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Every shipped object passes the verifier of this kernel, and is taken in force.
#
# For each policy: load, what the module says is in force, what its programs took the
# verifier, unload. The observer comes with each; its programs must all be attached where their target exists.
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
	# With the module in, so that the deciding program is among them; exits with 1 over budget.
	if tierctl info "$name" --verify --json >"$T_DIR/verify.json" 2>"$T_DIR/err"; then
		ok "$name is within the verifier's budget"
	else
		not_ok "$name is within the verifier's budget"
		sed 's/^/#   /' "$T_DIR/err"
	fi
	holds "$name: the deciding program was verified" \
		"$(jget "$T_DIR/verify.json" "verified.name=${name}_promote.verified_insns")" -gt 0
	tierctl info "$name" --verify 2>&1 | sed -n '/As this kernel/,$s/^/# /p'
	[ "$name" != fixed ] || observers=$(find "$PIN_DIR/observer" -name 'link_*' | wc -l)
	tierctl unload >"$T_DIR/out" 2>&1 || { not_ok "$name: unload"; sed 's/^/#   /' "$T_DIR/out"; }
done
# Scanner, its skips, two migration functions, the folio copy: see trace.bpf.c.
holds "the observer's programs are attached" "${observers:-0}" -ge 5
same_state "$T_DIR/before" "nothing is left behind"
quiet_kernel "the kernel said nothing above notice"
done_testing
