// SPDX-License-Identifier: GPL-2.0
/*
 * kernel: leave every decision to the kernel, and count.
 *
 * Idea. A control group. With this policy loaded the machine promotes exactly
 * as mainline does, while every slow-tier hint fault is counted with its
 * nodes and its scan-to-fault latency. Load it first: the histogram says where
 * hot and cold lie on this machine, and a later policy is compared with it.
 *
 * Terms. A hint fault is the access fault on a page that the NUMA scanner made
 * PROT_NONE; latency is the time from that scan to the fault, short for pages
 * that are accessed often.
 *
 * Source. Whatever algorithm the running kernel has.
 *
 * Where it does badly. Wherever the kernel does. It cannot say why the kernel
 * promoted or refused: the decision is taken after ours and is not seen.
 */
#include <tier/policy.bpf.h>

static enum tier_decision decide(const struct tier_fault *f)
{
	if (tier_now_and_then(f))
		tier_publish(f, 0, 0);
	return TIER_KERNEL;
}

TIER_POLICY(kernel, decide);
