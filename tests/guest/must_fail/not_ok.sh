#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# One check fails, all else is well: must be reported as a failure.
# together
. ./lib.sh
is 1 1 "a check that holds"
is 1 2 "a check that does not hold"
done_testing
