/* SPDX-License-Identifier: GPL-2.0 */
/*
 * BPF only, part of tier/policy.bpf.h: how a policy declares what the operator
 * can set, and the parameters that every policy has.
 */
#ifndef TIER_PARAMS_BPF_H
#define TIER_PARAMS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <tier/abi.h>

#define TIER_PARAM_DEF(type, name, dflt, min, max, unit, help, ...)		\
	_Static_assert((dflt) >= (min) && (dflt) <= (max),			\
		       #name ": default outside its range");			\
	type name SEC(".data.params")						\
	__attribute__((btf_decl_tag("tier.param:" #min ":" #max ":" unit ":" help))) \
	__VA_ARGS__ = (dflt)

/*
 * A number that the operator can set, at load and while the policy runs. The
 * tag carries what `tierctl` shows and checks; min and max are plain integers.
 * The unit is part of the name (hot_threshold_ms); "" when there is none.
 */
#define TIER_PARAM(type, name, dflt, min, max, unit, help)			\
	TIER_PARAM_DEF(type, name, dflt, min, max, unit, help)

/*
 * Like TIER_PARAM; in addition the loader ORs need (a plain number, TIER_NEED_*)
 * into the policy's flags when the parameter is not 0 at load, so that what is
 * switched off costs nothing. Needs are settled at load: such a parameter has an
 * effect later only if it was not 0 then.
 */
#define TIER_PARAM_NEED(type, name, dflt, min, max, unit, help, need)		\
	TIER_PARAM_DEF(type, name, dflt, min, max, unit, help,			\
		       __attribute__((btf_decl_tag("tier.need:" #need))))

/* Parameters that every policy has. */

/*
 * Wrap-proof latency needs the address; "automatic" only where the stamp wraps
 * within below_wrap_ms. Tag "tier.autoneed:<flags>:<below_wrap_ms>": value 1
 * ORs the flags in, value 2 does so if stamp_wrap_ms is known and smaller.
 */
#define TIER_WRAP_AUTO_MS	600000
TIER_PARAM_DEF(__u32, wrap_proof, 2, 0, 2, "",
	       "tell pages whose scan stamp wrapped from hot ones: 0 off, 1 on, 2 on if it wraps within 10 minutes",
	       __attribute__((btf_decl_tag("tier.autoneed:1:600000"))));
TIER_PARAM_NEED(__u32, reject_shared_cow, 0, 0, 1, "",
		"never promote a copy-on-write page that more than one process maps", 5);
TIER_PARAM_NEED(__u32, honour_nodemask, 0, 0, 1, "",
		"never promote outside the memory policy's or the cpuset's nodes", 9);
TIER_PARAM(__u32, thrash_limit_percent, 0, 0, 100, "%",
	   "halve admission while more of the candidates were promoted and demoted lately; 0 off");
TIER_PARAM(__u32, success_gate, 0, 0, 1, "",
	   "while nearly all promotions to a node fail, only probe now and then");
_Static_assert(TIER_NEED_ADDR == 1 && (TIER_NEED_ADDR | TIER_NEED_SHARED) == 5 &&
	       (TIER_NEED_ADDR | TIER_NEED_ALLOWED) == 9, "needs spelled as numbers in the tags");

#endif /* TIER_PARAMS_BPF_H */
