#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# All is well in the guest, but not what it leaves for the host: must be reported as a failure.
# together
. ./lib.sh
echo left >"$OUT/file"
is 1 1 "a check that holds"
done_testing
