#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A paced test may run twice; if it fails twice, that must be reported as a failure.
# paced
# together
. ./lib.sh
is 1 1 "a check that holds"
is 1 2 "a check that does not hold"
done_testing
