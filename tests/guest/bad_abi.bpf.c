// SPDX-License-Identifier: GPL-2.0
/* Claims an ABI level that no module of today knows. */
#include <tier/policy.bpf.h>

static enum tier_decision decide(const struct tier_fault *f)
{
	return TIER_KERNEL;
}

#pragma clang diagnostic ignored "-Winitializer-overrides"
TIER_POLICY(bad_abi, decide, .abi_version = TIER_ABI_VERSION + 1);
