#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A refused hint fault costs no instruction more with the module idle, and few with a policy.
#
# fault_cost.sh exits with 1 when the idle module costs anything, when `fixed` or `rank` cost
# more than each may, and when the path is not the kernel's again after unload.
# lab: --icount --timeout 600
. ./lib.sh

FAULT_COST_POLICIES="kernel fixed rank" FAULT_COST_PROMOTED='' sh ./fault_cost.sh >"$T_DIR/cost" 2>&1
status=$?
sed 's/^/# /' "$T_DIR/cost"
is $status 0 "the costs are within their limits"
is "$(grep -cE '^(mode2|module idle|kernel|fixed|rank|mode2 again) ' "$T_DIR/cost")" 6 "all six cases were measured"
done_testing
