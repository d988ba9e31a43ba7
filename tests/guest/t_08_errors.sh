#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Every refusal has its exit code, says what to do, and leaves the machine as it was.
# together
. ./lib.sh

POLICY_DIR=/usr/local/lib/tierctl

machine_state >"$T_DIR/before"
dmesg_mark

# refused STATUS PATTERN REMEDY WHAT COMMAND...: fails, names the remedy, in JSON too.
refused()
{
	local status=$1 pattern=$2 remedy=$3 what=$4
	shift 4
	fails "$status" "$pattern" "$what" "$@" || return
	grep -Eiq -e "$remedy" "$T_DIR/err" && ok "$what: names the remedy" || {
		not_ok "$what: does not name the remedy /$remedy/"
		sed 's/^/#   /' "$T_DIR/err"
	}
	same_state "$T_DIR/before" "$what: the machine is as before"
}

# --- usage ---
fails 2 'usage|command' "no command" tierctl
fails 2 'nosuch' "unknown command" tierctl nosuch
fails 2 'nosuch' "unknown option" tierctl load fixed --nosuch
refused 2 'nosuch' 'list|fixed' "unknown policy" tierctl load nosuch
refused 2 'hot_treshold_ms' 'hot_threshold_ms' "misspelt parameter" \
	tierctl load fixed --set hot_treshold_ms=5
refused 2 'hot_threshold_ms' '[0-9]' "value out of range" \
	tierctl load fixed --set hot_threshold_ms=99999999999
refused 2 'hot_threshold_ms' 'number|whole|range' "value that is no number" \
	tierctl load fixed --set hot_threshold_ms=soon

# --- rights ---
refused 4 'root' 'root|sudo' "not root" su user -c 'tierctl load fixed'
refused 4 'root' 'root|sudo' "unload, not root" su user -c 'tierctl unload'

# --- objects ---
refused 2 'no polic|not a polic|without' '.' "object without a policy" \
	tierctl load $POLICY_DIR/trace.bpf.o
echo "no object" >"$T_DIR/text.bpf.o"
refused 2 'text.bpf.o' '.' "file that is no object" tierctl load "$T_DIR/text.bpf.o"
refused 2 'nosuch.bpf.o' '.' "file that is not there" tierctl load "$T_DIR/nosuch.bpf.o"
cp $POLICY_DIR/policy_fixed.bpf.o "$T_DIR/open.bpf.o"
chmod 666 "$T_DIR/open.bpf.o"
refused 4 'writ' 'chmod|chown' "object that others may write" tierctl load "$T_DIR/open.bpf.o"
refused 1 'verifier|refused' '-v' "object that the verifier refuses" tierctl load ./bad_verifier.bpf.o
tierctl -v load ./bad_verifier.bpf.o >/dev/null 2>"$T_DIR/err"
holds "with -v the verifier's log is shown" "$(wc -l <"$T_DIR/err")" -gt 10
refused 1 'abi|version|level' 'build|rebuil' "policy of another ABI level" \
	tierctl load ./bad_abi.bpf.o

# --- kernel and module ---
mkdir "$T_DIR/empty"
mount --bind "$T_DIR/empty" /sys/kernel/btf
refused 3 'BTF' 'CONFIG_DEBUG_INFO_BTF' "kernel without BTF" tierctl load fixed
umount /sys/kernel/btf

mv "$MODULE_FILE" "$T_DIR/saved.ko"
refused 3 'tier_policy' 'install|make' "module missing" tierctl load fixed

# The module of another kernel: its version magic says SMQ for SMP. (With CONFIG_MODVERSIONS
# the kernel does not look at the release in it.)
cp "$T_DIR/saved.ko" "$MODULE_FILE"
at=$(strings -t d "$MODULE_FILE" |
	awk '/vermagic=/ { print $1 + index($0, " SMP ") - index($0, "vermagic=") + 3; exit }')
printf Q | dd of="$MODULE_FILE" bs=1 seek="$at" conv=notrunc 2>/dev/null
holds "the version magic was changed" "$(strings "$MODULE_FILE" | grep -c 'vermagic=.* SMQ ')" = 1
refused 3 'tier_policy|version' 'make|build|another kernel' "module of another kernel" \
	tierctl load fixed
