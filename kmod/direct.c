// SPDX-License-Identifier: GPL-2.0
/*
 * The program behind a policy's promote(), to call it without its trampoline.
 *
 * What BPF puts into promote() is a trampoline: it enters an RCU read side, disables
 * migration and sets up a context that only tracing helpers look at, then calls the
 * program. The fault path has the first two already, and they cost more than most
 * policies' decisions.
 *
 * The trampoline does not tell its program. But while a map is made into a policy, its
 * members are handed to us one by one: when promote's turn comes its value is a program
 * fd, and afterwards the id of the program that the map took a reference on. The fd is
 * looked up when it is seen; the id, when a later member is looked at, says whether the
 * map found the same program there (another thread may put another file in its place
 * in between). No reference is held here: the map's lasts while its policy is attached.
 */
#include "internal.h"
#include <linux/bpf.h>
#include <linux/err.h>
#include <linux/mutex.h>

/* Maps are made at most a few at a time; one that is pushed out uses its trampoline. */
#define NR_KNOWN	8

static DEFINE_MUTEX(known_mutex);
static struct {
	const struct tier_policy_ops *ops;
	const struct bpf_prog *prog;
	u32 id;
	bool confirmed;
} known[NR_KNOWN];
static unsigned int next_known;

static int find(const struct tier_policy_ops *ops)
{
	int i;

	lockdep_assert_held(&known_mutex);
	for (i = 0; i < NR_KNOWN; i++)
		if (known[i].ops == ops)
			return i;
	return -1;
}

/* promote's turn; what was known of an earlier map at this address is void. */
void tier_direct_begin(const struct tier_policy_ops *ops, int prog_fd)
{
	struct bpf_prog *prog;
	int i;

	mutex_lock(&known_mutex);
	i = find(ops);
	if (i < 0)
		i = next_known++ % NR_KNOWN;
	known[i].ops = NULL;
	prog = prog_fd ? bpf_prog_get_type_dev(prog_fd, BPF_PROG_TYPE_STRUCT_OPS, false) : NULL;
	if (!IS_ERR_OR_NULL(prog)) {
		known[i].ops = ops;
		known[i].prog = prog;
		known[i].id = prog->aux->id;
		known[i].confirmed = false;
		bpf_prog_put(prog);
	}
	mutex_unlock(&known_mutex);
}

/* The turn of a later member: prog_id is the program that the map holds. */
void tier_direct_end(const struct tier_policy_ops *ops, u32 prog_id)
{
	int i;

	mutex_lock(&known_mutex);
	i = find(ops);
	if (i >= 0)
		known[i].confirmed = prog_id && known[i].id == prog_id;
	mutex_unlock(&known_mutex);
}

/* For a policy that is being attached: its program, or NULL if it is not known for sure. */
const struct bpf_prog *tier_direct_prog(const struct tier_policy_ops *ops)
{
	const struct bpf_prog *prog = NULL;
	int i;

	mutex_lock(&known_mutex);
	i = find(ops);
	if (i >= 0 && known[i].confirmed)
		prog = known[i].prog;
	mutex_unlock(&known_mutex);
	return prog;
}
