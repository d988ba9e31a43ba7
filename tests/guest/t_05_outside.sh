#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The policy of docs/writing-a-policy.md, built outside the tree, loads by path and decides.
. ./lib.sh

quick_scans
machine_state >"$T_DIR/before"
dmesg_mark
need "info reads the object without loading it" tierctl info ./outside.bpf.o
name=$(tierctl info ./outside.bpf.o --json | jget - name)
need "load by path" tierctl load ./outside.bpf.o
is "$(cat $MODULE_SYSFS/policy)" "$name" "it is in force"
reading "$T_DIR/a"
runs "workload ran" touch_until 90 4099 \
	counter_over slow_faults $(($(counter slow_faults) + 4099))
reading "$T_DIR/b"
slow=$(grown "$T_DIR/a" "$T_DIR/b" module policy_calls)
holds "it decided faults" "$slow" -ge 4099
is "$(grown_sum "$T_DIR/a" "$T_DIR/b" 'nodes.*.as_target.faults.*')" "$slow" \
	"each is counted under a reason"
is "$(grown "$T_DIR/a" "$T_DIR/b" module bad_verdicts)" 0 "no bad verdict"
runs "swap from it to a shipped one" tierctl swap kernel
runs "and back, by path" tierctl swap ./outside.bpf.o
runs "unload" tierctl unload
same_state "$T_DIR/before" "nothing is left behind"
quiet_kernel "the kernel said nothing above notice"
done_testing
