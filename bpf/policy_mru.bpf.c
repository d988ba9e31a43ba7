// SPDX-License-Identifier: GPL-2.0
/*
 * mru: promote on every hint fault.
 *
 * Idea. A page that was just touched is the most recently used one, so move
 * it up. No threshold, no limit: the base against which selection is measured.
 *
 * Source. NUMA balancing in tiering mode before hot page selection; the "base"
 * row in the hot page selection patches of 2022 (mm, Huang Ying).
 *
 * Where it does badly. One touch says nothing of frequency: a cold page that is
 * read once per scan goes up like a hot one, pushes another page down, and the
 * migration traffic takes bandwidth from the workload. Good only when the hot
 * set is far smaller than fast memory, or for a short warm-up.
 */
#include <tier/policy.bpf.h>

static enum tier_decision decide(const struct tier_fault *f)
{
	if (tier_now_and_then(f))
		tier_publish(f, 0, 0);
	tier_rate_take(f, 0);	/* without a limit: only counts the candidate */
	return TIER_PROMOTE_ANY;
}

TIER_POLICY(mru, decide);