head -c 1000 "$T_DIR/saved.ko" >"$MODULE_FILE"
refused 3 'tier_policy' 'make|build|install' "module cut off" tierctl load fixed
cp "$T_DIR/saved.ko" "$MODULE_FILE"

# --- nothing loaded ---
for command in unload "swap fixed" "set hot_threshold_ms=5" get stats; do
	# shellcheck disable=SC2086 # words on purpose
	refused 1 'nothing is loaded|no policy' 'load' "$command with nothing loaded" tierctl $command
done
runs "status with nothing loaded is no error" tierctl status

# --- already loaded ---
holds "bpffs is not mounted" "$(grep -c ' bpf ' /proc/mounts)" = 0
runs "load mounts bpffs where it is not mounted" tierctl load fixed
holds "bpffs is mounted" "$(grep -c ' bpf ' /proc/mounts)" = 1
machine_state >"$T_DIR/before.loaded"
fails 1 'fixed.*loaded|loaded.*fixed|fixed' "already loaded" tierctl load kernel
grep -q swap "$T_DIR/err" && grep -q unload "$T_DIR/err" && ok "already loaded: names swap and unload" ||
	not_ok "already loaded: does not name swap and unload"
fails 2 'hot_threshold_ms' "set out of range" tierctl set hot_threshold_ms=99999999999
fails 2 'nosuch' "set of an unknown parameter" tierctl set nosuch=1
fails 2 'nosuch' "get of an unknown parameter" tierctl get nosuch
fails 1 'verifier|refused' "swap to what the verifier refuses" tierctl swap ./bad_verifier.bpf.o
same_state "$T_DIR/before.loaded" "the loaded policy is untouched by all that"
is "$(cat $MODULE_SYSFS/policy)" fixed "and still in force"

# --- ejection ---
runs "swap to a policy that answers nonsense" tierctl swap ./bad_verdict.bpf.o
quick_scans
ejected()
{
	[ "$(cat $MODULE_SYSFS/state)" = ejected ]
}
touch_until 60 4099 ejected
is "$(cat $MODULE_SYSFS/state)" ejected "the module takes it out of force"
fails 5 'bad_verdict|eject' "status says so with its exit code" tierctl status
is "$(tierctl status --json | jget - exit.kind)" bad_verdicts "and why"
runs "swap to a good one puts that in force" tierctl swap fixed
is "$(cat $MODULE_SYSFS/state)" active "active again"
runs "unload" tierctl unload

# The record outlives the module that unload removes with the policy.
runs "load what answers nonsense" tierctl load ./bad_verdict.bpf.o
touch_until 60 4099 ejected
runs "unload" tierctl unload
is "$(tierctl status --json | jget - exit.kind)" bad_verdicts "the reason is known after unload"
runs "load a good one" tierctl load fixed
runs "unload" tierctl unload
is "$(ls /run/tierctl | grep -c '^exit$')" 0 "until another policy was in force"

# --- pins without a policy ---
machine_state >"$T_DIR/before"
runs "load" tierctl load fixed
rm "$PIN_DIR/link"
wait_for 10 "the module to be idle" grep -q idle $MODULE_SYSFS/state
runs "a load after the link's pin was removed by hand" tierctl load kernel
runs "unload" tierctl unload
same_state "$T_DIR/before" "nothing is left behind"

# Without the record of what load changed, pins are all that can be seen.
echo 2 >/proc/sys/kernel/numa_balancing
insmod "$MODULE_FILE"
mount -t bpf bpf /sys/fs/bpf
machine_state >"$T_DIR/before"
runs "load" tierctl load fixed
rm "$PIN_DIR/link" /run/tierctl/state.json
wait_for 10 "the module to be idle" grep -q idle $MODULE_SYSFS/state
is "$(tierctl status --json | jget - state)" stale "status calls the pins stale"
fails 1 'stale|left|pins' "load over stale pins" tierctl load fixed
grep -q 'tierctl clean' "$T_DIR/err" && ok "stale pins: names clean" || not_ok "stale pins: does not name clean"
runs "clean removes them" tierctl clean
same_state "$T_DIR/before" "nothing is left behind"
runs "load works again" tierctl load fixed
runs "unload works again" tierctl unload
same_state "$T_DIR/before" "nothing is left behind"
done_testing
