#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The module: no hook while idle, not removable while loaded, gone without a trace after.
# together
. ./lib.sh

rounds=100
dmesg_mark
hooks >"$T_DIR/hooks.none"

need "insmod" insmod "$MODULE_FILE"
is "$(cat $MODULE_SYSFS/state)" idle "state is idle"
is "$(hooks)" "$(cat "$T_DIR/hooks.none")" "an idle module hooks nothing"

need "load kernel" tierctl load kernel
is "$(cat $MODULE_SYSFS/state)" active "state is active"
is "$(cat $MODULE_SYSFS/policy)" kernel "the module names the policy"
holds "the decision is hooked" "$(hooks | grep -c '^should_numa_migrate_memory$')" = 1
fails 1 'in use|temporarily unavailable' "rmmod is refused while a policy is loaded" rmmod tier_policy
is "$(cat $MODULE_SYSFS/state)" active "the policy is still in force"

runs "unload" tierctl unload
is "$(cat $MODULE_SYSFS/state)" idle "state is idle again, and the module that was there stays"
is "$(hooks)" "$(cat "$T_DIR/hooks.none")" "no hook is left"
runs "rmmod after unload" rmmod tier_policy
is "$(grep -c tier_policy /proc/modules)" 0 "the module is gone"

free_before=$(awk '$1 == "MemFree:" { print $2 }' /proc/meminfo)
failed=0
i=0
while [ $i -lt $rounds ]; do
	insmod "$MODULE_FILE" && rmmod tier_policy || failed=$((failed + 1))
	i=$((i + 1))
done
is $failed 0 "insmod and rmmod, $rounds times"
free_after=$(awk '$1 == "MemFree:" { print $2 }' /proc/meminfo)
# A leak of one page per round would be 400 KiB; the module itself is larger.
note "free memory: $free_before KiB before, $free_after KiB after"
holds "no module's worth of memory leaked per round" \
	$((free_before - free_after)) -lt $((rounds * 64))

runs "load works after all that, and inserts the module" tierctl load fixed
runs "unload removes what load inserted" tierctl unload
is "$(grep -c tier_policy /proc/modules)" 0 "the module is gone"
quiet_kernel "the kernel said nothing above notice"
done_testing
