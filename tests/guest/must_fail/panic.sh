#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The plan is printed, then the kernel panics: must be reported as a failure.
# together
. ./lib.sh
is 1 1 "a check that holds"
echo "1..1"
echo c >/proc/sysrq-trigger
sleep 30
