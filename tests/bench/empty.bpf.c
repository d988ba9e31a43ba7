// SPDX-License-Identifier: GPL-2.0
/*
 * Nothing, in the form of a policy: what its replay costs is the loop, the entry's
 * lookup and the clock, and so what others cost more is theirs.
 */
#include "bare.bpf.h"

static __always_inline void bare_fault(const struct tier_fault *f)
{
}

TIER_POLICY(empty, decide);
