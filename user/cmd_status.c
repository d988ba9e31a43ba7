// SPDX-License-Identifier: GPL-2.0
/* tierctl status: what is in force, what was changed for it, what ended before. */
#include "probation.h"

static const struct out_col head_cols[] = {
	{ "/state", "state", 0 },
	{ "/policy", "policy", OUT_OPTIONAL },
	{ "/object", "object", OUT_OPTIONAL },
	{ "/owner", "attached by", OUT_OPTIONAL },
	{ "/age_ns", "since", OUT_OPTIONAL },
	{ "/tiering", "kernel in tiering mode", 0 },
	{ "/observer", "observer", 0 },
	{ 0 },
};

static const struct out_col knob_cols[] = {
	{ "/path", "KNOB", 0 }, { "/saved", "BEFORE", 0 }, { "/set", "SET", 0 },
	{ "/now", "NOW", 0 }, { 0 },
};

static const struct out_col probation_cols[] = {
	{ "/state", "state", 0 }, { "/policy", "policy", 0 }, { "/previous_policy", "goes back to", 0 },
	{ "/watched", "watched", OUT_OPTIONAL }, { "/left_ns", "time left", OUT_OPTIONAL },
	{ "/why", "why", OUT_OPTIONAL }, { 0 },
};

static const struct out_col exit_cols[] = {
	{ "/kind", "why", 0 }, { "/policy", "policy", 0 }, { "/message", "message", OUT_OPTIONAL },
	{ "/error", "error", OUT_ZERO_DASH }, { 0 },
};

static const struct out_view views[] = {
	{ OUT_VIEW_LINES, "", NULL, head_cols, NULL, false },
	{ OUT_VIEW_MAP, "/params", "Parameters", NULL, NULL, false },
	{ OUT_VIEW_TABLE, "/knobs", "Changed by load, put back by unload", knob_cols, NULL, false },
	{ OUT_VIEW_LINES, "/probation", "Probation", probation_cols, NULL, false },
	{ OUT_VIEW_LINES, "/exit", "Last policy that left force", exit_cols, NULL, false },
	{ 0 },
};

static void emit_exit(struct out *out, const struct tier_status *s)
{
	const struct tier_exit_record *e = &s->exit;

	if (!*e->kind) {
		out_str(out, "exit", NULL);
		return;
	}
	out_begin_object(out, "exit");
	out_str(out, "kind", e->kind);
	out_str(out, "policy", e->policy);
	out_s64(out, "error", e->error);
	out_str(out, "message", e->message);
	out_u64(out, "time_ns", e->time_ns);
	emit_module(out, "module", e->module, NULL);
	out_end(out);
}

static void emit_status(struct out *out, const struct tier_status *s)
{
	bool loaded = s->state == TIER_STATE_ACTIVE || s->state == TIER_STATE_EJECTED ||
		      s->state == TIER_STATE_FOREIGN;

	out_str(out, "state", tier_state__name(s->state));
	out_str(out, "policy", *s->policy ? s->policy : NULL);
	out_str(out, "object", *s->object ? s->object : NULL);
	out_str(out, "owner", *s->owner ? s->owner : NULL);
	if (loaded && s->since_ns) {
		out_u64(out, "since_ns", s->since_ns);
		out_u64(out, "age_ns", s->age_ns);
	}
	if (s->link_id)
		out_u64(out, "link_id", s->link_id);
	if (s->map_id)
		out_u64(out, "map_id", s->map_id);
	out_bool(out, "tiering", s->tiering);
	out_bool(out, "observer", s->observer);
	out_bool(out, "module_inserted", s->module_inserted);
	out_bool(out, "bpffs_mounted", s->bpffs_mounted);
	out_begin_object(out, "params");
	for (unsigned int i = 0; i < s->nr_params; i++)
		out_u64(out, s->params[i].info.name, s->params[i].value);
	out_end(out);
	out_begin_array(out, "knobs");
	for (unsigned int i = 0; i < s->nr_knobs; i++) {
		out_begin_object(out, NULL);
		out_str(out, "path", s->knobs[i].path);
		out_str(out, "saved", s->knobs[i].saved);
		out_str(out, "set", s->knobs[i].set);
		out_str(out, "now", s->knobs[i].now);
		out_end(out);
	}
	out_end(out);
	emit_exit(out, s);
}

/* The last one since load: it may run, or say why a policy is not in force any more. */
static void emit_probation(struct tierctl *t, const struct tier_status *s)
{
	struct probation p;

	if (!probation_read(t, &p) || (p.state != TRIAL_FAILED && p.map_id != s->map_id)) {
		out_str(t->out, "probation", NULL);
		probation_free(&p);
		return;
	}
	out_begin_object(t->out, "probation");
	out_str(t->out, "state", trial_names[p.state]);
	out_str(t->out, "policy", p.policy);
	out_str(t->out, "previous_policy", p.old.policy);
	if (p.state == TRIAL_RUNNING) {
		__u64 now = s->since_ns + s->age_ns;

		out_bool(t->out, "watched", tier_seat__taken(t->ctx, TIER_SEAT_PROBATION));
		out_u64(t->out, "left_ns", p.end_ns > now ? p.end_ns - now : 0);
	}
	out_str(t->out, "why", *p.why ? p.why : NULL);
	out_end(t->out);
	probation_free(&p);
}

static int run(struct tierctl *t, const struct args *args)
{
	struct tier_status *s;
	int code;

	if (tier_status__read(t->ctx, &s))
		return failure_ctx(t);
	emit_status(t->out, s);
	emit_probation(t, s);
	code = show(t, views);
	if (!code && s->state == TIER_STATE_STALE)
		note(t, "pins without a policy were found: 'tierctl clean' removes them");
	if (!code && s->state == TIER_STATE_EJECTED) {
		note(t, "the policy was ejected by the module (%s): the kernel's own algorithm decides",
		     s->exit.kind);
		code = TIER_CLASS_EJECTED;
	}
	tier_status__free(s);
	return code;
}

const struct command cmd_status = {
	.name = "status",
	.group = "Look",
	.summary = "what is in force, and what was changed for it",
	.doc = "Shows the policy in force, its parameters, since when, the knobs that 'load' changed "
	"with their values before, set and now, the state of a probation, and why the last policy left "
	"force; if it failed, this is kept over unload, until the next one is loaded. The state is "
	"none, active, ejected (the module took the policy out: exit code 5), foreign (loaded by "
	"other means) or stale (pins without a policy). As root it first finishes or rolls back "
	"what a killed tierctl left half done.\n\n"
	"The JSON form can be given to 'tierctl load' again.",
	.examples = "  tierctl status\n  tierctl status --json > saved.json\n",
	.readers = "",
	.run = run,
};
