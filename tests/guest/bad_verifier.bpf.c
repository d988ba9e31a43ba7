// SPDX-License-Identifier: GPL-2.0
/* Must be refused by the verifier: uses a map value without asking whether it is there. */
#include <tier/policy.bpf.h>

static enum tier_decision decide(const struct tier_fault *f)
{
	struct tier_node *node = tier_node(f);

	return f->latency_ms < node->threshold_ms ? TIER_PROMOTE_HOT : TIER_REJECT_COLD;
}

TIER_POLICY(bad_verifier, decide);
