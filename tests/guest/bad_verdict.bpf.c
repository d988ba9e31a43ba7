// SPDX-License-Identifier: GPL-2.0
/* Is accepted, but answers what is no decision: the module must take it out of force. */
#include <tier/policy.bpf.h>

static enum tier_decision decide(const struct tier_fault *f)
{
	return (enum tier_decision)99;
}

TIER_POLICY(bad_verdict, decide);
