#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A machine that has nothing to promote (1node): load says so and changes nothing.
# lab: --nodes 1node
# together
. ./lib.sh

machine_state >"$T_DIR/before"
fails 3 'two NUMA nodes.*has one' "load is refused" tierctl load fixed
same_state "$T_DIR/before" "the machine is as before"
tierctl load fixed --json >"$T_DIR/json" 2>/dev/null
is "$(jget "$T_DIR/json" error.class)" unsupported "the error is JSON when asked for"
runs "status works here" tierctl status
done_testing
