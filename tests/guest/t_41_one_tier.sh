#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# doctor says that a machine with one tier cannot promote, and reading commands work there.
# lab: --nodes 1tier
# together
. ./lib.sh

tierctl doctor -w 0 --json >"$T_DIR/doctor"
is $? 3 "doctor's exit code"
is "$(jget "$T_DIR/doctor" findings.0.id)" one_tier "and its finding"
runs "topo" tierctl topo
runs "list" tierctl list
fails 1 'nothing is loaded' "stats" tierctl stats
done_testing
