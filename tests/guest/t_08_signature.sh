#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A kernel that wants signed modules: load says that this is the reason.
# lab: --append module.sig_enforce=1
# together
. ./lib.sh

machine_state >"$T_DIR/before"
fails 4 'sign' "load is refused" tierctl load fixed
grep -Eiq 'sign|secure boot|mok' "$T_DIR/err" && ok "names the remedy" || not_ok "does not name the remedy"
same_state "$T_DIR/before" "the machine is as before"
done_testing
